// The pairs of lists that were found earlier, at the positions that the points have now.
//
// Lists name sources, not images, so a source is tested through every image that could be within
// the radius, and the contract decides again. Lists of a larger radius, or of positions that have
// moved a little since, so give exactly the pairs within the radius.
// crates/engine/cpu/src/stored/pairs.rs has the proof, which holds here too.
//
// In a box that is more than twice as wide as lists reach, only the nearest image of a source can
// be within the radius (nearest_image.cuh). Lists without repeats are of boxes at least 2 + 1/32
// radii wide, so a source within the radius is less than 0.4925 boxes away.
//
// In double precision every pair is computed from the positions as given, and its nearest image is
// found in f64.
//
// Filters have left pairs out of the lists already. Only where a source may be near through several
// images, of which filters may keep some, programs ask them again (NF_FILTERS).
#pragma once
#include "filter.cuh"
#include "nearest_image.cuh"
#include "pair_seen.cuh"

// What a traversal over stored lists is given beside the lists.
struct Stored {
    double reach;              // the radius with a margin for the rounding of a difference
    double slack;              // …and of this share of the largest component of a difference
    double row_length[3];      // lengths of the rows of Lattice::inverse
    // Lists with a skin: not 0 if they may miss a pair (`judge_lists`), so that nothing is computed
    // from them; null where no point has moved.
    const u32* stale;
    float inverse[3][3];       // Lattice::inverse, rounded
    u32 repeats;               // lists ascend, and may name a source several times
};

struct ImageRange {
    i64 first, last;
};

// Images along an axis that can bring a difference within the radius; none if it has overflowed.
__device__ __forceinline__ ImageRange images_in_reach(
    const Walk& walk, const Stored& stored, int axis, double x, double y, double z) {
    if (walk.lattice.length[axis] == 0.0) return {0, 0};
    const double* const row = walk.lattice.inverse[axis];
    const double largest = fmax(fmax(fabs(x), fabs(y)), fabs(z));
    const double reach = (stored.reach + stored.slack * largest) * stored.row_length[axis];
    if (!(reach < 1.7976931348623157e308)) return {1, 0};
    const double boxes = (row[0] * x + row[1] * y) + row[2] * z;
    return {static_cast<i64>(ceil(-reach - boxes)), static_cast<i64>(floor(reach - boxes))};
}

#if !NF_DOUBLE

// Shows `work` the pair with a source in one image.
template <class Work>
__device__ __forceinline__ void visit_seen(const Walk& walk, const Target& target, u32 k, const float4& source,
                                           float3 difference, float3 shift, bool real, Work& work) {
    const float dx = __fadd_rn(difference.x, shift.x);
    const float dy = __fadd_rn(difference.y, shift.y);
    const float dz = __fadd_rn(difference.z, shift.z);
    const float d2 = squared(dx, dy, dz);
    work.visit(real && d2 <= squared_radius(walk, target, work), k, dx, dy, dz, d2, source.w);
}

// Shows `work` the pairs with a source through all images that can be within the radius.
template <class Work>
__device__ __forceinline__ void visit_images(const Walk& walk, const Stored& stored, const Target& target, u32 k,
                                             const float4& source, float3 difference, Work& work) {
    const double x = difference.x, y = difference.y, z = difference.z;
    const ImageRange along_a = images_in_reach(walk, stored, 0, x, y, z);
    const ImageRange along_b = images_in_reach(walk, stored, 1, x, y, z);
    const ImageRange along_c = images_in_reach(walk, stored, 2, x, y, z);
    #pragma unroll 1
    for (i64 a = along_a.first; a <= along_a.last; a++) {
        #pragma unroll 1
        for (i64 b = along_b.first; b <= along_b.last; b++) {
            #pragma unroll 1
            for (i64 c = along_c.first; c <= along_c.last; c++) {
                const bool itself = k == target.itself && (a | b | c) == 0;
                tell_image(work, a, b, c);
                visit_seen(walk, target, k, source, difference, image_vector(walk.lattice, a, b, c), !itself, work);
            }
        }
    }
}

// Shows `work` the pairs with sorted source k, which the list of the target names. WAY is NF_OPEN;
// `real` says whether there is such a source.
template <int WAY, class Work>
__device__ __forceinline__ void visit_listed(const Walk& walk, const Stored& stored, const Target& target, u32 k,
                                             const float4& source, bool real, Work& work) {
    const float3 difference = make_float3(
        __fsub_rn(source.x, target.x), __fsub_rn(source.y, target.y), __fsub_rn(source.z, target.z));
    if (WAY == NF_LISTED_OPEN) {
        tell_image(work, 0, 0, 0);
        const bool other = real && k != target.itself;
        visit_seen(walk, target, k, source, difference, make_float3(0.0f, 0.0f, 0.0f), other, work);
        return;
    }
    if (WAY == NF_LISTED_IMAGES) {
        if (real) visit_images(walk, stored, target, k, source, difference, work);
        return;
    }
    const NearestImage image = nearest_image(walk.lattice, stored.inverse, WAY == NF_LISTED_TILTED, difference);
    tell_image(work, image.a, image.b, image.c);
    // A point is not in its own list here: its images are farther away than lists reach.
    visit_seen(walk, target, k, source, difference, image.shift, real && k != target.itself, work);
}

#else

// Shows `work` the pair with a source in one image.
template <class Work>
__device__ __forceinline__ void visit_seen(const Walk& walk, const Target& target, u32 k, const PairSeen& seen,
                                           float first, bool real, Work& work) {
    const bool itself = k == target.itself && (seen.a | seen.b | seen.c) == 0;
    bool hit = real && seen.squared <= walk.lattice.squared_radius && !itself;
#if NF_FILTERS
    hit = hit && work.keeps(k, seen);
#endif
    tell_image(work, seen.a, seen.b, seen.c);
    work.visit(hit, k, static_cast<float>(seen.d.x), static_cast<float>(seen.d.y), static_cast<float>(seen.d.z),
               static_cast<float>(seen.squared), first);
}

// The same as in single precision.
template <int WAY, class Work>
__device__ __forceinline__ void visit_listed(const Walk& walk, const Stored& stored, const Target& target, u32 k,
                                             const float4& source, bool real, Work& work) {
    const GivenVector from = given_position(walk.targets, target), to = given_position(walk.sources, k);
    const auto visit = [&](i64 a, i64 b, i64 c) {
        visit_seen(walk, target, k, PairSeen(walk, from, to, a, b, c), source.w, real, work);
    };
    if (WAY == NF_LISTED_OPEN) return visit(0, 0, 0);
    const GivenVector d = {to.x - from.x, to.y - from.y, to.z - from.z};
    if (WAY != NF_LISTED_IMAGES) {
        const Lattice& lattice = walk.lattice;
        return visit(boxes_to_nearest(lattice, 0, d), boxes_to_nearest(lattice, 1, d), boxes_to_nearest(lattice, 2, d));
    }
    if (!real) return;
    const ImageRange along_a = images_in_reach(walk, stored, 0, d.x, d.y, d.z);
    const ImageRange along_b = images_in_reach(walk, stored, 1, d.x, d.y, d.z);
    const ImageRange along_c = images_in_reach(walk, stored, 2, d.x, d.y, d.z);
    #pragma unroll 1
    for (i64 a = along_a.first; a <= along_a.last; a++) {
        #pragma unroll 1
        for (i64 b = along_b.first; b <= along_b.last; b++) {
            #pragma unroll 1
            for (i64 c = along_c.first; c <= along_c.last; c++) visit(a, b, c);
        }
    }
}

#endif

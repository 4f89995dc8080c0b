// Pairs of points whose radii are far larger than those of the others: wide points.
//
// Cells suit the radius that nearly all points stay below (`Filters::bulk`); the walk through cells
// finds the pairs that no larger radius decides. A wide target is compared with all sources, and
// every other target with all wide sources, each where the radii of that side count. Wide points
// are few, so this takes less time than cells of the largest radius, in which every target would be
// compared with nearly every source.
//
// Pairs are computed by the contract from the positions as given. The largest radius is less than
// half of a periodic box, so only the nearest image of a source is looked at. The two ways share no
// pair: the walk leaves wide sources out by their radius (`TargetFilter::largest`), and a wide
// target has no neighbours in it (`target_at`).
#pragma once
#include "filter.cuh"
#include "nearest_image.cuh"

#define NF_WIDE ((NF_FILTERS & NF_RADII) && !NF_DOUBLE)

#if NF_WIDE

constexpr u32 INFINITE_BITS = 0x7f800000u;

// Shows `work` the sorted source k in its nearest image. What the job reads beside the position may
// lie beside that of the proxy.
template <bool HALF, class Work>
__device__ __forceinline__ void visit_wide_pair(const Walk& walk, const Target& target, u32 k, Work& work) {
    const float4 at = __ldg(walk.sources.at + k);
    const float3 d = make_float3(
        __fsub_rn(at.x, target.x), __fsub_rn(at.y, target.y), __fsub_rn(at.z, target.z));
    NearestImage image = {0, 0, 0, make_float3(0.0f, 0.0f, 0.0f)};
    if (walk.lattice.periodic) {
        image = nearest_image(walk.lattice, filters_of(walk).inverse, walk.lattice.tilted, d);
        const double* const length = walk.lattice.length;
        if (length[0] == 0.0) image.a = 0;
        if (length[1] == 0.0) image.b = 0;
        if (length[2] == 0.0) image.c = 0;
    }
    const float dx = __fadd_rn(d.x, image.shift.x);
    const float dy = __fadd_rn(d.y, image.shift.y);
    const float dz = __fadd_rn(d.z, image.shift.z);
    const float d2 = squared(dx, dy, dz);
    // The image of a point nearest to itself is the point.
    bool hit = d2 <= limit_of(walk, target) && k != target.itself;
    if (HALF) hit = hit && wanted<HALF>(target.index, __float_as_uint(at.w), image.a, image.b, image.c);
    tell_image(work, image.a, image.b, image.c);
    const float4* const fields = work.sources();
    work.visit(hit, k, dx, dy, dz, d2, fields ? __ldg(&fields[k].w) : at.w);
}

// The filter of pairs with wide points.
__device__ __forceinline__ TargetFilter wide_filter(const Walk& walk, const Target& target) {
    TargetFilter filter(walk, target);
    filter.largest = __uint_as_float(INFINITE_BITS);
    return filter;
}

// Whether a target is wide and left to the kernels of flat_wide.cuh.
__device__ __forceinline__ bool has_block(const Walk& walk, const Target& target) {
    return is_wide(target) && filters_of(walk).wide_targets;
}

// Number of sources that a target is compared with one by one, beside those that it is walked to:
// the wide ones, where the radii of sources count. All of them for a wide target, unless it is left
// to the kernels of flat_wide.cuh.
__device__ __forceinline__ u32 sources_apart(const Walk& walk, const Target& target) {
    const Filters& filters = filters_of(walk);
    if (is_wide(target)) return has_block(walk, target) ? 0 : walk.sources.count;
    return filters.wide_sources ? __ldg(filters.wide_sources) : 0;
}

// The sorted place of one of these.
__device__ __forceinline__ u32 source_apart(const Walk& walk, const Target& target, u32 one) {
    return is_wide(target) ? one : __ldg(filters_of(walk).wide_sources + 1 + one);
}

// The target as pairs with these see it: within its own radius, or where the radii of sources count
// within that of the filter.
__device__ __forceinline__ Target seen_apart(const Walk& walk, const Target& target) {
    Target seen = target;
    seen.limit = filters_of(walk).source_radii ? walk.lattice.r2 : target.own;
    return seen;
}

// Shows `work` these sources from number `first` on, every `step`-th.
template <bool HALF, class Work>
__device__ __forceinline__ void visit_apart(
    const Walk& walk, const Target& target, Work& work, u32 first = 0, u32 step = 1) {
    const u32 count = sources_apart(walk, target);
    if (first >= count) return;
    const Target seen = seen_apart(walk, target);
    work.filter.largest = __uint_as_float(INFINITE_BITS);
    #pragma unroll 1
    for (u64 one = first; one < count; one += step) {
        visit_wide_pair<HALF>(walk, seen, source_apart(walk, target, static_cast<u32>(one)), work);
    }
    work.filter.largest = largest_walked(walk);
}

#else

template <bool HALF, class Work>
__device__ __forceinline__ void visit_apart(const Walk&, const Target&, Work&, u32 = 0, u32 = 1) {}

#endif

// A pair computed by the contract, from the positions as given and its true image.
#pragma once
#include "walk.cuh"

// A pair as the contract has it.
struct PairSeen {
    i64 a, b, c;
    GivenVector shift, d;
    Given squared;

    // `shift` is the vector of the image.
    __device__ __forceinline__ PairSeen(
        const GivenVector& shift, const GivenVector& target, const GivenVector& source, i64 a, i64 b, i64 c)
        : a(a), b(b), c(c), shift(shift),
          d{(source.x - target.x) + shift.x, (source.y - target.y) + shift.y, (source.z - target.z) + shift.z},
          squared(::squared(d.x, d.y, d.z)) {}

    __device__ __forceinline__ PairSeen(
        const Walk& walk, const GivenVector& target, const GivenVector& source, i64 a, i64 b, i64 c)
        : PairSeen(given_image_vector(walk.lattice, a, b, c), target, source, a, b, c) {}

    __device__ __forceinline__ Given distance() const { return root(squared); }

    // Whether a number of the image takes more than 32 bits.
    __device__ __forceinline__ bool far() const {
        return a != static_cast<int>(a) || b != static_cast<int>(b) || c != static_cast<int>(c);
    }

private:
    static __device__ __forceinline__ float root(float x) { return __fsqrt_rn(x); }
    static __device__ __forceinline__ double root(double x) { return __dsqrt_rn(x); }
};

// Vectors of near images are looked up in single precision: a product takes conversions, each of
// which takes as long as eight sums. Of a straight box `Walk::steps` has the numbers along each
// axis, for up to IMAGE_STEPS boxes on either side. Of a tilted one it has x of all images up to
// TILTED_STEPS boxes away along each vector, a fastest, then y, then z.
using nf::IMAGE_STEPS, nf::TILTED_STEPS;
constexpr u32 STEPS = 2 * IMAGE_STEPS + 1, TILTED_ALONG = 2 * TILTED_STEPS + 1;
constexpr u32 TILTED_IMAGES = TILTED_ALONG * TILTED_ALONG * TILTED_ALONG;

// A whole number below 2^31 in magnitude, by a sum.
__device__ __forceinline__ double as_double(int number) {
#ifdef __CUDA_ARCH__
    return __hiloint2double(0x43300000, number ^ 0x80000000) - 4503601774854144.0;
#else
    return number;
#endif
}

// The vector of an image at most IMAGE_STEPS boxes away along each axis.
__device__ __forceinline__ GivenVector near_vector(const Walk& walk, int a, int b, int c) {
    const Lattice& lattice = walk.lattice;
    if (!DOUBLE && walk.steps && lattice.tilted) {
        const u32 x = static_cast<u32>(a) + TILTED_STEPS, y = static_cast<u32>(b) + TILTED_STEPS,
                  z = static_cast<u32>(c) + TILTED_STEPS;
        if (max(max(x, y), z) < TILTED_ALONG) {
            const float* const at = walk.steps + ((z * TILTED_ALONG + y) * TILTED_ALONG + x);
            return GivenVector{__ldg(at), __ldg(at + TILTED_IMAGES), __ldg(at + 2 * TILTED_IMAGES)};
        }
    } else if (!DOUBLE && walk.steps) {
        const float* const middle = walk.steps + IMAGE_STEPS;
        return GivenVector{__ldg(middle + a), __ldg(middle + static_cast<int>(STEPS) + b),
                           __ldg(middle + static_cast<int>(2 * STEPS) + c)};
    }
    const double boxes[3] = {as_double(a), as_double(b), as_double(c)};
    return GivenVector{static_cast<Given>(boxes_along(lattice, boxes, 0)),
                       static_cast<Given>(boxes_along(lattice, boxes, 1)),
                       static_cast<Given>(boxes_along(lattice, boxes, 2))};
}

// The pair of a point that lies `of` boxes outside the box and one that lies `to` boxes outside,
// whose cells meet in the image (a, b, c).
__device__ __forceinline__ PairSeen pair_of_boxes(
    const Walk& walk, const GivenVector& at, const GivenVector& source, const int4& of, const int4& to,
    int a, int b, int c) {
    // Each number of boxes may be 2^30, and counts are at most 2^31 + 1001: one that is near in 32
    // bits is the count.
    const u32 x = static_cast<u32>(a) + static_cast<u32>(of.x) - static_cast<u32>(to.x);
    const u32 y = static_cast<u32>(b) + static_cast<u32>(of.y) - static_cast<u32>(to.y);
    const u32 z = static_cast<u32>(c) + static_cast<u32>(of.z) - static_cast<u32>(to.z);
    if (max(max(x + IMAGE_STEPS, y + IMAGE_STEPS), z + IMAGE_STEPS) < STEPS) {
        const int near[3] = {static_cast<int>(x), static_cast<int>(y), static_cast<int>(z)};
        return PairSeen(near_vector(walk, near[0], near[1], near[2]), at, source, near[0], near[1], near[2]);
    }
    const i64 n[3] = {static_cast<i64>(a) + of.x - to.x, static_cast<i64>(b) + of.y - to.y,
                      static_cast<i64>(c) + of.z - to.z};
    return PairSeen(given_image_vector(walk.lattice, n[0], n[1], n[2]), at, source, n[0], n[1], n[2]);
}

// The pair of a target and the sorted source k, which was found in an image of its cell.
__device__ __forceinline__ PairSeen pair_of_cells(
    const Walk& walk, u32 target, u32 k, const GivenVector& at, const GivenVector& source, int a, int b, int c) {
    int4 of = make_int4(0, 0, 0, 0), to = of;
    if (walk.lattice.periodic) {
        of = wraps_of(walk.targets, target);
        to = wraps_of(walk.sources, k);
    }
    return pair_of_boxes(walk, at, source, of, to, a, b, c);
}

// What walks over proxies compare: x, y, z and the caller's index of every sorted point.
__device__ __forceinline__ const float4* proxies_of(const Points& points) {
    return !DOUBLE && points.flags[ANY_WRAPPED] ? points.proxies : points.at;
}

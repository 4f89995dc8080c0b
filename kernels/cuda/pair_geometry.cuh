// The geometry of pairs: image, displacement and distance of every entry of a list, written beside
// the entries.
//
// Programs of lists have it if NF_GEOMETRY is 1. A walk knows the image of a candidate, and tells
// it to jobs that ask (`tell_image`); such a job then computes the pair anew by the operations of
// the contract, the addition of a zero image vector included, from the source and the image alone.
// So all ways to find lists give the same bits, and walks need not carry displacements along.
//
// Arrays of three numbers a pair are written by a warp side by side (`put_triples`): entries are 12
// bytes apart, and lanes that wrote one number of each would touch every sector three times.
#pragma once
#include "walk.cuh"

#ifndef NF_GEOMETRY
#define NF_GEOMETRY 0
#endif

// Arrays parallel to the entries of lists; null where nobody asked for one.
struct PairArrays {
    u32* targets;         // the caller's index of the target
    int* images;          // boxes by which the source is moved, three a pair
    float* shifts;        // the vector of that image, three a pair
    float* displacements; // from the target to that image of the source, three a pair
    float* squares;       // their squared lengths
    float* distances;     // the roots of these
    u32* far;             // counts pairs whose image has no 32-bit numbers
};

// A pair as the contract has it.
struct PairSeen {
    i64 a, b, c;
    float3 shift, d;
    float squared;

    __device__ __forceinline__ PairSeen(
        const Walk& walk, const Target& target, const float4& source, i64 a, i64 b, i64 c)
        : a(a), b(b), c(c), shift(image_vector(walk.lattice, a, b, c)),
          d(make_float3(__fadd_rn(__fsub_rn(source.x, target.x), shift.x),
                        __fadd_rn(__fsub_rn(source.y, target.y), shift.y),
                        __fadd_rn(__fsub_rn(source.z, target.z), shift.z))),
          squared(::squared(d.x, d.y, d.z)) {}

    __device__ __forceinline__ float distance() const { return __fsqrt_rn(squared); }

    // Whether a number of the image takes more than 32 bits.
    __device__ __forceinline__ bool far() const {
        return a != static_cast<int>(a) || b != static_cast<int>(b) || c != static_cast<int>(c);
    }
};

// Number of an image among `Lattice::shifts`, and the image of such a number.
__device__ __forceinline__ u32 number_of_image(int a, int b, int c) {
    return static_cast<u32>(static_cast<int>(HERE) + 9 * c + 3 * b + a);
}

__device__ __forceinline__ Image image_of_number(u32 number) {
    const int n = static_cast<int>(number);
    return Image{n % 3 - 1, n / 3 % 3 - 1, n / 9 - 1, make_float3(0.0f, 0.0f, 0.0f)};
}

// The pair of a target and the sorted source k, which was found in an image of its cell.
__device__ __forceinline__ PairSeen pair_of_cells(
    const Walk& walk, const Target& target, u32 k, const float4& source, const Image& image, bool wrapped) {
    const Sight seen = wrapped ? Sight(walk, target, image, k) : Sight(image);
    return PairSeen(walk, target, source, seen.a, seen.b, seen.c);
}

__device__ __forceinline__ void put_three(u32* to, u64 at, u32 x, u32 y, u32 z) {
    to[3 * at] = x;
    to[3 * at + 1] = y;
    to[3 * at + 2] = z;
}

__device__ __forceinline__ void put_vector(float* to, u64 at, const float3& vector) {
    put_three(reinterpret_cast<u32*>(to), at, __float_as_uint(vector.x), __float_as_uint(vector.y),
              __float_as_uint(vector.z));
}

// Writes what was asked for of a pair to place `at` of the arrays.
__device__ __forceinline__ void put_pair(const PairArrays& to, u64 at, u32 target, const PairSeen& pair) {
    if (to.targets) to.targets[at] = target;
    if (to.images) {
        put_three(reinterpret_cast<u32*>(to.images), at, static_cast<u32>(pair.a), static_cast<u32>(pair.b),
                  static_cast<u32>(pair.c));
        if (pair.far()) atomicAdd(to.far, 1u);
    }
    if (to.shifts) put_vector(to.shifts, at, pair.shift);
    if (to.displacements) put_vector(to.displacements, at, pair.d);
    if (to.squares) to.squares[at] = pair.squared;
    if (to.distances) to.distances[at] = pair.distance();
}

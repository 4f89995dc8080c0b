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
#include "pair_seen.cuh"

#ifndef NF_GEOMETRY
#define NF_GEOMETRY 0
#endif

// Arrays parallel to the entries of lists; null where nobody asked for one.
struct PairArrays {
    u32* targets;         // the caller's index of the target
    int* images;          // boxes by which the source is moved, three a pair
    Given* shifts;        // the vector of that image, three a pair
    Given* displacements; // from the target to that image of the source, three a pair
    Given* squares;       // their squared lengths
    Given* distances;     // the roots of these
    u32* far;             // counts pairs whose image has no 32-bit numbers
};

// Number of an image among `Lattice::shifts`, and the image of such a number.
__device__ __forceinline__ u32 number_of_image(int a, int b, int c) {
    return static_cast<u32>(static_cast<int>(HERE) + 9 * c + 3 * b + a);
}

__device__ __forceinline__ Image image_of_number(u32 number) {
    const int n = static_cast<int>(number);
    return Image{n % 3 - 1, n / 3 % 3 - 1, n / 9 - 1, make_float3(0.0f, 0.0f, 0.0f)};
}

// The pair of a note: of a target, and of the sorted source k in an image of its cell. In single
// precision `wrapped` says whether points lie outside the box.
__device__ __forceinline__ PairSeen pair_of_image(
    const Walk& walk, u32 target, u32 k, const GivenVector& at, const GivenVector& source, const Image& image, bool wrapped) {
    if (DOUBLE || wrapped) return pair_of_cells(walk, target, k, at, source, image.a, image.b, image.c);
    return PairSeen(walk, at, source, image.a, image.b, image.c);
}

template <class Number>
__device__ __forceinline__ void put_three(Number* to, u64 at, Number x, Number y, Number z) {
    to[3 * at] = x;
    to[3 * at + 1] = y;
    to[3 * at + 2] = z;
}

__device__ __forceinline__ void put_vector(Given* to, u64 at, const GivenVector& vector) {
    put_three(to, at, vector.x, vector.y, vector.z);
}

// Writes what was asked for of a pair to place `at` of the arrays.
__device__ __forceinline__ void put_pair(const PairArrays& to, u64 at, u32 target, const PairSeen& pair) {
    if (to.targets) to.targets[at] = target;
    if (to.images) {
        put_three(to.images, at, static_cast<int>(pair.a), static_cast<int>(pair.b), static_cast<int>(pair.c));
        if (pair.far()) atomicAdd(to.far, 1u);
    }
    if (to.shifts) put_vector(to.shifts, at, pair.shift);
    if (to.displacements) put_vector(to.displacements, at, pair.d);
    if (to.squares) to.squares[at] = pair.squared;
    if (to.distances) to.distances[at] = pair.distance();
}

// Pairs of many small systems among candidates: the pairs of an earlier search within a larger
// radius, one of a skin.
//
// While points have moved little, every pair within the radius is a candidate, through the image
// that the search found it by. `moved` finds how far points have moved since, which the host
// judges; `skin_pairs` tests the candidates as the search would, and keeps their order. A block
// takes consecutive candidates, a vote of each warp makes a mask of those that are pairs, and a
// look-back over the blocks before tells where they go. Each pair is computed once to be tested and
// once more to be written: its numbers lie in the cache, but not in registers meanwhile.
//
// Pairs, image vectors and displacements have the bits of systems.cuh.
#pragma once
#include "look_back.cuh"
#include "pair_output.cuh"
#include "system_boxes.cuh"

constexpr u32 SKIN_WARPS = nf::SKIN_THREADS / 32;
constexpr u32 SKIN_ROUNDS = nf::SKIN_CANDIDATES / nf::SKIN_THREADS;
constexpr u32 SKIN_MASKS = SKIN_WARPS * SKIN_ROUNDS;
static_assert(SKIN_MASKS == 32, "a warp adds up the masks of a block, a thread each");

// What the host reads after a search; all zero before it.
struct SkinStatus {
    u64 pairs;               // within the radius
    u64 moved;               // bits of the largest square of a displacement, or of infinity
    u64 extremes[6];         // largest coordinates, then and now, as integers that sort like them;
                             // and those of the negated ones
    u64 changed;             // 1: anything but the points is not what it was
};

// What a search within a larger radius has found.
struct SkinCandidates {
    const u32* targets;      // ascending
    const u32* sources;
    const int* images;       // 3 counts of a candidate
    u64* sums;               // of pairs of every block, for the look-back; before them the next
                             // block
    SkinStatus* status;
    u64 count;               // candidates
};

// The integer that sorts like a number.
__device__ __forceinline__ u64 sortable_bits(double number) {
    const u64 bits = static_cast<u64>(__double_as_longlong(number));
    return bits >> 63 ? ~bits : bits | 1ull << 63;
}

template <class Number>
__device__ __forceinline__ bool differ(const Number* now, const Number* then, u64 count, u64 first, u64 step) {
    bool any = false;
    for (u64 k = first; k < count; k += step) any |= now[k] != then[k];
    return any;
}

// By all threads of all blocks: whether anything but the points has changed.
__device__ __forceinline__ bool has_changed(const Systems& now, const Systems& then, u64 first, u64 step) {
    const u32 many = now.many, count = now.count;
    bool any = differ(now.offsets, then.offsets, count + 1, first, step);
    any |= differ(now.radii, then.radii, many & 1 ? count : 1, first, step);
    if (now.cells) any |= differ(now.cells, then.cells, many & 2 ? 9ull * count : 9, first, step);
    if (now.periodic) any |= differ(now.periodic, then.periodic, many & 4 ? 3ull * count : 3, first, step);
    return any;
}

// The largest displacement since the search that found the candidates, and the extremes of all
// coordinates.
template <class Real>
__device__ __forceinline__ void moved(const Systems& systems, const Systems& before, SkinStatus* status, u32 blocks) {
    const Real* const now = static_cast<const Real*>(systems.positions);
    const Real* const then = static_cast<const Real*>(before.positions);
    const u64 first = static_cast<u64>(blockIdx.x) * nf::SKIN_THREADS + threadIdx.x;
    const u64 step = static_cast<u64>(blocks) * nf::SKIN_THREADS;
    if (has_changed(systems, before, first, step)) atomicMax(&status->changed, u64{1});
    double farthest = 0.0, extremes[6];
    for (int k = 0; k < 6; k++) extremes[k] = -largest<double>();
    for (u64 point = first; point < systems.points; point += step) {
        double square = 0.0;
        for (int k = 0; k < 3; k++) {
            const double a = static_cast<double>(now[3 * point + k]), b = static_cast<double>(then[3 * point + k]);
            square += (a - b) * (a - b);
            extremes[k] = fmax(extremes[k], fmax(a, b));
            extremes[3 + k] = fmax(extremes[3 + k], fmax(-a, -b));
        }
        // Neither infinity nor NaN is finite.
        farthest = fmax(farthest, is_finite(square) ? square : __longlong_as_double(0x7ff0000000000000ll));
    }
    for (int distance = 16; distance > 0; distance /= 2) {
        farthest = fmax(farthest, __shfl_xor_sync(~0u, farthest, distance));
        for (int k = 0; k < 6; k++) extremes[k] = fmax(extremes[k], __shfl_xor_sync(~0u, extremes[k], distance));
    }
    if (threadIdx.x % 32 != 0) return;
    atomicMax(&status->moved, static_cast<u64>(__double_as_longlong(farthest)));
    for (int k = 0; k < 6; k++) atomicMax(&status->extremes[k], sortable_bits(extremes[k]));
}

// The system of a point.
__device__ __forceinline__ u32 system_of(const Systems& systems, u32 point) {
    u32 begin = 0, behind = systems.count;
    while (begin + 1 < behind) {
        const u32 middle = begin + (behind - begin) / 2;
        if (systems.offsets[middle] <= static_cast<i64>(point)) begin = middle;
        else behind = middle;
    }
    return begin;
}

// From a target to the image of a source.
template <class Real>
struct Between {
    Real x, y, z;

    __device__ __forceinline__ Between(const Systems& systems, const SkinCandidates& of, const SystemBox& box, u64 k) {
        const Real* const points = static_cast<const Real*>(systems.positions);
        const Real* const target = points + 3ull * of.targets[k];
        const Real* const source = points + 3ull * of.sources[k];
        const int* const image = of.images + 3 * k;
        const Vector* const v = box.vectors;
        const Vector n = {static_cast<double>(image[0]), static_cast<double>(image[1]), static_cast<double>(image[2])};
        x = (source[0] - target[0]) + static_cast<Real>(dot(n, {v[0].x, v[1].x, v[2].x}));
        y = (source[1] - target[1]) + static_cast<Real>(dot(n, {v[0].y, v[1].y, v[2].y}));
        z = (source[2] - target[2]) + static_cast<Real>(dot(n, {v[0].z, v[1].z, v[2].z}));
    }

    __device__ __forceinline__ Real square() const { return fused(z, z, fused(y, y, x * x)); }
};

// Shared memory of a block.
struct SkinRoom {
    u32 masks[SKIN_MASKS];   // of the pairs among 32 candidates each
    u32 before[SKIN_MASKS];  // pairs of the block before them
    u64 base;
    u32 block;
};

template <class Real>
__device__ __forceinline__ void write_pair(
    const PairOutput& output, const SkinCandidates& of, const Between<Real>& between, u64 k, u64 at) {
    const u32 bytes = output.index_bytes;
    if (output.targets) put_index(output.targets, at, bytes, of.targets[k]);
    if (output.sources) put_index(output.sources, at, bytes, of.sources[k]);
    if (output.images) {
        for (int axis = 0; axis < 3; axis++) output.images[3 * at + axis] = of.images[3 * k + axis];
    }
    if (output.displacements) {
        Real* const to = static_cast<Real*>(output.displacements) + 3 * at;
        to[0] = between.x;
        to[1] = between.y;
        to[2] = between.z;
    }
    if (output.distances) static_cast<Real*>(output.distances)[at] = root(between.square());
}

// Counts the candidates that are within the radius now, and writes those that have room.
template <class Real>
__device__ __forceinline__ void keep_pairs(
    const Systems& systems, const SkinCandidates& of, const PairOutput& output, SkinRoom& room) {
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const SystemBox* const boxes = static_cast<const SystemBox*>(systems.boxes);
    if (threadIdx.x == 0) room.block = static_cast<u32>(atomicAdd(of.sums, u64{1}));
    __syncthreads();
    const u64 first = static_cast<u64>(room.block) * nf::SKIN_CANDIDATES + threadIdx.x;
    u32 system[SKIN_ROUNDS];
#pragma unroll
    for (u32 round = 0; round < SKIN_ROUNDS; round++) {
        const u64 k = first + round * nf::SKIN_THREADS;
        bool is_pair = false;
        system[round] = 0;
        if (k < of.count) {
            system[round] = system_of(systems, of.targets[k]);
            const SystemBox& box = boxes[system[round]];
            is_pair = Between<Real>(systems, of, box, k).square() <= static_cast<Real>(box.r2);
        }
        const u32 mask = __ballot_sync(~0u, is_pair);
        if (lane == 0) room.masks[round * SKIN_WARPS + warp] = mask;
    }
    __syncthreads();
    if (warp == 0) {
        const u32 pairs = __popc(room.masks[lane]);
        u32 inclusive = pairs, all = pairs;
        for (int step = 1; step < 32; step *= 2) {
            const u32 before = __shfl_up_sync(~0u, inclusive, step);
            if (lane >= static_cast<u32>(step)) inclusive += before;
        }
        for (int step = 16; step > 0; step /= 2) all += __shfl_xor_sync(~0u, all, step);
        room.before[lane] = inclusive - pairs;
        const u64 base = look_back(of.sums + 1, room.block, all, lane);
        if (lane == 0) {
            room.base = base;
            const u64 behind = static_cast<u64>(room.block + 1) * nf::SKIN_CANDIDATES;
            if (behind >= of.count) of.status->pairs = base + all;
        }
    }
    __syncthreads();
    if (!output.is_wanted()) return;
#pragma unroll
    for (u32 round = 0; round < SKIN_ROUNDS; round++) {
        const u64 k = first + round * nf::SKIN_THREADS;
        const u32 place = round * SKIN_WARPS + warp, mask = room.masks[place];
        const u64 at = room.base + room.before[place] + __popc(mask & ((1u << lane) - 1));
        if (!(mask >> lane & 1) || at >= output.capacity) continue;
        write_pair<Real>(output, of, Between<Real>(systems, of, boxes[system[round]], k), k, at);
    }
}

// Lists as arrays of pairs in the order of their targets, one array for each quantity.
//
// Lists of targets that are near in space lie near each other in the storage, but callers count
// their points as they like. A block takes some consecutive targets of the caller's: it adds up the
// lengths of their lists, and a look-back over the blocks before tells where its pairs go. A warp
// then copies one list after the other. Both sides of such a copy are side by side in memory, for
// every quantity.
//
// Pairs that have no room, or that had none in the storage, are not written. The host learns the
// number of all pairs with the lists, and repeats what did not fit.
#pragma once
#include "constants.cuh"
#include "look_back.cuh"
#include "pair_output.cuh"

constexpr u32 COLUMN_WARPS = nf::COLUMN_THREADS / 32;
static_assert(nf::COLUMN_TARGETS % 32 == 0 && nf::COLUMN_TARGETS <= nf::COLUMN_THREADS,
              "whole warps have the targets of a block, a thread each");

// Lists in a storage, and what was written beside their entries. Numbers of positions are words of
// four bytes, one or two each.
struct StoredLists {
    const u64* starts;         // by target, in the caller's order
    const u32* counts;
    const u32* entries;
    const u32* images;         // 3 words of an entry; as the next two null if not wanted
    const u32* displacements;  // 3 numbers of an entry
    const u32* distances;
    u64 capacity;              // entries in the storage
    u64* sums;                 // of every block, for the look-back; before them the next block
    u32 count;                 // targets
    u32 wide;                  // words of a number
};

// Shared memory of a block.
struct ColumnRoom {
    u64 starts[nf::COLUMN_TARGETS];
    u64 places[nf::COLUMN_TARGETS];  // of the first pair of each target
    u32 counts[nf::COLUMN_TARGETS];
    u64 sums[COLUMN_WARPS];
    u64 base;
    u32 block;
};

// Numbers that a lane reads before it writes the first of them: compilers do not read ahead of a
// write that may be to the same place, and a read takes as long as several hundred instructions.
constexpr u32 AT_ONCE = 4;

// By a warp: shows `put` the words and their places.
template <class Put>
__device__ __forceinline__ void read_words(const u32* from, u64 words, const Put& put) {
    for (u64 first = threadIdx.x & 31; first < words; first += 32 * AT_ONCE) {
        u32 held[AT_ONCE];
#pragma unroll
        for (u32 n = 0; n < AT_ONCE; n++) {
            const u64 word = first + 32 * n;
            held[n] = word < words ? from[word] : 0;
        }
#pragma unroll
        for (u32 n = 0; n < AT_ONCE; n++) {
            const u64 word = first + 32 * n;
            if (word < words) put(word, held[n]);
        }
    }
}

// Copies words by a warp.
__device__ __forceinline__ void copy_words(u32* to, const u32* from, u64 words) {
    read_words(from, words, [&](u64 word, u32 value) { to[word] = value; });
}

// By all threads: the lists of the block, and the places of their pairs.
__device__ __forceinline__ void place_lists(const StoredLists& lists, ColumnRoom& room) {
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const u32 target = room.block * nf::COLUMN_TARGETS + threadIdx.x;
    const bool is_one = threadIdx.x < nf::COLUMN_TARGETS && target < lists.count;
    const u32 count = is_one ? lists.counts[target] : 0;
    u64 inclusive = count;
    for (int step = 1; step < 32; step *= 2) {
        const u64 before = __shfl_up_sync(~0u, inclusive, step);
        if (lane >= step) inclusive += before;
    }
    if (lane == 31) room.sums[warp] = inclusive;
    __syncthreads();
    u64 before = inclusive - count, all = 0;
    for (u32 other = 0; other < COLUMN_WARPS; other++) {
        if (other < warp) before += room.sums[other];
        all += room.sums[other];
    }
    if (warp == 0) {
        const u64 base = look_back(lists.sums + 1, room.block, all, lane);
        if (lane == 0) room.base = base;
    }
    if (threadIdx.x < nf::COLUMN_TARGETS) {
        room.starts[threadIdx.x] = is_one ? lists.starts[target] : 0;
        room.counts[threadIdx.x] = count;
    }
    __syncthreads();
    if (threadIdx.x < nf::COLUMN_TARGETS) room.places[threadIdx.x] = room.base + before;
    __syncthreads();
}

// By a warp: the pairs of a list, as many as there are and have room, to place `to` of all arrays.
__device__ __forceinline__ void copy_list(
    const StoredLists& lists, const PairOutput& output, u32 target, u64 from, u64 to, u64 pairs) {
    const u32 lane = threadIdx.x & 31, bytes = output.index_bytes;
    const u64 wide = lists.wide;
    if (output.targets) {
        for (u64 k = lane; k < pairs; k += 32) put_index(output.targets, to + k, bytes, target);
    }
    if (output.sources) {
        read_words(lists.entries + from, pairs, [&](u64 k, u32 entry) {
            put_index(output.sources, to + k, bytes, entry);
        });
    }
    if (output.images) {
        copy_words(reinterpret_cast<u32*>(output.images) + 3 * to, lists.images + 3 * from, 3 * pairs);
    }
    if (output.displacements) {
        u32* const array = static_cast<u32*>(output.displacements);
        copy_words(array + 3 * wide * to, lists.displacements + 3 * wide * from, 3 * wide * pairs);
    }
    if (output.distances) {
        u32* const array = static_cast<u32*>(output.distances);
        copy_words(array + wide * to, lists.distances + wide * from, wide * pairs);
    }
}

// By all threads of a block: gives `put`, a warp at a time, the target of every list of the block,
// its first entry, the place of its first pair, and how many pairs there are and have room.
template <class Put>
__device__ __forceinline__ void put_lists(
    const StoredLists& lists, const PairOutput& output, ColumnRoom& room, const Put& put) {
    if (threadIdx.x == 0) room.block = static_cast<u32>(atomicAdd(lists.sums, u64{1}));
    __syncthreads();
    place_lists(lists, room);
    for (u32 own = threadIdx.x / 32; own < nf::COLUMN_TARGETS; own += COLUMN_WARPS) {
        const u64 from = room.starts[own], to = room.places[own];
        if (from >= lists.capacity || to >= output.capacity) continue;
        const u64 stored = lists.capacity - from, space = output.capacity - to;
        u64 pairs = room.counts[own];
        if (pairs > stored) pairs = stored;
        if (pairs > space) pairs = space;
        put(room.block * nf::COLUMN_TARGETS + own, from, to, pairs);
    }
}

__device__ __forceinline__ void copy_lists(const StoredLists& lists, const PairOutput& output, ColumnRoom& room) {
    put_lists(lists, output, room, [&](u32 target, u64 from, u64 to, u64 pairs) {
        copy_list(lists, output, target, from, to, pairs);
    });
}

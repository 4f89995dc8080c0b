// Order of lists: by the caller's index, or by squared distance and then that; pairs of one source
// by their images. What else belongs to a pair is moved with its entry.
//
// A warp finds for every entry of a short list its rank, the number of entries that come before it,
// by comparing it with all of them in shared memory: for the tens of neighbours that lists have,
// that takes no more instructions than a sorting network, and no entry moves before its place is
// known. So arrays can be permuted one after the other, each in registers. Long lists are sorted in
// place by a block, by Batcher's odd-even merge sort, which works on any number of entries.
#pragma once
#include "pair_geometry.cuh"

// Threads of a warp; compilers of the host make warps of one.
#ifndef WARP
#define WARP 32
#endif

// Entries up to which a warp sorts a list.
constexpr u32 SHORT_LIST = 256;

// A list and the arrays of its pairs, from their first on.
struct ListToSort {
    u32* entries;
    PairArrays arrays;
    u32 length;
};

// What lists are ordered by: u32 for the index, or the squared distance above the index. Bits of
// numbers that are not negative ascend as these do.
#if NF_DOUBLE
struct DistanceKey {
    u64 squared;
    u32 index;

    __device__ __forceinline__ bool operator==(const DistanceKey& with) const {
        return squared == with.squared && index == with.index;
    }
    __device__ __forceinline__ bool operator<(const DistanceKey& with) const {
        return squared < with.squared || (squared == with.squared && index < with.index);
    }
};

__device__ __forceinline__ u32 index_of(const DistanceKey& key) { return key.index; }

__device__ __forceinline__ void read_key(const ListToSort& list, u64 at, DistanceKey& key) {
    key.squared = static_cast<u64>(__double_as_longlong(list.arrays.squares[at]));
    key.index = list.entries[at];
}
#else
typedef u64 DistanceKey;

__device__ __forceinline__ u32 index_of(u64 key) { return static_cast<u32>(key); }

__device__ __forceinline__ void read_key(const ListToSort& list, u64 at, u64& key) {
    key = static_cast<u64>(__float_as_uint(list.arrays.squares[at])) << 32 | list.entries[at];
}
#endif

__device__ __forceinline__ u32 index_of(u32 key) { return key; }

__device__ __forceinline__ void read_key(const ListToSort& list, u64 at, u32& key) { key = list.entries[at]; }

template <class Key>
__device__ __forceinline__ Key key_of(const ListToSort& list, u64 at) {
    Key key;
    read_key(list, at, key);
    return key;
}

// Room of a warp.
template <class Key>
struct RankRoom {
    Key keys[SHORT_LIST];
    unsigned short ranks[SHORT_LIST];
};

template <class T>
__device__ __forceinline__ T* advanced(T* array, u64 numbers) {
    return array ? array + numbers : nullptr;
}

// The list that begins with entry `start`.
__device__ __forceinline__ ListToSort list_from(u32* entries, const PairArrays& arrays, u64 start, u32 length) {
    const PairArrays from = {
        advanced(arrays.targets, start), advanced(arrays.images, 3 * start), advanced(arrays.shifts, 3 * start),
        advanced(arrays.displacements, 3 * start), advanced(arrays.squares, start),
        advanced(arrays.distances, start), nullptr};
    return ListToSort{entries + start, from, length};
}

// Whether the image of pair a comes before that of pair b, or is the same and a is the first.
__device__ __forceinline__ bool image_before(const int* images, u64 a, u64 b) {
    for (int axis = 0; axis < 3; axis++) {
        const int of_a = images[3 * a + axis], of_b = images[3 * b + axis];
        if (of_a != of_b) return of_a < of_b;
    }
    return a < b;
}

// Words of a number of the given precision.
constexpr int REAL_WORDS = sizeof(Given) / sizeof(u32);

// Brings the values of a short list, WORDS numbers each, to their ranks, by all lanes of a warp.
template <int WORDS>
__device__ __forceinline__ void permute(u32* values, const unsigned short* ranks, u32 length) {
    constexpr u32 MOST = SHORT_LIST / WARP;
    if (!values) return;
    const u32 lane = threadIdx.x % WARP;
    #pragma unroll 1
    for (u32 word = 0; word < WORDS; word++) {
        u32 own[MOST];
        #pragma unroll
        for (u32 k = 0; k < MOST; k++) {
            const u32 at = k * WARP + lane;
            if (at < length) own[k] = values[at * WORDS + word];
        }
        __syncwarp();
        #pragma unroll
        for (u32 k = 0; k < MOST; k++) {
            const u32 at = k * WARP + lane;
            if (at < length) values[ranks[at] * WORDS + word] = own[k];
        }
        __syncwarp();
    }
}

template <class T>
__device__ __forceinline__ u32* words_at(T* array) {
    return reinterpret_cast<u32*>(array);
}

// Sorts a list of at most SHORT_LIST entries, by all lanes of a warp.
template <class Key>
__device__ __forceinline__ void ascend_by_warp(const ListToSort& list, RankRoom<Key>& room) {
    const u32 lane = threadIdx.x % WARP, length = list.length;
    __syncwarp();
    for (u32 at = lane; at < length; at += WARP) room.keys[at] = key_of<Key>(list, at);
    __syncwarp();
    bool twice = false;
    for (u32 at = lane; at < length; at += WARP) {
        const Key key = room.keys[at];
        u32 rank = 0, same = 0;
        for (u32 other = 0; other < length; other++) {
            const Key with = room.keys[other];
            rank += with < key || (with == key && other < at);
            same += with == key;
        }
        room.ranks[at] = static_cast<unsigned short>(rank);
        twice = twice || same > 1;
    }
    // In a box smaller than twice the radius a source may stand in a list once per image.
    const int* const images = list.arrays.images;
    if (images && __any_sync(~0u, twice)) {
        for (u32 at = lane; at < length; at += WARP) {
            const Key key = room.keys[at];
            u32 rank = 0;
            for (u32 other = 0; other < length; other++) {
                const Key with = room.keys[other];
                rank += with < key || (with == key && image_before(images, other, at));
            }
            room.ranks[at] = static_cast<unsigned short>(rank);
        }
    }
    __syncwarp();
    for (u32 at = lane; at < length; at += WARP) list.entries[room.ranks[at]] = index_of(room.keys[at]);
    permute<1>(list.arrays.targets, room.ranks, length);
    permute<3>(words_at(list.arrays.images), room.ranks, length);
    permute<3 * REAL_WORDS>(words_at(list.arrays.shifts), room.ranks, length);
    permute<3 * REAL_WORDS>(words_at(list.arrays.displacements), room.ranks, length);
    permute<REAL_WORDS>(words_at(list.arrays.squares), room.ranks, length);
    permute<REAL_WORDS>(words_at(list.arrays.distances), room.ranks, length);
}

// The k-th pair of a list that is ordered by distance; beyond all pairs where there are fewer.
__device__ __forceinline__ Nearest nth_pair(const ListToSort& list, u32 k) {
    if (list.length < k) return Nearest{__longlong_as_double(0x7ff0000000000000ll), NONE, {0, 0, 0}};
    const u64 at = k - 1;
    const int* const image = list.arrays.images + 3 * at;
    return Nearest{list.arrays.squares[at], list.entries[at], {image[0], image[1], image[2]}};
}

// Exchanges the values of pairs a and b.
template <int WORDS>
__device__ __forceinline__ void exchange(u32* values, u64 a, u64 b) {
    if (!values) return;
    for (int word = 0; word < WORDS; word++) {
        const u32 of_a = values[WORDS * a + word];
        values[WORDS * a + word] = values[WORDS * b + word];
        values[WORDS * b + word] = of_a;
    }
}

__device__ __forceinline__ void exchange_pairs(const ListToSort& list, u64 a, u64 b) {
    exchange<1>(list.entries, a, b);
    exchange<1>(list.arrays.targets, a, b);
    exchange<3>(words_at(list.arrays.images), a, b);
    exchange<3 * REAL_WORDS>(words_at(list.arrays.shifts), a, b);
    exchange<3 * REAL_WORDS>(words_at(list.arrays.displacements), a, b);
    exchange<REAL_WORDS>(words_at(list.arrays.squares), a, b);
    exchange<REAL_WORDS>(words_at(list.arrays.distances), a, b);
}

// Sorts a list of any length, by all threads of a block.
template <class Key>
__device__ __forceinline__ void ascend_by_block(const ListToSort& list) {
    const u64 length = list.length;
    const int* const images = list.arrays.images;
    for (u64 p = 1; p < length; p *= 2) {
        for (u64 k = p; k >= 1; k /= 2) {
            const u64 shift = k % p;
            for (u64 at = shift + threadIdx.x; at + k < length; at += blockDim.x) {
                const bool paired = (at - shift) % (2 * k) < k && at / (2 * p) == (at + k) / (2 * p);
                if (!paired) continue;
                const Key first = key_of<Key>(list, at), second = key_of<Key>(list, at + k);
                const bool swapped = first == second ? images && image_before(images, at + k, at) : second < first;
                if (swapped) exchange_pairs(list, at, at + k);
            }
            __syncthreads();
        }
    }
}

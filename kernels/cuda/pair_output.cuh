// The arrays of the caller that pairs are written to, one for each quantity.
#pragma once

typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

// Where results go; arrays that are not wanted are null.
struct PairOutput {
    u64* starts;             // entries before every point, and all of them behind the last
    void* targets;           // numbers of `index_bytes`
    void* sources;
    int* images;             // 3 numbers of a pair
    void* displacements;     // 3 numbers of a pair
    void* distances;
    u64 capacity;            // entries that there is room for
    u32 index_bytes;         // 4 or 8
    u32 pad;

    __device__ __forceinline__ bool is_wanted() const {
        return targets || sources || images || displacements || distances;
    }
};

__device__ __forceinline__ void put_index(void* array, u64 at, u32 bytes, u32 index) {
    if (bytes == 8) static_cast<i64*>(array)[at] = index;
    else static_cast<u32*>(array)[at] = index;
}

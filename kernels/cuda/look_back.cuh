// Sums over all blocks before a block, in the kernel that makes them: decoupled look-back (Merrill,
// Garland 2016, "Single-pass parallel prefix scan with decoupled look-back"). Blocks take tickets,
// so none waits for one that has not begun.
#pragma once

typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

// States of a tile: its sum is not known, known, known together with all before. Sums take 62 bits.
constexpr int STATE_SHIFT = 62;
constexpr u64 SUM_ONLY = 1ull << STATE_SHIFT, SUM_TO_HERE = 2ull << STATE_SHIFT;
constexpr u64 SUM_MASK = SUM_ONLY - 1;

// Sum of all tiles before `tile`, whose own sum is `total`; by one warp.
__device__ __forceinline__ u64 look_back(volatile u64* tiles, u32 tile, u64 total, u32 lane) {
    if (lane == 0) tiles[tile] = (tile == 0 ? SUM_TO_HERE : SUM_ONLY) | total;
    u64 before = 0;
    for (i64 at = static_cast<i64>(tile) - 1; at >= 0; at -= 32) {
        const i64 look = at - lane;
        u64 state = SUM_TO_HERE;
        if (look >= 0) {
            do {
                state = tiles[look];
            } while ((state & ~SUM_MASK) == 0);
        }
        const u32 complete = __ballot_sync(~0u, (state & ~SUM_MASK) == SUM_TO_HERE);
        const int last = complete ? __ffs(complete) - 1 : 31;
        u64 sum = lane <= last ? state & SUM_MASK : 0;
        for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
        before += sum;
        if (complete) break;
    }
    if (lane == 0 && tile > 0) tiles[tile] = SUM_TO_HERE | (before + total);
    return before;
}

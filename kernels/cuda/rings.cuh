// Rings in shared memory, through which the lanes of a warp write their lists side by side.
#pragma once
#include "contract.cuh"

// Entries found by the lanes of a warp, on their way to memory. Single entries would cost a memory
// transaction each; here every lane has a ring of 32, and whenever one holds 16 or more the warp
// writes 16 of them side by side. Entry e of lane l is at (e % 32) * 33 + l, so that neither
// pushing nor writing out meets a bank twice.
struct Rings {
    u32* ring;
    u32* out;           // list of this lane
    u64 room;           // entries it may have
    u32 pushed, written, lane;

    __device__ __forceinline__ void push(u32 entry) {
        ring[(pushed & 31) * 33 + lane] = entry;
        pushed++;
    }

    // By all lanes together: writes out 16 entries of every lane that holds as many, or, in the
    // end, all that is left.
    __device__ __forceinline__ void flush(bool last) {
        __syncwarp();
        const u32 held = pushed - written;
        const bool ready = last ? held > 0 : held >= 16;
        u32 waiting = __ballot_sync(~0u, ready);
        const u32 half = lane / 16, k = lane % 16;
        while (waiting) {
            const int first = __ffs(waiting) - 1;
            waiting &= waiting - 1;
            const int second = waiting ? __ffs(waiting) - 1 : first;
            const bool idle = half == 1 && second == first;
            waiting &= waiting - 1;
            const int from = half ? second : first;
            const u32 begin = __shfl_sync(~0u, written, from);
            const u32 count = min(__shfl_sync(~0u, held, from), 16u);
            const u64 most = __shfl_sync(~0u, room, from);
            u32* const to = reinterpret_cast<u32*>(__shfl_sync(~0u, reinterpret_cast<u64>(out), from));
            if (!idle && k < count && begin + k < most) to[begin + k] = ring[((begin + k) & 31) * 33 + from];
        }
        if (ready) written += min(held, 16u);
        __syncwarp();
    }
};

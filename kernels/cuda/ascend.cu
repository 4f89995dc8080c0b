// Brings lists that lie one behind the other into ascending order.
#include "ascend.cuh"

using nf::LIST_THREADS;
constexpr u32 WARPS = LIST_THREADS / WARP;

// Lists of a block. Lists that do not lie in the storage as a whole are left as they are.
using nf::ASCEND_LISTS;

extern "C" __global__ void __launch_bounds__(LIST_THREADS)
lists_ascend(const u64* __restrict__ starts, u32 count, u32* entries, u64 capacity,
             const __grid_constant__ PairArrays arrays) {
    await_kernels_before();
    __shared__ RankRoom rooms[WARPS];
    const auto list_at = [&](u32 list) {
        const u64 start = starts[list], behind = starts[list + 1];
        return list_from(entries, arrays, start, behind <= capacity ? static_cast<u32>(behind - start) : 0);
    };
    const u32 first = blockIdx.x * ASCEND_LISTS, behind = min(first + ASCEND_LISTS, count);
    for (u32 list = first + threadIdx.x / WARP; list < behind; list += WARPS) {
        const ListToSort found = list_at(list);
        if (found.length > 1 && found.length <= SHORT_LIST) ascend_by_warp(found, rooms[threadIdx.x / WARP]);
    }
    for (u32 list = first; list < behind; list++) {
        const ListToSort found = list_at(list);
        if (found.length > SHORT_LIST) ascend_by_block(found);
    }
}

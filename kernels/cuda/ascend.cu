// Brings lists that lie one behind the other into order: by the caller's index, or nearest first.
#include "ascend.cuh"

using nf::LIST_THREADS;
constexpr u32 WARPS = LIST_THREADS / WARP;

using nf::ASCEND_LISTS;

// Orders lists, whose entries begin with number `base` at `entries`, and calls done(number, list)
// by one thread behind each. Lists that do not lie in the storage as a whole are left as they are.
template <class Key, class Done>
__device__ __forceinline__ void order_lists(const u64* starts, u32 count, u32* entries, u64 base, u64 capacity,
                                            const PairArrays& arrays, RankRoom<Key>* rooms, Done done) {
    const auto list_at = [&](u32 list) {
        const u64 start = starts[list], behind = starts[list + 1];
        return list_from(entries, arrays, start - base, behind <= capacity ? static_cast<u32>(behind - start) : 0);
    };
    const u32 first = blockIdx.x * ASCEND_LISTS, behind = min(first + ASCEND_LISTS, count);
    for (u32 list = first + threadIdx.x / WARP; list < behind; list += WARPS) {
        const ListToSort found = list_at(list);
        if (found.length > SHORT_LIST) continue;
        if (found.length > 1) ascend_by_warp<Key>(found, rooms[threadIdx.x / WARP]);
        __syncwarp();
        if (threadIdx.x % WARP == 0) done(list, found);
    }
    for (u32 list = first; list < behind; list++) {
        const ListToSort found = list_at(list);
        if (found.length <= SHORT_LIST) continue;
        ascend_by_block<Key>(found);
        if (threadIdx.x == 0) done(list, found);
    }
}

extern "C" __global__ void __launch_bounds__(LIST_THREADS)
lists_ascend(const u64* __restrict__ starts, u32 count, u32* entries, u64 capacity,
             const __grid_constant__ PairArrays arrays) {
    await_kernels_before();
    __shared__ RankRoom<u32> rooms[WARPS];
    order_lists<u32>(starts, count, entries, 0, capacity, arrays, rooms, [](u32, const ListToSort&) {});
}

// Nearest first. `nearest`, if it is not null, gets the k-th pair of the list of every target, of
// which `targets` has the caller's index.
extern "C" __global__ void __launch_bounds__(LIST_THREADS)
lists_by_distance(const u64* __restrict__ starts, u32 count, u32* entries, u64 base, u64 capacity,
                  const __grid_constant__ PairArrays arrays, const float4* __restrict__ targets, u32 k,
                  Nearest* nearest) {
    await_kernels_before();
    __shared__ RankRoom<DistanceKey> rooms[WARPS];
    order_lists<DistanceKey>(starts, count, entries, base, capacity, arrays, rooms, [&](u32 list, const ListToSort& found) {
        if (nearest) nearest[__float_as_uint(targets[list].w)] = nth_pair(found, k);
    });
}

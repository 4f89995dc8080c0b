// The list of occupied cells that the device makes, and takes tasks from.
#pragma once
#include "walk.cuh"

struct Tasks {
    u32 count;  // cells listed
    u32 next;   // the first not taken yet
    u32 cells[1];
};

using nf::LISTING_THREADS;

// Lists the cells that hold points, a thread per cell of the table.
__device__ __forceinline__ void list_occupied(const Walk& walk, Tasks* tasks) {
    const u32 cell = blockIdx.x * LISTING_THREADS + threadIdx.x;
    const bool occupied = cell < walk.targets.cells && walk.targets.starts[cell] < walk.targets.starts[cell + 1];
    const u32 all = __ballot_sync(~0u, occupied);
    const u32 lane = threadIdx.x & 31;
    u32 first = 0;
    if (lane == 0 && all) first = atomicAdd(&tasks->count, __popc(all));
    first = __shfl_sync(~0u, first, 0);
    if (occupied) tasks->cells[first + __popc(all & ((1u << lane) - 1))] = cell;
}

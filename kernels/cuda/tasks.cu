// Strategy `cell-tasks`: the tiles of the child strategies from a list of tasks that the device
// makes, without launching kernels from kernels. A task is a cell; a warp takes one after another.
#include "tasks.cuh"
#include "tile.cuh"
#include "work.cuh"

constexpr u32 THREADS = nf::TILE_THREADS;

// Lists the cells that hold points.
extern "C" __global__ void __launch_bounds__(LISTING_THREADS)
list_tasks(const __grid_constant__ Walk walk, Tasks* tasks) {
    list_occupied(walk, tasks);
}

extern "C" __global__ void __launch_bounds__(THREADS)
cell_tasks(const __grid_constant__ Walk walk, const __grid_constant__ Outlet outlet, Tasks* tasks) {
    __shared__ float4 staged[THREADS / 32][W];
    const u32 count = tasks->count;
    while (true) {
        u32 task = 0;
        if ((threadIdx.x & 31) == 0) task = atomicAdd(&tasks->next, 1u);
        task = __shfl_sync(~0u, task, 0);
        if (task >= count) return;
        visit_cell<WarpGroup, NF_HALF, Work>(walk, outlet, tasks->cells[task], staged[threadIdx.x / 32]);
    }
}

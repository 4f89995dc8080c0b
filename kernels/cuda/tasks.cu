// Strategy `cell-tasks`: the tiles of the child strategies from a list of tasks that the device
// makes, without launching kernels from kernels. A task is a cell; a warp takes one after another.
#include "tile.cuh"
#include "work.cuh"

constexpr u32 THREADS = 128;

struct Tasks {
    u32 count;  // cells listed
    u32 next;   // the first not taken yet
    u32 cells[1];
};

// Lists the cells that hold points.
extern "C" __global__ void __launch_bounds__(256)
list_tasks(const __grid_constant__ Walk walk, Tasks* tasks) {
    const u32 cell = blockIdx.x * 256 + threadIdx.x;
    const bool occupied = cell < walk.targets.cells && walk.targets.starts[cell] < walk.targets.starts[cell + 1];
    const u32 all = __ballot_sync(~0u, occupied);
    const u32 lane = threadIdx.x & 31;
    u32 first = 0;
    if (lane == 0 && all) first = atomicAdd(&tasks->count, __popc(all));
    first = __shfl_sync(~0u, first, 0);
    if (occupied) tasks->cells[first + __popc(all & ((1u << lane) - 1))] = cell;
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

// Strategies that launch kernels from kernels: `child-per-cell` and `child-aggregated`.
#include "tile.cuh"
#include "work.cuh"

using nf::PARENT_THREADS;
constexpr u32 MAX_THREADS = 1024;
constexpr u32 AGGREGATED_THREADS = 128;

// Arguments of children; in device memory, so that a launch passes pointers only.
struct Arguments {
    Walk walk;
    Outlet outlet;
    PairArrays arrays;  // NF_GEOMETRY
};

#if NF_GEOMETRY
__device__ __forceinline__ PairOutlet outlet_of(const Arguments* arguments) {
    return {arguments->outlet, arguments->arrays};
}
#else
__device__ __forceinline__ const Outlet& outlet_of(const Arguments* arguments) { return arguments->outlet; }
#endif

// Failures of launches.
struct Launches {
    u32 failed;
    u32 error;  // the largest code of the runtime
};

__device__ __forceinline__ void note(Launches* launches) {
    const cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) return;
    atomicAdd(&launches->failed, 1u);
    atomicMax(&launches->error, static_cast<u32>(error));
}

// One cell, a thread per point: threads rounded up to whole warps.
__global__ void __launch_bounds__(MAX_THREADS) child_of_cell(const Arguments* arguments, u32 cell) {
    __shared__ float4 staged[W];
    visit_cell<BlockGroup, NF_HALF, Work>(arguments->walk, outlet_of(arguments), cell, staged);
}

// One thread per cell, from cell `first` on: it counts the cell's points, finds their range, and
// launches a child grid of as many threads as there are points.
extern "C" __global__ void __launch_bounds__(PARENT_THREADS)
child_per_cell(const Arguments* arguments, u32 first, Launches* launches) {
    const Points& points = arguments->walk.targets;
    const u32 cell = first + blockIdx.x * PARENT_THREADS + threadIdx.x;
    if (cell >= points.cells) return;
    const u32 occupancy = points.starts[cell + 1] - points.starts[cell];
    if (occupancy == 0) return;
    const u32 threads = min((occupancy + 31) / 32 * 32, MAX_THREADS);
    child_of_cell<<<1, threads, 0, cudaStreamFireAndForget>>>(arguments, cell);
    note(launches);
}

// The cells of one parent block, a warp each.
__global__ void __launch_bounds__(AGGREGATED_THREADS)
child_of_block(const Arguments* arguments, const u32* cells, u32 count) {
    __shared__ float4 staged[AGGREGATED_THREADS / 32][W];
    const u32 warp = blockIdx.x * (AGGREGATED_THREADS / 32) + threadIdx.x / 32;
    if (warp >= count) return;
    visit_cell<WarpGroup, NF_HALF, Work>(arguments->walk, outlet_of(arguments), cells[warp], staged[threadIdx.x / 32]);
}

// A block of parents collects its occupied cells and launches one child grid for all of them;
// `lists` has room for every cell.
extern "C" __global__ void __launch_bounds__(PARENT_THREADS)
child_aggregated(const Arguments* arguments, u32 first, u32* lists, Launches* launches) {
    __shared__ u32 count;
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    const Points& points = arguments->walk.targets;
    const u32 cell = first + blockIdx.x * PARENT_THREADS + threadIdx.x;
    u32* const list = lists + blockIdx.x * PARENT_THREADS;
    if (cell < points.cells && points.starts[cell] < points.starts[cell + 1]) {
        list[atomicAdd(&count, 1u)] = cell;
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x != 0 || count == 0) return;
    const u32 blocks = (count + AGGREGATED_THREADS / 32 - 1) / (AGGREGATED_THREADS / 32);
    child_of_block<<<blocks, AGGREGATED_THREADS, 0, cudaStreamFireAndForget>>>(arguments, list, count);
    note(launches);
}

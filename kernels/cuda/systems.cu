// Pairs of many small systems. NF_REAL is the precision of coordinates and of the test.
#include "systems.cuh"

typedef NF_REAL Real;

// Checks offsets, radii and cells, and makes the boxes of all systems.
extern "C" __global__ void __launch_bounds__(nf::GRID_THREADS)
systems_prepare(const Systems systems) {
    const u32 system = blockIdx.x * nf::GRID_THREADS + threadIdx.x;
    if (system < systems.count) prepare<Real>(systems, system);
}

// Counts the neighbours of every point.
extern "C" __global__ void __launch_bounds__(THREADS)
systems_count(const Systems systems, const PairOutput output) {
    __shared__ Shared<Real> shared;
    pass<Real, false>(systems, output, shared);
}

// Writes the pairs, unless there is too little room or a system cannot be searched.
extern "C" __global__ void __launch_bounds__(THREADS)
systems_write(const Systems systems, const PairOutput output) {
    __shared__ Shared<Real> shared;
    if (systems.fault[1] != nf::NONE) return;
    pass<Real, true>(systems, output, shared);
}

// Pairs of many small systems. NF_REAL is the precision of coordinates and of the test.
#include "systems.cuh"

typedef NF_REAL Real;

// Checks offsets, radii and cells, and makes the boxes of all systems.
extern "C" __global__ void __launch_bounds__(nf::SYSTEMS_A_BLOCK)
systems_prepare(const Systems systems) {
    const u32 system = blockIdx.x * nf::SYSTEMS_A_BLOCK + threadIdx.x;
    if (system < systems.count) prepare<Real>(systems, system);
}

// Finds the pairs and writes those that have room. As many blocks as a multiprocessor of an H100 is
// to hold.
extern "C" __global__ void __launch_bounds__(THREADS, sizeof(Real) == 4 ? 8 : 6)
systems_search(const Systems systems, const PairOutput output) {
    __shared__ Shared<Real> shared;
    search<Real>(systems, output, shared);
}

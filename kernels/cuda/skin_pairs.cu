// Pairs of systems among those of an earlier search within a larger radius. NF_REAL is the
// precision of coordinates and of the test.
#include "skin_pairs.cuh"

typedef NF_REAL Real;

extern "C" __global__ void __launch_bounds__(nf::SKIN_THREADS)
skin_moved(
    const __grid_constant__ Systems systems, const __grid_constant__ Systems before, SkinStatus* status, u32 blocks) {
    moved<Real>(systems, before, status, blocks);
}

extern "C" __global__ void __launch_bounds__(nf::SKIN_THREADS)
skin_pairs(
    const __grid_constant__ Systems systems, const __grid_constant__ SkinCandidates candidates,
    const __grid_constant__ PairOutput output) {
    __shared__ SkinRoom room;
    keep_pairs<Real>(systems, candidates, output, room);
}

// Lists as arrays of pairs with their geometry, in the order of their targets.
#include "column_pairs.cuh"

extern "C" __global__ void __launch_bounds__(nf::COLUMN_THREADS)
column_pairs(const __grid_constant__ StoredLists lists, const __grid_constant__ PairOutput output,
             const __grid_constant__ ListedPoints points) {
    __shared__ PairRoom room;
    pairs_of_lists(lists, output, points, room);
}

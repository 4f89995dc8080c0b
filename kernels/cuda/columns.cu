// Lists as arrays of pairs in the order of their targets.
#include "columns.cuh"

extern "C" __global__ void __launch_bounds__(nf::COLUMN_THREADS)
columns_of_lists(const __grid_constant__ StoredLists lists, const __grid_constant__ PairOutput output) {
    __shared__ ColumnRoom room;
    copy_lists(lists, output, room);
}

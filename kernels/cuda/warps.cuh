// The rows around a target, to be visited one by one: for walks by a warp per target.
//
// Where there are few targets the device is nearly empty, and a step takes as long as one thread
// needs for all rows of its target: loads that wait for each other, row after row. Here every lane
// of a warp takes rows of its own, so the loads of all rows are under way together. Rows and
// candidates are those of the walk by a thread per target, in the same order.
#pragma once
#include "exact.cuh"

// By the table of neighbour rows.
template <bool HALF>
struct RowsOfTable {
    static constexpr bool wrapped = false;  // every pair looks up its own image
    const Walk& walk;
    bool any_wrapped;
    Runs runs;

    __device__ __forceinline__ RowsOfTable(const Walk& walk, const Target& target)
        : walk(walk), any_wrapped(images_differ(walk)), runs(runs_of(walk, target)) {}

    __device__ __forceinline__ u32 count() const { return walk.row_count; }

    template <class Work>
    __device__ __forceinline__ void visit(u32 row, const Target& target, Work& work) const {
        Runs one = runs;
        one.row = row;
        one.behind = row + 1;
        visit_runs<HALF>(walk, target, one, any_wrapped, work);
    }
};

// Around a target in a dense table.
template <bool HALF, bool PERIODIC, class Cells>
struct RowsAround {
    const Walk& walk;
    bool wrapped;  // candidates are proxies
    Cells cells;

    __device__ __forceinline__ RowsAround(const Walk& walk, const Target& target)
        : walk(walk), wrapped(PERIODIC && images_differ(walk)), cells(walk, target, wrapped) {}

    __device__ __forceinline__ u32 count() const { return Cells::ROWS * Cells::ROWS; }

    template <class Work>
    __device__ __forceinline__ void visit(u32 row, const Target& target, Work& work) const {
        cells.one_row(row, [&](auto found) {
            const auto ends = found.row();
            if (!PERIODIC) {
                if (ends.low < ends.high) visit_run<HALF>(walk, target, cells.own(ends), work);
            } else {
                visit_across<HALF>(walk, target, cells, ends, work);
            }
        });
    }
};

// Shows `work` the candidates of one of the rows of a target; `at` has those that are proxies.
template <class Rows, class Work>
__device__ __forceinline__ void visit_row_of(
    const Walk& walk, const Rows& rows, u32 row, const Target& target, const float4* at, Work& work) {
    const auto visit = [&](const Target& seen, auto& job) { rows.visit(row, seen, job); };
    if (rows.wrapped) visit_proxies(walk, target, at, work, visit);
    else visit_given(walk, target, work, visit);
}

// NF_OPEN says whether targets and sources are one set in an open domain with a dense table.
//
// All targets of a cell against its candidates, which are staged in shared memory W = 32 at a time:
// the first threads of a group load them next to each other, then every thread of the group goes
// through them for its own target.
#pragma once
#include "exact.cuh"

constexpr u32 W = 32;

// Threads that work on one cell together: a warp.
struct WarpGroup {
    static __device__ __forceinline__ u32 size() { return 32; }
    static __device__ __forceinline__ u32 rank() { return threadIdx.x & 31; }
    static __device__ __forceinline__ void sync() { __syncwarp(); }
};

// The same for a whole block.
struct BlockGroup {
    static __device__ __forceinline__ u32 size() { return blockDim.x; }
    static __device__ __forceinline__ u32 rank() { return threadIdx.x; }
    static __device__ __forceinline__ void sync() { __syncthreads(); }
};

// Coordinates of cell number `cell` of the targets' table.
__device__ __forceinline__ Runs runs_of_cell(const Points& points, u32 cell) {
    if (points.sparse) {
        const Brick brick = points.bricks[cell / BRICK];
        return Runs(brick.x * BRICK + cell % BRICK, brick.y, brick.z);
    }
    const u32 row = cell / points.dims[0];
    return Runs(points.origin[0] + cell % points.dims[0], points.origin[1] + row % points.dims[1],
                points.origin[2] + row / points.dims[1]);
}

// Targets `first` and the `size` that follow it, of cell `cell`, where targets and sources are one
// set in an open domain with a dense table: its padding holds all neighbour rows, whose cells lie
// side by side. `staged` has room for W.
template <class Group, bool HALF, class Work, class Outlet>
__device__ __forceinline__ void visit_open_tile(const Walk& walk, const Outlet& outlet, u32 cell, u32 first, u32 behind, float4* staged) {
    const Points& points = walk.sources;
    const u32 slot = first + Group::rank();
    const bool real = slot < behind;
    const Target target = target_at(walk, real ? slot : first);
    Work work(walk, target, outlet);
    // A thread without a target meets no neighbour.
    const float r2 = real ? walk.lattice.r2 : -1.0f;
    const int width = static_cast<int>(points.dims[0]), slice = width * static_cast<int>(points.dims[1]);
    for (u32 row = 0; row < walk.row_count; row++) {
        const Row offset = walk.rows[row];
        const u32* const middle = points.starts + cell + offset.z * slice + offset.y * width;
        const u32 begin = __ldg(middle - offset.reach), end = __ldg(middle + offset.reach + 1);
        for (u32 k = begin; k < end; k += W) {
            const u32 count = min(W, end - k);
            Group::sync();
            if (Group::rank() < count) staged[Group::rank()] = __ldg(work.sources() + k + Group::rank());
            Group::sync();
            #pragma unroll 2
            for (u32 j = 0; j < count; j++) {
                const float4 source = staged[j];
                const float dx = __fsub_rn(source.x, target.x);
                const float dy = __fsub_rn(source.y, target.y);
                const float dz = __fsub_rn(source.z, target.z);
                const float d2 = squared(dx, dy, dz);
                bool hit = d2 <= r2 && k + j != target.itself;
                if (HALF) hit = hit && wanted<HALF>(target.index, __float_as_uint(walk.sources.at[k + j].w), 0, 0, 0);
                tell_image(work, 0, 0, 0);
                work.visit(hit, k + j, dx, dy, dz, d2, source.w);
            }
        }
    }
    if (real) work.finish(target);
}

// The same anywhere.
template <class Group, bool HALF, class Work, class Outlet>
__device__ __forceinline__ void visit_tile(const Walk& walk, const Outlet& outlet, u32 cell, u32 first, u32 behind, float4* staged) {
    const u32 slot = first + Group::rank();
    const bool real = slot < behind;
    const Target target = target_at(walk, real ? slot : first);
    const bool any_wrapped = images_differ(walk);
    Work work(walk, target, outlet);
    visit_given(walk, target, work, [&](const Target& seen, auto& job) {
        Runs runs = runs_of_cell(walk.targets, cell);
        u32 begin, end;
        while (runs.next(walk, begin, end)) {
            Image image = runs.image;
            image.shift = shift_to(walk, image);
            for (u32 k = begin; k < end; k += W) {
                const u32 count = min(W, end - k);
                Group::sync();
                if (Group::rank() < count) staged[Group::rank()] = __ldg(job.sources() + k + Group::rank());
                Group::sync();
                for (u32 j = 0; j < count; j++) {
                    const u32 index = HALF ? __float_as_uint(walk.sources.at[k + j].w) : 0;
                    visit_pair<HALF>(walk, seen, k + j, staged[j], index, image, real, any_wrapped, job);
                }
            }
        }
    });
    if (real) work.finish(target);
}

// All targets of a cell.
template <class Group, bool HALF, class Work, class Outlet>
__device__ __forceinline__ void visit_cell(const Walk& walk, const Outlet& outlet, u32 cell, float4* staged) {
    const u32 begin = walk.targets.starts[cell], end = walk.targets.starts[cell + 1];
    for (u32 first = begin; first < end; first += Group::size()) {
#if NF_OPEN && !NF_DOUBLE
        visit_open_tile<Group, HALF, Work>(walk, outlet, cell, first, end, staged);
#else
        visit_tile<Group, HALF, Work>(walk, outlet, cell, first, end, staged);
#endif
    }
}

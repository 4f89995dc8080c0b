// The walk around one target through a dense table: rows of cells, each cut to the chord that the
// sphere around this very target leaves of it. It serves open, periodic and tilted domains, and two
// sets as well as one.
//
// Rows, gaps and chords are computed in f32 in cells of the sources' table. Why no pair is lost:
//
// 1. `Around::x`, `y` and `z` are off by at most `e` cells, from 2^-12 in small tables to a quarter
//    in the largest that are walked this way (crates/engine/gpu/src/layout.rs computes the bound
//    and refuses others). A cell holds the points whose own coordinates, in f64, lie in it.
// 2. The gaps that are computed along two axes, and the distance along the third, are therefore at
//    most those between the points and `e` cells each. `Geometry::reach` is the lattice's enlarged
//    radius and more than the length of such an error (its module comment has the numbers), so the
//    squares of the gaps of a neighbour's row never use up `squared_reach`, and the root of what
//    they leave covers the neighbour along x. The same margin covers the rounding of the squares
//    and of the approximate root.
// 3. Rows run from floor(y - reach) to floor(y + reach) and not from the target's cell, so an error
//    of a cell's number, where a target lies on a border, loses no row.
//
// A periodic table is one box. Rows, and parts of rows along x, that lie beyond a face are those of
// the opposite face seen in another image; the host makes sure that no axis is passed more than
// once. In the image HERE differences need no image vector, so the targets of the interior do what
// those of an open domain do. A point may lie boxes away from the cell it is sorted into
// (`wrapped`); every pair then looks up its own image.
//
// In a tilted box cells are leaning boxes. In the frame whose first axis lies along the rows and
// whose second lies in the plane of x and y, a cell along z is also a step along y and x, and one
// along y a step along x (`lean`). Gaps and chords are then taken from all that the cells of a row
// can be.
#pragma once
#include "walk.cuh"

// Length of a root off by at most one unit in the last place; numbers below 2^-126 become 0.
__device__ __forceinline__ float rough_sqrt(float x) {
    float root;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(x));
    return root;
}

// Cells along one axis of the sources' table, as whole numbers, and the image they are seen in.
struct Seen {
    int cell;
    int image;  // -1, 0 or 1
};

// Where a cell of the table, or beside it, lies on an axis that repeats.
__device__ __forceinline__ Seen brought_inside(const Geometry& geometry, int axis, int cell) {
    const int period = geometry.high[axis] - geometry.low[axis];
    if (cell < geometry.low[axis]) return Seen{cell + period, -1};
    if (cell >= geometry.high[axis]) return Seen{cell - period, 1};
    return Seen{cell, 0};
}

// Part of a row: sorted points, and the image they are seen in.
struct Part {
    uint2 run;
    u32 image;  // of Lattice::shifts
};

template <bool PERIODIC, bool TILTED>
struct Around {
    const Geometry& geometry;
    const Points& points;
    float x, y, z;           // the target, in cells of the table
    int first_y, last_y;     // rows in reach
    int first_z, last_z;
    bool passes;             // rows beyond a face of the box are among them
    // The present slice and row.
    float left;              // of the squared reach
    float lean_y[2];         // tilted: least and most that the slice is moved along y…
    float lean_x[2];         // …and along x
    u32 slice, row;          // cells before it
    u32 slice_image, image;
    int low, high;           // cells along x

    __device__ __forceinline__ Around(const Walk& walk, const Target& target, bool wrapped)
        : geometry(walk.geometry), points(walk.sources), passes(false) {
        if (TILTED || (PERIODIC && wrapped)) {
            x = exact_place(walk, target, 0);
            y = exact_place(walk, target, 1);
            z = exact_place(walk, target, 2);
        } else {
            x = place(0, target.x);
            y = place(1, target.y);
            z = place(2, target.z);
        }
        first_y = __float2int_rd(__fsub_rn(y, geometry.reach[1]));
        last_y = __float2int_rd(__fadd_rn(y, geometry.reach[1]));
        first_z = __float2int_rd(__fsub_rn(z, geometry.reach[2]));
        last_z = __float2int_rd(__fadd_rn(z, geometry.reach[2]));
        if (PERIODIC) {
            passes = first_y < geometry.low[1] || last_y >= geometry.high[1]
                || first_z < geometry.low[2] || last_z >= geometry.high[2];
        }
        if (!passes) {
            first_y = max(first_y, 0);
            last_y = min(last_y, static_cast<int>(points.dims[1]) - 1);
            first_z = max(first_z, 0);
            last_z = min(last_z, static_cast<int>(points.dims[2]) - 1);
        }
    }

    // Targets of another set may be anywhere; no number is left for those that a failed sort has
    // put nowhere. Far enough away is as good as farther.
    static __device__ __forceinline__ float near_enough(float cells) {
        return fminf(fmaxf(cells, -536870912.0f), 536870912.0f);
    }

    __device__ __forceinline__ float place(int axis, float coordinate) const {
        const float beyond = __fsub_rn(coordinate, geometry.corner[axis]);
        return near_enough(__fmaf_rn(beyond, geometry.scale[axis], geometry.offset[axis]));
    }

    static __device__ __forceinline__ float exact_place(const Walk& walk, const Target& target, int axis) {
        const Lattice& lattice = walk.lattice;
        const double wraps = axis == 0 ? target.wraps.x : axis == 1 ? target.wraps.y : target.wraps.z;
        const double coordinate = axis == 0 ? target.x : axis == 1 ? target.y : target.z;
        double cells;
        if (lattice.length[axis] == 0.0) {
            cells = coordinate * lattice.inverse_edge[axis] + lattice.phase[axis];
        } else if (TILTED) {
            const double* g = lattice.inverse[axis];
            const double fraction = (g[0] * target.x + g[1] * target.y) + g[2] * target.z;
            cells = (fraction - wraps) * static_cast<double>(lattice.period[axis]);
        } else {
            cells = (coordinate - wraps * lattice.length[axis]) * lattice.inverse_edge[axis];
        }
        return near_enough(static_cast<float>(cells - static_cast<double>(walk.sources.origin[axis])));
    }

    // Takes slice `z` of the table; false where it is out of reach or holds no cells.
    __device__ __forceinline__ bool take_slice(int z) {
        Seen seen{z, 0};
        if (PERIODIC && passes) {
            seen = brought_inside(geometry, 2, z);
            if (static_cast<u32>(seen.cell) >= points.dims[2]) return false;
        }
        slice = static_cast<u32>(seen.cell) * points.dims[1];
        slice_image = HERE + 9 * seen.image;
        // From the target to the two faces of the slice, in cells.
        const float below = __fsub_rn(static_cast<float>(z), this->z), above = __fadd_rn(below, 1.0f);
        const float gap = __fmul_rn(fmaxf(fmaxf(below, -above), 0.0f), geometry.edge[2]);
        left = __fmaf_rn(-gap, gap, geometry.squared_reach);
        if (TILTED) {
            const float from = fmaxf(below, -geometry.reach[2]), to = fminf(above, geometry.reach[2]);
            lean(lean_y, from, to, geometry.lean[2]);
            lean(lean_x, from, to, geometry.lean[1]);
        }
        return left >= 0.0f;
    }

    // Least and most of `step` times a number between `from` and `to`.
    static __device__ __forceinline__ void lean(float* leaning, float from, float to, float step) {
        const float a = __fmul_rn(from, step), b = __fmul_rn(to, step);
        leaning[0] = fminf(a, b);
        leaning[1] = fmaxf(a, b);
    }

    // Takes row `y` of the slice; false where it is out of reach or holds no cells.
    __device__ __forceinline__ bool take_row(int y) {
        const float below = __fsub_rn(static_cast<float>(y), this->y), above = __fadd_rn(below, 1.0f);
        float gap;
        if (TILTED) {
            const float from = __fmaf_rn(below, geometry.edge[1], lean_y[0]);
            const float to = __fmaf_rn(above, geometry.edge[1], lean_y[1]);
            gap = fmaxf(fmaxf(from, -to), 0.0f);
        } else {
            gap = __fmul_rn(fmaxf(fmaxf(below, -above), 0.0f), geometry.edge[1]);
        }
        const float chord = __fmaf_rn(-gap, gap, left);
        if (!(chord >= 0.0f)) return false;
        Seen seen{y, 0};
        if (PERIODIC && passes) {
            seen = brought_inside(geometry, 1, y);
            if (static_cast<u32>(seen.cell) >= points.dims[1]) return false;
        }
        row = (slice + static_cast<u32>(seen.cell)) * points.dims[0];
        image = slice_image + 3 * seen.image;
        const float half = rough_sqrt(chord);
        if (TILTED) {
            float leaning[2];
            lean(leaning, fmaxf(below, -geometry.reach[1]), fminf(above, geometry.reach[1]), geometry.lean[0]);
            const float from = __fsub_rn(-half, __fadd_rn(leaning[1], lean_x[1]));
            const float to = __fsub_rn(half, __fadd_rn(leaning[0], lean_x[0]));
            low = __float2int_rd(__fadd_rn(x, fmaxf(__fmul_rn(from, geometry.per_reach), -geometry.reach[0])));
            high = __float2int_rd(__fadd_rn(x, fminf(__fmul_rn(to, geometry.per_reach), geometry.reach[0]))) + 1;
            return low < high;
        }
        low = __float2int_rd(__fmaf_rn(-half, geometry.per_reach, x));
        high = __float2int_rd(__fmaf_rn(half, geometry.per_reach, x)) + 1;
        return true;
    }

    // Sorted points of cells `from` to `to` of the present row, as far as they are in the table.
    __device__ __forceinline__ uint2 points_of(int from, int to) const {
        const int width = static_cast<int>(points.dims[0]);
        const u32 begin = row + static_cast<u32>(min(max(from, 0), width));
        const u32 end = row + static_cast<u32>(min(max(to, 0), width));
        return make_uint2(__ldg(points.starts + begin), __ldg(points.starts + end));
    }

    // Which parts the present row has, as bits: 1 in the row's own image, 2 and 4 beyond the lower
    // and the upper face of the box.
    __device__ __forceinline__ u32 parts() const {
        if (!PERIODIC) return 1;
        return 1 | (low < geometry.low[0] ? 2 : 0) | (high > geometry.high[0] ? 4 : 0);
    }

    // One of the parts.
    __device__ __forceinline__ Part part(u32 which) const {
        if (!PERIODIC || which == 1) {
            const int from = PERIODIC ? max(low, geometry.low[0]) : low;
            const int to = PERIODIC ? min(high, geometry.high[0]) : high;
            return Part{points_of(from, to), image};
        }
        const int period = geometry.high[0] - geometry.low[0];
        if (which == 2) return Part{points_of(low + period, min(high + period, geometry.high[0])), image - 1};
        return Part{points_of(max(low - period, geometry.low[0]), high - period), image + 1};
    }
};

// The image with this number.
__device__ __forceinline__ Image image_of(const Lattice& lattice, u32 number) {
    Image image;
    image.a = static_cast<int>(number % 3) - 1;
    image.b = static_cast<int>(number / 3 % 3) - 1;
    image.c = static_cast<int>(number / 9) - 1;
    const float* const shift = lattice.shifts[number];
    image.shift = make_float3(shift[0], shift[1], shift[2]);
    return image;
}

// Shows `work` a run of candidates whose differences need no image vector.
template <bool HALF, class Work>
__device__ __forceinline__ void visit_run(const Walk& walk, const Target& target, uint2 run, Work& work) {
    const float r2 = walk.lattice.r2;
    // Two at a time: the second may lie behind the run, where arrays are padded.
    #pragma unroll 1
    for (u32 k = run.x; k < run.y; k += 2) {
        #pragma unroll
        for (u32 j = 0; j < 2; j++) {
            const float4 source = work.source(k + j);
            const float dx = __fsub_rn(source.x, target.x);
            const float dy = __fsub_rn(source.y, target.y);
            const float dz = __fsub_rn(source.z, target.z);
            const float d2 = squared(dx, dy, dz);
            bool hit = d2 <= r2 && k + j != target.itself;
            if (j > 0) hit = hit && k + j < run.y;
            if (HALF) hit = hit && wanted<HALF>(target.index, __float_as_uint(source.w), 0, 0, 0);
            work.visit(hit, k + j, dx, dy, dz, d2, source.w);
        }
    }
}

// Shows `work` every candidate of a target.
template <bool PERIODIC, bool TILTED, bool HALF, class Work>
__device__ __forceinline__ void visit_around(const Walk& walk, const Target& target, Work& work) {
    const bool wrapped = PERIODIC && images_differ(walk);
    Around<PERIODIC, TILTED> around(walk, target, wrapped);
    #pragma unroll 1
    for (int z = around.first_z; z <= around.last_z; z++) {
        if (!around.take_slice(z)) continue;
        #pragma unroll 1
        for (int y = around.first_y; y <= around.last_y; y++) {
            if (!around.take_row(y)) continue;
            u32 parts = around.parts();
            if (!PERIODIC || (around.image == HERE && !wrapped)) {
                visit_run<HALF>(walk, target, around.part(1).run, work);
                parts &= ~1u;
            }
            #pragma unroll 1
            while (PERIODIC && parts) {
                const Part part = around.part(parts & (0u - parts));
                parts &= parts - 1;
                const Image image = image_of(walk.lattice, part.image);
                for (u32 k = part.run.x; k < part.run.y; k++) {
                    const float4 source = work.source(k);
                    const u32 index = HALF ? __float_as_uint(source.w) : 0;
                    visit_pair<HALF>(walk, target, k, source, index, image, true, wrapped, work);
                }
            }
        }
    }
}

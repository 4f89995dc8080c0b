// The walk around one target through a dense table: rows of cells, each cut to the chord that the
// sphere around this very target leaves of it. It serves open, periodic and tilted domains, and two
// sets as well as one.
//
// Most targets lie so far inside the table that all rows in reach do too: `inside`. Their rows are
// numbered from the first in reach, loops over them are unrolled, gaps are computed once per
// target, and a row costs a root, two loads and a few sums: no bounds check, no image. Where rows
// of a periodic box pass a face along x, their parts on either side are visited in one loop. Other
// targets near a face take the rows one by one, cut them to the table, and see what lies beyond a
// face in another image. A warp goes the simplest way that serves all its targets (`WalkPath`).
//
// Rows, gaps and chords are computed in f32 in cells of the sources' table. Why no pair is lost:
//
// 1. `Around::x`, `y` and `z` are off by at most `e` cells, from 2^-12 in small tables to a quarter
//    in the largest that are walked this way (crates/engine/gpu/src/launch/layout.rs computes the
//    bound and refuses others). A cell holds the points whose own coordinates, in f64, lie in it.
// 2. The gaps that are computed along two axes, and the distance along the third, are therefore at
//    most those between the points and `e` cells each. `Geometry::reach` is the lattice's enlarged
//    radius and more than the length of such an error (its module comment has the numbers), so the
//    squares of the gaps of a neighbour's row never use up `squared_reach`, and the root of what
//    they leave covers the neighbour along x. The same margin covers the rounding of the squares,
//    of the approximate root, and of a sum to a whole number.
// 3. The first row is floor(y - reach) and not K before the target's cell, so an error of a cell's
//    number, where a target lies on a border, loses no row. The reach is at most K + 1/2 cells, so
//    there are at most 2K + 2 rows; the last of them is in reach of few targets.
//
// A periodic table is one box. Rows, and parts of rows along x, that lie beyond a face are those of
// the opposite face seen in another image; the host makes sure that no axis is passed more than
// once. In the image HERE differences need no image vector, so the targets of the interior do what
// those of an open domain do. Points that lie boxes away from the cell they are sorted into
// (`wrapped`), and all of double precision, are seen as proxies, which lie in one box (exact.cuh);
// such a target is placed by its proxy, or where that is not near enough (`proxies_place`) by its
// position as given.
//
// In a tilted box cells are leaning boxes. In the frame whose first axis lies along the rows and
// whose second lies in the plane of x and y, a cell along z is also a step along y and x, and one
// along y a step along x (`lean`). Gaps and chords are then taken from all that the cells of a row
// can be.
#pragma once
#include "walk.cuh"

// A number between -2^22 and 2^22 plus this is rounded to a whole number, which its bits then hold:
// two additions instead of a conversion, which takes as long as eight.
constexpr float TO_WHOLE = 12582912.0f;
constexpr u32 WHOLE_BITS = 0x4b400000u;

// Bits of the whole number below `x`, plus WHOLE_BITS; of that or the one before it if `x` is
// whole.
__device__ __forceinline__ u32 whole_below(float x_less_half) {
    return __float_as_uint(__fadd_rn(x_less_half, TO_WHOLE));
}

// Threads of a warp; compilers of the host make warps of one.
#ifndef WARP
#define WARP 32
#endif

// The least of the numbers of all lanes.
__device__ __forceinline__ int warp_min(int value) {
#if __CUDA_ARCH__ >= 800
    return __reduce_min_sync(~0u, value);
#else
    for (int step = WARP / 2; step > 0; step /= 2) value = min(value, __shfl_xor_sync(~0u, value, step));
    return value;
#endif
}

// A cell along one axis of the sources' table, and the image it is seen in.
struct WrappedCell {
    int cell;
    int image;  // -1, 0 or 1
};

// Where a cell of the table, or beside it, lies on an axis that repeats.
__device__ __forceinline__ WrappedCell brought_inside(const Geometry& geometry, int axis, int cell) {
    const int period = geometry.high[axis] - geometry.low[axis];
    if (cell < geometry.low[axis]) return WrappedCell{cell + period, -1};
    if (cell >= geometry.high[axis]) return WrappedCell{cell - period, 1};
    return WrappedCell{cell, 0};
}

// How the targets of a warp are walked: all that is in reach is inside; rows are, but may pass a
// face along x; anything.
enum class WalkPath { INSIDE, ALONG_X, ACROSS };

// Part of a row: sorted points, and the image along x that they are seen in.
struct RowPart {
    uint2 run;
    int image;
};

// Both parts of a row that may pass one face along x, in the order of x.
struct Ring {
    RowPart first, second;
};

// Least and most of `step` times a number between two others.
struct Leaning {
    float least, most;

    __device__ __forceinline__ Leaning(float from, float to, float step) {
        const float a = __fmul_rn(from, step), b = __fmul_rn(to, step);
        least = fminf(a, b);
        most = fmaxf(a, b);
    }
};

// The target and the rows around it. PADDED: one set in an open domain, whose table has empty cells
// on all sides, so every target is inside.
template <int K, bool PADDED, bool PERIODIC, bool TILTED>
struct Around {
    static constexpr int ROWS = 2 * K + 2;
    static constexpr bool LEANING = TILTED;
    static constexpr float FAR_AWAY = 1e30f;  // squared

    const Geometry& geometry;
    const Points& points;
    float x, y, z;         // the target, in cells of the table
    int first_y, first_z;  // of the rows in reach
    bool rows_inside;      // all rows in reach lie in the table, in the image HERE
    bool inside;           // and all that is in reach of them
#if NF_FILTERS & NF_RADII
    float own_reach;       // the square of what this target reaches
#endif

    __device__ __forceinline__ Around(const Walk& walk, const Target& target, bool wrapped)
        : geometry(walk.geometry), points(walk.sources) {
#if NF_FILTERS & NF_RADII
        const float own = __fmaf_rn(target.reach, filters_of(walk).per_radius, filters_of(walk).slack);
        own_reach = fminf(__fmul_rn(own, own), geometry.squared_reach);
#endif
        if (PERIODIC && !TILTED && !DOUBLE && wrapped && proxies_place(walk.lattice)) {
            const float3 proxy = proxy_at(walk.targets, target);
            x = place(0, proxy.x);
            y = place(1, proxy.y);
            z = place(2, proxy.z);
        } else if (TILTED || DOUBLE || (PERIODIC && wrapped)) {
            x = exact_place(walk, target, 0);
            y = exact_place(walk, target, 1);
            z = exact_place(walk, target, 2);
        } else {
            x = place(0, target.x);
            y = place(1, target.y);
            z = place(2, target.z);
        }
        first_y = __float2int_rd(__fsub_rn(y, geometry.reach[1]));
        first_z = __float2int_rd(__fsub_rn(z, geometry.reach[2]));
        const float width = static_cast<float>(points.dims[0]);
        if (PADDED) {
            // Points of a failed sort are anywhere; the others are so far inside already.
            x = fminf(fmaxf(x, geometry.reach[0]), width - 0.5f - geometry.reach[0]);
            rows_inside = inside = true;
        } else {
            // Only open tables have rows in reach that they do not hold.
            rows_inside = !PERIODIC || (holds(1, first_y, y) && holds(2, first_z, z));
            // The ends of a chord are rounded.
            inside = rows_inside && x >= geometry.reach[0] + 0.5f && x + geometry.reach[0] + 0.5f <= width;
        }
    }

    // The square of the reach: of targets with radii of their own it may be smaller than the
    // lattice's, by which rows are numbered.
    __device__ __forceinline__ float squared_reach() const {
#if NF_FILTERS & NF_RADII
        return own_reach;
#else
        return geometry.squared_reach;
#endif
    }

    // Whether the table has all rows along an axis that are in reach. The last of them seldom is;
    // of an untilted box that can be told here, by the operations of `slice` and `chord`.
    __device__ __forceinline__ bool holds(int axis, int first, float at) const {
        if (first < 0 || static_cast<u32>(first) + ROWS > points.dims[axis] + !TILTED) return false;
        if (TILTED || static_cast<u32>(first) + ROWS <= points.dims[axis]) return true;
        const float below = below_row(first, at, ROWS - 1);
        if (axis == 1) return __fadd_rn(squared_reach(), gap_along_y(below)) < 0.0f;
        return less_gap(squared_reach(), below, geometry.edge[2]) < 0.0f;
    }

    // Of all targets of a warp that take part in the call, because a warp with several kinds would
    // go through all rows several times.
    __device__ __forceinline__ WalkPath path_of_warp() const {
        if (PADDED) return WalkPath::INSIDE;
        const u32 lanes = __activemask();
        if (__all_sync(lanes, inside)) return WalkPath::INSIDE;
        return ring() && __all_sync(lanes, rows_inside) ? WalkPath::ALONG_X : WalkPath::ACROSS;
    }

    // Whether the table is the box along x, and so long that a row passes one face at most and that
    // no image of a target is in its reach.
    __device__ __forceinline__ bool ring() const {
        return PERIODIC && geometry.low[0] == 0 && geometry.high[0] == static_cast<int>(points.dims[0])
            && 2.0f * geometry.reach[0] + 3.0f <= static_cast<float>(points.dims[0]);
    }

    // Whether any source lies in a row of cells that targets of this warp look at; all lanes call
    // it together, `real` being false in those without a target. Two sets often lie apart in most
    // places, as water and walls do, and a row without sources costs as much as any other up to its
    // candidates. So the warp looks at all rows at once first, a lane a row, for all of its targets
    // that lie in one row of cells; they are neighbours along x. For open domains.
    //
    // A target visits rows up to K + 1 from its own and cells up to a reach and 1 from its own
    // (`first_y`, `ends`); this looks as far and one cell farther along x.
    __device__ __forceinline__ bool warp_meets_sources(bool real) const {
        constexpr u32 SPAN = 2 * K + 3;
        const int cell_x = __float2int_rd(x), cell_y = __float2int_rd(y), cell_z = __float2int_rd(z);
        const int reach = __float2int_ru(geometry.reach[0]) + 2;
        const int width = static_cast<int>(points.dims[0]);
        u32 waiting = __ballot_sync(~0u, real);
        for (u32 rows = 0; waiting; rows++) {
            // Targets in many rows are few in each: all of them are walked.
            if (rows == 4) return true;
            const int leader = __ffs(waiting) - 1;
            const int row_y = __shfl_sync(~0u, cell_y, leader), row_z = __shfl_sync(~0u, cell_z, leader);
            const bool mine = real && cell_y == row_y && cell_z == row_z;
            waiting &= ~__ballot_sync(~0u, mine);
            const int low = max(warp_min(mine ? cell_x : 0x7fffffff), 0) - reach;
            const int high = min(-warp_min(mine ? -cell_x : 0x7fffffff), width) + reach + 1;
            // Targets may lie on either side of the table.
            const u32 from = static_cast<u32>(max(low, 0)), to = static_cast<u32>(max(min(high, width), 0));
            bool found = false;
            for (u32 row = threadIdx.x % WARP; row < SPAN * SPAN; row += WARP) {
                const u32 at_y = static_cast<u32>(row_y - (K + 1)) + row % SPAN;
                const u32 at_z = static_cast<u32>(row_z - (K + 1)) + row / SPAN;
                if (at_y >= points.dims[1] || at_z >= points.dims[2] || from >= to) continue;
                const u32* const starts = points.starts + (at_z * points.dims[1] + at_y) * points.dims[0];
                found = found || __ldg(starts + from) != __ldg(starts + to);
            }
            if (__any_sync(~0u, found)) return true;
        }
        return false;
    }

    // Targets of another set may be anywhere; no number is left for those that a failed sort has
    // put nowhere. Far enough away is as good as farther.
    static __device__ __forceinline__ float near_enough(float cells) {
        return fminf(fmaxf(cells, -2097152.0f), 2097152.0f);
    }

    __device__ __forceinline__ float place(int axis, float coordinate) const {
        const float beyond = __fsub_rn(coordinate, geometry.corner[axis]);
        return near_enough(__fmaf_rn(beyond, geometry.scale[axis], geometry.offset[axis]));
    }

    // Whether places of proxies are as good as those of points in the box: a proxy is off by 2^-25
    // of the length of the box at most, which is less than what the host allows for (`Geometry::of`
    // of layout.rs) if the table is the box.
    __device__ __forceinline__ bool proxies_place(const Lattice& lattice) const {
        bool all = !isinf(lattice.reach);
        for (int axis = 0; axis < 3; axis++) {
            const bool open = geometry.low[axis] < -0x20000000;
            all = all && (open || geometry.high[axis] - geometry.low[axis] == static_cast<int>(points.dims[axis]));
        }
        return all;
    }

    static __device__ __forceinline__ float exact_place(const Walk& walk, const Target& target, int axis) {
        const Lattice& lattice = walk.lattice;
        const double wraps = axis == 0 ? target.wraps.x : axis == 1 ? target.wraps.y : target.wraps.z;
        const GivenVector at = given_position(walk.targets, target);
        double cells;
        if (TILTED) {
            const double fraction = fraction_of(lattice, axis, at.x, at.y, at.z);
            cells = lattice.length[axis] == 0.0
                ? fraction * lattice.inverse_edge[axis] + lattice.phase[axis]
                : (fraction - wraps) * static_cast<double>(lattice.period[axis]);
        } else {
            const double coordinate = anchored(lattice, axis, axis == 0 ? at.x : axis == 1 ? at.y : at.z);
            cells = lattice.length[axis] == 0.0
                ? coordinate * lattice.inverse_edge[axis] + lattice.phase[axis]
                : (coordinate - wraps * lattice.length[axis]) * lattice.inverse_edge[axis];
        }
        return near_enough(static_cast<float>(cells - static_cast<double>(walk.sources.origin[axis])));
    }

    // The squared reach less the square of the gap to the cells `below` ... `below` + 1 from the
    // target, where `edge` is what a cell is long.
    static __device__ __forceinline__ float less_gap(float left, float below, float edge) {
        const float gap = __fmul_rn(fmaxf(fmaxf(below, __fsub_rn(-1.0f, below)), 0.0f), edge);
        return __fmaf_rn(-gap, gap, left);
    }

    // The square of the gap along y to a row of an untilted box, negative: `chord` adds it.
    __device__ __forceinline__ float gap_along_y(float below) const {
        return less_gap(0.0f, below, geometry.edge[1]);
    }

    // From the target to row `row` of those along an axis, in cells.
    __device__ __forceinline__ float below_row(int first, float at, int row) const {
        return __fsub_rn(static_cast<float>(first + row), at);
    }

    // The rest of the squared reach beside the gaps along z and, in a tilted box, the leaning of a
    // slice.
    struct Slice {
        float left;             // of the squared reach
        Leaning along_y, along_x;
    };

    __device__ __forceinline__ Slice slice(float below) const {
        const float from = TILTED ? fmaxf(below, -geometry.reach[2]) : 0.0f;
        const float to = TILTED ? fminf(__fadd_rn(below, 1.0f), geometry.reach[2]) : 0.0f;
        return Slice{less_gap(squared_reach(), below, geometry.edge[2]),
                     Leaning(from, to, geometry.lean[2]), Leaning(from, to, geometry.lean[1])};
    }

    // Rest of the squared reach beside the gap along y, for the chord along x. All walks around a
    // target compute it by the same operations, so they see the same runs: bits of masks stand for
    // the candidates of one walk and are read by another.
    __device__ __forceinline__ float chord(const Slice& slice, float below, float less) const {
        if (!TILTED) return __fadd_rn(slice.left, less);
        const float from = __fmaf_rn(below, geometry.edge[1], slice.along_y.least);
        const float to = __fmaf_rn(__fadd_rn(below, 1.0f), geometry.edge[1], slice.along_y.most);
        const float gap = fmaxf(fmaxf(from, -to), 0.0f);
        return __fmaf_rn(-gap, gap, slice.left);
    }

    // Where the chord begins and ends along x, less one half, in cells.
    struct Ends {
        float low, high;
    };

    __device__ __forceinline__ Ends ends(const Slice& slice, float below, float chord) const {
        const float half = rough_sqrt(chord), middle = __fsub_rn(x, 0.5f);
        if (!TILTED) {
            return Ends{__fmaf_rn(-half, geometry.per_reach, middle), __fmaf_rn(half, geometry.per_reach, middle)};
        }
        const Leaning row(fmaxf(below, -geometry.reach[1]), fminf(__fadd_rn(below, 1.0f), geometry.reach[1]),
                          geometry.lean[0]);
        const float from = __fsub_rn(-half, __fadd_rn(row.most, slice.along_x.most));
        const float to = __fsub_rn(half, __fadd_rn(row.least, slice.along_x.least));
        return Ends{__fadd_rn(middle, fmaxf(__fmul_rn(from, geometry.per_reach), -geometry.reach[0])),
                    __fadd_rn(middle, fminf(__fmul_rn(to, geometry.per_reach), geometry.reach[0]))};
    }

    // A row of the table.
    struct Row {
        u32 before;            // cells before it
        int image_y, image_z;  // that it is seen in
        int low, high;         // cells along x in reach, some of them beyond a face
    };

    // A row in reach, before its ends are computed.
    struct Reached {
        const Around& around;
        const Slice& slice;
        float below, chord;
        u32 before;
        int image_y, image_z;

        // Sorted points of a row none of whose cells lies beyond a face.
        __device__ __forceinline__ uint2 run() const {
            const Ends ends = around.ends(slice, below, chord);
            const u32 low = before + whole_below(ends.low) - WHOLE_BITS;
            const u32 high = before + whole_below(ends.high) - WHOLE_BITS + 1;
            // A leaning chord may end before it begins.
            const u32 end = TILTED ? max(high, low) : high;
            return make_uint2(__ldg(around.points.starts + low), __ldg(around.points.starts + end));
        }

        __device__ __forceinline__ Row row() const {
            const Ends ends = around.ends(slice, below, chord);
            const int low = static_cast<int>(whole_below(ends.low) - WHOLE_BITS);
            const int high = static_cast<int>(whole_below(ends.high) - WHOLE_BITS) + 1;
            return Row{before, image_y, image_z, low, high};
        }
    };

    // Of a target whose rows are inside: calls take(z, y, reached, row) for the rows of all slices
    // in reach (ALL: of all slices). Only a `reached` row may be looked at.
    template <bool ALL, class Take>
    __device__ __forceinline__ void rows(Take take) const {
        float gaps[ROWS];  // of what the gap along y leaves
        #pragma unroll
        for (int row = 0; row < ROWS; row++) {
            gaps[row] = TILTED ? 0.0f : gap_along_y(below_row(first_y, y, row));
            // Only open tables have rows in reach that they do not hold.
            if (!PERIODIC && static_cast<u32>(first_y + row) >= points.dims[1]) gaps[row] = -FAR_AWAY;
        }
        const u32 width = points.dims[0], slice_cells = width * points.dims[1];
        u32 cells = static_cast<u32>(first_z) * slice_cells + static_cast<u32>(first_y) * width;
        #pragma unroll 1
        for (int z = 0; z < ROWS; z++, cells += slice_cells) {
            Slice slice = this->slice(below_row(first_z, this->z, z));
            if (!PERIODIC && static_cast<u32>(first_z + z) >= points.dims[2]) slice.left = -FAR_AWAY;
            if (!ALL && !(slice.left >= 0.0f)) continue;
            #pragma unroll
            for (int row = 0; row < ROWS; row++) {
                const float below = TILTED ? below_row(first_y, y, row) : 0.0f;
                const float chord = this->chord(slice, below, gaps[row]);
                const bool reached = chord >= 0.0f && (!TILTED || slice.left >= 0.0f);
                take(z, row, reached, Reached{*this, slice, below, chord, cells + row * width, 0, 0});
            }
        }
    }

    // The same without unrolled loops and, with FACES, of any target: rows may lie across a face.
    template <bool ALL, bool FACES, class Take>
    __device__ __forceinline__ void rows_one_by_one(Take take) const {
        #pragma unroll 1
        for (int z = 0; z < ROWS; z++) {
            const Slice slice = this->slice(below_row(first_z, this->z, z));
            const WrappedCell seen_z = FACES ? seen(2, first_z + z) : WrappedCell{first_z + z, 0};
            const bool in_slice = slice.left >= 0.0f && static_cast<u32>(seen_z.cell) < points.dims[2];
            if (!ALL && !in_slice) continue;
            const u32 slice_rows = static_cast<u32>(seen_z.cell) * points.dims[1];
            #pragma unroll 1
            for (int y = 0; y < ROWS; y++) {
                const float below = below_row(first_y, this->y, y);
                const float chord = this->chord(slice, below, TILTED ? 0.0f : gap_along_y(below));
                const WrappedCell seen_y = FACES ? seen(1, first_y + y) : WrappedCell{first_y + y, 0};
                const bool reached = in_slice && chord >= 0.0f && static_cast<u32>(seen_y.cell) < points.dims[1];
                const u32 before = (slice_rows + static_cast<u32>(seen_y.cell)) * points.dims[0];
                take(z, y, reached, Reached{*this, slice, below, chord, before, seen_y.image, seen_z.image});
            }
        }
    }

    // One of the ROWS * ROWS rows, in the order of the others; nothing if it is not in reach.
    template <class Take>
    __device__ __forceinline__ void one_row(u32 row, Take take) const {
        const int z = static_cast<int>(row / ROWS), y = static_cast<int>(row % ROWS);
        const Slice slice = this->slice(below_row(first_z, this->z, z));
        const WrappedCell seen_y = seen(1, first_y + y), seen_z = seen(2, first_z + z);
        const float below = below_row(first_y, this->y, y);
        const float chord = this->chord(slice, below, TILTED ? 0.0f : gap_along_y(below));
        const bool held = static_cast<u32>(seen_y.cell) < points.dims[1] && static_cast<u32>(seen_z.cell) < points.dims[2];
        if (!held || !(slice.left >= 0.0f) || !(chord >= 0.0f)) return;
        const u32 before =
            (static_cast<u32>(seen_z.cell) * points.dims[1] + static_cast<u32>(seen_y.cell)) * points.dims[0];
        take(Reached{*this, slice, below, chord, before, seen_y.image, seen_z.image});
    }

    __device__ __forceinline__ WrappedCell seen(int axis, int cell) const {
        return PERIODIC ? brought_inside(geometry, axis, cell) : WrappedCell{cell, 0};
    }

    // Which parts a row has, in the order of x, as bits: 1 beyond the lower face of the box, 2 in
    // the row's own image, 4 beyond the upper face.
    __device__ __forceinline__ u32 parts(const Row& row) const {
        if (row.low >= row.high) return 0;
        if (!PERIODIC) return 2;
        return 2 | (row.low < geometry.low[0] ? 1 : 0) | (row.high > geometry.high[0] ? 4 : 0);
    }

    // Sorted points of a row's own part.
    __device__ __forceinline__ uint2 own(const Row& row) const {
        const int width = static_cast<int>(points.dims[0]);
        const u32 begin = row.before + static_cast<u32>(min(max(row.low, 0), width));
        const u32 end = row.before + static_cast<u32>(min(max(row.high, 0), width));
        return make_uint2(__ldg(points.starts + begin), __ldg(points.starts + max(begin, end)));
    }

    // The first of the parts.
    __device__ __forceinline__ RowPart part(const Row& row, u32 parts) const {
        int from = row.low, to = row.high, image = 0;
        if (PERIODIC) {
            const int low = geometry.low[0], high = geometry.high[0], period = high - low;
            image = parts & 1 ? -1 : parts & 2 ? 0 : 1;
            from = max(from - image * period, low);
            to = min(to - image * period, high);
        }
        const int width = static_cast<int>(points.dims[0]);
        const u32 begin = row.before + static_cast<u32>(min(max(from, 0), width));
        const u32 end = row.before + static_cast<u32>(min(max(to, 0), width));
        return RowPart{make_uint2(__ldg(points.starts + begin), __ldg(points.starts + max(begin, end))), image};
    }

    // The parts of a row of a table that is a ring along x (`ring`): candidates up to the upper
    // face, and those from the lower face on.
    __device__ __forceinline__ Ring parts_of_ring(const Row& row) const {
        const int width = static_cast<int>(points.dims[0]);
        const bool below = row.low < 0, above = row.high > width;
        Ring ring = {{make_uint2(0, 0), below ? -1 : 0}, {make_uint2(0, 0), above ? 1 : 0}};
        // A leaning chord may end before it begins.
        if (TILTED && row.low >= row.high) return ring;
        const u32* const starts = points.starts + row.before;
        // It may also lie beyond a face with all of its cells.
        const int low = TILTED ? min(row.low, width) : row.low, high = TILTED ? max(row.high, 0) : row.high;
        const u32 end = __ldg(starts + (above ? high - width : high));
        ring.first.run = make_uint2(__ldg(starts + (below ? low + width : low)), end);
        if (below || above) {
            ring.first.run.y = __ldg(starts + width);
            // As `part` has it: masks are written by one of the two and may be read by the other.
            const int begin = TILTED && above ? max(row.low - width, 0) : 0;
            ring.second.run = make_uint2(__ldg(starts + begin), end);
        }
        return ring;
    }

    // A part's image of the box. In a straight box the vector has one number per axis; these are
    // the same for all threads.
    __device__ __forceinline__ Image image_of(const Walk& walk, const Row& row, const RowPart& part) const {
        Image image = {part.image, row.image_y, row.image_z, make_float3(0.0f, 0.0f, 0.0f)};
        if (PERIODIC) image.shift = near_image_vector<TILTED>(walk.lattice, image.a, image.b, image.c);
        return image;
    }
};

// Candidates of a target or of a cell: contiguous runs of sorted points, one per neighbour row and
// periodic image.
//
// Three ways lead through them. `visit_open` serves one set in an open domain with a dense table:
// rows are cut to the chord that the sphere around this very target leaves of them, and the table
// is padded by K empty cells on every side, so no row needs a bounds check. `visit_around` of
// around.cuh serves two sets and periodic and tilted boxes with dense tables. `visit_general`
// serves everything else (sparse tables, boxes that the radius reaches across) by the table of
// neighbour rows that the CPU backend uses.
#pragma once
#include "contract.cuh"

// How around.cuh goes through the sources' table. Lengths are in units of the enlarged radius of
// the lattice, places in cells from the table's first.
struct Geometry {
    float corner[3];      // where the table begins along each axis, rounded; in a straight box…
    float scale[3];       // …cells per unit of the coordinates…
    float offset[3];      // …and where the corner lies in the table
    float reach[3];       // cells along each axis that the enlarged radius reaches, margin included
    float squared_reach;  // of a length
    float per_reach;      // cells along x in a length of 1
    float edge[3];        // a cell along x, across that in the plane of x and y, across this plane
    // how far a cell along y and one along z lie along x, and one along z along y
    float lean[3];
    int low[3], high[3];  // the box on a periodic axis, everything on an open one
};

// Targets, sources and lattice of a search.
struct Walk {
    Lattice lattice;
    Geometry geometry;
    Points targets;
    Points sources;
    const Row* rows;     // neighbour rows of the lattice
    u32 row_count;
    u32 same_set;        // a point is not its own neighbour
};

// Where a run is seen: image of the cells it lies in, and the vector to it.
struct Image {
    int a, b, c;
    float3 shift;
};

// A target and what is asked of its pairs.
struct Target {
    float x, y, z;
    u32 slot;            // sorted place among the targets
    u32 itself;          // the same among the sources where both are one set, else NONE
    u32 index;           // the caller's
    int4 wraps;
};

// Whole boxes between a point and its image in the box. They are stored only if some are not 0.
__device__ __forceinline__ int4 wraps_of(const Points& points, u32 slot) {
    return points.flags[ANY_WRAPPED] ? points.wraps[slot] : make_int4(0, 0, 0, 0);
}

__device__ __forceinline__ Target target_at(const Walk& walk, u32 slot) {
    const float4 at = walk.targets.at[slot];
    Target target;
    target.x = at.x;
    target.y = at.y;
    target.z = at.z;
    target.slot = slot;
    target.itself = !walk.same_set ? NONE : walk.targets.slots ? walk.targets.slots[slot] : slot;
    target.index = __float_as_uint(at.w);
    target.wraps = make_int4(0, 0, 0, 0);
    if (walk.lattice.periodic) target.wraps = wraps_of(walk.targets, slot);
    return target;
}

// Whether a list of this kind holds the pair.
template <bool HALF>
__device__ __forceinline__ bool wanted(u32 target, u32 source, i64 a, i64 b, i64 c) {
    if (!HALF) return true;
    const bool positive = a > 0 || (a == 0 && (b > 0 || (b == 0 && c > 0)));
    return source > target || (source == target && positive);
}

// Square of how far a target is from the cells at an offset, in cells, along one axis.
__device__ __forceinline__ float squared_gap(float offset, float within) {
    const float gap = fmaxf(fmaxf(offset - within, within - offset - 1.0f), 0.0f);
    return gap * gap;
}

// Cell coordinates in a table that may be elsewhere: too far away is far enough.
__device__ __forceinline__ int in_table(double cell, i64 origin) {
    const double offset = cell - static_cast<double>(origin);
    return static_cast<int>(fmin(fmax(offset, -1073741824.0), 1073741824.0));
}

// The cells around a target in an open domain. Gaps and chords are computed in f32 from
// where the target is in its cell, off by less than 2^-11 cells also where cells are so far out
// that their own numbers are rounded; `reach` covers that (crates/engine/gpu/src/launch/layout.rs).
template <int K>
struct OpenCells {
    int x, y, z;              // the target's cell in the table of the sources, or beside it
    float within_z;
    float gap_y[2 * K + 1];   // squared
    float left[K], right[K];  // squared gaps of the k-th cells on either side along x
    float reach;              // squared

    __device__ __forceinline__ OpenCells(const Walk& walk, const Target& target) {
        const Points& points = walk.sources;
        const Place x = open_place(walk.lattice, 0, target.x);
        const Place y = open_place(walk.lattice, 1, target.y);
        const Place z = open_place(walk.lattice, 2, target.z);
        this->x = in_table(x.cell, points.origin[0]);
        this->y = in_table(y.cell, points.origin[1]);
        this->z = in_table(z.cell, points.origin[2]);
        within_z = z.within;
        reach = walk.lattice.reach * walk.lattice.reach;
        for (int d = -K; d <= K; d++) gap_y[d + K] = squared_gap(static_cast<float>(d), y.within);
        for (int k = 0; k < K; k++) {
            left[k] = (x.within + k) * (x.within + k);
            right[k] = (k + 1 - x.within) * (k + 1 - x.within);
        }
    }

    // Keeps the K cells around within a table that is padded by K. Points that were sorted into it
    // are there already; those of a failed sort are anywhere, and rows are looked up without a
    // check.
    __device__ __forceinline__ void stay_inside(const Points& points) {
        x = min(max(x, K), static_cast<int>(points.dims[0]) - 1 - K);
        y = min(max(y, K), static_cast<int>(points.dims[1]) - 1 - K);
        z = min(max(z, K), static_cast<int>(points.dims[2]) - 1 - K);
    }

    // The rest of the squared reach in the slice of cells at offset `d` along z.
    __device__ __forceinline__ float left_in_slice(float d) const {
        return reach - squared_gap(d, within_z);
    }

    // The cell at (0, -K, -K) from the target's, where no row leaves the table.
    __device__ __forceinline__ u32 corner(const Points& points) const {
        return (static_cast<u32>(z - K) * points.dims[1] + static_cast<u32>(y - K)) * points.dims[0]
            + static_cast<u32>(x);
    }

    // Sorted points of row `cell`, of whose squared chord `chord` is left.
    __device__ __forceinline__ uint2 run(const u32* starts, u32 cell, float chord) const {
        u32 low = cell, high = cell + 1;
        #pragma unroll
        for (int k = 0; k < K; k++) {
            if (left[k] <= chord) low = cell - 1 - k;
            if (right[k] <= chord) high = cell + 2 + k;
        }
        return make_uint2(__ldg(starts + low), __ldg(starts + high));
    }
};

// Shows `work` every candidate of a target of one set in an open domain.
template <int K, bool HALF, class Work>
__device__ __forceinline__ void visit_open(const Walk& walk, const Target& target, Work& work) {
    OpenCells<K> cells(walk, target);
    const Points& points = walk.sources;
    cells.stay_inside(points);
    const float r2 = walk.lattice.r2;
    const u32 width = points.dims[0], slice_cells = points.dims[0] * points.dims[1];
    u32 slice = cells.corner(points);
    float dz = -K;
    #pragma unroll 1
    for (int z = 0; z <= 2 * K; z++, slice += slice_cells, dz += 1.0f) {
        const float left = cells.left_in_slice(dz);
        if (left < 0.0f) continue;
        #pragma unroll
        for (int y = 0; y <= 2 * K; y++) {
            const float chord = left - cells.gap_y[y];
            if (chord < 0.0f) continue;
            const uint2 run = cells.run(points.starts, slice + y * width, chord);
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
    }
}

// A cell coordinate brought into the box, and the image it came from.
__device__ __forceinline__ i64 into_box(i64 cell, i64 period, int& image) {
    image = 0;
    if (period == 0) return cell;
    i64 boxes = cell / period;
    if (cell - boxes * period < 0) boxes--;
    image = static_cast<int>(boxes);
    return cell - boxes * period;
}

// The runs of a cell of any domain, one after the other.
struct Runs {
    i64 x, y, z;         // the cell
    u32 row;             // the next row
    i64 low, high;       // cells of the present row still to come, as seen from the cell
    i64 from, to;        // those of one image of them still to come, in the box
    i64 row_y, row_z;    // the present row, in the box
    Image image;

    __device__ __forceinline__ Runs(i64 x, i64 y, i64 z)
        : x(x), y(y), z(z), row(0), low(0), high(-1), from(0), to(-1), row_y(0), row_z(0), image() {}

    // The next run that is not empty; false when there is none.
    __device__ __forceinline__ bool next(const Walk& walk, u32& begin, u32& end) {
        while (true) {
            if (from <= to) {
                look_up(walk.sources, begin, end);
                if (begin < end) return true;
            } else if (low <= high) {
                next_image(walk);
            } else if (!next_row(walk)) {
                return false;
            }
        }
    }

    // Points of the cells from ... to, or of the first of them that lie side by side in the table.
    __device__ __forceinline__ void look_up(const Points& points, u32& begin, u32& end) {
        begin = end = 0;
        if (points.sparse) {
            const i64 brick = from >> BRICK_SHIFT;
            const i64 last = min(to, brick * BRICK + BRICK - 1);
            const u32 id = find_brick(points, brick, row_y, row_z);
            if (id != NONE) {
                const u32* starts = points.starts + static_cast<u64>(id) * BRICK;
                begin = starts[from - brick * BRICK];
                end = starts[last - brick * BRICK + 1];
            }
            from = last + 1;
            return;
        }
        const i64 first = max(from - points.origin[0], static_cast<i64>(0));
        const i64 last = min(to - points.origin[0], static_cast<i64>(points.dims[0]) - 1);
        const u64 row = (row_z - points.origin[2]) * points.dims[1] + (row_y - points.origin[1]);
        if (first <= last) {
            begin = points.starts[row * points.dims[0] + first];
            end = points.starts[row * points.dims[0] + last + 1];
        }
        from = to + 1;
    }

    // Those of the cells low ... high that lie in one image of the box.
    __device__ __forceinline__ void next_image(const Walk& walk) {
        const i64 period = walk.lattice.period[0];
        from = into_box(low, period, image.a);
        to = period == 0 ? high : min(from + (high - low), period - 1);
        low += to - from + 1;
    }

    __device__ __forceinline__ bool next_row(const Walk& walk) {
        const Points& points = walk.sources;
        while (row < walk.row_count) {
            const Row offsets = walk.rows[row++];
            row_y = into_box(y + offsets.y, walk.lattice.period[1], image.b);
            row_z = into_box(z + offsets.z, walk.lattice.period[2], image.c);
            const i64 in_y = row_y - points.origin[1], in_z = row_z - points.origin[2];
            if (!points.sparse && (in_y < 0 || in_y >= points.dims[1] || in_z < 0 || in_z >= points.dims[2])) continue;
            low = x - offsets.reach;
            high = x + offsets.reach;
            return true;
        }
        return false;
    }
};

// Runs of the cell that a target lies in.
__device__ __forceinline__ Runs runs_of(const Walk& walk, const Target& target) {
    const Lattice& lattice = walk.lattice;
    return Runs(static_cast<i64>(place_of(lattice, 0, target.x, target.y, target.z).cell),
                static_cast<i64>(place_of(lattice, 1, target.x, target.y, target.z).cell),
                static_cast<i64>(place_of(lattice, 2, target.x, target.y, target.z).cell));
}

// The pair of a target and a sorted source seen in the image of the source's cell. An image counts
// from the coordinates as they are, so points outside the box have images of their own.
template <bool HALF, class Work>
__device__ __forceinline__ void visit_pair(
    const Walk& walk, const Target& target, u32 k, float4 source, u32 source_index, const Image& image, bool real,
    bool any_wrapped, Work& work) {
    float3 shift = image.shift;
    i64 a = image.a, b = image.b, c = image.c;
    if (any_wrapped) {
        // In 64 bits: each count may be 2^30.
        const int4 wraps = wraps_of(walk.sources, k);
        a += static_cast<i64>(target.wraps.x) - wraps.x;
        b += static_cast<i64>(target.wraps.y) - wraps.y;
        c += static_cast<i64>(target.wraps.z) - wraps.z;
        shift = image_vector(walk.lattice, a, b, c);
    }
    const float dx = __fadd_rn(__fsub_rn(source.x, target.x), shift.x);
    const float dy = __fadd_rn(__fsub_rn(source.y, target.y), shift.y);
    const float dz = __fadd_rn(__fsub_rn(source.z, target.z), shift.z);
    const float d2 = squared(dx, dy, dz);
    const bool itself = k == target.itself && a == 0 && b == 0 && c == 0;
    bool hit = real && d2 <= walk.lattice.r2 && !itself;
    if (HALF) hit = hit && wanted<HALF>(target.index, source_index, a, b, c);
    work.visit(hit, k, dx, dy, dz, d2, source.w);
}

// Whether images of single points must be looked at.
__device__ __forceinline__ bool images_differ(const Walk& walk) {
    return walk.lattice.periodic && (walk.targets.flags[ANY_WRAPPED] || walk.sources.flags[ANY_WRAPPED]);
}

// The vector to an image.
__device__ __forceinline__ float3 shift_to(const Walk& walk, const Image& image) {
    if (!walk.lattice.periodic) return make_float3(0.0f, 0.0f, 0.0f);
    return image_vector(walk.lattice, image.a, image.b, image.c);
}

// Shows `work` every candidate of a target.
template <bool HALF, class Work>
__device__ __forceinline__ void visit_general(const Walk& walk, const Target& target, Work& work) {
    const bool any_wrapped = images_differ(walk);
    Runs runs = runs_of(walk, target);
    u32 begin, end;
    while (runs.next(walk, begin, end)) {
        Image image = runs.image;
        image.shift = shift_to(walk, image);
        for (u32 k = begin; k < end; k++) {
            const float4 source = work.source(k);
            const u32 index = HALF ? __float_as_uint(walk.sources.at[k].w) : 0;
            visit_pair<HALF>(walk, target, k, source, index, image, true, any_wrapped, work);
        }
    }
}

// Candidates of a target or of a cell: contiguous runs of sorted points, one per neighbour row and
// periodic image.
//
// Two ways lead through them. `visit_around` of visit.cuh serves dense tables, in open, periodic
// and tilted domains. `visit_runs` serves everything else (sparse tables, boxes that the radius
// reaches across) by the table of neighbour rows that the CPU backend uses.
#pragma once
#include "contract.cuh"

// Length of a root off by at most one unit in the last place; numbers below 2^-126 become 0.
__device__ __forceinline__ float rough_sqrt(float x) {
    float root;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(x));
    return root;
}

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

// NF_FILTERS: which pairs within the radius are left out, or 0. With NF_NAMED by data of the two
// points (cut-offs of types, exclusions), with NF_RADII by radii of single points, with NF_NEAREST
// those beyond the k nearest; filter.cuh.
#ifndef NF_FILTERS
#define NF_FILTERS 0
#endif

// Targets, sources and lattice of a search.
struct Walk {
    Lattice lattice;
    Geometry geometry;
    Points targets;
    Points sources;
    const Row* rows;     // neighbour rows of the lattice
    // Single precision, periodic boxes: see `near_vector` of pair_seen.cuh; else null.
    const float* steps;
    u32 row_count;
    u32 same_set;        // a point is not its own neighbour
};

// The last of the nearest pairs of a target that are kept.
struct Nearest {
    double squared;  // exact in either precision
    u32 index;       // of the source
    int image[3];
};

// What filters read of single points: of targets in the caller's order, of sources in the sorted
// one. Arrays that do not count are null.
struct Filters {
    const Given* cutoffs;           // squares, a row of `types` for each type; -1 for never
    const u32* target_types;
    const u32* source_types;
    const u32* target_molecules;    // points of one molecule exclude each other
    const u32* source_molecules;
    const u64* excluded_starts;     // for every point of the set, and one behind…
    const u32* excluded;            // …where the points that it excludes begin, which ascend
    const Given* target_radii;
    const Given* source_radii;      // nf::READ_AHEAD more behind the last
    // Points whose radii are above `bulk` (wide.cuh): how many, and their sorted places, ascending.
    // Null where the radii of targets, or of sources, do not count, and where no point is wide.
    const u32* wide_targets;
    const u32* wide_sources;
    const Nearest* nearest;         // of every target in the caller's order
    float inverse[3][3];            // Lattice::inverse, rounded, for pairs with wide points
    float bulk;                     // the radius that cells are made for; 0 for the largest
    float largest_source;           // of the sources that are walked
    float per_radius;               // what around.cuh reaches for a radius, in its unit of length…
    float slack;                    // …and this more
    u32 types;
};

// What kernels of programs with filters take.
struct FilteredWalk : Walk {
    Filters filters;
};
static_assert(sizeof(FilteredWalk) == sizeof(Walk) + sizeof(Filters), "filters are right behind");

#if NF_FILTERS
typedef FilteredWalk KernelWalk;
#else
typedef Walk KernelWalk;
#endif

// Only in programs with filters, whose walks all are arguments of kernels.
__device__ __forceinline__ const Filters& filters_of(const Walk& walk) {
    return static_cast<const FilteredWalk&>(walk).filters;
}

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
#if NF_FILTERS & NF_RADII
    Given own;           // the square of its radius, -1 where that does not count
    // In single precision, for squared distances of candidates; -1 for wide targets.
    float limit;
    float reach;         // no pair is farther apart
#endif
};

// Whole boxes between a point and its image in the box. They are stored only if some are not 0.
__device__ __forceinline__ int4 wraps_of(const Points& points, u32 slot) {
    return points.flags[ANY_WRAPPED] ? points.wraps[slot] : make_int4(0, 0, 0, 0);
}

// fl(r r) of a radius.
__device__ __forceinline__ float square_of(float radius) { return __fmul_rn(radius, radius); }
__device__ __forceinline__ double square_of(double radius) { return radius * radius; }

__device__ __forceinline__ float rounded_up(float x) { return x; }
__device__ __forceinline__ float rounded_up(double x) { return __double2float_ru(x); }

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
#if NF_FILTERS & NF_RADII
    const Filters& filters = filters_of(walk);
    const Given radius = filters.target_radii ? filters.target_radii[target.index] : Given(0);
    target.own = filters.target_radii ? square_of(radius) : Given(-1);
    target.limit = DOUBLE || filters.source_radii ? walk.lattice.r2 : static_cast<float>(target.own);
    const float reach = rounded_up(radius);
    target.reach = filters.source_radii ? fmaxf(reach, filters.largest_source) : reach;
    if (!DOUBLE && filters.bulk > 0.0f && reach > filters.bulk) {
        target.limit = -1.0f;
        target.reach = 0.0f;
    }
#endif
    return target;
}

#if NF_FILTERS & NF_RADII
// Whether the radius of a target is so large that it is not walked (wide.cuh).
__device__ __forceinline__ bool is_wide(const Target& target) { return target.limit < 0.0f; }
#endif

// A sorted point as it was given.
__device__ __forceinline__ GivenVector given_position(const Points& points, u32 slot) {
    if (!DOUBLE) {
        const float4 at = points.at[slot];
        return GivenVector{at.x, at.y, at.z};
    }
    const double* const at = points.given + 3 * static_cast<u64>(slot);
    return GivenVector{static_cast<Given>(at[0]), static_cast<Given>(at[1]), static_cast<Given>(at[2])};
}

// The proxy of a target in single precision, as sorting has left it. Proxies of points in the box
// are their positions.
__device__ __forceinline__ float3 proxy_at(const Points& points, const Target& target) {
    if (!points.flags[ANY_WRAPPED]) return make_float3(target.x, target.y, target.z);
    const float4 proxy = __ldg(points.proxies + (points.slots ? points.slots[target.slot] : target.slot));
    return make_float3(proxy.x, proxy.y, proxy.z);
}

// The same of a target that is not a proxy in single precision.
__device__ __forceinline__ GivenVector given_position(const Points& points, const Target& target) {
    if (DOUBLE) return given_position(points, target.slot);
    return GivenVector{target.x, target.y, target.z};
}

// A job whose candidates are proxies (exact.cuh).
template <class Work>
struct Exact;
template <class Work>
constexpr bool IS_EXACT = false;
template <class Work>
constexpr bool IS_EXACT<Exact<Work>> = true;

// A job that notes the rows of candidates that proxies cannot decide (exact.cuh).
template <class Work>
constexpr bool NOTES_ROWS = false;

// A job that asks only which candidates are neighbours, and can be told that one was none.
template <class Work>
constexpr bool CAN_REFUTE = false;

// A job whose candidates are seen in images of their own (imaged.cuh).
template <class Work, bool TILTED>
struct Imaged;
template <class Work>
constexpr bool IS_IMAGED = false;
template <class Work, bool TILTED>
constexpr bool IS_IMAGED<Imaged<Work, TILTED>> = true;

// What squared distances of candidates are compared with: no neighbour is farther.
__device__ __forceinline__ float limit_of(const Walk& walk, const Target& target) {
#if NF_FILTERS & NF_RADII
    return target.limit;
#else
    return walk.lattice.r2;
#endif
}

// The same, as a number that the compiler takes for one of the target's: inner loops then keep it
// in a register and do not load it anew in every turn. Of proxies it is that of their filter.
template <class Work>
__device__ __forceinline__ float squared_radius(const Walk& walk, const Target& target, const Work& work) {
    if constexpr (IS_EXACT<Work>) return work.outer;
    else if constexpr (NOTES_ROWS<Work>) return work.radii.outer;
    else return target.index == NONE ? 0.0f : limit_of(walk, target);
}

// Whether a list of this kind holds the pair.
template <bool HALF>
__device__ __forceinline__ bool wanted(u32 target, u32 source, i64 a, i64 b, i64 c) {
    if (!HALF) return true;
    const bool positive = a > 0 || (a == 0 && (b > 0 || (b == 0 && c > 0)));
    return source > target || (source == target && positive);
}

// Tells a job that asks for it in which image the next candidate is seen.
template <class Work>
__device__ __forceinline__ void tell_image(Work& work, i64 a, i64 b, i64 c) {
    if constexpr (Work::IMAGES) work.image(a, b, c);
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
    u32 row;             // the next row…
    u32 behind;          // …of those before this one
    i64 low, high;       // cells of the present row still to come, as seen from the cell
    i64 from, to;        // those of one image of them still to come, in the box
    i64 row_y, row_z;    // the present row, in the box
    Image image;

    __device__ __forceinline__ Runs(i64 x, i64 y, i64 z)
        : x(x), y(y), z(z), row(0), behind(NONE), low(0), high(-1), from(0), to(-1), row_y(0), row_z(0), image() {}

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
        while (row < min(walk.row_count, behind)) {
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
    const GivenVector at = given_position(walk.targets, target);
    return Runs(static_cast<i64>(place_of(lattice, 0, at.x, at.y, at.z).cell),
                static_cast<i64>(place_of(lattice, 1, at.x, at.y, at.z).cell),
                static_cast<i64>(place_of(lattice, 2, at.x, at.y, at.z).cell));
}

// Where a source is seen: the image that its own coordinates are in, and the vector to it.
struct Sight {
    i64 a, b, c;
    float3 shift;

    __device__ __forceinline__ explicit Sight(const Image& image)
        : a(image.a), b(image.b), c(image.c), shift(image.shift) {}

    // Of a source that was found in this image of its cell. An image counts from the coordinates as
    // they are, so points outside the box have images of their own.
    __device__ __forceinline__ Sight(const Walk& walk, const Target& target, const Image& image, u32 k)
        : Sight(image) {
        // In 64 bits: each count may be 2^30.
        const int4 wraps = wraps_of(walk.sources, k);
        a += static_cast<i64>(target.wraps.x) - wraps.x;
        b += static_cast<i64>(target.wraps.y) - wraps.y;
        c += static_cast<i64>(target.wraps.z) - wraps.z;
        shift = image_vector(walk.lattice, a, b, c);
    }

    __device__ __forceinline__ bool here() const { return (a | b | c) == 0; }
};

// The pair of a target and a sorted source seen in the image of the source's cell.
template <bool HALF, class Work>
__device__ __forceinline__ void visit_pair(
    const Walk& walk, const Target& target, u32 k, float4 source, u32 source_index, const Image& image, bool real,
    bool any_wrapped, Work& work) {
    const Sight seen = any_wrapped ? Sight(walk, target, image, k) : Sight(image);
    float bound = limit_of(walk, target);
    if constexpr (IS_EXACT<Work>) bound = work.outer;
    const float dx = __fadd_rn(__fsub_rn(source.x, target.x), seen.shift.x);
    const float dy = __fadd_rn(__fsub_rn(source.y, target.y), seen.shift.y);
    const float dz = __fadd_rn(__fsub_rn(source.z, target.z), seen.shift.z);
    const float d2 = squared(dx, dy, dz);
    const bool itself = k == target.itself && seen.here();
    bool hit = real && d2 <= bound && !itself;
    if (HALF) hit = hit && wanted<HALF>(target.index, source_index, seen.a, seen.b, seen.c);
    tell_image(work, seen.a, seen.b, seen.c);
    if constexpr (IS_EXACT<Work>) work.begin(k);
    work.visit(hit, k, dx, dy, dz, d2, source.w);
    if constexpr (IS_EXACT<Work>) work.decide();
}

// Whether images of single points must be looked at. Proxies lie in one box.
__device__ __forceinline__ bool images_differ(const Walk& walk) {
    return !DOUBLE && walk.lattice.periodic && (walk.targets.flags[ANY_WRAPPED] || walk.sources.flags[ANY_WRAPPED]);
}

// The vector to an image.
__device__ __forceinline__ float3 shift_to(const Walk& walk, const Image& image) {
    if (!walk.lattice.periodic) return make_float3(0.0f, 0.0f, 0.0f);
    return image_vector(walk.lattice, image.a, image.b, image.c);
}

// Shows `work` every candidate of some runs.
template <bool HALF, class Work>
__device__ __forceinline__ void visit_runs(
    const Walk& walk, const Target& target, Runs runs, bool any_wrapped, Work& work) {
    u32 begin, end;
    while (runs.next(walk, begin, end)) {
        Image image = runs.image;
        image.shift = shift_to(walk, image);
        for (u32 k = begin; k < end; k++) {
            const float4 source = __ldg(work.sources() + k);
            const u32 index = HALF ? __float_as_uint(walk.sources.at[k].w) : 0;
            visit_pair<HALF>(walk, target, k, source, index, image, true, any_wrapped, work);
        }
    }
}

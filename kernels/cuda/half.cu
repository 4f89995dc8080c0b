// Strategy `half-tiles`: one set searches itself, and the interaction of two points in different
// cells is computed once for both (Newton's third law).
//
// A group of GROUP lanes takes one cell after another from the list of occupied ones. It goes
// through the cells ahead only: those at offsets (z, y, x) that are lexicographically positive. An
// offset and its opposite are never both ahead, so a pair of cells is met from one side, in
// whatever image of the box it is seen; where a box is so small that a cell is its own neighbour,
// its image at an offset is the same pair as the image at the opposite one. Pairs within the cell
// itself are computed from either side: the lanes hold all targets of the cell at once, so half of
// the pairs would not take fewer steps.
//
// Sources that are too far from all targets of the group are left out first; the others are queued
// in shared memory, and taken from there GROUP at a time. In step s lane l looks at source (l + s)
// mod GROUP, so no two lanes meet at a source, and what a source gets is added to its sums in
// shared memory without atomics. Those sums go to memory as `sums[plane][slot][channel]`: plane 0
// is what targets got, every offset ahead has a plane that follows. A place in a plane is written
// by one group only, whichever order cells are taken in, and `add_halves` adds up the planes of a
// point in their order; so the same points give the same bits.
//
// NF_OPEN says whether the set is in an open domain with a dense table. NF_SYMMETRIC says how the
// source's share of a pair follows: NF_BY_REVERSAL, NF_BY_SIGN or NF_BY_FUNCTION.
#include "tasks.cuh"
#include "tile.cuh"
#include "work.cuh"

// Names of their own beside those of a user's kernel.
namespace halves {

constexpr u32 THREADS = nf::TILE_THREADS;
// Lanes that work on one cell together: a power of two, at most a warp.
constexpr u32 GROUP = 16;
constexpr u32 QUEUE = 2 * GROUP;
// The plane of a cell seen from itself.
constexpr u32 OWN = 0;

// Whether the channels are read that a source has as a target.
#define NF_BOTH_SIDES (NF_SYMMETRIC != NF_BY_SIGN)

// Whether a row lies behind the cell it is seen from, so that its opposite is ahead.
__device__ __forceinline__ bool behind(const Row& row) {
    return row.z < 0 || (row.z == 0 && row.y < 0);
}

// Offset along x of the first cell ahead in a row that is not behind.
__device__ __forceinline__ int first_ahead(const Row& row) {
    return row.z == 0 && row.y == 0 ? 1 : -row.reach;
}

// As into_box, which divides, for cells that are in the box most of the time.
__device__ __forceinline__ i64 brought_in(i64 cell, i64 period, int& image) {
    image = 0;
    if (period == 0 || (cell >= 0 && cell < period)) return cell;
    return into_box(cell, period, image);
}

// Whether a dense table has no cells in this row; sparse ones are asked brick by brick.
__device__ __forceinline__ bool row_outside(const Points& points, i64 y, i64 z) {
    const i64 in_y = y - points.origin[1], in_z = z - points.origin[2];
    return !points.sparse && (in_y < 0 || in_y >= points.dims[1] || in_z < 0 || in_z >= points.dims[2]);
}

// The first of the starts of a row that is in a dense table.
__device__ __forceinline__ const u32* starts_of_row(const Points& points, i64 y, i64 z) {
    const u64 row = (z - points.origin[2]) * points.dims[1] + (y - points.origin[1]);
    return points.starts + row * points.dims[0];
}

// Whether a cell, which is in the box, holds points. Its row is not outside.
__device__ __forceinline__ bool occupied(const Points& points, i64 x, i64 y, i64 z) {
    if (points.sparse) {
        const i64 brick = x >> BRICK_SHIFT;
        const u32 id = find_brick(points, brick, y, z);
        if (id == NONE) return false;
        const u32* const starts = points.starts + static_cast<u64>(id) * BRICK + (x - brick * BRICK);
        return __ldg(starts) < __ldg(starts + 1);
    }
    const i64 in_x = x - points.origin[0];
    if (in_x < 0 || in_x >= points.dims[0]) return false;
    const u32* const starts = starts_of_row(points, y, z) + in_x;
    return __ldg(starts) < __ldg(starts + 1);
}

// Points of cells that lie side by side in the table, one plane after the other.
struct Run {
    const u32* starts;  // of the first cell
    u32 begin, end;     // points
    u32 plane;          // of the first cell
};

// A cell and the cells ahead of it, run after run.
struct Ahead {
    i64 x, y, z;        // the cell
    u32 row;            // the next row
    u32 planes;         // planes before those of the next row
    u32 plane;          // of the cell at offset `low`
    int low, high;      // offsets along x of the present row that are still to come
    i64 row_y, row_z;   // the present row, in the box
    Image image;

    // Begins with the cell itself.
    __device__ __forceinline__ Ahead(i64 x, i64 y, i64 z)
        : x(x), y(y), z(z), row(0), planes(OWN + 1), plane(OWN), low(0), high(0), row_y(y), row_z(z), image() {}

    // The next run that is not empty; false when there is none.
    __device__ __forceinline__ bool next(const Walk& walk, Run& run) {
        while (true) {
            if (low <= high) {
                look_up(walk, run);
                if (run.begin < run.end) return true;
            } else if (!next_row(walk)) {
                return false;
            }
        }
    }

    // The cells from offset `low` on that lie in one image and side by side in the table.
    __device__ __forceinline__ void look_up(const Walk& walk, Run& run) {
        const Points& points = walk.sources;
        const i64 period = walk.lattice.period[0];
        const i64 first = brought_in(x + low, period, image.a);
        i64 last = first + (high - low);
        if (period != 0) last = min(last, period - 1);
        run.begin = run.end = 0;
        if (points.sparse) {
            const i64 brick = first >> BRICK_SHIFT;
            last = min(last, brick * BRICK + BRICK - 1);
            const u32 id = find_brick(points, brick, row_y, row_z);
            if (id != NONE) {
                run.starts = points.starts + static_cast<u64>(id) * BRICK + (first - brick * BRICK);
                run.begin = __ldg(run.starts);
                run.end = __ldg(run.starts + (last - first + 1));
                run.plane = plane;
            }
        } else {
            const i64 from = max(first - points.origin[0], static_cast<i64>(0));
            const i64 to = min(last - points.origin[0], static_cast<i64>(points.dims[0]) - 1);
            if (from <= to) {
                run.starts = starts_of_row(points, row_y, row_z) + from;
                run.begin = __ldg(run.starts);
                run.end = __ldg(run.starts + (to - from + 1));
                run.plane = plane + static_cast<u32>(from - (first - points.origin[0]));
            }
        }
        plane += static_cast<u32>(last - first + 1);
        low += static_cast<int>(last - first + 1);
    }

    __device__ __forceinline__ bool next_row(const Walk& walk) {
        while (row < walk.row_count) {
            const Row offsets = walk.rows[row++];
            if (behind(offsets)) continue;
            low = first_ahead(offsets);
            high = offsets.reach;
            plane = planes;
            planes += static_cast<u32>(high - low + 1);
            row_y = brought_in(y + offsets.y, walk.lattice.period[1], image.b);
            row_z = brought_in(z + offsets.z, walk.lattice.period[2], image.c);
            if (!row_outside(walk.sources, row_y, row_z)) return true;
        }
        return false;
    }
};

// Shared memory of a group: a ring of sources, and the sums of those in rotation.
struct Staged {
    float4 at[QUEUE];       // position and first channel
#if !NF_OPEN
    // the vector to the image as floats, or, where points are outside the box,
    uint4 seen[QUEUE];
                            // the image less the boxes that the source is away, as integers; 1
                            // where the source is a point of the targets' cell and not an image of
                            // it
#endif
    u32 slot[QUEUE];
    u32 plane[QUEUE];
#if NF_BOTH_SIDES
    float target[TARGET_ROOM][QUEUE];  // channels that a source has as a target
#endif
    float got[OUTPUT_ROOM][GROUP];
};

// Smallest and largest of a number over the lanes of a group.
__device__ __forceinline__ float2 extent(float x) {
    float2 found = make_float2(x, x);
    #pragma unroll
    for (int step = GROUP / 2; step > 0; step /= 2) {
        found.x = fminf(found.x, __shfl_xor_sync(~0u, found.x, step));
        found.y = fmaxf(found.y, __shfl_xor_sync(~0u, found.y, step));
    }
    return found;
}

// The least that a difference of coordinates to any target between `among.x` and `among.y` can be
// in size. Rounded differences grow with what they are taken of, so it is never more than the
// neighbour test finds for one of them.
__device__ __forceinline__ float min_apart(float at, float2 among, float shift) {
    const float low = __fadd_rn(__fsub_rn(at, among.y), shift);
    const float high = __fadd_rn(__fsub_rn(at, among.x), shift);
    return fmaxf(fmaxf(low, -high), 0.0f);
}

// A group of lanes and what it is at. All lanes of a warp call its functions together, so that its
// groups stay in step; a group without targets takes part with nothing.
struct Group {
    const Walk& walk;
    const Outlet& outlet;
    float* const sums;
    Staged& staged;
    const u32 rank, base;   // of this lane in the group, of the group in the warp
    const bool any_wrapped;
    u32 taken, held;        // sources that have left the queue, that are in it

    __device__ __forceinline__ Group(const Walk& walk, const Outlet& outlet, float* sums, Staged& staged)
        : walk(walk), outlet(outlet), sums(sums), staged(staged), rank(threadIdx.x % GROUP),
          base((threadIdx.x & 31) / GROUP * GROUP), any_wrapped(!NF_OPEN && images_differ(walk)), taken(0), held(0) {
        // Places that hold no source yet are looked at too, and what is found there thrown away:
        // channels should be numbers that a kernel may meet.
        for (u32 place = rank; place < QUEUE; place += GROUP) {
            staged.at[place] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            staged.slot[place] = 0;
            staged.plane[place] = OWN;
#if !NF_OPEN
            staged.seen[place] = make_uint4(0, 0, 0, 0);
#endif
#if NF_BOTH_SIDES
            for (int c = 0; c < NF_TARGETS; c++) staged.target[c][place] = 0.0f;
#endif
        }
        __syncwarp();
    }

    // Lanes of this group for which something is true, counted from its first.
    __device__ __forceinline__ u32 votes(bool vote) const {
        const u32 group = GROUP == 32 ? ~0u : (1u << (GROUP % 32)) - 1;
        return (__ballot_sync(~0u, vote) >> base) & group;
    }

    // Where the sums of a point stand in a plane.
    __device__ __forceinline__ float* place_of_sums(u32 plane, u32 slot) const {
        return sums + (static_cast<u64>(plane) * walk.targets.count + slot) * NF_OUTPUTS;
    }

    // The targets `first` and those that follow it, of cell `cell`, whose points end at `end`; none
    // where `first` is `end`. The first of them all write what those behind them add to.
    __device__ __forceinline__ void visit(u32 cell, u32 first, u32 end, bool fresh) {
        const bool real = first < end && rank < end - first;
        const Target target = target_at(walk, real ? first + rank : first < end ? first : 0);
        const float2 x = extent(target.x), y = extent(target.y), z = extent(target.z);
        float of_target[TARGET_ROOM], of_source[4 * RECORDS + 1], sum[OUTPUT_ROOM];
        for (int c = 0; c < NF_TARGETS; c++) of_target[c] = target_channel(target.index, c);
#if NF_BOTH_SIDES
        read_channels(outlet, target.slot, __ldg(outlet.sources + target.slot).w, of_source);
#endif
        for (int c = 0; c < NF_OUTPUTS; c++) sum[c] = 0.0f;

        const Runs here = runs_of_cell(walk.targets, first < end ? cell : 0);
        Ahead cells(here.x, here.y, here.z);
        Run run = {nullptr, 0, 0, 0};
        float3 shift = make_float3(0.0f, 0.0f, 0.0f);
        u32 next = 0;               // point of the run
        bool more = first < end;
        while (__any_sync(~0u, more || held > 0)) {
            while (__any_sync(~0u, more && held < GROUP)) {
                bool near = false;
                u32 plane = OWN;
                float4 source = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
                const bool fetching = more && held < GROUP;
                if (fetching && next >= run.end) {
                    more = cells.next(walk, run);
                    next = run.begin;
                    if (!NF_OPEN && more) shift = shift_to(walk, cells.image);
                }
                const u32 slot = next + rank;
                if (fetching && more && rank < run.end - next) {
                    source = __ldg(outlet.sources + slot);
                    u32 ahead = 0;
                    while (__ldg(run.starts + ahead + 1) <= slot) ahead++;
                    plane = run.plane + ahead;
                    const float apart = squared(min_apart(source.x, x, shift.x), min_apart(source.y, y, shift.y),
                                                min_apart(source.z, z, shift.z));
                    near = any_wrapped || apart <= walk.lattice.r2;
                    if (!near && fresh && plane != OWN) {
                        float* const to = place_of_sums(plane, slot);
                        for (int c = 0; c < NF_OUTPUTS; c++) to[c] = 0.0f;
                    }
                }
                if (fetching && more) next += min(GROUP, run.end - next);
                const u32 staying = votes(near);
                if (near) queue((taken + held + __popc(staying & ((1u << rank) - 1))) % QUEUE, source, slot, plane, cells.image, shift);
                held += __popc(staying);
            }
            __syncwarp();
            const u32 count = min(held, GROUP);
            look_at(target, real, of_target, of_source, count, sum);
            put_away(count, fresh);
            taken = (taken + count) % QUEUE;
            held -= count;
        }
        if (real) {
            float* const to = place_of_sums(OWN, target.slot);
            for (int c = 0; c < NF_OUTPUTS; c++) to[c] = sum[c];
        }
    }

    __device__ __forceinline__ float target_channel(u32 index, int channel) const {
        return outlet.target_fields[static_cast<u64>(index) * outlet.target_stride + channel];
    }

    // Puts a source into the queue.
    __device__ __forceinline__ void queue(u32 place, float4 source, u32 slot, u32 plane, const Image& image, float3 shift) {
        staged.at[place] = source;
        staged.slot[place] = slot;
        staged.plane[place] = plane;
#if !NF_OPEN
        const u32 own = plane == OWN;
        if (any_wrapped) {
            const int4 wraps = wraps_of(walk.sources, slot);
            staged.seen[place] = make_uint4(image.a - wraps.x, image.b - wraps.y, image.c - wraps.z, own);
        } else {
            staged.seen[place] = make_uint4(__float_as_uint(shift.x), __float_as_uint(shift.y), __float_as_uint(shift.z), own);
        }
#endif
#if NF_BOTH_SIDES
        if (NF_TARGETS > 0) {
            const u32 index = __float_as_uint(__ldg(walk.sources.at + slot).w);
            for (int c = 0; c < NF_TARGETS; c++) staged.target[c][place] = target_channel(index, c);
        }
#endif
    }

    // Pairs of the targets with the first `count` sources of the queue.
    __device__ __forceinline__ void look_at(
        const Target& target, bool real, const float* of_target, const float* of_source, u32 count, float* sum) {
        for (int c = 0; c < NF_OUTPUTS; c++) staged.got[c][rank] = 0.0f;
        __syncwarp();
        #pragma unroll 2
        for (u32 step = 0; step < GROUP; step++) {
            const u32 number = (rank + step) % GROUP;
            const u32 place = (taken + number) % QUEUE;
            const float4 source = staged.at[place];
            const u32 slot = staged.slot[place];
            float dx = __fsub_rn(source.x, target.x);
            float dy = __fsub_rn(source.y, target.y);
            float dz = __fsub_rn(source.z, target.z);
#if NF_OPEN
            const bool itself = slot == target.slot;
#else
            const uint4 seen = staged.seen[place];
            float3 shift = make_float3(__uint_as_float(seen.x), __uint_as_float(seen.y), __uint_as_float(seen.z));
            if (any_wrapped) {
                // In 64 bits: each of the two counts may be 2^30.
                const i64 a = static_cast<int>(seen.x), b = static_cast<int>(seen.y), c = static_cast<int>(seen.z);
                shift = image_vector(walk.lattice, a + target.wraps.x, b + target.wraps.y, c + target.wraps.z);
            }
            dx = __fadd_rn(dx, shift.x);
            dy = __fadd_rn(dy, shift.y);
            dz = __fadd_rn(dz, shift.z);
            const bool itself = slot == target.slot && seen.w;
#endif
            const float d2 = squared(dx, dy, dz);
            const bool hit = real && number < count && d2 <= walk.lattice.r2 && !itself;
            if (NF_SOURCES <= 1 || hit) {
                float channels[4 * RECORDS + 1], result[OUTPUT_ROOM], reaction[OUTPUT_ROOM];
                read_channels(outlet, slot, source.w, channels);
                const Pair there = {{dx, dy, dz}, d2};
#if NF_BOTH_SIDES
                float other[TARGET_ROOM];
                for (int c = 0; c < NF_TARGETS; c++) other[c] = staged.target[c][place];
#endif
#if NF_SYMMETRIC == NF_BY_FUNCTION
                symmetric(outlet.uniforms, there, of_target, of_source, other, channels, result, reaction);
#else
                pair(outlet.uniforms, there, of_target, channels, result);
#endif
#if NF_SYMMETRIC == NF_BY_REVERSAL
                const Pair back = {{-dx, -dy, -dz}, d2};
                pair(outlet.uniforms, back, other, of_source, reaction);
#elif NF_SYMMETRIC == NF_BY_SIGN
                for (int c = 0; c < NF_OUTPUTS; c++) reaction[c] = NF_ANTISYMMETRIC >> c & 1 ? -result[c] : result[c];
#endif
                if (hit) {
                    for (int c = 0; c < NF_OUTPUTS; c++) {
                        sum[c] += result[c];
                        staged.got[c][number] += reaction[c];
                    }
                }
            }
            // Before another lane comes to this source.
            __syncwarp();
        }
    }

    // Writes what the first `count` sources of the queue have got, or adds it to what they had.
    __device__ __forceinline__ void put_away(u32 count, bool fresh) {
        const u32 place = (taken + rank) % QUEUE;
        if (rank < count && staged.plane[place] != OWN) {
            float* const to = place_of_sums(staged.plane[place], staged.slot[place]);
            for (int c = 0; c < NF_OUTPUTS; c++) {
                const float got = staged.got[c][rank];
                to[c] = fresh ? got : to[c] + got;
            }
        }
        // Before the places are used anew, and before other lanes add to what was written.
        __syncwarp();
    }
};

}  // namespace halves

// Lists the cells that hold points.
extern "C" __global__ void __launch_bounds__(LISTING_THREADS)
list_halves(const __grid_constant__ Walk walk, Tasks* tasks) {
    list_occupied(walk, tasks);
}

// The pairs of the cells listed, in as many blocks as there may be.
extern "C" __global__ void __launch_bounds__(halves::THREADS)
half_tiles(const __grid_constant__ Walk walk, const __grid_constant__ Outlet outlet, Tasks* tasks, float* sums) {
    __shared__ halves::Staged staged[halves::THREADS / halves::GROUP];
    halves::Group group(walk, outlet, sums, staged[threadIdx.x / halves::GROUP]);
    const u32 count = tasks->count;
    u32 cell = 0, begin = 0, first = 0, end = 0;
    bool done = false;
    while (true) {
        const bool wanting = first == end && !done;
        u32 task = 0;
        if (wanting && group.rank == 0) task = atomicAdd(&tasks->next, 1u);
        task = __shfl_sync(~0u, task, group.base);
        if (wanting) done = task >= count;
        if (wanting && !done) {
            cell = tasks->cells[task];
            begin = first = walk.targets.starts[cell];
            end = walk.targets.starts[cell + 1];
        }
        if (!__any_sync(~0u, first < end)) return;
        group.visit(cell, first, end, first == begin);
        first += min(halves::GROUP, end - first);
    }
}

// Adds up what every point got, as a target and from the cells it is ahead of. Of these only the
// occupied ones have written anything, so they are looked up; clearing all planes first would cost
// as much as writing them.
extern "C" __global__ void __launch_bounds__(nf::GRID_THREADS)
add_halves(const __grid_constant__ Walk walk, const __grid_constant__ Outlet outlet, const float* __restrict__ sums) {
    using namespace halves;
    const Points& points = walk.targets;
    const u32 slot = blockIdx.x * nf::GRID_THREADS + threadIdx.x;
    if (slot >= points.count) return;
    const Target target = target_at(walk, slot);
    const Runs here = runs_of(walk, target);
    const float* of_plane = sums + static_cast<u64>(slot) * NF_OUTPUTS;
    const u64 stride = static_cast<u64>(points.count) * NF_OUTPUTS;
    float sum[OUTPUT_ROOM];
    // After a failed sort no group has written this point's sums.
    const bool failed = points.flags[FAILED];
    for (int c = 0; c < NF_OUTPUTS; c++) sum[c] = failed ? 0.0f : of_plane[c];
    of_plane += stride;
    for (u32 row = failed ? walk.row_count : 0; row < walk.row_count; row++) {
        const Row offsets = walk.rows[row];
        if (behind(offsets)) continue;
        int image;
        const i64 y = brought_in(here.y - offsets.y, walk.lattice.period[1], image);
        const i64 z = brought_in(here.z - offsets.z, walk.lattice.period[2], image);
        const bool outside = row_outside(points, y, z);
        for (int dx = first_ahead(offsets); dx <= offsets.reach; dx++, of_plane += stride) {
            if (outside || !occupied(points, brought_in(here.x - dx, walk.lattice.period[0], image), y, z)) continue;
            for (int c = 0; c < NF_OUTPUTS; c++) sum[c] += of_plane[c];
        }
    }
    for (int c = 0; c < NF_OUTPUTS; c++) {
        float* const result = outlet.results + static_cast<u64>(target.index) * NF_OUTPUTS + c;
        *result = outlet.combine ? *result + sum[c] : sum[c];
    }
}

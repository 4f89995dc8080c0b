// Strategy `flat`: one thread per target, or with NF_WARPS one warp, whose lanes take rows of cells
// each.
//
// NF_OPEN says how candidates are found: by the table of neighbour rows (NF_GENERAL), or around
// each target in a dense table, NF_K cells to a radius along y and z: in the padded table of one
// set in an open domain (NF_ONE_SET), or in any table of an open, a periodic or a tilted domain
// (NF_AROUND_OPEN and so on). NF_GEOMETRY: lists come with the geometry of their pairs. NF_FILTERS:
// some pairs within the radius are left out (filter.cuh).
#include "imaged.cuh"
#include "masks.cuh"
#include "warps.cuh"
#include "wide.cuh"
#include "work.cuh"

constexpr u32 THREADS = nf::FLAT_THREADS;
using nf::LIST_THREADS;

constexpr bool PERIODIC = NF_OPEN >= NF_AROUND_PERIODIC, TILTED = NF_OPEN == NF_AROUND_TILTED;
// Blocks that a multiprocessor is to hold at a time, by measurement. Walks through boxes take
// registers for targets near a face that the others do not use; with fewer, more warps hide the
// loads. Pair kernels of many numbers need theirs in the inner loop.
#if NF_WORK == NF_PAIRS
constexpr bool MANY_NUMBERS = NF_TARGETS + NF_OUTPUTS > 2;
#else
constexpr bool MANY_NUMBERS = false;
#endif
constexpr int MIN_BLOCKS = !PERIODIC ? 1 : MANY_NUMBERS || DOUBLE ? 4 : 5;
using Cells = Around<NF_K, NF_OPEN == NF_ONE_SET, PERIODIC, TILTED>;

// Where points have left a periodic box, a kernel of its own walks over their proxies. Both are
// started, and one of them has nothing to do: only the device knows which. In double precision
// all candidates are proxies.
#define NF_APART (NF_OPEN >= NF_AROUND_PERIODIC && !NF_WARPS && !NF_DOUBLE)

// Whether their jobs may see images of their own; see `visit_wrapped`.
constexpr bool IMAGE_TABLES = !NF_HALF && (NF_WORK == NF_PAIRS || NF_FILTERS) && !(NF_FILTERS & NF_NEAREST);

// The last parameter of kernels that write lists.
#if NF_GEOMETRY
#define NF_ARRAYS , const __grid_constant__ PairArrays arrays
#else
#define NF_ARRAYS
#endif

#include "flat_lists.cuh"

#if NF_OPEN != NF_GENERAL
// Shows `work` all candidates of a target.
template <class Work>
__device__ __forceinline__ void visit_all(const Walk& walk, const Target& target, const Cells& cells, Work& work) {
    visit_around<NF_HALF>(walk, target, cells, work);
    if constexpr (NOTES_ROWS<Work>) {
        take_back<NF_HALF>(walk, target, cells, work, [&](u32, u32, u32) { work.work.refute(); });
    }
}
#endif

#if NF_WARPS

#if NF_OPEN == NF_GENERAL
using Rows = RowsOfTable<NF_HALF>;
#else
using Rows = RowsAround<NF_HALF, PERIODIC, Cells>;
#endif

#if NF_WORK != NF_LISTS

extern "C" __global__ void __launch_bounds__(THREADS)
flat(const __grid_constant__ KernelWalk walk, const __grid_constant__ Outlet outlet) {
    await_kernels_before();
    const u32 thread = blockIdx.x * THREADS + threadIdx.x, slot = thread / 32, lane = thread % 32;
    if (slot >= walk.targets.count) return;
    const Target target = target_at(walk, slot);
    const Rows rows(walk, target);
    auto work = filtered<Work>(walk, target, walk, target, outlet);
    const float4* const proxies = proxies_of(walk.sources);
    for (u32 row = lane; row < rows.count(); row += 32) visit_row_of(walk, rows, row, target, proxies, work);
    visit_apart<NF_HALF>(walk, target, work, lane, 32);
    __syncwarp();
    work.add_up();
    if (lane == 0) work.finish(target);
}

#else

extern "C" __global__ void __launch_bounds__(LIST_THREADS)
flat_lists(const __grid_constant__ KernelWalk walk, const __grid_constant__ Outlet outlet NF_ARRAYS) {
    await_kernels_before();
    const u32 thread = blockIdx.x * LIST_THREADS + threadIdx.x, lane = thread % 32;
    const u32 slot = outlet.first + thread / 32;
    if (slot >= outlet.behind) return;
    const Target target = target_at(walk, slot);
    const Rows rows(walk, target);
    const u64 start = outlet.starts[slot];
    const u64 behind = write_by_warp(walk, target, rows, start, [&](u64 next) {
#if NF_GEOMETRY
        return filtered<PairWriter>(walk, target, walk, target, PairOutlet{outlet, arrays}, next);
#else
        return filtered<Writer>(walk, target, walk.sources.at, outlet, next);
#endif
    });
    if (lane == 0) {
        outlet.list_starts[target.index] = start;
        outlet.list_counts[target.index] = static_cast<u32>(behind - start);
    }
}

#endif

#else

#if !NF_GEOMETRY

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
flat(const __grid_constant__ KernelWalk walk, const __grid_constant__ Outlet outlet) {
    await_kernels_before();
    const u32 slot = blockIdx.x * THREADS + threadIdx.x;
#if NF_OPEN == NF_AROUND_OPEN
    const bool real = slot < walk.targets.count;
    const Target target = target_at(walk, real ? slot : walk.targets.count - 1);
    const Cells cells(walk, target, false);
    const bool met = cells.warp_meets_sources(real);
    if (!real) return;
    auto work = filtered<Work>(walk, target, walk, target, outlet);
    if (met) {
        visit_given_around(walk, target, work, [&](const Target& seen, auto& job) { visit_all(walk, seen, cells, job); });
    }
#else
    if (slot >= walk.targets.count || (NF_APART && images_differ(walk))) return;
    const Target target = target_at(walk, slot);
    auto work = filtered<Work>(walk, target, walk, target, outlet);
#if NF_OPEN == NF_GENERAL
    const Runs runs = runs_of(walk, target);
    visit_given(walk, target, work, [&](const Target& seen, auto& job) {
        visit_runs<NF_HALF>(walk, seen, runs, images_differ(walk), job);
    });
#else
    const Cells cells(walk, target, false);
    visit_given_around(walk, target, work, [&](const Target& seen, auto& job) { visit_all(walk, seen, cells, job); });
#endif
#endif
    visit_apart<NF_HALF>(walk, target, work);
    work.finish(target);
}

#if NF_APART

// The same where points have left the box.
extern "C" __global__ void __launch_bounds__(THREADS, 4)
flat_wrapped(const __grid_constant__ KernelWalk walk, const __grid_constant__ Outlet outlet) {
    await_kernels_before();
    if (!images_differ(walk)) return;
    __shared__ ImageTables<TILTED> tables;
    if (IMAGE_TABLES) tables.load(walk, threadIdx.x, THREADS);
    for (u32 slot = blockIdx.x * THREADS + threadIdx.x; slot < walk.targets.count; slot += gridDim.x * THREADS) {
        const Target target = target_at(walk, slot);
        auto work = filtered<Work>(walk, target, walk, target, outlet);
        static_assert(IMAGE_TABLES || !SEES_IMAGES<NF_HALF, decltype(work)>, "tables are loaded");
        const Cells cells(walk, target, true);
        visit_wrapped<NF_HALF>(walk, target, tables, work, [&](const Target& seen, auto& job) {
            visit_all(walk, seen, cells, job);
        });
        visit_apart<NF_HALF>(walk, target, work);
        work.finish(target);
    }
}

#endif
#endif

#if NF_WORK == NF_LISTS

#if !NF_GEOMETRY

#include "rings.cuh"

struct Pusher {
    static constexpr bool LEAN = false, IMAGES = false, DISTANCES = false, TAKES_BITS = false;
    Rings& rings;
    const Walk& walk;
    __device__ __forceinline__ const float4* sources() const { return walk.sources.at; }
    __device__ __forceinline__ void visit(bool hit, u32, float, float, float, float, float index) {
        if (hit) rings.push(__float_as_uint(index));
    }
};

// The candidates of all targets of a warp. Lanes go from row to row together, so that `flush` is
// called by all of them after up to 16 candidates of each.
template <class Push>
__device__ __forceinline__ void push_all(
    const Walk& walk, const Target& given, const Target& target, bool real, Rings& rings, Push& pusher) {
#if NF_OPEN == NF_GENERAL
    const bool any_wrapped = images_differ(walk);
    Runs runs = runs_of(walk, given);
    Image image = runs.image;
    u32 k = 0, end = 0;
    bool more = real;
    while (__any_sync(~0u, more)) {
        for (u32 step = 0; more && step < 16; step++) {
            if (k == end) {
                more = runs.next(walk, k, end);
                if (!more) break;
                image = runs.image;
                image.shift = shift_to(walk, image);
            }
            const float4 source = __ldg(pusher.sources() + k);
            visit_pair<NF_HALF>(walk, target, k, source, __float_as_uint(source.w), image, true, any_wrapped, pusher);
            k++;
        }
        if (__any_sync(~0u, rings.pushed - rings.written >= 16)) rings.flush(false);
    }
#else
    const bool wrapped = PERIODIC && images_differ(walk);
    const Cells cells(walk, given, wrapped);
    // Pushes up to 16 candidates of every lane at a time; `some` is called until no lane has more.
    const auto in_step = [&](bool more, auto some) {
        while (true) {
            if (more) more = some();
            if (__any_sync(~0u, rings.pushed - rings.written >= 16)) rings.flush(false);
            if (!__any_sync(~0u, more)) break;
        }
    };
    const bool inside = real && cells.inside && !wrapped, near = real && !inside;
    if (__any_sync(~0u, inside)) {
        cells.rows<true>([&](int, int, bool reached, auto found) {
            uint2 run = make_uint2(0, 0);
            if (reached && inside) run = found.run();
            in_step(run.x < run.y, [&] {
                const u32 stop = min(run.y, run.x + 16);
                visit_run<NF_HALF>(walk, target, make_uint2(run.x, stop), pusher);
                run.x = stop;
                return run.x < run.y;
            });
        });
    }
    if (__any_sync(~0u, near)) {
        cells.rows_one_by_one<true, true>([&](int, int, bool reached, auto found) {
            Cells::Row row = {};
            u32 parts = 0;
            if (reached && near) {
                row = found.row();
                parts = cells.parts(row);
            }
            uint2 run = make_uint2(0, 0);
            Image seen = Image();
            in_step(parts != 0, [&] {
                if (run.x >= run.y) {
                    const RowPart part = cells.part(row, parts);
                    run = part.run;
                    seen = cells.image_of(walk, row, part);
                    parts &= parts - 1;
                }
                const u32 stop = min(run.y, run.x + 16);
                for (; run.x < stop; run.x++) {
                    const float4 source = __ldg(pusher.sources() + run.x);
                    const u32 index = __float_as_uint(source.w);
                    visit_pair<NF_HALF>(walk, target, run.x, source, index, seen, true, wrapped, pusher);
                }
                return run.x < run.y || parts != 0;
            });
        });
    }
#endif
#if NF_WIDE
    // Lanes go from one to the next together here too.
    const u32 apart = real ? sources_apart(walk, target) : 0;
    const Target seen = seen_apart(walk, target);
    pusher.filter.largest = __uint_as_float(INFINITE_BITS);
    for (u64 one = 0; __any_sync(~0u, one < apart); one++) {
        if (one < apart) {
            visit_wide_pair<NF_HALF>(walk, seen, source_apart(walk, target, static_cast<u32>(one)), pusher);
        }
        if (__any_sync(~0u, rings.pushed - rings.written >= 16)) rings.flush(false);
    }
#endif
    rings.flush(true);
}

#endif

#if NF_OPEN != NF_GENERAL
// Notes whether the last candidate is a neighbour, and with NF_GEOMETRY its image.
struct HitNote {
    static constexpr bool LEAN = false, IMAGES = NF_GEOMETRY, DISTANCES = false, TAKES_BITS = false;
    bool hit;
#if NF_GEOMETRY
    i64 a, b, c;
    __device__ __forceinline__ void image(i64 of_a, i64 of_b, i64 of_c) {
        a = of_a;
        b = of_b;
        c = of_c;
    }
#endif
    __device__ __forceinline__ const float4* sources() const { return nullptr; }
    __device__ __forceinline__ void visit(bool is_hit, u32, float, float, float, float, float) { hit = is_hit; }
};

// The entries of one list, which the lanes of a warp write side by side.
struct Side {
    u32* to;
    u32 room, written;

    __device__ __forceinline__ Side(const Outlet& outlet, u64 start)
        : to(outlet.entries + (start - outlet.base)), written(0) {
        const u64 left = start < outlet.capacity ? outlet.capacity - start : 0;
        room = static_cast<u32>(min(left, static_cast<u64>(NONE)));
    }

    // By all lanes together. Lists do not say which sorted source it is.
    __device__ __forceinline__ void add(const HitNote& found, u32 entry, u32) {
        const bool hit = found.hit;
        const u32 hits = __ballot_sync(~0u, hit);
        u32 before;
        asm("mov.u32 %0, %%lanemask_lt;" : "=r"(before));
        const u32 place = written + __popc(hits & before);
        if (hit && place < room) to[place] = entry;
        written += __popc(hits);
    }
};

// Adds the neighbours among the sorted points of a run, which lanes take side by side. PLAIN: no
// image vector is needed.
template <bool PLAIN, class To>
__device__ __forceinline__ void add_run(
    const Walk& walk, const Target& target, uint2 run, const Image& image, bool wrapped, To& side) {
    const u32 lane = threadIdx.x % 32;
    const float r2 = target.index == NONE ? 0.0f : limit_of(walk, target);
    const TargetFilter filter(walk, target);
    #pragma unroll 1
    for (u32 k = run.x + lane; k - lane < run.y; k += 32) {
        const float4 source = __ldg(walk.sources.at + min(k, run.y - 1));
        const u32 index = __float_as_uint(source.w);
        if (PLAIN && !DOUBLE) {
            const float squared = Difference(target, source).squared;
            bool hit = squared <= r2 && k < run.y && k != target.itself;
            if (NF_HALF) hit = hit && wanted<NF_HALF>(target.index, index, 0, 0, 0);
            side.add(HitNote{hit && filter.keeps(k, squared)}, index, k);
        } else {
            auto found = filtered_by<HitNote>(filter);
            const u32 real = min(k, run.y - 1);
            visit_given(walk, target, found, [&](const Target& seen, auto& note) {
                visit_pair<NF_HALF>(walk, seen, real, source, index, image, k < run.y, wrapped, note);
            });
            side.add(found, index, real);
        }
    }
}

// Writes the list of a target by all lanes of a warp, which find its rows side by side and then
// take the candidates of a row side by side. `side_from` makes what writes the entries.
template <class SideFrom>
__device__ __forceinline__ void write_side_by_side(const Walk& walk, const Target& target, SideFrom side_from) {
    constexpr u32 ROWS = Cells::ROWS * Cells::ROWS;
    const bool wrapped = PERIODIC && images_differ(walk);
    const Cells cells(walk, target, wrapped);
    const u32 lane = threadIdx.x % 32;
    auto side = side_from();
    #pragma unroll 1
    for (u32 first = 0; first < ROWS; first += 32) {
        Cells::Row mine = {};
        RowPart own = {};
        u32 parts = 0;
        if (first + lane < ROWS) {
            cells.one_row(first + lane, [&](auto found) {
                mine = found.row();
                parts = cells.parts(mine);
                if (parts) own = cells.part(mine, parts);
            });
        }
        const bool any = own.run.x < own.run.y || (parts & (parts - 1)) != 0;
        #pragma unroll 1
        for (u32 rows = __ballot_sync(~0u, any); rows; rows &= rows - 1) {
            const int from = __ffs(rows) - 1;
            RowPart part = {make_uint2(__shfl_sync(~0u, own.run.x, from), __shfl_sync(~0u, own.run.y, from)), 0};
            if (!PERIODIC) {
                add_run<true>(walk, target, part.run, Image(), false, side);
                continue;
            }
            part.image = __shfl_sync(~0u, own.image, from);
            const Cells::Row row = {
                __shfl_sync(~0u, mine.before, from), __shfl_sync(~0u, mine.image_y, from),
                __shfl_sync(~0u, mine.image_z, from), __shfl_sync(~0u, mine.low, from),
                __shfl_sync(~0u, mine.high, from)};
            u32 left = __shfl_sync(~0u, parts, from);
            while (true) {
                const Image image = cells.image_of(walk, row, part);
                if (!wrapped && (image.a | image.b | image.c) == 0) {
                    add_run<true>(walk, target, part.run, image, false, side);
                } else {
                    add_run<false>(walk, target, part.run, image, wrapped, side);
                }
                left &= left - 1;
                if (!left) break;
                part = cells.part(row, left);
            }
        }
    }
#if NF_WIDE
    add_apart<HitNote>(walk, target, side);
#endif
}

// Maximum number of targets without complete masks in a block whose lists are each found by a warp.
// Where more are, the block is walked through rings: if nearly all rows are that long, a thread per
// target takes less time.
constexpr u32 FEW = LIST_THREADS / 2;

__device__ __forceinline__ MaskWords<const u32> words_of(const Walk& walk, const Outlet& outlet, u32 slot) {
    return {outlet.masks + slot, walk.targets.count};
}
#endif

#if !NF_GEOMETRY

extern "C" __global__ void __launch_bounds__(LIST_THREADS)
flat_lists(const __grid_constant__ KernelWalk walk, const __grid_constant__ Outlet outlet) {
    await_kernels_before();
    __shared__ u32 rings_of_warps[LIST_THREADS / 32 * 32 * 33];
    const u32 slot = outlet.first + blockIdx.x * LIST_THREADS + threadIdx.x;
    const bool real = slot < outlet.behind;
#if NF_OPEN != NF_GENERAL
    // Behind flat_expand, which has written all other lists.
    if (outlet.masks) {
        __shared__ u32 few[FEW], found;
        if (threadIdx.x == 0) found = 0;
        const bool left = real && words_of(walk, outlet, slot).incomplete(Cells::ROWS - 1);
        const u32 count = __syncthreads_count(left);
        if (count <= FEW) {
            if (left) few[atomicAdd(&found, 1u)] = slot;
            if (count > 0) __syncthreads();
            for (u32 k = threadIdx.x / 32; k < count; k += LIST_THREADS / 32) {
                const Target one = target_at(walk, few[k]);
                const u64 start = outlet.starts[one.slot];
                write_side_by_side(walk, one, [&] { return Side(outlet, start); });
            }
            return;
        }
    }
#endif
    const Target target = target_at(walk, real ? slot : outlet.behind - 1);
    const u64 start = outlet.starts[target.slot];
    Rings rings;
    rings.ring = rings_of_warps + threadIdx.x / 32 * (32 * 33);
    rings.out = outlet.entries + (start - outlet.base);
    rings.room = start < outlet.capacity ? outlet.capacity - start : 0;
    rings.pushed = rings.written = 0;
    rings.lane = threadIdx.x & 31;
#if NF_FILTERS
    auto pusher = filtered<Pusher>(walk, target, rings, walk);
#else
    // What `filtered` gives too, but with the registers that plain lists were measured with.
    Pusher pusher{rings, walk};
#endif
    visit_given(walk, target, pusher, [&](const Target& seen, auto& push) {
        push_all(walk, target, seen, real, rings, push);
    });
    if (real) {
        outlet.list_starts[target.index] = start;
        outlet.list_counts[target.index] = rings.pushed;
    }
}

#endif

#if NF_OPEN != NF_GENERAL

// With `tables` where points have left the box, else null.
template <bool WRAPPED>
__device__ __forceinline__ void write_masks(
    const Walk& walk, const Outlet& outlet, u32 slot, const ImageTables<TILTED>* tables) {
    const Target target = target_at(walk, slot);
    const Cells cells(walk, target, WRAPPED);
    const MaskWords<u32> words = {outlet.masks + slot, walk.targets.count};
    auto masker = filtered<Masker>(walk, target, walk);
    const auto mask = [&](const Target& seen, auto& work) {
        outlet.counts[slot] = mask_candidates<NF_HALF>(walk, seen, cells, masker, work, words);
    };
    if constexpr (WRAPPED) {
        static_assert(IMAGE_TABLES || !SEES_IMAGES<NF_HALF, decltype(masker)>, "tables are loaded");
        visit_wrapped<NF_HALF>(walk, target, *tables, masker, mask);
    } else {
        visit_given_around(walk, target, masker, mask);
    }
#if NF_WIDE
    // These have no bits: flat_expand compares them again.
    visit_apart<NF_HALF>(walk, target, masker);
    outlet.counts[slot] = masker.count;
#endif
}

// Counts the neighbours of every target and writes its masks, and the indices of sorted sources.
extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
flat_masks(const __grid_constant__ KernelWalk walk, const __grid_constant__ Outlet outlet) {
    await_kernels_before();
    const u32 thread = blockIdx.x * THREADS + threadIdx.x;
    for (u32 source = thread; source < walk.sources.count; source += gridDim.x * THREADS) {
        outlet.indices[source] = __float_as_uint(walk.sources.at[source].w);
    }
    if (thread >= walk.targets.count || (NF_APART && images_differ(walk))) return;
    write_masks<false>(walk, outlet, thread, nullptr);
}

#if NF_APART

// The counts and masks where points have left the box.
extern "C" __global__ void __launch_bounds__(THREADS, 4)
flat_masks_wrapped(const __grid_constant__ KernelWalk walk, const __grid_constant__ Outlet outlet) {
    await_kernels_before();
    if (!images_differ(walk)) return;
    __shared__ ImageTables<TILTED> tables;
    if (IMAGE_TABLES) tables.load(walk, threadIdx.x, THREADS);
    for (u32 slot = blockIdx.x * THREADS + threadIdx.x; slot < walk.targets.count; slot += gridDim.x * THREADS) {
        write_masks<true>(walk, outlet, slot, &tables);
    }
}

#endif

// Starts to bring all words of the targets of a warp nearer, a lane a row: later every row would be
// waited for in turn.
__device__ __forceinline__ void prefetch(const MaskWords<const u32>& words) {
    constexpr int ROWS = Cells::ROWS - 1;
    for (int row = threadIdx.x % 32; row < ROWS * ROWS; row += 32) {
        asm volatile("prefetch.global.L2 [%0];" : : "l"(&words.at(0, row, ROWS)));
    }
}

#if NF_GEOMETRY
#include "flat_pairs.cuh"
#else

// Writes the lists of the targets whose masks were written. The lists of a block are one range of
// entries: they are staged in shared memory, `room` at a time, and written side by side. Targets
// whose masks are not complete are left to flat_lists, which overwrites what is written in the
// place of their lists; where there are more than a few, the whole block is.
extern "C" __global__ void __launch_bounds__(LIST_THREADS, 10)
flat_expand(const __grid_constant__ KernelWalk walk, const __grid_constant__ Outlet outlet, const u32 room) {
    await_kernels_before();
    extern __shared__ u32 stage[];
    const u32 first = outlet.first + blockIdx.x * LIST_THREADS;
    const u32 slot = first + threadIdx.x;
    const bool real = slot < outlet.behind;
    const Target target = target_at(walk, real ? slot : outlet.behind - 1);
    const MaskWords<const u32> words = words_of(walk, outlet, target.slot);
    prefetch(words);
    const bool left = real && words.incomplete(Cells::ROWS - 1);
    if (__syncthreads_count(left) > FEW) return;
    const u64 start = outlet.starts[target.slot];
    const u32 count = real ? static_cast<u32>(outlet.starts[target.slot + 1] - start) : 0;
    const u64 begin = outlet.starts[first];
    const u64 entries = outlet.starts[min(first + LIST_THREADS, outlet.behind)] - begin;
    const bool wrapped = PERIODIC && images_differ(walk);
    const Cells cells(walk, target, wrapped);
    for (u64 staged = 0; staged < entries; staged += room) {
        const bool meets = start - begin < staged + room && start + count > begin + staged;
#if NF_WIDE
        // The lists of wide targets are left to flat_wide_lists.
        if (!__syncthreads_or(meets && count > 0 && !has_block(walk, target))) continue;
#endif
        if (count > 0 && meets && !left) {
            // Large for a list that begins before this part, until the part begins.
            u32 place = static_cast<u32>(start - begin - staged);
            const u32* const indices = outlet.indices;
            const auto index_of = [indices](u32 k, u32) { return __ldg(indices + k); };
            expand_masks(cells, words, index_of, [&](u32 entry) {
                if (place < room) stage[place] = entry;
                place++;
            });
#if NF_WIDE
            auto stager = filtered<Stager>(walk, target, stage, room, place);
            visit_apart<NF_HALF>(walk, target, stager);
#endif
        }
        __syncthreads();
        const u32 length = static_cast<u32>(min(entries - staged, static_cast<u64>(room)));
        for (u32 entry = threadIdx.x; entry < length; entry += LIST_THREADS) {
            const u64 to = begin + staged + entry;
            if (to < outlet.capacity) outlet.entries[to - outlet.base] = stage[entry];
        }
        __syncthreads();
    }
    if (real) {
        outlet.list_starts[target.index] = start;
        outlet.list_counts[target.index] = count;
    }
}

#endif
#endif
#endif
#endif
#include "flat_wide.cuh"

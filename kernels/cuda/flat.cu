// Strategy `flat`: one thread per target.
//
// NF_OPEN says how candidates are found: by the table of neighbour rows (NF_GENERAL), in the padded
// table of one set in an open domain, NF_K cells to a radius (NF_ONE_SET), or around each target in
// a dense table of an open, a periodic or a tilted domain (NF_AROUND_OPEN and so on).
#include "around.cuh"
#include "work.cuh"

constexpr u32 THREADS = nf::FLAT_THREADS;
using nf::LIST_THREADS;

constexpr bool PERIODIC = NF_OPEN >= NF_AROUND_PERIODIC, TILTED = NF_OPEN == NF_AROUND_TILTED;

template <class Visitor>
__device__ __forceinline__ void visit(const Walk& walk, const Target& target, Visitor& work) {
#if NF_OPEN == NF_GENERAL
    visit_general<NF_HALF>(walk, target, work);
#elif NF_OPEN == NF_ONE_SET
    visit_open<NF_K, NF_HALF>(walk, target, work);
#else
    visit_around<PERIODIC, TILTED, NF_HALF>(walk, target, work);
#endif
}

extern "C" __global__ void __launch_bounds__(THREADS)
flat(const __grid_constant__ Walk walk, const __grid_constant__ Outlet outlet) {
    const u32 slot = blockIdx.x * THREADS + threadIdx.x;
    if (slot >= walk.targets.count) return;
    const Target target = target_at(walk, slot);
    Work work(walk, target, outlet);
    visit(walk, target, work);
    work.finish(target);
}

#if NF_WORK == NF_LISTS

// Entries found by the lanes of a warp, on their way to memory. Single entries would cost a memory
// transaction each; here every lane has a ring of 32, and whenever one holds 16 or more the warp
// writes 16 of them side by side. Entry e of lane l is at (e % 32) * 33 + l, so that neither
// pushing nor writing out meets a bank twice.
struct Rings {
    u32* ring;
    u32* out;           // list of this lane
    u64 room;           // entries it may have
    u32 pushed, written, lane;

    __device__ __forceinline__ void push(u32 entry) {
        ring[(pushed & 31) * 33 + lane] = entry;
        pushed++;
    }

    // By all lanes together: writes out 16 entries of every lane that holds as many, or, in the
    // end, all that is left.
    __device__ __forceinline__ void flush(bool last) {
        __syncwarp();
        const u32 held = pushed - written;
        const bool ready = last ? held > 0 : held >= 16;
        u32 waiting = __ballot_sync(~0u, ready);
        const u32 half = lane / 16, k = lane % 16;
        while (waiting) {
            const int first = __ffs(waiting) - 1;
            waiting &= waiting - 1;
            const int second = waiting ? __ffs(waiting) - 1 : first;
            const bool idle = half == 1 && second == first;
            waiting &= waiting - 1;
            const int from = half ? second : first;
            const u32 begin = __shfl_sync(~0u, written, from);
            const u32 count = min(__shfl_sync(~0u, held, from), 16u);
            const u64 most = __shfl_sync(~0u, room, from);
            u32* const to = reinterpret_cast<u32*>(__shfl_sync(~0u, reinterpret_cast<u64>(out), from));
            if (!idle && k < count && begin + k < most) to[begin + k] = ring[((begin + k) & 31) * 33 + from];
        }
        if (ready) written += min(held, 16u);
        __syncwarp();
    }
};

#if NF_OPEN != NF_ONE_SET
struct Pusher {
    Rings& rings;
    const Walk& walk;
    __device__ __forceinline__ float4 source(u32 k) const { return __ldg(walk.sources.at + k); }
    __device__ __forceinline__ void visit(bool hit, u32, float, float, float, float, float index) {
        if (hit) rings.push(__float_as_uint(index));
    }
};

#endif

#if NF_OPEN >= NF_AROUND_OPEN

// The candidates of a part of a row, 16 at most, whose lanes look at parts of their own.
__device__ __forceinline__ void push_some(const Walk& walk, const Target& target, uint2& run, u32 image,
                                          bool wrapped, Pusher& pusher) {
    const u32 stop = min(run.y, run.x + 16);
    if (!PERIODIC || (image == HERE && !wrapped)) {
        visit_run<NF_HALF>(walk, target, make_uint2(run.x, stop), pusher);
    } else {
        const Image seen = image_of(walk.lattice, image);
        for (u32 k = run.x; k < stop; k++) {
            const float4 source = pusher.source(k);
            visit_pair<NF_HALF>(walk, target, k, source, __float_as_uint(source.w), seen, true, wrapped, pusher);
        }
    }
    run.x = max(run.x, stop);
}

// The candidates of all targets of a warp. Lanes go from row to row together, so that `flush` is
// called by all of them after up to 16 candidates of each.
__device__ __forceinline__ void push_all(const Walk& walk, const Target& target, bool real, Rings& rings) {
    Pusher pusher{rings, walk};
    const bool wrapped = PERIODIC && images_differ(walk);
    Around<PERIODIC, TILTED> around(walk, target, wrapped);
    if (!real) around.last_z = around.first_z - 1;
    #pragma unroll 1
    for (int z = around.first_z; __any_sync(~0u, z <= around.last_z); z++) {
        const bool slice = z <= around.last_z && around.take_slice(z);
        #pragma unroll 1
        for (int y = around.first_y; __any_sync(~0u, slice && y <= around.last_y); y++) {
            u32 parts = slice && y <= around.last_y && around.take_row(y) ? around.parts() : 0;
            uint2 run = make_uint2(0, 0);
            u32 image = HERE;
            while (true) {
                if (run.x >= run.y && parts) {
                    const Part part = around.part(parts & (0u - parts));
                    run = part.run;
                    image = part.image;
                    parts &= parts - 1;
                }
                if (run.x < run.y) push_some(walk, target, run, image, wrapped, pusher);
                if (__any_sync(~0u, rings.pushed - rings.written >= 16)) rings.flush(false);
                if (!__any_sync(~0u, run.x < run.y || parts)) break;
            }
        }
    }
    rings.flush(true);
}

#else

// The candidates of all targets of a warp, up to 16 of each between two calls of `flush`.
__device__ __forceinline__ void push_all(const Walk& walk, const Target& target, bool real, Rings& rings) {
#if NF_OPEN == NF_ONE_SET
    OpenCells<NF_K> cells(walk, target);
    const Points& points = walk.sources;
    cells.stay_inside(points);
    const float r2 = walk.lattice.r2;
    const u32 width = points.dims[0], slice_cells = points.dims[0] * points.dims[1];
    u32 slice = cells.corner(points);
    float dz = -NF_K;
    #pragma unroll 1
    for (int z = 0; z <= 2 * NF_K; z++, slice += slice_cells, dz += 1.0f) {
        const float left = cells.left_in_slice(dz);
        #pragma unroll
        for (int y = 0; y <= 2 * NF_K; y++) {
            const float chord = left - cells.gap_y[y];
            uint2 run = make_uint2(0, 0);
            if (chord >= 0.0f && real) run = cells.run(points.starts, slice + y * width, chord);
            while (true) {
                const u32 stop = min(run.y, run.x + 16);
                // Two at a time, as in visit_open.
                #pragma unroll 1
                for (; run.x < stop; run.x += 2) {
                    #pragma unroll
                    for (u32 j = 0; j < 2; j++) {
                        const float4 source = __ldg(points.at + run.x + j);
                        const float d2 = squared(__fsub_rn(source.x, target.x), __fsub_rn(source.y, target.y),
                                                 __fsub_rn(source.z, target.z));
                        bool hit = d2 <= r2 && run.x + j != target.itself;
                        if (j > 0) hit = hit && run.x + j < run.y;
                        if (NF_HALF) hit = hit && wanted<NF_HALF>(target.index, __float_as_uint(source.w), 0, 0, 0);
                        if (hit) rings.push(__float_as_uint(source.w));
                    }
                }
                if (__any_sync(~0u, rings.pushed - rings.written >= 16)) rings.flush(false);
                if (!__any_sync(~0u, run.x < run.y)) break;
            }
        }
    }
#else
    Pusher pusher{rings, walk};
    const bool any_wrapped = images_differ(walk);
    Runs runs = runs_of(walk, target);
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
            const float4 source = pusher.source(k);
            visit_pair<NF_HALF>(walk, target, k, source, __float_as_uint(source.w), image, true, any_wrapped, pusher);
            k++;
        }
        if (__any_sync(~0u, rings.pushed - rings.written >= 16)) rings.flush(false);
    }
#endif
    rings.flush(true);
}

#endif

extern "C" __global__ void __launch_bounds__(LIST_THREADS)
flat_lists(const __grid_constant__ Walk walk, const __grid_constant__ Outlet outlet) {
    __shared__ u32 rings_of_warps[LIST_THREADS / 32 * 32 * 33];
    const u32 slot = outlet.first + blockIdx.x * LIST_THREADS + threadIdx.x;
    const bool real = slot < outlet.behind;
    const Target target = target_at(walk, real ? slot : outlet.behind - 1);
    const u64 start = outlet.starts[target.slot];
    Rings rings;
    rings.ring = rings_of_warps + threadIdx.x / 32 * (32 * 33);
    rings.out = outlet.entries + (start - outlet.base);
    rings.room = start < outlet.capacity ? outlet.capacity - start : 0;
    rings.pushed = rings.written = 0;
    rings.lane = threadIdx.x & 31;
    push_all(walk, target, real, rings);
    if (real) {
        outlet.list_starts[target.index] = start;
        outlet.list_counts[target.index] = rings.pushed;
    }
}

#endif

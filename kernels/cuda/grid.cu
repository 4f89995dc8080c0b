// Sorts points into cells on the device: check, count, scan, place, settle.
//
// Counting sort. The order within a cell is arbitrary after `grid_place` (atomics), and
// `grid_settle` brings every cell into the order of the caller's indices, so that the sorted
// order is that of the CPU: stable by (cell, index). NF_DOUBLE: positions are in double precision.
#include "contract.cuh"
#include "look_back.cuh"

// Status that the host reads after the step.
struct Status {
    u32 bad;        // points with a coordinate that is not finite
    u32 first_bad;  // the first of them
    u32 outside;    // points outside the box of the table, or in the empty cells around it
    u32 wrapped;    // of points outside the periodic box: NEAR_WRAPPED or FAR_WRAPPED
    u32 large_cells;    // cells with more than LARGE_CELL points
    u32 ticket;     // tiles of the scan begun
    u32 bricks;     // bricks of a sparse table
    // whether an earlier sort that the host has not looked at had bad or outside points
    u32 failed;
    u32 bounds[6];  // smallest and largest coordinates, as `sortable` integers…
    u64 pairs;      // list_scan: the longest sum of all lists since the host looked
    u64 double_bounds[6];  // …the same in double precision
};

// Integers that sort like coordinates, and those of all bounds.
#if NF_DOUBLE
using Sortable = u64;
#else
using Sortable = u32;
#endif
constexpr Sortable NO_BOUND = static_cast<Sortable>(~0ull);

__device__ __forceinline__ Sortable* bounds_of(Status* status) {
#if NF_DOUBLE
    return status->double_bounds;
#else
    return status->bounds;
#endif
}


// In cells of more points than this, ranks are not found by counting.
constexpr u32 LARGE_CELL = 1024;

constexpr u32 THREADS = nf::GRID_THREADS;

// Resets the status and the tiles of a scan before a step. With `keep` the host has not yet read
// the status of the step before: the entries that it must read stay.
extern "C" __global__ void __launch_bounds__(THREADS)
grid_reset(Status* status, u64* tiles, u32 tiles_in_all, u32 keep) {
    await_kernels_before();
    const u32 i = blockIdx.x * THREADS + threadIdx.x;
    if (i < tiles_in_all) tiles[i] = 0;
    if (i > 0) return;
    Status next = {0, NONE, 0, 0, 0, 0, 0, 0, {NONE, NONE, NONE, 0, 0, 0}, 0, {~0ull, ~0ull, ~0ull, 0, 0, 0}};
    if (keep) {
        const Status last = *status;
        next.failed = last.failed || last.bad || last.outside;
        next.large_cells = last.large_cells;
        next.pairs = last.pairs;
        for (int k = 0; k < 6; k++) next.bounds[k] = last.bounds[k];
        for (int k = 0; k < 6; k++) next.double_bounds[k] = last.double_bounds[k];
    }
    *status = next;
}

// An integer that sorts like the number, so that atomics can find the smallest and the largest.
__device__ __forceinline__ u32 sortable(float value) {
    const u32 bits = __float_as_uint(value);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

__device__ __forceinline__ u64 sortable(double value) {
    const u64 bits = static_cast<u64>(__double_as_longlong(value));
    return bits >> 63 ? ~bits : bits | 1ull << 63;
}

// The least, or the largest, of the numbers of all lanes.
template <bool LEAST>
__device__ __forceinline__ Sortable of_warp(Sortable value) {
#if __CUDA_ARCH__ >= 800 && !NF_DOUBLE
    return LEAST ? __reduce_min_sync(~0u, value) : __reduce_max_sync(~0u, value);
#else
    for (int step = 16; step > 0; step /= 2) {
        const Sortable other = __shfl_xor_sync(~0u, value, step);
        value = LEAST ? min(value, other) : max(value, other);
    }
    return value;
#endif
}

// Smallest and largest coordinates of the points that a thread looks at.
struct Extent {
    Sortable low[3], high[3];

    __device__ __forceinline__ Extent() : low{NO_BOUND, NO_BOUND, NO_BOUND}, high{0, 0, 0} {}

    __device__ __forceinline__ void add(const Given* at) {
        for (int axis = 0; axis < 3; axis++) {
            low[axis] = min(low[axis], sortable(at[axis]));
            high[axis] = max(high[axis], sortable(at[axis]));
        }
    }

    // By all threads of a block together: those of all of them, to the status. A block's bounds
    // come first, and the status is looked at, because atomics on few places of memory wait for
    // each other.
    __device__ __forceinline__ void publish(Status* status) const {
        __shared__ Sortable lowest_shared[3], highest_shared[3];
        if (threadIdx.x < 3) {
            lowest_shared[threadIdx.x] = NO_BOUND;
            highest_shared[threadIdx.x] = 0;
        }
        __syncthreads();
        for (int axis = 0; axis < 3; axis++) {
            const Sortable lowest = of_warp<true>(low[axis]), highest = of_warp<false>(high[axis]);
            if ((threadIdx.x & 31) == 0) {
                atomicMin(&lowest_shared[axis], lowest);
                atomicMax(&highest_shared[axis], highest);
            }
        }
        __syncthreads();
        if (threadIdx.x >= 3) return;
        const Sortable lowest = lowest_shared[threadIdx.x], highest = highest_shared[threadIdx.x];
        Sortable* const bounds = bounds_of(status);
        volatile const Sortable* const known = bounds;
        if (lowest < known[threadIdx.x]) atomicMin(&bounds[threadIdx.x], lowest);
        if (highest > known[3 + threadIdx.x]) atomicMax(&bounds[3 + threadIdx.x], highest);
    }
};

extern "C" __global__ void __launch_bounds__(THREADS)
grid_bounds(const Given* __restrict__ positions, u32 count, Status* status) {
    await_kernels_before();
    Extent extent;
    u32 bad = 0, first = NONE;
    for (u64 i = blockIdx.x * THREADS + threadIdx.x; i < count; i += gridDim.x * THREADS) {
        bool finite = true;
        Given at[3];
        for (int axis = 0; axis < 3; axis++) {
            at[axis] = positions[3 * i + axis];
            finite = finite && isfinite(at[axis]);
        }
        if (!finite) {
            bad++;
            first = min(first, static_cast<u32>(i));
            continue;
        }
        extent.add(at);
    }
    extent.publish(status);
    if (bad) {
        atomicAdd(&status->bad, bad);
        atomicMin(&status->first_bad, first);
    }
}

// What a point is that lies this many boxes outside the periodic box along an axis.
__device__ __forceinline__ u32 wrapped_by(int boxes) {
    if (boxes == 0) return 0;
    return static_cast<u32>(boxes) + NEAR_BOXES <= 2 * NEAR_BOXES ? NEAR_WRAPPED : FAR_WRAPPED;
}

// Notes it. The status is looked at first, because atomics on one place wait for each other.
__device__ __forceinline__ void note_wrapped(Status* status, u32 found) {
    if (found == 0) return;
    volatile const u32* const known = &status->wrapped;
    if (*known < found) atomicMax(&status->wrapped, found);
}

// Cell number and arbitrary rank in the cell of every point; counts the points of every cell. Adds
// the coordinates to the extent.
template <bool PERIODIC>
__device__ __forceinline__ void keys(
    const Given* positions, u32 count, const Lattice& lattice, const Points& box, u32* counts,
    uint2* key_and_rank, Status* status, Extent& extent) {
    const u32 i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= count) return;
    const Given x = positions[3 * static_cast<u64>(i)];
    const Given y = positions[3 * static_cast<u64>(i) + 1];
    const Given z = positions[3 * static_cast<u64>(i) + 2];
    key_and_rank[i] = make_uint2(NONE, 0);
    if (!(isfinite(x) && isfinite(y) && isfinite(z))) {
        atomicAdd(&status->bad, 1u);
        atomicMin(&status->first_bad, i);
        return;
    }
    const Given at[3] = {x, y, z};
    extent.add(at);
    u32 cell[3];
    bool outside = false;
    u32 wrapped = 0;
    for (int axis = 0; axis < 3; axis++) {
        const Place place = PERIODIC ? place_of(lattice, axis, x, y, z) : open_place(lattice, axis, at[axis]);
        const double offset = place.cell - static_cast<double>(box.origin[axis]);
        const double first = static_cast<double>(box.pad[axis]);
        const double behind = static_cast<double>(box.dims[axis]) - first;
        outside = outside || !(offset >= first && offset < behind);
        if (PERIODIC) wrapped = max(wrapped, wrapped_by(place.wraps));
        cell[axis] = static_cast<u32>(static_cast<int>(offset));
    }
    if (outside) {
        atomicAdd(&status->outside, 1u);
        return;
    }
    if (PERIODIC) note_wrapped(status, wrapped);
    const u32 key = (cell[2] * box.dims[1] + cell[1]) * box.dims[0] + cell[0];
    key_and_rank[i] = make_uint2(key, atomicAdd(&counts[key], 1u));
}

extern "C" __global__ void __launch_bounds__(THREADS)
grid_keys_open(const Given* positions, u32 count, const __grid_constant__ Lattice lattice,
               const __grid_constant__ Points box, u32* counts, uint2* key_and_rank, Status* status) {
    await_kernels_before();
    Extent unused;
    keys<false>(positions, count, lattice, box, counts, key_and_rank, status, unused);
}

// The same around a box. The host looks whether the coordinates still reach as far as the cells
// are made for.
extern "C" __global__ void __launch_bounds__(THREADS)
grid_keys_periodic(const Given* positions, u32 count, const __grid_constant__ Lattice lattice,
                   const __grid_constant__ Points box, u32* counts, uint2* key_and_rank, Status* status) {
    await_kernels_before();
    Extent extent;
    keys<true>(positions, count, lattice, box, counts, key_and_rank, status, extent);
    extent.publish(status);
}

// Cell of a point of any domain.
__device__ __forceinline__ longlong3 cell_of(const Lattice& lattice, Given x, Given y, Given z) {
    return make_longlong3(static_cast<i64>(place_of(lattice, 0, x, y, z).cell),
                          static_cast<i64>(place_of(lattice, 1, x, y, z).cell),
                          static_cast<i64>(place_of(lattice, 2, x, y, z).cell));
}

// Sparse tables, first half: every point finds the slot of its brick, or claims one for it by
// leaving its index there; others compare their brick with that point's. The claimer numbers the
// brick. `slots` and `ids` are NONE throughout before.
extern "C" __global__ void __launch_bounds__(THREADS)
grid_claim_bricks(const Given* __restrict__ positions, u32 count, const __grid_constant__ Lattice lattice,
                  u32 mask, u32* slots, u32* ids, Brick* bricks, uint2* key_and_rank, Status* status) {
    await_kernels_before();
    const u32 i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= count) return;
    const Given* const mine = positions + 3 * static_cast<u64>(i);
    if (!(isfinite(mine[0]) && isfinite(mine[1]) && isfinite(mine[2]))) {
        if (!lattice.periodic) atomicAdd(&status->bad, 1u);
        atomicMin(&status->first_bad, i);
        key_and_rank[i] = make_uint2(NONE, 0);
        return;
    }
    for (int axis = 0; axis < 3; axis++) {
        note_wrapped(status, wrapped_by(place_of(lattice, axis, mine[0], mine[1], mine[2]).wraps));
    }
    const longlong3 cell = cell_of(lattice, mine[0], mine[1], mine[2]);
    const i64 brick = cell.x >> BRICK_SHIFT;
    for (u32 slot = brick_hash(brick, cell.y, cell.z) & mask;; slot = (slot + 1) & mask) {
        const u32 holder = atomicCAS(&slots[slot], NONE, i);
        if (holder == NONE) {
            const u32 id = atomicAdd(&status->bricks, 1u);
            bricks[id] = Brick{brick, cell.y, cell.z};
            ids[slot] = id;
        } else {
            const Given* const other = positions + 3 * static_cast<u64>(holder);
            const longlong3 held = cell_of(lattice, other[0], other[1], other[2]);
            if (held.x >> BRICK_SHIFT != brick || held.y != cell.y || held.z != cell.z) continue;
        }
        key_and_rank[i] = make_uint2(slot, static_cast<u32>(cell.x - brick * BRICK));
        return;
    }
}

// Second half: from slots to cell numbers, and arbitrary ranks in the cells.
extern "C" __global__ void __launch_bounds__(THREADS)
grid_keys_sparse(u32 count, const u32* __restrict__ ids, u32* counts, uint2* key_and_rank) {
    await_kernels_before();
    const u32 i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= count) return;
    const uint2 found = key_and_rank[i];
    if (found.x == NONE) return;
    const u32 key = ids[found.x] * BRICK + found.y;
    key_and_rank[i] = make_uint2(key, atomicAdd(&counts[key], 1u));
}

// Exclusive scan in one pass with look-back. Arrays are padded to whole tiles.
using nf::SCAN_TILE, nf::SCAN_VECTORS;

__device__ __forceinline__ void store4(u32* out, u64 base, u32 a, u32 b, u32 c) {
    const u32 first = static_cast<u32>(base);
    *reinterpret_cast<uint4*>(out) = make_uint4(first, first + a, first + b, first + c);
}

__device__ __forceinline__ void store4(u64* out, u64 base, u32 a, u32 b, u32 c) {
    reinterpret_cast<ulonglong2*>(out)[0] = make_ulonglong2(base, base + a);
    reinterpret_cast<ulonglong2*>(out)[1] = make_ulonglong2(base + b, base + c);
}

template <class Out, bool CELLS>
__device__ __forceinline__ void scan(u32* counts, Out* starts, u32 tiles_in_all, u64* tiles, Status* status) {
    __shared__ u32 tile_shared;
    __shared__ u32 warp_sums[THREADS / 32];
    __shared__ u64 before_shared;
    if (threadIdx.x == 0) tile_shared = atomicAdd(&status->ticket, 1u);
    __syncthreads();
    const u32 tile = tile_shared, lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const u64 base = static_cast<u64>(tile) * SCAN_TILE + warp * (32 * SCAN_VECTORS * 4) + lane * 4;
    uint4 found[SCAN_VECTORS];
    for (u32 k = 0; k < SCAN_VECTORS; k++) {
        found[k] = *reinterpret_cast<const uint4*>(counts + base + k * 128);
    }
    u32 sums[SCAN_VECTORS];
    u32 carry = 0, most = 0;
    for (u32 k = 0; k < SCAN_VECTORS; k++) {
        const uint4 c = found[k];
        const u32 sum = c.x + c.y + c.z + c.w;
        if (CELLS) {
            // The next step counts into cells that are zero.
            if (sum) *reinterpret_cast<uint4*>(counts + base + k * 128) = make_uint4(0, 0, 0, 0);
            most = max(most, max(max(c.x, c.y), max(c.z, c.w)));
        }
        const u32 inclusive = warp_inclusive_sum(sum);
        sums[k] = inclusive - sum + carry;
        carry += __shfl_sync(~0u, inclusive, 31);
    }
    if (CELLS && most > LARGE_CELL) atomicAdd(&status->large_cells, 1u);
    if (lane == 31) warp_sums[warp] = carry;
    __syncthreads();
    u32 before_warp = 0;
    u64 total = 0;
    for (u32 w = 0; w < THREADS / 32; w++) {
        if (w < warp) before_warp += warp_sums[w];
        total += warp_sums[w];
    }
    if (warp == 0) {
        const u64 before = look_back(tiles, tile, total, lane);
        if (lane == 0) before_shared = before;
    }
    __syncthreads();
    const u64 before = before_shared + before_warp;
    for (u32 k = 0; k < SCAN_VECTORS; k++) {
        const uint4 c = found[k];
        store4(starts + base + k * 128, before + sums[k], c.x, c.x + c.y, c.x + c.y + c.z);
    }
    if (tile == tiles_in_all - 1 && threadIdx.x == 0) {
        const u64 sum = before_shared + total;
        starts[static_cast<u64>(tiles_in_all) * SCAN_TILE] = static_cast<Out>(sum);
        if (!CELLS && sum > status->pairs) status->pairs = sum;
    }
}

// Points before every cell; the counts are zero afterwards.
extern "C" __global__ void __launch_bounds__(THREADS)
grid_scan(u32* counts, u32* starts, u32 tiles_in_all, u64* tiles, Status* status) {
    await_kernels_before();
    scan<u32, true>(counts, starts, tiles_in_all, tiles, status);
}

// Neighbours before every sorted point.
extern "C" __global__ void __launch_bounds__(THREADS)
list_scan(u32* counts, u64* starts, u32 tiles_in_all, u64* tiles, Status* status) {
    await_kernels_before();
    scan<u64, false>(counts, starts, tiles_in_all, tiles, status);
}

// Adds up, over all cells, the square of their number of points: divided by the number of points
// that is the mean occupancy of the cells of all points, however many cells are empty.
extern "C" __global__ void __launch_bounds__(THREADS)
grid_occupancy(const u32* __restrict__ starts, u32 cells, u64* sum) {
    await_kernels_before();
    u64 squares = 0;
    for (u64 cell = blockIdx.x * THREADS + threadIdx.x; cell < cells; cell += gridDim.x * THREADS) {
        const u64 points = starts[cell + 1] - starts[cell];
        squares += points * points;
    }
    for (u32 lanes = 16; lanes > 0; lanes /= 2) squares += __shfl_down_sync(~0u, squares, lanes);
    if (threadIdx.x % 32 == 0 && squares) atomicAdd(sum, squares);
}

// (caller's index, cell) of every point into the points of its cell.
extern "C" __global__ void __launch_bounds__(THREADS)
grid_place(const uint2* __restrict__ key_and_rank, const u32* __restrict__ starts, u32 count,
           uint2* __restrict__ placed) {
    await_kernels_before();
    const u32 i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= count) return;
    const uint2 key = key_and_rank[i];
    if (key.x == NONE) return;
    placed[starts[key.x] + key.y] = make_uint2(i, key.x);
}

// Sorts the points of large cells by index, one block a cell: Batcher's odd-even merge sort,
// which works on any number of items in place.
extern "C" __global__ void __launch_bounds__(nf::SETTLE_THREADS)
grid_settle_large(const u32* __restrict__ starts, u32 cells, uint2* placed) {
    await_kernels_before();
    for (u32 cell = blockIdx.x; cell < cells; cell += gridDim.x) {
        const u32 begin = starts[cell], count = starts[cell + 1] - begin;
        if (count <= LARGE_CELL) continue;
        uint2* const items = placed + begin;
        for (u64 p = 1; p < count; p *= 2) {
            for (u64 k = p; k >= 1; k /= 2) {
                const u64 shift = k % p;
                for (u64 at = shift + threadIdx.x; at + k < count; at += blockDim.x) {
                    const bool paired = (at - shift) % (2 * k) < k && at / (2 * p) == (at + k) / (2 * p);
                    if (paired && items[at].x > items[at + k].x) {
                        const uint2 kept = items[at];
                        items[at] = items[at + k];
                        items[at + k] = kept;
                    }
                }
                __syncthreads();
            }
        }
    }
}

// Where sorted points go: arrays of `Points`.
struct Settled {
    float4* at;
    int4* wraps;
    float4* proxies;
    u32* boxes;
    double* given;
    u32* flags;

    __device__ __forceinline__ void put(
        u32 slot, const GivenVector& position, const float3& proxy, u32 index, bool wrapped) const {
        const float as_bits = __uint_as_float(index);
        const float4 seen = make_float4(proxy.x, proxy.y, proxy.z, as_bits);
        if (DOUBLE) {
            at[slot] = seen;
            given[3 * static_cast<u64>(slot)] = position.x;
            given[3 * static_cast<u64>(slot) + 1] = position.y;
            given[3 * static_cast<u64>(slot) + 2] = position.z;
            return;
        }
        at[slot] = make_float4(static_cast<float>(position.x), static_cast<float>(position.y),
                               static_cast<float>(position.z), as_bits);
        if (wrapped) proxies[slot] = seen;
    }

    __device__ __forceinline__ void put_boxes(u32 slot, const int4& counts) const {
        wraps[slot] = counts;
        if (!DOUBLE) boxes[slot] = packed_boxes(counts);
    }
};

// The sorted points: every cell in the order of the caller's indices.
//
// Every slot gets a point, also after a failed sort, and the points' indices are a permutation of
// all indices below `count`: traversals write by them before the host has looked at the status.
// After a failed sort the points stay in the caller's order, at coordinates that are within no
// radius.
//
// Points outside the box get proxies beside their positions, and points of double precision have
// proxies in the place of these.
template <bool PERIODIC>
__device__ __forceinline__ void settle(
    const Given* positions, const Lattice& lattice, const u32* starts, const uint2* placed, u32 count,
    const Settled& to, Status* status) {
    const u32 slot = blockIdx.x * THREADS + threadIdx.x;
    if (slot >= count) return;
    const bool failed = status->bad || status->outside, wrapped = PERIODIC && status->wrapped;
    if (slot == 0) {
        to.flags[ANY_WRAPPED] = status->wrapped;
        to.flags[FAILED] = failed;
        // Loops over candidates read up to READ_AHEAD points behind the last.
        for (u32 k = 0; k < nf::READ_AHEAD; k++) {
            to.at[count + k] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (!DOUBLE && wrapped) {
                to.proxies[count + k] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
                to.boxes[count + k] = packed_boxes(make_int4(0, 0, 0, 0));
            }
        }
    }
    if (failed) {
        const float nowhere = __uint_as_float(NOT_A_NUMBER);
        to.put(slot, GivenVector{nowhere, nowhere, nowhere}, make_float3(nowhere, nowhere, nowhere), slot, wrapped);
        if (wrapped) to.put_boxes(slot, make_int4(0, 0, 0, 0));
        return;
    }
    const uint2 mine = placed[slot];
    const u64 i = mine.x;
    const GivenVector at = {positions[3 * i], positions[3 * i + 1], positions[3 * i + 2]};
    const u32 begin = starts[mine.y], end = starts[mine.y + 1];
    u32 place = slot;
    if (end - begin <= LARGE_CELL) {
        place = begin;
        for (u32 k = begin; k < end; k++) place += placed[k].x < mine.x;
    }
    int4 boxes = make_int4(0, 0, 0, 0);
    if (wrapped) {
        boxes = make_int4(place_of(lattice, 0, at.x, at.y, at.z).wraps, place_of(lattice, 1, at.x, at.y, at.z).wraps,
                          place_of(lattice, 2, at.x, at.y, at.z).wraps, 0);
        to.put_boxes(place, boxes);
    }
    float3 proxy = make_float3(0.0f, 0.0f, 0.0f);
    if (DOUBLE || wrapped) proxy = proxy_of(lattice, at, boxes);
    to.put(place, at, proxy, mine.x, wrapped);
}

extern "C" __global__ void __launch_bounds__(THREADS)
grid_settle_open(const Given* positions, const __grid_constant__ Lattice lattice, const u32* starts,
                 const uint2* placed, u32 count, float4* at, int4* wraps, float4* proxies, u32* boxes,
                 double* given, u32* flags, Status* status) {
    await_kernels_before();
    settle<false>(positions, lattice, starts, placed, count, {at, wraps, proxies, boxes, given, flags}, status);
}

extern "C" __global__ void __launch_bounds__(THREADS)
grid_settle_periodic(const Given* positions, const __grid_constant__ Lattice lattice, const u32* starts,
                     const uint2* placed, u32 count, float4* at, int4* wraps, float4* proxies, u32* boxes,
                     double* given, u32* flags, Status* status) {
    await_kernels_before();
    settle<true>(positions, lattice, starts, placed, count, {at, wraps, proxies, boxes, given, flags}, status);
}

// Start and length of every list, from sorted order to the caller's.
extern "C" __global__ void __launch_bounds__(THREADS)
lists_in_order(const float4* __restrict__ at, const u64* __restrict__ starts, const u32* __restrict__ counts,
               u32 count, u64* __restrict__ list_starts, u32* __restrict__ list_counts) {
    await_kernels_before();
    const u32 slot = blockIdx.x * THREADS + threadIdx.x;
    if (slot >= count) return;
    const u32 i = __float_as_uint(at[slot].w);
    list_starts[i] = starts[slot];
    list_counts[i] = counts[slot];
}

// Where every `step`th list begins, for `parts` of them, and behind these the end of the last list;
// goes to memory of the host.
extern "C" __global__ void __launch_bounds__(THREADS)
list_bounds(const u64* __restrict__ starts, u32 step, u32 parts, u32 last, u64* __restrict__ out) {
    await_kernels_before();
    const u32 part = blockIdx.x * THREADS + threadIdx.x;
    if (part > parts) return;
    const u64 slot = static_cast<u64>(part) * step;
    out[part] = starts[part == parts || slot > last ? last : slot];
}

// The caller's index of every sorted point.
extern "C" __global__ void __launch_bounds__(THREADS)
order_of_points(const float4* __restrict__ at, u32 count, u32* __restrict__ out) {
    await_kernels_before();
    const u32 slot = blockIdx.x * THREADS + threadIdx.x;
    if (slot < count) out[slot] = __float_as_uint(at[slot].w);
}

// The same value everywhere.
extern "C" __global__ void __launch_bounds__(THREADS)
fill_values(float* out, u64 count, float value) {
    await_kernels_before();
    const u64 i = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    if (i < count) out[i] = value;
}

// Channels of points, `channels` of them at every `stride`th number, to where every point has
// `room` numbers. Without an array the one channel of a point is its index.
extern "C" __global__ void __launch_bounds__(THREADS)
interleave(const float* __restrict__ in, u32 stride, u32 channels, u64 numbers, float* __restrict__ out, u32 room) {
    await_kernels_before();
    const u64 k = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    if (k >= numbers) return;
    const u64 point = k / channels, channel = k - point * channels;
    out[point * room + channel] = in ? in[point * stride + channel] : __uint_as_float(static_cast<u32>(point));
}

// Values of the caller, `channels` a point, into sorted order.
extern "C" __global__ void __launch_bounds__(THREADS)
values_in_order(const float4* __restrict__ at, const u32* __restrict__ in, u32 channels, u32 count,
                u32* __restrict__ out) {
    await_kernels_before();
    const u32 slot = blockIdx.x * THREADS + threadIdx.x;
    if (slot >= count) return;
    const u64 i = __float_as_uint(at[slot].w);
    for (u32 c = 0; c < channels; c++) out[static_cast<u64>(slot) * channels + c] = in[i * channels + c];
}

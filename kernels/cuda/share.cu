// Gathers the targets of a share: the sorted points in this backend's bricks go to arrays of their
// own, grouped by the part of the work (subregion) that they belong to, in sorted order within a
// part. A counting sort by part: tiles count, a scan like list_scan adds the counts up (they are
// stored part by part, tile by tile), tiles place.
#include "contract.cuh"

constexpr u32 THREADS = nf::GRID_THREADS;
constexpr u32 ROUNDS = nf::SHARE_ROUNDS;
constexpr u32 TILE = nf::SHARE_TILE;
using nf::MAX_PARTS;
constexpr u32 WARPS = THREADS / 32;

// Whom bricks belong to, as nearfield_grid::BrickParts has it.
struct Parts {
    const unsigned char* parts;  // of the bricks of a box, x fastest
    i64 first[3];                // its first brick along each axis
    u32 dims[3];                 // bricks along each axis
    u32 edge;                    // cells of a brick along each axis
    u32 elsewhere;               // the part of everything outside
    u32 count;                   // parts below this are this backend's
};

// The lattice is the one that parts were made for, whatever cells the points are sorted into.
__device__ __forceinline__ u32 part_of(const Lattice& lattice, const Parts& parts, float4 at) {
    u64 place = 0;
    for (int axis = 2; axis >= 0; axis--) {
        const i64 cell = static_cast<i64>(place_of(lattice, axis, at.x, at.y, at.z).cell);
        const i64 edge = parts.edge;
        const i64 brick = cell >= 0 ? cell / edge : -((edge - 1 - cell) / edge);
        const u64 offset = static_cast<u64>(brick - parts.first[axis]);
        if (offset >= parts.dims[axis]) return parts.elsewhere;
        place = place * parts.dims[axis] + offset;
    }
    return parts.parts[place];
}

// Part of every point, NONE's lowest byte for those of others, and how many there are of each part
// in every tile. Ungrouped, all parts are one.
extern "C" __global__ void __launch_bounds__(THREADS)
share_count(const float4* __restrict__ at, u32 count, const __grid_constant__ Lattice lattice,
            const __grid_constant__ Parts parts, u32 grouped, unsigned char* __restrict__ keys,
            u32* __restrict__ counts, u32 tiles) {
    __shared__ u32 found[MAX_PARTS];
    for (u32 part = threadIdx.x; part < MAX_PARTS; part += THREADS) found[part] = 0;
    __syncthreads();
    for (u32 round = 0; round < ROUNDS; round++) {
        const u32 slot = blockIdx.x * TILE + round * THREADS + threadIdx.x;
        if (slot >= count) break;
        u32 part = part_of(lattice, parts, at[slot]);
        const bool mine = part < parts.count;
        if (!grouped) part = 0;
        keys[slot] = mine ? part : NONE & 0xff;
        if (mine) atomicAdd(&found[part], 1u);
    }
    __syncthreads();
    const u32 groups = grouped ? parts.count : 1;
    for (u32 part = threadIdx.x; part < groups; part += THREADS) {
        counts[static_cast<u64>(part) * tiles + blockIdx.x] = found[part];
    }
}

// Points that are chosen one by one, by a byte each in the caller's order: one part.
extern "C" __global__ void __launch_bounds__(THREADS)
share_choose(const float4* __restrict__ at, u32 count, const unsigned char* __restrict__ chosen,
             unsigned char* __restrict__ keys, u32* __restrict__ counts) {
    u32 found = 0;
    for (u32 round = 0; round < ROUNDS; round++) {
        const u32 slot = blockIdx.x * TILE + round * THREADS + threadIdx.x;
        const bool mine = slot < count && chosen[__float_as_uint(at[slot].w)] != 0;
        if (slot < count) keys[slot] = mine ? 0 : NONE & 0xff;
        found += __syncthreads_count(mine);
    }
    if (threadIdx.x == 0) counts[blockIdx.x] = found;
}

// Points of a share before every part, and all of them behind the last.
extern "C" __global__ void __launch_bounds__(THREADS)
share_bounds(const u64* __restrict__ starts, u32 groups, u32 tiles, u64* __restrict__ bounds) {
    const u32 part = threadIdx.x;
    if (part <= groups) bounds[part] = starts[static_cast<u64>(part) * tiles];
}

// Puts every point of the share in its place; `ranks`, where it is asked for (ungrouped), says of
// every slot how many of the share come before it. `given`, where it is not null, has the
// positions in double precision.
extern "C" __global__ void __launch_bounds__(THREADS)
share_place(const float4* __restrict__ at, const int4* __restrict__ wraps, const u32* __restrict__ flags,
            const unsigned char* __restrict__ keys, u32 count, const double* __restrict__ given,
            const u64* __restrict__ starts, u32 groups, u32 tiles, float4* __restrict__ out_at,
            int4* __restrict__ out_wraps, double* __restrict__ out_given, u32* __restrict__ slots,
            u32* __restrict__ ranks) {
    __shared__ u32 next[WARPS][MAX_PARTS];
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    for (u32 k = threadIdx.x; k < WARPS * MAX_PARTS; k += THREADS) next[k / MAX_PARTS][k % MAX_PARTS] = 0;
    __syncthreads();
    // A warp takes points that lie next to each other.
    const u32 first = blockIdx.x * TILE + warp * (32 * ROUNDS) + lane;
    u32 key[ROUNDS];
    for (u32 round = 0; round < ROUNDS; round++) {
        const u32 slot = first + round * 32;
        key[round] = slot < count ? keys[slot] : NONE & 0xff;
        const u32 same = __match_any_sync(~0u, key[round]);
        if (key[round] < groups && lane == __ffs(same) - 1) next[warp][key[round]] += __popc(same);
        __syncwarp();
    }
    __syncthreads();
    for (u32 part = threadIdx.x; part < groups; part += THREADS) {
        u32 before = static_cast<u32>(starts[static_cast<u64>(part) * tiles + blockIdx.x]);
        for (u32 w = 0; w < WARPS; w++) {
            const u32 found = next[w][part];
            next[w][part] = before;
            before += found;
        }
    }
    __syncthreads();
    const u32 lower = (1u << lane) - 1;
    for (u32 round = 0; round < ROUNDS; round++) {
        const u32 slot = first + round * 32, part = key[round];
        const u32 same = __match_any_sync(~0u, part);
        const bool mine = part < groups;
        const u32 before = mine ? next[warp][part] : 0;
        const u32 chosen = __ballot_sync(~0u, mine);
        if (ranks && slot < count) ranks[slot] = next[warp][0] + __popc(chosen & lower);
        __syncwarp();
        if (mine) {
            const u32 place = before + __popc(same & lower);
            out_at[place] = at[slot];
            if (wraps && flags[ANY_WRAPPED]) out_wraps[place] = wraps[slot];
            if (given) {
                for (u32 axis = 0; axis < 3; axis++) {
                    out_given[3 * static_cast<u64>(place) + axis] = given[3 * static_cast<u64>(slot) + axis];
                }
            }
            slots[place] = slot;
            if (lane == __ffs(same) - 1) next[warp][part] = before + __popc(same);
        }
        __syncwarp();
    }
}

// The cell table of an ungrouped share: points of it before every cell, and behind the last.
extern "C" __global__ void __launch_bounds__(THREADS)
share_table(const u32* __restrict__ starts, u32 cells, const u32* __restrict__ ranks, u32 count,
            const u64* __restrict__ bounds, u32* __restrict__ out) {
    const u64 cell = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    if (cell > cells) return;
    const u32 slot = starts[cell];
    out[cell] = slot < count ? ranks[slot] : static_cast<u32>(bounds[1]);
}

// Channels of the points of a share, one channel after the other, each in the order of the share.
extern "C" __global__ void __launch_bounds__(THREADS)
share_fields(const float4* __restrict__ at, u32 count, const float* __restrict__ fields, u32 stride, u32 channels,
             float* __restrict__ out) {
    const u64 place = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    const u32 slot = static_cast<u32>(place / channels), channel = static_cast<u32>(place % channels);
    if (slot >= count) return;
    const u64 point = __float_as_uint(at[slot].w);
    out[static_cast<u64>(channel) * count + slot] = fields[point * stride + channel];
}

// Puts the results that another backend found for some targets among those of all. `how` says
// whether they overwrite or are combined with what is there, as nearfield_pairs::Reduce::combine
// has it.
extern "C" __global__ void __launch_bounds__(THREADS)
share_results(const u32* __restrict__ targets, u32 count, const float* __restrict__ found, u32 outputs, u32 how,
              float* __restrict__ results) {
    const u64 place = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    const u32 k = static_cast<u32>(place / outputs), output = static_cast<u32>(place % outputs);
    if (k >= count) return;
    const float value = found[place];
    float* const result = results + static_cast<u64>(targets[k]) * outputs + output;
    const float before = how == nf::OVERWRITE ? 0.0f : *result;
    if (how == nf::OVERWRITE) *result = value;
    if (how == nf::ADD) *result = before + value;
    if (how == nf::KEEP_SMALLER && value < before) *result = value;
    if (how == nf::KEEP_LARGER && value > before) *result = value;
}

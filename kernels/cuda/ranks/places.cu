// The points of a rank whose data live on a GPU: which of them other ranks need, and arrays of
// single points that are gathered, brought together or added.
//
// A survey gives every point the class of its cell and writes down those that are not of the
// interior, in the order of the points: tiles count, one block adds up, tiles write. A split does
// the same with these for every list of points that go somewhere. Arrays are moved as words of 32
// bits, whatever they mean.
#include "contract.cuh"
#include "ranks.cuh"

using ranks::NOT_FINITE, ranks::ROUNDS, ranks::SCAN_THREADS, ranks::SPECIAL, ranks::THREADS, ranks::TILE, ranks::UNKNOWN;
constexpr u32 WARPS = THREADS / 32;

// Classes of the cells of a box, by blocks of 2^shift cells along each axis, x fastest. NONE where
// a block has several.
struct Classes {
    const u32* table;
    i64 low[3];  // the first block along each axis
    u32 dims[3];
    u32 shift;
};

// What a survey finds begins with the three largest and the three smallest coordinates as keys, the
// largest of each, 0 without points. NOT_FINITE is the complement of the first such point.

// Numbers in the order of their keys; no number has the key 0.
__device__ __forceinline__ u32 key_of(float x) {
    const u32 bits = __float_as_uint(x);
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

__device__ __forceinline__ u32 class_of(const Lattice& lattice, const Classes& classes, float x, float y, float z) {
    u64 place = 0;
    for (int axis = 2; axis >= 0; axis--) {
        const i64 cell = static_cast<i64>(place_of(lattice, axis, x, y, z).cell);
        const u64 offset = static_cast<u64>((cell >> classes.shift) - classes.low[axis]);
        if (offset >= classes.dims[axis]) return NONE;
        place = place * classes.dims[axis] + offset;
    }
    return classes.table[place];
}

__device__ __forceinline__ bool is_finite(float x) {
    return (__float_as_uint(x) & 0x7f800000u) != 0x7f800000u;
}

// The class of every point, the extent of all, and the number in every tile that are not of class
// 0. A warp takes points that lie next to each other.
extern "C" __global__ void __launch_bounds__(THREADS)
survey(const float* __restrict__ positions, u32 count, const __grid_constant__ Lattice lattice,
       const __grid_constant__ Classes classes, u32* __restrict__ of_points, u32* __restrict__ tiles,
       u32* __restrict__ found) {
    __shared__ u32 largest[SPECIAL], special;
    if (threadIdx.x < SPECIAL) largest[threadIdx.x] = 0;
    if (threadIdx.x == SPECIAL) special = 0;
    __syncthreads();
    u32 keys[SPECIAL] = {}, mine = 0;
    const u32 first = blockIdx.x * TILE + (threadIdx.x / 32) * (32 * ROUNDS) + (threadIdx.x & 31);
    // All positions are on their way before the first is looked at.
    float at[ROUNDS][3];
#pragma unroll
    for (u32 round = 0; round < ROUNDS; round++) {
        const u64 point = first + round * 32;
        for (int axis = 0; axis < 3; axis++) at[round][axis] = point < count ? positions[3 * point + axis] : 0.0f;
    }
#pragma unroll
    for (u32 round = 0; round < ROUNDS; round++) {
        const u32 point = first + round * 32;
        if (point >= count) continue;
        const float x = at[round][0], y = at[round][1], z = at[round][2];
        u32 of = NONE;
        if (is_finite(x) && is_finite(y) && is_finite(z)) {
            of = class_of(lattice, classes, x, y, z);
            const u32 key[3] = {key_of(x), key_of(y), key_of(z)};
            for (int axis = 0; axis < 3; axis++) {
                keys[axis] = max(keys[axis], key[axis]);
                keys[3 + axis] = max(keys[3 + axis], ~key[axis]);
            }
        } else {
            keys[NOT_FINITE] = max(keys[NOT_FINITE], ~point);
        }
        if (of == NONE) keys[UNKNOWN] = 1;
        of_points[point] = of;
        mine += of != 0;
    }
    for (int step = 16; step > 0; step /= 2) mine += __shfl_xor_sync(~0u, mine, step);
    for (u32 k = 0; k < SPECIAL; k++) {
        for (int step = 16; step > 0; step /= 2) keys[k] = max(keys[k], __shfl_xor_sync(~0u, keys[k], step));
        if ((threadIdx.x & 31) == 0) atomicMax(&largest[k], keys[k]);
    }
    if ((threadIdx.x & 31) == 0) atomicAdd(&special, mine);
    __syncthreads();
    if (threadIdx.x < SPECIAL && largest[threadIdx.x] != 0) atomicMax(&found[threadIdx.x], largest[threadIdx.x]);
    if (threadIdx.x == SPECIAL) tiles[blockIdx.x] = special;
}

// The place of the k-th point that a migration has brought to another one, which may be behind the
// points that there are: gaps of those that have left, and then the places behind all.
__device__ __forceinline__ u32 changed_place(const u32* left, u32 gone, u32 before, u32 k) {
    return k < gone ? left[k] : before + (k - gone);
}

// The classes of points that have come to other places in a migration, after a survey of the points
// before; `changed` places of `count` points.
extern "C" __global__ void __launch_bounds__(THREADS)
survey_changed(const float* __restrict__ positions, u32 count, const __grid_constant__ Lattice lattice,
               const __grid_constant__ Classes classes, const u32* __restrict__ left, u32 gone, u32 before,
               u32 changed, u32* __restrict__ of_points, u32* __restrict__ found) {
    const u32 k = blockIdx.x * THREADS + threadIdx.x;
    if (k == 0) found[UNKNOWN] = 0;
    if (k >= changed) return;
    const u32 point = changed_place(left, gone, before, k);
    if (point >= count) return;
    const float* const at = positions + 3 * static_cast<u64>(point);
    of_points[point] = class_of(lattice, classes, at[0], at[1], at[2]);
}

// The number of points in every tile that are not of class 0, by their classes.
extern "C" __global__ void __launch_bounds__(THREADS)
survey_count(const u32* __restrict__ of_points, u32 count, u32* __restrict__ tiles, u32* __restrict__ found) {
    __shared__ u32 special;
    if (threadIdx.x == 0) special = 0;
    __syncthreads();
    u32 of[ROUNDS], mine = 0;
    bool unknown = false;
    const u32 first = blockIdx.x * TILE + threadIdx.x;
#pragma unroll
    for (u32 round = 0; round < ROUNDS; round++) {
        const u32 point = first + round * THREADS;
        of[round] = point < count ? of_points[point] : 0;
    }
#pragma unroll
    for (u32 round = 0; round < ROUNDS; round++) {
        mine += of[round] != 0;
        unknown |= of[round] == NONE;
    }
    for (int step = 16; step > 0; step /= 2) mine += __shfl_xor_sync(~0u, mine, step);
    if ((threadIdx.x & 31) == 0) atomicAdd(&special, mine);
    if (unknown) atomicMax(&found[UNKNOWN], 1u);
    __syncthreads();
    if (threadIdx.x == 0) tiles[blockIdx.x] = special;
}

// Turns the counts of tiles into the counts before them; one block.
extern "C" __global__ void __launch_bounds__(SCAN_THREADS)
survey_scan(u32* __restrict__ tiles, u32 count, u32* __restrict__ total) {
    __shared__ u32 of_warps[SCAN_THREADS / 32];
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    u32 before = 0;
    for (u32 first = 0; first < count; first += SCAN_THREADS) {
        const u32 tile = first + threadIdx.x;
        const u32 here = tile < count ? tiles[tile] : 0;
        u32 sum = here;
        for (int step = 1; step < 32; step *= 2) {
            const u32 below = __shfl_up_sync(~0u, sum, step);
            if (lane >= step) sum += below;
        }
        if (lane == 31) of_warps[warp] = sum;
        __syncthreads();
        u32 all = 0, below = 0;
        for (u32 w = 0; w < SCAN_THREADS / 32; w++) {
            if (w < warp) below += of_warps[w];
            all += of_warps[w];
        }
        if (tile < count) tiles[tile] = before + below + sum - here;
        before += all;
        __syncthreads();
    }
    if (threadIdx.x == 0) *total = before;
}

// Calls `put` with the items of a tile that are `chosen` and their places, which begin at
// `before`, in the order of the items.
template <class Chosen, class Put>
__device__ __forceinline__ void for_chosen(u32 tile, u32 before, Chosen chosen, Put put) {
    __shared__ u32 of_warps[WARPS];
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const u32 first = tile * TILE + warp * (32 * ROUNDS) + lane;
    u32 of[ROUNDS], mine = 0;
    for (u32 round = 0; round < ROUNDS; round++) {
        of[round] = __ballot_sync(~0u, chosen(first + round * 32));
        mine += __popc(of[round]);
    }
    if (lane == 0) of_warps[warp] = mine;
    __syncthreads();
    for (u32 w = 0; w < warp; w++) before += of_warps[w];
    for (u32 round = 0; round < ROUNDS; round++) {
        if (of[round] >> lane & 1) put(first + round * 32, before + __popc(of[round] & ((1u << lane) - 1)));
        before += __popc(of[round]);
    }
}

// Writes index and class of the points that are not of class 0, ascending, as many as there is
// room for.
extern "C" __global__ void __launch_bounds__(THREADS)
survey_write(const u32* __restrict__ of_points, u32 count, const u32* __restrict__ tiles, u32 room,
             u32* __restrict__ out) {
    for_chosen(
        blockIdx.x, tiles[blockIdx.x], [&](u32 point) { return point < count && of_points[point] != 0; },
        [&](u32 point, u32 place) {
            if (place >= room) return;
            out[2 * static_cast<u64>(place)] = point;
            out[2 * static_cast<u64>(place) + 1] = of_points[point];
        });
}

// The lists that points of a class are in, as bits: `words` words for each of `classes` classes.
struct Lists {
    const u32* masks;
    u32 classes, words;
};

// Whether the k-th of `count` special points is in a list.
__device__ __forceinline__ bool is_in(const Lists& lists, u32 list, const u32* special, u32 count, u32 k) {
    if (k >= count) return false;
    const u32 of = special[2 * static_cast<u64>(k) + 1];
    return of < lists.classes && lists.masks[of * lists.words + list / 32] >> (list % 32) & 1;
}

// The number of special points in every tile and list, list after list, with `of_list` tiles each.
// A survey has found `number` special points, and there is room for `room`.
extern "C" __global__ void __launch_bounds__(THREADS)
split_count(const u32* __restrict__ special, const u32* __restrict__ number, u32 room, const Lists lists,
            u32 of_list, u32* __restrict__ tiles) {
    __shared__ u32 sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    const u32 list = blockIdx.x / of_list, tile = blockIdx.x % of_list, count = min(*number, room);
    u32 mine = 0;
    for (u32 round = 0; round < ROUNDS; round++) {
        const u32 k = tile * TILE + round * THREADS + threadIdx.x;
        mine += __popc(__ballot_sync(~0u, is_in(lists, list, special, count, k)));
    }
    if ((threadIdx.x & 31) == 0) atomicAdd(&sum, mine);
    __syncthreads();
    if (threadIdx.x == 0) tiles[blockIdx.x] = sum;
}

// Writes the points of every list, each ascending, one list after the other, as many as there is
// room for, and the place where each begins. `tiles` has been scanned.
extern "C" __global__ void __launch_bounds__(THREADS)
split_write(const u32* __restrict__ special, const u32* __restrict__ number, u32 room, const Lists lists,
            u32 of_list, const u32* __restrict__ tiles, u32 out_room, u32* __restrict__ out, u32* __restrict__ begins) {
    const u32 list = blockIdx.x / of_list, tile = blockIdx.x % of_list, count = min(*number, room);
    const u32 before = tiles[blockIdx.x];
    if (tile == 0 && threadIdx.x == 0) begins[list] = before;
    for_chosen(
        tile, before, [&](u32 k) { return is_in(lists, list, special, count, k); },
        [&](u32 k, u32 place) {
            if (place < out_room) out[place] = special[2 * static_cast<u64>(k)];
        });
}

// Words of some points: `words` of them from each of `stride`, put side by side with a stride of
// their own.
extern "C" __global__ void __launch_bounds__(THREADS)
gather(const u32* __restrict__ from, u32 stride, u32 words, const u32* __restrict__ indices, u32 count,
       u32* __restrict__ to, u32 to_stride) {
    const u64 place = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    const u32 point = static_cast<u32>(place / words), word = static_cast<u32>(place % words);
    if (point >= count) return;
    to[static_cast<u64>(point) * to_stride + word] = from[static_cast<u64>(indices[point]) * stride + word];
}

// The first of `count` ascending places that is not before `place`.
__device__ u32 lower_bound(const u32* places, u32 count, u32 place) {
    u32 low = 0, high = count;
    while (low < high) {
        const u32 middle = low + (high - low) / 2;
        if (places[middle] < place) low = middle + 1;
        else high = middle;
    }
    return low;
}

// Arrays whose points travel: `words` of a point, from `from` or to `to`, are in a row from `first`
// on.
struct Columns {
    const u32* from[ranks::MAX_COLUMNS];
    u32* to[ranks::MAX_COLUMNS];
    u32 words[ranks::MAX_COLUMNS];
    u32 first[ranks::MAX_COLUMNS];
    u32 count;
    u32 all;  // the sum of `words`
};

// The column that has the word, which becomes one of the column.
__device__ __forceinline__ u32 column_of(const Columns& columns, u32& word) {
    u32 column = 0;
    while (word >= columns.words[column]) word -= columns.words[column++];
    return column;
}

// Words of some points, put side by side with a stride.
extern "C" __global__ void __launch_bounds__(THREADS)
gather_rows(const __grid_constant__ Columns columns, const u32* __restrict__ indices, u32 count,
            u32* __restrict__ to, u32 to_stride) {
    const u64 place = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    const u32 point = static_cast<u32>(place / columns.all);
    if (point >= count) return;
    u32 word = static_cast<u32>(place % columns.all);
    const u32 column = column_of(columns, word);
    const u64 from = static_cast<u64>(indices[point]) * columns.words[column] + word;
    to[static_cast<u64>(point) * to_stride + columns.first[column] + word] = columns.from[column][from];
}

// Brings arrays of `before` points into the order after a migration. Points that came fill the gaps
// of those that have left, whose places `left` has, ascending; more of them stand at the end. If
// fewer came, points from the end fill the gaps that remain. Nothing that is read is written, so
// `from` and `to` may be one array.
extern "C" __global__ void __launch_bounds__(THREADS)
refill(const __grid_constant__ Columns columns, const u32* __restrict__ left, u32 gone, u32 before,
       const u32* __restrict__ came, u32 came_stride, u32 arrivals) {
    const u64 place = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    const u64 item = place / columns.all;
    u32 word = static_cast<u32>(place % columns.all);
    const u32 column = column_of(columns, word), words = columns.words[column];
    u32* const to = columns.to[column];
    if (item < arrivals) {
        const u32 k = static_cast<u32>(item), gap = changed_place(left, gone, before, k);
        const u64 from = static_cast<u64>(k) * came_stride + columns.first[column] + word;
        to[static_cast<u64>(gap) * words + word] = came[from];
        return;
    }
    const u32 now = before - gone + arrivals;
    const u64 point = now + (item - arrivals);
    if (point >= before) return;
    const u32 source = static_cast<u32>(point), passed = lower_bound(left, gone, source);
    if (passed < gone && left[passed] == source) return;
    const u32 gone_behind = passed - lower_bound(left, gone, now);
    const u32 gap = left[arrivals + (source - now) - gone_behind];
    to[static_cast<u64>(gap) * words + word] = columns.from[column][static_cast<u64>(source) * words + word];
}

// Combines results of the points at the border with those of all points, as
// nearfield_pairs::Reduce::combine has it.
extern "C" __global__ void __launch_bounds__(THREADS)
combine(const u32* __restrict__ border, u32 count, const float* __restrict__ found, u32 outputs, u32 how,
        float* __restrict__ results) {
    const u64 place = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    const u32 k = static_cast<u32>(place / outputs), output = static_cast<u32>(place % outputs);
    if (k >= count) return;
    float* const result = results + static_cast<u64>(border[k]) * outputs + output;
    const float value = found[place], before = *result;
    if (how == ranks::ADD) *result = before + value;
    if (how == ranks::KEEP_SMALLER && value < before) *result = value;
    if (how == ranks::KEEP_LARGER && value > before) *result = value;
}

// The same for counts.
extern "C" __global__ void __launch_bounds__(THREADS)
add_counts(const u32* __restrict__ border, u32 count, const u32* __restrict__ found, u32* __restrict__ counts) {
    const u32 k = blockIdx.x * THREADS + threadIdx.x;
    if (k < count) counts[border[k]] += found[k];
}

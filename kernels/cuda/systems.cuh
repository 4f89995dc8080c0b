// Pairs of many small systems, all pairs of each tested directly, in one pass.
//
// A block has up to TARGETS targets of one system. It lays out candidates in shared memory: the
// images of every source that can come within the radius of any target. A warp holds 32 of them in
// registers and tests all targets against these, so a test reads one target and nothing else; its
// outcome is a bit in a mask per target and 32 candidates. The bits of all blocks before, which a
// look-back adds up, tell the block where its pairs go.
// Then masks become a list of (target, candidate), entry by entry, and threads that are neighbours
// write numbers that are neighbours, also where a pair has three of them.
//
// Candidates that are too many for shared memory come in tiles. All tiles are then tested twice:
// for the counts, and to write. Candidates lie in the order of (source, image), so a list comes
// sorted, and the pairs of a half list are those behind the target's own place among candidates.
//
// Pairs, image vectors and displacements have the bits of the CPU backend: the operations are those
// of nearfield_cpu's systems/direct.rs, in the same order and never contracted. The bound of the
// images is that of nearfield_grid's domain/images.rs, which has the proof; images beyond it are
// only ever too many.
#pragma once
#include "look_back.cuh"
#include "pair_output.cuh"
#include "system_boxes.cuh"

constexpr u32 THREADS = nf::SYSTEM_THREADS;
constexpr u32 WARPS = THREADS / 32;
constexpr u32 TILE = nf::SYSTEM_TILE;
constexpr u32 WORDS = TILE / 32;
// Pairs that are written at a time.
constexpr u32 LIST = 2048;
// An entry of such a list is a target above this many bits, and a candidate.
constexpr u32 CANDIDATE_BITS = 9;
static_assert(TILE % 32 == 0, "a mask has whole words");
static_assert(TILE == 1 << CANDIDATE_BITS && TARGETS << CANDIDATE_BITS <= 1 << 16, "entries have 16 bits");
static_assert(THREADS == 2 * TARGETS && TARGETS == 64, "two threads have the masks of a target");

// Points farther from the origin than this many boxes are refused, as by the CPU backend.
constexpr double FARTHEST_BOX = 1073741824.0;
// Candidates of a block: the images of all its sources together.
constexpr double MAX_CANDIDATES = 16777216.0;
// Number of a target's own candidate where it lies behind all of a round of sources.
constexpr int BEHIND = 0x7fffffff;

template <class Number>
__device__ __forceinline__ Number smallest_of_warp(Number number) {
    for (int step = 16; step > 0; step /= 2) number = smaller(number, __shfl_xor_sync(~0u, number, step));
    return number;
}

// The targets of a block.
struct Unit {
    u32 system, first, count;  // first target, and number of targets: 0 for none
    u32 begin, points;         // of the system
};

__device__ __forceinline__ Unit unit_of(const Systems& systems, u32 number) {
    Unit unit = {systems.units[number], 0, 0, 0, 0};
    if (unit.system == nf::NONE) return unit;
    unit.begin = static_cast<u32>(systems.offsets[unit.system]);
    unit.points = static_cast<u32>(systems.offsets[unit.system + 1]) - unit.begin;
    unit.first = (number - (unit.begin / TARGETS + unit.system)) * TARGETS;
    unit.count = min(TARGETS, unit.points - unit.first);
    return unit;
}

// A point that is read as a whole.
template <class Real>
struct alignas(4 * sizeof(Real)) Spot {
    Real x, y, z, unused;

    __device__ __forceinline__ Real along(u32 axis) const { return axis == 0 ? x : axis == 1 ? y : z; }
};

// Shared memory of a block.
template <class Real>
struct Shared {
    Spot<Real> target[TARGETS];
    // Of the sources of a round.
    Real position[3][THREADS];
    // Of candidates: vector and counts of the image, of which the first stands for its number
    // until it is known, and the place of the source in the round.
    Real shift[3][TILE];
    int image[3][TILE];
    unsigned char source[TILE];
    // Bits of the pairs of a target among the candidates of a tile.
    u32 mask[WORDS][TARGETS + 1];
    // The number of a target's own candidate among those of the round: -1 where it came earlier.
    int self[TARGETS];
    // The next pair of a target among those of the block, and what has to be added to an entry's
    // place in the list to get there.
    u32 next[TARGETS], moved[TARGETS];
    unsigned short list[LIST];
    double least[WARPS][6];
    Real least_place[WARPS][6];
    double first[3], reach[3], spread[3][2];
    u32 dims[3];
    u32 sums[WARPS];
    u64 base;
    u32 unit, bad;
    SystemBox box;
};

// By the first thread: how far images reach, and the box of images.
template <class Real>
__device__ __forceinline__ void find_reach(Shared<Real>& shared, u32 points) {
    const SystemBox& box = shared.box;
    double extent = 0.0, magnitude[3], least[6];
    for (int k = 0; k < 3; k++) {
        Real low = shared.least_place[0][k], high = shared.least_place[0][3 + k];
        least[k] = shared.least[0][k];
        least[3 + k] = shared.least[0][3 + k];
        for (u32 warp = 1; warp < WARPS; warp++) {
            low = smaller(low, shared.least_place[warp][k]);
            high = smaller(high, shared.least_place[warp][3 + k]);
            least[k] = fmin(least[k], shared.least[warp][k]);
            least[3 + k] = fmin(least[3 + k], shared.least[warp][3 + k]);
        }
        extent += fmax(-static_cast<double>(high) - static_cast<double>(low), 0.0);
        magnitude[k] = fmax(fabs(static_cast<double>(low)), fabs(static_cast<double>(high)));
    }
    const double rough = box.radius + 16.0 * unit_roundoff<Real>() * (box.radius + extent);
    double rounding[3], all = 0.0;
    for (int k = 0; k < 3; k++) {
        const Vector row = {fabs(box.inverse[k].x), fabs(box.inverse[k].y), fabs(box.inverse[k].z)};
        rounding[k] = dot(row, {magnitude[0], magnitude[1], magnitude[2]}) * power_of_two(-49);
        all += (box.norms[k] * (rough + extent) + 1.0 + rounding[k]) * box.lengths[k];
    }
    all *= 2.0;
    const double rho = rough + all * power_of_two(-48);
    double candidates = points;
    for (int k = 0; k < 3; k++) {
        // All zero of open axes.
        const double reach = box.norms[k] * rho + box.drift * all * box.shares[k];
        shared.reach[k] = reach * (1.0 + power_of_two(-40)) + 4.0 * rounding[k];
        const double low = least[k], high = -least[3 + k];
        shared.spread[k][0] = low;
        shared.spread[k][1] = high;
        shared.first[k] = ceil(low - high - shared.reach[k]);
        const double last = floor(high - low + shared.reach[k]);
        const double dim = last - shared.first[k] + 1.0;
        candidates *= dim;
        const bool is_far = fmax(fabs(low), fabs(high)) > FARTHEST_BOX;
        // Counts of boxes are written in 32 bits.
        const bool is_wide = shared.first[k] < -2147483648.0 || last > 2147483647.0;
        if (is_far || is_wide || !(candidates >= 1.0 && candidates <= MAX_CANDIDATES)) shared.bad = 1;
        shared.dims[k] = shared.bad ? 1 : static_cast<u32>(dim);
    }
}

template <class Real>
__device__ __forceinline__ Vector fractions_of(const SystemBox& box, const Real at[3]) {
    const Vector place = {static_cast<double>(at[0]), static_cast<double>(at[1]), static_cast<double>(at[2])};
    return {dot(box.inverse[0], place), dot(box.inverse[1], place), dot(box.inverse[2], place)};
}

// By all threads: the targets to shared memory, and the bounds of the system. Largest numbers are
// negated, and so kept as smallest ones.
template <class Real>
__device__ __forceinline__ void begin_unit(const Systems& systems, const Unit& unit, Shared<Real>& shared) {
    const Real* const points = static_cast<const Real*>(systems.positions) + 3ull * unit.begin;
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    if (threadIdx.x < sizeof(SystemBox) / sizeof(double)) {
        const double* const from = static_cast<const double*>(systems.boxes);
        const u64 number = static_cast<u64>(unit.system) * (sizeof(SystemBox) / sizeof(double)) + threadIdx.x;
        reinterpret_cast<double*>(&shared.box)[threadIdx.x] = from[number];
    }
    if (threadIdx.x == 0) shared.bad = 0;
    __syncthreads();
    Real least_place[6];
    double least[6];
    for (int k = 0; k < 6; k++) {
        least_place[k] = largest<Real>();
        least[k] = largest<double>();
    }
#pragma unroll 1
    for (u32 point = threadIdx.x; point < unit.points; point += THREADS) {
        const Real at[3] = {points[3ull * point], points[3ull * point + 1], points[3ull * point + 2]};
        const Vector fractions = fractions_of(shared.box, at);
        const double numbers[3] = {fractions.x, fractions.y, fractions.z};
        for (int k = 0; k < 3; k++) {
            if (!is_finite(static_cast<double>(at[k]))) shared.bad = 1;
            least_place[k] = smaller(least_place[k], at[k]);
            least_place[3 + k] = smaller(least_place[3 + k], -at[k]);
            least[k] = fmin(least[k], numbers[k]);
            least[3 + k] = fmin(least[3 + k], -numbers[k]);
        }
        const u32 own = point - unit.first;
        if (own < unit.count) shared.target[own] = {at[0], at[1], at[2], 0};
    }
    for (int k = 0; k < 6; k++) {
        // Warps without points have nothing to compare.
        if (32 * warp < unit.points) {
            least_place[k] = smallest_of_warp(least_place[k]);
            least[k] = smallest_of_warp(least[k]);
        }
        if (lane == 0) {
            shared.least_place[warp][k] = least_place[k];
            shared.least[warp][k] = least[k];
        }
    }
    __syncthreads();
    if (threadIdx.x == 0 && !shared.bad) find_reach<Real>(shared, unit.points);
    __syncthreads();
}

// The images of a source, as places in the box of images: first along each axis, how many along
// each, and how many in all.
struct Range {
    u32 first[3], dims[3], count;

    // Number of an image, given by its place, among those of the source.
    __device__ __forceinline__ u32 number(u32 x, u32 y, u32 z) const {
        return ((x - first[0]) * dims[1] + (y - first[1])) * dims[2] + (z - first[2]);
    }
};

template <class Real>
__device__ __forceinline__ Range range_of(const Shared<Real>& shared, const Real at[3]) {
    const Vector fractions = fractions_of(shared.box, at);
    const double numbers[3] = {fractions.x, fractions.y, fractions.z};
    Range range;
    range.count = 1;
    for (int k = 0; k < 3; k++) {
        const double begin = ceil(shared.spread[k][0] - numbers[k] - shared.reach[k]);
        const double end = floor(shared.spread[k][1] - numbers[k] + shared.reach[k]);
        range.first[k] = static_cast<u32>(begin - shared.first[k]);
        range.dims[k] = static_cast<u32>(fmax(end - begin + 1.0, 0.0));
        range.count *= range.dims[k];
    }
    return range;
}

// By the thread of a source, whose candidates begin with number `own` of the round: writes source
// and image of those that lie in the tile.
template <class Real>
__device__ __forceinline__ void name_candidates(Shared<Real>& shared, const Range& range, u32 own, u32 tile, u32 end) {
    const u32 begin = max(own, tile), behind = min(own + range.count, end);
    if (begin >= behind) return;
    const u32 k = begin - own, column = k / range.dims[2];
    u32 x = column / range.dims[1], y = column - x * range.dims[1], z = k - column * range.dims[2];
#pragma unroll 1
    for (u32 slot = begin - tile; slot < behind - tile; slot++) {
        const u32 place = (range.first[0] + x) * shared.dims[1] + range.first[1] + y;
        shared.image[0][slot] = static_cast<int>(place * shared.dims[2] + range.first[2] + z);
        shared.source[slot] = static_cast<unsigned char>(threadIdx.x);
        if (++z < range.dims[2]) continue;
        z = 0;
        if (++y < range.dims[1]) continue;
        y = 0;
        x++;
    }
}

// By all threads: vectors and counts of the images of a tile's candidates.
template <class Real>
__device__ __forceinline__ void move_candidates(Shared<Real>& shared, u32 candidates) {
    const Vector* const v = shared.box.vectors;
#pragma unroll 1
    for (u32 slot = threadIdx.x; slot < candidates; slot += THREADS) {
        const u32 image = static_cast<u32>(shared.image[0][slot]), column = image / shared.dims[2];
        const u32 x = column / shared.dims[1];
        const double n[3] = {
            shared.first[0] + x,
            shared.first[1] + (column - x * shared.dims[1]),
            shared.first[2] + (image - column * shared.dims[2]),
        };
        shared.shift[0][slot] = static_cast<Real>((n[0] * v[0].x + n[1] * v[1].x) + n[2] * v[2].x);
        shared.shift[1][slot] = static_cast<Real>((n[0] * v[0].y + n[1] * v[1].y) + n[2] * v[2].y);
        shared.shift[2][slot] = static_cast<Real>((n[0] * v[0].z + n[1] * v[1].z) + n[2] * v[2].z);
        for (int axis = 0; axis < 3; axis++) shared.image[axis][slot] = static_cast<int>(n[axis]);
    }
}

// Bits of 32 candidates, the first of which has this distance from the target's own: without that,
// and of half lists without all before it.
__device__ __forceinline__ u32 others(u32 half, int self) {
    if (half) return self < 0 ? ~0u : self >= 31 ? 0 : ~0u << (self + 1);
    return self >= 0 && self < 32 ? ~(1u << self) : ~0u;
}

// By warps: all targets against the candidates of a tile, 32 of either at a time.
template <class Real>
__device__ __forceinline__ void test(const Systems& systems, const Unit& unit, Shared<Real>& shared, u32 tile, u32 candidates) {
    const u32 lane = threadIdx.x & 31;
    const u32 words = (candidates + 31) / 32, groups = (unit.count + 31) / 32;
    const Real r2 = static_cast<Real>(shared.box.r2);
    for (u32 item = threadIdx.x / 32; item < words * groups; item += WARPS) {
        const u32 word = item >> (groups - 1), first = 32 * (item & (groups - 1));
        const bool is_one = 32 * word + lane < candidates;
        const u32 c = min(32 * word + lane, candidates - 1), source = shared.source[c];
        const Real x = shared.position[0][source], y = shared.position[1][source], z = shared.position[2][source];
        const Real sx = shared.shift[0][c], sy = shared.shift[1][c], sz = shared.shift[2][c];
        const u32 targets = min(32u, unit.count - first);
        u32 mask = 0;
        // Four at a time, so that loads and sums of one do not wait for the vote on another. What
        // lies behind the last target is tested in vain: there is room for it, and its mask is not
        // kept.
#pragma unroll 1
        for (u32 k = 0; k < targets; k += 4) {
            const Spot<Real>* const at = shared.target + first + k;
            Real squares[4];
#pragma unroll
            for (u32 n = 0; n < 4; n++) {
                const Spot<Real> target = at[n];
                const Real dx = (x - target.x) + sx, dy = (y - target.y) + sy, dz = (z - target.z) + sz;
                squares[n] = fused(dz, dz, fused(dy, dy, dx * dx));
            }
#pragma unroll
            for (u32 n = 0; n < 4; n++) {
                const u32 hits = __ballot_sync(~0u, squares[n] <= r2 && is_one);
                if (lane - k == n) mask = hits;
            }
        }
        if (lane < targets) {
            const int self = shared.self[first + lane];
            // Of targets of other rounds the number is that of none of these candidates.
            const int from_here = self == BEHIND || self < 0 ? self : self - static_cast<int>(tile + 32 * word);
            shared.mask[word][first + lane] = mask & others(systems.half, from_here);
        }
    }
}

// Pairs of the threads before this one; `all` is the sum over the block.
__device__ __forceinline__ u32 sum_before(u32 value, u32* sums, u32& all) {
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    u32 inclusive = value;
    for (int step = 1; step < 32; step *= 2) {
        const u32 before = __shfl_up_sync(~0u, inclusive, step);
        if (lane >= step) inclusive += before;
    }
    if (lane == 31) sums[warp] = inclusive;
    __syncthreads();
    u32 before = 0;
    all = 0;
    for (u32 other = 0; other < WARPS; other++) {
        if (other < warp) before += sums[other];
        all += sums[other];
    }
    __syncthreads();
    return before + inclusive - value;
}

// By the thread of a source: copies its place, which the round keeps, and finds its images.
template <class Real>
__device__ __forceinline__ Range begin_source(const Systems& systems, const Unit& unit, Shared<Real>& shared, u32 source) {
    if (source >= unit.points) return Range{};
    const Real* const from = static_cast<const Real*>(systems.positions) + 3ull * (unit.begin + source);
    const Real at[3] = {from[0], from[1], from[2]};
    for (int axis = 0; axis < 3; axis++) shared.position[axis][threadIdx.x] = at[axis];
    return range_of<Real>(shared, at);
}

// By all threads: the number of every target's own candidate. Candidates of this thread's source
// begin with number `own` of the round.
template <class Real>
__device__ __forceinline__ void find_selves(const Unit& unit, Shared<Real>& shared, const Range& range, u32 first, u32 own) {
    const u32 as_target = first + threadIdx.x - unit.first;
    // The image of all zeros is in reach of every target: it is a source too.
    if (as_target < unit.count) {
        const double* const from = shared.first;
        const u32 zero = range.number(static_cast<u32>(-from[0]), static_cast<u32>(-from[1]), static_cast<u32>(-from[2]));
        shared.self[as_target] = static_cast<int>(own + zero);
    }
    if (threadIdx.x < unit.count) {
        const u32 target = unit.first + threadIdx.x;
        if (target < first) shared.self[threadIdx.x] = -1;
        else if (target >= first + THREADS) shared.self[threadIdx.x] = BEHIND;
    }
}

// By all threads: lays out all candidates, tile by tile, tests them and calls `each` with the first
// source of the round and the number of candidates. If the only tile of a system is `kept` from the
// last time, there is nothing to lay out or to test, and `all` candidates are in it.
//
// Returns the number of tiles.
template <class Real, class Each>
__device__ __forceinline__ u32 for_each_tile(
    const Systems& systems, const Unit& unit, Shared<Real>& shared, bool kept, u32& all, Each each) {
    u32 tiles = 0;
    for (u32 first = 0; first < unit.points; first += THREADS) {
        Range range = {};
        u32 own = 0;
        if (!kept) {
            range = begin_source<Real>(systems, unit, shared, first + threadIdx.x);
            own = sum_before(range.count, shared.sums, all);
            find_selves<Real>(unit, shared, range, first, own);
        }
        for (u32 tile = 0; tile < all; tile += TILE) {
            const u32 end = min(tile + TILE, all);
            if (!kept) {
                name_candidates<Real>(shared, range, own, tile, end);
                __syncthreads();
                move_candidates<Real>(shared, end - tile);
                __syncthreads();
                test<Real>(systems, unit, shared, tile, end - tile);
                __syncthreads();
            }
            each(first, end - tile);
            __syncthreads();
            tiles++;
        }
    }
    return tiles;
}

// Half the masks of a target, which a thread has: words from `begin` to `behind`.
struct Masks {
    u32 target, begin, behind;

    __device__ __forceinline__ Masks(const Unit& unit, u32 candidates) : target(threadIdx.x / 2) {
        const u32 words = target < unit.count ? (candidates + 31) / 32 : 0, middle = (words + 1) / 2;
        begin = threadIdx.x % 2 == 0 ? 0 : middle;
        behind = threadIdx.x % 2 == 0 ? middle : words;
    }

    template <class Real>
    __device__ __forceinline__ u32 count(const Shared<Real>& shared) const {
        u32 pairs = 0;
        for (u32 word = begin; word < behind; word++) pairs += __popc(shared.mask[word][target]);
        return pairs;
    }
};

// The pairs that are in the list, to their places in all arrays that are wanted.
template <class Real>
struct Writer {
    const PairOutput& output;
    const Unit& unit;
    const Shared<Real>& shared;
    u32 first;    // source of the round
    u32 window;   // place of the first entry of the list among those of the tile
    u32 entries;

    // From a target to a candidate, along an axis.
    __device__ __forceinline__ Real displacement(u32 target, u32 c, u32 axis) const {
        return (shared.position[axis][shared.source[c]] - shared.target[target].along(axis)) + shared.shift[axis][c];
    }

    // Calls `put` with place, target and candidate of every pair.
    template <class Put>
    __device__ __forceinline__ void for_each(Put put) const {
#pragma unroll 2
        for (u32 k = threadIdx.x; k < entries; k += THREADS) {
            const u32 entry = shared.list[k], target = entry >> CANDIDATE_BITS;
            put(shared.base + (window + k + shared.moved[target]), target, entry % TILE);
        }
    }

    // The same for three numbers of every pair, side by side, with the axis.
    template <class Put>
    __device__ __forceinline__ void for_each_axis(Put put) const {
#pragma unroll 2
        for (u32 number = threadIdx.x; number < 3 * entries; number += THREADS) {
            const u32 k = number / 3, axis = number - 3 * k;
            const u32 entry = shared.list[k], target = entry >> CANDIDATE_BITS;
            const u64 pair = shared.base + (window + k + shared.moved[target]);
            put(3 * pair + axis, target, entry % TILE, axis);
        }
    }

    __device__ __forceinline__ void write() const {
        const u32 bytes = output.index_bytes;
        if (output.targets) {
            for_each([&](u64 at, u32 target, u32) {
                put_index(output.targets, at, bytes, unit.begin + unit.first + target);
            });
        }
        if (output.sources) {
            for_each([&](u64 at, u32, u32 c) {
                put_index(output.sources, at, bytes, unit.begin + first + shared.source[c]);
            });
        }
        if (output.images) {
            for_each_axis([&](u64 at, u32, u32 c, u32 axis) { output.images[at] = shared.image[axis][c]; });
        }
        if (output.displacements) {
            Real* const to = static_cast<Real*>(output.displacements);
            for_each_axis([&](u64 at, u32 target, u32 c, u32 axis) { to[at] = displacement(target, c, axis); });
        }
        if (output.distances) {
            Real* const to = static_cast<Real*>(output.distances);
            for_each([&](u64 at, u32 target, u32 c) {
                const Real x = displacement(target, c, 0), y = displacement(target, c, 1);
                const Real z = displacement(target, c, 2);
                to[at] = root(fused(z, z, fused(y, y, x * x)));
            });
        }
    }
};

// By all threads: writes the pairs of a tile, of which this thread has `pairs`.
template <class Real>
__device__ __forceinline__ void write_tile(
    const PairOutput& output, const Unit& unit, Shared<Real>& shared, const Masks& masks, u32 pairs, u32 first) {
    u32 all;
    u32 at = sum_before(pairs, shared.sums, all);
    const u32 of_target = pairs + __shfl_xor_sync(~0u, pairs, 1);
    if (threadIdx.x % 2 == 0) {
        shared.moved[masks.target] = shared.next[masks.target] - at;
        shared.next[masks.target] += of_target;
    }
    const u32 behind = at + pairs;
    u32 word = masks.begin, bits = 0;
    for (u32 window = 0; window < all; window += LIST) {
        for (const u32 stop = min(behind, window + LIST); at < stop; at++) {
            while (bits == 0) bits = shared.mask[word++][masks.target];
            const u32 candidate = 32 * (word - 1) + __ffs(bits) - 1;
            shared.list[at - window] = static_cast<unsigned short>(masks.target << CANDIDATE_BITS | candidate);
            bits &= bits - 1;
        }
        __syncthreads();
        Writer<Real>{output, unit, shared, first, window, min(LIST, all - window)}.write();
        __syncthreads();
    }
}

// By all threads: where the pairs of the block begin, and the offsets of its targets. This thread
// has `pairs`.
template <class Real>
__device__ __forceinline__ u32 place_pairs(
    const Systems& systems, const PairOutput& output, const Unit& unit, Shared<Real>& shared, u32 pairs, bool is_last) {
    u32 all;
    const u32 before = sum_before(pairs, shared.sums, all);
    const u32 target = threadIdx.x / 2;
    if (threadIdx.x < 32) {
        const u64 base = look_back(systems.sums, shared.unit, all, threadIdx.x);
        if (threadIdx.x == 0) {
            shared.base = base;
            if (is_last) output.starts[systems.points] = systems.status->pairs = base + all;
        }
    }
    if (threadIdx.x % 2 == 0) shared.next[target] = before;
    __syncthreads();
    if (threadIdx.x % 2 == 0 && target < unit.count) {
        output.starts[unit.begin + unit.first + target] = shared.base + before;
    }
    return all;
}

// All pairs of a block's targets.
template <class Real>
__device__ __forceinline__ void search(const Systems& systems, const PairOutput& output, Shared<Real>& shared) {
    // Nothing is read by offsets that cannot be.
    if (systems.status->fault != nf::NONE) return;
    if (threadIdx.x == 0) shared.unit = atomicAdd(&systems.status->ticket, 1u) + 1;
    __syncthreads();
    const Unit unit = unit_of(systems, shared.unit);
    const bool is_last = shared.unit == systems.points / TARGETS + systems.count - 1;
    if (unit.count == 0 && !is_last) {
        if (threadIdx.x == 0) *const_cast<volatile u64*>(systems.sums + shared.unit) = SUM_ONLY;
        return;
    }
    bool is_good = unit.count > 0;
    if (is_good) {
        begin_unit<Real>(systems, unit, shared);
        is_good = !shared.bad;
        if (!is_good && threadIdx.x == 0) atomicMin(&systems.status->bad, unit.system);
    }
    u32 pairs = 0, tiles = 0, candidates_of_round = 0;
    // Counts, and then writes, by one loop: twice the code would not stay in the cache.
#pragma unroll 1
    for (u32 pass = 0; pass < 2; pass++) {
        const bool kept = pass == 1 && tiles == 1 && unit.points <= THREADS;
        if (is_good) {
            tiles = for_each_tile<Real>(systems, unit, shared, kept, candidates_of_round, [&](u32 first, u32 candidates) {
                const Masks masks(unit, candidates);
                const u32 found = masks.count(shared);
                if (pass == 0) pairs += found;
                else write_tile<Real>(output, unit, shared, masks, found, first);
            });
        }
        if (pass == 1) return;
        const u32 all = place_pairs<Real>(systems, output, unit, shared, pairs, is_last);
        if (all == 0 || !output.is_wanted() || shared.base + all > output.capacity) return;
    }
}

// Pairs of many small systems, all pairs of each tested directly.
//
// A block has up to TARGETS targets of one system, and a warp takes one of them after the other
// against candidates that the block has laid out in shared memory: the images of every source that
// can come within the radius of any target of the block. A first pass counts the neighbours of
// every point, and a second one, after a scan of the counts, writes them. The lanes of a warp are
// consecutive candidates, so entries are written side by side, and candidates lie in the order of
// (source, image), so a list comes sorted.
//
// Pairs, image vectors and displacements have the bits of the CPU backend: the operations are those
// of nearfield_cpu's systems/direct.rs, in the same order and never contracted. The bound of the
// images is that of nearfield_grid's domain/images.rs, which has the proof; images beyond it are
// only ever too many.
#pragma once
#include "constants.cuh"

typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

constexpr u32 THREADS = nf::SYSTEM_THREADS;
constexpr u32 WARPS = THREADS / 32;
constexpr u32 TARGETS = nf::SYSTEM_TARGETS;
constexpr u32 TILE = nf::SYSTEM_TILE;
static_assert(TILE % 32 == 0, "warps read whole vectors of candidates");

// Points farther from the origin than this many boxes are refused, as by the CPU backend.
constexpr double FARTHEST_BOX = 1073741824.0;
// Candidates of a block: the images of all its sources together.
constexpr double MAX_CANDIDATES = 16777216.0;
// A little more than the lean that the CPU backend refuses.
constexpr double MAX_STRETCH = 1025.0;

// 2 to a power, exactly.
__device__ __forceinline__ double power_of_two(int exponent) {
    double power = 1.0;
    for (int k = 0; k < exponent; k++) power *= 2.0;
    for (int k = 0; k > exponent; k--) power *= 0.5;
    return power;
}

// Half the distance of the numbers around 1.
template <class Real>
__device__ __forceinline__ double unit_roundoff();
template <>
__device__ __forceinline__ double unit_roundoff<float>() { return power_of_two(-24); }
template <>
__device__ __forceinline__ double unit_roundoff<double>() { return power_of_two(-53); }

__device__ __forceinline__ float fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }
__device__ __forceinline__ double fused(double a, double b, double c) { return __fma_rn(a, b, c); }
__device__ __forceinline__ float root(float x) { return __fsqrt_rn(x); }
__device__ __forceinline__ double root(double x) { return __dsqrt_rn(x); }

struct Vector {
    double x, y, z;
};

__device__ __forceinline__ double dot(Vector a, Vector b) { return (a.x * b.x + a.y * b.y) + a.z * b.z; }
__device__ __forceinline__ double length_of(Vector a) { return __dsqrt_rn(dot(a, a)); }
__device__ __forceinline__ Vector times(Vector a, double by) { return {a.x * by, a.y * by, a.z * by}; }
__device__ __forceinline__ Vector cross(Vector a, Vector b) {
    return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

// The input of a search, arrays on the device.
struct Systems {
    const void* positions;   // 3 numbers of a point
    const i64* offsets;      // systems + 1
    const double* radii;     // one, or one of each system
    const double* cells;     // 9 numbers: one, or one of each system, or null
    const unsigned char* periodic;  // 3 flags: one, or one of each system, or null
    void* boxes;             // nf::SYSTEM_BOX bytes of each system, which systems_prepare fills
    u32* fault;              // the first system that cannot be searched, else NONE
    u32 count;               // systems
    u32 points;
    u32 many;                // bits 0 to 2: radii, cells and flags are of each system
    u32 half;                // each pair stands once
};

// Where results go; arrays that are not wanted are null.
struct PairOutput {
    u32* counts;             // neighbours of every point
    const u64* starts;       // entries before every point, and all of them behind the last
    void* targets;           // numbers of `index_bytes`
    void* sources;
    int* images;             // 3 numbers of a pair
    void* displacements;     // 3 numbers of a pair
    void* distances;
    u64 capacity;            // entries that there is room for
    u32 index_bytes;         // 4 or 8
    u32 pad;
};

// A system's cell, ready to be searched.
struct SystemBox {
    Vector vectors[3];       // zero of open axes
    Vector inverse[3];       // dual to them, within what they span
    double lengths[3];       // 0 of open axes
    double drift;            // error of a fraction per box
    double radius;
    double r2;               // fl(r r) in the precision of the search
};
static_assert(sizeof(SystemBox) == nf::SYSTEM_BOX, "the buffer of boxes has room");

__device__ __forceinline__ bool is_finite(double x) { return x - x == 0.0; }

// The dual vectors of those that are not zero, in what they span; false where these nearly lie in
// one plane or line.
__device__ __forceinline__ bool invert(SystemBox& box) {
    int axes[3], count = 0;
    for (int k = 0; k < 3; k++) {
        box.inverse[k] = {0.0, 0.0, 0.0};
        if (box.lengths[k] > 0.0) axes[count++] = k;
    }
    Vector units[3];
    for (int n = 0; n < count; n++) units[n] = times(box.vectors[axes[n]], 1.0 / box.lengths[axes[n]]);
    Vector dual[3];
    if (count == 1) dual[0] = units[0];
    if (count == 2) {
        const Vector plane = cross(units[0], units[1]);
        const double share = 1.0 / dot(plane, plane);
        dual[0] = times(cross(units[1], plane), share);
        dual[1] = times(cross(plane, units[0]), share);
    }
    if (count == 3) {
        const Vector first = cross(units[1], units[2]);
        const double volume = 1.0 / dot(units[0], first);
        dual[0] = times(first, volume);
        dual[1] = times(cross(units[2], units[0]), volume);
        dual[2] = times(cross(units[0], units[1]), volume);
    }
    box.drift = power_of_two(-51);
    for (int n = 0; n < count; n++) {
        const double stretch = length_of(dual[n]);
        // NaN is not at most anything.
        if (!(stretch <= MAX_STRETCH)) return false;
        box.inverse[axes[n]] = times(dual[n], 1.0 / box.lengths[axes[n]]);
        for (int m = 0; m < count; m++) {
            const double exact = n == m ? 1.0 : 0.0;
            const double found = dot(box.inverse[axes[n]], box.vectors[axes[m]]);
            const double error = fabs(found - exact) * box.lengths[axes[n]] / box.lengths[axes[m]];
            box.drift = fmax(box.drift, error + stretch * power_of_two(-50));
        }
    }
    return true;
}

// Radius and cell of a system; false where one of them cannot be used.
template <class Real>
__device__ __forceinline__ bool make_box(const Systems& systems, u32 system, SystemBox& box) {
    const double given = systems.radii[systems.many & 1 ? system : 0];
    const Real radius = static_cast<Real>(given);
    box.radius = static_cast<double>(radius);
    box.r2 = static_cast<double>(radius * radius);
    if (!(box.radius >= power_of_two(-50) && box.radius <= power_of_two(63))) return false;
    const double* const cell = systems.cells + (systems.many & 2 ? 9ull * system : 0);
    const unsigned char* const periodic = systems.periodic + (systems.many & 4 ? 3ull * system : 0);
    for (int k = 0; k < 3; k++) {
        box.vectors[k] = {0.0, 0.0, 0.0};
        box.lengths[k] = 0.0;
        if (!systems.periodic || !periodic[k]) continue;
        if (!systems.cells) return false;
        box.vectors[k] = {cell[3 * k], cell[3 * k + 1], cell[3 * k + 2]};
        box.lengths[k] = length_of(box.vectors[k]);
        // The least normal number, and no infinity.
        if (!(box.lengths[k] >= 2.2250738585072014e-308 && is_finite(box.lengths[k]))) return false;
    }
    return invert(box);
}

// Whether the offsets of a system and of its neighbours can be.
__device__ __forceinline__ bool good_offsets(const Systems& systems, u32 system) {
    const i64 begin = systems.offsets[system], end = systems.offsets[system + 1];
    if (system == 0 && begin != 0) return false;
    if (system == systems.count - 1 && end != static_cast<i64>(systems.points)) return false;
    return begin >= 0 && begin <= end && end <= static_cast<i64>(systems.points)
        && end - begin <= static_cast<i64>(nf::SYSTEM_MAX);
}

// One thread per system.
template <class Real>
__device__ __forceinline__ void prepare(const Systems& systems, u32 system) {
    SystemBox box;
    if (good_offsets(systems, system) && make_box<Real>(systems, system, box)) {
        static_cast<SystemBox*>(systems.boxes)[system] = box;
    } else {
        atomicMin(systems.fault, system);
    }
}

// The block of targets that a block of threads has.
struct Unit {
    u32 system, first, count;  // first target, and number of targets: 0 for none
    u32 begin, points;         // of the system
};

// Block b has a part of the last system whose number plus the whole blocks of points before it is
// at most b. Offsets are good.
__device__ __forceinline__ Unit unit_of(const Systems& systems, u32 block) {
    u32 low = 0, high = systems.count;
    while (high - low > 1) {
        const u32 middle = low + (high - low) / 2;
        const u64 first = static_cast<u64>(systems.offsets[middle]) / TARGETS + middle;
        if (first <= block) low = middle;
        else high = middle;
    }
    Unit unit;
    unit.system = low;
    unit.begin = static_cast<u32>(systems.offsets[low]);
    unit.points = static_cast<u32>(systems.offsets[low + 1]) - unit.begin;
    const u32 part = block - (unit.begin / TARGETS + low);
    unit.first = part * TARGETS;
    unit.count = unit.first < unit.points ? min(TARGETS, unit.points - unit.first) : 0;
    return unit;
}

// Shared memory of a block.
template <class Real>
struct Shared {
    Real position[3][TILE], shift[3][TILE];
    u32 source[TILE], image[TILE];
    Real target[3][TARGETS];
    u32 found[TARGETS];
    double reduced[WARPS][19];
    double first[3], reach[3], spread[3][2];
    u32 dims[3];
    u32 sums[WARPS];
    u32 zero, bad;
    SystemBox box;
};

// Smallest and largest numbers of a thread: of coordinates, of fractions, and of fractions of
// targets, along each axis, the largest negated.
struct Extent {
    double least[18];

    __device__ __forceinline__ Extent() {
        for (int k = 0; k < 18; k++) least[k] = 1.7976931348623157e308;
    }

    __device__ __forceinline__ void add(int first, Vector at) {
        const double numbers[3] = {at.x, at.y, at.z};
        for (int k = 0; k < 3; k++) {
            least[first + k] = fmin(least[first + k], numbers[k]);
            least[first + 3 + k] = fmin(least[first + 3 + k], -numbers[k]);
        }
    }
};

// By the first thread: how far images reach, and the box of images of this block.
template <class Real>
__device__ __forceinline__ void find_reach(Shared<Real>& shared, const double* least, u32 points) {
    const SystemBox& box = shared.box;
    const double unit = unit_roundoff<Real>();
    double extent = 0.0, magnitude[3];
    for (int k = 0; k < 3; k++) {
        extent += fmax(-least[3 + k] - least[k], 0.0);
        magnitude[k] = fmax(fabs(least[k]), fabs(least[3 + k]));
    }
    const double rough = box.radius + 16.0 * unit * (box.radius + extent);
    double rounding[3], all = 0.0;
    for (int k = 0; k < 3; k++) {
        const Vector row = {fabs(box.inverse[k].x), fabs(box.inverse[k].y), fabs(box.inverse[k].z)};
        const Vector most = {magnitude[0], magnitude[1], magnitude[2]};
        rounding[k] = dot(row, most) * power_of_two(-49);
        all += (length_of(box.inverse[k]) * (rough + extent) + 1.0 + rounding[k]) * box.lengths[k];
    }
    all *= 2.0;
    const double rho = rough + all * power_of_two(-48);
    double candidates = points;
    shared.zero = 0;
    for (int k = 0; k < 3; k++) {
        shared.reach[k] = 0.0;
        if (box.lengths[k] > 0.0) {
            const double reach = length_of(box.inverse[k]) * rho + box.drift * all / box.lengths[k];
            shared.reach[k] = reach * (1.0 + power_of_two(-40)) + 4.0 * rounding[k];
        }
        const double low = least[6 + k], high = -least[9 + k];
        shared.spread[k][0] = least[12 + k];
        shared.spread[k][1] = -least[15 + k];
        shared.first[k] = ceil(shared.spread[k][0] - high - shared.reach[k]);
        const double last = floor(shared.spread[k][1] - low + shared.reach[k]);
        const double dim = last - shared.first[k] + 1.0;
        candidates *= dim;
        const bool is_far = fmax(fabs(low), fabs(high)) > FARTHEST_BOX;
        // Counts of boxes are written in 32 bits.
        const bool is_wide = shared.first[k] < -2147483648.0 || last > 2147483647.0;
        if (is_far || is_wide || !(candidates >= 1.0 && candidates <= MAX_CANDIDATES)) shared.bad = 1;
        shared.dims[k] = shared.bad ? 1 : static_cast<u32>(dim);
        // The image of all zeros lies in the box: every target is a source too.
        shared.zero = shared.zero * shared.dims[k] + static_cast<u32>(shared.bad ? 0.0 : -shared.first[k]);
    }
}

// By all threads: the targets to shared memory, and the bounds of the system.
template <class Real>
__device__ __forceinline__ void begin_unit(const Systems& systems, const Unit& unit, Shared<Real>& shared) {
    const Real* const at = static_cast<const Real*>(systems.positions) + 3ull * unit.begin;
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    if (threadIdx.x == 0) {
        shared.box = static_cast<const SystemBox*>(systems.boxes)[unit.system];
        shared.bad = 0;
    }
    __syncthreads();
    Extent extent;
    double wrong = 0.0;
    for (u32 point = threadIdx.x; point < unit.points; point += THREADS) {
        const Real x = at[3ull * point], y = at[3ull * point + 1], z = at[3ull * point + 2];
        const Vector place = {static_cast<double>(x), static_cast<double>(y), static_cast<double>(z)};
        if (!is_finite(place.x) || !is_finite(place.y) || !is_finite(place.z)) wrong = -1.0;
        const SystemBox& box = shared.box;
        const Vector fractions = {dot(box.inverse[0], place), dot(box.inverse[1], place), dot(box.inverse[2], place)};
        extent.add(0, place);
        extent.add(6, fractions);
        if (point - unit.first < unit.count) {
            extent.add(12, fractions);
            const u32 own = point - unit.first;
            shared.target[0][own] = x;
            shared.target[1][own] = y;
            shared.target[2][own] = z;
            shared.found[own] = 0;
        }
    }
    for (int k = 0; k < 18; k++) {
        double least = extent.least[k];
        for (int step = 16; step > 0; step /= 2) least = fmin(least, __shfl_xor_sync(~0u, least, step));
        if (lane == 0) shared.reduced[warp][k] = least;
    }
    for (int step = 16; step > 0; step /= 2) wrong = fmin(wrong, __shfl_xor_sync(~0u, wrong, step));
    if (lane == 0) shared.reduced[warp][18] = wrong;
    __syncthreads();
    if (threadIdx.x == 0) {
        double least[19];
        for (int k = 0; k < 19; k++) {
            least[k] = shared.reduced[0][k];
            for (u32 other = 1; other < WARPS; other++) least[k] = fmin(least[k], shared.reduced[other][k]);
        }
        if (least[18] < 0.0) shared.bad = 1;
        else find_reach<Real>(shared, least, unit.points);
    }
    __syncthreads();
}

// The images of a source, as places in the box of images: first along each axis, how many along
// each, and how many in all.
struct Range {
    u32 first[3], dims[3], count;
};

template <class Real>
__device__ __forceinline__ Range range_of(const Shared<Real>& shared, const Real at[3]) {
    const Vector place = {static_cast<double>(at[0]), static_cast<double>(at[1]), static_cast<double>(at[2])};
    Range range;
    range.count = 1;
    for (int k = 0; k < 3; k++) {
        const double fraction = dot(shared.box.inverse[k], place);
        const double begin = ceil(shared.spread[k][0] - fraction - shared.reach[k]);
        const double end = floor(shared.spread[k][1] - fraction + shared.reach[k]);
        range.first[k] = static_cast<u32>(begin - shared.first[k]);
        range.dims[k] = static_cast<u32>(fmax(end - begin + 1.0, 0.0));
        range.count *= range.dims[k];
    }
    return range;
}

// Writes the candidates of a source that are numbers `begin` to `end` of the block to the tile that
// begins with number `tile`; those of the source begin with number `own`.
template <class Real>
__device__ __forceinline__ void lay_out(Shared<Real>& shared, const Range& range, const Real at[3], u32 source,
                                        u32 own, u32 tile, u32 end) {
    const u32 begin = max(own, tile);
    const u32 stop = min(own + range.count, end);
    for (u32 number = begin; number < stop; number++) {
        const u32 k = number - own, column = k / range.dims[2];
        const u32 place[3] = {
            range.first[0] + column / range.dims[1],
            range.first[1] + column % range.dims[1],
            range.first[2] + k % range.dims[2],
        };
        const double n[3] = {shared.first[0] + place[0], shared.first[1] + place[1], shared.first[2] + place[2]};
        const Vector* const v = shared.box.vectors;
        const u32 slot = number - tile;
        shared.shift[0][slot] = static_cast<Real>((n[0] * v[0].x + n[1] * v[1].x) + n[2] * v[2].x);
        shared.shift[1][slot] = static_cast<Real>((n[0] * v[0].y + n[1] * v[1].y) + n[2] * v[2].y);
        shared.shift[2][slot] = static_cast<Real>((n[0] * v[0].z + n[1] * v[1].z) + n[2] * v[2].z);
        for (int axis = 0; axis < 3; axis++) shared.position[axis][slot] = at[axis];
        shared.source[slot] = source;
        shared.image[slot] = (place[0] * shared.dims[1] + place[1]) * shared.dims[2] + place[2];
    }
}

__device__ __forceinline__ void put_index(void* array, u64 at, u32 bytes, u32 index) {
    if (!array) return;
    if (bytes == 8) static_cast<i64*>(array)[at] = index;
    else static_cast<u32*>(array)[at] = index;
}

// A pair to its entry in all arrays that are wanted.
template <class Real>
__device__ __forceinline__ void put_pair(const PairOutput& output, const Shared<Real>& shared, u64 at,
                                         u32 target, u32 source, u32 image, const Real d[3], Real d2) {
    put_index(output.targets, at, output.index_bytes, target);
    put_index(output.sources, at, output.index_bytes, source);
    if (output.images) {
        const u32 column = image / shared.dims[2];
        output.images[3 * at] = static_cast<int>(shared.first[0] + column / shared.dims[1]);
        output.images[3 * at + 1] = static_cast<int>(shared.first[1] + column % shared.dims[1]);
        output.images[3 * at + 2] = static_cast<int>(shared.first[2] + image % shared.dims[2]);
    }
    if (output.displacements) {
        Real* const to = static_cast<Real*>(output.displacements) + 3 * at;
        for (int axis = 0; axis < 3; axis++) to[axis] = d[axis];
    }
    if (output.distances) static_cast<Real*>(output.distances)[at] = root(d2);
}

// By a warp: a target against the candidates of a tile.
template <class Real, bool WRITE>
__device__ __forceinline__ void meet(const Systems& systems, const PairOutput& output, const Unit& unit,
                                     Shared<Real>& shared, u32 own, u32 candidates) {
    const u32 lane = threadIdx.x & 31;
    const u32 target = unit.first + own;
    const Real x = shared.target[0][own], y = shared.target[1][own], z = shared.target[2][own];
    const Real r2 = static_cast<Real>(shared.box.r2);
    u32 found = shared.found[own];
    const u64 base = WRITE ? output.starts[unit.begin + target] : 0;
    for (u32 begin = 0; begin < candidates; begin += 32) {
        const u32 c = begin + lane;
        const u32 source = shared.source[c], image = shared.image[c];
        const Real d[3] = {
            (shared.position[0][c] - x) + shared.shift[0][c],
            (shared.position[1][c] - y) + shared.shift[1][c],
            (shared.position[2][c] - z) + shared.shift[2][c],
        };
        const Real d2 = fused(d[2], d[2], fused(d[1], d[1], d[0] * d[0]));
        const bool is_after = source > target || (source == target && image > shared.zero);
        const bool is_other = source != target || image != shared.zero;
        const bool hit = c < candidates && d2 <= r2 && (systems.half ? is_after : is_other);
        const u32 hits = __ballot_sync(~0u, hit);
        if (WRITE && hit) {
            const u64 at = base + found + __popc(hits & ((1u << lane) - 1));
            put_pair<Real>(output, shared, at, unit.begin + target, unit.begin + source, image, d, d2);
        }
        found += __popc(hits);
    }
    __syncwarp();
    if (lane == 0) shared.found[own] = found;
}

// Points before those of a thread's sources: the exclusive sum over the block; `all` is the whole.
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

// Zero neighbours for points `first` to `end`: the scan reads all counts, whatever was found wrong.
__device__ __forceinline__ void count_none(const PairOutput& output, u32 first, u32 end) {
    for (u32 point = first + threadIdx.x; point < end; point += THREADS) output.counts[point] = 0;
}

// A pass over all pairs of a unit: counts, or writes.
template <class Real, bool WRITE>
__device__ __forceinline__ void pass(const Systems& systems, const PairOutput& output, Shared<Real>& shared) {
    // Nothing is read by offsets that cannot be, and nothing is written without room.
    if (*systems.fault != nf::NONE) {
        // There are more blocks than whole blocks of points.
        const u32 first = blockIdx.x * TARGETS;
        if (!WRITE) count_none(output, first, min(first + TARGETS, systems.points));
        return;
    }
    if (WRITE && output.starts[systems.points] > output.capacity) return;
    const Unit unit = unit_of(systems, blockIdx.x);
    if (unit.count == 0) return;
    begin_unit<Real>(systems, unit, shared);
    if (shared.bad) {
        if (threadIdx.x == 0) atomicMin(systems.fault + 1, unit.system);
        const u32 targets = unit.begin + unit.first;
        if (!WRITE) count_none(output, targets, targets + unit.count);
        return;
    }
    const u32 warp = threadIdx.x / 32;
    const Real* const points = static_cast<const Real*>(systems.positions) + 3ull * unit.begin;
    for (u32 first = 0; first < unit.points; first += THREADS) {
        const u32 source = first + threadIdx.x;
        const bool is_one = source < unit.points;
        Real at[3] = {0, 0, 0};
        for (int axis = 0; axis < 3; axis++) at[axis] = is_one ? points[3ull * source + axis] : static_cast<Real>(0);
        Range range = {};
        if (is_one) range = range_of<Real>(shared, at);
        u32 all;
        const u32 own = sum_before(range.count, shared.sums, all);
        for (u32 tile = 0; tile < all; tile += TILE) {
            const u32 end = min(tile + TILE, all);
            lay_out<Real>(shared, range, at, source, own, tile, end);
            __syncthreads();
            for (u32 target = warp; target < unit.count; target += WARPS) {
                meet<Real, WRITE>(systems, output, unit, shared, target, end - tile);
            }
            __syncthreads();
        }
    }
    if (WRITE) return;
    for (u32 target = threadIdx.x; target < unit.count; target += THREADS) {
        output.counts[unit.begin + unit.first + target] = shared.found[target];
    }
}

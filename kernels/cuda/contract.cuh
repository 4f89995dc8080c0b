// What all kernels share: cells, sorted points and the arithmetic of the neighbour test.
//
// Everything here gives the same bits as the CPU backend: cells as nearfield_grid::Lattice::cell,
// distances as the contract has them. The structs are filled by
// crates/engine/gpu/src/launch/layout.rs; programs assert that it has the same fields.
#pragma once
#include "cells.cuh"
#include "constants.cuh"

typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

using nf::ANY_WRAPPED, nf::FAILED, nf::FAR_WRAPPED, nf::NEAR_BOXES, nf::NEAR_WRAPPED, nf::NONE;

// NF_DOUBLE: positions are given, and pairs decided, in double precision.
#ifndef NF_DOUBLE
#define NF_DOUBLE 0
#endif
constexpr bool DOUBLE = NF_DOUBLE;
#if NF_DOUBLE
using Given = double;
#else
using Given = float;
#endif

// Three numbers of the given precision: a position, or a difference of two.
struct GivenVector {
    Given x, y, z;
};

// The bits of a quiet NaN.
constexpr u32 NOT_A_NUMBER = 0x7fc00000u;

// Cells of edge r/K of one radius and domain.
struct Lattice {
    double inverse_edge[3];  // cells per unit length; in a tilted box per unit of width
    double length[3];        // box length of a periodic axis, 0 of an open one
    double vectors[3][3];    // box vectors of a tilted box
    double inverse[3][3];    // rows of the inverse of their matrix; see `fraction_of`
    i64 period[3];           // cells in the box on a periodic axis, 0 on an open one
    double phase[3];         // where cell 0 begins, in cells before coordinate 0
    float r2;                // squared radius
    u32 tilted;
    u32 periodic;            // whether any axis is
    float shifts[27][3];     // vectors of the images (-1, -1, -1) to (1, 1, 1), a fastest
    // How proxies of wrapped points are made and compared; nearfield_grid::WrappedProxies has it.
    u32 has_inner;           // proxies can prove a pair
    double radius;
    double squared_radius;   // in double precision
    double centre[3];        // of double precision: subtracted from coordinates
    double reach;            // filter radius; infinite where all proxies are 0
    double rounding[3];      // what is added to it, as shares of the target's proxy
};

// The image (0, 0, 0) among Lattice::shifts.
constexpr u32 HERE = 13;

// Where the cells of a brick lie: the first of them divided by BRICK along x, and y and z.
struct Brick {
    i64 x, y, z;
};

// One set sorted by cell. A dense table has a start for every cell of a box of cells, and one
// behind the last. A sparse one, for points that lie far apart, has them for the cells of bricks
// that hold points: BRICK cells side by side along x. Bricks are found by hashing.
struct Points {
    // x, y, z, and the caller's index as bits; in double precision x, y and z of the proxy
    const float4* at;
    const int4* wraps;      // whole boxes between a point and its image in the box; if ANY_WRAPPED
    const float4* proxies;  // single precision: proxies and indices; if ANY_WRAPPED…
    const u32* boxes;       // …and the counts of `wraps` in bytes (imaged.cuh); nf::READ_AHEAD more
    const double* given;    // double precision: x, y and z as given
    const u32* starts;
    const u32* flags;       // what the last sort met: ANY_WRAPPED, FAILED
    const u32* ids;         // sparse: number of the brick of every slot of the hash table, or NONE
    const Brick* bricks;      // sparse: first cell / BRICK along x, y, and z of every brick
    i64 origin[3];          // dense: first cell of the box along each axis
    u32 dims[3];            // dense: cells of the box along each axis
    u32 mask;               // sparse: slots of the hash table, less 1
    u32 sparse;
    u32 cells;              // cells of the table
    u32 count;              // points
    u32 pad[3];             // dense: empty cells on either side, which no point may be in
    // targets that are a share of a set: their places in the whole set, else null
    const u32* slots;
};

constexpr int BRICK = nf::BRICK;
constexpr int BRICK_SHIFT = 3;
static_assert(BRICK == 1 << BRICK_SHIFT, "cells are found in a brick by a shift");

// Where the search for a brick begins in the hash table; the finaliser of MurmurHash3 over a
// combination of the coordinates.
__device__ __forceinline__ u32 brick_hash(i64 x, i64 y, i64 z) {
    u64 h = static_cast<u64>(x) * 0x9e3779b97f4a7c15ull + static_cast<u64>(y) * 0xc2b2ae3d27d4eb4full
        + static_cast<u64>(z) * 0x165667b19e3779f9ull;
    h ^= h >> 33;
    h *= 0xff51afd7ed558ccdull;
    h ^= h >> 33;
    return static_cast<u32>(h);
}

// Number of a brick, NONE where no point lies in it.
__device__ __forceinline__ u32 find_brick(const Points& points, i64 x, i64 y, i64 z) {
    // At least half of the slots are empty, so the search ends.
    for (u32 slot = brick_hash(x, y, z);; slot++) {
        const u32 id = points.ids[slot & points.mask];
        if (id == NONE) return NONE;
        const Brick brick = points.bricks[id];
        if (brick.x == x && brick.y == y && brick.z == z) return id;
    }
}

// A neighbour row: cells x - reach ... x + reach at (y, z), as offsets.
struct Row {
    int y, z, reach;
};

using nf::EVEN_CELLS, nf::FAR_SHIFT, nf::FARTHEST_CELL;

struct Place {
    double cell;
    int wraps;
};

__device__ __forceinline__ double clamped(double x) {
    return fmin(fmax(x, -FARTHEST_CELL), FARTHEST_CELL);
}

// Cell on an open axis beyond EVEN_CELLS: the bits of a number grow with it.
__device__ __forceinline__ double far_cell(double u) {
    const double distance = fmin(fabs(u), 1.7976931348623157e308);
    const i64 beyond = (__double_as_longlong(distance) - __double_as_longlong(EVEN_CELLS)) >> FAR_SHIFT;
    const double cell = EVEN_CELLS + static_cast<double>(beyond);
    return u < 0.0 ? -cell - 1.0 : cell;
}

// A coordinate that cells are computed from, in double precision the distance to the centre.
__device__ __forceinline__ double anchored(const Lattice& lattice, int axis, Given coordinate) {
    return DOUBLE ? coordinate - lattice.centre[axis] : static_cast<double>(coordinate);
}

// Cell on an open axis of a point at this place along it.
__device__ __forceinline__ Place open_place_at(const Lattice& lattice, int axis, double along) {
    const double u = along * lattice.inverse_edge[axis] + lattice.phase[axis];
    const bool even = fabs(u) < EVEN_CELLS;
    Place place;
    place.cell = even ? floor(u) : far_cell(u);
    place.wraps = 0;
    return place;
}

__device__ __forceinline__ Place open_place(const Lattice& lattice, int axis, Given coordinate) {
    return open_place_at(lattice, axis, anchored(lattice, axis, coordinate));
}

// Where a point lies along an axis of a tilted box: how many of its box vectors lead there, or how
// far along an open axis. That is the coordinate unless a box vector leans along an open axis; the
// direction without images is another then.
__device__ __forceinline__ double fraction_of(const Lattice& lattice, int axis, Given x, Given y, Given z) {
    const double* g = lattice.inverse[axis];
    return (g[0] * anchored(lattice, 0, x) + g[1] * anchored(lattice, 1, y)) + g[2] * anchored(lattice, 2, z);
}

// Cell on any axis of any domain. The operations and their order are those of the CPU; products
// and sums are never contracted (`--fmad=false`).
__device__ __forceinline__ Place place_of(const Lattice& lattice, int axis, Given x, Given y, Given z) {
    const Given coordinate = axis == 0 ? x : axis == 1 ? y : z;
    if (lattice.length[axis] == 0.0) {
        if (lattice.tilted) return open_place_at(lattice, axis, fraction_of(lattice, axis, x, y, z));
        return open_place(lattice, axis, coordinate);
    }
    Place place;
    double wraps, cell;
    const double last = static_cast<double>(lattice.period[axis] - 1);
    if (lattice.tilted) {
        const double fraction = fraction_of(lattice, axis, x, y, z);
        wraps = floor(clamped(fraction));
        cell = floor(clamped((fraction - wraps) * static_cast<double>(lattice.period[axis])));
    } else {
        // Most points are in the box, whose quotient rounds down to 0.
        const bool inside_already = coordinate >= 0.0f && coordinate < lattice.length[axis];
        wraps = inside_already ? 0.0 : floor(clamped(coordinate / lattice.length[axis]));
        const double inside = coordinate - wraps * lattice.length[axis];
        cell = floor(clamped(inside * lattice.inverse_edge[axis]));
    }
    place.cell = fmin(fmax(cell, 0.0), last);
    place.wraps = static_cast<int>(wraps);
    return place;
}

// -1, 0 or 1 times a length, by selection.
__device__ __forceinline__ float times(int image, float length) {
    return image == 0 ? 0.0f : image < 0 ? -length : length;
}

// The vector of an image whose counts are -1, 0 or 1. In a straight box it has one number per axis;
// these are the same for all threads.
template <bool TILTED>
__device__ __forceinline__ float3 near_image_vector(const Lattice& lattice, int a, int b, int c) {
    const float(*const shifts)[3] = lattice.shifts;
    if (TILTED) {
        const float* const shift = shifts[static_cast<int>(HERE) + 9 * c + 3 * b + a];
        return make_float3(shift[0], shift[1], shift[2]);
    }
    return make_float3(times(a, shifts[HERE + 1][0]), times(b, shifts[HERE + 3][1]), times(c, shifts[HERE + 9][2]));
}

// A whole number of each box vector, along an axis.
__device__ __forceinline__ double boxes_along(const Lattice& lattice, const double (&boxes)[3], int axis) {
    if (!lattice.tilted) return boxes[axis] * lattice.length[axis];
    return (boxes[0] * lattice.vectors[0][axis] + boxes[1] * lattice.vectors[1][axis])
        + boxes[2] * lattice.vectors[2][axis];
}

// The image vector of image n, computed in f64 and rounded once. Two points 2^30 boxes on either
// side of the origin are 2^31 boxes apart, so counts have 64 bits.
__device__ __forceinline__ float3 image_vector(const Lattice& lattice, i64 a, i64 b, i64 c) {
    if (static_cast<u64>(a + 1) <= 2 && static_cast<u64>(b + 1) <= 2 && static_cast<u64>(c + 1) <= 2) {
        const int near[3] = {static_cast<int>(a), static_cast<int>(b), static_cast<int>(c)};
        if (lattice.tilted) return near_image_vector<true>(lattice, near[0], near[1], near[2]);
        return near_image_vector<false>(lattice, near[0], near[1], near[2]);
    }
    const i64 n[3] = {a, b, c};
    double boxes[3];
    float shift[3];
    for (int k = 0; k < 3; k++) boxes[k] = lattice.length[k] == 0.0 ? 0.0 : static_cast<double>(n[k]);
    for (int axis = 0; axis < 3; axis++) {
        shift[axis] = static_cast<float>(boxes_along(lattice, boxes, axis));
    }
    return make_float3(shift[0], shift[1], shift[2]);
}

// The same in the precision of the positions.
__device__ __forceinline__ GivenVector given_image_vector(const Lattice& lattice, i64 a, i64 b, i64 c) {
    if (!DOUBLE) {
        const float3 shift = image_vector(lattice, a, b, c);
        return GivenVector{shift.x, shift.y, shift.z};
    }
    const i64 n[3] = {a, b, c};
    double boxes[3];
    Given shift[3];
    for (int k = 0; k < 3; k++) boxes[k] = lattice.length[k] == 0.0 ? 0.0 : static_cast<double>(n[k]);
    for (int axis = 0; axis < 3; axis++) {
        shift[axis] = static_cast<Given>(boxes_along(lattice, boxes, axis));
    }
    return GivenVector{shift[0], shift[1], shift[2]};
}

// Whole boxes along each axis, none more than NEAR_BOXES, in a byte each: 4 times the number of
// boxes and 16. The differences of two such words are offsets into tables of images (imaged.cuh).
__device__ __forceinline__ u32 packed_boxes(const int4& counts) {
    const u32 x = static_cast<u32>(counts.x + 16), y = static_cast<u32>(counts.y + 16);
    return 4 * x + 4 * (y << 8) + 4 * (static_cast<u32>(counts.z + 16) << 16);
}

// Proxies along open axes of double precision are clamped to this distance from the centre.
constexpr double FARTHEST_PROXY = 2305843009213693952.0;

// The proxy of a point that lies `wraps` boxes outside the box.
__device__ __forceinline__ float3 proxy_of(const Lattice& lattice, const GivenVector& at, const int4& wraps) {
    const double boxes[3] = {static_cast<double>(wraps.x), static_cast<double>(wraps.y), static_cast<double>(wraps.z)};
    const double from[3] = {anchored(lattice, 0, at.x), anchored(lattice, 1, at.y), anchored(lattice, 2, at.z)};
    float proxy[3];
    for (int axis = 0; axis < 3; axis++) {
        const double inside = from[axis] - boxes_along(lattice, boxes, axis);
        const double bounded = DOUBLE ? fmin(fmax(inside, -FARTHEST_PROXY), FARTHEST_PROXY) : inside;
        proxy[axis] = isinf(lattice.reach) ? 0.0f : static_cast<float>(bounded);
    }
    return make_float3(proxy[0], proxy[1], proxy[2]);
}

// d squared, rounded as the contract says.
__device__ __forceinline__ float squared(float dx, float dy, float dz) {
    return __fmaf_rn(dz, dz, __fmaf_rn(dy, dy, __fmul_rn(dx, dx)));
}

__device__ __forceinline__ double squared(double dx, double dy, double dz) {
    return __fma_rn(dz, dz, __fma_rn(dy, dy, dx * dx));
}

// The first statement of a kernel that is started as one that overlaps (launch/kernel.rs): its
// blocks may take their places on the device while the last ones of the kernel before it on the
// stream are at work, and wait here until that one has ended and what it wrote can be read. The
// next kernel may take places as soon as all blocks of this one have theirs.
__device__ __forceinline__ void await_kernels_before() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;\n\tgriddepcontrol.wait;" : : : "memory");
#endif
}

// Adds a number on a condition, by one instruction; compilers add it in any case and select, which
// takes up to three.
__device__ __forceinline__ void add_if(bool condition, u32 number, u32& to) {
#ifdef __CUDA_ARCH__
    asm("{ .reg .pred p; setp.ne.u32 p, %1, 0; @p add.u32 %0, %0, %2; }"
        : "+r"(to) : "r"(static_cast<u32>(condition)), "r"(number));
#else
    if (condition) to += number;
#endif
}

// Sum of a value over the lanes before this one and this one.
__device__ __forceinline__ u32 warp_inclusive_sum(u32 value) {
    const u32 lane = threadIdx.x & 31;
    for (int step = 1; step < 32; step *= 2) {
        const u32 before = __shfl_up_sync(~0u, value, step);
        if (lane >= step) value += before;
    }
    return value;
}

// The cells of many small systems, checked and made ready for the search of systems.cuh.
#pragma once
#include "constants.cuh"

typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

constexpr u32 TARGETS = nf::SYSTEM_TARGETS;

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
__device__ __forceinline__ float smaller(float a, float b) { return fminf(a, b); }
__device__ __forceinline__ double smaller(double a, double b) { return fmin(a, b); }

template <class Real>
__device__ __forceinline__ Real largest();
template <>
__device__ __forceinline__ float largest<float>() { return 3.40282347e38f; }
template <>
__device__ __forceinline__ double largest<double>() { return 1.7976931348623157e308; }

struct Vector {
    double x, y, z;
};

__device__ __forceinline__ double dot(Vector a, Vector b) { return (a.x * b.x + a.y * b.y) + a.z * b.z; }
__device__ __forceinline__ double length_of(Vector a) { return __dsqrt_rn(dot(a, a)); }
__device__ __forceinline__ Vector times(Vector a, double by) { return {a.x * by, a.y * by, a.z * by}; }
__device__ __forceinline__ Vector cross(Vector a, Vector b) {
    return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

// What the host reads after a search; all bits are set before it.
struct SystemsStatus {
    u32 fault;               // the first system whose numbers cannot be used, else NONE
    u32 bad;                 // the first with points that cannot be, else NONE
    u32 ticket;              // blocks begun, less one
    u32 pad;
    u64 pairs;               // of all systems
};

// The input of a search, arrays on the device.
struct Systems {
    const void* positions;   // 3 numbers of a point
    const i64* offsets;      // systems + 1
    const double* radii;     // one, or one of each system
    const double* cells;     // 9 numbers: one, or one of each system, or null
    const unsigned char* periodic;  // 3 flags: one, or one of each system, or null
    void* boxes;             // nf::SYSTEM_BOX bytes of each system, which systems_prepare fills
    u32* units;              // the system of every block, or NONE; as well
    u64* sums;               // of pairs of every block, for the look-back; as well
    SystemsStatus* status;
    u32 count;               // systems
    u32 points;
    u32 many;                // bits 0 to 2: radii, cells and flags are of each system
    u32 half;                // each pair stands once
    u32 strict;              // pairs exactly as far apart as the radius are not neighbours
    u32 pad;
};

// A system's cell, ready to be searched.
struct SystemBox {
    Vector vectors[3];       // zero of open axes
    Vector inverse[3];       // dual to them, within what they span
    double lengths[3];       // 0 of open axes, as the next two
    double shares[3];        // 1 / lengths
    double norms[3];         // lengths of the inverse vectors
    double drift;            // error of a fraction per box
    double radius;
    double r2;               // fl(r r) in the precision of the search; the number below if strict
};
static_assert(sizeof(SystemBox) == nf::SYSTEM_BOX, "the buffer of boxes has room");

__device__ __forceinline__ bool is_finite(double x) { return x - x == 0.0; }

// The dual vectors of those that are not zero, in what they span; false where these nearly lie in
// one plane or line.
__device__ __forceinline__ bool invert(SystemBox& box) {
    // Loops over axes are unrolled, so that nothing of this goes to local memory.
    int count = 0;
    Vector units[3], dual[3];
    for (int k = 0; k < 3; k++) {
        const bool is_periodic = box.lengths[k] > 0.0;
        box.shares[k] = is_periodic ? 1.0 / box.lengths[k] : 0.0;
        units[k] = times(box.vectors[k], box.shares[k]);
        dual[k] = {0.0, 0.0, 0.0};
        count += is_periodic;
    }
    if (count == 1) {
        for (int k = 0; k < 3; k++) dual[k] = units[k];
    }
    if (count == 2) {
        for (int k = 0; k < 3; k++) {
            const int a = (k + 1) % 3, b = (k + 2) % 3;
            if (box.lengths[k] > 0.0) continue;
            const Vector plane = cross(units[a], units[b]);
            const double share = 1.0 / dot(plane, plane);
            dual[a] = times(cross(units[b], plane), share);
            dual[b] = times(cross(plane, units[a]), share);
        }
    }
    if (count == 3) {
        const Vector first = cross(units[1], units[2]);
        const double volume = 1.0 / dot(units[0], first);
        dual[0] = times(first, volume);
        dual[1] = times(cross(units[2], units[0]), volume);
        dual[2] = times(cross(units[0], units[1]), volume);
    }
    box.drift = power_of_two(-51);
    bool is_good = true;
    for (int k = 0; k < 3; k++) {
        const double stretch = length_of(dual[k]);
        // NaN is not at most anything.
        if (!(stretch <= MAX_STRETCH)) is_good = false;
        box.inverse[k] = times(dual[k], box.shares[k]);
        box.norms[k] = stretch * box.shares[k];
        for (int m = 0; m < 3; m++) {
            if (!(box.lengths[k] > 0.0 && box.lengths[m] > 0.0)) continue;
            const double exact = k == m ? 1.0 : 0.0;
            const double found = dot(box.inverse[k], box.vectors[m]);
            const double error = fabs(found - exact) * box.lengths[k] * box.shares[m];
            box.drift = fmax(box.drift, error + stretch * power_of_two(-50));
        }
    }
    return is_good;
}

// Radius and cell of a system; false where one of them cannot be used.
template <class Real>
__device__ __forceinline__ bool make_box(const Systems& systems, u32 system, SystemBox& box) {
    const double given = systems.radii[systems.many & 1 ? system : 0];
    const Real radius = static_cast<Real>(given);
    box.radius = static_cast<double>(radius);
    const Real squared = radius * radius;
    // More than half the distance to the next number, or as much at a power of two, whose next
    // number below is half as far: rounded, the difference is the number below.
    const Real step = squared * static_cast<Real>(unit_roundoff<Real>());
    const Real below = squared - step;
    box.r2 = static_cast<double>(systems.strict ? below : squared);
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

// Makes the box of a system, and says which blocks search it. One thread per system.
//
// Blocks are numbered without a sum over systems: the first of a system is the whole blocks of
// points before it plus the number of systems before it, so there is room for all that it needs.
template <class Real>
__device__ __forceinline__ void prepare(const Systems& systems, u32 system) {
    SystemBox box;
    if (!good_offsets(systems, system) || !make_box<Real>(systems, system, box)) {
        atomicMin(&systems.status->fault, system);
        return;
    }
    static_cast<SystemBox*>(systems.boxes)[system] = box;
    const u32 begin = static_cast<u32>(systems.offsets[system]), end = static_cast<u32>(systems.offsets[system + 1]);
    const u32 first = begin / TARGETS + system, behind = first + (end - begin + TARGETS - 1) / TARGETS;
    for (u32 unit = first; unit < end / TARGETS + system + 1; unit++) {
        systems.units[unit] = unit < behind ? system : nf::NONE;
        systems.sums[unit] = 0;
    }
}

// Lists and points for traversals of stored lists: entries as sorted places of sources, and how far
// points have come since lists with a skin were built. Also points that were named as targets, and
// some lists as lists of their own.
//
// A list names sources by the caller's index. Sources are sorted, so that those near each other lie
// side by side; a traversal over lists reads them through their sorted places, which are looked up
// once per search.
#include "contract.cuh"

using nf::GRID_THREADS;

// Positions of a set since lists with a skin were built, in the order in which it was sorted then.
// In double precision `built` has the indices, and positions are in the arrays of `double`.
struct Following {
    const float4* built;      // x, y, z, and the caller's index as bits, at the build
    const double* given;      // double precision: three numbers a point, at the build
    const void* positions;    // three numbers a point in the caller's order, now
    float4* now;              // the same in sorted order, with the index
    double* now_given;        // double precision: the same in sorted order
    u32* moved;               // bits of the largest squared displacement, rounded up
    u32* next;                // the same word of the next call, which this one clears
    double low[3], high[3];   // displacements count as infinite outside of this
    u32 count;                // points
};

// Lists with a skin of some pairs of sets, which are judged together.
struct Judged {
    // Bits of the largest squared displacements since they were built, of targets and sources;
    // null for points that have not moved.
    const u32* moved[nf::JUDGED_PAIRS][2];
    u32* stale;                       // becomes 1 if one of them may miss a pair, else 0…
    float allowed[nf::JUDGED_PAIRS];  // sum of both displacements up to which lists hold every pair
    u32 pairs;                        // how many
    u32 more;                         // …or stays as it is: others were judged before
};

// The sorted place of every point, by the caller's index.
extern "C" __global__ void __launch_bounds__(GRID_THREADS)
slots_of_points(const float4* __restrict__ at, u32 count, u32* __restrict__ slots) {
    await_kernels_before();
    const u32 slot = blockIdx.x * GRID_THREADS + threadIdx.x;
    if (slot < count) slots[__float_as_uint(at[slot].w)] = slot;
}

// The sorted places of the sources that entries name. `total` is how many entries there are, of
// which `capacity` have room.
extern "C" __global__ void __launch_bounds__(GRID_THREADS)
slots_of_entries(const u32* __restrict__ entries, const u64* __restrict__ total, u64 capacity,
                 const u32* __restrict__ slots, u32 count, u32* __restrict__ out) {
    await_kernels_before();
    const u64 end = min(*total, capacity);
    const u64 step = static_cast<u64>(gridDim.x) * GRID_THREADS;
    for (u64 entry = static_cast<u64>(blockIdx.x) * GRID_THREADS + threadIdx.x; entry < end; entry += step) {
        const u32 source = __ldg(entries + entry);
        out[entry] = source < count ? __ldg(slots + source) : NONE;
    }
}

// A displacement by the image whose numbers of boxes are nearest to its own, squared, in f64. In a
// tilted box a shorter way may exist; the longer one builds lists early, and loses no pair.
__device__ __forceinline__ double squared_displacement(const Lattice& box, double x, double y, double z) {
    double d[3] = {x, y, z}, boxes[3];
    for (int axis = 0; axis < 3; axis++) {
        const double* const row = box.inverse[axis];
        boxes[axis] = box.length[axis] == 0.0 ? 0.0 : rint((row[0] * x + row[1] * y) + row[2] * z);
    }
    for (int axis = 0; axis < 3; axis++) {
        if (!box.tilted) {
            d[axis] -= boxes[axis] * box.length[axis];
        } else {
            for (int k = 0; k < 3; k++) d[axis] -= boxes[k] * box.vectors[k][axis];
        }
    }
    return (d[0] * d[0] + d[1] * d[1]) + d[2] * d[2];
}

// The bits of a squared displacement, rounded up; infinite for what is not a number.
__device__ __forceinline__ u32 displacement_bits(const Following& set, const Lattice& box, const double* built,
                                                 const double* now) {
    const double x = now[0] - built[0], y = now[1] - built[1], z = now[2] - built[2];
    const double squared = squared_displacement(box, x, y, z);
    bool inside = true;
    for (int axis = 0; axis < 3; axis++) inside = inside && now[axis] >= set.low[axis] && now[axis] <= set.high[axis];
    // What is not a number is not below this either.
    const bool bounded = inside && squared < 1.0e38;
    const u32 bits = bounded ? __float_as_uint(__double2float_ru(squared)) : 0x7f800000u;
    // A coordinate that differs by whole boxes is a change too.
    return bits == 0 && (x != 0.0 || y != 0.0 || z != 0.0) ? 1 : bits;
}

// Keeps the largest of all threads.
__device__ __forceinline__ void keep_farthest(const Following& set, u32 farthest) {
    for (int step = 16; step > 0; step /= 2) farthest = max(farthest, __shfl_xor_sync(~0u, farthest, step));
    // Most warps find a larger one there, and add nothing to the queue of atomics.
    if ((threadIdx.x & 31) == 0 && farthest > *set.moved) atomicMax(set.moved, farthest);
}

// Whether lists with a skin may miss a pair. One word serves the kernels over all of them and the
// host, so either all compute, or none and the lists are built anew. By one warp.
extern "C" __global__ void __launch_bounds__(32) judge_lists(const __grid_constant__ Judged judged) {
    await_kernels_before();
    static_assert(nf::JUDGED_PAIRS <= 32, "a lane for every pair");
    const u32 pair = threadIdx.x;
    float together = 0.0f;
    for (u32 k = 0; pair < judged.pairs && k < 2; k++) {
        const u32* const moved = judged.moved[pair][k];
        if (moved) together = __fadd_ru(together, __fsqrt_ru(__uint_as_float(*moved)));
    }
    const bool may_miss = together > 0.0f && !(together <= judged.allowed[pair % nf::JUDGED_PAIRS]);
    const bool stale = __ballot_sync(~0u, may_miss) != 0;
    if (threadIdx.x == 0 && (stale || !judged.more)) *judged.stale = stale;
}

// Brings positions into the sorted order of the build, and finds the largest displacement since.
extern "C" __global__ void __launch_bounds__(GRID_THREADS)
follow_points(const __grid_constant__ Following set, const __grid_constant__ Lattice box) {
    await_kernels_before();
    const u32 slot = blockIdx.x * GRID_THREADS + threadIdx.x;
    if (slot == 0) *set.next = 0;
    u32 farthest = 0;
    if (slot < set.count) {
        const float4 built = set.built[slot];
        const float* const at =
            static_cast<const float*>(set.positions) + 3 * static_cast<u64>(__float_as_uint(built.w));
        const float x = at[0], y = at[1], z = at[2];
        set.now[slot] = make_float4(x, y, z, built.w);
        const double before[3] = {built.x, built.y, built.z}, now[3] = {x, y, z};
        farthest = displacement_bits(set, box, before, now);
    }
    keep_farthest(set, farthest);
}

// The same in double precision.
extern "C" __global__ void __launch_bounds__(GRID_THREADS)
follow_given(const __grid_constant__ Following set, const __grid_constant__ Lattice box) {
    await_kernels_before();
    const u32 slot = blockIdx.x * GRID_THREADS + threadIdx.x;
    if (slot == 0) *set.next = 0;
    u32 farthest = 0;
    if (slot < set.count) {
        const double* const at =
            static_cast<const double*>(set.positions) + 3 * static_cast<u64>(__float_as_uint(set.built[slot].w));
        const u64 place = 3 * static_cast<u64>(slot);
        const double now[3] = {at[0], at[1], at[2]};
        for (int axis = 0; axis < 3; axis++) set.now_given[place + axis] = now[axis];
        farthest = displacement_bits(set, box, set.given + place, now);
    }
    keep_farthest(set, farthest);
}

// Positions back from sorted order to the caller's.
extern "C" __global__ void __launch_bounds__(GRID_THREADS)
positions_of_points(const float4* __restrict__ at, u32 count, float* __restrict__ positions) {
    await_kernels_before();
    const u32 slot = blockIdx.x * GRID_THREADS + threadIdx.x;
    if (slot >= count) return;
    const float4 point = at[slot];
    float* const to = positions + 3 * static_cast<u64>(__float_as_uint(point.w));
    to[0] = point.x;
    to[1] = point.y;
    to[2] = point.z;
}

// The same in double precision; `at` has the indices.
extern "C" __global__ void __launch_bounds__(GRID_THREADS)
positions_of_given(const float4* __restrict__ at, const double* __restrict__ given, u32 count,
                   double* __restrict__ positions) {
    await_kernels_before();
    const u32 slot = blockIdx.x * GRID_THREADS + threadIdx.x;
    if (slot >= count) return;
    double* const to = positions + 3 * static_cast<u64>(__float_as_uint(at[slot].w));
    for (u32 axis = 0; axis < 3; axis++) to[axis] = given[3 * static_cast<u64>(slot) + axis];
}

// The sorted points with these indices, in the order of the indices, as targets of a walk. `wraps`
// and `given` are null where sorted points have none. `places` are those of slots_of_points.
extern "C" __global__ void __launch_bounds__(GRID_THREADS)
gather_points(const u32* __restrict__ indices, u32 count, const u32* __restrict__ places,
              const float4* __restrict__ at, const int4* __restrict__ wraps, const u32* __restrict__ flags,
              const double* __restrict__ given, float4* __restrict__ out_at, int4* __restrict__ out_wraps,
              double* __restrict__ out_given, u32* __restrict__ slots) {
    await_kernels_before();
    const u32 target = blockIdx.x * GRID_THREADS + threadIdx.x;
    if (target >= count) return;
    const u32 slot = places[indices[target]];
    slots[target] = slot;
    out_at[target] = at[slot];
    if (wraps && flags[ANY_WRAPPED]) out_wraps[target] = wraps[slot];
    if (given) {
        for (u32 axis = 0; axis < 3; axis++) {
            out_given[3 * static_cast<u64>(target) + axis] = given[3 * static_cast<u64>(slot) + axis];
        }
    }
}

// Lists `first` … `first + count` of the sorted targets as lists of their own, whose entries begin
// with number `base` of all: the caller's index of each target, the start and the length of each
// list, and behind the last start the end of all.
extern "C" __global__ void __launch_bounds__(GRID_THREADS)
part_of_lists(const float4* __restrict__ at, const u64* __restrict__ all_starts, u32 first, u32 count, u64 base,
              u32* __restrict__ targets, u64* __restrict__ starts, u32* __restrict__ counts) {
    await_kernels_before();
    const u32 list = blockIdx.x * GRID_THREADS + threadIdx.x;
    if (list > count) return;
    const u64 begin = all_starts[static_cast<u64>(first) + list];
    starts[list] = begin - base;
    if (list == count) return;
    targets[list] = __float_as_uint(at[first + list].w);
    counts[list] = static_cast<u32>(all_starts[static_cast<u64>(first) + list + 1] - begin);
}

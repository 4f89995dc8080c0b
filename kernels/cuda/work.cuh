// What is done with the pairs of a target, chosen by NF_WORK: counting neighbours, writing lists,
// or evaluating a pair kernel, whose text is then included as nearfield/user.cuh. NF_GEOMETRY:
// lists are written with the geometry of their pairs.
#pragma once
#include "walk.cuh"
#include "pair_geometry.cuh"
#include "fast.cuh"

#if NF_WORK == NF_PAIRS
// A pair as its kernel sees it: from the target to the source, and the squared length of that.
struct Pair {
    float d[3];
    float d2;
};

#include "nearfield/user.cuh"
#endif

#if NF_WORK == NF_PAIRS
// Records of four channels behind the first channel of a source.
constexpr int RECORDS = (NF_SOURCES + 2) / 4;
// Arrays cannot be empty.
constexpr int TARGET_ROOM = NF_TARGETS > 0 ? NF_TARGETS : 1;
constexpr int OUTPUT_ROOM = NF_OUTPUTS > 0 ? NF_OUTPUTS : 1;
#endif

// Buffers that jobs read and write; the host fills in those that its job needs.
struct Outlet {
    u32* counts;           // NF_COUNT, masks of NF_LISTS: neighbours of every target
    u32* masks;            // NF_LISTS: see masks.cuh; null where lists take two walks…
    u32* indices;          // …and the caller's indices of the sorted sources
    const u64* starts;     // NF_LISTS: entries before every sorted target…
    u32* entries;          // …the lists…
    u64* list_starts;      // …and their starts and lengths in the caller's order
    u32* list_counts;
    u64 capacity;          // entries there is room for…
    u64 base;              // …counted from this one on: the first at `entries`
    u32 first, behind;     // flat NF_LISTS: sorted targets whose lists are written
    const float4* sources; // NF_PAIRS: x, y, z and the first channel of every sorted source…
    const float4* more;    // …further channels, four at a time, record after record
    const float* target_fields;  // channels of every target in the caller's order…
    float* results;        // in the caller's order
    u32 in_order;          // NF_COUNT: counts are by the caller's index, not by the sorted order
    u32 combine;           // results are added to (or the smaller or larger taken)
    u32 target_stride;     // …numbers from one target to the next
    float uniforms[nf::MAX_UNIFORMS];
};

#if NF_WORK == NF_COUNT

struct Work {
    static constexpr bool LEAN = true, IMAGES = false, DISTANCES = false, TAKES_BITS = true;
    u32 count;
    const Walk& walk;
    const Outlet& outlet;

    __device__ __forceinline__ Work(const Walk& walk, const Target&, const Outlet& outlet) : count(0), walk(walk), outlet(outlet) {}
    __device__ __forceinline__ const float4* sources() const { return walk.sources.at; }
    __device__ __forceinline__ void visit(bool hit, u32, float, float, float, float, float) {
        add_if(hit, 1, count);
    }
    __device__ __forceinline__ void take(u32 hits, u32) { count += __popc(hits); }
    // One that was counted is none.
    __device__ __forceinline__ void refute() { count--; }
    // Sums of all lanes of a warp.
    __device__ __forceinline__ void add_up() {
        for (int step = 16; step > 0; step /= 2) count += __shfl_xor_sync(~0u, count, step);
    }
    // What add_up has found, for those who combine the warps of a block.
    using Total = u32;
    static constexpr u32 TOTALS = 1;
    __device__ __forceinline__ u32& total(u32) { return count; }
    static __device__ __forceinline__ u32 combined(u32 a, u32 b) { return a + b; }
    __device__ __forceinline__ void finish(const Target& target) {
        outlet.counts[outlet.in_order ? target.index : target.slot] = count;
    }
};

template <>
constexpr bool CAN_REFUTE<Work> = true;

#elif NF_WORK == NF_LISTS && NF_GEOMETRY

// Buffers of a job that writes lists and the geometry of their pairs.
struct PairOutlet {
    const Outlet& lists;
    const PairArrays& arrays;
};

// Writes entries and their geometry from `next` on, one after the other.
struct PairWriter {
    static constexpr bool LEAN = false, IMAGES = true, DISTANCES = false, TAKES_BITS = false;
    const Walk& walk;
    const Target& target;
    const Outlet& lists;
    const PairArrays& arrays;
    u64 next;
    i64 a, b, c;

    __device__ __forceinline__ PairWriter(const Walk& walk, const Target& target, const PairOutlet& to, u64 next)
        : walk(walk), target(target), lists(to.lists), arrays(to.arrays), next(next), a(0), b(0), c(0) {}
    __device__ __forceinline__ const float4* sources() const { return walk.sources.at; }
    __device__ __forceinline__ void image(i64 of_a, i64 of_b, i64 of_c) {
        a = of_a;
        b = of_b;
        c = of_c;
    }
    __device__ __forceinline__ void visit(bool hit, u32 k, float, float, float, float, float index) {
        if (!hit) return;
        if (next < lists.capacity) {
            const u64 at = next - lists.base;
            lists.entries[at] = __float_as_uint(index);
            const GivenVector from = given_position(walk.targets, target), source = given_position(walk.sources, k);
            put_pair(arrays, at, target.index, PairSeen(walk, from, source, a, b, c));
        }
        next++;
    }
};

// The same for strategies that go from cell to cell.
struct Work : PairWriter {
    __device__ __forceinline__ Work(const Walk& walk, const Target& target, const PairOutlet& to)
        : PairWriter(walk, target, to, to.lists.starts[target.slot]) {}
    __device__ __forceinline__ void finish(const Target& target) {
        const u64 start = lists.starts[target.slot];
        lists.list_starts[target.index] = start;
        lists.list_counts[target.index] = static_cast<u32>(next - start);
    }
};

#elif NF_WORK == NF_LISTS

// Writes straight to the list, for strategies whose threads do not go in step.
struct Work {
    static constexpr bool LEAN = false, IMAGES = false, DISTANCES = false, TAKES_BITS = false;
    u64 next;
    const Walk& walk;
    const Outlet& outlet;

    __device__ __forceinline__ Work(const Walk& walk, const Target& target, const Outlet& outlet)
        : next(outlet.starts[target.slot]), walk(walk), outlet(outlet) {}
    __device__ __forceinline__ const float4* sources() const { return walk.sources.at; }
    __device__ __forceinline__ void visit(bool hit, u32, float, float, float, float, float index) {
        if (hit) {
            if (next < outlet.capacity) outlet.entries[next - outlet.base] = __float_as_uint(index);
            next++;
        }
    }
    __device__ __forceinline__ void finish(const Target& target) {
        const u64 start = outlet.starts[target.slot];
        outlet.list_starts[target.index] = start;
        outlet.list_counts[target.index] = static_cast<u32>(next - start);
    }
};

#else

// Channels of sorted source k; the first comes along with its position.
__device__ __forceinline__ void read_channels(const Outlet& outlet, u32 k, float first, float* channels) {
    channels[0] = first;
    for (int record = 0; record < RECORDS; record++) {
        const float4 more = __ldg(outlet.more + static_cast<u64>(k) * RECORDS + record);
        channels[4 * record + 1] = more.x;
        channels[4 * record + 2] = more.y;
        channels[4 * record + 3] = more.z;
        channels[4 * record + 4] = more.w;
    }
}

// The kernel is evaluated for candidates that turn out not to be neighbours too where that takes
// no more than the channel that comes along with the position.
struct Work {
    static constexpr bool LEAN = NF_SOURCES <= 1 && NF_OUTPUTS <= 1, IMAGES = false, DISTANCES = true, TAKES_BITS = false;
    float target[TARGET_ROOM];
    float sum[OUTPUT_ROOM];
    const Walk& walk;
    const Outlet& outlet;

    __device__ __forceinline__ Work(const Walk& walk, const Target& at, const Outlet& outlet) : walk(walk), outlet(outlet) {
        for (int c = 0; c < NF_TARGETS; c++) {
            target[c] = outlet.target_fields[static_cast<u64>(at.index) * outlet.target_stride + c];
        }
        for (int c = 0; c < NF_OUTPUTS; c++) sum[c] = identity();
    }

    __device__ __forceinline__ const float4* sources() const { return outlet.sources; }

    __device__ __forceinline__ void visit(bool hit, u32 k, float dx, float dy, float dz, float d2, float first) {
        if (NF_SOURCES <= 1) {
            evaluate(hit, k, dx, dy, dz, d2, first);
        } else if (hit) {
            evaluate(true, k, dx, dy, dz, d2, first);
        }
    }

    __device__ __forceinline__ void evaluate(bool hit, u32 k, float dx, float dy, float dz, float d2, float first) {
        float channels[4 * RECORDS + 1];
        read_channels(outlet, k, first, channels);
        const Pair seen = {{dx, dy, dz}, d2};
        float result[OUTPUT_ROOM];
        pair(outlet.uniforms, seen, target, channels, result);
        for (int c = 0; c < NF_OUTPUTS; c++) {
            const float with = combined(sum[c], result[c]);
            sum[c] = hit ? with : sum[c];
        }
    }

    __device__ __forceinline__ void finish(const Target& at) {
        for (int c = 0; c < NF_OUTPUTS; c++) {
            float* const result = outlet.results + static_cast<u64>(at.index) * NF_OUTPUTS + c;
            *result = outlet.combine ? combined(*result, sum[c]) : sum[c];
        }
    }

    // Results of all lanes that share a target, combined in an order that depends on nothing.
    template <u32 LANES = 32>
    __device__ __forceinline__ void add_up() {
        for (int c = 0; c < NF_OUTPUTS; c++) {
            for (int step = LANES / 2; step > 0; step /= 2) sum[c] = combined(sum[c], __shfl_xor_sync(~0u, sum[c], step));
        }
    }

    // What add_up has found, for those who combine the warps of a block.
    using Total = float;
    static constexpr u32 TOTALS = OUTPUT_ROOM;
    __device__ __forceinline__ float& total(u32 c) { return sum[c]; }

    static __device__ __forceinline__ float identity() {
        return NF_REDUCE == NF_SUM ? 0.0f : __uint_as_float(NF_REDUCE == NF_MIN ? 0x7f800000u : 0xff800000u);
    }

    // As nearfield_pairs::Reduce::combine, NaN included.
    static __device__ __forceinline__ float combined(float a, float b) {
        if (NF_REDUCE == NF_SUM) return a + b;
        if (NF_REDUCE == NF_MIN) return b < a ? b : a;
        return b > a ? b : a;
    }
};

// x, y, z and the first channel of every sorted source, and the channels that follow. The
// channels of one source are side by side, those of the next `stride` numbers farther on.
extern "C" __global__ void __launch_bounds__(nf::GRID_THREADS)
gather_fields(const __grid_constant__ Points points, const float* __restrict__ fields, u32 stride,
              float4* __restrict__ sources, float4* __restrict__ more) {
    await_kernels_before();
    const float4* const at = points.at;
    const u32 count = points.count;
    const u32 slot = blockIdx.x * nf::GRID_THREADS + threadIdx.x;
    if (slot >= count) return;
    if (slot == 0) {
        // Loops over candidates read up to READ_AHEAD points behind the last.
        for (u32 behind = count; behind < count + nf::READ_AHEAD; behind++) {
            sources[behind] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            for (int record = 0; record < (NF_SOURCES + 2) / 4; record++) {
                more[static_cast<u64>(behind) * RECORDS + record] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            }
        }
    }
    const float4 point = at[slot];
    const u64 i = __float_as_uint(point.w);
    float first = 0.0f;
    if (NF_SOURCES > 0) first = fields[i * stride];
    sources[slot] = make_float4(point.x, point.y, point.z, first);
    for (int record = 0; record < (NF_SOURCES + 2) / 4; record++) {
        float channels[4];
        for (int c = 0; c < 4; c++) {
            const int channel = 4 * record + 1 + c;
            channels[c] = channel < NF_SOURCES ? fields[i * stride + channel] : 0.0f;
        }
        more[static_cast<u64>(slot) * RECORDS + record] =
            make_float4(channels[0], channels[1], channels[2], channels[3]);
    }
}

#endif

// The kernels of flat.cu for wide targets (wide.cuh): a block each, which is compared with all
// sources. They run behind those that walk, for which wide targets have no neighbours, and take the
// place of what these have written.
#pragma once

#if NF_WIDE

constexpr u32 WIDE_WARPS = nf::WIDE_THREADS / 32;

// Calls take(target) for every wide target, by all threads of a block together.
template <class Take>
__device__ __forceinline__ void each_wide_target(const Walk& walk, Take take) {
    const u32* const wide = filters_of(walk).wide_targets;
    if (!wide) return;
    for (u32 one = blockIdx.x; one < wide[0]; one += gridDim.x) {
        take(seen_apart(walk, target_at(walk, wide[1 + one])));
    }
}

// Calls take(begin, end) with the sources of a warp, which follow those of the warp before.
template <class Take>
__device__ __forceinline__ void sources_of_warp(const Walk& walk, Take take) {
    const u64 count = walk.sources.count, each = (count + WIDE_WARPS - 1) / WIDE_WARPS;
    const u64 begin = min(each * (threadIdx.x / 32), count);
    take(static_cast<u32>(begin), static_cast<u32>(min(begin + each, count)));
}

#if NF_WORK != NF_LISTS

extern "C" __global__ void __launch_bounds__(nf::WIDE_THREADS)
flat_wide(const __grid_constant__ KernelWalk walk, const __grid_constant__ Outlet outlet) {
    await_kernels_before();
    __shared__ Work::Total totals[WIDE_WARPS][Work::TOTALS];
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    each_wide_target(walk, [&](const Target& target) {
        auto work = filtered_by<Work>(wide_filter(walk, target), walk, target, outlet);
        sources_of_warp(walk, [&](u32 begin, u32 end) {
            for (u32 k = begin + lane; k < end; k += 32) visit_wide_pair<NF_HALF>(walk, target, k, work);
        });
        __syncwarp();
        work.add_up();
        if (lane == 0) {
            for (u32 c = 0; c < Work::TOTALS; c++) totals[warp][c] = work.total(c);
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            for (u32 other = 1; other < WIDE_WARPS; other++) {
                for (u32 c = 0; c < Work::TOTALS; c++) work.total(c) = Work::combined(work.total(c), totals[other][c]);
            }
            work.finish(target);
        }
        __syncthreads();
    });
}

#else

// Neighbours that the warp's sources hold, in all lanes.
__device__ __forceinline__ u32 count_by_warp(const Walk& walk, const Target& target, const TargetFilter& filter) {
    auto counter = filtered_by<Counter>(filter, walk.sources.at, 0u);
    sources_of_warp(walk, [&](u32 begin, u32 end) {
        for (u32 k = begin + threadIdx.x % 32; k < end; k += 32) visit_wide_pair<NF_HALF>(walk, target, k, counter);
    });
    __syncwarp();
    return __shfl_sync(~0u, warp_inclusive_sum(counter.count), 31);
}

// Neighbours of wide targets, for lists whose counts come from masks.
extern "C" __global__ void __launch_bounds__(nf::WIDE_THREADS)
flat_wide_counts(const __grid_constant__ KernelWalk walk, const __grid_constant__ Outlet outlet) {
    await_kernels_before();
    __shared__ u32 sum;
    each_wide_target(walk, [&](const Target& target) {
        if (threadIdx.x == 0) sum = 0;
        __syncthreads();
        const u32 count = count_by_warp(walk, target, wide_filter(walk, target));
        if (threadIdx.x % 32 == 0) atomicAdd(&sum, count);
        __syncthreads();
        if (threadIdx.x == 0) outlet.counts[target.slot] = sum;
        __syncthreads();
    });
}

// Sources that a lane takes one after the other.
constexpr u32 WIDE_RUN = 8;

// The lists of wide targets, in the order of the sorted sources.
extern "C" __global__ void __launch_bounds__(nf::WIDE_THREADS)
flat_wide_lists(const __grid_constant__ KernelWalk walk, const __grid_constant__ Outlet outlet NF_ARRAYS) {
    await_kernels_before();
    __shared__ u32 counts[WIDE_WARPS];
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    each_wide_target(walk, [&](const Target& target) {
        if (target.slot < outlet.first || target.slot >= outlet.behind) return;
        const TargetFilter filter = wide_filter(walk, target);
        const u32 found = count_by_warp(walk, target, filter);
        if (lane == 0) counts[warp] = found;
        __syncthreads();
        const u64 start = outlet.starts[target.slot];
        u64 next = start;
        for (u32 before = 0; before < warp; before++) next += counts[before];
        sources_of_warp(walk, [&](u32 begin, u32 end) {
            for (u64 base = begin; base < end; base += 32 * WIDE_RUN) {
                const u64 first = base + lane * WIDE_RUN, last = min(first + WIDE_RUN, static_cast<u64>(end));
                auto counter = filtered_by<Counter>(filter, walk.sources.at, 0u);
                for (u64 k = first; k < last; k++) visit_wide_pair<NF_HALF>(walk, target, static_cast<u32>(k), counter);
                __syncwarp();
                const u32 to_here = warp_inclusive_sum(counter.count);
                const u64 from = next + (to_here - counter.count);
#if NF_GEOMETRY
                auto writer = filtered_by<PairWriter>(filter, walk, target, PairOutlet{outlet, arrays}, from);
#else
                auto writer = filtered_by<Writer>(filter, walk.sources.at, outlet, from);
#endif
                if (counter.count > 0) {
                    for (u64 k = first; k < last; k++) visit_wide_pair<NF_HALF>(walk, target, static_cast<u32>(k), writer);
                }
                __syncwarp();
                next += __shfl_sync(~0u, to_here, 31);
            }
        });
        if (threadIdx.x == nf::WIDE_THREADS - 1) {
            outlet.list_starts[target.index] = start;
            outlet.list_counts[target.index] = static_cast<u32>(next - start);
        }
        __syncthreads();
    });
}

#endif
#endif

// A pair kernel over stored lists: LANES threads per sorted target, which take the entries of its
// list side by side. NF_OPEN says which images of a source there can be (NF_LISTED_…), and NF_WARPS
// gives every target a warp.
//
// Lists are read as sorted places of sources (slots.cu), in the order of the sorted targets:
// neighbouring lanes mostly read neighbouring places.
#include "stored.cuh"
#include "work.cuh"

constexpr u32 THREADS = nf::FLAT_THREADS;
constexpr u32 LANES = NF_WARPS ? 32 : nf::STORED_LANES;

// The entry of a list, NONE where it is not to be looked at: behind the end, beyond the storage, or
// the same source once more. A source is tested through all of its images anyway.
__device__ __forceinline__ u32 entry_at(const Walk& walk, const Outlet& outlet, const Stored& stored, u64 start,
                                        u32 count, u32 entry) {
    if (entry >= count || start + entry >= outlet.capacity) return NONE;
    const u32* const at = outlet.entries + start + entry;
    const u32 k = __ldg(at);
    if (NF_OPEN == NF_LISTED_IMAGES && stored.repeats && entry > 0 && __ldg(at - 1) == k) return NONE;
    return k < walk.sources.count ? k : NONE;
}

extern "C" __global__ void __launch_bounds__(THREADS)
stored(const __grid_constant__ KernelWalk walk, const __grid_constant__ Outlet outlet,
       const __grid_constant__ Stored stored) {
    await_kernels_before();
    if (stored.stale && *stored.stale) return;
    const u64 thread = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    const u64 place = thread / LANES;
    const u32 lane = threadIdx.x % LANES;
    const bool real = place < walk.targets.count;
    const Target target = target_at(walk, real ? static_cast<u32>(place) : walk.targets.count - 1);
#if NF_FILTERS
    auto work = filtered<Work>(walk, target, walk, target, outlet);
#else
    Work work(walk, target, outlet);
#endif
    const u64 start = outlet.starts[target.slot];
    const u32 count = real ? outlet.counts[target.slot] : 0;
    // Two sources are loaded before either is looked at.
    #pragma unroll 1
    for (u32 entry = lane; entry < count; entry += 2 * LANES) {
        const u32 first = entry_at(walk, outlet, stored, start, count, entry);
        const u32 second = entry_at(walk, outlet, stored, start, count, entry + LANES);
        const float4 one = __ldg(work.sources() + (first == NONE ? 0 : first));
        const float4 other = __ldg(work.sources() + (second == NONE ? 0 : second));
        visit_listed<NF_OPEN>(walk, stored, target, first == NONE ? 0 : first, one, first != NONE, work);
        visit_listed<NF_OPEN>(walk, stored, target, second == NONE ? 0 : second, other, second != NONE, work);
    }
    __syncwarp();
    work.add_up<LANES>();
    if (real && lane == 0) work.finish(target);
}

// What filters read of points, from arrays that the caller keeps on the device.
//
// Values are copied, and those that searches must not read are replaced: a type is a row of the
// table of cut-offs, which is looked up unchecked, and a radius bounds the walk. The host is not
// there to refuse them, so the device counts them and remembers the first, and the host asks later.
#include "contract.cuh"

using nf::GRID_THREADS;

// Counts a value that is refused. `refused` has three words, zero if there is none: the complement
// of (index, value) of the first, how many there are, and whether any were refused of values that
// have been replaced since.
__device__ __forceinline__ void refuse(u64* refused, u32 point, u32 value) {
    atomicMax(refused, ~(static_cast<u64>(point) << 32 | value));
    atomicAdd(refused + 1, u64{1});
}

// Other values replace those that these words are about.
extern "C" __global__ void __launch_bounds__(GRID_THREADS)
retire_refused(u64* __restrict__ refused) {
    if (threadIdx.x != 0 || refused[1] == 0) return;
    refused[0] = refused[1] = 0;
    refused[2] = 1;
}

// Radii from `least` to `most`, of f64 where they are `wide` and else of f32, to either where
// searches are `exact` or not; others become `least`. A note has 32 bits for a radius that is
// refused, which is rounded away from those that are not.
extern "C" __global__ void __launch_bounds__(GRID_THREADS)
take_radii(const void* __restrict__ from, u32 wide, u32 exact, u32 count, double least, double most,
           void* __restrict__ to, u64* __restrict__ refused) {
    const u32 point = blockIdx.x * GRID_THREADS + threadIdx.x;
    if (point >= count) return;
    double radius = wide ? static_cast<const double*>(from)[point]
                         : static_cast<double>(static_cast<const float*>(from)[point]);
    if (!exact) radius = static_cast<double>(static_cast<float>(radius));
    const bool usable = radius >= least && radius <= most;
    const double kept = usable ? radius : least;
    if (exact) static_cast<double*>(to)[point] = kept;
    else static_cast<float*>(to)[point] = static_cast<float>(kept);
    if (usable) return;
    const float told = radius > most ? __double2float_ru(radius) : -__double2float_ru(-radius);
    refuse(refused, point, __float_as_uint(told));
}

// Whole numbers of 32 bits, or of 64 where they are `wide`, up to `most`; others become 0.
extern "C" __global__ void __launch_bounds__(GRID_THREADS)
take_numbers(const u32* __restrict__ from, u32 wide, u32 count, u32 most, u32* __restrict__ to,
             u64* __restrict__ refused) {
    const u32 point = blockIdx.x * GRID_THREADS + threadIdx.x;
    if (point >= count) return;
    const u64 at = wide ? 2 * static_cast<u64>(point) : point;
    const u32 number = from[at];
    const bool fits = !wide || from[at + 1] == 0;
    const bool usable = fits && number <= most;
    to[point] = usable ? number : 0;
    if (!usable) refuse(refused, point, fits ? number : NONE);
}

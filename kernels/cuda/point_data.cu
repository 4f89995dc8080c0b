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

// Counts radii that were taken by halvings of `most`, of which none is larger: in `classes` the
// number of each, and behind these the largest of each, all zero before. Lane c of a warp has class
// c.
extern "C" __global__ void __launch_bounds__(GRID_THREADS)
count_radii(const float* __restrict__ radii, u32 count, float most, u32* __restrict__ classes) {
    const u32 lane = threadIdx.x % 32;
    u32 points = 0, largest = 0;
    for (u64 first = (static_cast<u64>(blockIdx.x) * GRID_THREADS + threadIdx.x) - lane; first < count;
         first += static_cast<u64>(gridDim.x) * GRID_THREADS) {
        const bool real = first + lane < count;
        const float radius = real ? radii[first + lane] : most;
        // At least 1, so the exponent of it says how often `most` is halved.
        const u32 own = min((__float_as_uint(most / radius) >> 23) - 127u, nf::RADIUS_CLASSES - 1);
        #pragma unroll
        for (u32 c = 0; c < nf::RADIUS_CLASSES; c++) {
            const u32 of_class = __ballot_sync(~0u, real && own == c);
            if (of_class == 0) continue;
            // Positive numbers are in the order of their bits.
            u32 bits = real && own == c ? __float_as_uint(radius) : 0u;
            for (int step = 16; step > 0; step /= 2) bits = max(bits, __shfl_xor_sync(~0u, bits, step));
            if (lane == c) {
                points += __popc(of_class);
                largest = max(largest, bits);
            }
        }
    }
    if (points == 0) return;
    atomicAdd(classes + lane, points);
    atomicMax(classes + nf::RADIUS_CLASSES + lane, largest);
}

// Finds the points whose radii are above `bulk`, for order_wide. `wide` has room for the number and
// the places that this makes, and then for the number of those found, which begins with 0, and up
// to nf::MAX_WIDE sorted places in any order.
extern "C" __global__ void __launch_bounds__(GRID_THREADS)
find_wide(const float4* __restrict__ at, const float* __restrict__ radii, u32 count, float bulk, u32* __restrict__ wide) {
    const u32 slot = blockIdx.x * GRID_THREADS + threadIdx.x;
    if (slot >= count || !(radii[__float_as_uint(at[slot].w)] > bulk)) return;
    u32* const found = wide + 1 + nf::MAX_WIDE;
    const u32 place = atomicAdd(found, 1u);
    if (place < nf::MAX_WIDE) found[1 + place] = slot;
}

// Brings them into ascending order, behind their number, by a thread for each. Of too many, which
// the host learns of later, nf::MAX_WIDE are left.
extern "C" __global__ void __launch_bounds__(GRID_THREADS)
order_wide(u32* wide) {
    const u32* const found = wide + 1 + nf::MAX_WIDE;
    const u32 mine = blockIdx.x * GRID_THREADS + threadIdx.x, count = min(found[0], nf::MAX_WIDE);
    if (mine == 0) wide[0] = count;
    if (mine >= count) return;
    u32 before = 0;
    for (u32 other = 0; other < count; other++) before += found[1 + other] < found[1 + mine];
    wide[1 + before] = found[1 + mine];
}

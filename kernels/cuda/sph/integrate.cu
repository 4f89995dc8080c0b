// What happens to particles between the traversals of a step, as host.rs does it: kicks, drifts,
// compression, pressure of the walls; and the sums that the budgets need.
//
// Sums are in double precision and in an order that depends on the number of particles alone:
// every block adds up its share, and one block per sum adds up the blocks.

#include "constants.cuh"

typedef unsigned int u32;

using namespace nf;

struct Settings {
    float gravity[3];
    float stiffness;       // of water
    float max_stretched;  // least compression
    float low[3], high[3]; // the domain
};

// The maximum over nothing.
__device__ double nothing() { return __longlong_as_double(0xfff0000000000000ll); }

// Velocity and compression of a particle; or acceleration and heating.
typedef float4 Moving;

__device__ float dot(float ax, float ay, float az, float bx, float by, float bz) {
    return ax * bx + ay * by + az * bz;
}

// Sums of a block, the slots from `maxima` up to `end` the largest value instead, to the place of
// block number `block`.
template <int SLOTS>
__device__ void give(double (&values)[SLOTS], int maxima, int end, double* partials, u32 block) {
    __shared__ double of_warps[THREADS / 32];
    for (int slot = 0; slot < SLOTS; slot++) {
        const bool largest = slot >= maxima && slot < end;
        double value = values[slot];
        for (int step = 16; step > 0; step /= 2) {
            const double other = __shfl_down_sync(~0u, value, step);
            value = largest ? fmax(value, other) : value + other;
        }
        if ((threadIdx.x & 31) == 0) of_warps[threadIdx.x / 32] = value;
        __syncthreads();
        if (threadIdx.x == 0) {
            for (u32 warp = 1; warp < THREADS / 32; warp++) {
                value = largest ? fmax(value, of_warps[warp]) : value + of_warps[warp];
            }
            partials[slot * MAX_BLOCKS + block] = value;
        }
        __syncthreads();
    }
}

// Velocities change by the forces over `step`.
__device__ Moving kicked(Moving moving, const float4& force, const float4& wall, float step,
                         const Settings& settings, double (&sums)[KICK_SLOTS]) {
    const float ax = settings.gravity[0] + force.x + wall.x;
    const float ay = settings.gravity[1] + force.y + wall.y;
    const float az = settings.gravity[2] + force.z + wall.z;
    const float dx = step * ax, dy = step * ay, dz = step * az;
    sums[VISCOUS] += force.w;
    sums[RUBBED] += wall.w;
    sums[WORK] += dot(wall.x, wall.y, wall.z, moving.x + 0.5f * dx, moving.y + 0.5f * dy, moving.z + 0.5f * dz);
    sums[WALL] += wall.x;
    sums[WALL + 1] += wall.y;
    sums[WALL + 2] += wall.z;
    moving.x += dx;
    moving.y += dy;
    moving.z += dz;
    // A speed that is not a number is found as a lost particle.
    sums[SPEED] = fmax(sums[SPEED], static_cast<double>(dot(moving.x, moving.y, moving.z, moving.x, moving.y, moving.z)));
    sums[ACCELERATION] = fmax(sums[ACCELERATION], static_cast<double>(dot(ax, ay, az, ax, ay, az)));
    return moving;
}

__device__ bool lost(const float* position, const Moving& moving, const Settings& settings) {
    for (int axis = 0; axis < 3; axis++) {
        // Also true for what is not a number.
        if (!(position[axis] >= settings.low[axis] && position[axis] <= settings.high[axis])) return true;
        if (!isfinite(position[axis])) return true;
    }
    return !(isfinite(moving.x) && isfinite(moving.y) && isfinite(moving.z) && isfinite(moving.w));
}

// A kick over `step` and then a drift over `drift`, which may be 0.
extern "C" __global__ void __launch_bounds__(THREADS)
kick(float* position, Moving* moving, const float4* forces, const float4* wall_forces, u32 count,
     float step, float drift, Settings settings, double* partials) {
    double sums[KICK_SLOTS] = {};
    for (u32 i = blockIdx.x * THREADS + threadIdx.x; i < count; i += gridDim.x * THREADS) {
        const Moving now = kicked(moving[i], forces[i], wall_forces[i], step, settings, sums);
        moving[i] = now;
        float* const at = position + 3ull * i;
        if (drift != 0.0f) {
            at[0] += drift * now.x;
            at[1] += drift * now.y;
            at[2] += drift * now.z;
        }
        if (lost(at, now, settings)) sums[LOST] += 1.0;
    }
    give(sums, SPEED, LOST, partials, blockIdx.x);
}

// (1 + s)^7 - 1 multiplied out, so that small s keep their digits.
__device__ float specific_pressure(float stiffness, float compression) {
    const float s = fmaxf(compression, 0.0f);
    const float tail = 7.0f + s * (21.0f + s * (35.0f + s * (35.0f + s * (21.0f + s * (7.0f + s)))));
    return stiffness * s * tail;
}

// Compressions change by their rates over `step`; velocities and compressions before that go to
// `before`, and what the forces need to `pressed`: velocity, relative volume and specific pressure.
extern "C" __global__ void __launch_bounds__(THREADS)
compress(Moving* moving, Moving* before, float* pressed, const float2* rates, const float* wall_rates, u32 count, float step,
         Settings settings, double* partials) {
    double sums[COMPRESSION_SLOTS] = {};
    for (u32 i = blockIdx.x * THREADS + threadIdx.x; i < count; i += gridDim.x * THREADS) {
        const Moving now = moving[i];
        before[i] = now;
        const float s = now.w;
        const float2 rate = rates[i];
        const float wall = wall_rates[i];
        const float change = step * ((1.0f + s) * (rate.x + wall) + rate.y);
        const float middle = s + 0.5f * change;
        const float pressure = specific_pressure(settings.stiffness, middle) / (1.0f + middle);
        sums[DIFFUSED] -= pressure * rate.y / (1.0f + middle);
        sums[PRESSED] += pressure * wall;
        const float after = s + change;
        // NaN stays, so that the particle is found.
        const float kept = after < settings.max_stretched ? settings.max_stretched : after;
        moving[i].w = kept;
        float* const record = pressed + 5ull * i;
        record[0] = now.x;
        record[1] = now.y;
        record[2] = now.z;
        record[3] = 1.0f / (1.0f + kept);
        record[4] = specific_pressure(settings.stiffness, kept);
    }
    give(sums, COMPRESSION_SLOTS, COMPRESSION_SLOTS, partials, blockIdx.x);
}

// Relative volume and specific pressure of the walls, beside their roughness, from the sums of
// `extrapolation`.
extern "C" __global__ void __launch_bounds__(THREADS)
press_walls(float* still, const float2* extrapolated, u32 count, float stiffness) {
    const u32 i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= count) return;
    const float2 sums = extrapolated[i];
    const float pressure = sums.x > 0.0f ? fmaxf(sums.y / sums.x, 0.0f) : 0.0f;
    float volume = 1.0f;
    if (pressure > 0.0f) {
        const double x = pressure / stiffness;
        volume = static_cast<float>(exp(log1p(x) / -7.0));
    }
    still[3ull * i] = volume;
    still[3ull * i + 1] = pressure;
}

// Energies and momentum of the fluid for each unit of mass, as budget.rs defines them.
extern "C" __global__ void __launch_bounds__(THREADS)
measure(const float* position, const Moving* moving, u32 count, Settings settings, double* partials) {
    double sums[MEASURE_SLOTS] = {};
    for (u32 i = blockIdx.x * THREADS + threadIdx.x; i < count; i += gridDim.x * THREADS) {
        const float* const at = position + 3ull * i;
        const Moving now = moving[i];
        const double x = now.x, y = now.y, z = now.z;
        sums[SQUARES] += x * x + y * y + z * z;
        for (int axis = 0; axis < 3; axis++) {
            sums[HEIGHTS] += static_cast<double>(settings.gravity[axis]) * at[axis];
        }
        const double s = fmaxf(now.w, 0.0f);
        sums[INTERNAL] += static_cast<double>(settings.stiffness) * (expm1(6.0 * log1p(s)) / 6.0 - s / (1.0 + s));
        sums[MOMENTUM] += x;
        sums[MOMENTUM + 1] += y;
        sums[MOMENTUM + 2] += z;
    }
    give(sums, MEASURE_SLOTS, MEASURE_SLOTS, partials, blockIdx.x);
}

// Counts the particles by bin along x; those beyond the ends in the first and the last bin. Many
// particles are in one bin: blocks count their own before they add to those of all.
extern "C" __global__ void __launch_bounds__(THREADS)
tally(const float* position, u32 count, float low, float scale, u32* counts) {
    __shared__ u32 own[FRONT_BINS];
    for (u32 bin = threadIdx.x; bin < FRONT_BINS; bin += THREADS) own[bin] = 0;
    __syncthreads();
    for (u32 i = blockIdx.x * THREADS + threadIdx.x; i < count; i += gridDim.x * THREADS) {
        const float place = (position[3ull * i] - low) * scale;
        atomicAdd(own + static_cast<u32>(fminf(fmaxf(place, 0.0f), FRONT_BINS - 1.0f)), 1u);
    }
    __syncthreads();
    for (u32 bin = threadIdx.x; bin < FRONT_BINS; bin += THREADS) {
        if (own[bin] != 0) atomicAdd(counts + bin, own[bin]);
    }
}

// How probes read the fluid.
struct Meter {
    float half_inverse_length;  // of the smoothing kernel, 1/(2h)…
    float normalization;        // …and its value at distance 0
    u32 points;                 // probes that are points; those behind them are columns
    u32 space;                  // 3 dimensions, not 2
};

// 1 at zero, 0 from `reach` on.
__device__ float hat(float off, float reach) { return fmaxf(1.0f - fabsf(off) / reach, 0.0f); }

// Sums of probes over the particles, PROBE_BLOCKS blocks to a probe, as probes.rs defines them.
extern "C" __global__ void __launch_bounds__(THREADS)
probe(const float* position, const Moving* moving, u32 count, const float4* places, Meter meter,
      Settings settings, double* partials) {
    const u32 probe = blockIdx.x / PROBE_BLOCKS, block = blockIdx.x % PROBE_BLOCKS;
    const float4 place = places[probe];
    const bool column = probe >= meter.points;
    double sums[PROBE_SLOTS] = {};
    for (u32 i = block * THREADS + threadIdx.x; i < count; i += PROBE_BLOCKS * THREADS) {
        const float* const at = position + 3ull * i;
        const float dx = place.x - at[0], dy = place.y - at[1];
        if (column) {
            const float along = hat(dx, place.w);
            sums[0] += meter.space ? along * hat(dy, place.w) : along;
            continue;
        }
        const float dz = place.z - at[2];
        const float half_q = sqrtf(dot(dx, dy, dz, dx, dy, dz)) * meter.half_inverse_length;
        if (!(half_q < 1.0f)) continue;
        const float rest = 1.0f - half_q, square = rest * rest;
        const float s = moving[i].w;
        const double weight = meter.normalization * square * square * (4.0f * half_q + 1.0f) / (1.0f + s);
        const float head = dot(settings.gravity[0], settings.gravity[1], settings.gravity[2], dx, dy, dz);
        sums[0] += weight;
        sums[1] += weight * (specific_pressure(settings.stiffness, s) + (1.0f + s) * head);
    }
    give(sums, PROBE_SLOTS, PROBE_SLOTS, partials + static_cast<size_t>(probe) * PROBE_SLOTS * MAX_BLOCKS, block);
}

// One block per slot: what all blocks gave, `blocks` of them; the largest in the slots of `maxima`.
extern "C" __global__ void __launch_bounds__(TOTAL_THREADS)
total(const double* partials, u32 blocks, u32 maxima, double* totals) {
    const bool largest = blockIdx.x < 32 && (maxima >> blockIdx.x & 1) != 0;
    double value = largest ? nothing() : 0.0;
    for (u32 block = threadIdx.x; block < blocks; block += TOTAL_THREADS) {
        const double other = partials[static_cast<size_t>(blockIdx.x) * MAX_BLOCKS + block];
        value = largest ? fmax(value, other) : value + other;
    }
    for (int step = 16; step > 0; step /= 2) {
        const double other = __shfl_down_sync(~0u, value, step);
        value = largest ? fmax(value, other) : value + other;
    }
    if (threadIdx.x == 0) totals[blockIdx.x] = value;
}

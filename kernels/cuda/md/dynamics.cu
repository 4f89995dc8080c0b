// Molecular dynamics on the device: kicks and drifts, and what is observed. Forces, energies and
// virials are sums of pair kernels over the engine's lists.
//
// State is in double precision; forces are computed in single precision from positions in the box.
// Sums are taken in an order that depends on the number of atoms alone.

#include "constants.cuh"

typedef unsigned int u32;
typedef unsigned long long u64;

using nf::MAX_TYPES;
using nf::MOTION_SLOTS;
using nf::PAIR_CHANNELS;
using nf::PAIR_SLOTS;
using nf::THREADS;

// The vectors along which the box repeats, and the rows of their inverse; 0 along open axes. Only
// tilted boxes (NF_TILTED) have numbers beside the diagonal.
struct Box {
    double vectors[3][3];
    double inverse[3][3];
};

struct Masses {
    double inverse[MAX_TYPES];
};

// Sum of a value over the threads of a block, at thread 0.
__device__ double block_sum(double value) {
    __shared__ double of_warps[THREADS / 32];
    for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(~0u, value, step);
    __syncthreads();
    if ((threadIdx.x & 31) == 0) of_warps[threadIdx.x / 32] = value;
    __syncthreads();
    for (u32 warp = 1; warp < THREADS / 32 && threadIdx.x == 0; warp++) value += of_warps[warp];
    return value;
}

// Where a position lies in the box, in single precision.
__device__ __forceinline__ void put_in_box(const Box& box, const double* at, float* placed) {
#if NF_TILTED
    double boxes[3];
    for (int axis = 0; axis < 3; axis++) {
        const double* const row = box.inverse[axis];
        boxes[axis] = floor(row[0] * at[0] + row[1] * at[1] + row[2] * at[2]);
    }
    for (int axis = 0; axis < 3; axis++) {
        double x = at[axis];
        for (int k = 0; k < 3; k++) x -= boxes[k] * box.vectors[k][axis];
        placed[axis] = static_cast<float>(x);
    }
#else
    for (int axis = 0; axis < 3; axis++) {
        const double boxes = floor(at[axis] * box.inverse[axis][axis]);
        placed[axis] = static_cast<float>(at[axis] - boxes * box.vectors[axis][axis]);
    }
#endif
}

// Energy and virial of all pairs: sums over the atoms of the first two of the numbers that the pair
// kernel gives each.
extern "C" __global__ void __launch_bounds__(THREADS)
pair_sums(const float* __restrict__ of_atoms, u32 atoms, double* __restrict__ partials) {
    const u32 atom = blockIdx.x * THREADS + threadIdx.x;
    for (int slot = 0; slot < PAIR_SLOTS; slot++) {
        const double value = atom < atoms ? of_atoms[PAIR_CHANNELS * static_cast<u64>(atom) + slot] : 0.0;
        const double sum = block_sum(value);
        if (threadIdx.x == 0) partials[slot * gridDim.x + blockIdx.x] = sum;
    }
}

// Kinetic energy and momentum.
extern "C" __global__ void __launch_bounds__(THREADS)
motion(const double* __restrict__ velocity, const float* __restrict__ types, u32 atoms,
       const __grid_constant__ Masses masses, double* __restrict__ partials) {
    const u32 atom = blockIdx.x * THREADS + threadIdx.x;
    double values[MOTION_SLOTS] = {};
    if (atom < atoms) {
        const double mass = 1.0 / masses.inverse[static_cast<u32>(types[atom])];
        for (int axis = 0; axis < 3; axis++) {
            const double v = velocity[3 * static_cast<u64>(atom) + axis];
            values[0] += 0.5 * mass * v * v;
            values[1 + axis] = mass * v;
        }
    }
    for (int slot = 0; slot < MOTION_SLOTS; slot++) {
        const double sum = block_sum(values[slot]);
        if (threadIdx.x == 0) partials[slot * gridDim.x + blockIdx.x] = sum;
    }
}

// Adds up what the blocks gave; one block per sum.
extern "C" __global__ void __launch_bounds__(THREADS)
total(const double* __restrict__ partials, u32 blocks, double* __restrict__ totals) {
    double sum = 0.0;
    for (u32 block = threadIdx.x; block < blocks; block += THREADS) sum += partials[blockIdx.x * blocks + block];
    sum = block_sum(sum);
    if (threadIdx.x == 0) totals[blockIdx.x] = sum;
}

// Kicks by the forces over `kick`, drifts over `drift`, and places the atoms in the box.
extern "C" __global__ void __launch_bounds__(THREADS)
advance(double* __restrict__ position, double* __restrict__ velocity, const float* __restrict__ force,
        const float* __restrict__ types, float* __restrict__ placed, u32 atoms, double kick, double drift,
        const __grid_constant__ Box box, const __grid_constant__ Masses masses) {
    const u32 atom = blockIdx.x * THREADS + threadIdx.x;
    if (atom >= atoms) return;
    const u64 first = 3 * static_cast<u64>(atom);
    const double over_mass = kick * masses.inverse[static_cast<u32>(types[atom])];
    double now[3];
    float in_box[3];
    for (int axis = 0; axis < 3; axis++) {
        const double v = velocity[first + axis] + over_mass * force[first + axis];
        now[axis] = position[first + axis] + drift * v;
        velocity[first + axis] = v;
        position[first + axis] = now[axis];
    }
    put_in_box(box, now, in_box);
    for (int axis = 0; axis < 3; axis++) placed[first + axis] = in_box[axis];
}

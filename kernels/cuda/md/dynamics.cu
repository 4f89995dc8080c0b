// Molecular dynamics on the device: forces over neighbour lists with a skin, kicks and drifts, and
// what is observed. The potential's text is nearfield/user.cuh, and NF_POTENTIAL its function,
// which reads NF_CHANNELS numbers of a point.
//
// State is in double precision; forces are computed in single precision from positions brought into
// the box when the lists were built. Sums are taken in an order that depends on the number of atoms
// alone.

#include "constants.cuh"
#include "fast.cuh"

typedef unsigned int u32;
typedef unsigned long long u64;

using nf::LANES;
using nf::MAX_TYPES;
using nf::MAX_UNIFORMS;
using nf::MOTION_SLOTS;
using nf::THREADS;

constexpr u32 INFINITE = 0x7f800000u;

#include "nearfield/user.cuh"

// The vectors along which the box repeats, and the rows of their inverse; 0 along open axes. Only
// tilted boxes (NF_TILTED) have numbers beside the diagonal.
struct Box {
    double vectors[3][3];
    double inverse[3][3];
    float single[3][3];
    float single_inverse[3][3];
    float r2;
};

struct Masses {
    double inverse[MAX_TYPES];
};

struct Uniforms {
    float values[MAX_UNIFORMS];
};

// Sums over the pairs of an atom.
struct Sum {
    float x, y, z, energy, virial;
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

// The difference by the nearest image, as the contract has it: one rounding for the difference, one
// for the image vector, which is exact here, and one for their sum.
__device__ __forceinline__ float nearest(float difference, float length, float inverse) {
    return __fadd_rn(difference, __fmul_rn(-rintf(difference * inverse), length));
}

// From one atom to the nearest image of another. In a tilted box the nearest image, if it is nearer
// than half of the box's width, is the one whose coordinates along the box's vectors are at most a
// half.
__device__ __forceinline__ float3 separation(const Box& box, const float4& from, const float4& to) {
    float3 d = make_float3(__fsub_rn(to.x, from.x), __fsub_rn(to.y, from.y), __fsub_rn(to.z, from.z));
#if NF_TILTED
    float boxes[3];
    for (int axis = 0; axis < 3; axis++) {
        const float* const row = box.single_inverse[axis];
        boxes[axis] = rintf(row[0] * d.x + row[1] * d.y + row[2] * d.z);
    }
    float shift[3];
    for (int k = 0; k < 3; k++) {
        shift[k] = boxes[0] * box.single[0][k] + boxes[1] * box.single[1][k] + boxes[2] * box.single[2][k];
    }
    return make_float3(d.x - shift[0], d.y - shift[1], d.z - shift[2]);
#else
    return make_float3(nearest(d.x, box.single[0][0], box.single_inverse[0][0]),
                       nearest(d.y, box.single[1][1], box.single_inverse[1][1]),
                       nearest(d.z, box.single[2][2], box.single_inverse[2][2]));
#endif
}

// Whole boxes between a position and its image in the box, along every vector.
__device__ __forceinline__ int3 boxes_of(const Box& box, double x, double y, double z) {
#if NF_TILTED
    const auto along = [&](int axis) {
        const double* const row = box.inverse[axis];
        return static_cast<int>(floor(row[0] * x + row[1] * y + row[2] * z));
    };
    return make_int3(along(0), along(1), along(2));
#else
    const auto along = [&](int axis, double x) {
        const double length = box.vectors[axis][axis];
        return length > 0.0 ? static_cast<int>(floor(x / length)) : 0;
    };
    return make_int3(along(0, x), along(1, y), along(2, z));
#endif
}

// A coordinate less that of as many boxes.
__device__ __forceinline__ float brought_back(const Box& box, const int* boxes, int axis, double x) {
#if NF_TILTED
    for (int k = 0; k < 3; k++) x -= boxes[k] * box.vectors[k][axis];
    return static_cast<float>(x);
#else
    return static_cast<float>(x - boxes[axis] * box.vectors[axis][axis]);
#endif
}

__device__ __forceinline__ void add_pair(const Uniforms& uniforms, const Box& box, const float4& from, const float* own,
                                         u32 j, const float4* __restrict__ at, const float* __restrict__ charges,
                                         Sum& sum) {
    const float4 to = __ldg(at + j);
    const float3 d = separation(box, from, to);
    const float d2 = __fmaf_rn(d.z, d.z, __fmaf_rn(d.y, d.y, __fmul_rn(d.x, d.x)));
    float other[2] = {to.w, 0.0f};
    if (NF_CHANNELS > 1) other[1] = __ldg(charges + j);
    float energy, over;
    NF_POTENTIAL(uniforms.values, d2, own, other, energy, over);
    const bool near = d2 <= box.r2;
    over = near ? over : 0.0f;
    energy = near ? energy : 0.0f;
    sum.x = __fmaf_rn(-over, d.x, sum.x);
    sum.y = __fmaf_rn(-over, d.y, sum.y);
    sum.z = __fmaf_rn(-over, d.z, sum.z);
    sum.energy += energy;
    sum.virial = __fmaf_rn(over, near ? d2 : 0.0f, sum.virial);
}

// Sums over the lists of the atoms of a block; every thread of the LANES of an atom gets the
// sum.
__device__ __forceinline__ Sum over_list(const Uniforms& uniforms, const Box& box, u32 atom, bool real,
                                         const float4* __restrict__ at, const float* __restrict__ charges,
                                         const u64* __restrict__ start, const u32* __restrict__ count,
                                         const u32* __restrict__ entries) {
    Sum sum = {};
    if (real) {
        const float4 from = at[atom];
        float own[2] = {from.w, 0.0f};
        if (NF_CHANNELS > 1) own[1] = charges[atom];
        const u32* const list = entries + start[atom];
        const u32 length = count[atom];
        #pragma unroll 4
        for (u32 k = threadIdx.x & (LANES - 1); k < length; k += LANES) {
            add_pair(uniforms, box, from, own, __ldg(list + k), at, charges, sum);
        }
    }
    for (int step = LANES / 2; step > 0; step /= 2) {
        sum.x += __shfl_xor_sync(~0u, sum.x, step);
        sum.y += __shfl_xor_sync(~0u, sum.y, step);
        sum.z += __shfl_xor_sync(~0u, sum.z, step);
        sum.energy += __shfl_xor_sync(~0u, sum.energy, step);
        sum.virial += __shfl_xor_sync(~0u, sum.virial, step);
    }
    return sum;
}

__device__ __forceinline__ void put_force(float* force, u32 atom, bool real, const Sum& sum) {
    const u32 lane = threadIdx.x & (LANES - 1);
    if (real && lane < 3) force[3 * static_cast<u64>(atom) + lane] = lane == 0 ? sum.x : lane == 1 ? sum.y : sum.z;
}

extern "C" __global__ void __launch_bounds__(THREADS)
forces(const float4* __restrict__ at, const float* __restrict__ charges, const u64* __restrict__ start,
       const u32* __restrict__ count, const u32* __restrict__ entries, u32 atoms, float* __restrict__ force,
       const __grid_constant__ Box box, const __grid_constant__ Uniforms uniforms) {
    const u32 atom = (blockIdx.x * THREADS + threadIdx.x) / LANES;
    const bool real = atom < atoms;
    const Sum sum = over_list(uniforms, box, atom, real, at, charges, start, count, entries);
    put_force(force, atom, real, sum);
}

// The same forces, with energy and virial of the pairs, each counted once.
extern "C" __global__ void __launch_bounds__(THREADS)
interactions(const float4* __restrict__ at, const float* __restrict__ charges, const u64* __restrict__ start,
             const u32* __restrict__ count, const u32* __restrict__ entries, u32 atoms, float* __restrict__ force,
             const __grid_constant__ Box box, const __grid_constant__ Uniforms uniforms, double* __restrict__ partials) {
    const u32 atom = (blockIdx.x * THREADS + threadIdx.x) / LANES;
    const bool real = atom < atoms;
    const Sum sum = over_list(uniforms, box, atom, real, at, charges, start, count, entries);
    put_force(force, atom, real, sum);
    const bool first = real && (threadIdx.x & (LANES - 1)) == 0;
    const double energy = block_sum(first ? 0.5 * sum.energy : 0.0);
    const double virial = block_sum(first ? 0.5 * sum.virial : 0.0);
    if (threadIdx.x == 0) {
        partials[blockIdx.x] = energy;
        partials[gridDim.x + blockIdx.x] = virial;
    }
}

// Kinetic energy and momentum.
extern "C" __global__ void __launch_bounds__(THREADS)
motion(const double* __restrict__ velocity, const u32* __restrict__ types, u32 atoms,
       const __grid_constant__ Masses masses, double* __restrict__ partials) {
    const u32 atom = blockIdx.x * THREADS + threadIdx.x;
    double values[MOTION_SLOTS] = {};
    if (atom < atoms) {
        const double mass = 1.0 / masses.inverse[types[atom]];
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

// Kicks by the forces over `kick`, drifts over `drift`, and gives the largest squared displacement
// since the lists were built; infinity where a position is no number.
extern "C" __global__ void __launch_bounds__(THREADS)
advance(double* __restrict__ position, double* __restrict__ velocity, const float* __restrict__ force,
        const u32* __restrict__ types, const int* __restrict__ boxes, const float4* __restrict__ built,
        float4* __restrict__ at, u32 atoms, double kick, double drift, const __grid_constant__ Box box,
        const __grid_constant__ Masses masses, u32* __restrict__ moved) {
    const u32 atom = blockIdx.x * THREADS + threadIdx.x;
    u32 farthest = 0;
    if (atom < atoms) {
        const u32 type = types[atom];
        const float4 before = built[atom];
        const double over_mass = kick * masses.inverse[type];
        float now[3];
        for (int axis = 0; axis < 3; axis++) {
            const u64 place = 3 * static_cast<u64>(atom) + axis;
            const double v = velocity[place] + over_mass * force[place];
            const double x = position[place] + drift * v;
            velocity[place] = v;
            position[place] = x;
            now[axis] = brought_back(box, boxes + 3 * static_cast<u64>(atom), axis, x);
        }
        at[atom] = make_float4(now[0], now[1], now[2], before.w);
        const float dx = now[0] - before.x, dy = now[1] - before.y, dz = now[2] - before.z;
        const float d2 = dx * dx + dy * dy + dz * dz;
        farthest = d2 <= 3.0e38f ? __float_as_uint(d2) : INFINITE;
    }
    for (int step = 16; step > 0; step /= 2) farthest = max(farthest, __shfl_xor_sync(~0u, farthest, step));
    if ((threadIdx.x & 31) == 0 && farthest > 0) atomicMax(moved, farthest);
}

// Brings positions into the box for lists to be built from them.
extern "C" __global__ void __launch_bounds__(THREADS)
enter(const double* __restrict__ position, const u32* __restrict__ types, u32 atoms, const __grid_constant__ Box box,
      int* __restrict__ boxes, float4* __restrict__ at, float4* __restrict__ built, float* __restrict__ placed) {
    const u32 atom = blockIdx.x * THREADS + threadIdx.x;
    if (atom >= atoms) return;
    const u64 first = 3 * static_cast<u64>(atom);
    const double at_x = position[first], at_y = position[first + 1], at_z = position[first + 2];
    const int3 whole = boxes_of(box, at_x, at_y, at_z);
    const int away[3] = {whole.x, whole.y, whole.z};
    float now[3];
    for (int axis = 0; axis < 3; axis++) {
        boxes[first + axis] = away[axis];
        now[axis] = brought_back(box, away, axis, position[first + axis]);
        placed[first + axis] = now[axis];
    }
    at[atom] = built[atom] = make_float4(now[0], now[1], now[2], static_cast<float>(types[atom]));
}

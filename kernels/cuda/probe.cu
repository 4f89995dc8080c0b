// What a device must agree on with the CPU, to the bit: integers, and the arithmetic of the
// neighbour test with its subnormal results.

// The finaliser of splitmix64 (Steele, Lea, Flood 2014, doi:10.1145/2660193.2660195).
__device__ unsigned long long mix(unsigned long long z) {
    z += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

// Adds mix(index << 32 | value) of `count` values to `sum`, wrapping, so in any order.
extern "C" __global__ void checksum(const unsigned* values, unsigned count, unsigned long long* sum) {
    unsigned long long mine = 0;
    const unsigned stride = gridDim.x * blockDim.x;
    for (unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
        mine += mix(i << 32 | values[i]);
    }
    atomicAdd(sum, mine);
}

// Squared distances of `count` pairs of points, x, y and z of a point side by side, as the
// neighbour test has them: one rounding per difference, product and multiply-add.
extern "C" __global__ void squared_distances(const float* a, const float* b, unsigned count, float* out) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const float dx = __fsub_rn(b[3 * i], a[3 * i]);
    const float dy = __fsub_rn(b[3 * i + 1], a[3 * i + 1]);
    const float dz = __fsub_rn(b[3 * i + 2], a[3 * i + 2]);
    out[i] = __fmaf_rn(dz, dz, __fmaf_rn(dy, dy, __fmul_rn(dx, dx)));
}

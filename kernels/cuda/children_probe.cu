// Tests whether kernels can launch kernels: each thread of the parent launches one child grid, and
// each thread of a child writes a value that identifies it.

constexpr unsigned CHILD_THREADS = 32;

__global__ void child(unsigned parent, unsigned* out) {
    const unsigned slot = parent * CHILD_THREADS + threadIdx.x;
    out[slot] = slot * 2654435761u + 1u;
}

// `out` has room for 32 values per parent. `status` keeps the largest error code of a launch,
// 0 when all succeeded.
extern "C" __global__ void launch_children(unsigned parents, unsigned* out, unsigned* status) {
    const unsigned parent = blockIdx.x * blockDim.x + threadIdx.x;
    if (parent >= parents) return;
    child<<<1, CHILD_THREADS, 0, cudaStreamFireAndForget>>>(parent, out);
    atomicMax(status, static_cast<unsigned>(cudaGetLastError()));
}

// What the device code of contract.cuh, walk.cuh, around.cuh and ascend.cuh takes from CUDA, for a
// compiler of the host: it can then be compared with the CPU backend where there is no GPU.
#pragma once
#include "values.hpp"

// A warp of one thread.
inline unsigned __activemask() { return 1; }
inline bool __all_sync(unsigned, bool all) { return all; }
inline bool __any_sync(unsigned, bool any) { return any; }
inline unsigned __ballot_sync(unsigned, bool bit) { return bit; }
inline int __shfl_sync(unsigned, int value, int) { return value; }
inline int __shfl_xor_sync(unsigned, int value, int) { return value; }
#define WARP 1

// Only the functions of a warp that walks of single targets do not call.
struct Thread { unsigned x; };
static const Thread threadIdx = {0}, blockDim = {1};
inline void __syncwarp() {}
inline void __syncthreads() {}
inline unsigned __shfl_up_sync(unsigned, unsigned value, int) { return value; }

// The approximate root, as wrong as the device may be: by a unit in the last place, downwards.
inline float approximate_root(float x) {
    return x < 1.17549435e-38f ? 0.0f : std::nextafter(std::sqrt(x), 0.0f);
}
#define asm(...) root = approximate_root(x)

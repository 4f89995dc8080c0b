// Blocks of threads on one thread of the host: every thread of a block is a coroutine, which runs
// until it waits for others. So kernels that stage in shared memory and vote in warps run where
// there is no GPU, in an order that never changes. Compile with `-ffp-contract=off`, as device code
// is compiled with `--fmad=false`.
//
// Threads begin by `ucontext` and then switch by `_longjmp`, which leaves out the two system calls
// for signals; the check of longjmp that forbids other stacks is switched off.
#pragma once
#undef _FORTIFY_SOURCE
#include "values.hpp"
#include <csetjmp>
#include <cstring>
#include <memory>
#include <ucontext.h>
#include <vector>

struct Index {
    unsigned x;
};
static Index threadIdx, blockIdx, gridDim;

namespace host {

// The block that runs.
struct Block {
    jmp_buf scheduler;
    std::vector<ucontext_t> threads;
    std::vector<std::unique_ptr<jmp_buf[]>> places;
    std::vector<std::unique_ptr<char[]>> stacks;
    std::vector<bool> begun, ended;
    void (*body)(const void*);
    const void* argument;
};
static Block block;
constexpr std::size_t STACK = 1 << 17;

// Lets the other threads run.
inline void yield() {
    if (_setjmp(block.places[threadIdx.x][0]) == 0) _longjmp(block.scheduler, 1);
}

// Threads that wait until all have come.
struct Barrier {
    unsigned come = 0, times = 0;

    void wait(unsigned all) {
        const unsigned before = times;
        if (++come == all) {
            come = 0;
            times++;
        }
        while (times == before) yield();
    }
};
static Barrier block_barrier;
static Barrier warp_barriers[32];
// A value of every thread, for exchange in a warp.
static double values[1024];

inline void run_thread() {
    block.body(block.argument);
    block.ended[threadIdx.x] = true;
    yield();
}

inline void run_until_it_waits(unsigned thread) {
    if (_setjmp(block.scheduler) != 0) return;
    if (block.begun[thread]) _longjmp(block.places[thread][0], 1);
    block.begun[thread] = true;
    setcontext(&block.threads[thread]);
}

// Runs `body` on all threads of all blocks, one block after the other.
inline void launch(unsigned blocks, unsigned threads, void (*body)(const void*), const void* argument) {
    block.body = body;
    block.argument = argument;
    block.threads.resize(threads);
    gridDim.x = blocks;
    while (block.stacks.size() < threads) {
        block.stacks.emplace_back(new char[STACK]);
        block.places.emplace_back(new jmp_buf[1]);
    }
    for (unsigned number = 0; number < blocks; number++) {
        blockIdx.x = number;
        block.begun.assign(threads, false);
        block.ended.assign(threads, false);
        block_barrier = {};
        for (Barrier& barrier : warp_barriers) barrier = {};
        for (unsigned thread = 0; thread < threads; thread++) {
            ucontext_t& context = block.threads[thread];
            getcontext(&context);
            context.uc_stack.ss_sp = block.stacks[thread].get();
            context.uc_stack.ss_size = STACK;
            context.uc_link = nullptr;
            makecontext(&context, run_thread, 0);
        }
        bool any = true;
        while (any) {
            any = false;
            for (unsigned thread = 0; thread < threads; thread++) {
                if (block.ended[thread]) continue;
                any = true;
                threadIdx.x = thread;
                run_until_it_waits(thread);
            }
        }
    }
}

// The value of another lane of the warp.
inline double exchange(double value, unsigned lane) {
    const unsigned self = threadIdx.x, warp = self / 32;
    values[self] = value;
    warp_barriers[warp].wait(32);
    const double other = values[32 * warp + lane % 32];
    warp_barriers[warp].wait(32);
    return other;
}

}  // namespace host

static unsigned threads_of_block = 0;
inline void __syncthreads() { host::block_barrier.wait(threads_of_block); }
inline void __syncwarp() { host::warp_barriers[threadIdx.x / 32].wait(32); }

// Values are exact as double: numbers of at most 32 bits, or double.
template <class T>
inline T __shfl_xor_sync(unsigned, T value, int with) {
    return static_cast<T>(host::exchange(static_cast<double>(value), threadIdx.x % 32 ^ with));
}
template <class T>
inline T __shfl_up_sync(unsigned, T value, int by) {
    const unsigned lane = threadIdx.x % 32;
    return static_cast<T>(host::exchange(static_cast<double>(value), lane >= static_cast<unsigned>(by) ? lane - by : lane));
}
inline unsigned __ballot_sync(unsigned, bool bit) {
    const unsigned warp = threadIdx.x / 32;
    host::values[threadIdx.x] = bit;
    host::warp_barriers[warp].wait(32);
    unsigned bits = 0;
    for (unsigned lane = 0; lane < 32; lane++) bits |= (host::values[32 * warp + lane] != 0.0 ? 1u : 0u) << lane;
    host::warp_barriers[warp].wait(32);
    return bits;
}

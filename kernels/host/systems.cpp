// The kernels of systems.cu on the host.
#include "block.hpp"
using std::ceil;
using std::fabs;
using std::floor;
using std::fmax;
using std::fmin;
#include "systems.cuh"

namespace {

struct Call {
    const Systems* systems;
    const PairOutput* output;
};

template <class Real>
void body(const void* argument) {
    static Shared<Real> shared;
    const Call& call = *static_cast<const Call*>(argument);
    search<Real>(*call.systems, *call.output, shared);
}

template <class Real>
void run(const Call& call, int kernel) {
    const Systems& systems = *call.systems;
    if (kernel == 0) {
        for (u32 system = 0; system < systems.count; system++) prepare<Real>(systems, system);
        return;
    }
    threads_of_block = THREADS;
    const u32 blocks = systems.points / TARGETS + systems.count;
    host::launch(blocks, THREADS, body<Real>, &call);
}

}  // namespace

// Kernel 0 prepares and 1 searches; `wide` says that coordinates are double.
extern "C" void run_systems(const Systems* systems, const PairOutput* output, int wide, int kernel) {
    const Call call = {systems, output};
    if (wide) run<double>(call, kernel);
    else run<float>(call, kernel);
}

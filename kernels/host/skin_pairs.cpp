// The kernels of skin_pairs.cu on the host.
#include "block.hpp"
using std::fabs;
using std::fmax;
using std::fmin;
#include "skin_pairs.cuh"

namespace {

struct Call {
    const Systems* systems;
    const Systems* before;
    const SkinCandidates* candidates;
    const PairOutput* output;
};

// Blocks that measure displacements.
constexpr u32 BLOCKS = 2;

template <class Real>
void measure(const void* argument) {
    const Call& call = *static_cast<const Call*>(argument);
    moved<Real>(*call.systems, *call.before, call.candidates->status, BLOCKS);
}

template <class Real>
void keep(const void* argument) {
    static SkinRoom room;
    const Call& call = *static_cast<const Call*>(argument);
    keep_pairs<Real>(*call.systems, *call.candidates, *call.output, room);
}

template <class Real>
void run(const Call& call) {
    for (u32 system = 0; system < call.systems->count; system++) prepare<Real>(*call.systems, system);
    threads_of_block = nf::SKIN_THREADS;
    host::launch(BLOCKS, nf::SKIN_THREADS, measure<Real>, &call);
    const u64 blocks = (call.candidates->count + nf::SKIN_CANDIDATES - 1) / nf::SKIN_CANDIDATES;
    host::launch(static_cast<u32>(blocks), nf::SKIN_THREADS, keep<Real>, &call);
}

}  // namespace

// `wide` says that coordinates are double.
extern "C" void run_skin_pairs(
    const Systems* systems, const Systems* before, const SkinCandidates* candidates, const PairOutput* output, int wide) {
    const Call call = {systems, before, candidates, output};
    if (wide) run<double>(call);
    else run<float>(call);
}

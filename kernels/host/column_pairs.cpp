// The kernel of column_pairs.cu on the host.
#include "block.hpp"

using std::fabs;
using std::fmax;
using std::nearbyint;
// Only walks have any, and none of these runs here.
#define asm(...)
#define rint nearbyint
#define rintf nearbyintf
#include "column_pairs.cuh"

namespace {

struct Call {
    const StoredLists* lists;
    const PairOutput* output;
    const ListedPoints* points;
};

void body(const void* argument) {
    static PairRoom room;
    const Call& call = *static_cast<const Call*>(argument);
    pairs_of_lists(*call.lists, *call.output, *call.points, room);
}

}  // namespace

extern "C" void run_column_pairs(const StoredLists* lists, const PairOutput* output, const ListedPoints* points) {
    const Call call = {lists, output, points};
    threads_of_block = nf::COLUMN_THREADS;
    const u32 blocks = (lists->count + nf::COLUMN_TARGETS - 1) / nf::COLUMN_TARGETS;
    host::launch(blocks, nf::COLUMN_THREADS, body, &call);
}

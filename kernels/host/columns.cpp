// The kernel of columns.cu on the host.
#include "block.hpp"
#include "columns.cuh"

namespace {

struct Call {
    const StoredLists* lists;
    const PairOutput* output;
};

void body(const void* argument) {
    static ColumnRoom room;
    const Call& call = *static_cast<const Call*>(argument);
    copy_lists(*call.lists, *call.output, room);
}

}  // namespace

extern "C" void run_columns(const StoredLists* lists, const PairOutput* output) {
    const Call call = {lists, output};
    threads_of_block = nf::COLUMN_THREADS;
    const u32 blocks = (lists->count + nf::COLUMN_TARGETS - 1) / nf::COLUMN_TARGETS;
    host::launch(blocks, nf::COLUMN_THREADS, body, &call);
}

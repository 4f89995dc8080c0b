// The kernels of stored.cu, slots.cu and point_data.cu on the host, those of the first with a pair
// kernel that tells every pair and every channel from all others.
#include "block.hpp"

using std::ceil;
using std::fabs;
using std::floor;
using std::fmax;
using std::fmin;
using std::nearbyint;

#define __global__
#define __launch_bounds__(...)
#define __grid_constant__
// Only walks and fast functions have any, and none of these runs here.
#define asm(...)
#define rint nearbyint
#define rintf nearbyintf

#define NF_WORK NF_PAIRS
#define NF_TARGETS 1
#define NF_SOURCES 2
#define NF_OUTPUTS 3
#define NF_REDUCE NF_SUM
// The kernel's name in the text that the test writes to nearfield/user.cuh.
#define pair told_apart
#include "constants.cuh"
#define NF_OPEN NF_LISTED_IMAGES
#include "../cuda/stored.cuh"
#include "../cuda/work.cuh"
#undef NF_OPEN

#define NF_WARPS 0
namespace open {
#define NF_OPEN NF_LISTED_OPEN
#define stored stored_open
#include "../cuda/stored.cu"
#undef NF_OPEN
#undef stored
}
namespace nearest {
#define NF_OPEN NF_LISTED_NEAREST
#define stored stored_nearest
#include "../cuda/stored.cu"
#undef NF_OPEN
#undef stored
}
namespace tilted {
#define NF_OPEN NF_LISTED_TILTED
#define stored stored_tilted
#include "../cuda/stored.cu"
#undef NF_OPEN
#undef stored
}
#define NF_OPEN NF_LISTED_IMAGES
namespace images {
#define stored stored_images
#include "../cuda/stored.cu"
#undef stored
}
#undef NF_WARPS
#define NF_WARPS 1
namespace warps {
#define stored stored_warps
#include "../cuda/stored.cu"
#undef stored
}
#include "../cuda/slots.cu"
#include "../cuda/point_data.cu"

namespace {

template <class Body>
void launch(u64 threads, const Body& body) {
    const auto run = [](const void* body) { (*static_cast<const Body*>(body))(); };
    threads_of_block = 256;
    host::launch(static_cast<unsigned>((threads + 255) / 256), 256, run, &body);
}

}  // namespace

// `way` is NF_OPEN, and 0 for warps through all images.
extern "C" void run_stored(const KernelWalk* walk, const Outlet* outlet, const Stored* stored, u32 way) {
    const u64 lanes = way == 0 ? 32 : nf::STORED_LANES;
    launch(lanes * walk->targets.count, [&] {
        if (way == 0) warps::stored_warps(*walk, *outlet, *stored);
        if (way == NF_LISTED_OPEN) open::stored_open(*walk, *outlet, *stored);
        if (way == NF_LISTED_NEAREST) nearest::stored_nearest(*walk, *outlet, *stored);
        if (way == NF_LISTED_TILTED) tilted::stored_tilted(*walk, *outlet, *stored);
        if (way == NF_LISTED_IMAGES) images::stored_images(*walk, *outlet, *stored);
    });
}

extern "C" void run_gather(const float4* at, const float* fields, u32 stride, u32 count, float4* sources, float4* more) {
    Points points = {};
    points.at = at;
    points.count = count;
    launch(count, [=] { gather_fields(points, fields, stride, sources, more); });
}

// Entries become sorted places.
extern "C" void run_slots(const float4* at, u32 count, u32* places, const u32* entries, const u64* total, u64 capacity,
                          u32* out) {
    launch(count, [=] { slots_of_points(at, count, places); });
    launch(256, [=] { slots_of_entries(entries, total, capacity, places, count, out); });
}

extern "C" void run_judge(const Judged* judged) {
    launch(1, [=] { judge_lists(*judged); });
}

extern "C" void run_follow(const Following* set, const Lattice* in_box, void* back, u32 wide) {
    launch(set->count, [=] {
        if (wide) follow_given(*set, *in_box);
        else follow_points(*set, *in_box);
    });
    launch(set->count, [=] {
        if (wide) positions_of_given(set->built, set->now_given, set->count, static_cast<double*>(back));
        else positions_of_points(set->now, set->count, static_cast<float*>(back));
    });
}

extern "C" void run_gather_points(const u32* indices, u32 count, const float4* at, u32 points, const int4* wraps,
                                  const u32* flags, const double* given, u32* places, float4* out_at,
                                  int4* out_wraps, double* out_given, u32* slots) {
    launch(points, [=] { slots_of_points(at, points, places); });
    launch(count, [=] {
        gather_points(indices, count, places, at, wraps, flags, given, out_at, out_wraps, out_given, slots);
    });
}

extern "C" void run_part(const float4* at, const u64* all_starts, u32 first, u32 count, u64 base, u32* targets,
                         u64* starts, u32* counts) {
    launch(count + 1, [=] { part_of_lists(at, all_starts, first, count, base, targets, starts, counts); });
}

// Data of points from the device.
extern "C" void run_retire(u64* refused) {
    launch(1, [=] { retire_refused(refused); });
}

extern "C" void run_radii(const void* from, u32 wide, u32 exact, u32 count, double least, double most, void* to,
                          u64* refused) {
    launch(count, [=] { take_radii(from, wide, exact, count, least, most, to, refused); });
}

extern "C" void run_count_radii(const float* radii, u32 count, float most, u32* classes) {
    launch(512, [=] { count_radii(radii, count, most, classes); });
}

extern "C" void run_wide(const float4* at, const float* radii, u32 count, float bulk, u32* wide) {
    launch(count, [=] { find_wide(at, radii, count, bulk, wide); });
    launch(nf::MAX_WIDE, [=] { order_wide(wide); });
}

extern "C" void run_numbers(const u32* from, u32 wide, u32 count, u32 most, u32* to, u64* refused) {
    launch(count, [=] { take_numbers(from, wide, count, most, to, refused); });
}

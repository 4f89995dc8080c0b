// The walks of flat.cu for a compiler of the host, one target after the other, into lists.
#include "cuda.hpp"
#include "../cuda/around.cuh"

#include <vector>

// Output of the walks: the caller's indices of all neighbours of all sorted targets in turn, and
// their number per target. The first call finds the numbers.
struct Found {
    u64* counts;
    u32* entries;  // or null
};

struct Listing {
    const Walk& walk;
    u32* to;
    u64 count;
    float4 source(u32 k) const { return walk.sources.at[k]; }
    void visit(bool hit, u32, float, float, float, float, float index) {
        if (!hit) return;
        if (to) to[count] = __float_as_uint(index);
        count++;
    }
};

template <class Visit>
static void list_all(const Walk& walk, const Found& found, Visit visit) {
    u64 before = 0;
    for (u32 slot = 0; slot < walk.targets.count; slot++) {
        const Target target = target_at(walk, slot);
        Listing listing{walk, found.entries ? found.entries + before : nullptr, 0};
        visit(target, listing);
        found.counts[slot] = listing.count;
        before += listing.count;
    }
}

template <bool HALF>
static void list_by(const Walk& walk, const Found& found, u32 domain, u32 cells) {
    list_all(walk, found, [&](const Target& target, Listing& listing) {
        if (domain == 0) visit_general<HALF>(walk, target, listing);
        if (domain == 1 && cells == 1) visit_open<1, HALF>(walk, target, listing);
        if (domain == 1 && cells == 2) visit_open<2, HALF>(walk, target, listing);
        if (domain == 1 && cells == 3) visit_open<3, HALF>(walk, target, listing);
        if (domain == 2) visit_around<false, false, HALF>(walk, target, listing);
        if (domain == 3) visit_around<true, false, HALF>(walk, target, listing);
        if (domain == 4) visit_around<true, true, HALF>(walk, target, listing);
    });
}

// `domain` is as NF_OPEN of flat.cu, `cells` as NF_K.
extern "C" void walk_lists(const Walk* walk, const Found* found, u32 domain, u32 cells, u32 half) {
    if (half) list_by<true>(*walk, *found, domain, cells);
    else list_by<false>(*walk, *found, domain, cells);
}

// Cell and whole boxes along each axis of a point, as sorting finds them.
extern "C" void place_of_point(const Lattice* lattice, const float* at, double* cells, int* wraps) {
    for (int axis = 0; axis < 3; axis++) {
        const auto place = place_of(*lattice, axis, at[0], at[1], at[2]);
        cells[axis] = place.cell;
        wraps[axis] = place.wraps;
    }
}

// The walks of flat.cu for a compiler of the host, one target after the other, into lists. With
// NF_FILTERS pairs are left out as kernels do it.
#include "cuda.hpp"
#include "../cuda/ascend.cuh"
#include "../cuda/masks.cuh"
#include "../cuda/warps.cuh"

#include <vector>

// The geometry of a pair.
struct PairOutput {
    i64 image[3];
    float shift[3], d[3], squared, distance;
};

// Output of the walks: the caller's indices of all neighbours of all sorted targets in turn, the
// geometry of their pairs, and their number per target. The first call finds the numbers.
struct ListOutput {
    u64* counts;
    u32* entries;       // or null…
    PairOutput* pairs;  // …as this is then
};

struct Listing {
    static constexpr bool LEAN = true, IMAGES = true;
    const Walk& walk;
    const Target& target;
    u32* to;
    PairOutput* pairs;
    u64 count;
    i64 a, b, c;
    const float4* sources() const { return walk.sources.at; }
    void image(i64 of_a, i64 of_b, i64 of_c) {
        a = of_a;
        b = of_b;
        c = of_c;
    }
    void visit(bool hit, u32 k, float, float, float, float, float) {
        if (hit && to) put(k, PairSeen(walk, target, walk.sources.at[k], a, b, c));
        else if (hit) count++;
    }
    void put(u32 k, const PairSeen& pair) {
        to[count] = __float_as_uint(walk.sources.at[k].w);
        pairs[count] = {{pair.a, pair.b, pair.c}, {pair.shift.x, pair.shift.y, pair.shift.z},
                        {pair.d.x, pair.d.y, pair.d.z}, pair.squared, pair.distance()};
        count++;
    }
};

// How lists are found: by walking once to count and once to write, by masks, or row by row as the
// lanes of a warp do.
enum class ListMethod : u32 { Walks, Masks, Rows };

template <class Rows, class Listing>
static void list_rows(const Rows& rows, Listing& listing) {
    for (u32 row = 0; row < rows.count(); row++) rows.visit(row, listing);
}

template <bool HALF, bool PERIODIC, class Cells, class Listing>
static void list_around(const Walk& walk, const Target& target, Listing& listing, ListMethod means) {
    if (means == ListMethod::Rows) return list_rows(RowsAround<HALF, PERIODIC, Cells>(walk, target), listing);
    const bool wrapped = images_differ(walk);
    const Cells cells(walk, target, wrapped);
    constexpr int ROWS = Cells::ROWS - 1;
    if (means == ListMethod::Walks) return visit_around<HALF>(walk, target, cells, wrapped, listing);
    std::vector<u32> words(ROWS * ROWS + 1, ~0u);
    const MaskWords<u32> written = {words.data(), 1};
    const u32 count = mask_candidates<HALF>(walk, target, cells, wrapped, written);
    if (listing.to && written.incomplete(ROWS)) {
        visit_around<HALF>(walk, target, cells, wrapped, listing);
    } else if (listing.to) {
        const MaskWords<const u32> read = {words.data(), 1};
        const auto found_at = [](u32 k, u32 image) { return uint2{k, image}; };
        expand_masks(cells, read, found_at, [&](uint2 found) {
            const Image image = image_of_number(found.y);
            listing.put(found.x, pair_of_cells(walk, target, found.x, walk.sources.at[found.x], image, wrapped));
        });
    } else {
        listing.count = count;
    }
}

template <bool HALF, int K, class Listing>
static void list_by(const Walk& walk, const Target& target, Listing& listing, u32 domain, ListMethod means) {
    if (domain == 0 && means == ListMethod::Rows) list_rows(RowsOfTable<HALF>(walk, target), listing);
    else if (domain == 0) visit_general<HALF>(walk, target, listing);
    if (domain == 1) list_around<HALF, false, Around<K, true, false, false>>(walk, target, listing, means);
    using Open = Around<K, false, false, false>;
    if (domain == 2 && Open(walk, target, false).warp_meets_sources(true)) {
        list_around<HALF, false, Open>(walk, target, listing, means);
    }
    if (domain == 3) list_around<HALF, true, Around<K, false, true, false>>(walk, target, listing, means);
    if (domain == 4) list_around<HALF, true, Around<K, false, true, true>>(walk, target, listing, means);
}

template <bool HALF>
static void list_all(const Walk& walk, const ListOutput& found, u32 domain, u32 cells, ListMethod means) {
    u64 before = 0;
    for (u32 slot = 0; slot < walk.targets.count; slot++) {
        const Target target = target_at(walk, slot);
        auto listing = filtered<Listing>(
            walk, target, walk, target, found.entries, found.pairs, u64(0), i64(0), i64(0), i64(0));
        if (found.entries) {
            listing.to += before;
            listing.pairs += before;
        }
        if (cells == 1) list_by<HALF, 1>(walk, target, listing, domain, means);
        if (cells == 2) list_by<HALF, 2>(walk, target, listing, domain, means);
        if (cells == 3) list_by<HALF, 3>(walk, target, listing, domain, means);
        found.counts[slot] = listing.count;
        before += listing.count;
    }
}

// `walk` has filters behind it if NF_FILTERS says so. `domain` is as NF_OPEN of flat.cu, `cells` as NF_K, `found_by` one of `ListMethod`.
extern "C" void walk_lists(const Walk* walk, const ListOutput* found, u32 domain, u32 cells, u32 half, u32 found_by) {
    const ListMethod means = static_cast<ListMethod>(found_by);
    if (half) list_all<true>(*walk, *found, domain, cells, means);
    else list_all<false>(*walk, *found, domain, cells, means);
}

// Sorts a list as a warp does, or as a block does.
template <class Key>
static void order_list(const ListToSort& list, u32 by_block) {
    static RankRoom<Key> room;
    if (by_block) ascend_by_block<Key>(list);
    else ascend_by_warp<Key>(list, room);
}

extern "C" void ascend_list(u32* entries, const PairArrays* arrays, u32 length, u32 by_block) {
    order_list<u32>(list_from(entries, *arrays, 0, length), by_block);
}

// The same nearest first; gives the k-th pair.
extern "C" void order_by_distance(
    u32* entries, const PairArrays* arrays, u32 length, u32 by_block, u32 k, Nearest* nth) {
    const ListToSort list = list_from(entries, *arrays, 0, length);
    order_list<u64>(list, by_block);
    *nth = nth_pair(list, k);
}

// Cell and whole boxes along each axis of a point, as sorting finds them.
extern "C" void place_of_point(const Lattice* lattice, const float* at, double* cells, int* wraps) {
    for (int axis = 0; axis < 3; axis++) {
        const auto place = place_of(*lattice, axis, at[0], at[1], at[2]);
        cells[axis] = place.cell;
        wraps[axis] = place.wraps;
    }
}

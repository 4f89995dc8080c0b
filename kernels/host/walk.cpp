// The walks of flat.cu for a compiler of the host, one target after the other, into lists. With
// NF_FILTERS pairs are left out as kernels do it.
#include "cuda.hpp"
#include "../cuda/ascend.cuh"
#include "../cuda/imaged.cuh"
#include "../cuda/masks.cuh"
#include "../cuda/warps.cuh"
#include "../cuda/wide.cuh"

#include <vector>

// The geometry of a pair.
struct PairOutput {
    i64 image[3];
    Given shift[3], d[3], squared, distance;
};

// Output of the walks: the caller's indices of all neighbours of all sorted targets in turn, the
// geometry of their pairs, and their number per target. The first call finds the numbers.
struct ListOutput {
    u64* counts;
    u32* entries;       // or null…
    PairOutput* pairs;  // …as this is then
};

struct Listing {
    static constexpr bool LEAN = true, IMAGES = true, DISTANCES = false, TAKES_BITS = false;
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
        if (hit && to) {
            put(k, PairSeen(walk, given_position(walk.targets, target), given_position(walk.sources, k), a, b, c));
        }
        else if (hit) count++;
    }
    void put(u32 k, const PairSeen& pair) {
        to[count] = __float_as_uint(walk.sources.at[k].w);
        pairs[count] = {{pair.a, pair.b, pair.c}, {pair.shift.x, pair.shift.y, pair.shift.z},
                        {pair.d.x, pair.d.y, pair.d.z}, pair.squared, pair.distance()};
        count++;
    }
};

// The same by the displacements that a pair kernel sees, where images are near: the image of a pair
// is what its displacement lacks.
struct Displaced {
    static constexpr bool LEAN = true, IMAGES = false, DISTANCES = true, TAKES_BITS = false;
    Listing& listing;
    const float4* sources() const { return listing.walk.sources.at; }
    void visit(bool hit, u32 k, float dx, float dy, float dz, float d2, float) {
        if (!hit || !listing.to) return listing.visit(hit, k, dx, dy, dz, d2, 0.0f);
        const Walk& walk = listing.walk;
        const GivenVector from = given_position(walk.targets, listing.target), to = given_position(walk.sources, k);
        const double lacking[3] = {dx - (double(to.x) - from.x), dy - (double(to.y) - from.y), dz - (double(to.z) - from.z)};
        i64 image[3];
        for (int axis = 0; axis < 3; axis++) {
            const double length = walk.lattice.length[axis], *inverse = walk.lattice.inverse[axis];
            const double boxes = !walk.lattice.tilted ? lacking[axis] / length
                : inverse[0] * lacking[0] + inverse[1] * lacking[1] + inverse[2] * lacking[2];
            image[axis] = length == 0.0 ? 0 : static_cast<i64>(std::floor(boxes + 0.5));
        }
        PairSeen pair(walk, from, to, image[0], image[1], image[2]);
        pair.d = {dx, dy, dz};
        pair.squared = d2;
        listing.put(k, pair);
    }
};

// How lists are found: by walking once to count and once to write, by masks, row by row as the
// lanes of a warp do, or as pair kernels walk.
enum class ListMethod : u32 { Walks, Masks, Rows, Kernels };

template <class Rows, class Listing>
static void list_rows(const Walk& walk, const Target& target, const Rows& rows, Listing& listing) {
    const float4* const proxies = proxies_of(walk.sources);
    for (u32 row = 0; row < rows.count(); row++) visit_row_of(walk, rows, row, target, proxies, listing);
}

// Calls visit(target, work), with what sees points outside the box where there are any.
template <bool HALF, bool TILTED, class Work, class Visit>
static void visit_either(const Walk& walk, const Target& target, Work& work, Visit visit) {
    if (!images_differ(walk)) return visit_given_around(walk, target, work, visit);
    // Tests on several threads walk by one library.
    thread_local ImageTables<TILTED> tables;
    if (images_near(walk)) tables.load(walk, 0, 1);
    visit_wrapped<HALF>(walk, target, tables, work, visit);
}

template <bool HALF, bool PERIODIC, class Cells, class Listing>
static void list_around(const Walk& walk, const Target& target, Listing& listing, ListMethod means) {
    if (means == ListMethod::Rows) {
        return list_rows(walk, target, RowsAround<HALF, PERIODIC, Cells>(walk, target), listing);
    }
    const bool wrapped = images_differ(walk);
    const Cells cells(walk, target, wrapped);
    constexpr int ROWS = Cells::ROWS - 1;
    constexpr bool TILTED = Cells::LEANING;
    const auto around = [&](const Target& seen, auto& work) { visit_around<HALF>(walk, seen, cells, work); };
    const auto list = [&] { visit_either<HALF, TILTED>(walk, target, listing, around); };
#if !NF_DOUBLE
    if (means == ListMethod::Kernels && images_near(walk)) {
        Displaced displaced{listing};
        return visit_either<HALF, TILTED>(walk, target, displaced, around);
    }
#endif
    if (means == ListMethod::Walks || means == ListMethod::Kernels) return list();
    std::vector<u32> words(ROWS * ROWS + 1, ~0u);
    const MaskWords<u32> written = {words.data(), 1};
    auto masker = filtered<Masker>(walk, target, walk);
    u32 count = 0;
    visit_either<HALF, TILTED>(walk, target, masker, [&](const Target& seen, auto& work) {
        count = mask_candidates<HALF>(walk, seen, cells, masker, work, written);
    });
    if (listing.to && written.incomplete(ROWS)) {
        list();
    } else if (listing.to) {
        const MaskWords<const u32> read = {words.data(), 1};
        const auto found_at = [](u32 k, u32 image) { return uint2{k, image}; };
        expand_masks(cells, read, found_at, [&](uint2 found) {
            const Image image = image_of_number(found.y);
            const GivenVector from = given_position(walk.targets, target), to = given_position(walk.sources, found.x);
            listing.put(found.x, pair_of_image(walk, target.slot, found.x, from, to, image, wrapped));
        });
    } else {
        listing.count = count;
    }
}

template <bool HALF, class Listing>
static void list_general(const Walk& walk, const Target& target, Listing& listing) {
    const Runs runs = runs_of(walk, target);
    visit_given(walk, target, listing, [&](const Target& seen, auto& work) {
        visit_runs<HALF>(walk, seen, runs, images_differ(walk), work);
    });
}

template <bool HALF, int K, class Listing>
static void list_by(const Walk& walk, const Target& target, Listing& listing, u32 domain, ListMethod means) {
    if (domain == 0 && means == ListMethod::Rows) list_rows(walk, target, RowsOfTable<HALF>(walk, target), listing);
    else if (domain == 0) list_general<HALF>(walk, target, listing);
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
        visit_apart<HALF>(walk, target, listing);
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
    order_list<DistanceKey>(list, by_block);
    *nth = nth_pair(list, k);
}

// Cell and whole boxes along each axis of a point, these packed, and its proxy, as sorting finds
// them.
extern "C" void place_of_point(
    const Lattice* lattice, const Given* at, double* cells, int* wraps, u32* boxes, float* proxy) {
    for (int axis = 0; axis < 3; axis++) {
        const auto place = place_of(*lattice, axis, at[0], at[1], at[2]);
        cells[axis] = place.cell;
        wraps[axis] = place.wraps;
    }
    const int4 counts = {wraps[0], wraps[1], wraps[2], 0};
    *boxes = packed_boxes(counts);
    const float3 seen = proxy_of(*lattice, GivenVector{at[0], at[1], at[2]}, counts);
    proxy[0] = seen.x;
    proxy[1] = seen.y;
    proxy[2] = seen.z;
}

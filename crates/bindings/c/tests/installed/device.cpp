// The classes of nearfield/device.hpp. Without a GPU their errors are checked and the rest is
// skipped, as device.h says.

#include "device.h"

#include <nearfield/device.hpp>

#include <cstdio>
#include <cstdlib>

using nearfield::device_array;

static void errors_without_a_device() {
    bool thrown = false;
    try {
        nearfield::device_options(0.1).periodic(-1, 0, 0);
    } catch (const nearfield::error &refused) {
        thrown = refused.status() == NF_STATUS_SETUP;
    }
    EXPECT(thrown);
    thrown = false;
    try {
        nearfield::device_options(0.1).cutoffs(2, {0.1});
    } catch (const nearfield::error &refused) {
        thrown = refused.status() == NF_STATUS_BAD_ARGUMENT;
    }
    EXPECT(thrown);
    nearfield::status_device_engine none;
    EXPECT(none.find_neighbors(0, 0).status == NF_STATUS_NULL_POINTER);
    EXPECT(none.set_types(0, nf_device_integers{0, 0, NF_INTEGER_U32}).status ==
           NF_STATUS_NULL_POINTER);
    EXPECT(nearfield::status_device_systems().finish().status == NF_STATUS_NULL_POINTER);
    EXPECT(nearfield::status_device_verlet_lists().refresh().status == NF_STATUS_NULL_POINTER);
}

static int skipped(const char *why) {
    errors_without_a_device();
    return skip(why);
}

int main() {
    void *stream = nullptr;
    if (const char *missing = start_driver(&stream)) {
        return skipped(missing);
    }
    const auto options =
        nearfield::device_options(1.5).stream(0, stream).order(NF_LIST_ORDER_ASCENDING);
    auto made = nearfield::status_device_engine::make(options);
    if (!made) {
        return skipped(nf_last_error());
    }
    errors_without_a_device();

    // A row of points, the spacing 1: two neighbours but for the ends.
    const std::size_t points = 1000;
    std::vector<float> row(3 * points);
    for (std::size_t i = 0; i < points; ++i) {
        row[3 * i] = float(i);
    }
    const device_array positions{on_device(row.data(), 4 * row.size()), points};
    const device_array counts{on_device(nullptr, 4 * points), points};
    nearfield::device_engine engine(options);
    const std::uint32_t set = engine.add_points(positions);
    do {
        engine.pair_geometry(set, set, NF_QUANTITY_SQUARES);
        engine.count_neighbors(set, set, counts);
    } while (!engine.finish());
    const nf_device_pairs pairs = engine.geometry(set, set);
    EXPECT(pairs.lists.points == points && pairs.squares != 0 && pairs.distances == 0);
    auto *found = static_cast<std::uint32_t *>(on_host(counts.address, 4 * points));
    EXPECT(found[0] == 1 && found[1] == 2 && found[points - 1] == 1);
    std::free(found);

    std::size_t targets = 0;
    engine.for_each_chunk(set, set, NF_QUANTITY_DISPLACEMENTS, 4096,
                          [&](const nf_device_chunk &chunk) {
                              EXPECT(chunk.pairs.displacements != 0);
                              targets += chunk.target_count;
                          });
    EXPECT(targets == points);
    engine.set_targets(set, std::vector<std::uint32_t>{3, 5});
    engine.exclude_pairs(set, std::vector<std::array<std::uint32_t, 2>>{{3, 4}});
    do {
        engine.count_neighbors(set, set, counts);
    } while (!engine.finish());
    found = static_cast<std::uint32_t *>(on_host(counts.address, 4 * points));
    EXPECT(found[3] == 1 && found[5] == 2 && found[6] == 0);
    std::free(found);
    auto &other = made.value;
    EXPECT(other.find_neighbors(9, 9).status == NF_STATUS_UNKNOWN_POINT_SET);

    auto lists = nearfield::device_verlet_lists::make(nearfield::device_options(1.5), 0.2f);
    const std::uint32_t followed = lists.add_points(positions);
    EXPECT(lists.refresh() && lists.builds() == 1);
    EXPECT(lists.candidates(followed, followed).points == points);
    lists.update(followed, positions);
    EXPECT(lists.finish() && lists.displacement(followed) == 0);

    auto systems = nearfield::device_systems::make();
    const std::int64_t offsets[3] = {0, 400, std::int64_t(points)};
    const double radius = 1.5;
    nf_device_systems_input input = {};
    input.positions = positions.address;
    input.points = points;
    input.systems = 2;
    input.offsets = on_device(offsets, sizeof offsets);
    input.radii = on_device(&radius, sizeof radius);
    input.radius_count = 1;
    do {
        systems.neighbors(input, NF_QUANTITY_TARGETS + NF_QUANTITY_SOURCES);
    } while (!systems.finish());
    EXPECT(systems.pairs().pairs == 2 * (399 + 599));
    std::printf("engines, lists with a skin and systems on a GPU, by their classes\n");
    return 0;
}

// nearfield.hpp: owners that move, containers of all kinds, exceptions and statuses.

#include "common.hpp"

#include <nearfield.hpp>
#include <nearfield/systems.hpp>
#include <nearfield/verlet.hpp>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

struct Particle {
    double mass;
    double position[3];
};

int main() {
    std::vector<std::array<float, 3>> points;
    for (int i = 0; i < 1000; ++i) {
        points.push_back({float(i % 10), float(i / 10 % 10), float(i / 100)});
    }

    nearfield::engine first(nearfield::options(1.0).order(NF_LIST_ORDER_ASCENDING));
    nearfield::engine engine = std::move(first);
    expect(first.handle() == nullptr, "a moved engine is none");
    const auto set = engine.add_points(points);
    engine.find_neighbors();
    const nearfield::lists lists = engine.neighbors(set, set);
    expect(lists.size() == 1000 && lists[555].size() == 6 && lists[0].size() == 3, "lists");
    expect(lists[0][0] == 1 && lists[0][1] == 10 && lists[0][2] == 100, "in ascending order");
    expect(engine.neighbors_of(lists, 555).size() == 6, "of one point");
    const nearfield::csr csr = engine.to_csr(set, set);
    expect(csr.indices.size() == lists.pairs() && csr.offsets.back() == lists.pairs(), "as CSR");

    const std::vector<std::uint32_t> some = {555, 0};
    const auto of_some = engine.query_points(set, set, some);
    expect(of_some.size() == 2 && of_some[0].size() == 6 && of_some[1][2] == 100, "of some points");
    std::size_t chunked = 0, chunks = 0;
    engine.for_each_chunk(set, set, 10000, [&](const nf_chunk &chunk) {
        chunked += chunk.pairs;
        ++chunks;
    });
    expect(chunked == lists.pairs() && chunks > 2, "in chunks");
    auto skinned = nearfield::verlet_lists::make(nearfield::options(1.0), 0.5f);
    const auto atoms = skinned.add_points(points);
    expect(skinned.refresh() == 1 && skinned.refresh() == 0, "lists with a skin are kept");
    std::vector<std::array<float, 3>> moved = points;
    moved[0][0] -= 0.125f;
    skinned.update(atoms, moved);
    nearfield::pairs near;
    expect(skinned.refresh() == 0 && skinned.builds() == 1, "and serve points that have moved");
    skinned.pair_geometry(atoms, atoms, NF_QUANTITY_TARGETS | NF_QUANTITY_DISTANCES, near);
    expect(near.size() == lists.pairs() - 6 && near.distances<float>()[0] == 1.0f, "exactly");

    engine.update(set, points);
    try {
        engine.neighbors_of(lists, 555);
        expect(false, "lists that are out of date are refused");
    } catch (const nearfield::error &error) {
        expect(error.status() == NF_STATUS_OUT_OF_DATE, "with their status");
        expect(std::string(error.what()).find("changed") != std::string::npos, "and a text");
    }

    // Positions as bare numbers, and strided inside structures in double precision.
    expect(engine.query(std::vector<float>{0, 0, 0, 9, 9, 9}, set).size() == 2, "bare numbers");
    std::vector<Particle> particles(8);
    for (int i = 0; i < 8; ++i) {
        particles[i] = {1.0, {double(i & 1), double(i >> 1 & 1), double(i >> 2)}};
    }
    auto made = nearfield::status_engine::make(
        nearfield::options(1.0).precision(NF_PRECISION_F64).periodic(2, 2, 2));
    expect(bool(made), "statuses say when it went well");
    nearfield::status_engine &box = made.value;
    const auto corner = box.add_points(
        nearfield::positions<double>(particles[0].position, particles.size(), sizeof(Particle)));
    expect(corner && box.find_neighbors(), "strided doubles");
    expect(box.neighbors(corner.value, corner.value).value[0].size() == 6, "in a periodic box");
    expect(bool(box.warm_up()), "a warm-up");
    expect(box.neighbors(corner.value, corner.value).value[0].size() == 6, "changes no list");
    expect(box.set_radius(-1).status == NF_STATUS_SETUP, "and when it did not");
    expect(box.radius().value == 1.0, "which changes nothing");

    // Sums.
    std::vector<std::uint32_t> counts(points.size());
    engine.count_neighbors(set, set, counts);
    expect(counts[555] == 6, "counts");
    std::vector<float> mass(points.size(), 1.0f), density(points.size());
    engine.sph_density(set, set, 1.0f, mass, density);
    expect(density[555] == 0.0f, "the kernel vanishes at its support");
    struct Body {
        double id;
        float mass;
        float rest;
    };
    const std::vector<Body> bodies(points.size(), Body{-1, 1.0f, -1.0f});
    std::vector<float> strided(points.size());
    nearfield::engine wide(nearfield::options(2.0));
    const auto inside = wide.add_points(points);
    wide.sph_density(inside, inside, 2.0f, mass, density);
    wide.sph_density(inside, inside, 2.0f,
                     nearfield::field(&bodies[0].mass, bodies.size(), sizeof(Body)), strided);
    expect(density[555] > 0.0f && strided == density, "masses inside structures");

    // Radii of single points: the larger one decides.
    {
        nearfield::engine adaptive(nearfield::options(2.0).radii(NF_RADIUS_RULE_SYMMETRIC));
        const auto uneven = adaptive.add_points(std::vector<float>{0, 0, 0, 1, 0, 0, 3, 0, 0});
        adaptive.set_radii(uneven, std::vector<float>{1.0f, 0.5f, 2.0f});
        adaptive.find_neighbors();
        expect(adaptive.neighbors(uneven)[1].size() == 2, "both reach the middle one");
        const std::vector<float> at{2, 0, 0}, reach{0.5f};
        expect(adaptive.query(nearfield::as_positions(at), reach, uneven)[0].size() == 1,
               "a position with a radius");
    }

    // Filters: cut-offs of types, exclusions, chosen targets, the k nearest.
    {
        nearfield::engine filtered(
            nearfield::options(2.0).nearest(2).cutoffs(2, {2.0, 1.0, 1.0, 0.0}));
        const std::vector<float> row{0, 0, 0, 1, 0, 0, 2, 0, 0, 3, 0, 0};
        const auto few = filtered.add_points(row);
        filtered.set_types(few, std::vector<std::uint32_t>{0, 0, 0, 1});
        filtered.find_neighbors();
        const nearfield::lists kept = filtered.neighbors(few, few);
        expect(kept[2].size() == 2 && kept[2][0] == 1 && kept[2][1] == 3, "the two nearest");
        expect(kept[3].size() == 1, "within the cut-off of its type");
        using pair = std::array<std::uint32_t, 2>;
        filtered.exclude_pairs(few, std::vector<pair>{{1, 2}});
        filtered.set_targets(few, std::vector<std::uint32_t>{2});
        filtered.find_neighbors();
        const nearfield::lists left = filtered.neighbors(few, few);
        expect(left.pairs() == 2 && left[2][0] == 3 && left[2][1] == 0, "without the excluded one");
        filtered.clear_exclusions(few);
        filtered.set_molecules(few, std::vector<std::uint32_t>{5, 5, 6, 7});
        filtered.set_target_mask(few, std::vector<std::uint8_t>{1, 0, 0, 0});
        filtered.find_neighbors();
        expect(filtered.neighbors(few, few)[0][0] == 2, "of another molecule");
        filtered.clear_targets(few);
        try {
            filtered.set_exclusions(few, std::vector<std::uint64_t>{0, 1, 1, 1, 1},
                                    std::vector<std::uint32_t>{1});
            expect(false, "exclusions that one point has alone are refused");
        } catch (const nearfield::error &error) {
            expect(error.status() == NF_STATUS_BAD_ARGUMENT, "with their status");
        }
    }

    // Pairs with their geometry, of two sets and of many systems.
    {
        nearfield::engine row(nearfield::options(1.0).periodic(4, 0, 0).order(NF_LIST_ORDER_ASCENDING));
        const auto atoms = row.add_points(std::vector<float>{0.25f, 0, 0, 3.75f, 0, 0});
        nearfield::pairs found;
        row.pair_geometry(atoms, atoms, NF_QUANTITY_TARGETS + NF_QUANTITY_IMAGES + NF_QUANTITY_DISPLACEMENTS,
                          found);
        expect(found.size() == 2 && found.targets()[1] == 1 && found.sources().empty(), "pairs");
        expect(found.images()[0] == -1 && found.displacements<float>()[0] == -0.5f, "geometry");
        expect(found.displacements<double>().empty(), "in the precision of the engine");

        nf_systems_options options = nearfield::systems::defaults();
        options.order = NF_LIST_ORDER_ASCENDING;
        auto search = nearfield::systems::make(options);
        const std::vector<double> at{0, 0, 0, 0, 0, 1.1, 0.25, 0, 0};
        const std::vector<std::int64_t> offsets{0, 2, 3};
        const std::vector<double> radii(5, 1.5);
        const double cells[18] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
        const std::uint8_t periodic[6] = {0, 0, 0, 1, 0, 0};
        nf_systems_input input = {};
        input.systems = 2;
        input.offsets = offsets.data();
        input.radii = radii.data();
        input.radius_count = 1;
        input.cells = cells;
        input.cell_count = 2;
        input.periodic = periodic;
        input.periodic_count = 2;
        search.neighbors(nearfield::as_positions(at), input, 31, found);
        expect(found.size() == 4 && found.sources()[0] == 1 && found.sources()[3] == 2, "systems");
        expect(found.distances<double>()[0] == 1.1 && found.images()[6] == -1, "with geometry");
        expect(found.offsets().size() == 4 && found.offsets()[2] == 2, "by points");
        std::vector<std::uint32_t> rows(9), counts(3);
        std::size_t largest = 0;
        expect(found.padded(3, 7, rows, counts, largest) == NF_STATUS_OK, "rows");
        expect(largest == 2 && rows[0] == 1 && rows[1] == 7 && counts[2] == 2, "of a fixed length");
        options.skin = 0.1;
        auto kept = nearfield::systems::make(options);
        for (int step = 0; step < 3; ++step) {
            kept.neighbors(nearfield::as_positions(at), input, 31, found);
            expect(found.size() == 4 && kept.builds() == 1, "systems with a skin");
        }
        input.radius_count = 5;
        try {
            search.neighbors(nearfield::as_positions(at), input, 31, found);
            expect(false, "arrays that do not fit each other are refused");
        } catch (const nearfield::error &error) {
            expect(error.status() == NF_STATUS_BAD_ARGUMENT && found.size() == 0, "with none found");
        }
    }

    // Batches: every target once, and exceptions come out.
    std::atomic<int> targets(0);
    engine.for_each_batch(set, set, [&](const nf_batch &batch) {
        targets += static_cast<int>(batch.target_count);
    });
    expect(targets == 1000, "every target is given once");
    try {
        engine.for_each_batch(set, set, [](const nf_batch &) { throw std::runtime_error("mine"); });
        expect(false, "an exception leaves the loop");
    } catch (const std::runtime_error &error) {
        expect(std::string(error.what()) == "mine", "as it was thrown");
    }

    // Two threads with an engine each, and one engine read by both.
    std::vector<std::thread> threads;
    for (int k = 0; k < 2; ++k) {
        threads.emplace_back([&] {
            nearfield::engine own(nearfield::options(1.5).threads(1));
            const auto mine = own.add_points(points);
            own.find_neighbors();
            expect(own.neighbors(mine, mine)[555].size() == 18, "an engine of its own");
            expect(engine.points(set) == 1000, "a shared engine");
        });
    }
    for (auto &thread : threads) {
        thread.join();
    }

    // With one argument a set searches itself, whatever its number.
    {
        nearfield::engine two(nearfield::options(1.5));
        two.add_points(std::vector<std::array<float, 3>>(3));
        const auto second = two.add_points(points);
        two.find_neighbors();
        std::vector<std::uint32_t> counts(points.size());
        two.count_neighbors(second, counts);
        expect(counts[555] == 18 && two.neighbors(second)[555].size() == 18, "the set itself");
        expect(two.to_csr(second).indices == two.to_csr(second, second).indices, "and as a copy");
    }

    // Points and sets leave; a removed set is refused by name, and its number is not given again.
    std::vector<std::array<float, 3>> kept;
    std::vector<std::uint8_t> keep(points.size());
    for (std::size_t i = 0; i < points.size(); ++i) {
        keep[i] = i % 3 != 0;
        if (keep[i]) {
            kept.push_back(points[i]);
        }
    }
    const auto thinned = engine.add_points(points), fresh = engine.add_points(kept);
    engine.retain_points(thinned, keep);
    engine.find_neighbors();
    expect(engine.points(thinned) == kept.size(), "the number of points that are kept");
    const nearfield::csr left = engine.to_csr(thinned, thinned), wanted = engine.to_csr(fresh, fresh);
    expect(left.offsets == wanted.offsets && left.indices == wanted.indices, "with their lists");
    engine.remove_set(thinned);
    engine.remove_set(fresh);
    try {
        engine.points(thinned);
        expect(false, "a removed set is refused");
    } catch (const nearfield::error &error) {
        expect(error.status() == NF_STATUS_UNKNOWN_POINT_SET, "with its status");
        expect(std::string(error.what()).find("set 1") != std::string::npos, "and its number");
    }
    expect(engine.point_sets() == 1 && engine.add_points(kept) > fresh, "a number never given");

    const auto order = engine.z_sort(set);
    expect(order.size() == points.size(), "an order");
    expect(engine.report().find("\"threads\"") != std::string::npos, "a report");
    return 0;
}

// compact_nsearch.hpp against the definition: every form of every call, point sets that move, grow
// and are sorted, and the conventions of the library it stands in for.

#include "common.hpp"

#include <nearfield/compact_nsearch.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <vector>

using nearfield::compact_nsearch::NeighborhoodSearch;
using nearfield::compact_nsearch::Real;
using Points = std::vector<std::array<Real, 3>>;

// On a lattice of quarters all distances are exact.
static Points cloud(unsigned int points, unsigned int seed) {
    std::mt19937 random(seed);
    std::uniform_int_distribution<int> quarter(0, 19);
    Points made(points);
    for (auto &point : made) {
        for (Real &x : point) {
            x = Real(quarter(random)) / 4;
        }
    }
    return made;
}

static std::vector<unsigned int> near(const std::array<Real, 3> &at, const Points &sources, Real radius,
                                      long self) {
    std::vector<unsigned int> found;
    for (std::size_t j = 0; j < sources.size(); ++j) {
        Real squared = 0;
        for (int axis = 0; axis < 3; ++axis) {
            squared += (sources[j][axis] - at[axis]) * (sources[j][axis] - at[axis]);
        }
        if (squared < radius * radius && long(j) != self) {
            found.push_back(static_cast<unsigned int>(j));
        }
    }
    return found;
}

static void compare(NeighborhoodSearch &search, const std::vector<const Points *> &points) {
    for (unsigned int a = 0; a < points.size(); ++a) {
        const auto &set = search.point_set(a);
        expect(set.n_points() == points[a]->size(), "the set has its points");
        for (unsigned int b = 0; b < points.size(); ++b) {
            for (unsigned int i = 0; i < set.n_points(); ++i) {
                const auto expected =
                    search.is_active(a, b)
                        ? near((*points[a])[i], *points[b], search.radius(), a == b ? long(i) : -1)
                        : std::vector<unsigned int>();
                const auto list = set.neighbor_list(b, i);
                std::vector<unsigned int> found(list.begin(), list.end());
                expect(found.size() == set.n_neighbors(b, i), "both calls count alike");
                for (unsigned int k = 0; k < found.size(); ++k) {
                    expect(found[k] == set.neighbor(b, i, k) && found[k] == list.data()[k],
                           "all calls name the same neighbour");
                }
                std::sort(found.begin(), found.end());
                expect(found == expected, "the neighbours are those strictly within the radius");
            }
        }
    }
}

// A copy of a set owns its lists: it keeps them through later searches, and when the search is gone.
static void check_copies() {
    Points points = cloud(400, 7);
    std::vector<nearfield::compact_nsearch::PointSet> copies;
    std::vector<std::vector<unsigned int>> expected;
    {
        NeighborhoodSearch search(Real(1.0));
        const unsigned int set = search.add_point_set(points[0].data(), points.size());
        search.find_neighbors();
        for (std::size_t i = 0; i < points.size(); ++i) {
            expected.push_back(near(points[i], points, Real(1.0), long(i)));
        }
        const auto copy = search.point_set(set);
        copies = search.point_sets();
        copies.push_back(copy);
        copies.push_back(copies[0]);
        expect(copy.GetPoints() == points[0].data(), "a set knows its array");
        // Far more points, so that the engine's memory is another; then a search that fails.
        Points more = cloud(20000, 8);
        search.resize_point_set(set, more[0].data(), more.size());
        search.find_neighbors();
        more[3][1] = std::numeric_limits<Real>::infinity();
        try {
            search.find_neighbors();
            expect(false, "infinity is refused");
        } catch (const nearfield::error &) {
        }
        copies.push_back(search.point_set(set));
        copies.pop_back();
        // A copy takes the place of the set.
        search.resize_point_set(set, points[0].data(), points.size());
        search.point_set(set) = copies[1];
        search.find_neighbors();
        expect(search.point_set(set).n_neighbors(set, 5) == expected[5].size(), "found anew");
    }
    copies.erase(copies.begin());
    expect(copies.size() == 2, "two copies are left");
    for (const auto &copy : copies) {
        for (unsigned int i = 0; i < points.size(); ++i) {
            const auto list = copy.neighbor_list(0, i);
            std::vector<unsigned int> found(list.begin(), list.end());
            std::sort(found.begin(), found.end());
            expect(found == expected[i], "a copy keeps its lists");
        }
    }
}

// One set is read by itself, also one that is not dynamic.
static void check_one_set() {
    Points wall = cloud(300, 9);
    NeighborhoodSearch search(Real(1.0));
    const unsigned int set = search.add_point_set(wall[0].data(), wall.size(), false);
    search.find_neighbors();
    const Points moved = cloud(300, 10);
    std::copy(moved.begin(), moved.end(), wall.begin());
    search.update_point_set(int(set));
    search.find_neighbors(false);
    compare(search, {&wall});
    try {
        search.update_point_set(7);
        expect(false, "there is no such set");
    } catch (const nearfield::error &error) {
        expect(error.status() == NF_STATUS_UNKNOWN_POINT_SET, "a set that is not there is refused");
    }
}

int main() {
    check_copies();
    check_one_set();
    Points fluid = cloud(700, 1), wall = cloud(300, 2);
    NeighborhoodSearch search(Real(1.0), true);
    int data = 0;
    const unsigned int f = search.add_point_set(fluid[0].data(), fluid.size());
    const unsigned int w =
        search.add_point_set(wall[0].data(), wall.size(), false, false, true, &data);
    expect(f == 0 && w == 1 && search.n_point_sets() == 2, "sets are numbered");
    expect(search.point_sets().size() == 2 && search.point_set(w).get_user_data() == &data,
           "user data stays with its set");
    expect(search.point_set(f).is_dynamic() && !search.point_set(w).is_dynamic(), "flags are kept");
    expect(search.is_active(f, w) && !search.is_active(w, f) && !search.is_active(w, w),
           "flags of adding activate");
    expect(search.point_set(f).n_neighbors(w, 3) == 0, "nothing is found yet");

    search.find_neighbors();
    compare(search, {&fluid, &wall});

    // Dynamic sets are read again, others are not.
    const Points there = wall, elsewhere = cloud(300, 4), flown = cloud(700, 3);
    std::copy(flown.begin(), flown.end(), fluid.begin());
    std::copy(elsewhere.begin(), elsewhere.end(), wall.begin());
    search.find_neighbors();
    compare(search, {&fluid, &there});

    // More points than before.
    fluid = cloud(900, 5);
    search.resize_point_set(f, fluid[0].data(), fluid.size());
    expect(search.point_set(f).n_neighbors(f, 899) == 0, "new points have no neighbours yet");
    search.find_neighbors();
    compare(search, {&fluid, &there});

    // Another radius, with which sets that are not dynamic are read again too.
    search.set_radius(Real(0.75));
    search.find_neighbors();
    compare(search, {&fluid, &wall});

    // All forms of activation.
    search.set_active(false);
    search.find_neighbors();
    compare(search, {&fluid, &wall});
    expect(search.point_set(f).n_neighbors(f, 0) == 0, "inactive pairs have empty lists");
    search.set_active(w, true, true);
    expect(search.is_active(w, w) && search.is_active(f, w) && search.is_active(w, f) &&
               !search.is_active(f, f),
           "one set with all");
    search.find_neighbors();
    compare(search, {&fluid, &wall});
    search.set_active(w, false, true);
    expect(!search.is_active(w, w) && search.is_active(f, w), "a set is not found by itself then");
    search.set_active(f, f, true);
    search.find_neighbors(false);
    compare(search, {&fluid, &wall});

    // One point, and one position.
    std::vector<std::vector<unsigned int>> found;
    search.update_point_sets();
    search.update_activation_table();
    search.find_neighbors(f, 17, found);
    for (auto &list : found) {
        std::sort(list.begin(), list.end());
    }
    expect(found.size() == 2 && found[f] == near(fluid[17], fluid, Real(0.75), 17) &&
               found[w] == near(fluid[17], wall, Real(0.75), -1),
           "neighbours of one point");
    search.set_active(false);
    search.find_neighbors(wall[5].data(), found);
    std::sort(found[f].begin(), found[f].end());
    expect(found[f] == near(wall[5], fluid, Real(0.75), -1), "neighbours of a position in all sets");

    // Sorting: points and what belongs to them move together.
    search.set_active(true);
    std::vector<int> tag(fluid.size());
    for (std::size_t i = 0; i < tag.size(); ++i) {
        tag[i] = int(i);
    }
    const Points unsorted = fluid;
    search.point_set(f).sort_field(tag.data());
    expect(tag[1] == 1, "nothing is sorted before z_sort()");
    search.z_sort();
    search.point_set(f).sort_field(fluid.data());
    search.point_set(f).sort_field(tag.data());
    search.point_set(w).sort_field(wall.data());
    for (std::size_t i = 0; i < tag.size(); ++i) {
        expect(fluid[i] == unsorted[tag[i]], "fields are sorted alike");
    }
    search.find_neighbors();
    compare(search, {&fluid, &wall});

    // Coordinates that cannot be used are an exception that names the point.
    fluid[7][2] = std::numeric_limits<Real>::quiet_NaN();
    try {
        search.find_neighbors();
        expect(false, "NaN is refused");
    } catch (const nearfield::error &error) {
        expect(error.status() == NF_STATUS_POSITIONS, "NaN is refused as a position");
    }
    return 0;
}

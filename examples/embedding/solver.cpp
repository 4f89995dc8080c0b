// A solver written for CompactNSearch, switched by a typedef: fluid in a box of boundary points,
// sorted along the way. The one line that changed is marked.

#include <nearfield/compact_nsearch.hpp>

#include <array>
#include <cstdio>
#include <vector>

typedef nearfield::compact_nsearch::NeighborhoodSearch NeighborhoodSearch; // was CompactNSearch::
using nearfield::compact_nsearch::Real;

int main() {
    std::vector<std::array<Real, 3>> fluid, boundary;
    for (int x = -1; x <= 16; ++x) {
        for (int y = -1; y <= 16; ++y) {
            for (int z = -1; z <= 16; ++z) {
                const bool outside =
                    x < 0 || y < 0 || z < 0 || x > 15 || y > 15 || z > 15;
                (outside ? boundary : fluid).push_back({Real(x), Real(y), Real(z)});
            }
        }
    }

    NeighborhoodSearch search(Real(2.0));
    const unsigned int f = search.add_point_set(fluid.front().data(), fluid.size());
    const unsigned int b =
        search.add_point_set(boundary.front().data(), boundary.size(), false, false, true);
    std::vector<Real> density(fluid.size());
    for (int step = 0; step < 4; ++step) {
        if (step % 2 == 0) {
            search.z_sort();
            search.point_set(f).sort_field(fluid.data());
            search.point_set(b).sort_field(boundary.data());
        }
        search.find_neighbors();
        const auto &set = search.point_set(f);
        for (unsigned int i = 0; i < set.n_points(); ++i) {
            density[i] = Real(1 + set.n_neighbors(f, i) + set.n_neighbors(b, i));
        }
    }
    // Strictly closer than two spacings, each fluid point has 26 neighbours: the six at exactly two
    // are not among them.
    for (const Real found : density) {
        if (found != 27) {
            std::printf("%g neighbours where 26 were expected\n", double(found) - 1);
            return 1;
        }
    }
    std::printf("every point of the fluid has 26 neighbours\n");
    return 0;
}

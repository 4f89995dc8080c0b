// Neighbours of single points asked for in a loop of OpenMP, from which no exception may leave.

#include <nearfield/compact_nsearch.hpp>

#include <cstdio>
#include <vector>

using nearfield::compact_nsearch::NeighborhoodSearch;
using nearfield::compact_nsearch::Real;

int main() {
    std::vector<Real> at(3 * 1000);
    for (int i = 0; i < 1000; ++i) {
        at[3 * i] = Real(i % 10), at[3 * i + 1] = Real(i / 10 % 10), at[3 * i + 2] = Real(i / 100);
    }
    NeighborhoodSearch search(Real(1.5));
    const unsigned set = search.add_point_set(at.data(), 1000);
    search.find_neighbors();
    int wrong = 0;
#pragma omp parallel for num_threads(4) reduction(+ : wrong)
    for (int i = 0; i < 1000; ++i) {
        std::vector<std::vector<unsigned int>> found;
        search.find_neighbors(set, unsigned(i), found);
        wrong += found[set].size() != search.point_set(set).n_neighbors(set, unsigned(i));
    }
    std::printf("%d of 1000 points have other neighbours\n", wrong);
    return wrong != 0;
}

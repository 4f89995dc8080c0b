// The first list in C++: points, a radius, and the neighbours of every point.

#include <nearfield.hpp>

#include <array>
#include <cstdio>
#include <vector>

int main() {
    const std::vector<std::array<float, 3>> points = {{0, 0, 0}, {0.4f, 0, 0}, {0, 0.9f, 0}};
    nearfield::engine engine(nearfield::options(0.5));
    const auto set = engine.add_points(points);
    engine.find_neighbors();
    const nearfield::lists lists = engine.neighbors(set, set);
    for (std::size_t i = 0; i < points.size(); ++i) {
        std::printf("%zu is near %zu others\n", i, lists[i].size());
    }
    return lists[0].size() == 1 && lists[2].size() == 0 ? 0 : 1;
}

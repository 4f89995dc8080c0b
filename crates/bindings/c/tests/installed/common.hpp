// What the tests in C++ share.
#pragma once

#include <array>
#include <cstdio>
#include <cstdlib>
#include <vector>

// Ends the test unless something holds.
inline void expect(bool holds, const char *what) {
    if (!holds) {
        std::fprintf(stderr, "not so: %s\n", what);
        std::exit(1);
    }
}

// A thousand points, one apart.
inline std::vector<std::array<float, 3>> lattice() {
    std::vector<std::array<float, 3>> points;
    for (int i = 0; i < 1000; ++i) {
        points.push_back({float(i % 10), float(i / 10 % 10), float(i / 100)});
    }
    return points;
}

// Neighbour lists in C++: points that move, a probe that is no point, and a sum of one's own over
// all pairs.

#include <nearfield.hpp>

#include <array>
#include <cstdio>
#include <random>
#include <vector>

int main() {
    std::vector<std::array<float, 3>> points(20'000);
    std::mt19937 random(1);
    std::uniform_real_distribution<float> coordinate(0.0f, 10.0f);
    for (auto &point : points) {
        point = {coordinate(random), coordinate(random), coordinate(random)};
    }

    // A box that repeats along x and y.
    nearfield::engine engine(nearfield::options(0.5).periodic(10, 10, 0));
    const auto gas = engine.add_points(points);
    for (int step = 0; step < 3; ++step) {
        for (auto &point : points) {
            point[0] += 0.1f;
        }
        engine.update(gas, points);
        engine.find_neighbors();
        const nearfield::lists lists = engine.neighbors(gas, gas);
        std::printf("step %d: %llu pairs, point 0 has %zu neighbours\n", step,
                    static_cast<unsigned long long>(lists.pairs()), lists[0].size());
    }

    const std::vector<float> probe = {5.0f, 5.0f, 5.0f};
    const auto found = engine.query(probe, gas);
    std::printf("%zu points near the probe\n", found[0].size());

    // The mean distance to neighbours, by a function of one's own: every target is given once.
    std::vector<float> mean(points.size(), 0.0f);
    engine.for_each_batch(gas, gas, [&](const nf_batch &batch) {
        for (std::size_t k = 0; k < batch.target_count; ++k) {
            float sum = 0.0f;
            for (auto pair = batch.offsets[k]; pair < batch.offsets[k + 1]; ++pair) {
                sum += batch.d2[pair];
            }
            const auto pairs = batch.offsets[k + 1] - batch.offsets[k];
            mean[batch.targets[k]] = pairs > 0 ? sum / static_cast<float>(pairs) : 0.0f;
        }
    });
    std::printf("point 0: mean square distance %.4f\n", mean[0]);

    // Statuses instead of exceptions, for those who want them.
    auto refused = nearfield::status_engine::make(nearfield::options(-1.0));
    std::printf("refused: %s\n", nf_last_error());
    return refused.status == NF_STATUS_SETUP && found[0].size() > 0 ? 0 : 1;
}

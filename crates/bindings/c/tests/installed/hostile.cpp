// What nearfield.hpp and compact_nsearch.hpp refuse, and what they let threads do at the same time.

#include "common.hpp"

#include <nearfield/compact_nsearch.hpp>

#include <array>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using nearfield::compact_nsearch::NeighborhoodSearch;
using nearfield::compact_nsearch::Real;

template <class F> static void expect_error(F &&call, nf_status status, const std::string &part) {
    try {
        call();
    } catch (const nearfield::error &error) {
        if (error.status() == status && std::string(error.what()).find(part) != std::string::npos) {
            return;
        }
        std::fprintf(stderr, "status %d, not %d, or not about \"%s\": %s\n", int(error.status()),
                     int(status), part.c_str(), error.what());
        std::exit(1);
    }
    std::fprintf(stderr, "no error about \"%s\"\n", part.c_str());
    std::exit(1);
}

static void counts_that_do_not_match() {
    nearfield::engine engine(nearfield::options(1.0));
    const std::vector<float> ten(10, 0.5f);
    expect_error([&] { engine.add_points(ten); }, NF_STATUS_BAD_ARGUMENT, "10 numbers");
    expect(engine.point_sets() == 0, "no set was added");
    const auto set = engine.add_points(lattice());
    expect_error([&] { engine.update(set, ten); }, NF_STATUS_BAD_ARGUMENT, "10 numbers");
    expect_error([&] { engine.query(ten, set); }, NF_STATUS_BAD_ARGUMENT, "10 numbers");
    expect(engine.points(set) == 1000, "the set is what it was");
    const std::vector<float> values(3000, 1.0f);
    const nf_sph_points fields = {1000, values.data(), values.data(), values.data(), values.data(),
                                  0, 0, 0, 0};
    std::vector<float> acceleration(3001);
    expect_error([&] { engine.sph_force(set, set, {1.0f, 0.0f, 3}, fields, fields, acceleration); },
                 NF_STATUS_BAD_ARGUMENT, "3001 numbers");
    expect_error([&] { engine.sph_density(set, set, 1.0f, ten, acceleration); },
                 NF_STATUS_BAD_ARGUMENT, "10");

    // The same without exceptions.
    nearfield::status_engine quiet(nearfield::options(1.0));
    expect(quiet.add_points(ten).status == NF_STATUS_BAD_ARGUMENT, "a status");
    expect(std::string(nf_last_error()).find("10 numbers") != std::string::npos, "with its text");
}

static void boxes() {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    expect_error([] { nearfield::options(1.0).periodic(-1, 0, 0); }, NF_STATUS_SETUP, "along x is -1");
    expect_error([&] { nearfield::options(1.0).periodic(1, nan, 0); }, NF_STATUS_SETUP, "along y");
    expect_error([] { nearfield::options(1.0).periodic(1, 0, INFINITY); }, NF_STATUS_SETUP, "along z");
    nearfield::engine open(nearfield::options(1.0).periodic(0, 0, 0));
    nearfield::engine slab(nearfield::options(1.0).periodic(4, 0, 4));
    expect(slab.point_sets() == 0, "boxes and open axes are taken");
}

static void lists_are_ranges_of_spans() {
    nearfield::engine engine(nearfield::options(1.0).order(NF_LIST_ORDER_ASCENDING));
    const auto set = engine.add_points(lattice());
    engine.find_neighbors();
    const auto lists = engine.neighbors(set, set);
    std::size_t points = 0, pairs = 0;
    for (const auto &list : lists) {
        expect(list.data() == lists[points].data(), "list by list");
        ++points;
        for (std::uint32_t j : list) {
            pairs += j < 1000;
        }
    }
    expect(points == lists.size() && pairs == lists.pairs(), "all of them");
    const std::vector<unsigned> &first = lists[0];
    expect(first == std::vector<unsigned>({1, 10, 100}), "a list is a vector where one is wanted");
    const auto query = engine.query(lattice(), set);
    std::size_t found = 0;
    for (const auto &list : query) {
        found += list.size();
    }
    expect(found == lists.pairs() + 1000, "queries find the points themselves too");
}

static void single_points_from_several_threads() {
    std::vector<Real> at;
    for (const auto &point : lattice()) {
        at.insert(at.end(), point.begin(), point.end());
    }
    NeighborhoodSearch search(Real(1.5));
    const unsigned set = search.add_point_set(at.data(), 1000);
    search.find_neighbors();
    std::atomic<int> asked(0), wrong(0), refused(0);
    std::vector<std::thread> threads;
    for (unsigned thread = 0; thread < 4; ++thread) {
        threads.emplace_back([&, thread] {
            std::vector<std::vector<unsigned int>> found;
            for (unsigned i = thread; i < 600; i += 4) {
                try {
                    search.find_neighbors(set, i, found);
                    wrong += found[set].size() != search.point_set(set).n_neighbors(set, i);
                    search.find_neighbors(at.data() + 3 * i, found);
                    wrong += found[set].size() != 1 + search.point_set(set).n_neighbors(set, i);
                    ++asked;
                } catch (const nearfield::error &) {
                    ++refused;
                }
            }
        });
    }
    for (auto &thread : threads) {
        thread.join();
    }
    expect(refused == 0, "no question is refused");
    expect(asked == 600 && wrong == 0, "and all are answered");
}

static void reports_while_others_work() {
    nearfield::engine engine(nearfield::options(1.0).threads(1));
    const auto set = engine.add_points(lattice());
    std::atomic<bool> done(false);
    std::thread other([&] {
        std::vector<std::uint32_t> counts(1000);
        while (!done) {
            engine.count_neighbors(set, set, counts);
        }
    });
    bool whole = true;
    for (int i = 0; i < 300; ++i) {
        const std::string report = engine.report();
        whole &= report.size() > 2 && report.front() == '{' && report.back() == '}';
    }
    done = true;
    other.join();
    expect(whole, "reports are whole, however long they become meanwhile");
}

static void point_sets_that_shrink() {
    std::vector<Real> at(3000);
    for (int i = 0; i < 3000; ++i) {
        at[i] = Real(i * 7919 % 1000) / 100;
    }
    NeighborhoodSearch search(Real(1.0));
    const unsigned set = search.add_point_set(at.data(), 1000);
    search.find_neighbors();
    search.z_sort();
    const std::vector<unsigned> &copied = search.point_set(set).neighbor_list(set, 3);
    expect(copied.size() == search.point_set(set).n_neighbors(set, 3), "a list is a vector");
    // On the heap, so that a step beyond the end is found.
    std::vector<int> tag(10, 1);
    search.resize_point_set(set, at.data(), 10);
    expect_error([&] { search.point_set(set).sort_field(tag.data()); }, NF_STATUS_OUT_OF_DATE,
                 "has 10 points, the order is that of 1000");
    search.z_sort();
    search.point_set(set).sort_field(tag.data());
    expect(tag == std::vector<int>(10, 1), "the new order is that of ten points");

    std::vector<std::vector<unsigned int>> found;
    expect_error([&] { search.find_neighbors(set, 10, found); }, NF_STATUS_UNKNOWN_POINT,
                 "no point 10");
    expect_error([&] { search.find_neighbors(7, 0, found); }, NF_STATUS_UNKNOWN_POINT_SET,
                 "no point set 7");
    expect_error([&] { search.resize_point_set(7, nullptr, 0); }, NF_STATUS_UNKNOWN_POINT_SET,
                 "no point set 7");
    expect_error([&] { search.point_set(7); }, NF_STATUS_UNKNOWN_POINT_SET, "no point set 7");
    expect(search.point_set(set).n_neighbors(7, 0) == 0, "and has no neighbours");

    // After a search that failed there are no lists, rather than old ones that are written over.
    search.find_neighbors();
    at[0] = std::numeric_limits<Real>::quiet_NaN();
    expect_error([&] { search.find_neighbors(); }, NF_STATUS_POSITIONS, "NaN");
    search.resize_point_set(set, nullptr, 5);
    expect_error([&] { search.find_neighbors(); }, NF_STATUS_NULL_POINTER, "null");
}

// An exception that leaves a C callback ends the process; it is never taken for something else.
extern "C" std::int32_t throws(void *, const nf_batch *) { throw 1; }

static void an_exception_out_of_a_callback_ends_the_process() {
    const pid_t child = fork();
    expect(child >= 0, "a child process");
    if (child == 0) {
        const rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        std::freopen("/dev/null", "w", stderr);
        nearfield::engine engine(nearfield::options(1.0).threads(1));
        const auto set = engine.add_points(lattice());
        nf_for_each_batch(engine.handle(), set, set, throws, nullptr);
        _exit(0);
    }
    int status = 0;
    expect(waitpid(child, &status, 0) == child, "which ends");
    expect(WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) != 0), "by a failure");
}

int main() {
    an_exception_out_of_a_callback_ends_the_process();
    counts_that_do_not_match();
    boxes();
    lists_are_ranges_of_spans();
    single_points_from_several_threads();
    reports_while_others_work();
    point_sets_that_shrink();
    return 0;
}

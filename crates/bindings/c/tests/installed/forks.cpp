// Forked children of a process whose other threads are inside the library at that moment.

#include "common.hpp"

#include <nearfield.hpp>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

// Uses in a child: an engine of its own, one of its parent's that no thread was using, and
// refusals, whose texts are kept with the handle.
static int in_child(nf_engine *inherited, nf_engine *asked) {
    const std::size_t expected = 5400; // Pairs of the lattice within 1.
    nearfield::engine own(nearfield::options(1.0).threads(2));
    const auto set = own.add_points(lattice());
    own.find_neighbors();
    if (own.neighbors(set, set).pairs() != expected) {
        return 2;
    }
    nf_lists lists;
    if (nf_find_neighbors(inherited) != NF_STATUS_OK ||
        nf_neighbors(inherited, 0, 0, &lists) != NF_STATUS_OK || lists.pairs != expected) {
        return 3;
    }
    if (nf_neighbors(inherited, 0, 9, &lists) != NF_STATUS_UNKNOWN_POINT_SET) {
        return 4;
    }
    // Perhaps asked at the moment of the fork: still to be asked, but perhaps neither to be changed
    // nor to be freed any more; and never waited for.
    std::size_t points = 0;
    if (nf_points(asked, 0, &points) != NF_STATUS_OK || points != 1000) {
        return 5;
    }
    if (nf_points(asked, 9, &points) != NF_STATUS_UNKNOWN_POINT_SET) {
        return 6;
    }
    const nf_status changed = nf_find_neighbors(asked);
    if ((changed != NF_STATUS_OK && changed != NF_STATUS_BUSY) || nf_engine_free(asked) != changed) {
        return 7;
    }
    return nf_engine_free(inherited) == NF_STATUS_OK ? 0 : 8;
}

static void children_of_a_process_that_is_busy() {
    nearfield::engine idle(nearfield::options(1.0).threads(2));
    idle.add_points(lattice());
    idle.find_neighbors();
    nearfield::engine asked(nearfield::options(1.0).threads(1));
    const auto other = asked.add_points(lattice());
    std::atomic<bool> done(false);
    std::vector<std::thread> threads;
    for (int k = 0; k < 3; ++k) {
        threads.emplace_back([&] {
            // Locks are held for as much of the time as can be: handles come, are asked for, and go.
            std::size_t points = 0;
            while (!done) {
                nearfield::engine engine(nearfield::options(1.0).threads(1));
                for (int i = 0; i < 2000 && !done; ++i) {
                    nf_points(asked.handle(), other, &points);
                    nf_points(asked.handle(), 9, &points);
                }
            }
        });
    }
    for (int round = 0; round < 100; ++round) {
        const pid_t child = fork();
        expect(child >= 0, "a child process");
        if (child == 0) {
            alarm(30); // A child that waits for a lock for ever is ended.
            _exit(in_child(idle.handle(), asked.handle()));
        }
        int status = 0;
        expect(waitpid(child, &status, 0) == child, "which ends");
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            std::fprintf(stderr, "child %d: status %#x\n", round, unsigned(status));
            std::exit(1);
        }
    }
    done = true;
    for (auto &thread : threads) {
        thread.join();
    }
}

int main() {
    children_of_a_process_that_is_busy();
    return 0;
}

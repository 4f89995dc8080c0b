// Sums over all pairs. NF_REAL is the precision, NF_EXACT says how roots are computed, and
// NF_GUESSED of how many of eight points of a row they are guessed. NF_SEVERAL is the targets of a
// thread where there are many.
#include "all_pairs.cuh"

constexpr int THREADS = nf::ALL_PAIRS_THREADS;

typedef NF_REAL Real;

#define NF_SHARED __shared__ Source<Real> staged[STAGED_TILES * TILE]

// Positions into sources.
extern "C" __global__ void __launch_bounds__(nf::GRID_THREADS)
all_pairs_sources(const Real* at, const Real* weights, u32 count, Source<Real>* sources) {
    const u64 n = static_cast<u64>(blockIdx.x) * nf::GRID_THREADS + threadIdx.x;
    if (n < count) sources[n] = {at[3 * n], at[3 * n + 1], at[3 * n + 2], weights[n]};
}

// Without the second bound the compiler keeps to 128 registers, which several targets do not fit.
#define NF_POINTS(NAME, OP, PER)                                                                     \
    extern "C" __global__ void __launch_bounds__(THREADS, 1)                                          \
    NAME(const Real* at, u32 targets, const Source<Real>* sources, u32 count, Real softening2, Real* results) { \
        NF_SHARED;                                                                                    \
        sum_at_points<Real, OP<Real, NF_EXACT>, PER>(at, targets, sources, count, softening2, results, staged); \
    }

#define NF_ROWS(NAME, PER, GUESSED, BLOCKS)                                                          \
    extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)                                     \
    NAME(const Real* axes, u32 x, u32 y, u32 z, u32 first_row, u32 segments, const Source<Real>* sources, u32 count, Real softening2, Real* results) { \
        NF_SHARED;                                                                                    \
        const Axes<Real> at = {axes, x, y, z};                                                        \
        sum_on_rows<Real, Potential<Real, NF_EXACT>, PER, GUESSED>(at, first_row, segments, sources, count, softening2, results, staged); \
    }

// Several targets a thread where there are enough of them to fill a device, and one elsewhere.
NF_POINTS(all_pairs_pull_1, Pull, 1)
NF_POINTS(all_pairs_pull_n, Pull, NF_SEVERAL)
NF_POINTS(all_pairs_potential_1, Potential, 1)
NF_POINTS(all_pairs_potential_n, Potential, NF_SEVERAL)
NF_ROWS(all_pairs_rows_1, 1, 0, 1)
NF_ROWS(all_pairs_rows_4, 4, 0, 1)
NF_ROWS(all_pairs_rows_8, 8, 0, 1)
#if NF_GUESSED
// Told to fit six blocks on a multiprocessor, the compiler orders instructions better.
NF_ROWS(all_pairs_rows_8_mixed, 8, NF_GUESSED, 6)
#endif

// Sums over all pairs of targets and sources, without a radius: the tile traversal of tile.cuh
// where all sources lie in one cell that every target reaches. A block stages tiles of sources in
// shared memory and every thread goes through them for several targets of its own, which it keeps
// in registers, so that a source is loaded once for all of them.
//
// nearfield_pairs::PairSum states which operations are computed and in which order; in the exact
// form the bits are those of the CPU backend. The inner loop has no self-test: a source on a target
// makes the sum of a tile NaN or infinite, and such a tile is recomputed with the test. Where roots
// are guessed, tiles with sources on the row are done with the question from the start.
#pragma once
#include "constants.cuh"
#include "sum_tile.cuh"

typedef unsigned int u32;
typedef unsigned long long u64;

constexpr u32 TILE = nf::ALL_PAIRS_TILE;
// Tiles that are staged together.
constexpr u32 STAGED_TILES = 4;

template <class T> struct Numbers;

template <> struct Numbers<float> {
    // Coordinate of padding behind the last source: so far away that it adds nothing, also without
    // a weight.
    static constexpr float NOWHERE = 1e18f;
    static constexpr float MIN_NORMAL = 1.17549435e-38f;
    static constexpr float LEAST = 1.4e-45f;
};

template <> struct Numbers<double> {
    static constexpr double NOWHERE = 1e150;
    static constexpr double MIN_NORMAL = 2.2250738585072014e-308;
    static constexpr double LEAST = 4.9e-324;
};

// A source: where it is, and its weight. For the points of a row of a grid y is the part of d
// squared along y and z, which they share.
template <class T> struct __align__(16) Source {
    T x, y, z, w;
};

__device__ __forceinline__ float fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }
__device__ __forceinline__ double fused(double a, double b, double c) { return __fma_rn(a, b, c); }
__device__ __forceinline__ float exact_root(float x) { return __fsqrt_rn(x); }
__device__ __forceinline__ double exact_root(double x) { return __dsqrt_rn(x); }
__device__ __forceinline__ float quotient(float a, float b) { return __fdiv_rn(a, b); }
__device__ __forceinline__ double quotient(double a, double b) { return __ddiv_rn(a, b); }

// 1/sqrt(x) by the special-function unit, off by 2^-22.9 at most. Squares that are subnormal count
// as 0.
__device__ __forceinline__ float inverse_root(float x) {
    float root;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(x));
    return root;
}

// With e = 1 - x y^2, 1/sqrt(x) = y (1 + e/2 + 3 e^2/8 + ...); what is left out is below 2^-53.
__device__ __forceinline__ double inverse_root(double x) {
    double y;
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
    const double e = fused(-x * y, y, 1.0);
    return y * fused(fused(0.375, e, 0.5), e, 1.0);
}

// w/sqrt(x) without the special-function unit, off by 8e-7 at most, as part of a sum. Half the
// exponent and mantissa, as an integer, give a guess y within 7 % (Lomont 2003); z = x y^2 then
// lies between 0.875 and 0.9924, where the cubic below is 1/sqrt(z) but for 5.4e-7 (Remez).
__device__ __forceinline__ float add_by_guess(float sum, float x, float w) {
    const float y = __uint_as_float(0x5f300000u - (__float_as_uint(x) >> 1));
    const float z = (x * y) * y;
    const float cubic = fused(fused(fused(-0.39887074f, z, 1.563719f), z, -2.4310763f), z, 2.266226f);
    return fused(w * y, cubic, sum);
}

// Sources whose terms are written one behind the other. Terms of many instructions gain nothing by
// it.
template <class T, bool EXACT> constexpr int unrolled() { return sizeof(T) == 4 && !EXACT ? 8 : 1; }

// Adds w/d to a target's sum.
template <class T, bool EXACT> struct Potential {
    static constexpr int COMPONENTS = 1;
    static constexpr bool FACTORS = false;
    static constexpr int UNROLLED = unrolled<T, EXACT>();

    template <bool SKIP> static __device__ __forceinline__ void add(T* sums, T, T, T, T d2, T w) {
        if (SKIP && !(d2 >= (EXACT ? Numbers<T>::LEAST : Numbers<T>::MIN_NORMAL))) return;
        if (EXACT) sums[0] = sums[0] + quotient(w, exact_root(d2));
        else sums[0] = fused(w, inverse_root(d2), sums[0]);
    }
};

// Adds w d/|d|^3. Where all weights of a tile are equal, its sum is multiplied by them instead.
template <class T, bool EXACT> struct Pull {
    static constexpr int COMPONENTS = 3;
    static constexpr bool FACTORS = !EXACT;
    static constexpr int UNROLLED = unrolled<T, EXACT>();

    template <bool SKIP> static __device__ __forceinline__ void add(T* sums, T dx, T dy, T dz, T d2, T w) {
        if (SKIP && !(d2 >= (EXACT ? Numbers<T>::LEAST : Numbers<T>::MIN_NORMAL))) return;
        T factor;
        if (EXACT) {
            factor = quotient(w, d2 * exact_root(d2));
        } else {
            const T inverse = inverse_root(d2);
            factor = (w * inverse) * (inverse * inverse);
        }
        along(sums, dx, dy, dz, factor);
    }

    template <bool SKIP> static __device__ __forceinline__ void add_alike(T* sums, T dx, T dy, T dz, T d2) {
        if (SKIP && !(d2 >= Numbers<T>::MIN_NORMAL)) return;
        const T inverse = inverse_root(d2);
        along(sums, dx, dy, dz, inverse * (inverse * inverse));
    }

    static __device__ __forceinline__ void along(T* sums, T dx, T dy, T dz, T factor) {
        sums[0] = fused(dx, factor, sums[0]);
        sums[1] = fused(dy, factor, sums[1]);
        sums[2] = fused(dz, factor, sums[2]);
    }
};

// PER targets of a thread that lie anywhere.
template <class T, class Op, int PER> struct PointTargets {
    static constexpr int COUNT = PER;
    static constexpr bool GUESSES = false;
    T x[PER], y[PER], z[PER];
    T softening2;

    __device__ __forceinline__ Source<T> staged(Source<T> source) const { return source; }

    template <bool SKIP, bool ALIKE> __device__ __forceinline__ void meet(T (&sums)[PER][Op::COMPONENTS], const Source<T>& source) const {
        #pragma unroll
        for (int k = 0; k < PER; k++) {
            const T dx = source.x - x[k], dy = source.y - y[k], dz = source.z - z[k];
            const T d2 = fused(dz, dz, fused(dy, dy, fused(dx, dx, softening2)));
            if constexpr (ALIKE) Op::template add_alike<SKIP>(sums[k], dx, dy, dz, d2);
            else Op::template add<SKIP>(sums[k], dx, dy, dz, d2, source.w);
        }
    }
};

// PER points of a row of a grid. The roots of GUESSED of them come without the special-function
// unit, which is otherwise the bottleneck.
template <class T, class Op, int PER, int GUESSED> struct RowTargets {
    static constexpr int COUNT = PER;
    static constexpr bool GUESSES = GUESSED > 0;
    T x[PER];
    T y, z;
    T softening2;

    __device__ __forceinline__ Source<T> staged(Source<T> source) const {
        const T dy = source.y - y, dz = source.z - z;
        source.y = fused(dy, dy, fused(dz, dz, softening2));
        return source;
    }

    template <bool SKIP, bool ALIKE> __device__ __forceinline__ void meet(T (&sums)[PER][1], const Source<T>& source) const {
        #pragma unroll
        for (int k = 0; k < PER; k++) {
            const T dx = source.x - x[k];
            const T d2 = fused(dx, dx, source.y);
            // Spread among the others, so that both units have work at any time.
            if (!SKIP && (k + 1) * GUESSED / PER != k * GUESSED / PER) {
                if constexpr (GUESSED > 0) sums[k][0] = add_by_guess(sums[k][0], d2, source.w);
            } else {
                Op::template add<SKIP>(sums[k], dx, dx, dx, d2, source.w);
            }
        }
    }
};

// Sums of a tile for the targets of a thread.
template <class T, class Op, class Targets, bool SKIP, bool ALIKE>
__device__ __forceinline__ void visit_tile(const Targets& targets, const Source<T>* tile, T (&sums)[Targets::COUNT][Op::COMPONENTS]) {
    #pragma unroll
    for (int k = 0; k < Targets::COUNT; k++) {
        for (int c = 0; c < Op::COMPONENTS; c++) sums[k][c] = T(0);
    }
    constexpr int UNROLLED = SKIP ? 1 : Op::UNROLLED;
    #pragma unroll UNROLLED
    for (u32 j = 0; j < TILE; j++) targets.template meet<SKIP, ALIKE>(sums, tile[j]);
}

template <class T, int N, int C> __device__ __forceinline__ bool all_finite(const T (&sums)[N][C]) {
    T zero = T(0);
    #pragma unroll
    for (int k = 0; k < N; k++) {
        for (int c = 0; c < C; c++) zero = zero + sums[k][c] * T(0);
    }
    return zero == T(0);
}

// All `count` sources for the targets of every thread of a block.
template <class T, class Op, class Targets>
__device__ __forceinline__ void visit_all(const Targets& targets, const Source<T>* sources, u32 count, Source<T>* staged, T (&totals)[Targets::COUNT][Op::COMPONENTS]) {
    constexpr int N = Targets::COUNT, C = Op::COMPONENTS;
    T errors[N][C];
    #pragma unroll
    for (int k = 0; k < N; k++) {
        for (int c = 0; c < C; c++) totals[k][c] = errors[k][c] = T(0);
    }
    for (u32 first = 0; first < count; first += STAGED_TILES * TILE) {
        const u32 tiles = min(STAGED_TILES, (count - first + TILE - 1) / TILE);
        __syncthreads();
        // A guessed root of 0 is finite, so nothing would show that a source lies on a target:
        // sources that may, those on the row itself, are found here.
        bool alike = true, apart = true;
        const T weight = sources[first].w;
        for (u32 n = threadIdx.x; n < tiles * TILE; n += blockDim.x) {
            Source<T> source = {Numbers<T>::NOWHERE, Numbers<T>::NOWHERE, Numbers<T>::NOWHERE, T(0)};
            if (first + n < count) source = sources[first + n];
            if (source.w != weight) alike = false;
            source = targets.staged(source);
            if (Targets::GUESSES && source.y < Numbers<T>::MIN_NORMAL) apart = false;
            staged[n] = source;
        }
        alike = __syncthreads_and(alike) && Op::FACTORS;
        if (Targets::GUESSES) apart = __syncthreads_and(apart);
        for (u32 tile = 0; tile < tiles; tile++) {
            T sums[N][C];
            const Source<T>* const of_tile = staged + tile * TILE;
            T factor = T(1);
            if constexpr (Op::FACTORS) {
                if (alike) {
                    factor = weight;
                    visit_tile<T, Op, Targets, false, true>(targets, of_tile, sums);
                    if (!all_finite(sums)) visit_tile<T, Op, Targets, true, true>(targets, of_tile, sums);
                }
            }
            if (!alike) {
                if (apart) visit_tile<T, Op, Targets, false, false>(targets, of_tile, sums);
                if (!apart || !all_finite(sums)) visit_tile<T, Op, Targets, true, false>(targets, of_tile, sums);
            }
            // Kahan's compensated addition.
            #pragma unroll
            for (int k = 0; k < N; k++) {
                for (int c = 0; c < C; c++) {
                    const T added = Op::FACTORS ? fused(sums[k][c], factor, -errors[k][c]) : sums[k][c] - errors[k][c];
                    const T after = totals[k][c] + added;
                    errors[k][c] = (after - totals[k][c]) - added;
                    totals[k][c] = after;
                }
            }
        }
    }
}

// Targets `blockIdx.x * blockDim.x * PER` and those that follow, threads side by side.
template <class T, class Op, int PER>
__device__ __forceinline__ void sum_at_points(const T* at, u32 targets, const Source<T>* sources, u32 count, T softening2, T* results, Source<T>* staged) {
    const u32 first = blockIdx.x * blockDim.x * PER + threadIdx.x;
    PointTargets<T, Op, PER> own;
    own.softening2 = softening2;
    #pragma unroll
    for (int k = 0; k < PER; k++) {
        // A thread without a target repeats the last.
        const u64 n = min(first + k * blockDim.x, targets - 1);
        own.x[k] = at[3 * n];
        own.y[k] = at[3 * n + 1];
        own.z[k] = at[3 * n + 2];
    }
    T totals[PER][Op::COMPONENTS];
    visit_all<T, Op>(own, sources, count, staged, totals);
    #pragma unroll
    for (int k = 0; k < PER; k++) {
        const u64 n = first + k * blockDim.x;
        if (n >= targets) continue;
        for (int c = 0; c < Op::COMPONENTS; c++) results[n * Op::COMPONENTS + c] = totals[k][c];
    }
}

// The axes of a grid, one behind the other.
template <class T> struct Axes {
    const T* at;
    u32 x, y, z;
};

// A part of row `first_row + blockIdx.x / segments` of a grid.
template <class T, class Op, int PER, int GUESSED>
__device__ __forceinline__ void sum_on_rows(const Axes<T>& axes, u32 first_row, u32 segments, const Source<T>* sources, u32 count, T softening2, T* results, Source<T>* staged) {
    const u32 row = blockIdx.x / segments;
    const u32 first = (blockIdx.x % segments) * blockDim.x * PER + threadIdx.x;
    RowTargets<T, Op, PER, GUESSED> own;
    own.softening2 = softening2;
    own.y = axes.at[axes.x + (first_row + row) % axes.y];
    own.z = axes.at[axes.x + axes.y + (first_row + row) / axes.y];
    #pragma unroll
    for (int k = 0; k < PER; k++) own.x[k] = axes.at[min(first + k * blockDim.x, axes.x - 1)];
    T totals[PER][1];
    visit_all<T, Op>(own, sources, count, staged, totals);
    #pragma unroll
    for (int k = 0; k < PER; k++) {
        const u32 n = first + k * blockDim.x;
        if (n < axes.x) results[u64(row) * axes.x + n] = totals[k][0];
    }
}

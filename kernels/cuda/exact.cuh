// Pairs decided exactly where a walk compares proxies: positions that were wrapped into the box and
// rounded to f32, of points that lie outside a periodic box and of all points of double precision.
//
// Proxies lie in one box, so a walk over them meets no point that is boxes away from its cell, and
// it computes in f32. `Exact` stands between the walk and a job. Beyond the filter radius of its
// target (`outer`) no pair of the contract lies; proxies within the `inner` radius are those of a
// pair. The few candidates in between are decided from the positions as given, in the image that
// these see each other in: the image of the cells and the boxes that target and source lie outside.
// Jobs that read displacements or images get those of the given positions for every pair.
// nearfield_grid::WrappedProxies has both radii, and the proof. Where proxies can tell nothing the
// filter radius is infinite, and the same programs decide every candidate so.
#pragma once
#include "pair_seen.cuh"
#include "visit.cuh"

// A target as walks over proxies see it.
__device__ __forceinline__ Target proxied(const Walk& walk, const Target& target) {
    if (DOUBLE) return target;
    Target seen = target;
    const float3 proxy = proxy_at(walk.targets, target);
    seen.x = proxy.x;
    seen.y = proxy.y;
    seen.z = proxy.z;
    return seen;
}

__device__ __forceinline__ bool is_within(const Walk& walk, const PairSeen& pair) {
    return DOUBLE ? pair.squared <= walk.lattice.squared_radius : pair.squared <= walk.lattice.r2;
}

// The pair of a target and the sorted source k whose cells meet in this image.
__device__ __forceinline__ PairSeen pair_as_given(const Walk& walk, u32 target, u32 k, int a, int b, int c) {
    const GivenVector from = given_position(walk.targets, target), to = given_position(walk.sources, k);
    return pair_of_cells(walk, target, k, from, to, a, b, c);
}

// Bits of those of the sorted sources from `base` on, among the bits of `doubts`, that are no
// neighbours.
__device__ __forceinline__ u32 refuted(const Walk& walk, u32 target, u32 base, u32 doubts, int a, int b, int c) {
    u32 found = 0;
    #pragma unroll 1
    for (; doubts; doubts &= doubts - 1) {
        const u32 bit = __ffs(doubts) - 1;
        if (!is_within(walk, pair_as_given(walk, target, base + bit, a, b, c))) found |= 1u << bit;
    }
    return found;
}

// Squares of what distances of proxies tell: beyond `outer` is no pair, within `inner` all are.
struct FilterRadii {
    float outer, inner;

    __device__ __forceinline__ FilterRadii(const Walk& walk, const Target& target) {
        const Lattice& lattice = walk.lattice;
        const double reach = lattice.reach
            + ((lattice.rounding[0] * fabsf(target.x) + lattice.rounding[1] * fabsf(target.y))
                + lattice.rounding[2] * fabsf(target.z));
        const double least = 2.0 * lattice.radius - reach;
        double farthest = reach;
#if (NF_FILTERS & NF_RADII) && NF_DOUBLE
        // Errors of proxies are bounded for the radius of the lattice, so for smaller ones too.
        farthest = reach - lattice.radius + fmin(static_cast<double>(target.reach), lattice.radius);
#endif
        // Larger, and smaller, by 2^-20.
        outer = static_cast<float>(farthest * farthest * (1.0 + 9.5367431640625e-7));
        inner = lattice.has_inner && least >= 0.5 * lattice.radius
            ? static_cast<float>(least * least * (1.0 - 9.5367431640625e-7)) : -1.0f;
    }
};

// Shows `work` candidates that are proxies; `at` has them, with what the job reads beside them.
// Candidates of up to 32 places, from that of begin(), are collected and then decided together.
template <class Work>
struct Exact {
    static constexpr bool LEAN = Work::LEAN, IMAGES = true;
    // Whether the job reads more of a pair than its source.
    static constexpr bool READS_PAIRS = Work::IMAGES || Work::DISTANCES;
    Work& work;
    const Walk& walk;
    const u32 target;  // sorted place
    const float4* const at;
    float outer, inner;
    float limit;       // of the target, for jobs that read pairs
    // Of the target, for jobs that read pairs: its position, and the boxes that it lies outside.
    GivenVector from;
    int4 of;
    int a, b, c;       // the image of the candidates' cells
    u32 base, next;    // the first candidate; the bit of the next one
    u32 hits, doubts;  // candidates within the filter radius; those of them that are to be decided

    __device__ __forceinline__ Exact(const Walk& walk, const Target& target, const float4* at, Work& work)
        : work(work), walk(walk), target(target.slot), at(at), limit(limit_of(walk, target)), of(make_int4(0, 0, 0, 0)), a(0), b(0), c(0), base(0), next(1), hits(0), doubts(0) {
        from = given_position(walk.targets, target.slot);
        if (walk.lattice.periodic) of = wraps_of(walk.targets, target.slot);
        const FilterRadii radii(walk, target);
        outer = radii.outer;
        inner = radii.inner;
    }

    __device__ __forceinline__ const float4* sources() const { return at; }

    __device__ __forceinline__ void image(i64 of_a, i64 of_b, i64 of_c) {
        a = static_cast<int>(of_a);
        b = static_cast<int>(of_b);
        c = static_cast<int>(of_c);
    }

    __device__ __forceinline__ void begin(u32 k) {
        base = k;
        next = 1;
        hits = doubts = 0;
    }

    __device__ __forceinline__ void visit(bool hit, u32, float, float, float, float d2, float) {
        add_if(hit, next, hits);
        if (!READS_PAIRS) add_if(hit && d2 > inner, next, doubts);
        next <<= 1;
    }

    // Decides the candidates since begin(), and shows the job its neighbours in their order.
    __device__ __forceinline__ void decide() {
        if (!READS_PAIRS && doubts) hits &= ~refuted(walk, target, base, doubts, a, b, c);
        if constexpr (Work::TAKES_BITS && READS_PAIRS) {
            u32 kept = 0;
            #pragma unroll 1
            for (u32 rest = hits; rest; rest &= rest - 1) {
                const u32 bit = __ffs(rest) - 1;
                const PairSeen seen = pair(base + bit, given_position(walk.sources, base + bit));
                if (within(seen) && work.keeps(base + bit, seen)) kept |= 1u << bit;
            }
            work.take(kept, next == 0 ? 32 : __ffs(next) - 1);
        } else if constexpr (Work::TAKES_BITS) {
            work.take(hits, next == 0 ? 32 : __ffs(next) - 1);
        } else {
            #pragma unroll 1
            for (; hits; hits &= hits - 1) show(base + __ffs(hits) - 1);
        }
    }

    __device__ __forceinline__ PairSeen pair(u32 k, const GivenVector& source) const {
        int4 to = make_int4(0, 0, 0, 0);
        if (walk.lattice.periodic) to = wraps_of(walk.sources, k);
        return pair_of_boxes(walk, from, source, of, to, a, b, c);
    }

    // Within the radius, or the target's own where points have theirs.
    __device__ __forceinline__ bool within(const PairSeen& seen) const {
        return is_within(walk, seen) && (DOUBLE || seen.squared <= limit);
    }

    __device__ __forceinline__ void show(u32 k) {
        // The job's sources are as given in single precision.
        const float4 source = __ldg((READS_PAIRS ? work.sources() : at) + k);
        const float beside = source.w;
        if constexpr (READS_PAIRS) {
            const GivenVector position = DOUBLE ? given_position(walk.sources, k) : GivenVector{source.x, source.y, source.z};
            const PairSeen seen = pair(k, position);
            if (!within(seen)) return;
#if NF_FILTERS && NF_DOUBLE
            if (!work.keeps(k, seen)) return;
#endif
            tell_image(work, seen.a, seen.b, seen.c);
            work.visit(true, k, static_cast<float>(seen.d.x), static_cast<float>(seen.d.y),
                       static_cast<float>(seen.d.z), static_cast<float>(seen.squared), beside);
        } else {
            work.visit(true, k, 0.0f, 0.0f, 0.0f, 0.0f, beside);
        }
    }
};

// Calls visit(target, work) with a target and a job that see proxies.
template <class Work, class Visit>
__device__ __forceinline__ void visit_proxies(
    const Walk& walk, const Target& target, const float4* at, Work& work, Visit visit) {
    const Target seen = proxied(walk, target);
    Exact<Work> exact(walk, seen, at, work);
    visit(seen, exact);
}

// The same in double precision; in single precision with both as they are.
template <class Work, class Visit>
__device__ __forceinline__ void visit_given(const Walk& walk, const Target& target, Work& work, Visit visit) {
    if constexpr (DOUBLE) visit_proxies(walk, target, work.sources(), work, visit);
    else visit(target, work);
}

// Shows a job that asks only which candidates are neighbours all within the filter radius, by the
// loops for points in the box. Rows with candidates that are to be decided are noted, and
// `take_back` goes through these few once more.
template <class Work>
struct Noting {
    static constexpr bool LEAN = Work::LEAN, IMAGES = false, DISTANCES = false, TAKES_BITS = false;
    Work& work;
    const float4* const at;
    const FilterRadii radii;
    u32 row, rows;  // bits of the present row, and of rows with doubts; several rows may share one

    __device__ __forceinline__ Noting(const Walk& walk, const Target& target, const float4* at, Work& work)
        : work(work), at(at), radii(walk, target), row(0), rows(0) {}
    static __device__ __forceinline__ u32 bit_of(u32 row) { return 1u << (row % 32); }
    __device__ __forceinline__ const float4* sources() const { return at; }
    __device__ __forceinline__ void begin_row(u32 number) { row = bit_of(number); }
    __device__ __forceinline__ void visit(
        bool hit, u32 k, float dx, float dy, float dz, float d2, float beside) {
        if (hit && d2 > radii.inner) rows |= row;
        work.visit(hit, k, dx, dy, dz, d2, beside);
    }
};

template <class Work>
constexpr bool NOTES_ROWS<Noting<Work>> = true;

// Jobs that are shown so.
template <class Work>
constexpr bool ASKS_ONLY_FOR_HITS = CAN_REFUTE<Work> && !NF_FILTERS;

// Calls refuted(z, y, bit) for all candidates that were shown and are no neighbours: `bit` counts
// the candidates of a row, an even number in every part (masks.cuh).
template <bool HALF, class Around, class Work, class Refuted>
__device__ __forceinline__ void take_back(
    const Walk& walk, const Target& target, const Around& around, const Noting<Work>& noting, Refuted refuted) {
    if (noting.rows == 0) return;
    #pragma unroll 1
    for (u32 number = 0; number < Around::ROWS * Around::ROWS; number++) {
        if (!(noting.rows & Noting<Work>::bit_of(number))) continue;
        around.one_row(number, [&](auto found) {
            const typename Around::Row row = found.row();
            u32 first = 0;
            #pragma unroll 1
            for (u32 parts = around.parts(row); parts; parts &= parts - 1) {
                const RowPart part = around.part(row, parts);
                const Image image = around.image_of(walk, row, part);
                const u32 itself = (image.a | image.b | image.c) == 0 ? target.itself : NONE;
                #pragma unroll 1
                for (u32 k = part.run.x; k < part.run.y; k++) {
                    const float4 source = __ldg(noting.at + k);
                    const Difference d(target, source, image.shift);
                    if (!(d.squared <= noting.radii.outer && d.squared > noting.radii.inner) || k == itself) continue;
                    if (!wanted<HALF>(target.index, __float_as_uint(source.w), image.a, image.b, image.c)) continue;
                    if (is_within(walk, pair_as_given(walk, target.slot, k, image.a, image.b, image.c))) continue;
                    refuted(number / Around::ROWS, number % Around::ROWS, first + (k - part.run.x));
                }
                first += (part.run.y - part.run.x + 1) & ~1u;
            }
        });
    }
}

// As `visit_proxies`, for walks around a target, which can go through rows once more.
template <class Work, class Visit>
__device__ __forceinline__ void visit_around_proxies(
    const Walk& walk, const Target& target, const float4* at, Work& work, Visit visit) {
    if constexpr (ASKS_ONLY_FOR_HITS<Work>) {
        const Target seen = proxied(walk, target);
        Noting<Work> noting(walk, seen, at, work);
        visit(seen, noting);
    } else {
        visit_proxies(walk, target, at, work, visit);
    }
}

// As `visit_given`, for the same.
template <class Work, class Visit>
__device__ __forceinline__ void visit_given_around(const Walk& walk, const Target& target, Work& work, Visit visit) {
    if constexpr (DOUBLE) visit_around_proxies(walk, target, work.sources(), work, visit);
    else visit(target, work);
}

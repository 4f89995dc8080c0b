// Which pairs within the radius are left out: by the types of both points, by exclusions, by radii
// of single points, and those beyond the k nearest.
//
// A job that is filtered (`filtered`) sees the candidates that it would see without, and fewer of
// them as hits, so masks, lists and sums need no code of their own. Data of the target are read
// once. Those of sources lie sorted as the sources do: neighbours in a row are neighbours there.
// Exclusions name points, so the caller's index of a source is compared with the target's list.
//
// Programs without filters have none of this: `filtered` gives them the job as it is.
#pragma once
#include "walk.cuh"

#if NF_FILTERS

#if NF_FILTERS & NF_RADII
// No source of a larger radius is found by a walk (wide.cuh); in double precision all are.
__device__ __forceinline__ float largest_walked(const Walk& walk) {
    const float bulk = DOUBLE ? 0.0f : filters_of(walk).bulk;
    return bulk > 0.0f ? bulk : __uint_as_float(0x7f800000u);
}
#endif

// What one target asks of its pairs.
struct TargetFilter {
    const Walk& walk;
#if NF_FILTERS & NF_RADII
    Given own;
    float largest;         // single precision: sources of larger radii are left out
#endif
#if NF_FILTERS & NF_NAMED
    const Given* cutoffs;  // with every type, or null
    const u32* excluded;   // what it excludes…
    u32 excluded_count;    // …and how many these are…
    u32 low, high;         // …from the first to the last of them
    u32 molecule;
#endif
#if NF_FILTERS & NF_NEAREST
    Given last_squared;    // of the last pair that is kept…
    u32 last_index;        // …its source…
    int last_image[3];     // …and image
#endif

    __device__ __forceinline__ TargetFilter(const Walk& walk, const Target& target) : walk(walk) {
#if NF_FILTERS & NF_RADII
        own = target.own;
        largest = largest_walked(walk);
#endif
#if NF_FILTERS & NF_NAMED
        const Filters& filters = filters_of(walk);
        cutoffs = filters.cutoffs;
        if (cutoffs) cutoffs += static_cast<u64>(filters.target_types[target.index]) * filters.types;
        molecule = filters.target_molecules ? filters.target_molecules[target.index] : 0;
        excluded = nullptr;
        excluded_count = low = high = 0;
        if (filters.excluded_starts) {
            const u64 begin = filters.excluded_starts[target.index];
            excluded_count = static_cast<u32>(filters.excluded_starts[target.index + 1] - begin);
            excluded = filters.excluded + begin;
            if (excluded_count > 0) {
                low = excluded[0];
                high = excluded[excluded_count - 1];
            }
        }
#endif
#if NF_FILTERS & NF_NEAREST
        const Nearest& last = filters_of(walk).nearest[target.index];
        last_squared = static_cast<Given>(last.squared);
        last_index = last.index;
        for (int axis = 0; axis < 3; axis++) last_image[axis] = last.image[axis];
#endif
    }

    // Whether the sorted source k, at this squared distance within the limit and in this image, is
    // kept.
    __device__ __forceinline__ bool keeps(u32 k, Given d2, i64 a = 0, i64 b = 0, i64 c = 0) const {
        const Filters& filters = filters_of(walk);
#if NF_FILTERS & NF_RADII
        // In double precision the walk compares with bounds of all radii.
        if (DOUBLE || filters.source_radii) {
            Given limit = own;
            if (filters.source_radii) {
                const Given radius = __ldg(filters.source_radii + k);
                if (!DOUBLE && radius > largest) return false;
                const Given square = square_of(radius);
                limit = square > limit ? square : limit;
            }
            if (!(d2 <= limit)) return false;
        }
#endif
#if NF_FILTERS & NF_NAMED
        if (cutoffs && !(d2 <= __ldg(cutoffs + __ldg(filters.source_types + k)))) return false;
        if (filters.source_molecules && __ldg(filters.source_molecules + k) == molecule) return false;
        if (excluded_count > 0) {
            const u32 name = __float_as_uint(__ldg(&walk.sources.at[k].w));
            if (name >= low && name <= high && excludes(name)) return false;
        }
#endif
#if NF_FILTERS & NF_NEAREST
        if (d2 > last_squared) return false;
        if (d2 == last_squared) {
            const u32 name = __float_as_uint(__ldg(&walk.sources.at[k].w));
            if (name != last_index) return name < last_index;
            if (a != last_image[0]) return a < last_image[0];
            if (b != last_image[1]) return b < last_image[1];
            return c <= last_image[2];
        }
#endif
        return true;
    }

#if NF_FILTERS & NF_NAMED
    // Whether a point is among those that the target excludes, which ascend.
    __device__ __forceinline__ bool excludes(u32 name) const {
        u32 begin = 0, end = excluded_count;
        while (begin < end) {
            const u32 middle = begin + (end - begin) / 2, found = __ldg(excluded + middle);
            if (found == name) return true;
            if (found < name) begin = middle + 1;
            else end = middle;
        }
        return false;
    }
#endif
};

// A job that is told of fewer hits. In double precision `Exact` asks it which pairs it keeps, and
// shows it no others.
template <class Job>
struct Filtered : Job {
    static constexpr bool IMAGES = Job::IMAGES || (NF_FILTERS & NF_NEAREST) != 0;
    static constexpr bool DISTANCES = true;
    TargetFilter filter;
#if NF_FILTERS & NF_NEAREST
    i64 at_a, at_b, at_c;  // the image of the next candidate
#endif

    template <class... Arguments>
    __device__ __forceinline__ explicit Filtered(const TargetFilter& filter, Arguments&&... arguments)
        : Job{static_cast<Arguments&&>(arguments)...}, filter(filter) {}

    // The same of a pair that was computed from the positions as given (exact.cuh).
    template <class Pair>
    __device__ __forceinline__ bool keeps(u32 k, const Pair& pair) const {
        return filter.keeps(k, pair.squared, pair.a, pair.b, pair.c);
    }

    __device__ __forceinline__ void visit(bool hit, u32 k, float dx, float dy, float dz, float d2, float index) {
#if NF_DOUBLE
        Job::visit(hit, k, dx, dy, dz, d2, index);
#elif NF_FILTERS & NF_NEAREST
        Job::visit(hit && filter.keeps(k, d2, at_a, at_b, at_c), k, dx, dy, dz, d2, index);
#else
        Job::visit(hit && filter.keeps(k, d2), k, dx, dy, dz, d2, index);
#endif
    }
#if NF_FILTERS & NF_NEAREST
    __device__ __forceinline__ void image(i64 a, i64 b, i64 c) {
        at_a = a;
        at_b = b;
        at_c = c;
        if constexpr (Job::IMAGES) Job::image(a, b, c);
    }
#endif
};

#else

struct TargetFilter {
    __device__ __forceinline__ TargetFilter(const Walk&, const Target&) {}
    __device__ __forceinline__ bool keeps(u32, Given, i64 = 0, i64 = 0, i64 = 0) const { return true; }
};

#endif

// A job made of these arguments, for the pairs that the filter keeps.
template <class Job, class... Arguments>
__device__ __forceinline__ auto filtered_by(const TargetFilter& filter, Arguments&&... arguments) {
#if NF_FILTERS
    return Filtered<Job>(filter, static_cast<Arguments&&>(arguments)...);
#else
    return Job{static_cast<Arguments&&>(arguments)...};
#endif
}

// The same for the pairs of a target.
template <class Job, class... Arguments>
__device__ __forceinline__ auto filtered(const Walk& walk, const Target& target, Arguments&&... arguments) {
    return filtered_by<Job>(TargetFilter(walk, target), static_cast<Arguments&&>(arguments)...);
}

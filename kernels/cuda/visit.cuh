// The candidates of rows around a target, shown to a job (`Work`) in the order of the walk: in
// runs, and in the parts of rows that pass a face of the box.
//
// Two candidates are loaded together. A job sees an even number of every run: the last may lie
// behind it and is no hit.
#pragma once
#include "around.cuh"

// Where a candidate is seen from a target: what the neighbour test of the contract takes.
struct Difference {
    float x, y, z, squared;

    __device__ __forceinline__ Difference(const Target& target, const float4& source)
        : x(__fsub_rn(source.x, target.x)), y(__fsub_rn(source.y, target.y)), z(__fsub_rn(source.z, target.z)),
          squared(::squared(x, y, z)) {}

    __device__ __forceinline__ Difference(const Target& target, const float4& source, float shift_along_x)
        : x(__fadd_rn(__fsub_rn(source.x, target.x), shift_along_x)), y(__fsub_rn(source.y, target.y)),
          z(__fsub_rn(source.z, target.z)), squared(::squared(x, y, z)) {}

    __device__ __forceinline__ Difference(const Target& target, const float4& source, const float3& shift)
        : x(__fadd_rn(__fsub_rn(source.x, target.x), shift.x)),
          y(__fadd_rn(__fsub_rn(source.y, target.y), shift.y)),
          z(__fadd_rn(__fsub_rn(source.z, target.z), shift.z)), squared(::squared(x, y, z)) {}
};

// Two candidates, loaded together before either is looked at. The second may lie behind the run,
// where arrays are padded.
struct Two {
    float4 of[2];

    __device__ __forceinline__ Two(const float4* sources, u32 k) {
        const float4* const at = sources + k;
        of[0] = __ldg(at);
        of[1] = __ldg(at + 1);
    }
};

// Tells a job that sees candidates in images of their own which two come next.
template <class Work>
__device__ __forceinline__ void meet_two(Work& work, u32 k) {
    if constexpr (IS_IMAGED<Work>) work.meet(k);
}

// One of them as seen from the target. `shifts` are the numbers of the image vector of the cells.
template <class Work, class... Shifts>
__device__ __forceinline__ Difference seen_from(
    const Target& target, const float4& source, u32 j, const Work& work, const Shifts&... shifts) {
    if constexpr (IS_IMAGED<Work>) return Difference(target, source, work.shift(j));
    else return Difference(target, source, shifts...);
}

// Shows `work` a run by show(part): as a whole or, where candidates are proxies, 32 at a time,
// which are then decided together.
template <class Work, class Show>
__device__ __forceinline__ void in_parts(uint2 run, Work& work, Show show) {
    if constexpr (IS_EXACT<Work>) {
        #pragma unroll 1
        for (u32 from = run.x; from < run.y; from += 32) {
            work.begin(from);
            show(make_uint2(from, min(run.y, from + 32)));
            work.decide();
        }
    } else {
        show(run);
    }
}

// The loop over a run. SELF: the target itself may be one of the candidates.
template <bool HALF, bool SELF, class Work>
__device__ __forceinline__ void visit_plain(const Walk& walk, const Target& target, uint2 run, Work& work) {
    const float r2 = squared_radius(walk, target, work);
    const float4* const sources = work.sources();
    #pragma unroll 1
    for (u32 k = run.x; k < run.y; k += 2) {
        const Two two(sources, k);
        meet_two(work, k);
        #pragma unroll
        for (u32 j = 0; j < 2; j++) {
            const float4& source = two.of[j];
            const Difference d = seen_from(target, source, j, work);
            bool hit = d.squared <= r2;
            if (SELF) hit = hit && k != target.itself - j;
            if (j > 0) hit = hit && k < run.y - 1;
            if (HALF) hit = hit && wanted<HALF>(target.index, __float_as_uint(source.w), 0, 0, 0);
            work.visit(hit, k + j, d.x, d.y, d.z, d.squared, source.w);
        }
    }
}

// Shows `work` a run of candidates whose differences need no image vector. Of some nine rows around
// a target one holds the target itself; where little is done with a candidate, a second loop for
// the others saves two instructions of some forty. Targets of a warp mostly lie in one row of
// cells, so they take the same loop.
template <bool HALF, class Work>
__device__ __forceinline__ void visit_run(const Walk& walk, const Target& target, uint2 whole, Work& work) {
    tell_image(work, 0, 0, 0);
    in_parts(whole, work, [&](uint2 run) {
        // Half lists hold no point of an index that is not above the target's.
        const bool apart = HALF || (Work::LEAN && target.itself - run.x >= run.y - run.x);
        if (apart) visit_plain<HALF, false>(walk, target, run, work);
        else visit_plain<HALF, true>(walk, target, run, work);
    });
}

// Shows `work` the candidates of a row of a ring, those of both parts in one loop: a lane whose
// first part ends goes on with the second by selection, so that no other lane waits for it. ACROSS:
// the row may lie beyond a face along y or z. Else, in an untilted box, one number of the image
// vectors is not 0.
template <bool HALF, bool ACROSS, class Around, class Work>
__device__ __forceinline__ void visit_ring(
    const Walk& walk, const Target& target, const Around& around, const typename Around::Row& row, Work& work) {
    constexpr bool WHOLE = ACROSS || Around::LEANING;
    const float r2 = squared_radius(walk, target, work);
    const float4* const sources = work.sources();
    const Ring ring = around.parts_of_ring(row);
    u32 k = ring.first.run.x, end = ring.first.run.y, next = ring.second.run.x;
    u32 itself = target.itself;
    if (ACROSS && (row.image_y != 0 || row.image_z != 0)) itself = NONE;
    Image image = around.image_of(walk, row, ring.first);
    const Image beyond = around.image_of(walk, row, ring.second);
    tell_image(work, image.a, image.b, image.c);
    #pragma unroll 1
    while (true) {
        if (k >= end) {
            k = next;
            end = next = ring.second.run.y;
            image.a = beyond.a;
            image.shift = beyond.shift;
            tell_image(work, image.a, image.b, image.c);
        }
        if (k >= end) break;
        const Two two(sources, k);
        meet_two(work, k);
        #pragma unroll
        for (u32 j = 0; j < 2; j++) {
            const float4& source = two.of[j];
            const Difference d = WHOLE ? seen_from(target, source, j, work, image.shift)
                                       : seen_from(target, source, j, work, image.shift.x);
            bool hit = d.squared <= r2 && k != itself - j;
            if (j > 0) hit = hit && k < end - 1;
            if (HALF) {
                const u32 index = __float_as_uint(source.w);
                hit = hit && wanted<HALF>(target.index, index, image.a, image.b, image.c);
            }
            work.visit(hit, k + j, d.x, d.y, d.z, d.squared, source.w);
        }
        k += 2;
    }
}

// Shows `work` the candidates of a row of any table, one part after the other.
template <bool HALF, class Around, class Work>
__device__ __forceinline__ void visit_row(
    const Walk& walk, const Target& target, const Around& around, const typename Around::Row& row, Work& work) {
    const float r2 = squared_radius(walk, target, work);
    const float4* const sources = work.sources();
    #pragma unroll 1
    for (u32 parts = around.parts(row); parts; parts &= parts - 1) {
        const RowPart part = around.part(row, parts);
        const Image image = around.image_of(walk, row, part);
        const u32 itself = (image.a | image.b | image.c) == 0 ? target.itself : NONE;
        tell_image(work, image.a, image.b, image.c);
        in_parts(part.run, work, [&](uint2 run) {
            #pragma unroll 1
            for (u32 k = run.x; k < run.y; k += 2) {
                const Two two(sources, k);
                meet_two(work, k);
                #pragma unroll
                for (u32 j = 0; j < 2; j++) {
                    const float4& source = two.of[j];
                    const Difference d = seen_from(target, source, j, work, image.shift);
                    bool hit = d.squared <= r2 && k != itself - j;
                    if (j > 0) hit = hit && k < run.y - 1;
                    if (HALF) {
                        const u32 index = __float_as_uint(source.w);
                        hit = hit && wanted<HALF>(target.index, index, image.a, image.b, image.c);
                    }
                    work.visit(hit, k + j, d.x, d.y, d.z, d.squared, source.w);
                }
            }
        });
    }
}

// Shows `work` the candidates of a row of a target near any face.
template <bool HALF, class Around, class Work>
__device__ __forceinline__ void visit_across(
    const Walk& walk, const Target& target, const Around& around, const typename Around::Row& row, Work& work) {
    if (!IS_EXACT<Work> && around.ring()) visit_ring<HALF, true>(walk, target, around, row, work);
    else visit_row<HALF>(walk, target, around, row, work);
}

// Shows `work` every candidate of a target, or with ALL of all rows: before(z, y) and after(z, y)
// are called around each. Proxies are shown in few loops, because each has a copy of what decides.
template <bool HALF, bool ALL, class Around, class Work, class Before, class After>
__device__ __forceinline__ void visit_rows(
    const Walk& walk, const Target& target, const Around& around, Work& work, Before before, After after) {
    const WalkPath path = around.path_of_warp();
    const auto begin = [&](int z, int y) {
        before();
        if constexpr (NOTES_ROWS<Work>) work.begin_row(static_cast<u32>(z * Around::ROWS + y));
    };
    const auto inside = [&](int z, int y, bool reached, auto row) {
        begin(z, y);
        if (reached) visit_run<HALF>(walk, target, row.run(), work);
        after(z, y);
    };
    const auto across = [&](int z, int y, bool reached, auto row) {
        begin(z, y);
        if (reached) visit_across<HALF>(walk, target, around, row.row(), work);
        after(z, y);
    };
    if constexpr (IS_EXACT<Work>) {
        if (path == WalkPath::INSIDE) around.template rows_one_by_one<ALL, false>(inside);
        else around.template rows_one_by_one<ALL, true>(across);
    } else if (path == WalkPath::INSIDE) {
        around.template rows<ALL>(inside);
    } else if (path == WalkPath::ALONG_X) {
        around.template rows<ALL>([&](int z, int y, bool reached, auto row) {
            begin(z, y);
            if (reached) visit_ring<HALF, false>(walk, target, around, row.row(), work);
            after(z, y);
        });
    } else {
        around.template rows_one_by_one<ALL, true>(across);
    }
}

// Shows `work` every candidate of a target.
template <bool HALF, class Around, class Work>
__device__ __forceinline__ void visit_around(const Walk& walk, const Target& target, const Around& around, Work& work) {
    visit_rows<HALF, false>(walk, target, around, work, [] {}, [](int, int) {});
}

// The candidates of rows around a target, shown to a job (`Work`) in the order of the walk: in
// runs, in the parts of rows that pass a face of the box, and in the boxes that points lie in.
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

// The loop over a run. SELF: the target itself may be one of the candidates.
template <bool HALF, bool SELF, class Work>
__device__ __forceinline__ void visit_plain(const Walk& walk, const Target& target, uint2 run, Work& work) {
    const float r2 = squared_radius(walk, target);
    const float4* const sources = work.sources();
    #pragma unroll 1
    for (u32 k = run.x; k < run.y; k += 2) {
        const Two two(sources, k);
        #pragma unroll
        for (u32 j = 0; j < 2; j++) {
            const float4& source = two.of[j];
            const Difference d(target, source);
            bool hit = d.squared <= r2;
            if (SELF) hit = hit && k != target.itself - j;
            if (j > 0) hit = hit && k < run.y - 1;
            if (HALF) hit = hit && wanted<HALF>(target.index, __float_as_uint(source.w), 0, 0, 0);
            tell_image(work, 0, 0, 0);
            work.visit(hit, k + j, d.x, d.y, d.z, d.squared, source.w);
        }
    }
}

// Shows `work` a run of candidates whose differences need no image vector. Of some nine rows around
// a target one holds the target itself; where little is done with a candidate, a second loop for
// the others saves two instructions of some forty. Targets of a warp mostly lie in one row of
// cells, so they take the same loop.
template <bool HALF, class Work>
__device__ __forceinline__ void visit_run(const Walk& walk, const Target& target, uint2 run, Work& work) {
    // Half lists hold no point of an index that is not above the target's.
    const bool apart = HALF || (Work::LEAN && target.itself - run.x >= run.y - run.x);
    if (apart) visit_plain<HALF, false>(walk, target, run, work);
    else visit_plain<HALF, true>(walk, target, run, work);
}

// Shows `work` the candidates of a row of a ring, those of both parts in one loop: a lane whose
// first part ends goes on with the second by selection, so that no other lane waits for it. ACROSS:
// the row may lie beyond a face along y or z. Else, in an untilted box, one number of the image
// vectors is not 0.
template <bool HALF, bool ACROSS, class Around, class Work>
__device__ __forceinline__ void visit_ring(
    const Walk& walk, const Target& target, const Around& around, const typename Around::Row& row, Work& work) {
    constexpr bool WHOLE = ACROSS || Around::LEANING;
    const float r2 = squared_radius(walk, target);
    const float4* const sources = work.sources();
    const Ring ring = around.parts_of_ring(row);
    u32 k = ring.first.run.x, end = ring.first.run.y, next = ring.second.run.x;
    u32 itself = target.itself;
    if (ACROSS && (row.image_y != 0 || row.image_z != 0)) itself = NONE;
    Image image = around.image_of(walk, row, ring.first);
    const Image beyond = around.image_of(walk, row, ring.second);
    #pragma unroll 1
    while (true) {
        if (k >= end) {
            k = next;
            end = next = ring.second.run.y;
            image.a = beyond.a;
            image.shift = beyond.shift;
        }
        if (k >= end) break;
        const Two two(sources, k);
        #pragma unroll
        for (u32 j = 0; j < 2; j++) {
            const float4& source = two.of[j];
            const Difference d =
                WHOLE ? Difference(target, source, image.shift) : Difference(target, source, image.shift.x);
            bool hit = d.squared <= r2 && k != itself - j;
            if (j > 0) hit = hit && k < end - 1;
            if (HALF) {
                const u32 index = __float_as_uint(source.w);
                hit = hit && wanted<HALF>(target.index, index, image.a, image.b, image.c);
            }
            tell_image(work, image.a, image.b, image.c);
            work.visit(hit, k + j, d.x, d.y, d.z, d.squared, source.w);
        }
        k += 2;
    }
}

// Shows `work` the candidates of a row of any table, one part after the other.
template <bool HALF, class Around, class Work>
__device__ __forceinline__ void visit_row(
    const Walk& walk, const Target& target, const Around& around, const typename Around::Row& row, Work& work) {
    const float r2 = squared_radius(walk, target);
    const float4* const sources = work.sources();
    #pragma unroll 1
    for (u32 parts = around.parts(row); parts; parts &= parts - 1) {
        const RowPart part = around.part(row, parts);
        const Image image = around.image_of(walk, row, part);
        const u32 itself = (image.a | image.b | image.c) == 0 ? target.itself : NONE;
        #pragma unroll 1
        for (u32 k = part.run.x; k < part.run.y; k += 2) {
            const Two two(sources, k);
            #pragma unroll
            for (u32 j = 0; j < 2; j++) {
                const float4& source = two.of[j];
                const Difference d(target, source, image.shift);
                bool hit = d.squared <= r2 && k != itself - j;
                if (j > 0) hit = hit && k < part.run.y - 1;
                if (HALF) {
                    const u32 index = __float_as_uint(source.w);
                    hit = hit && wanted<HALF>(target.index, index, image.a, image.b, image.c);
                }
                tell_image(work, image.a, image.b, image.c);
                work.visit(hit, k + j, d.x, d.y, d.z, d.squared, source.w);
            }
        }
    }
}

// Shows `work` the candidates of a row of a target near any face.
template <bool HALF, class Around, class Work>
__device__ __forceinline__ void visit_across(
    const Walk& walk, const Target& target, const Around& around, const typename Around::Row& row, Work& work) {
    if (around.ring()) visit_ring<HALF, true>(walk, target, around, row, work);
    else visit_row<HALF>(walk, target, around, row, work);
}

// Shows `work` the candidates of a run that is seen in an image of its cells, where points lie
// boxes away from these: all those of the run by as many, or each by as many as it says.
template <bool HALF, bool TILTED, class Work>
__device__ __forceinline__ void visit_wrapped_run(
    const Walk& walk, const Target& target, uint2 run, const Image& image, Work& work) {
    if (run.x >= run.y) return;
    const float r2 = squared_radius(walk, target);
    const float4* const sources = work.sources();
    const int4* const wraps = walk.sources.wraps;
    const bool apart = boxes_change(walk.sources, run);
    const bool stored = walk.sources.flags[ANY_WRAPPED];
    Sight seen = Sight::quick<TILTED>(walk, target, image, stored ? wraps[run.x] : make_int4(0, 0, 0, 0));
    #pragma unroll 1
    for (u32 k = run.x; k < run.y; k += 2) {
        const Two two(sources, k);
        int4 boxes[2];
        if (apart) {
            boxes[0] = wraps[k];
            boxes[1] = wraps[min(k + 1, run.y - 1)];
        }
        #pragma unroll
        for (u32 j = 0; j < 2; j++) {
            const float4& source = two.of[j];
            if (apart) seen = Sight::quick<TILTED>(walk, target, image, boxes[j]);
            const Difference d(target, source, seen.shift);
            bool hit = d.squared <= r2 && !(k == target.itself - j && seen.here());
            if (j > 0) hit = hit && k < run.y - 1;
            if (HALF) hit = hit && wanted<HALF>(target.index, __float_as_uint(source.w), seen.a, seen.b, seen.c);
            tell_image(work, seen.a, seen.b, seen.c);
            work.visit(hit, k + j, d.x, d.y, d.z, d.squared, source.w);
        }
    }
}

// As visit_row where points lie boxes away from their cells.
template <bool HALF, class Around, class Work>
__device__ __forceinline__ void visit_wrapped_row(
    const Walk& walk, const Target& target, const Around& around, const typename Around::Row& row, Work& work) {
    #pragma unroll 1
    for (u32 parts = around.parts(row); parts; parts &= parts - 1) {
        const RowPart part = around.part(row, parts);
        visit_wrapped_run<HALF, Around::LEANING>(walk, target, part.run, around.image_of(walk, row, part), work);
    }
}

// How the targets of a warp are visited. Where points lie boxes away from their cells, those inside
// are first looked at for whether that makes a difference.
template <class Around>
__device__ __forceinline__ WalkPath path_to_visit(
    const Walk& walk, const Target& target, const Around& around, bool wrapped) {
    const WalkPath path = around.path_of_warp();
    if (!wrapped) return path;
    const u32 lanes = __activemask();
    return path == WalkPath::INSIDE && __all_sync(lanes, around.in_one_box(walk, target)) ? WalkPath::INSIDE : WalkPath::ACROSS;
}

// Shows `work` every candidate of a target.
template <bool HALF, class Around, class Work>
__device__ __forceinline__ void visit_around(
    const Walk& walk, const Target& target, const Around& around, bool wrapped, Work& work) {
    const WalkPath path = path_to_visit(walk, target, around, wrapped);
    if (path == WalkPath::INSIDE) {
        around.template rows<false>([&](int, int, bool reached, auto row) {
            if (reached) visit_run<HALF>(walk, target, row.run(), work);
        });
    } else if (path == WalkPath::ALONG_X) {
        around.template rows<false>([&](int, int, bool reached, auto row) {
            if (reached) visit_ring<HALF, false>(walk, target, around, row.row(), work);
        });
    } else {
        around.template rows_near_a_face<false>([&](int, int, bool reached, auto row) {
            if (!reached) return;
            if (wrapped) visit_wrapped_row<HALF>(walk, target, around, row.row(), work);
            else visit_across<HALF>(walk, target, around, row.row(), work);
        });
    }
}

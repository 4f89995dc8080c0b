// Lists as arrays of pairs with their geometry, which is computed from the positions.
//
// Where a source can be near through one image only, a list of sources says everything about its
// pairs: the image is the nearest one (nearest_image.cuh), and what follows is the contract's. So
// lists are found without geometry, which would be written beside their entries and then copied,
// and a pair takes four bytes of reading and the bytes of the result.
#pragma once
#include "columns.cuh"
#include "nearest_image.cuh"
#include "pair_seen.cuh"

// The points of lists, and their box.
struct ListedPoints {
    Lattice lattice;       // of the box as it was given
    float inverse[3][3];   // Lattice::inverse, rounded
    u32 pad;
    const Given* targets;  // three numbers of every point, in the caller's order
    const Given* sources;
    u32* far;              // counts pairs whose image has no 32-bit numbers
};

// Shared memory of a block.
struct PairRoom {
    ColumnRoom columns;
    Given numbers[COLUMN_WARPS][96];
    int images[COLUMN_WARPS][96];
};

__device__ __forceinline__ GivenVector point_at(const Given* points, u32 index) {
    const Given* const at = points + 3 * static_cast<u64>(index);
    return GivenVector{at[0], at[1], at[2]};
}

// The pair of a target and a source in its nearest image.
__device__ __forceinline__ PairSeen nearest_pair(
    const ListedPoints& points, const GivenVector& target, const GivenVector& source) {
    if (!points.lattice.periodic) return PairSeen(GivenVector{0, 0, 0}, target, source, 0, 0, 0);
    const GivenVector d = {source.x - target.x, source.y - target.y, source.z - target.z};
#if NF_DOUBLE
    const i64 a = boxes_to_nearest(points.lattice, 0, d), b = boxes_to_nearest(points.lattice, 1, d),
              c = boxes_to_nearest(points.lattice, 2, d);
    return PairSeen(given_image_vector(points.lattice, a, b, c), target, source, a, b, c);
#else
    const NearestImage image =
        nearest_image(points.lattice, points.inverse, points.lattice.tilted, make_float3(d.x, d.y, d.z));
    const GivenVector shift = {image.shift.x, image.shift.y, image.shift.z};
    return PairSeen(shift, target, source, image.a, image.b, image.c);
#endif
}

// By a warp: three numbers of each of the first `some` lanes, side by side. Lanes that wrote their
// own would touch every sector three times.
template <class Number>
__device__ __forceinline__ void put_triples(Number* to, Number* room, u32 some, Number x, Number y, Number z) {
    const u32 lane = threadIdx.x & 31;
    room[3 * lane] = x;
    room[3 * lane + 1] = y;
    room[3 * lane + 2] = z;
    __syncwarp();
#pragma unroll
    for (u32 number = lane; number < 96; number += 32) {
        if (number < 3 * some) to[number] = room[number];
    }
    __syncwarp();
}

// By a warp: the pairs of a target with the sources of the first `some` lanes, to `place` of all
// arrays.
__device__ __forceinline__ void put_pairs(
    const PairOutput& output, const ListedPoints& points, PairRoom& room, const PairSeen& pair,
    u32 target, u32 source, u64 place, u32 some) {
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x / 32, bytes = output.index_bytes;
    if (lane < some) {
        if (output.targets) put_index(output.targets, place + lane, bytes, target);
        if (output.sources) put_index(output.sources, place + lane, bytes, source);
        if (output.distances) static_cast<Given*>(output.distances)[place + lane] = pair.distance();
        if (output.images && pair.far()) atomicAdd(points.far, 1u);
    }
    if (output.images) {
        put_triples(output.images + 3 * place, room.images[warp], some,
                    static_cast<int>(pair.a), static_cast<int>(pair.b), static_cast<int>(pair.c));
    }
    if (output.displacements) {
        put_triples(static_cast<Given*>(output.displacements) + 3 * place, room.numbers[warp], some,
                    pair.d.x, pair.d.y, pair.d.z);
    }
}

// Pairs that a lane reads before it writes the first of them, as in columns.cuh.
constexpr u32 PAIRS_AT_ONCE = 2;

// By a warp: the pairs of a list, to place `to` of all arrays.
__device__ __forceinline__ void put_list(
    const StoredLists& lists, const PairOutput& output, const ListedPoints& points, PairRoom& room,
    u32 target, u64 from, u64 to, u64 pairs) {
    const u32 lane = threadIdx.x & 31;
    const GivenVector at = point_at(points.targets, target);
    for (u64 first = 0; first < pairs; first += 32 * PAIRS_AT_ONCE) {
        u32 sources[PAIRS_AT_ONCE];
        GivenVector there[PAIRS_AT_ONCE];
#pragma unroll
        for (u32 n = 0; n < PAIRS_AT_ONCE; n++) {
            const u64 pair = first + 32 * n + lane;
            // Lanes behind the last pair look at the first one, which there is.
            sources[n] = lists.entries[from + (pair < pairs ? pair : first)];
        }
#pragma unroll
        for (u32 n = 0; n < PAIRS_AT_ONCE; n++) there[n] = point_at(points.sources, sources[n]);
#pragma unroll
        for (u32 n = 0; n < PAIRS_AT_ONCE; n++) {
            const u64 begin = first + 32 * n;
            if (begin >= pairs) break;
            const u32 some = pairs - begin < 32 ? static_cast<u32>(pairs - begin) : 32;
            const PairSeen pair = nearest_pair(points, at, there[n]);
            put_pairs(output, points, room, pair, target, sources[n], to + begin, some);
        }
    }
}

__device__ __forceinline__ void pairs_of_lists(
    const StoredLists& lists, const PairOutput& output, const ListedPoints& points, PairRoom& room) {
    put_lists(lists, output, room.columns, [&](u32 target, u64 from, u64 to, u64 pairs) {
        put_list(lists, output, points, room, target, from, to, pairs);
    });
}

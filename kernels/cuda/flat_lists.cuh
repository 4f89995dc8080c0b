// What counts and writes lists in flat.cu where a thread or a warp walks for each of them.
#pragma once

#if NF_WORK == NF_LISTS

// Counts the neighbours among the candidates of a row.
struct Counter {
    static constexpr bool LEAN = false, IMAGES = false, DISTANCES = false, TAKES_BITS = true;
    const float4* at;
    u32 count;
    __device__ __forceinline__ const float4* sources() const { return at; }
    __device__ __forceinline__ void take(u32 hits, u32) { count += __popc(hits); }
    __device__ __forceinline__ void visit(bool hit, u32, float, float, float, float, float) {
        if (hit) count++;
    }
};

// Writes them from `next` on.
struct Writer {
    static constexpr bool LEAN = false, IMAGES = false, DISTANCES = false, TAKES_BITS = false;
    const float4* at;
    const Outlet& outlet;
    u64 next;
    __device__ __forceinline__ const float4* sources() const { return at; }
    __device__ __forceinline__ void visit(bool hit, u32, float, float, float, float, float index) {
        if (!hit) return;
        if (next < outlet.capacity) outlet.entries[next - outlet.base] = __float_as_uint(index);
        next++;
    }
};

// Writes a list from entry `next` on, by all lanes of a warp, which take rows of the target.
// Returns where it ends. `writer_from` makes what writes the entries from one on.
template <class Rows, class WriterFrom>
__device__ __forceinline__ u64 write_by_warp(
    const Walk& walk, const Target& target, const Rows& rows, u64 next, WriterFrom writer_from) {
    const float4* const proxies = proxies_of(walk.sources);
    // Writes what every lane shows, that of lane 0 first.
    const auto write = [&](auto show) {
        auto counter = filtered<Counter>(walk, target, walk.sources.at, 0u);
        show(counter);
        __syncwarp();
        const u32 to_here = warp_inclusive_sum(counter.count);
        auto writer = writer_from(next + (to_here - counter.count));
        if (counter.count > 0) show(writer);
        __syncwarp();
        next += __shfl_sync(~0u, to_here, 31);
    };
    const u32 lane = threadIdx.x % 32;
    for (u32 first = 0; first < rows.count(); first += 32) {
        write([&](auto& work) {
            if (first + lane < rows.count()) visit_row_of(walk, rows, first + lane, target, proxies, work);
        });
    }
#if NF_WIDE
    const u32 apart = sources_apart(walk, target);
    for (u64 first = 0; first < apart; first += 32) {
        write([&](auto& work) { visit_apart<NF_HALF>(walk, target, work, static_cast<u32>(first) + lane, apart); });
    }
#endif
    return next;
}

#if NF_WIDE

// Adds the sources that a target is compared with one by one to `side`: lanes take them side by
// side, and `Note` says whether its lane has found one.
template <class Note, class Side>
__device__ __forceinline__ void add_apart(const Walk& walk, const Target& target, Side& side) {
    const u32 lane = threadIdx.x % 32, apart = sources_apart(walk, target);
    const Target seen = seen_apart(walk, target);
    const TargetFilter filter = wide_filter(walk, target);
    for (u64 one = lane; one - lane < apart; one += 32) {
        auto found = filtered_by<Note>(filter);
        found.hit = false;
        u32 k = 0;
        if (one < apart) {
            k = source_apart(walk, target, static_cast<u32>(one));
            visit_wide_pair<NF_HALF>(walk, seen, k, found);
        }
        __syncwarp();
        side.add(found, __float_as_uint(walk.sources.at[k].w), k);
    }
}

// Stages the wide sources of a list, from `place` on.
struct Stager {
    static constexpr bool LEAN = false, IMAGES = false, DISTANCES = false, TAKES_BITS = false;
    u32* stage;
    u32 room;
    u32& place;
    __device__ __forceinline__ const float4* sources() const { return nullptr; }
    __device__ __forceinline__ void visit(bool hit, u32, float, float, float, float, float index) {
        if (!hit) return;
        if (place < room) stage[place] = __float_as_uint(index);
        place++;
    }
};

#endif

#endif

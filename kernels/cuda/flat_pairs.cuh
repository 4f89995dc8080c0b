// The kernels of flat.cu that write lists from masks, where lists come with the geometry of their
// pairs.
//
// Displacements of a block's lists would take more shared memory than there is. So flat_expand
// stages what a pair is computed from: the sorted place of its source, and a note of the target and
// the image. Then its threads take the staged entries side by side, compute every pair anew by the
// contract, and write all arrays side by side.
#pragma once

// A note: the target's number in the block, and above it the number of the image.
constexpr u32 NOTE_SHIFT = 7;
static_assert(LIST_THREADS == 1u << NOTE_SHIFT, "a note holds the number of a target of the block");

// Entries of one list and their geometry, which the lanes of a warp write side by side.
struct PairSide {
    const Walk& walk;
    const Target& target;
    const Outlet& lists;
    const PairArrays& arrays;
    u64 next;

    __device__ __forceinline__ PairSide(const Walk& walk, const Target& target, const PairOutlet& to, u64 start)
        : walk(walk), target(target), lists(to.lists), arrays(to.arrays), next(start) {}

    // By all lanes together.
    __device__ __forceinline__ void add(const HitNote& found, u32 entry, u32 k) {
        const u32 hits = __ballot_sync(~0u, found.hit), before = (1u << threadIdx.x % 32) - 1;
        const u64 place = next + __popc(hits & before);
        next += __popc(hits);
        if (!found.hit || place >= lists.capacity) return;
        const u64 at = place - lists.base;
        lists.entries[at] = entry;
        const GivenVector from = given_position(walk.targets, target), source = given_position(walk.sources, k);
        put_pair(arrays, at, target.index, PairSeen(walk, from, source, found.a, found.b, found.c));
    }
};

// Writes the lists that flat_expand has left out, each by a warp.
extern "C" __global__ void __launch_bounds__(LIST_THREADS)
flat_lists(const __grid_constant__ KernelWalk walk, const __grid_constant__ Outlet outlet NF_ARRAYS) {
    await_kernels_before();
    __shared__ u32 slots[LIST_THREADS], found;
    const u32 slot = outlet.first + blockIdx.x * LIST_THREADS + threadIdx.x;
    if (threadIdx.x == 0) found = 0;
    const bool left = slot < outlet.behind && words_of(walk, outlet, slot).incomplete(Cells::ROWS - 1);
    const u32 count = __syncthreads_count(left);
    if (count == 0) return;
    if (left) slots[atomicAdd(&found, 1u)] = slot;
    __syncthreads();
    for (u32 k = threadIdx.x / 32; k < count; k += LIST_THREADS / 32) {
        const Target one = target_at(walk, slots[k]);
        const u64 start = outlet.starts[one.slot];
        write_side_by_side(walk, one, [&] { return PairSide(walk, one, {outlet, arrays}, start); });
    }
}

// Words of three numbers of the given precision, and of the room of a warp.
constexpr u32 TRIPLE = 3 * sizeof(Given) / sizeof(u32);

// Writes WORDS words of the entries of all lanes of a warp side by side: of those whose bits are
// set in `real`, from `to` on, which is the place of lane 0. `room` is the warp's.
template <u32 WORDS>
__device__ __forceinline__ void put_words(u32* to, u32* room, u32 real, const u32 (&words)[WORDS]) {
    const u32 lane = threadIdx.x % 32;
    __syncwarp();
    #pragma unroll
    for (u32 k = 0; k < WORDS; k++) room[WORDS * lane + k] = words[k];
    __syncwarp();
    #pragma unroll
    for (u32 word = lane; word < 32 * WORDS; word += 32) {
        if (real >> (word / WORDS) & 1) __stcs(to + word, room[word]);
    }
}

__device__ __forceinline__ void put_vectors(Given* to, u32* room, u32 real, const GivenVector& vector) {
#if NF_DOUBLE
    const u64 bits[3] = {static_cast<u64>(__double_as_longlong(vector.x)), static_cast<u64>(__double_as_longlong(vector.y)),
                         static_cast<u64>(__double_as_longlong(vector.z))};
    u32 words[TRIPLE];
    for (u32 k = 0; k < TRIPLE; k++) words[k] = static_cast<u32>(bits[k / 2] >> 32 * (k % 2));
#else
    const u32 words[TRIPLE] = {__float_as_uint(vector.x), __float_as_uint(vector.y), __float_as_uint(vector.z)};
#endif
    put_words(reinterpret_cast<u32*>(to), room, real, words);
}

// Writes one pair of every lane of a warp to consecutive places, by all lanes together. `at` is the
// lane's place; lanes whose bit is not set in `real` have no pair, and their place is not used.
__device__ __forceinline__ void put_pairs(
    const PairArrays& to, u32* room, u32 real, i64 at, u32 target, const PairSeen& pair) {
    const u32 lane = threadIdx.x % 32;
    const bool mine = real >> lane & 1;
    const i64 triples = 3 * (at - lane);
    if (to.targets && mine) __stcs(to.targets + at, target);
    if (to.images) {
        const u32 image[3] = {static_cast<u32>(pair.a), static_cast<u32>(pair.b), static_cast<u32>(pair.c)};
        put_words(reinterpret_cast<u32*>(to.images) + triples, room, real, image);
        if (mine && pair.far()) atomicAdd(to.far, 1u);
    }
    if (to.shifts) put_vectors(to.shifts + triples, room, real, pair.shift);
    if (to.displacements) put_vectors(to.displacements + triples, room, real, pair.d);
    if (to.squares && mine) __stcs(to.squares + at, pair.squared);
    if (to.distances && mine) __stcs(to.distances + at, pair.distance());
}

// The pair of a note and a sorted source, by the contract. `first`: the first target of the block.
__device__ __forceinline__ PairSeen pair_of_note(
    const Walk& walk, u32 first, u32 note, u32 k, const float4& source, bool wrapped, u32& target) {
    const u32 slot = first + note % LIST_THREADS;
    const float4 at = __ldg(walk.targets.at + slot);
    target = __float_as_uint(at.w);
    const Image image = PERIODIC ? image_of_number(note >> NOTE_SHIFT) : Image();
    const GivenVector from = DOUBLE ? given_position(walk.targets, slot) : GivenVector{at.x, at.y, at.z};
    const GivenVector to = DOUBLE ? given_position(walk.sources, k) : GivenVector{source.x, source.y, source.z};
    return pair_of_image(walk, slot, k, from, to, image, wrapped);
}

#if NF_WIDE

// Notes the wide sources of a list, from `place` on.
struct PairStager {
    static constexpr bool LEAN = false, IMAGES = true, DISTANCES = false, TAKES_BITS = false;
    const Walk& walk;
    const Target& target;
    u32* slots;
    unsigned short* notes;
    u32 room;
    u32& place;
    i64 a, b, c;
    __device__ __forceinline__ const float4* sources() const { return nullptr; }
    __device__ __forceinline__ void image(i64 of_a, i64 of_b, i64 of_c) {
        a = of_a;
        b = of_b;
        c = of_c;
    }
    __device__ __forceinline__ void visit(bool hit, u32 k, float, float, float, float, float) {
        if (!hit) return;
        if (place < room) {
            slots[place] = k;
            notes[place] = static_cast<unsigned short>(threadIdx.x | number_in_box(k) << NOTE_SHIFT);
        }
        place++;
    }

    // The image of the source's cell: of a pair less than half a box apart, at most one box away.
    __device__ __forceinline__ u32 number_in_box(u32 k) const {
        if (!PERIODIC) return HERE;
        const int4 wraps = wraps_of(walk.sources, k);
        return number_of_image(static_cast<int>(a - target.wraps.x + wraps.x),
                               static_cast<int>(b - target.wraps.y + wraps.y),
                               static_cast<int>(c - target.wraps.z + wraps.z));
    }
};

#endif

// As flat_expand without geometry. Entries of lists that are left to flat_lists are left out here;
// that may be all lists of a block.
extern "C" __global__ void __launch_bounds__(LIST_THREADS, 5)
flat_expand(const __grid_constant__ KernelWalk walk, const __grid_constant__ Outlet outlet, const u32 room NF_ARRAYS) {
    await_kernels_before();
    extern __shared__ u32 slots[];  // sorted places of sources, NONE where an entry is left out
    unsigned short* const notes = reinterpret_cast<unsigned short*>(slots + room);
    __shared__ u32 triples[TRIPLE * LIST_THREADS];
    const u32 first = outlet.first + blockIdx.x * LIST_THREADS;
    const u32 slot = first + threadIdx.x, warp = threadIdx.x & ~31u;
    const bool real = slot < outlet.behind;
    const Target target = target_at(walk, real ? slot : outlet.behind - 1);
    const MaskWords<const u32> words = words_of(walk, outlet, target.slot);
    prefetch(words);
    bool left = real && words.incomplete(Cells::ROWS - 1);
#if NF_WIDE
    left = left || has_block(walk, target);
#endif
    const u64 start = outlet.starts[target.slot];
    const u32 count = real ? static_cast<u32>(outlet.starts[target.slot + 1] - start) : 0;
    const u64 begin = outlet.starts[first];
    const u64 entries = outlet.starts[min(first + LIST_THREADS, outlet.behind)] - begin;
    const bool wrapped = PERIODIC && images_differ(walk);
    const Cells cells(walk, target, wrapped);
    for (u64 staged = 0; staged < entries; staged += room) {
        const u64 behind = min(entries, staged + room);
        const bool meets = start - begin < behind && start + count > begin + staged;
#if NF_WIDE
        if (!__syncthreads_or(meets && count > 0 && !has_block(walk, target))) continue;
#endif
        if (count > 0 && meets && left) {
            const u64 end = min(start + count - begin, behind);
            for (u64 entry = max(start - begin, staged); entry < end; entry++) slots[entry - staged] = NONE;
        } else if (count > 0 && meets) {
            // Large for a list that begins before this part, until the part begins.
            u32 place = static_cast<u32>(start - begin - staged);
            const auto found_at = [](u32 k, u32 image) { return make_uint2(k, image); };
            expand_masks(cells, words, found_at, [&](uint2 found) {
                if (place < room) {
                    slots[place] = found.x;
                    notes[place] = static_cast<unsigned short>(threadIdx.x | found.y << NOTE_SHIFT);
                }
                place++;
            });
#if NF_WIDE
            auto stager = filtered<PairStager>(
                walk, target, walk, target, slots, notes, room, place, i64(0), i64(0), i64(0));
            visit_apart<NF_HALF>(walk, target, stager);
#endif
        }
        __syncthreads();
        const u32 length = static_cast<u32>(behind - staged);
        // Warps take places from one on that 32 divides, where lines of the cache begin.
        const i64 from = static_cast<i64>(begin + staged - outlet.base);
        const u32 lead = static_cast<u32>(from) % 32;
        for (u32 base = warp; base < length + lead; base += LIST_THREADS) {
            // Behind `length` for lanes before the first entry.
            const u32 entry = base + threadIdx.x % 32 - lead;
            const bool fits = entry < length && begin + staged + entry < outlet.capacity;
            const u32 k = fits ? slots[entry] : NONE;
            const bool mine = k < walk.sources.count;
            const u32 lanes = __ballot_sync(~0u, mine);
            if (lanes == 0) continue;
            const u32 note = mine ? notes[entry] : HERE << NOTE_SHIFT, source_slot = mine ? k : 0;
            const float4 source = __ldg(walk.sources.at + source_slot);
            u32 of;
            const PairSeen pair = pair_of_note(walk, first, note, source_slot, source, wrapped, of);
            const i64 at = from + static_cast<i64>(base + threadIdx.x % 32) - lead;
            if (mine) __stcs(outlet.entries + at, __float_as_uint(source.w));
            put_pairs(arrays, triples + TRIPLE * warp, lanes, at, of, pair);
        }
        __syncthreads();
    }
    if (real) {
        outlet.list_starts[target.index] = start;
        outlet.list_counts[target.index] = count;
    }
}

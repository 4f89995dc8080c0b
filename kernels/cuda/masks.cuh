// Lists in one walk: a bit for every candidate of a target says whether it is a neighbour, and a
// second pass takes the list from the bits.
//
// Counting has to come before writing, because a list begins where those before it end. Walking and
// testing every pair twice takes twice as long; writing down what the first walk found takes a word
// for each of the (2K + 1)^2 rows around a target. Bit b of a row's word stands for candidate b of
// the row, the candidates of its parts one behind the other; a part takes an even number of bits,
// because candidates are visited two at a time. Both passes find rows and parts by the same
// functions, compiled without contraction, so they see the same candidates behind the same bits.
//
// Neighbours may be without a bit, behind the first 32 candidates of a row or in the last of the
// 2K + 2 rows that a target may reach. They are counted all the same; one more word per target says
// that its list has to be found by walking once more.
#pragma once
#include "exact.cuh"
#include "filter.cuh"
#include "pair_geometry.cuh"

// Words of a target: those of all targets for one row are side by side.
template <class Word>
struct MaskWords {
    Word* first;  // of the target
    u64 stride;

    // Of one of `rows` * `rows` rows.
    __device__ __forceinline__ Word& at(int z, int y, int rows) const {
        return first[static_cast<u64>(z * rows + y) * stride];
    }

    // 1 if a neighbour may be without a bit.
    __device__ __forceinline__ Word& incomplete(int rows) const { return at(rows, 0, rows); }
};

// Collects the bits of a row.
struct Masker {
    static constexpr bool LEAN = true, IMAGES = false, DISTANCES = false, TAKES_BITS = true;
    const float4* at;
    u32 count, bits, next;

    __device__ __forceinline__ explicit Masker(const Walk& walk) : at(walk.sources.at), count(0), bits(0), next(1) {}
    __device__ __forceinline__ const float4* sources() const { return at; }
    __device__ __forceinline__ void visit(bool hit, u32, float, float, float, float, float) {
        add_if(hit, next, bits);
        add_if(hit, 1, count);
        next <<= 1;
    }
    // Of candidates whose bits were collected already.
    __device__ __forceinline__ void take(u32 hits, u32 candidates) {
        bits |= hits * next;
        count += __popc(hits);
        next = candidates < 32 ? next << candidates : 0;
    }
    // One that was counted is none.
    __device__ __forceinline__ void refute() { count--; }
    __device__ __forceinline__ void begin_row() {
        bits = 0;
        next = 1;
    }
};

template <>
constexpr bool CAN_REFUTE<Masker> = true;

// Writes the words of a target and returns its number of neighbours.
// `work` shows the masker what it is shown: the masker itself, or one that decides by proxies.
template <bool HALF, class Around, class Work>
__device__ __forceinline__ u32 mask_candidates(
    const Walk& walk, const Target& target, const Around& around, Masker& masker, Work& work, const MaskWords<u32>& words) {
    constexpr int ROWS = Around::ROWS - 1;
    bool incomplete = false;
    const auto store = [&](int z, int y) {
        if (z < ROWS && y < ROWS) {
            words.at(z, y, ROWS) = masker.bits;
            incomplete = incomplete || masker.next == 0;
        } else {
            incomplete = incomplete || masker.bits != 0;
        }
    };
    visit_rows<HALF, true>(walk, target, around, work, [&] { masker.begin_row(); }, store);
    words.incomplete(ROWS) = incomplete;
    if constexpr (NOTES_ROWS<Work>) {
        take_back<HALF>(walk, target, around, work, [&](u32 z, u32 y, u32 bit) {
            masker.refute();
            if (bit < 32 && z < ROWS && y < ROWS) words.at(z, y, ROWS) &= ~(1u << bit);
        });
    }
    return masker.count;
}

// Calls put(find(k, image)) for every neighbour with a bit, in the order of the walk: the sorted
// source k, seen in the image of its cell with this number.
template <class Around, class Find, class Put>
__device__ __forceinline__ void expand_masks(
    const Around& around, const MaskWords<const u32>& words, Find find, Put put) {
    constexpr int ROWS = Around::ROWS - 1;
    // Of two runs, whose bits are one behind the other. Two neighbours are found before either is
    // put, which may have to wait for memory.
    const auto put_all = [&](uint2 first, u32 image, u32 second, u32 second_image, u32 bits) {
        const u32 taken = (first.y - first.x + 1) & ~1u, beyond = second - taken;
        while (bits) {
            const u32 one = __ffs(bits) - 1, rest = bits & (bits - 1);
            const u32 two = rest ? __ffs(rest) - 1 : one;
            const auto a = find(one + (one < taken ? first.x : beyond), one < taken ? image : second_image);
            const auto b = find(two + (two < taken ? first.x : beyond), two < taken ? image : second_image);
            put(a);
            if (rest) put(b);
            bits = rest & (rest - 1);
        }
    };
    const auto put_parts = [&](const typename Around::Row& row, u32 bits) {
        for (u32 parts = around.parts(row); bits && parts; parts &= parts - 1) {
            const RowPart part = around.part(row, parts);
            const uint2 run = part.run;
            const u32 taken = (run.y - run.x + 1) & ~1u;
            const u32 image = number_of_image(part.image, row.image_y, row.image_z);
            put_all(run, image, 0, HERE, taken < 32 ? bits & ((1u << taken) - 1) : bits);
            bits = taken < 32 ? bits >> taken : 0;
        }
    };
    const WalkPath path = around.path_of_warp();
    if (path == WalkPath::INSIDE) {
        around.template rows<false>([&](int z, int y, bool reached, auto row) {
            if (!reached || z >= ROWS || y >= ROWS) return;
            const u32 bits = words.at(z, y, ROWS);
            const u32 begin = row.run().x;
            if (bits) put_all(make_uint2(begin, begin + 32), HERE, 0, HERE, bits);
        });
    } else if (path == WalkPath::ALONG_X) {
        around.template rows<false>([&](int z, int y, bool reached, auto row) {
            if (!reached || z >= ROWS || y >= ROWS) return;
            const u32 bits = words.at(z, y, ROWS);
            const Ring ring = around.parts_of_ring(row.row());
            const u32 image = number_of_image(ring.first.image, 0, 0);
            const u32 second_image = number_of_image(ring.second.image, 0, 0);
            if (bits) put_all(ring.first.run, image, ring.second.run.x, second_image, bits);
        });
    } else {
        around.template rows_one_by_one<false, true>([&](int z, int y, bool reached, auto row) {
            if (!reached || z >= ROWS || y >= ROWS) return;
            const u32 bits = words.at(z, y, ROWS);
            if (bits) put_parts(row.row(), bits);
        });
    }
}

// Pairs of points that lie outside of the box, for jobs that read displacements.
//
// A displacement is made of the positions as given and of the vector of the pair's own image: that
// of the cells in which both are found, and the boxes that each of them lies outside. If no count
// is above NEAR_BOXES, all three fit a word, a byte each (`packed_boxes`): the word of the target
// and its cell less that of the source has the three numbers of the image. A block keeps the
// vectors of all images that can occur in shared memory, as the host has computed them by the
// contract: numbers along each axis of a straight box, where each byte is an offset into a table,
// or whole vectors of a tilted box (NEAR_TILTED_BOXES), to which one sum of products leads. So the
// loops are those of points inside, with the positions as given, and every candidate is decided by
// the contract: eleven instructions more and no branch.
#pragma once
#include "exact.cuh"

// Numbers along an axis of a straight box: offsets of a byte.
constexpr u32 IMAGES_ALONG = 64;
static_assert(STEPS < IMAGES_ALONG, "offsets into a table fit a byte");
// Bytes of 31, as an image has them that is 0 boxes away.
constexpr u32 NO_BOXES = IMAGE_STEPS * 0x10101u;

// The vectors of images. The tables of a straight box begin where 256 divides the address, so an
// offset takes the place of its last byte.
template <bool TILTED>
struct alignas(4 * IMAGES_ALONG) ImageTables {
    static constexpr u32 ALONG = TILTED ? TILTED_IMAGES : IMAGES_ALONG;
    float numbers[3 * ALONG];

    // By all threads of a block together.
    __device__ __forceinline__ void load(const Walk& walk, u32 thread, u32 threads) {
        if (!walk.steps) return;
        for (u32 k = thread; k < 3 * ALONG; k += threads) {
            const u32 axis = k / ALONG, step = k % ALONG, steps = TILTED ? TILTED_IMAGES : STEPS;
            numbers[k] = step < steps ? walk.steps[axis * steps + step] : 0.0f;
        }
        __syncthreads();
    }

    // Where the tables are: in shared memory, on the host in themselves.
    __device__ __forceinline__ u32 place() const {
#ifdef __CUDA_ARCH__
        u32 found = static_cast<u32>(__cvta_generic_to_shared(this));
        // Kept in a register: compilers find it anew in every turn of a loop.
        asm volatile("" : "+r"(found));
        return found;
#else
        return 0;
#endif
    }

    // The vector of an image: its numbers of boxes, and 31, times 4, in bytes.
    __device__ __forceinline__ float3 vector(u32 place, u32 image) const {
        if (!TILTED) return make_float3(at<0>(replaced<0>(image, place)), at<1>(replaced<1>(image, place)), at<2>(replaced<2>(image, place)));
        constexpr u32 FACTORS = 1 | TILTED_ALONG << 8 | (TILTED_ALONG * TILTED_ALONG) << 16;
        constexpr u32 SKIPPED = 4 * (IMAGE_STEPS - TILTED_STEPS) * (1 + TILTED_ALONG + TILTED_ALONG * TILTED_ALONG);
        const u32 found = sum_of_products(image, FACTORS, place - SKIPPED);
        return make_float3(at<0>(found), at<1>(found), at<2>(found));
    }

private:
    // `place` with byte AXIS of `image` as the last; compilers take a shift, a mask and a sum.
    template <u32 AXIS>
    static __device__ __forceinline__ u32 replaced(u32 image, u32 place) {
#ifdef __CUDA_ARCH__
        return __byte_perm(image, place, 0x7650 | AXIS);
#else
        return place | (image >> (8 * AXIS) & 255);
#endif
    }

    // Of the bytes of two words.
    static __device__ __forceinline__ u32 sum_of_products(u32 a, u32 b, u32 more) {
#ifdef __CUDA_ARCH__
        return __dp4a(a, b, more);
#else
        for (u32 shift = 0; shift < 32; shift += 8) more += (a >> shift & 255) * (b >> shift & 255);
        return more;
#endif
    }

    // What table AXIS has at an address in the first.
    template <u32 AXIS>
    __device__ __forceinline__ float at(u32 address) const {
#ifdef __CUDA_ARCH__
        float found;
        asm("ld.shared.f32 %0, [%1 + %2];" : "=f"(found) : "r"(address), "n"(4 * ALONG * AXIS));
        return found;
#else
        return numbers[AXIS * ALONG + address / 4];
#endif
    }
};

// Whether the images of pairs of all points are in the tables.
__device__ __forceinline__ bool images_near(const Walk& walk) {
    return walk.steps && walk.targets.flags[ANY_WRAPPED] == NEAR_WRAPPED
        && walk.sources.flags[ANY_WRAPPED] == NEAR_WRAPPED;
}

// Shows `work` candidates in the images of their pairs.
template <class Work, bool TILTED>
struct Imaged {
    static constexpr bool LEAN = Work::LEAN, IMAGES = true, DISTANCES = true, TAKES_BITS = false;
    Work& work;
    const u32* const boxes;
    const ImageTables<TILTED>& tables;
    const u32 place;  // of these
    const u32 home;   // of the target, seen in the image HERE
    u32 of;           // the same in the image of the next candidates
    u32 next[2];      // of two sources

    __device__ __forceinline__ Imaged(
        const Walk& walk, const Target& target, const ImageTables<TILTED>& tables, Work& work)
        : work(work), boxes(walk.sources.boxes), tables(tables), place(tables.place()),
          home(packed_boxes(target.wraps) + 4 * NO_BOXES), of(home), next{0, 0} {}

    __device__ __forceinline__ const float4* sources() const { return work.sources(); }

    // Of the cells of the next candidates.
    __device__ __forceinline__ void image(i64 a, i64 b, i64 c) {
        const u32 boxes = static_cast<u32>(a) + (static_cast<u32>(b) << 8) + (static_cast<u32>(c) << 16);
        of = home + 4 * boxes;
    }

    // The next candidates are the sources k and k + 1.
    __device__ __forceinline__ void meet(u32 k) {
        next[0] = __ldg(boxes + k);
        next[1] = __ldg(boxes + k + 1);
    }

    // The vector of the image of one of them.
    __device__ __forceinline__ float3 shift(u32 j) const { return tables.vector(place, of - next[j]); }

    __device__ __forceinline__ void visit(
        bool hit, u32 k, float dx, float dy, float dz, float d2, float beside) {
        work.visit(hit, k, dx, dy, dz, d2, beside);
    }
};

// Whether a job is shown candidates in images of their own where these are near.
template <bool HALF, class Work>
constexpr bool SEES_IMAGES = !DOUBLE && !HALF && Work::DISTANCES && !Work::IMAGES;

// Calls visit(target, work) with a target and a job that see points outside the box. The tables of
// a job that `SEES_IMAGES` have been loaded.
template <bool HALF, bool TILTED, class Work, class Visit>
__device__ __forceinline__ void visit_wrapped(
    const Walk& walk, const Target& target, const ImageTables<TILTED>& tables, Work& work, Visit visit) {
    if constexpr (SEES_IMAGES<HALF, Work>) {
        if (images_near(walk)) {
            Imaged<Work, TILTED> imaged(walk, target, tables, work);
            return visit(target, imaged);
        }
    }
    visit_around_proxies(walk, target, proxies_of(walk.sources), work, visit);
}

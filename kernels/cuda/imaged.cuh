// Pairs of points that lie outside of a straight box, for jobs that read displacements.
//
// A displacement is made of the positions as given and of the vector of the pair's own image: that
// of the cells in which both are found, and the boxes that each of them lies outside. If no count
// is above NEAR_BOXES, all three fit a word, a byte each (`packed_boxes`): the word of the target
// and its cell less that of the source has the three offsets into tables of vectors, which the host
// has computed as the contract says. A block keeps the tables in shared memory. So the loops are
// those of points inside, with the positions as given, and every candidate is decided by the
// contract: a subtraction, three looks and three sums more, without a branch.
#pragma once
#include "exact.cuh"

// Offsets of a byte, and tables of as many vectors.
constexpr u32 IMAGES_ALONG = 64;
static_assert(STEPS < IMAGES_ALONG && IMAGE_STEPS == 2 * NEAR_BOXES + 1, "an image is a cell's and the boxes of two points");

// The vectors of images along each axis. Each table begins where 256 divides the address, so an
// offset takes the place of its last byte.
struct alignas(4 * IMAGES_ALONG) ImageTables {
    float along[3 * IMAGES_ALONG];

    // By all threads of a block, which then wait for each other.
    __device__ __forceinline__ void load(const Walk& walk, u32 thread, u32 threads) {
        if (!walk.steps) return;
        for (u32 k = thread; k < 3 * IMAGES_ALONG; k += threads) {
            const u32 axis = k / IMAGES_ALONG, step = k % IMAGES_ALONG;
            along[k] = step < STEPS ? walk.steps[axis * STEPS + step] : 0.0f;
        }
    }

    // Where the tables are, in shared memory.
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

    // What one of them has at the offset in byte `AXIS`, by one instruction and a load; compilers
    // take a shift, a mask and a sum for it.
    template <u32 AXIS>
    __device__ __forceinline__ float at(u32 place, u32 offsets) const {
#ifdef __CUDA_ARCH__
        float found;
        const u32 address = __byte_perm(offsets, place, 0x7650 | AXIS);
        asm("ld.shared.f32 %0, [%1 + %2];" : "=f"(found) : "r"(address), "n"(4 * IMAGES_ALONG * AXIS));
        return found;
#else
        return along[AXIS * IMAGES_ALONG + (offsets >> (8 * AXIS) & 255) / 4 + place];
#endif
    }
};

// Whether the images of pairs of all points are in the tables.
__device__ __forceinline__ bool images_near(const Walk& walk) {
    return walk.steps && walk.targets.flags[ANY_WRAPPED] == NEAR_WRAPPED
        && walk.sources.flags[ANY_WRAPPED] == NEAR_WRAPPED;
}

// Shows `work` candidates in the images of their pairs.
template <class Work>
struct Imaged {
    static constexpr bool LEAN = Work::LEAN, IMAGES = true, DISTANCES = true, TAKES_BITS = false;
    Work& work;
    const u32* const boxes;
    const ImageTables& tables;
    const u32 place; // of these
    const u32 home;  // of the target, seen in the image HERE
    u32 of;          // the same in the image of the next candidates
    u32 next[2];     // of two sources

    __device__ __forceinline__ Imaged(const Walk& walk, const Target& target, const ImageTables& tables, Work& work)
        : work(work), boxes(walk.sources.boxes), tables(tables), place(tables.place()),
          home(packed_boxes(target.wraps) + 4 * IMAGE_STEPS * 0x10101u), of(home), next{0, 0} {}

    __device__ __forceinline__ const float4* sources() const { return work.sources(); }

    // Of the cells of the next candidates.
    __device__ __forceinline__ void image(i64 a, i64 b, i64 c) {
        of = home + 4 * static_cast<u32>(a) + 1024 * static_cast<u32>(b) + 262144 * static_cast<u32>(c);
    }

    // The next candidates are the sources k and k + 1.
    __device__ __forceinline__ void meet(u32 k) {
        next[0] = __ldg(boxes + k);
        next[1] = __ldg(boxes + k + 1);
    }

    // The vector of the image of one of them.
    __device__ __forceinline__ float3 shift(u32 j) const {
        const u32 offsets = of - next[j];
        return make_float3(tables.at<0>(place, offsets), tables.at<1>(place, offsets), tables.at<2>(place, offsets));
    }

    __device__ __forceinline__ void visit(bool hit, u32 k, float dx, float dy, float dz, float d2, float beside) {
        work.visit(hit, k, dx, dy, dz, d2, beside);
    }
};

// Calls visit(target, work) with a target and a job that see points outside the box.
template <bool HALF, bool TILTED, class Work, class Visit>
__device__ __forceinline__ void visit_wrapped(
    const Walk& walk, const Target& target, const ImageTables& tables, Work& work, Visit visit) {
    if constexpr (!DOUBLE && !HALF && !TILTED && Work::DISTANCES && !Work::IMAGES) {
        if (images_near(walk)) {
            Imaged<Work> imaged(walk, target, tables, work);
            return visit(target, imaged);
        }
    }
    visit_proxies(walk, target, proxies_of(walk.sources), work, visit);
}

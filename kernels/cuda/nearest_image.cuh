// The image of a source that is nearest to a target in a periodic box.
//
// In single precision it is found in f32 from the difference of the coordinates in boxes. Where a pair within the
// radius is less than 0.4925 boxes apart, an error below 0.005 boxes does not change the image. The
// host chooses this way only if the error is below 0.003 for sources at most a box away
// (`nearest_is_certain` in crates/engine/gpu/src/backend/nearest_image.rs). For others the
// difference in boxes rounds to 2 or more along the axis where they are farthest, and their image
// is found in f64, as on the CPU and as in double precision.
#pragma once
#include "walk.cuh"

#if !NF_DOUBLE

// Which image it is, and the vector to it.
struct NearestImage {
    i64 a, b, c;
    float3 shift;
};

// Number of boxes along an axis from a difference to its nearest image, +0 for none. `inverse` is
// Lattice::inverse, rounded.
__device__ __forceinline__ float boxes_to_nearest(
    const float (&inverse)[3][3], int axis, bool tilted, const float3& d) {
    const float* const row = inverse[axis];
    const float own = axis == 0 ? d.x : axis == 1 ? d.y : d.z;
    const float boxes = tilted ? row[0] * d.x + row[1] * d.y + row[2] * d.z : row[axis] * own;
    return 0.0f - rintf(boxes);
}

// The vector to the nearest image of a source that is more than a box away. The lattice of a search
// in a tilted box has rows of open axes too, whose number of boxes says nothing.
__device__ __forceinline__ float3 far_shift(const Lattice& lattice, const float3& d, i64* image) {
    for (int axis = 0; axis < 3; axis++) {
        const double* const row = lattice.inverse[axis];
        image[axis] = static_cast<i64>(0.0 - rint((row[0] * d.x + row[1] * d.y) + row[2] * d.z));
    }
    return image_vector(lattice, image[0], image[1], image[2]);
}

// The nearest image of a source at this difference of the coordinates.
__device__ __forceinline__ NearestImage nearest_image(
    const Lattice& lattice, const float (&inverse)[3][3], bool tilted, const float3& d) {
    const float a = boxes_to_nearest(inverse, 0, tilted, d);
    const float b = boxes_to_nearest(inverse, 1, tilted, d);
    const float c = boxes_to_nearest(inverse, 2, tilted, d);
    const float(*const shifts)[3] = lattice.shifts;
    float3 shift = make_float3(a * shifts[HERE + 1][0], b * shifts[HERE + 3][1], c * shifts[HERE + 9][2]);
    if (fmaxf(fmaxf(fabsf(a), fabsf(b)), fabsf(c)) > 1.0f) {
        i64 image[3];
        shift = far_shift(lattice, d, image);
        return {image[0], image[1], image[2], shift};
    }
    // Conversions to 64 bits take several times as long.
    const int image[3] = {static_cast<int>(a), static_cast<int>(b), static_cast<int>(c)};
    if (tilted) {
        const bool here = a == 0.0f && b == 0.0f && c == 0.0f;
        shift = here ? make_float3(0.0f, 0.0f, 0.0f)
                     : near_image_vector<true>(lattice, image[0], image[1], image[2]);
    }
    return {image[0], image[1], image[2], shift};
}

#else

// Number of boxes along an axis from a difference to its nearest image.
__device__ __forceinline__ i64 boxes_to_nearest(const Lattice& lattice, int axis, const GivenVector& d) {
    const double* const row = lattice.inverse[axis];
    return static_cast<i64>(0.0 - rint((row[0] * d.x + row[1] * d.y) + row[2] * d.z));
}

#endif

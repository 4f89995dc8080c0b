// Twins of nearfield_pairs::PlainLennardJones and LennardJones: energy of a pair, and its force
// over the distance. The reciprocal is approximate, off by at most one unit in the last place.
__forceinline__ float lennard_jones_inverse(float d2) { return __fdividef(1.0f, d2); }

// Uniforms: sigma^2, 4 epsilon, offset of the energy.
__forceinline__ void plain_lennard_jones(const float* uniform, float d2, const float*, const float*, float& energy,
                                         float& over) {
    const float inverse = lennard_jones_inverse(d2);
    const float s2 = uniform[0] * inverse;
    const float s6 = s2 * s2 * s2;
    const float well = uniform[1] * s6;
    energy = __fmaf_rn(well, s6 - 1.0f, uniform[2]);
    over = 6.0f * well * __fmaf_rn(2.0f, s6, -1.0f) * inverse;
}

// Points: the type. Uniforms: sigma^2, 4 epsilon, slope and offset of the energy for every pair of
// types, those with type 0 first.
__forceinline__ void lennard_jones(const float* uniform, float d2, const float* a, const float* b, float& energy,
                                   float& over) {
    const int one = static_cast<int>(a[0]), other = static_cast<int>(b[0]);
    const int high = max(one, other), low = min(one, other);
    const float* const pair = uniform + 4 * (high * (high + 1) / 2 + low);
    const float inverse = lennard_jones_inverse(d2);
    const float s2 = pair[0] * inverse;
    const float s6 = s2 * s2 * s2;
    const float well = pair[1] * s6;
    const float shift = pair[2] * fast_sqrt(d2);
    energy = __fmaf_rn(well, s6 - 1.0f, shift + pair[3]);
    over = (6.0f * well * __fmaf_rn(2.0f, s6, -1.0f) - shift) * inverse;
}

// Twin of nearfield_pairs::CutoffCoulomb: energy of a pair of charges, and its force over the
// distance. Points: the charge. Uniforms: 1/(4 pi epsilon_0), and what is added to 1/r times it: of
// d^2, of the distance, and alone. The reciprocal root is off by at most one unit in the last
// place.
__forceinline__ void cutoff_coulomb(const float* uniform, float d2, const float* a, const float* b, float& energy,
                                    float& over) {
    const float inverse = fast_rsqrt(d2);
    const float product = a[0] * b[0];
    const float plain = uniform[0] * inverse;
    const float bend = uniform[1] * d2;
    const float shift = uniform[2] * (d2 * inverse);
    energy = product * (plain + (bend + (shift + uniform[3])));
    over = product * ((plain - __fmaf_rn(2.0f, bend, shift)) * (inverse * inverse));
}

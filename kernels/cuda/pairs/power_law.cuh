// Twin of nearfield_pairs::PowerLaw: energy of a pair, and its force over the distance. Uniforms:
// both coefficients, the exponent, the squared floor, and 1/(exponent - 1). Reciprocals and roots
// are off by at most one unit in the last place.
__forceinline__ void power_law(const float* uniform, float d2, const float*, const float*, float& energy, float& over) {
    const float r = fast_sqrt(d2);
    const float floored = fmaxf(d2, uniform[3]);
    const float far = fast_sqrt(floored);
    const float inverse = fast_rsqrt(floored);
    float power = 1.0f;
    float square = uniform[1] * inverse;
    for (unsigned left = static_cast<unsigned>(uniform[2]); left != 0; left >>= 1) {
        if (left & 1) power *= square;
        square *= square;
    }
    const float coulomb = uniform[0] * inverse;
    const float force = __fmaf_rn(coulomb, inverse, power);
    energy = coulomb + power * far * uniform[4] + force * (far - r);
    // At distance 0 there is no direction, and the difference is 0 as well.
    over = __fdividef(force, fmaxf(r, far * 1e-12f));
}

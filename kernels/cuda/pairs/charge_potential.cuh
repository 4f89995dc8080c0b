// Twin of nearfield_pairs::ChargePotential. Uniform: squared softening. Source: charge. Result:
// potential.
void pair(const float* uniform, const Pair& pair, const float*, const float* source, float* result) {
    const float d2 = pair.d2 + uniform[0];
    result[0] = d2 > 0.0f ? source[0] * fast_rsqrt(d2) : 0.0f;
}

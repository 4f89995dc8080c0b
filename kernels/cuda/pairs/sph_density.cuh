// Twin of nearfield_pairs::SphDensity: m_j W(d), the C2 kernel of Wendland (1995).
// Uniforms: 1 / support radius, scale. Source: mass. Result: density.
void pair(const float* uniform, const Pair& pair, const float*, const float* source, float* result) {
    const float u = fmaxf(__fmaf_rn(fast_sqrt(pair.d2), -uniform[0], 1.0f), 0.0f);
    const float u2 = u * u;
    // (1 - q/2)^4 (2q + 1) with q/2 = 1 - u.
    result[0] = source[0] * (uniform[1] * u2) * u2 * __fmaf_rn(-4.0f, u, 5.0f);
}

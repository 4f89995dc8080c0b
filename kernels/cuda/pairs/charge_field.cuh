// Twin of nearfield_pairs::ChargeField. Uniform: squared softening. Source: charge. Result: field
// (3).
void pair(const float* uniform, const Pair& pair, const float*, const float* source, float* result) {
    const float d2 = pair.d2 + uniform[0];
    const float inverse = d2 > 0.0f ? fast_rsqrt(d2) : 0.0f;
    const float factor = -source[0] * inverse * (inverse * inverse);
    for (int axis = 0; axis < 3; axis++) result[axis] = factor * pair.d[axis];
}

// Twin of nearfield_pairs::SphForce: acceleration by pressure and artificial viscosity
// (Monaghan 1992, eq. 3.3 and 4.1).
// Uniforms: 1 / support radius, -5 scale / h^2, viscosity coefficient times speed of sound,
// smoothing length, 0.01 h^2. Target: velocity (3), density, pressure. Source: the same, mass.
// Result: acceleration (3).
void pair(const float* uniform, const Pair& pair, const float* target, const float* source, float* result) {
    const float u = fmaxf(__fmaf_rn(fast_sqrt(pair.d2), -uniform[0], 1.0f), 0.0f);
    const float gradient = uniform[1] * u * u * u;
    float approach = 0.0f;
    for (int axis = 0; axis < 3; axis++) {
        approach = __fmaf_rn(pair.d[axis], source[axis] - target[axis], approach);
    }
    const float rho_i = target[3], rho_j = source[3];
    const float pressure = __fdividef(target[4], rho_i * rho_i) + __fdividef(source[4], rho_j * rho_j);
    const float mu = __fdividef(uniform[3] * fminf(approach, 0.0f), pair.d2 + uniform[4]);
    const float viscosity = __fdividef(-uniform[2] * mu, 0.5f * (rho_i + rho_j));
    const float factor = source[5] * (pressure + viscosity) * gradient;
    for (int axis = 0; axis < 3; axis++) result[axis] = factor * pair.d[axis];
}

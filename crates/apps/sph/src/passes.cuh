// The pair kernels of passes.rs once more, for the GPU: same names, same formulas.
//
// The first uniforms of each are those of the smoothing kernel: 1 / (2h), normalization, gradient.
// A moving particle is its velocity (3) and compression.

struct Vec {
    float x, y, z;
};

Vec vec(const float* v) { return {v[0], v[1], v[2]}; }
Vec minus(Vec a, Vec b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
Vec add_scaled(Vec a, float s, Vec b) { return {__fmaf_rn(s, b.x, a.x), __fmaf_rn(s, b.y, a.y), __fmaf_rn(s, b.z, a.z)}; }
float dot(Vec a, Vec b) { return __fmaf_rn(a.z, b.z, __fmaf_rn(a.y, b.y, a.x * b.x)); }

float kernel_value(const float* u, float d2) {
    const float half_q = fast_sqrt(d2) * u[0];
    const float rest = fmaxf(1.0f - half_q, 0.0f);
    const float square = rest * rest;
    return u[1] * square * square * (4.0f * half_q + 1.0f);
}

float gradient_factor(const float* u, float d2) {
    const float rest = fmaxf(1.0f - fast_sqrt(d2) * u[0], 0.0f);
    return u[2] * rest * rest * rest;
}

// (1 + s)^7 - 1 multiplied out, so that small s keep their digits.
float specific_pressure(float stiffness, float compression) {
    const float s = fmaxf(compression, 0.0f);
    const float tail = 7.0f + s * (21.0f + s * (35.0f + s * (35.0f + s * (21.0f + s * (7.0f + s)))));
    return stiffness * s * tail;
}

// Further uniforms: volume, half the time step, diffusion, hydrostatic gradient (3).
void continuity(const float* u, const Pair& pair, const float* target, const float* source, float* result) {
    const Vec relative = minus(vec(source), vec(target));
    const Vec middle = add_scaled(vec(pair.d), -u[4], relative);
    const float volume = u[3] / (1.0f + source[3]);
    const float weight = volume * gradient_factor(u, dot(middle, middle));
    const float excess = source[3] - target[3] - dot(vec(u + 6), middle);
    result[0] = weight * dot(relative, middle);
    result[1] = -u[5] * weight * excess;
}

// Further uniforms: volume, half the time step. Target: velocity. Source: compression of the wall.
void wall_continuity(const float* u, const Pair& pair, const float* target, const float* source, float* result) {
    const Vec velocity = vec(target);
    const Vec middle = add_scaled(vec(pair.d), u[4], velocity);
    const float weight = u[3] / (1.0f + source[0]) * gradient_factor(u, dot(middle, middle));
    result[0] = -weight * dot(velocity, middle);
}

// Further uniforms: stiffness, gravity (3). Source: compression of the fluid.
void extrapolation(const float* u, const Pair& pair, const float*, const float* source, float* result) {
    const float weight = kernel_value(u, pair.d2);
    const float head = dot(vec(u + 4), vec(pair.d));
    result[0] = weight;
    result[1] = weight * (specific_pressure(u[3], source[0]) - (1.0f + source[0]) * head);
}

// Further uniforms: stiffness, volume, viscosity, softening.
void forces(const float* u, const Pair& pair, const float* target, const float* source, float* result) {
    const Vec d = vec(pair.d);
    const float weight = u[4] * gradient_factor(u, pair.d2);
    const float pressure = specific_pressure(u[3], target[3]) + specific_pressure(u[3], source[3]);
    const float approach = fminf(dot(minus(vec(source), vec(target)), d), 0.0f);
    const float mean = 1.0f + 0.5f * (target[3] + source[3]);
    const float friction = weight * u[5] * approach / ((pair.d2 + u[6]) * mean);
    const float push = weight * pressure / ((1.0f + target[3]) * (1.0f + source[3]));
    result[0] = (push - friction) * d.x;
    result[1] = (push - friction) * d.y;
    result[2] = (push - friction) * d.z;
    result[3] = -0.5f * friction * approach;
}

// Further uniforms: stiffness, volume, friction, inverse square of the contact distance, contact
// pressure. Source: compression and roughness of the wall.
void wall_forces(const float* u, const Pair& pair, const float* target, const float* source, float* result) {
    const Vec velocity = vec(target);
    const float weight = u[4] * gradient_factor(u, pair.d2);
    const float pressure = specific_pressure(u[3], target[3]) + specific_pressure(u[3], source[0]);
    const float contact = u[7] * fmaxf(1.0f - pair.d2 * u[6], 0.0f);
    const float push = weight * (pressure + contact) / ((1.0f + target[3]) * (1.0f + source[0]));
    const float friction = source[1] * weight * u[5];
    result[0] = push * pair.d[0] + friction * velocity.x;
    result[1] = push * pair.d[1] + friction * velocity.y;
    result[2] = push * pair.d[2] + friction * velocity.z;
    result[3] = -friction * dot(velocity, velocity);
}

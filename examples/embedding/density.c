/* The density of a block of fluid in C, from particles in an array of structures, and what a call
 * that fails says. */

#include <nearfield.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    float position[3];
    float velocity[3];
    float mass;
    int kind;
} particle;

/* Ends the program with the text of a failure. */
static void check(nf_status status) {
    if (status != NF_STATUS_OK) {
        fprintf(stderr, "%s\n", nf_last_error());
        exit(1);
    }
}

int main(void) {
    enum { EDGE = 20, POINTS = EDGE * EDGE * EDGE };
    const float spacing = 0.05f, support = 2.6f * spacing;
    particle *particles = calloc(POINTS, sizeof *particles);
    float *density = malloc(POINTS * sizeof *density);
    if (!particles || !density) {
        return 1;
    }
    for (int i = 0; i < POINTS; ++i) {
        particles[i].position[0] = spacing * (float)(i % EDGE);
        particles[i].position[1] = spacing * (float)(i / EDGE % EDGE);
        particles[i].position[2] = spacing * (float)(i / (EDGE * EDGE));
        particles[i].mass = 1000.0f * spacing * spacing * spacing;
    }

    nf_options options;
    check(nf_options_init(&options, sizeof options));
    options.radius = support;
    nf_engine *engine = NULL;
    check(nf_engine_new(&options, &engine));

    /* Coordinates and masses are read where they lie, one structure after the other. */
    uint32_t fluid = 0;
    check(nf_add_points_f32(engine, particles->position, POINTS, sizeof(particle), &fluid));
    check(nf_sph_density(engine, fluid, fluid, support, 3, &particles->mass, POINTS,
                         sizeof(particle), density, POINTS, NF_DELIVER_WRITE));
    /* A point's own mass is not in the sum; W(0) = 21 / (2 pi support^3). */
    const int middle = POINTS / 2 + EDGE * EDGE / 2 + EDGE / 2;
    const double own = particles[middle].mass * 21.0 / (2.0 * 3.14159265358979 * pow(support, 3));
    const double found = density[middle] + own;
    printf("density in the middle: %.1f of 1000\n", found);

    check(nf_find_neighbors(engine));
    nf_lists lists;
    check(nf_neighbors(engine, fluid, fluid, &lists));
    printf("%llu pairs of %zu points\n", (unsigned long long)lists.pairs, lists.points);

    /* A failure has a status and a text, and leaves everything as it was. */
    particles[7].position[1] = NAN;
    const nf_status status =
        nf_update_f32(engine, fluid, particles->position, POINTS, sizeof(particle));
    printf("refused: %s\n", nf_last_error());

    check(nf_engine_free(engine));
    free(particles);
    free(density);
    return status == NF_STATUS_POSITIONS && fabs(found - 1000.0) < 20.0 ? 0 : 1;
}

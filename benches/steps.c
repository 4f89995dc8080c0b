/*
 * Times steps of points through the C interface, as `nearfield bench` times them from Rust.
 *
 *     cc -O2 benches/steps.c -I crates/bindings/c/include -L FOLDER -lnearfield -o steps
 *     ./steps FILE POINTS FRAMES RADIUS DEVICE THREADS STEPS
 *
 * FILE holds FRAMES frames of POINTS positions, three floats each, which steps take in turn. A step
 * is nf_update_f32(), nf_find_neighbors() and nf_neighbors(). Prints its milliseconds, one a line,
 * and the pairs of the last step.
 */
#include <nearfield.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        if ((call) != NF_STATUS_OK) {                                                              \
            fprintf(stderr, "%s failed\n", #call);                                                 \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

static double now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

int main(int count, char **words) {
    if (count != 8) {
        fprintf(stderr, "usage: steps FILE POINTS FRAMES RADIUS DEVICE THREADS STEPS\n");
        return 2;
    }
    const size_t points = strtoull(words[2], NULL, 10), frames = strtoull(words[3], NULL, 10);
    const size_t stride = 3 * sizeof(float);
    const size_t numbers = 3 * points * frames;
    float *positions = malloc(numbers * sizeof *positions);
    FILE *file = fopen(words[1], "rb");
    if (!positions || !file || fread(positions, sizeof *positions, numbers, file) != numbers) {
        fprintf(stderr, "%s has too few positions\n", words[1]);
        return 1;
    }
    fclose(file);
    nf_options options;
    CHECK(nf_options_init(&options, sizeof options));
    options.radius = strtod(words[4], NULL);
    options.device = words[5];
    options.threads = (uint32_t)strtoul(words[6], NULL, 10);
    nf_engine *engine;
    CHECK(nf_engine_new(&options, &engine));
    uint32_t set;
    CHECK(nf_add_points_f32(engine, positions, points, stride, &set));
    nf_lists lists = {0};
    for (size_t step = 0; step < strtoull(words[7], NULL, 10); step++) {
        const float *frame = positions + 3 * points * (step % frames);
        const double begin = now_ms();
        CHECK(nf_update_f32(engine, set, frame, points, stride));
        CHECK(nf_find_neighbors(engine));
        CHECK(nf_neighbors(engine, set, set, &lists));
        printf("%.6f\n", now_ms() - begin);
    }
    printf("pairs %llu\n", (unsigned long long)lists.pairs);
    CHECK(nf_engine_free(engine));
    free(positions);
    return 0;
}

/* Engines on a GPU: device pointers and a stream of the caller's in and out, compared with the CPU.
 * Ends with 77, skipped, where there is no GPU, and fails there when NEARFIELD_REQUIRE_GPU is set. */

#include "device.h"

#include <math.h>

enum { POINTS = 20000 };

static void repeat_until_valid(nf_device_engine *engine, int (*work)(nf_device_engine *, void *), void *with) {
    for (int tries = 0; tries < 5; ++tries) {
        EXPECT(work(engine, with) == 0);
        uint32_t valid = 0;
        CHECK(nf_device_engine_finish(engine, &valid));
        if (valid) {
            return;
        }
    }
    fail(__LINE__, "results stay provisional");
}

typedef struct {
    uint32_t set;
    uint64_t counts, mass, density, mine;
} arrays;

static int step(nf_device_engine *engine, void *with) {
    const arrays *of = with;
    const nf_device_field mass = {of->mass, POINTS, 1}, none = {0, 0, 0};
    const float radius_squared = 1.0f;
    const nf_device_kernel kernel = {
        .name = "occupancy.cu",
        .text = "void pair(const float* u, const Pair& pair, const float* target,\n"
                "          const float* source, float* result) {\n"
                "    result[0] = source[0] * (1.0f - pair.d2 / u[0]);\n"
                "    result[1] = 1.0f;\n"
                "}\n",
        .uniforms = &radius_squared,
        .uniform_count = 1,
        .source_channels = 1,
        .outputs = 2,
        .reduce = NF_REDUCE_SUM,
    };
    CHECK(nf_device_engine_find_neighbors(engine, of->set, of->set));
    CHECK(nf_device_engine_count_neighbors(engine, of->set, of->set, of->counts, POINTS));
    CHECK(nf_device_engine_sph_density(engine, of->set, of->set, 1.0f, 3, mass, of->density,
                                       POINTS, 0, NF_DELIVER_WRITE));
    CHECK(nf_device_engine_traverse(engine, &kernel, of->set, of->set, none, mass, of->mine, 2 * POINTS,
                                    1, NF_DELIVER_WRITE));
    return 0;
}

static int compare(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

int main(void) {
    void *stream = NULL;
    const char *missing = start_driver(&stream);
    if (missing) {
        return skip(missing);
    }

    float *points = malloc(3 * POINTS * sizeof *points), *mass = malloc(POINTS * sizeof *mass);
    EXPECT(points && mass);
    uint32_t random = 1;
    for (int i = 0; i < 3 * POINTS; ++i) {
        random = random * 1664525u + 1013904223u;
        points[i] = (float)(random >> 8) / 16777216.0f * 10.0f;
        mass[i / 3] = 1.0f + (float)(i % 7);
    }

    nf_device_options options;
    CHECK(nf_device_options_init(&options, sizeof options));
    options.radius = 1.0;
    options.use_stream = 1;
    options.stream = stream;
    nf_device_engine *engine = NULL;
    if (nf_device_engine_new(&options, &engine) != NF_STATUS_OK) {
        return skip(nf_last_error());
    }
    void *used = NULL;
    CHECK(nf_device_engine_stream(engine, &used));
    EXPECT(used == stream);
    arrays of = {0, on_device(NULL, POINTS * 4), on_device(mass, POINTS * 4),
                 on_device(NULL, POINTS * 4), on_device(NULL, 2 * POINTS * 4)};
    const uint64_t positions = on_device(points, 3 * POINTS * 4);
    CHECK(nf_device_engine_add_points(engine, positions, POINTS, &of.set));
    repeat_until_valid(engine, step, &of);
    CHECK(nf_device_engine_update(engine, of.set, positions, POINTS));
    repeat_until_valid(engine, step, &of);
    nf_device_lists on_gpu;
    CHECK(nf_device_engine_neighbors(engine, of.set, of.set, &on_gpu));
    EXPECT(on_gpu.points == POINTS && cu_wait(stream) == 0);

    nf_options plain;
    CHECK(nf_options_init(&plain, sizeof plain));
    plain.radius = 1.0;
    plain.device = "cpu";
    plain.order = NF_LIST_ORDER_ASCENDING;
    nf_engine *cpu = NULL;
    uint32_t set = 0;
    nf_lists lists;
    float *density = malloc(POINTS * sizeof *density), *found = malloc(2 * POINTS * sizeof *found);
    uint32_t *counts = malloc(POINTS * sizeof *counts);
    uint64_t *start = malloc(POINTS * sizeof *start);
    EXPECT(density && found && counts && start);
    CHECK(nf_engine_new(&plain, &cpu));
    CHECK(nf_add_points_f32(cpu, points, POINTS, 12, &set));
    CHECK(nf_find_neighbors(cpu));
    CHECK(nf_neighbors(cpu, set, set, &lists));
    CHECK(nf_sph_density(cpu, set, set, 1.0f, 3, mass, POINTS, 0, density, POINTS,
                         NF_DELIVER_WRITE));

    EXPECT(cu_to_host(counts, of.counts, POINTS * 4) == 0);
    EXPECT(memcmp(counts, lists.count, POINTS * 4) == 0);
    EXPECT(cu_to_host(counts, on_gpu.count, POINTS * 4) == 0);
    EXPECT(memcmp(counts, lists.count, POINTS * 4) == 0);
    EXPECT(cu_to_host(start, on_gpu.start, POINTS * 8) == 0);
    for (int i = 0; i < POINTS; i += 97) {
        uint32_t list[1000];
        EXPECT(counts[i] <= 1000);
        EXPECT(cu_to_host(list, on_gpu.indices + 4 * start[i], 4 * counts[i]) == 0);
        qsort(list, counts[i], 4, compare);
        EXPECT(memcmp(list, lists.indices + lists.start[i], 4 * counts[i]) == 0);
    }
    EXPECT(cu_to_host(found, of.density, POINTS * 4) == 0);
    for (int i = 0; i < POINTS; ++i) {
        EXPECT(fabsf(found[i] - density[i]) <= 1e-4f * density[i]);
    }
    EXPECT(cu_to_host(found, of.mine, 2 * POINTS * 4) == 0);
    for (int i = 0; i < POINTS; ++i) {
        EXPECT(found[2 * i + 1] == (float)lists.count[i]);
        EXPECT(lists.count[i] == 0 || found[2 * i] > 0.0f);
    }

    /* A kernel that does not compile says why, and the engine goes on. */
    const nf_device_kernel broken = {.name = "broken.cu", .text = "int;\n", .outputs = 1};
    const nf_device_field none = {0, 0, 0};
    EXPECT(nf_device_engine_traverse(engine, &broken, of.set, of.set, none, none, of.mine, POINTS,
                                     0, NF_DELIVER_WRITE) == NF_STATUS_GPU);
    EXPECT(strstr(nf_last_error(), "broken.cu") != NULL);
    repeat_until_valid(engine, step, &of);

    /* A removed set is refused by name. */
    CHECK(nf_device_engine_remove_set(engine, of.set));
    EXPECT(nf_device_engine_find_neighbors(engine, of.set, of.set) == NF_STATUS_UNKNOWN_POINT_SET);
    EXPECT(strstr(nf_last_error(), "has been removed") != NULL);
    CHECK(nf_device_engine_free(engine));

    /* The same lists from host memory by the GPU alone and by both backends. */
    for (int k = 0; k < 2; ++k) {
        plain.device = k == 0 ? "gpu" : "hybrid";
        nf_engine *other = NULL;
        nf_lists theirs;
        CHECK(nf_engine_new(&plain, &other));
        CHECK(nf_add_points_f32(other, points, POINTS, 12, &set));
        CHECK(nf_find_neighbors(other));
        CHECK(nf_neighbors(other, set, set, &theirs));
        EXPECT(theirs.pairs == lists.pairs);
        for (int i = 0; i < POINTS; ++i) {
            EXPECT(theirs.count[i] == lists.count[i]);
            EXPECT(memcmp(theirs.indices + theirs.start[i], lists.indices + lists.start[i],
                          4 * lists.count[i]) == 0);
        }
        CHECK(nf_engine_free(other));
    }
    printf("device pointers, stream, lists, sums and a kernel of one's own: as on the CPU\n");
    return 0;
}

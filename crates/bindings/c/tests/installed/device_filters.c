/* What engines on a GPU find beyond plain lists (filters, radii, geometry of pairs, free positions,
 * chunks, lists with a skin, many systems), from arrays of the GPU, compared with the CPU bit for
 * bit. Skipped as device.h says. */

#include "device.h"

enum { POINTS = 5000, PROBES = 300 };

/* Coordinates in a box of 10, in both precisions, and data of points. */
static double points_f64[3 * POINTS];
static float points_f32[3 * POINTS];
static int64_t types_of_points[POINTS];
static uint32_t same_types[POINTS], molecules[POINTS], some[PROBES];
static float radii[POINTS];
static uint8_t mask[POINTS];
static void *stream;

static const uint32_t QUANTITIES = NF_QUANTITY_TARGETS + NF_QUANTITY_SOURCES + NF_QUANTITY_IMAGES +
                                   NF_QUANTITY_DISPLACEMENTS + NF_QUANTITY_DISTANCES;

static void make_points(void) {
    uint32_t random = 1;
    for (int i = 0; i < 3 * POINTS; ++i) {
        random = random * 1664525u + 1013904223u;
        points_f32[i] = (float)(random >> 8) / 16777216.0f * 10.0f;
        points_f64[i] = points_f32[i];
    }
    for (int i = 0; i < POINTS; ++i) {
        types_of_points[i] = i % 3;
        same_types[i] = (uint32_t)types_of_points[i];
        molecules[i] = (uint32_t)i / 4;
        radii[i] = 0.4f + 0.1f * (float)(i % 7);
        mask[i] = i % 5 != 0;
    }
    for (int i = 0; i < PROBES; ++i) {
        some[i] = (uint32_t)(POINTS - 1 - 7 * i);
    }
}

/* Options for the CPU and for the GPU that mean the same. */
typedef struct {
    nf_options cpu;
    nf_device_options gpu;
} settings;

static settings defaults(uint32_t precision) {
    settings made;
    CHECK(nf_options_init(&made.cpu, sizeof made.cpu));
    CHECK(nf_device_options_init(&made.gpu, sizeof made.gpu));
    made.cpu.radius = made.gpu.radius = 1.0;
    made.cpu.device = "cpu";
    made.gpu.use_stream = 1;
    made.gpu.stream = stream;
    made.cpu.precision = made.gpu.precision = precision;
    made.cpu.order = made.gpu.order = NF_LIST_ORDER_ASCENDING;
    for (int axis = 0; axis < 3; ++axis) {
        made.cpu.periodic[axis] = made.gpu.periodic[axis] = 1;
        made.cpu.box_vectors[axis][axis] = made.gpu.box_vectors[axis][axis] = 10.0;
    }
    return made;
}

/* Both engines with the points as set 0. */
typedef struct {
    nf_engine *cpu;
    nf_device_engine *gpu;
    uint64_t positions;
} engines;

static engines start(const settings *of) {
    engines made = {NULL, NULL, 0};
    uint32_t set = 7;
    CHECK(nf_engine_new(&of->cpu, &made.cpu));
    CHECK(nf_device_engine_new(&of->gpu, &made.gpu));
    if (of->cpu.precision == NF_PRECISION_F32) {
        CHECK(nf_add_points_f32(made.cpu, points_f32, POINTS, 12, &set));
        made.positions = on_device(points_f32, sizeof points_f32);
    } else {
        CHECK(nf_add_points_f64(made.cpu, points_f64, POINTS, 24, &set));
        made.positions = on_device(points_f64, sizeof points_f64);
    }
    CHECK(nf_device_engine_add_points(made.gpu, made.positions, POINTS, &set));
    EXPECT(set == 0);
    return made;
}

static void stop(engines *of) {
    CHECK(nf_engine_free(of->cpu));
    CHECK(nf_device_engine_free(of->gpu));
}

static int is_valid(nf_device_engine *engine) {
    uint32_t valid = 0;
    CHECK(nf_device_engine_finish(engine, &valid));
    return valid == 1;
}

static void expect_same(const nf_device_lists *gpu, const nf_lists *cpu) {
    EXPECT(gpu->points == cpu->points);
    uint64_t *start = on_host(gpu->start, 8 * gpu->points);
    uint32_t *count = on_host(gpu->count, 4 * gpu->points);
    uint32_t *indices = on_host(gpu->indices, 4 * gpu->entries);
    EXPECT(memcmp(count, cpu->count, 4 * gpu->points) == 0);
    for (size_t i = 0; i < gpu->points; ++i) {
        EXPECT(start[i] + count[i] <= gpu->entries);
        EXPECT(memcmp(indices + start[i], cpu->indices + cpu->start[i], 4 * count[i]) == 0);
    }
    free(start), free(count), free(indices);
}

/* Finds the lists of set 0 in itself by both, and compares them. */
static nf_lists expect_same_lists(engines *of) {
    nf_lists cpu;
    nf_device_lists gpu;
    CHECK(nf_find_neighbors(of->cpu));
    CHECK(nf_neighbors(of->cpu, 0, 0, &cpu));
    do {
        CHECK(nf_device_engine_find_neighbors(of->gpu, 0, 0));
    } while (!is_valid(of->gpu));
    CHECK(nf_device_engine_neighbors(of->gpu, 0, 0, &gpu));
    EXPECT(cpu.pairs > POINTS);
    expect_same(&gpu, &cpu);
    return cpu;
}

static nf_device_integers integers(uint64_t values, size_t len, uint32_t integer) {
    const nf_device_integers made = {values, len, integer};
    return made;
}

static void filters(uint32_t precision) {
    static const double cutoffs[9] = {1.0, 0.7, 0.0, 0.7, 0.9, 1.0, 0.0, 1.0, 0.8};
    settings with = defaults(precision);
    with.cpu.strict = with.gpu.strict = 1;
    with.cpu.types = with.gpu.types = 3;
    with.cpu.cutoffs = with.gpu.cutoffs = cutoffs;
    engines of = start(&with);
    const uint64_t types = on_device(types_of_points, sizeof types_of_points);
    CHECK(nf_set_types(of.cpu, 0, same_types, POINTS));
    CHECK(nf_device_engine_set_types_from_device(of.gpu, 0,
                                                 integers(types, POINTS, NF_INTEGER_I64)));
    expect_same_lists(&of);
    CHECK(nf_set_molecules(of.cpu, 0, molecules, POINTS));
    CHECK(nf_device_engine_set_molecules_from_device(
        of.gpu, 0, integers(on_device(molecules, sizeof molecules), POINTS, NF_INTEGER_U32)));
    CHECK(nf_set_target_mask(of.cpu, 0, mask, POINTS));
    CHECK(nf_device_engine_set_target_mask_from_device(of.gpu, 0, on_device(mask, sizeof mask),
                                                       POINTS));
    expect_same_lists(&of);
    CHECK(nf_clear_targets(of.cpu, 0));
    CHECK(nf_clear_exclusions(of.cpu, 0));
    CHECK(nf_device_engine_clear_targets(of.gpu, 0));
    CHECK(nf_device_engine_clear_exclusions(of.gpu, 0));
    CHECK(nf_device_engine_set_types(of.gpu, 0, same_types, POINTS));
    expect_same_lists(&of);

    /* A type that there is not is found by finish(), and the engine goes on. */
    const int64_t wrong = 3;
    uint32_t valid = 7;
    EXPECT(cu_to_device(types + 8 * 17, &wrong, 8) == 0);
    CHECK(nf_device_engine_set_types_from_device(of.gpu, 0,
                                                 integers(types, POINTS, NF_INTEGER_I64)));
    EXPECT(nf_device_engine_finish(of.gpu, &valid) == NF_STATUS_BAD_ARGUMENT && valid == 7);
    EXPECT(strstr(nf_last_error(), "17") != NULL);
    CHECK(nf_device_engine_set_types(of.gpu, 0, same_types, POINTS));
    expect_same_lists(&of);
    stop(&of);
}

static void radii_and_nearest(void) {
    settings with = defaults(NF_PRECISION_F32);
    with.cpu.radii = with.gpu.radii = NF_RADIUS_RULE_SYMMETRIC;
    engines of = start(&with);
    CHECK(nf_set_radii(of.cpu, 0, radii, POINTS));
    CHECK(nf_device_engine_set_radii_from_device(of.gpu, 0, on_device(radii, sizeof radii),
                                                 POINTS));
    expect_same_lists(&of);
    nf_query *query = NULL;
    nf_lists cpu;
    nf_device_lists gpu;
    uint32_t queried = 0;
    CHECK(nf_query_radii_f32(of.cpu, points_f32 + 1, PROBES, 12, radii, PROBES, 0, &query));
    CHECK(nf_query_lists(query, &cpu));
    do {
        const uint64_t probes = of.positions + 4;
        CHECK(nf_device_engine_query_radii(of.gpu, probes, PROBES, radii, PROBES, 0, &queried));
    } while (!is_valid(of.gpu));
    CHECK(nf_device_engine_neighbors(of.gpu, queried, 0, &gpu));
    expect_same(&gpu, &cpu);
    CHECK(nf_query_free(query));
    stop(&of);

    with = defaults(NF_PRECISION_F32);
    with.cpu.order = with.gpu.order = NF_LIST_ORDER_UNSPECIFIED;
    with.cpu.nearest = with.gpu.nearest = 8;
    of = start(&with);
    expect_same_lists(&of);
    stop(&of);
}

/* The arrays of pairs lie one list behind the other on the CPU, with room between on the GPU. */
static void expect_same_numbers(const nf_device_lists *lists, uint64_t on_gpu, const void *on_cpu,
                                const uint64_t *offsets, size_t size) {
    uint64_t *start = on_host(lists->start, 8 * lists->points);
    char *numbers = on_host(on_gpu, size * lists->entries);
    for (size_t i = 0; i < lists->points; ++i) {
        const size_t bytes = size * (offsets[i + 1] - offsets[i]);
        EXPECT(memcmp(numbers + size * start[i], (const char *)on_cpu + size * offsets[i], bytes) ==
               0);
    }
    free(start), free(numbers);
}

static void geometry(uint32_t precision) {
    settings with = defaults(precision);
    engines of = start(&with);
    nf_pairs *pairs = NULL;
    nf_pair_arrays cpu;
    nf_device_pairs gpu;
    CHECK(nf_pairs_new(&pairs));
    CHECK(nf_pair_geometry(of.cpu, 0, 0, QUANTITIES, pairs));
    CHECK(nf_pairs_arrays(pairs, &cpu));
    do {
        CHECK(nf_device_engine_pair_geometry(of.gpu, 0, 0, QUANTITIES));
    } while (!is_valid(of.gpu));
    CHECK(nf_device_engine_geometry(of.gpu, 0, 0, &gpu));
    EXPECT(gpu.precision == precision && gpu.shifts == 0 && gpu.squares == 0);
    const size_t number = precision == NF_PRECISION_F32 ? 4 : 8;
    const nf_device_lists *lists = &gpu.lists;
    expect_same_numbers(lists, lists->indices, cpu.sources, cpu.offsets, 4);
    expect_same_numbers(lists, gpu.targets, cpu.targets, cpu.offsets, 4);
    expect_same_numbers(lists, gpu.images, cpu.images, cpu.offsets, 12);
    expect_same_numbers(lists, gpu.displacements, cpu.displacements, cpu.offsets, 3 * number);
    expect_same_numbers(lists, gpu.distances, cpu.distances, cpu.offsets, number);

    /* The same in arrays of the caller, pair behind pair; too short ones have the first. */
    const size_t room = (size_t)cpu.pairs + 3;
    const size_t sizes[] = {4, 4, 12, 3 * number, number};
    const void *expected[] = {
        cpu.targets, cpu.sources, cpu.images, cpu.displacements, cpu.distances,
    };
    char *blank = malloc(24 * room);
    memset(blank, 77, 24 * room);
    for (int is_short = 0; is_short < 2; ++is_short) {
        nf_device_columns columns = {0, 0, 0, 0, 0, room, NF_INTEGER_U32};
        uint64_t *const places[] = {
            &columns.targets, &columns.sources, &columns.images, &columns.displacements,
            &columns.distances,
        };
        for (int k = 0; k < 5; ++k) {
            *places[k] = on_device(blank, sizes[k] * room);
        }
        const size_t some = is_short ? room / 2 : (size_t)cpu.pairs;
        columns.capacity = is_short ? some : room;
        do {
            CHECK(nf_device_engine_write_pairs(of.gpu, 0, 0, &columns));
        } while (!is_valid(of.gpu));
        uint64_t found = 0;
        CHECK(nf_device_engine_pair_count(of.gpu, 0, 0, &found));
        EXPECT(found == cpu.pairs);
        EXPECT(cu_wait(stream) == 0);
        for (int k = 0; k < 5; ++k) {
            char *copy = on_host(*places[k], sizes[k] * room);
            EXPECT(memcmp(copy, expected[k], sizes[k] * some) == 0);
            EXPECT(memcmp(copy + sizes[k] * some, blank, sizes[k] * (room - some)) == 0);
            free(copy);
        }
    }
    nf_device_columns wrong = {0, 0, 0, 0, 0, 0, NF_INTEGER_U64};
    EXPECT(nf_device_engine_write_pairs(of.gpu, 0, 0, &wrong) == NF_STATUS_BAD_ARGUMENT);
    EXPECT(strstr(nf_last_error(), "NF_INTEGER_U64") != NULL);
    free(blank);
    CHECK(nf_pairs_free(pairs));
    stop(&of);
}

static void points_and_chunks(void) {
    settings with = defaults(NF_PRECISION_F32);
    engines of = start(&with);
    const nf_lists all = expect_same_lists(&of);
    nf_query *query = NULL;
    nf_lists cpu;
    nf_device_lists gpu;
    CHECK(nf_query_points(of.cpu, 0, 0, some, PROBES, &query));
    CHECK(nf_query_lists(query, &cpu));
    const nf_device_integers points = integers(on_device(some, sizeof some), PROBES, NF_INTEGER_U32);
    do {
        CHECK(nf_device_engine_find_neighbors_of(of.gpu, 0, 0, points));
    } while (!is_valid(of.gpu));
    CHECK(nf_device_engine_neighbors_of(of.gpu, 0, 0, &gpu));
    expect_same(&gpu, &cpu);
    CHECK(nf_query_free(query));

    /* Every target is in one chunk, with its list. */
    nf_device_chunks *chunks = NULL;
    uint64_t pairs = 0;
    size_t parts = 0, targets = 0;
    CHECK(nf_device_chunks_new(of.gpu, 0, 0, 0, 4 * all.pairs / 3, &pairs, &chunks));
    EXPECT(pairs == all.pairs);
    for (;; ++parts) {
        nf_device_chunk chunk;
        CHECK(nf_device_chunks_next(of.gpu, chunks, &chunk));
        if (chunk.target_count == 0) {
            break;
        }
        EXPECT(cu_wait(stream) == 0);
        const nf_device_lists *lists = &chunk.pairs.lists;
        uint32_t *names = on_host(chunk.targets, 4 * chunk.target_count);
        uint64_t *start = on_host(lists->start, 8 * lists->points);
        uint32_t *indices = on_host(lists->indices, 4 * lists->entries);
        for (size_t k = 0; k < chunk.target_count; ++k) {
            const uint32_t i = names[k];
            EXPECT(memcmp(indices + start[k], all.indices + all.start[i], 4 * all.count[i]) == 0);
        }
        targets += chunk.target_count;
        free(names), free(start), free(indices);
    }
    EXPECT(parts > 2 && targets == POINTS);
    CHECK(nf_device_chunks_free(chunks));
    stop(&of);
}

/* Lists with a skin: points move, and a kernel over the lists counts the neighbours of now. */
static void skin(void) {
    settings with = defaults(NF_PRECISION_F32);
    with.gpu.order = NF_LIST_ORDER_UNSPECIFIED;
    engines of = start(&with);
    const nf_device_kernel ones = {
        .name = "ones.cu",
        .text = "void pair(const float* u, const Pair& pair, const float* target,\n"
                "          const float* source, float* result) { result[0] = 1.0f; }\n",
        .outputs = 1,
        .reduce = NF_REDUCE_SUM,
    };
    const nf_device_field none = {0, 0, 0};
    nf_device_verlet *lists = NULL;
    uint32_t set = 7;
    CHECK(nf_device_verlet_new(&with.gpu, 0.3f, &lists));
    CHECK(nf_device_verlet_add_points(lists, of.positions, POINTS, &set));
    const uint64_t results = on_device(NULL, 4 * POINTS);
    static float moved[3 * POINTS];
    static uint32_t counts[POINTS];
    for (int step = 0; step < 10; ++step) {
        for (int i = 0; i < 3 * POINTS; ++i) {
            moved[i] = points_f32[i] + 0.03f * (float)(step * (i % 3 - 1));
        }
        EXPECT(cu_to_device(of.positions, moved, sizeof moved) == 0);
        CHECK(nf_update_f32(of.cpu, 0, moved, POINTS, 12));
        CHECK(nf_count_neighbors(of.cpu, 0, 0, counts, POINTS));
        CHECK(nf_device_verlet_update(lists, set, of.positions, POINTS));
        CHECK(nf_device_verlet_refresh(lists, NULL));
        CHECK(nf_device_verlet_traverse(lists, &ones, set, set, none, none, results, POINTS,
                                        NF_DELIVER_WRITE));
        uint32_t valid = 0;
        CHECK(nf_device_verlet_finish(lists, &valid));
        EXPECT(valid == 1 && cu_wait(stream) == 0);
        float *found = on_host(results, 4 * POINTS);
        for (int i = 0; i < POINTS; ++i) {
            EXPECT(found[i] == (float)counts[i]);
        }
        free(found);
    }
    uint64_t builds = 0;
    CHECK(nf_device_verlet_builds(lists, &builds));
    EXPECT(builds >= 2 && builds < 10);
    CHECK(nf_device_verlet_free(lists));
    stop(&of);
}

static void systems(void) {
    enum { SYSTEMS = 4, LAST = POINTS };
    const int64_t offsets[SYSTEMS + 1] = {0, 100, 100, 2000, LAST};
    const double radius = 1.2;
    double cell[9] = {10, 0, 0, 1, 10, 0, 0, 0, 10};
    const uint8_t periodic[3] = {1, 1, 0};
    nf_systems_options settings;
    CHECK(nf_systems_options_init(&settings, sizeof settings));
    settings.order = NF_LIST_ORDER_ASCENDING;
    settings.device = "cpu";
    nf_systems *cpu = NULL;
    nf_pairs *pairs = NULL;
    nf_pair_arrays theirs;
    CHECK(nf_systems_new(&settings, &cpu));
    CHECK(nf_pairs_new(&pairs));
    const nf_systems_input host = {SYSTEMS, offsets, &radius, 1, cell, 1, periodic, 1};
    CHECK(nf_systems_neighbors_f64(cpu, points_f64, POINTS, &host, QUANTITIES, pairs));
    CHECK(nf_pairs_arrays(pairs, &theirs));

    nf_device_systems_options device;
    CHECK(nf_device_systems_options_init(&device, sizeof device));
    device.use_stream = 1;
    device.stream = stream;
    device.precision = NF_PRECISION_F64;
    nf_device_systems *gpu = NULL;
    CHECK(nf_device_systems_new(&device, &gpu));
    const nf_device_systems_input input = {
        on_device(points_f64, sizeof points_f64), POINTS, SYSTEMS,
        on_device(offsets, sizeof offsets), on_device(&radius, sizeof radius), 1,
        on_device(cell, sizeof cell), 1, on_device(periodic, sizeof periodic), 1,
    };
    uint32_t valid = 0;
    while (!valid) {
        CHECK(nf_device_systems_neighbors(gpu, &input, QUANTITIES));
        CHECK(nf_device_systems_finish(gpu, &valid));
    }
    nf_device_system_pairs ours;
    CHECK(nf_device_systems_pairs(gpu, &ours));
    EXPECT(ours.points == POINTS && ours.pairs == theirs.pairs && ours.pairs > POINTS);
    const struct {
        uint64_t gpu;
        const void *cpu;
        size_t bytes;
    } arrays[] = {
        {ours.offsets, theirs.offsets, 8 * (POINTS + 1)},
        {ours.targets, theirs.targets, 4 * theirs.pairs},
        {ours.sources, theirs.sources, 4 * theirs.pairs},
        {ours.images, theirs.images, 12 * theirs.pairs},
        {ours.displacements, theirs.displacements, 24 * theirs.pairs},
        {ours.distances, theirs.distances, 8 * theirs.pairs},
    };
    for (size_t k = 0; k < sizeof arrays / sizeof arrays[0]; ++k) {
        void *copy = on_host(arrays[k].gpu, arrays[k].bytes);
        EXPECT(memcmp(copy, arrays[k].cpu, arrays[k].bytes) == 0);
        free(copy);
    }

    /* The same to arrays of the caller, by a new search and by lists with a skin. */
    const size_t room = (size_t)theirs.pairs + 5;
    char *blank = malloc(24 * room);
    memset(blank, 77, 24 * room);
    const size_t sizes[] = {4, 4, 12, 24, 8};
    const void *expected[] = {
        theirs.targets, theirs.sources, theirs.images, theirs.displacements, theirs.distances,
    };
    nf_device_columns columns = {0, 0, 0, 0, 0, room, NF_INTEGER_U32};
    uint64_t *const places[] = {
        &columns.targets, &columns.sources, &columns.images, &columns.displacements,
        &columns.distances,
    };
    for (int k = 0; k < 5; ++k) {
        *places[k] = on_device(blank, sizes[k] * room);
    }
    nf_device_systems *kept = NULL;
    device.skin = 0.25;
    CHECK(nf_device_systems_new(&device, &kept));
    uint64_t found = 0, builds = 9;
    EXPECT(nf_device_systems_neighbors(kept, &input, QUANTITIES) == NF_STATUS_BAD_ARGUMENT);
    EXPECT(strstr(nf_last_error(), "nf_device_systems_neighbors_into") != NULL);
    EXPECT(nf_device_systems_builds(gpu, &builds) == NF_STATUS_BAD_ARGUMENT && builds == 9);
    nf_device_systems *const searches[] = {gpu, kept, kept};
    for (int search = 0; search < 3; ++search) {
        /* Too little room: all pairs are counted, and nothing is written behind it. */
        columns.capacity = room / 2;
        CHECK(nf_device_systems_neighbors_into(searches[search], &input, &columns, &found));
        EXPECT(found == theirs.pairs);
        columns.capacity = room;
        CHECK(nf_device_systems_neighbors_into(searches[search], &input, &columns, &found));
        EXPECT(found == theirs.pairs);
        for (int k = 0; k < 5; ++k) {
            const size_t bytes = sizes[k] * (size_t)theirs.pairs;
            char *copy = on_host(*places[k], sizes[k] * room);
            EXPECT(memcmp(copy, expected[k], bytes) == 0);
            EXPECT(memcmp(copy + bytes, blank, 5 * sizes[k]) == 0);
            free(copy);
            EXPECT(cu_to_device(*places[k], blank, sizes[k] * room) == 0);
        }
    }
    CHECK(nf_device_systems_builds(kept, &builds));
    EXPECT(builds == 1);
    columns.integer = NF_INTEGER_I64;
    EXPECT(nf_device_systems_neighbors_into(kept, &input, &columns, &found) == NF_STATUS_BAD_ARGUMENT);
    CHECK(nf_device_systems_free(kept));
    free(blank);

    /* A system that cannot be searched is named, and the search goes on. */
    const double nothing = -1.0;
    EXPECT(cu_to_device(input.radii, &nothing, sizeof nothing) == 0);
    CHECK(nf_device_systems_neighbors(gpu, &input, QUANTITIES));
    EXPECT(nf_device_systems_finish(gpu, &valid) != NF_STATUS_OK);
    EXPECT(strstr(nf_last_error(), "radius") != NULL);
    EXPECT(nf_device_systems_pairs(gpu, &ours) == NF_STATUS_NO_LISTS);
    CHECK(nf_device_systems_free(gpu));
    CHECK(nf_pairs_free(pairs));
    CHECK(nf_systems_free(cpu));
}

int main(void) {
    const char *missing = start_driver(&stream);
    if (missing) {
        return skip(missing);
    }
    settings plain = defaults(NF_PRECISION_F32);
    nf_device_engine *engine = NULL;
    if (nf_device_engine_new(&plain.gpu, &engine) != NF_STATUS_OK) {
        return skip(nf_last_error());
    }
    CHECK(nf_device_engine_free(engine));
    make_points();
    filters(NF_PRECISION_F32);
    filters(NF_PRECISION_F64);
    radii_and_nearest();
    geometry(NF_PRECISION_F32);
    geometry(NF_PRECISION_F64);
    points_and_chunks();
    skin();
    systems();
    printf("filters, geometry, queries, chunks, skins and systems: as on the CPU\n");
    return 0;
}

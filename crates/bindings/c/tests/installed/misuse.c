/* Wrong calls from C, under AddressSanitizer: every one has its status, and none touches memory. */

#include <nearfield.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(call, wanted)                                                                       \
    do {                                                                                           \
        const nf_status found = (call);                                                            \
        if (found != (wanted)) {                                                                   \
            fprintf(stderr, "line %d: %s: %s\n", __LINE__, nf_status_text(found), nf_last_error());   \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

int main(void) {
    nf_options options;
    EXPECT(nf_options_init(NULL, sizeof options), NF_STATUS_NULL_POINTER);
    EXPECT(nf_options_init(&options, 4), NF_STATUS_BAD_ARGUMENT);
    EXPECT(nf_options_init(&options, sizeof options), NF_STATUS_OK);
    nf_engine *engine = NULL;
    EXPECT(nf_engine_new(&options, &engine), NF_STATUS_SETUP); /* a radius of 0 */
    options.radius = 1.0;
    EXPECT(nf_engine_new(&options, NULL), NF_STATUS_NULL_POINTER);
    EXPECT(nf_engine_new(&options, &engine), NF_STATUS_OK);

    float *points = malloc(6 * sizeof *points);
    memcpy(points, (float[]){0, 0, 0, 0.5f, 0, 0}, 6 * sizeof *points);
    uint32_t set = 0;
    EXPECT(nf_add_points_f32(engine, points, 2, 12, NULL), NF_STATUS_NULL_POINTER);
    EXPECT(nf_add_points_f32(engine, NULL, 2, 12, &set), NF_STATUS_NULL_POINTER);
    EXPECT(nf_add_points_f32(engine, points, 2, 11, &set), NF_STATUS_BAD_ARGUMENT);
    EXPECT(nf_add_points_f64(engine, (const double *)points, 1, 24, &set), NF_STATUS_PRECISION);
    EXPECT(nf_add_points_f32(engine, points, 2, 12, &set), NF_STATUS_OK);
    free(points); /* coordinates were copied */

    nf_lists lists;
    EXPECT(nf_neighbors(engine, set, set, &lists), NF_STATUS_NO_LISTS);
    EXPECT(nf_find_neighbors(engine), NF_STATUS_OK);
    EXPECT(nf_neighbors(engine, set, set, &lists), NF_STATUS_OK);
    const uint32_t *neighbors = NULL;
    size_t count = 0;
    EXPECT(nf_neighbors_of(engine, &lists, 1, &neighbors, &count), NF_STATUS_OK);
    if (count != 1 || neighbors[0] != 0) {
        return 1;
    }
    EXPECT(nf_warm_up(engine), NF_STATUS_OK);
    EXPECT(nf_warm_up(NULL), NF_STATUS_NULL_POINTER);
    EXPECT(nf_set_radius(engine, 0.25), NF_STATUS_OK);
    EXPECT(nf_neighbors_of(engine, &lists, 1, &neighbors, &count), NF_STATUS_OUT_OF_DATE);
    EXPECT(nf_set_radius(engine, -0.25), NF_STATUS_SETUP);

    /* The usual way to print a failure, in whichever order the arguments are evaluated. */
    char line[300];
    snprintf(line, sizeof line, "%d (%s)", (int)nf_set_radius(engine, -0.5), nf_last_error());
    if (strncmp(line, "5 (", 3) != 0 || strstr(line, "radius") == NULL) {
        fprintf(stderr, "%s\n", line);
        return 1;
    }

    char text[200];
    size_t needed = 0;
    EXPECT(nf_engine_error(engine, text, sizeof text, &needed), NF_STATUS_OK);
    if (strstr(text, "radius") == NULL || needed != strlen(text) + 1) {
        return 1;
    }

    nf_query *query = NULL;
    EXPECT(nf_query_f32(engine, NULL, 1, 12, set, &query), NF_STATUS_NULL_POINTER);
    EXPECT(nf_query_f32(engine, (const float[]){0, 0, 0}, 1, 12, 9, &query),
           NF_STATUS_UNKNOWN_POINT_SET);
    EXPECT(nf_query_f32(engine, (const float[]){0, 0, 0}, 1, 12, set, &query), NF_STATUS_OK);

    nf_device_options device;
    nf_device_engine *device_engine = NULL;
    EXPECT(nf_device_options_init(&device, sizeof device), NF_STATUS_OK);
    device.radius = 1.0;
    device.device = 99;
    EXPECT(nf_device_engine_new(&device, &device_engine), NF_STATUS_DEVICE);
    EXPECT(nf_device_engine_find_neighbors(device_engine, 0, 0), NF_STATUS_NULL_POINTER);

    EXPECT(nf_engine_free((nf_engine *)query), NF_STATUS_BAD_HANDLE);
    EXPECT(nf_query_free(query), NF_STATUS_OK);
    EXPECT(nf_query_free(query), NF_STATUS_BAD_HANDLE);
    EXPECT(nf_engine_free(engine), NF_STATUS_OK);
    EXPECT(nf_engine_free(engine), NF_STATUS_BAD_HANDLE);
    EXPECT(nf_find_neighbors(engine), NF_STATUS_BAD_HANDLE);
    return 0;
}

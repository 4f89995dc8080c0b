/* What the tests of data on a GPU share: checks, and the calls of the driver that a caller makes. A
 * test ends with 77, skipped, where there is no GPU, and fails there when NEARFIELD_REQUIRE_GPU is
 * set. */

#ifndef DEVICE_H
#define DEVICE_H

#include <nearfield.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void fail(int line, const char *what) {
    fprintf(stderr, "line %d: %s\n", line, what);
    exit(1);
}

#define CHECK(call)                                                                                \
    do {                                                                                           \
        if ((call) != NF_STATUS_OK) {                                                              \
            fail(__LINE__, nf_last_error());                                                       \
        }                                                                                          \
    } while (0)
#define EXPECT(holds)                                                                              \
    do {                                                                                           \
        if (!(holds)) {                                                                            \
            fail(__LINE__, #holds);                                                                \
        }                                                                                          \
    } while (0)

static int (*cu_alloc)(uint64_t *, size_t);
static int (*cu_copy_to_device)(uint64_t, const void *, size_t);
static int (*cu_to_host)(void *, uint64_t, size_t);
static int (*cu_wait)(void *);

/* Copies to the GPU, and waits: a copy of pageable memory may return before it has arrived, and the
 * stream of the tests does not wait for the default stream. */
static inline int cu_to_device(uint64_t to, const void *from, size_t bytes) {
    const int copied = cu_copy_to_device(to, from, bytes);
    return copied ? copied : cu_wait(NULL);
}

static inline int skip(const char *why) {
    printf("no GPU: %s\n", why);
    return getenv("NEARFIELD_REQUIRE_GPU") ? 1 : 77;
}

/* A symbol of the driver, as the function that `place` points to. */
static inline int find(void *driver, const char *name, void *place) {
    void *found = dlsym(driver, name);
    memcpy(place, &found, sizeof found);
    return found != NULL;
}

/* Makes the first GPU's primary context current and a stream in it; why not, if it cannot. */
static inline const char *start_driver(void **stream) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *context = NULL;
    if (!driver) {
        return "no driver";
    }
    int (*init)(unsigned) = NULL, (*retain)(void **, int) = NULL, (*current)(void *) = NULL;
    int (*stream_create)(void **, unsigned) = NULL;
    EXPECT(find(driver, "cuInit", &init) && find(driver, "cuDevicePrimaryCtxRetain", &retain));
    EXPECT(find(driver, "cuCtxSetCurrent", &current));
    EXPECT(find(driver, "cuStreamCreate", &stream_create));
    EXPECT(find(driver, "cuMemAlloc_v2", &cu_alloc));
    EXPECT(find(driver, "cuMemcpyHtoD_v2", &cu_copy_to_device));
    EXPECT(find(driver, "cuMemcpyDtoH_v2", &cu_to_host));
    EXPECT(find(driver, "cuStreamSynchronize", &cu_wait));
    if (init(0) != 0 || retain(&context, 0) != 0) {
        return "the driver does not start";
    }
    EXPECT(current(context) == 0 && stream_create(stream, 1) == 0);
    return NULL;
}

static inline uint64_t on_device(const void *data, size_t bytes) {
    uint64_t at = 0;
    EXPECT(cu_alloc(&at, bytes) == 0);
    if (data) {
        EXPECT(cu_to_device(at, data, bytes) == 0);
    }
    return at;
}

/* A copy of an array of the device, to be freed; none of no bytes. */
static inline void *on_host(uint64_t at, size_t bytes) {
    void *data = malloc(bytes + 1);
    EXPECT(data != NULL);
    EXPECT(bytes == 0 || cu_to_host(data, at, bytes) == 0);
    return data;
}

#endif /* DEVICE_H */

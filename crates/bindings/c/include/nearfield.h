/* Nearfield: all neighbours within a radius, and pair interactions over them.
 *
 * How to install, link and use this library is told in docs/embedding.md. The rules that hold for
 * every function:
 *
 * - Functions return a status, NF_STATUS_OK when they did what they say; results go through
 *   pointers, which are left alone otherwise. The text of the last failure on this thread is
 *   nf_last_error(), that of a handle's last failure nf_engine_error() and its like.
 * - A handle is a name, not an address: a null pointer, one that never was a handle and one that
 *   was freed are told apart and refused.
 * - Nothing panics or exits. Should the library fail inside, the status is NF_STATUS_INTERNAL, and
 *   the handle can only be freed.
 * - Threads: different handles are independent. Of one handle, functions that take it by const
 *   pointer (queries, counts, sums, lists that are there) may run at the same time, from any number
 *   of threads; a function that changes it while another runs, or the other way round, is refused
 *   with NF_STATUS_BUSY and changes nothing. No call waits for another one on the same handle.
 * - Arrays are read and written during the call only. Sizes count elements, strides count bytes.
 *   While a call runs, no other thread may write to the arrays that it reads. Arrays for results
 *   must not share memory with others of the same call; that is refused.
 * - Texts end with a NUL: names within 4096 bytes, paths within 65536, kernels within 16777216.
 * - A function that is called back returns by returning. An exception that leaves it ends the
 *   process; what longjmp() or pthread_exit() out of it do is undefined.
 * - Indices and numbers of points are in your order.
 *
 * The interface follows semantic versioning: nf_abi_version() changes with every change that breaks
 * programs; structures that grow carry their size. */

#ifndef NEARFIELD_H
#define NEARFIELD_H

/* Made by cbindgen from crates/bindings/c; do not edit. */

#include <stddef.h>
#include <stdint.h>

/*
 Outcome of a call.
 */
typedef enum {
  /*
   Done.
   */
  NF_STATUS_OK = 0,
  /*
   A pointer that must point to something is null.
   */
  NF_STATUS_NULL_POINTER = 1,
  /*
   Not a handle of this kind, or one that was freed.
   */
  NF_STATUS_BAD_HANDLE = 2,
  /*
   The call would change the handle while others read it, or read it while another changes it:
   from another thread, or from a callback of a call on it.
   */
  NF_STATUS_BUSY = 3,
  /*
   A number, size, stride, name or combination that cannot be used.
   */
  NF_STATUS_BAD_ARGUMENT = 4,
  /*
   The radius or the box cannot be used.
   */
  NF_STATUS_SETUP = 5,
  /*
   Coordinates that cannot be used; the text names the point.
   */
  NF_STATUS_POSITIONS = 6,
  /*
   There is no such point set.
   */
  NF_STATUS_UNKNOWN_POINT_SET = 7,
  /*
   There is no such point.
   */
  NF_STATUS_UNKNOWN_POINT = 8,
  /*
   No current lists: the pair of sets is inactive, or a set was updated since they were found.
   */
  NF_STATUS_NO_LISTS = 9,
  /*
   The lists are older than the last change of the engine; get them again.
   */
  NF_STATUS_OUT_OF_DATE = 10,
  /*
   Lists would exceed the memory limit; the text holds the bytes needed.
   */
  NF_STATUS_MEMORY_LIMIT = 11,
  /*
   Memory is short.
   */
  NF_STATUS_OUT_OF_MEMORY = 12,
  /*
   The device asked for cannot be used; the text says what is missing.
   */
  NF_STATUS_DEVICE = 13,
  /*
   The GPU failed, or refused a program; the text holds the compiler's messages.
   */
  NF_STATUS_GPU = 14,
  /*
   Asked for in another precision than the engine's.
   */
  NF_STATUS_PRECISION = 15,
  /*
   The callback asked to stop.
   */
  NF_STATUS_STOPPED = 16,
  /*
   A file could not be written, or a recording is there already.
   */
  NF_STATUS_TRACE = 17,
  /*
   A defect of the library; the handle can only be freed.
   */
  NF_STATUS_INTERNAL = 18,
} nf_status;

/*
 The precision that coordinates are taken and pairs are decided in.
 */
enum nf_precision
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /*
   float
   */
  NF_PRECISION_F32 = 0,
  /*
   double; not with a hybrid or emulated device.
   */
  NF_PRECISION_F64 = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum nf_precision nf_precision;
#else
typedef uint32_t nf_precision;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/*
 Which pairs of a set with itself stand in lists.
 */
enum nf_list_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /*
   Every pair in the lists of both points.
   */
  NF_LIST_KIND_FULL = 0,
  /*
   Every pair once: in the list of the smaller index, of a point's own images those with a
   lexicographically positive image vector.
   */
  NF_LIST_KIND_HALF = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum nf_list_kind nf_list_kind;
#else
typedef uint32_t nf_list_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/*
 The order inside a list.
 */
enum nf_list_order
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /*
   As found: the same for every number of threads, but not for every device.
   */
  NF_LIST_ORDER_UNSPECIFIED = 0,
  /*
   By index: the same bytes everywhere.
   */
  NF_LIST_ORDER_ASCENDING = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum nf_list_order nf_list_order;
#else
typedef uint32_t nf_list_order;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/*
 Whose radius decides whether two points are neighbours.
 */
enum nf_radius_rule
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /*
   The engine's, for all points.
   */
  NF_RADIUS_RULE_UNIFORM = 0,
  /*
   The target's own, which nf_set_radii() takes.
   */
  NF_RADIUS_RULE_GATHER = 1,
  /*
   The source's own.
   */
  NF_RADIUS_RULE_SCATTER = 2,
  /*
   The larger of the two.
   */
  NF_RADIUS_RULE_SYMMETRIC = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum nf_radius_rule nf_radius_rule;
#else
typedef uint32_t nf_radius_rule;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/*
 Use of a kernel's results.
 */
enum nf_deliver
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /*
   They overwrite what was there.
   */
  NF_DELIVER_WRITE = 0,
  /*
   They are added to it: the way to sum over several source sets.
   */
  NF_DELIVER_ADD = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum nf_deliver nf_deliver;
#else
typedef uint32_t nf_deliver;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/*
 How the contributions of a target's neighbours are combined.
 */
enum nf_reduce
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /*
   Added up; 0 without neighbours.
   */
  NF_REDUCE_SUM = 0,
  /*
   Smallest; infinity without neighbours.
   */
  NF_REDUCE_MIN = 1,
  /*
   Largest; minus infinity without neighbours.
   */
  NF_REDUCE_MAX = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum nf_reduce nf_reduce;
#else
typedef uint32_t nf_reduce;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/*
 Quantities of pairs, to be added up: what is not asked for is not computed.
 */
enum nf_quantity
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /*
   i, the point that has the neighbour.
   */
  NF_QUANTITY_TARGETS = 1,
  /*
   j, the neighbour.
   */
  NF_QUANTITY_SOURCES = 2,
  /*
   S, by how many box vectors the neighbour is moved.
   */
  NF_QUANTITY_IMAGES = 4,
  /*
   D, from the point to its neighbour, moved so.
   */
  NF_QUANTITY_DISPLACEMENTS = 8,
  /*
   d, the length of that.
   */
  NF_QUANTITY_DISTANCES = 16,
  /*
   The vector by which the neighbour is moved; on a GPU only, for sets.
   */
  NF_QUANTITY_SHIFTS = 32,
  /*
   The square of d; on a GPU only, for sets.
   */
  NF_QUANTITY_SQUARES = 64,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum nf_quantity nf_quantity;
#else
typedef uint32_t nf_quantity;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/*
 A type of whole numbers.
 */
enum nf_integer
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /*
   uint32_t
   */
  NF_INTEGER_U32 = 0,
  /*
   int32_t
   */
  NF_INTEGER_I32 = 1,
  /*
   uint64_t
   */
  NF_INTEGER_U64 = 2,
  /*
   int64_t
   */
  NF_INTEGER_I64 = 3,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum nf_integer nf_integer;
#else
typedef uint32_t nf_integer;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/*
 Lists of a pair of sets that are handed out in chunks: nf_chunks_new().
 */
typedef struct nf_chunks nf_chunks;

/*
 Lists of a pair of sets on a GPU that are handed out in chunks: nf_device_chunks_new().
 */
typedef struct nf_device_chunks nf_device_chunks;

/*
 An engine whose points live on a GPU. Made by nf_device_engine_new().
 */
typedef struct nf_device_engine nf_device_engine;

/*
 A search of many systems on a GPU: nf_device_systems_new().
 */
typedef struct nf_device_systems nf_device_systems;

/*
 Lists with a skin on a GPU: found within radius + skin, kept while points move little, and found
 anew when a pair within the radius could be missing. Made by nf_device_verlet_new().
 */
typedef struct nf_device_verlet nf_device_verlet;

/*
 An engine: one radius, one domain, any number of point sets. Made by nf_engine_new().
 */
typedef struct nf_engine nf_engine;

/*
 Pairs and the memory that they are in, used again by later searches: nf_pairs_new().
 */
typedef struct nf_pairs nf_pairs;

/*
 Lists that a query found; they stay as they are whatever becomes of the engine.
 */
typedef struct nf_query nf_query;

/*
 A search of many systems at once: nf_systems_new().
 */
typedef struct nf_systems nf_systems;

/*
 Neighbour lists with a skin: found within radius + skin, kept while points move little, and
 found anew when a pair within the radius could be missing. Made by nf_verlet_new().
 */
typedef struct nf_verlet nf_verlet;

/*
 Some targets with all their neighbours, lent for one call of an nf_batch_function. Displacements
 and squares are float, also of an engine in f64, which rounds them after it has decided pairs.
 */
typedef struct {
  /*
   The targets, by their index in their set.
   */
  const uint32_t *targets;
  /*
   Number of targets.
   */
  size_t target_count;
  /*
   The pairs of target number k are `offsets[k]` to `offsets[k + 1] - 1`; one element more than
   there are targets.
   */
  const uint32_t *offsets;
  /*
   Of every pair the source, by its index in its set; once per periodic image.
   */
  const uint32_t *sources;
  /*
   Of every pair the x of the displacement from target to source, periodic image included.
   */
  const float *dx;
  /*
   The y.
   */
  const float *dy;
  /*
   The z.
   */
  const float *dz;
  /*
   Of every pair the squared distance.
   */
  const float *d2;
  /*
   Number of pairs.
   */
  size_t pairs;
} nf_batch;

/*
 A function that is given every target once, with all its neighbours, from several threads at a
 time. It may write results to places that belong to the targets of its batch alone, may read the
 engine and must not change it (NF_STATUS_BUSY), and must return by returning: no exception and
 no longjmp may leave it. Anything but 0 ends the work early.
 */
typedef int32_t (*nf_batch_function)(void *user, const nf_batch *batch);

/*
 Lists of some targets, viewed where the library keeps them, until the next call with these
 chunks or a change of the engine; freeing either ends the view too. The neighbours of
 `targets[k]` are `indices[offsets[k]]` to `indices[offsets[k + 1] - 1]`.
 */
typedef struct {
  /*
   The targets, by their index in their set, near each other in space.
   */
  const uint32_t *targets;
  /*
   Number of targets; 0 after the last chunk.
   */
  size_t target_count;
  /*
   One element more than there are targets.
   */
  const uint64_t *offsets;
  /*
   The lists, one after the other.
   */
  const uint32_t *indices;
  /*
   Number of neighbours.
   */
  uint64_t pairs;
} nf_chunk;

/*
 Lists on the device: as nf_lists, by CUdeviceptr. Valid until the engine is next changed.
 */
typedef struct {
  /*
   To 64-bit numbers: the first entry of the list of every point.
   */
  uint64_t start;
  /*
   To 32-bit numbers: its length.
   */
  uint64_t count;
  /*
   To 32-bit numbers: the lists.
   */
  uint64_t indices;
  /*
   Number of points.
   */
  size_t points;
  /*
   Numbers at `indices`: those of the lists, and room that belongs to none.
   */
  size_t entries;
} nf_device_lists;

/*
 Lists on the device with numbers of every pair: entry k of an array belongs to entry k of
 `lists.indices`, and every array has as many elements as that. Arrays that were not asked for
 are 0. Valid until the engine is next changed.
 */
typedef struct {
  /*
   The lists, whose entries are the neighbours.
   */
  nf_device_lists lists;
  /*
   To 32-bit numbers: the point that has the neighbour.
   */
  uint64_t targets;
  /*
   To three int32_t a pair: by how many box vectors the neighbour is moved.
   */
  uint64_t images;
  /*
   To three numbers a pair, in the precision of the engine: the vector by which it is moved.
   */
  uint64_t shifts;
  /*
   To three numbers a pair: from the point to its neighbour, moved so.
   */
  uint64_t displacements;
  /*
   To a number a pair: the square of the length of that.
   */
  uint64_t squares;
  /*
   To a number a pair: the length.
   */
  uint64_t distances;
  /*
   An nf_precision: that of the engine.
   */
  uint32_t precision;
} nf_device_pairs;

/*
 Lists of some targets on the device, on the stream of the engine, until the next call with these
 chunks. They are not provisional.
 */
typedef struct {
  /*
   CUdeviceptr to 32-bit numbers: the targets, by their index in their set.
   */
  uint64_t targets;
  /*
   Number of targets; 0 after the last chunk.
   */
  size_t target_count;
  /*
   The lists of these, one per target, and the numbers of pairs that were asked for.
   */
  nf_device_pairs pairs;
} nf_device_chunk;

/*
 Arrays on the device that pairs are written to, by CUdeviceptr; 0 for those that are not wanted.
 Entry k of every array belongs to the same pair. They must not overlap.
 */
typedef struct {
  /*
   To integers of the type that `integer` says: the point of every pair.
   */
  uint64_t targets;
  /*
   The same of its neighbour.
   */
  uint64_t sources;
  /*
   To three int32_t a pair: by how many vectors the neighbour is moved.
   */
  uint64_t images;
  /*
   To three numbers a pair: from the point to its neighbour, moved so; float or double, as the
   positions are.
   */
  uint64_t displacements;
  /*
   To a number a pair, of the same type: the length of that.
   */
  uint64_t distances;
  /*
   Pairs that every array has room for.
   */
  size_t capacity;
  /*
   An nf_integer: NF_INTEGER_U32, NF_INTEGER_I32 or NF_INTEGER_I64.
   */
  uint32_t integer;
} nf_device_columns;

/*
 Settings of an engine on a GPU; nf_device_options_init() sets all but the radius. Settings that
 nf_options has too mean the same.
 */
typedef struct {
  /*
   Size of this structure as the program was compiled; set by nf_device_options_init().
   */
  size_t struct_size;
  /*
   Search radius in the unit of the coordinates; an engine in f32 rounds it to float. The
   largest one where points have radii of their own.
   */
  double radius;
  /*
   Number of the GPU, counted from 0.
   */
  uint32_t device;
  /*
   0, the default: the engine makes a stream of its own; 1: it uses `stream`.
   */
  uint32_t use_stream;
  /*
   A CUstream (cudaStream_t) of the GPU's primary context, null for the default stream; it must
   stay there for as long as the engine.
   */
  void *stream;
  /*
   An nf_precision; NF_PRECISION_F32 by default. Coordinates are arrays of float or of double,
   as it says.
   */
  uint32_t precision;
  /*
   An nf_list_kind; full lists by default.
   */
  uint32_t lists;
  /*
   An nf_list_order; unspecified by default. Ascending lists are sorted on the GPU.
   */
  uint32_t order;
  /*
   0, the default: pairs exactly as far apart as the radius are neighbours; 1: they are not.
   */
  uint32_t strict;
  /*
   An nf_radius_rule; NF_RADIUS_RULE_UNIFORM by default. By any other rule every set needs
   radii of its points: nf_device_engine_set_radii(). Not strictly within the
   radius.
   */
  uint32_t radii;
  /*
   Only this many of the nearest neighbours, nearest first, at equal distances the smaller
   index; 0, the default, for all within the radius. Not with half or ascending lists.
   */
  uint32_t nearest;
  /*
   Number of types of points that `cutoffs` is for; 0, the default, for none.
   */
  uint32_t types;
  /*
   Cells per radius along each axis, 1 to 8; 0, the default, chooses by the points.
   */
  uint32_t subdivision;
  /*
   Bytes on the GPU that the lists of a pair of sets may take; 0, the default, for no limit.
   */
  uint64_t memory_limit;
  /*
   A cut-off for each pair of types, `types` rows of `types` numbers: symmetric, each at most
   the radius, 0 for never. Every set then needs nf_device_engine_set_types(). Copied; not read
   if `types` is 0.
   */
  const double *cutoffs;
  /*
   How cells are mapped to threads, such as "flat"; null, the default, and "auto" are "flat".
   */
  const char *strategy;
  /*
   For every axis 1 where the domain repeats, 0, the default, where it is open.
   */
  uint32_t periodic[3];
  /*
   1: points are expected to stay in the box from `within_low` to `within_high`, which cells
   cover from the start; 0, the default: there is no such box. Points may still leave it.
   */
  uint32_t use_within;
  /*
   For every periodic axis the vector along which the domain repeats; an orthogonal box has its
   lengths on the diagonal. Those of open axes are not read.
   */
  double box_vectors[3][3];
  /*
   The lower corner of that box, in the unit of the coordinates; finite.
   */
  float within_low[3];
  /*
   The upper corner.
   */
  float within_high[3];
} nf_device_options;

/*
 Values on the device, a fixed number per point; those of a point begin `stride` numbers behind
 those of the point before.
 */
typedef struct {
  /*
   CUdeviceptr to floats; 0 where a kernel reads nothing.
   */
  uint64_t values;
  /*
   Number of floats there.
   */
  size_t len;
  /*
   Numbers from one point to the next.
   */
  size_t stride;
} nf_device_field;

/*
 A pair kernel as CUDA C++, compiled into the traversal at run time. The text defines

 void pair(const float* uniform, const Pair& pair, const float* target, const float* source,
           float* result);

 where `pair.d[3]` is the displacement from target to source and pair.d2 its square.

 The text runs on the GPU as it is, in the context that the whole process shares, and nothing
 checks what it does there. It must read target and source only below the numbers of channels
 given here and uniform only below the number of parameters, write all numbers of result and
 nothing else, and end for every pair, also for numbers that are NaN or infinite. An access to
 other memory may end the use of CUDA in the process.
 */
typedef struct {
  /*
   Name of the text in the compiler's messages, such as a file name.
   */
  const char *name;
  /*
   The text.
   */
  const char *text;
  /*
   Parameters of the kernel, at most 160; changing them compiles nothing.
   */
  const float *uniforms;
  /*
   Number of parameters.
   */
  size_t uniform_count;
  /*
   Numbers the kernel reads of a target.
   */
  uint32_t target_channels;
  /*
   Numbers it reads of a source.
   */
  uint32_t source_channels;
  /*
   Numbers it gives, 1 to 16.
   */
  uint32_t outputs;
  /*
   An nf_reduce.
   */
  uint32_t reduce;
} nf_device_kernel;

/*
 Whole numbers on the device.
 */
typedef struct {
  /*
   CUdeviceptr to the numbers.
   */
  uint64_t values;
  /*
   How many they are.
   */
  size_t len;
  /*
   An nf_integer: their type.
   */
  uint32_t integer;
} nf_device_integers;

/*
 Settings of a search of systems on a GPU; nf_device_systems_options_init() sets all of them.
 */
typedef struct {
  /*
   Size of this structure as the program was compiled; set by nf_device_systems_options_init().
   */
  size_t struct_size;
  /*
   Number of the GPU, counted from 0.
   */
  uint32_t device;
  /*
   0, the default: the search makes a stream of its own; 1: it uses `stream`.
   */
  uint32_t use_stream;
  /*
   A CUstream, as in nf_device_options; it must stay there for as long as the search.
   */
  void *stream;
  /*
   An nf_precision, that of the positions; NF_PRECISION_F32 by default.
   */
  uint32_t precision;
  /*
   An nf_list_kind; full lists by default.
   */
  uint32_t lists;
  /*
   An nf_integer, the type of targets and sources: NF_INTEGER_U32, the default, or I32 or I64.
   */
  uint32_t integer;
  /*
   1: pairs exactly as far apart as the radius are not neighbours. 0 by default.
   */
  uint32_t strict;
  /*
   In the unit of the coordinates; 0, the default: every call searches. Otherwise lists of
   radius + skin are kept, as nf_systems_options says, and pairs are found by
   nf_device_systems_neighbors_into() alone.
   */
  double skin;
} nf_device_systems_options;

/*
 Systems whose points lie behind each other in one array on the device; all pointers are
 CUdeviceptr.
 */
typedef struct {
  /*
   To three numbers a point, in the precision of the search.
   */
  uint64_t positions;
  /*
   Number of points of all systems.
   */
  size_t points;
  /*
   Number of systems.
   */
  size_t systems;
  /*
   To int64_t: the first point of every system, and the number of points behind the last:
   `systems` + 1 numbers.
   */
  uint64_t offsets;
  /*
   To doubles: a radius of every system, or one for all.
   */
  uint64_t radii;
  /*
   1, or `systems`.
   */
  size_t radius_count;
  /*
   To nine doubles a cell, the rows being its vectors: of every system, or one for all. Vectors
   of open axes are not read. 0 where everything is open.
   */
  uint64_t cells;
  /*
   0, 1 or `systems`.
   */
  size_t cell_count;
  /*
   To three bytes a system, or three for all: not 0 where it repeats along that vector. 0 where
   everything is open.
   */
  uint64_t periodic;
  /*
   0, 1 or `systems`.
   */
  size_t periodic_count;
} nf_device_systems_input;

/*
 Pairs of many systems on the device, by CUdeviceptr, valid until the next search or until this
 one is freed. Entry k of every array belongs to the same pair; pairs are sorted by point,
 neighbour and image. Arrays that were not asked for are 0; others may have room behind the last
 pair.
 */
typedef struct {
  /*
   Number of points.
   */
  size_t points;
  /*
   Number of pairs.
   */
  uint64_t pairs;
  /*
   To 64-bit numbers: the first pair of every point, and behind them the number of pairs.
   */
  uint64_t offsets;
  /*
   To integers of the type of the options: the point of every pair, by its place in the array
   of all systems.
   */
  uint64_t targets;
  /*
   The same of its neighbour.
   */
  uint64_t sources;
  /*
   To three int32_t a pair: by how many vectors the neighbour is moved.
   */
  uint64_t images;
  /*
   To three numbers a pair: from the point to its neighbour, moved so; float or double, as
   `precision` says.
   */
  uint64_t displacements;
  /*
   To a number a pair, of the same type: the length of that.
   */
  uint64_t distances;
  /*
   An nf_precision: that of the search.
   */
  uint32_t precision;
  /*
   An nf_integer: the type of targets and sources.
   */
  uint32_t integer;
} nf_device_system_pairs;

/*
 Settings of an engine; nf_options_init() sets all but the radius, which has no default.
 */
typedef struct {
  /*
   Size of this structure as the program was compiled; set by nf_options_init().
   */
  size_t struct_size;
  /*
   Search radius in the unit of the coordinates; an engine in f32 rounds it to float. The
   largest one where points have radii of their own.
   */
  double radius;
  /*
   An nf_precision; NF_PRECISION_F32 by default.
   */
  uint32_t precision;
  /*
   An nf_list_kind; full lists by default.
   */
  uint32_t lists;
  /*
   An nf_list_order; unspecified by default.
   */
  uint32_t order;
  /*
   0, the default: pairs exactly as far apart as the radius are neighbours; 1: they are not.
   */
  uint32_t strict;
  /*
   An nf_radius_rule; NF_RADIUS_RULE_UNIFORM by default. By any other rule every set needs
   radii of its points: nf_set_radii(). Not strictly within the radius.
   */
  uint32_t radii;
  /*
   Only this many of the nearest neighbours, nearest first, at equal distances the smaller
   index; 0, the default, for all within the radius. Not with half or ascending
   lists.
   */
  uint32_t nearest;
  /*
   Number of types of points that `cutoffs` is for; 0, the default, for none.
   */
  uint32_t types;
  /*
   Worker threads; 0, the default, for one per core.
   */
  uint32_t threads;
  /*
   Cells per radius along each axis, 1 to 8; 0, the default, is 1.
   */
  uint32_t subdivision;
  /*
   Bytes that lists may take, all together; 0, the default, for no limit.
   */
  uint64_t memory_limit;
  /*
   A cut-off for each pair of types, `types` rows of `types` numbers: symmetric, each at most
   the radius, 0 for never. Every set then needs nf_set_types(). Copied; not read if `types` is
   0.
   */
  const double *cutoffs;
  /*
   "auto", "cpu", "gpu", "gpu:1", "hybrid", ...; null, the default, is "auto".
   */
  const char *device;
  /*
   How a GPU maps cells to threads, such as "flat" or "auto"; null, the default, is "flat".
   */
  const char *strategy;
  /*
   For every axis 1 where the domain repeats, 0, the default, where it is open.
   */
  uint32_t periodic[3];
  /*
   For every periodic axis the vector along which the domain repeats; an orthogonal box has its
   lengths on the diagonal. Those of open axes are not read.
   */
  double box_vectors[3][3];
} nf_options;

/*
 Parameters of nf_sph_force().
 */
typedef struct {
  /*
   Support radius of the smoothing kernel, at most the search radius.
   */
  float support;
  /*
   Viscosity coefficient alpha times the speed of sound.
   */
  float alpha_c;
  /*
   3, or 2 for points in a plane, which the smoothing kernel is normalised for.
   */
  uint32_t dimensions;
} nf_sph_force_parameters;

/*
 Fields of a point set for nf_sph_force(), one value (of the velocity three) per point.

 A stride is the bytes from one point's values to the next point's, a multiple of 4: the size of
 your structure where they lie in one, 0 where the values of all points lie one behind the other.
 */
typedef struct {
  /*
   Number of points.
   */
  size_t points;
  /*
   Velocity, three numbers per point.
   */
  const float *velocity;
  /*
   Density.
   */
  const float *density;
  /*
   Pressure.
   */
  const float *pressure;
  /*
   Mass; not read of targets.
   */
  const float *mass;
  /*
   Bytes from one velocity to the next, or 0.
   */
  size_t velocity_stride;
  /*
   Bytes from one density to the next, or 0.
   */
  size_t density_stride;
  /*
   Bytes from one pressure to the next, or 0.
   */
  size_t pressure_stride;
  /*
   Bytes from one mass to the next, or 0.
   */
  size_t mass_stride;
} nf_sph_points;

/*
 Neighbour lists, viewed where the library keeps them: the neighbours of point i are
 `indices[start[i]]` and the `count[i] - 1` entries behind it.

 The pointers are valid until the engine is next changed (any function that takes it by pointer
 to non-const, whatever it returns except NF_STATUS_BUSY) or the query freed. nf_neighbors_of()
 tells lists that are out of date; reading through the pointers does not.
 */
typedef struct {
  /*
   First entry of the list of every point.
   */
  const uint64_t *start;
  /*
   Its length.
   */
  const uint32_t *count;
  /*
   The lists, with room between them that holds nothing of use.
   */
  const uint32_t *indices;
  /*
   Number of points.
   */
  size_t points;
  /*
   Neighbours of all points together.
   */
  uint64_t pairs;
  /*
   Tells this state of the engine from others.
   */
  uint64_t state;
} nf_lists;

/*
 Pairs, viewed where the library keeps them, valid until their handle is next used for a search
 or freed. Entry k of every array belongs to the same pair; pairs are in the order of `targets`.
 Arrays that were not asked for are null.
 */
typedef struct {
  /*
   Number of points that have neighbours looked for.
   */
  size_t points;
  /*
   Number of pairs.
   */
  size_t pairs;
  /*
   The first pair of every point, and behind them the number of pairs.
   */
  const uint64_t *offsets;
  /*
   The point of every pair, and its neighbour.
   */
  const uint32_t *targets;
  /*
   By its index in the array that was searched.
   */
  const uint32_t *sources;
  /*
   Three counts a pair.
   */
  const int32_t *images;
  /*
   Three numbers a pair: float or double, as `precision` says.
   */
  const void *displacements;
  /*
   A number a pair, of the same type.
   */
  const void *distances;
  /*
   An nf_precision: that of the engine, or of the positions of systems.
   */
  uint32_t precision;
} nf_pair_arrays;

/*
 Settings of a search of systems; nf_systems_options_init() sets all of them.
 */
typedef struct {
  /*
   Size of this structure as the program was compiled; set by nf_systems_options_init().
   */
  size_t struct_size;
  /*
   An nf_list_kind; full lists by default.
   */
  uint32_t lists;
  /*
   An nf_list_order; unspecified by default. Pairs of a point ascend by neighbour and image.
   */
  uint32_t order;
  /*
   Worker threads; 0, the default, for one per core.
   */
  uint32_t threads;
  /*
   "cpu", "gpu", "gpu:1"; null, the default, is the CPU, as are "auto" and "hybrid".
   */
  const char *device;
  /*
   In the unit of the coordinates; 0, the default: every call searches. Otherwise lists of
   radius + skin are kept, and a call tests only their pairs until a point has moved by half
   the skin, or anything but the points has changed, which is when it searches anew. Pairs are
   the same, bit for bit. On the CPU only.
   */
  double skin;
  /*
   1: pairs exactly as far apart as the radius are not neighbours. 0 by default.
   */
  uint32_t strict;
} nf_systems_options;

/*
 Cells and radii of systems whose points lie behind each other in one array.
 */
typedef struct {
  /*
   Number of systems.
   */
  size_t systems;
  /*
   The first point of every system, and the number of points behind the last: `systems` + 1
   numbers.
   */
  const int64_t *offsets;
  /*
   A radius of every system, or one for all.
   */
  const double *radii;
  /*
   1, or `systems`.
   */
  size_t radius_count;
  /*
   Nine numbers a cell, the rows being its vectors: of every system, or one for all. Vectors of
   open axes are not read. Null where everything is open.
   */
  const double *cells;
  /*
   0, 1 or `systems`.
   */
  size_t cell_count;
  /*
   Three bytes a system, or three for all: 1 where it repeats along that vector. Null where
   everything is open.
   */
  const uint8_t *periodic;
  /*
   0, 1 or `systems`.
   */
  size_t periodic_count;
} nf_systems_input;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 Calls a function with all pairs of `targets` and `sources` in batches, on the engine's worker
 threads; NF_STATUS_STOPPED when it asked to end early. A named GPU finds the pairs; no lists are
 written or needed.

 # Safety
 The function may be called from several threads at a time with `user`.
 */
nf_status nf_for_each_batch(const nf_engine *engine,
                            uint32_t targets,
                            uint32_t sources,
                            nf_batch_function function,
                            void *user);

/*
 Begins the lists of a pair of sets in chunks of at most `memory_limit` bytes each; 0 is the
 limit of the engine's options, and without that all lists are one chunk. Neighbours are counted
 now; `pairs`, unless null, gets their number. Free the chunks with nf_chunks_free().

 # Safety
 `pairs` is null or points to a number, `chunks` to a place for a handle.
 */
nf_status nf_chunks_new(const nf_engine *engine,
                        uint32_t targets,
                        uint32_t sources,
                        uint64_t memory_limit,
                        uint64_t *pairs,
                        nf_chunks **chunks);

/*
 Finds the lists of the next chunk; `chunk->target_count` is 0 after the last.
 NF_STATUS_OUT_OF_DATE when the engine was changed since the chunks were begun, or is another.
 After any other failure, such as NF_STATUS_OUT_OF_MEMORY, the next call tries the same chunk
 again. If the engine could not even go on with the chunks, it fails with NF_STATUS_OUT_OF_DATE:
 begin anew.

 # Safety
 `chunk` points to a structure.
 */
nf_status nf_chunks_next(const nf_engine *engine, nf_chunks *chunks, nf_chunk *chunk);

/*
 Frees chunks; a null pointer is ignored.
 */
nf_status nf_chunks_free(nf_chunks *chunks);

/*
 Begins the lists of a pair of sets in chunks of at most `memory_limit` bytes on the GPU each; 0
 is the limit of the engine's options, and without that all lists are one chunk. `quantities` is
 a sum of nf_quantity, 0 for lists alone. Neighbours are counted now, which waits for the device;
 `pairs`, unless null, gets their number. Free the chunks with nf_device_chunks_free().

 # Safety
 `pairs` is null or points to a number, `chunks` to a place for a handle.
 */
nf_status nf_device_chunks_new(nf_device_engine *engine,
                               uint32_t targets,
                               uint32_t sources,
                               uint32_t quantities,
                               uint64_t memory_limit,
                               uint64_t *pairs,
                               nf_device_chunks **chunks);

/*
 Writes the lists of the next chunk; `chunk->target_count` is 0 after the last. All chunks are in
 one storage, which the next overwrites in the order of the stream. NF_STATUS_NO_LISTS when a
 set, or what filters read of its points, was changed since the chunks were begun: begin anew.
 After a failure the next call tries the same chunk again.

 # Safety
 `chunk` points to a structure.
 */
nf_status nf_device_chunks_next(const nf_device_engine *engine,
                                nf_device_chunks *chunks,
                                nf_device_chunk *chunk);

/*
 Frees chunks; a null pointer is ignored.
 */
nf_status nf_device_chunks_free(nf_device_chunks *chunks);

/*
 Writes the pairs of two sets to arrays of the caller, in the order of the points that have them,
 and returns without waiting. Lists that are there are taken, in a box at most twice as wide as
 the radius only those with the geometry that is wanted; otherwise it searches. Nothing is
 written from `capacity` on.

 What is written counts if nf_device_engine_finish() says so and nf_device_engine_pair_count() is
 at most `capacity`. If the count is larger, write again to longer arrays, which does not search
 again.

 # Safety
 `columns` points to a structure whose arrays are on the GPU of the engine, with room for
 `capacity` pairs, and are not used otherwise before nf_device_engine_finish() has returned.
 */
nf_status nf_device_engine_write_pairs(nf_device_engine *engine,
                                       uint32_t targets,
                                       uint32_t sources,
                                       const nf_device_columns *columns);

/*
 The number of pairs of two sets, as the last nf_device_engine_finish() found it, also of those
 that had no room.

 # Safety
 `pairs` points to a number.
 */
nf_status nf_device_engine_pair_count(const nf_device_engine *engine,
                                      uint32_t targets,
                                      uint32_t sources,
                                      uint64_t *pairs);

/*
 Makes an engine on a GPU; free it with nf_device_engine_free(). NF_STATUS_DEVICE where there is
 none.

 # Safety
 `options` points to initialised options whose cut-offs are there and whose text ends with a NUL,
 `engine` to a place for a handle; the stream is as nf_device_options says.
 */
nf_status nf_device_engine_new(const nf_device_options *options, nf_device_engine **engine);

/*
 Frees an engine; a null pointer is ignored.
 */
nf_status nf_device_engine_free(nf_device_engine *engine);

/*
 Copies the text of the last failure on this engine, as nf_engine_error() does.

 # Safety
 As for nf_engine_error().
 */
nf_status nf_device_engine_error(const nf_device_engine *engine,
                                 char *buffer,
                                 size_t capacity,
                                 size_t *needed);

/*
 The CUstream on which the engine does everything.

 # Safety
 `stream` points to a place for it.
 */
nf_status nf_device_engine_stream(const nf_device_engine *engine, void **stream);

/*
 Adds a point set: CUdeviceptr to three numbers a point, which are copied: floats, or doubles in
 an engine in f64. Waits for the device.

 # Safety
 `positions` points to 3 * points such numbers on the engine's GPU, `set` to a number.
 */
nf_status nf_device_engine_add_points(nf_device_engine *engine,
                                      uint64_t positions,
                                      size_t points,
                                      uint32_t *number);

/*
 Gives a set new positions, which are copied; does not wait for the device.

 # Safety
 As for nf_device_engine_add_points().
 */
nf_status nf_device_engine_update(nf_device_engine *engine,
                                  uint32_t number,
                                  uint64_t positions,
                                  size_t points);

/*
 Removes a set, with its points and lists, as nf_remove_set() does.
 */
nf_status nf_device_engine_remove_set(nf_device_engine *engine, uint32_t number);

/*
 Waits for the device. `valid` gets 1 when everything computed since the last call may be used,
 and 0 when points had left their cells or lists their storage: there is room now, repeat what
 was computed since the updates. Also finds what cannot be used of arrays of the device:
 coordinates that are not finite (NF_STATUS_GPU), radii, types and molecules that there are not
 (NF_STATUS_BAD_ARGUMENT, or NF_STATUS_GPU for molecules) and indices that no point has
 (NF_STATUS_UNKNOWN_POINT). The text names the set.

 # Safety
 `valid` points to a number.
 */
nf_status nf_device_engine_finish(nf_device_engine *engine, uint32_t *valid);

/*
 Number of neighbours of every target, into 32-bit numbers on the device.

 # Safety
 `counts` points to `len` numbers on the engine's GPU.
 */
nf_status nf_device_engine_count_neighbors(const nf_device_engine *engine,
                                           uint32_t targets,
                                           uint32_t sources,
                                           uint64_t counts,
                                           size_t len);

/*
 The order in which the cells hold the points of a set, into 32-bit numbers on the device.

 # Safety
 `order` points to `len` numbers on the engine's GPU.
 */
nf_status nf_device_engine_order(const nf_device_engine *engine,
                                 uint32_t number,
                                 uint64_t order,
                                 size_t len);

/*
 Mass density as nf_sph_density(), all on the device.

 With `over_lists` 0 the call searches; with 1 it runs over the lists of these sets that
 nf_device_engine_find_neighbors() or nf_device_engine_pair_geometry() found, so that several
 sums need one search. Sums may then differ in the last bits. NF_STATUS_NO_LISTS when there are
 none. `deliver` is an nf_deliver.

 # Safety
 `mass` and `density` (with `len` floats) are on the engine's GPU.
 */
nf_status nf_device_engine_sph_density(const nf_device_engine *engine,
                                       uint32_t targets,
                                       uint32_t sources,
                                       float support,
                                       uint32_t dimensions,
                                       nf_device_field mass,
                                       uint64_t density,
                                       size_t len,
                                       uint32_t over_lists,
                                       uint32_t deliver);

/*
 Evaluates a kernel of the caller's for all pairs, all on the device. `over_lists` and `deliver`
 are as for nf_device_engine_sph_density().

 # Safety
 The texts end with a NUL and the parameters are there; fields and `results` (with `len` floats,
 the outputs of one target after the other) are on the engine's GPU.
 */
nf_status nf_device_engine_traverse(const nf_device_engine *engine,
                                    const nf_device_kernel *kernel,
                                    uint32_t targets,
                                    uint32_t sources,
                                    nf_device_field target_field,
                                    nf_device_field source_field,
                                    uint64_t results,
                                    size_t len,
                                    uint32_t over_lists,
                                    uint32_t deliver);

/*
 Writes the lists of a pair of sets into memory of the engine on the device.
 */
nf_status nf_device_engine_find_neighbors(nf_device_engine *engine,
                                          uint32_t targets,
                                          uint32_t sources);

/*
 The lists that nf_device_engine_find_neighbors() wrote; nothing is copied. NF_STATUS_NO_LISTS
 when there are none, or a set has been updated since.

 # Safety
 `lists` points to a structure.
 */
nf_status nf_device_engine_neighbors(const nf_device_engine *engine,
                                     uint32_t targets,
                                     uint32_t sources,
                                     nf_device_lists *lists);

/*
 Writes the lists of a pair of sets and, beside their entries, numbers of every pair.
 `quantities` is a sum of nf_quantity, in which NF_QUANTITY_SOURCES changes nothing: the entries
 are the sources. Displacements have the bits that nf_pair_geometry() computes. Replaces the
 lists that were found of these sets.
 */
nf_status nf_device_engine_pair_geometry(nf_device_engine *engine,
                                         uint32_t targets,
                                         uint32_t sources,
                                         uint32_t quantities);

/*
 The lists and arrays that nf_device_engine_pair_geometry() wrote; nothing is copied.
 NF_STATUS_NO_LISTS when there are none, a set has been updated since, or lists alone were found.

 # Safety
 `pairs` points to a structure.
 */
nf_status nf_device_engine_geometry(const nf_device_engine *engine,
                                    uint32_t targets,
                                    uint32_t sources,
                                    nf_device_pairs *pairs);

/*
 Sets options to their defaults. Pass sizeof(nf_device_options).

 # Safety
 `options` is null or points to `size` writable bytes.
 */
nf_status nf_device_options_init(nf_device_options *options, size_t size);

/*
 Gives every point of a set a search radius of its own, from an array of the host, as
 nf_set_radii() does.

 # Safety
 `radii` points to `points` numbers of the host; `points` is the number of points of the set.
 */
nf_status nf_device_engine_set_radii(nf_device_engine *engine,
                                     uint32_t set,
                                     const float *radii,
                                     size_t points);

/*
 The same from CUdeviceptr to floats, which are copied without waiting: for radii that adapt in
 every step. Radii that cannot be used are found by nf_device_engine_finish(); the set then has
 none.

 # Safety
 `radii` points to `points` floats on the engine's GPU.
 */
nf_status nf_device_engine_set_radii_from_device(nf_device_engine *engine,
                                                 uint32_t set,
                                                 uint64_t radii,
                                                 size_t points);

/*
 Gives every point of a set a type, from an array of the host, as nf_set_types() does.

 # Safety
 `types` points to `points` numbers of the host; `points` is the number of points of the set.
 */
nf_status nf_device_engine_set_types(nf_device_engine *engine,
                                     uint32_t set,
                                     const uint32_t *types,
                                     size_t points);

/*
 The same from an array of the device, which is copied without waiting. Types that there are not
 are found by nf_device_engine_finish(); the set then has none.

 # Safety
 `types` are on the engine's GPU.
 */
nf_status nf_device_engine_set_types_from_device(nf_device_engine *engine,
                                                 uint32_t set,
                                                 nf_device_integers types);

/*
 Leaves out pairs of points of a set, from an array of the host, as nf_exclude_pairs() does.

 # Safety
 `points` points to twice `pairs` numbers of the host.
 */
nf_status nf_device_engine_exclude_pairs(nf_device_engine *engine,
                                         uint32_t set,
                                         const uint32_t *points,
                                         size_t pairs);

/*
 Leaves out pairs of a set by a list for every point, from arrays of the host, as
 nf_set_exclusions() does.

 # Safety
 As for nf_set_exclusions().
 */
nf_status nf_device_engine_set_exclusions(nf_device_engine *engine,
                                          uint32_t set,
                                          const uint64_t *offsets,
                                          size_t points,
                                          const uint32_t *indices,
                                          size_t count);

/*
 Leaves out pairs of points of the same molecule, from an array of the host, as
 nf_set_molecules() does.

 # Safety
 `molecules` points to `points` numbers of the host; `points` is the number of points of the set.
 */
nf_status nf_device_engine_set_molecules(nf_device_engine *engine,
                                         uint32_t set,
                                         const uint32_t *molecules,
                                         size_t points);

/*
 The same from an array of the device, which is copied without waiting. Negative numbers and
 those of more than 32 bits are found by nf_device_engine_finish(); jobs of the set are then
 refused until it has exclusions again, or these are cleared.

 # Safety
 `molecules` are on the engine's GPU.
 */
nf_status nf_device_engine_set_molecules_from_device(nf_device_engine *engine,
                                                     uint32_t set,
                                                     nf_device_integers molecules);

/*
 Leaves out no pair of a set any longer.
 */
nf_status nf_device_engine_clear_exclusions(nf_device_engine *engine, uint32_t set);

/*
 Searches for `count` points of a set only, by their numbers on the host in any order, as
 nf_set_targets() does. While targets are chosen, an update of the set waits for the device.

 # Safety
 `indices` points to `count` numbers of the host.
 */
nf_status nf_device_engine_set_targets(nf_device_engine *engine,
                                       uint32_t set,
                                       const uint32_t *indices,
                                       size_t count);

/*
 The same by one byte a point on the host, 0 for the points that are not searched for.

 # Safety
 `mask` points to `points` bytes of the host; `points` is the number of points of the set.
 */
nf_status nf_device_engine_set_target_mask(nf_device_engine *engine,
                                           uint32_t set,
                                           const uint8_t *mask,
                                           size_t points);

/*
 The same by CUdeviceptr to one byte a point. Waits for the device, to learn how many targets
 there are.

 # Safety
 `mask` points to `points` bytes on the engine's GPU.
 */
nf_status nf_device_engine_set_target_mask_from_device(nf_device_engine *engine,
                                                       uint32_t set,
                                                       uint64_t mask,
                                                       size_t points);

/*
 Searches for all points of a set again.
 */
nf_status nf_device_engine_clear_targets(nf_device_engine *engine, uint32_t set);

/*
 Finds the neighbours of free positions in a set. `queried` gets the number of the set that the
 positions are, for nf_device_engine_neighbors() and everything else that can be asked of a set.
 All queries of an engine are this one set; the lists are those of this query until the next.
 Otherwise as nf_query_f32(): lists are full, and cut-offs of types are refused.

 # Safety
 `positions` points to 3 * points numbers in the engine's precision on the engine's GPU,
 `queried` to a number.
 */
nf_status nf_device_engine_query(nf_device_engine *engine,
                                 uint64_t positions,
                                 size_t points,
                                 uint32_t sources,
                                 uint32_t *queried);

/*
 The same for positions with search radii of their own, one for each, on the host: in engines
 with the nf_radius_rule gather or symmetric, and no others.

 # Safety
 As for nf_device_engine_query(), and `radii` points to `radius_count` numbers of the host, which
 must be as many as there are positions.
 */
nf_status nf_device_engine_query_radii(nf_device_engine *engine,
                                       uint64_t positions,
                                       size_t points,
                                       const float *radii,
                                       size_t radius_count,
                                       uint32_t sources,
                                       uint32_t *queried);

/*
 Writes the neighbours in `sources` of some points of `targets`, given by their indices on the
 device in any order, which are copied: list k is that of point `points[k]`. Otherwise as
 nf_query_points(). An index that no point has is found by nf_device_engine_finish(), which
 returns NF_STATUS_UNKNOWN_POINT.

 # Safety
 `points` are on the engine's GPU.
 */
nf_status nf_device_engine_find_neighbors_of(nf_device_engine *engine,
                                             uint32_t targets,
                                             uint32_t sources,
                                             nf_device_integers points);

/*
 The lists that nf_device_engine_find_neighbors_of() wrote last, one for each index; nothing is
 copied. Valid until its next call too. NF_STATUS_NO_LISTS if it found none of these sets, or one
 of them has changed since.

 # Safety
 `lists` points to a structure.
 */
nf_status nf_device_engine_neighbors_of(const nf_device_engine *engine,
                                        uint32_t targets,
                                        uint32_t sources,
                                        nf_device_lists *lists);

/*
 Sets options to their defaults. Pass sizeof(nf_device_systems_options).

 # Safety
 `options` is null or points to `size` writable bytes.
 */
nf_status nf_device_systems_options_init(nf_device_systems_options *options, size_t size);

/*
 Makes a search of many systems on a GPU; free it with nf_device_systems_free().

 # Safety
 `options` points to initialised options, whose stream is as they say, `systems` to a place for a
 handle.
 */
nf_status nf_device_systems_new(const nf_device_systems_options *options,
                                nf_device_systems **systems);

/*
 Frees a search of systems; a null pointer is ignored.
 */
nf_status nf_device_systems_free(nf_device_systems *systems);

/*
 Copies the text of the last failure on this search, as nf_engine_error() does.

 # Safety
 As there.
 */
nf_status nf_device_systems_error(const nf_device_systems *systems,
                                  char *buffer,
                                  size_t capacity,
                                  size_t *needed);

/*
 The CUstream on which the search does everything.

 # Safety
 `stream` points to a place for it.
 */
nf_status nf_device_systems_stream(const nf_device_systems *systems, void **stream);

/*
 Starts to find the pairs of all systems within their radii, and returns without waiting; there
 are none between systems. `quantities` is a sum of nf_quantity, as for
 nf_systems_neighbors_f32(). What is in the arrays is checked by the device; call
 nf_device_systems_finish() next.

 # Safety
 `input` points to a structure whose arrays are on the GPU of the search and are not freed or
 overwritten before nf_device_systems_finish() has returned.
 */
nf_status nf_device_systems_neighbors(nf_device_systems *systems,
                                      const nf_device_systems_input *input,
                                      uint32_t quantities);

/*
 Waits for the last search. `valid` gets 1 when its pairs count, and 0 when there was too little
 room for them: there is enough now, repeat the search. The text of a failure names the system
 that cannot be searched. NF_STATUS_NO_LISTS when no search was started.

 # Safety
 `valid` points to a number; the arrays of the search are still there.
 */
nf_status nf_device_systems_finish(nf_device_systems *systems, uint32_t *valid);

/*
 Finds the pairs of all systems, writes them to arrays of the caller, and waits for it. `pairs`
 gets their number: all of them are written if that is at most `capacity`, and otherwise nothing
 counts and the arrays have to be longer. Pairs are sorted by point, neighbour and image; their
 indices have the type of the options. nf_device_systems_pairs() has none afterwards.

 # Safety
 `input` points to a structure whose arrays are on the GPU of the search, `columns` to one whose
 arrays are there with room for `capacity` pairs, `pairs` to a number.
 */
nf_status nf_device_systems_neighbors_into(nf_device_systems *systems,
                                           const nf_device_systems_input *input,
                                           const nf_device_columns *columns,
                                           uint64_t *pairs);

/*
 How often the lists of a search with a skin were built, the first time included;
 NF_STATUS_BAD_ARGUMENT for a search without a skin.

 # Safety
 `builds` points to a number.
 */
nf_status nf_device_systems_builds(const nf_device_systems *systems, uint64_t *builds);

/*
 The pairs of the last search, once nf_device_systems_finish() said that they count; nothing is
 copied. NF_STATUS_NO_LISTS otherwise.

 # Safety
 `pairs` points to a structure.
 */
nf_status nf_device_systems_pairs(const nf_device_systems *systems, nf_device_system_pairs *pairs);

/*
 Makes lists with a skin, in the unit of the coordinates, for an engine of these options, whose
 radius is the one within which pairs are found; free them with nf_device_verlet_free(). Without
 half lists, k nearest and radii of single points.

 # Safety
 As for nf_device_engine_new().
 */
nf_status nf_device_verlet_new(const nf_device_options *options,
                               float skin,
                               nf_device_verlet **lists);

/*
 Frees lists with a skin; a null pointer is ignored.
 */
nf_status nf_device_verlet_free(nf_device_verlet *lists);

/*
 Copies the text of the last failure on these lists, as nf_engine_error() does.

 # Safety
 As there.
 */
nf_status nf_device_verlet_error(const nf_device_verlet *lists,
                                 char *buffer,
                                 size_t capacity,
                                 size_t *needed);

/*
 The CUstream on which everything is done.

 # Safety
 `stream` points to a place for it.
 */
nf_status nf_device_verlet_stream(const nf_device_verlet *lists, void **stream);

/*
 Adds a point set, as nf_device_engine_add_points() does.

 # Safety
 As there.
 */
nf_status nf_device_verlet_add_points(nf_device_verlet *lists,
                                      uint64_t positions,
                                      size_t points,
                                      uint32_t *set);

/*
 Gives a set new positions, which are copied. The lists stay as they are until
 nf_device_verlet_refresh() or nf_device_verlet_finish(). Another number of points is a new set
 of points, as by nf_device_verlet_replace().

 # Safety
 As for nf_device_engine_add_points().
 */
nf_status nf_device_verlet_update(nf_device_verlet *lists,
                                  uint32_t set,
                                  uint64_t positions,
                                  size_t points);

/*
 Gives a set other points, or the same in another order: their lists are built anew.

 # Safety
 As for nf_device_engine_add_points().
 */
nf_status nf_device_verlet_replace(nf_device_verlet *lists,
                                   uint32_t set,
                                   uint64_t positions,
                                   size_t points);

/*
 Removes a set, with its points and lists; other sets keep their numbers.
 */
nf_status nf_device_verlet_remove_set(nf_device_verlet *lists, uint32_t set);

/*
 Says whether a set searches in another: 1, as all do at first, or 0.
 */
nf_status nf_device_verlet_set_active(nf_device_verlet *lists,
                                      uint32_t targets,
                                      uint32_t sources,
                                      uint32_t active);

/*
 Gives every point of a set a type, as nf_device_engine_set_types() does.

 # Safety
 As there.
 */
nf_status nf_device_verlet_set_types(nf_device_verlet *lists,
                                     uint32_t set,
                                     const uint32_t *types,
                                     size_t points);

/*
 The same from an array of the device. Types that there are not are found by
 nf_device_verlet_refresh() and nf_device_verlet_finish().

 # Safety
 `types` are on the GPU of the lists.
 */
nf_status nf_device_verlet_set_types_from_device(nf_device_verlet *lists,
                                                 uint32_t set,
                                                 nf_device_integers types);

/*
 Leaves out pairs of points of a set, as nf_device_engine_exclude_pairs() does.

 # Safety
 As there.
 */
nf_status nf_device_verlet_exclude_pairs(nf_device_verlet *lists,
                                         uint32_t set,
                                         const uint32_t *points,
                                         size_t pairs);

/*
 Leaves out pairs of a set by lists, as nf_device_engine_set_exclusions() does.

 # Safety
 As there.
 */
nf_status nf_device_verlet_set_exclusions(nf_device_verlet *lists,
                                          uint32_t set,
                                          const uint64_t *offsets,
                                          size_t points,
                                          const uint32_t *indices,
                                          size_t count);

/*
 Leaves out pairs of points of the same molecule, as nf_device_engine_set_molecules() does.

 # Safety
 As there.
 */
nf_status nf_device_verlet_set_molecules(nf_device_verlet *lists,
                                         uint32_t set,
                                         const uint32_t *molecules,
                                         size_t points);

/*
 The same from an array of the device. Numbers that cannot be used are found by
 nf_device_verlet_refresh() and nf_device_verlet_finish().

 # Safety
 `molecules` are on the GPU of the lists.
 */
nf_status nf_device_verlet_set_molecules_from_device(nf_device_verlet *lists,
                                                     uint32_t set,
                                                     nf_device_integers molecules);

/*
 Leaves out no pair of a set any longer.
 */
nf_status nf_device_verlet_clear_exclusions(nf_device_verlet *lists, uint32_t set);

/*
 Builds the lists anew if a pair within the radius could be missing. Waits for the displacements
 of the last updates. `rebuilt`, unless null, gets 1 if they were built and 0 if they were kept.

 # Safety
 `rebuilt` is null or points to a number.
 */
nf_status nf_device_verlet_refresh(nf_device_verlet *lists, uint32_t *rebuilt);

/*
 Whether kernels that were started since the last updates have computed anything. `valid` gets 1
 if so, and 0 when a pair could be missing from the lists: the kernels did nothing, the lists
 were built anew, and the kernels are to be started again. Waits for the displacements of the
 last updates, and for no kernel behind them unless lists are built.

 # Safety
 `valid` points to a number.
 */
nf_status nf_device_verlet_finish(nf_device_verlet *lists, uint32_t *valid);

/*
 Evaluates a kernel of the caller's for all pairs within the radius at the positions of now, over
 the lists; otherwise as nf_device_engine_traverse(). NF_STATUS_OUT_OF_DATE for sets without
 lists: call nf_device_verlet_refresh() first.

 # Safety
 As for nf_device_engine_traverse().
 */
nf_status nf_device_verlet_traverse(const nf_device_verlet *lists,
                                    const nf_device_kernel *kernel,
                                    uint32_t targets,
                                    uint32_t sources,
                                    nf_device_field target_field,
                                    nf_device_field source_field,
                                    uint64_t results,
                                    size_t len,
                                    uint32_t deliver);

/*
 The lists as they were built: every source that was within radius + skin then, and so, while the
 lists are complete, every one within the radius now. NF_STATUS_OUT_OF_DATE when there are none.

 # Safety
 `found` points to a structure.
 */
nf_status nf_device_verlet_candidates(const nf_device_verlet *lists,
                                      uint32_t targets,
                                      uint32_t sources,
                                      nf_device_lists *found);

/*
 The largest displacement of a point of a set since its lists were built, modulo the box, rounded
 up. Waits for the last update.

 # Safety
 `displacement` points to a number.
 */
nf_status nf_device_verlet_displacement(nf_device_verlet *lists,
                                        uint32_t set,
                                        double *displacement);

/*
 How often lists were built, the first time included.

 # Safety
 `builds` points to a number.
 */
nf_status nf_device_verlet_builds(const nf_device_verlet *lists, uint64_t *builds);

/*
 Makes an engine; free it with nf_engine_free().

 # Safety
 `options` points to initialised options whose texts end with a NUL and whose cut-offs are there,
 `engine` to a place for a
 handle.
 */
nf_status nf_engine_new(const nf_options *options, nf_engine **engine);

/*
 Frees an engine; a null pointer is ignored. Lists got from the engine are gone.
 */
nf_status nf_engine_free(nf_engine *engine);

/*
 Copies the text of the last failure on this engine, "" before the first, with its NUL. `needed`,
 unless null, gets the bytes it takes; with a null buffer and capacity 0 nothing is copied.

 # Safety
 `buffer` is null or points to `capacity` bytes, `needed` is null or points to a size.
 */
nf_status nf_engine_error(const nf_engine *engine, char *buffer, size_t capacity, size_t *needed);

/*
 Adds a point set: `points` points of three coordinates, `stride` bytes from one to the next (12
 where they are packed). Sets are numbered from 0 in the order
 added until one is removed. The new set searches all
 sets and is searched by all, itself included. The coordinates are copied.

 # Safety
 `positions` points to `points` points, `set` to a number.
 */
nf_status nf_add_points_f32(nf_engine *engine,
                            const float *positions,
                            size_t points,
                            size_t stride,
                            uint32_t *set);

/*
 The same in double precision, for engines in f64 (which take floats too); 24 bytes is the stride
 of packed points.

 # Safety
 As for nf_add_points_f32().
 */
nf_status nf_add_points_f64(nf_engine *engine,
                            const double *positions,
                            size_t points,
                            size_t stride,
                            uint32_t *set);

/*
 Gives a set new positions; their number may differ from before. Lists that involve the set are
 gone until nf_find_neighbors(). Refused positions leave the set as it was.

 # Safety
 `positions` points to `points` points.
 */
nf_status nf_update_f32(nf_engine *engine,
                        uint32_t set,
                        const float *positions,
                        size_t points,
                        size_t stride);

/*
 The same in double precision.

 # Safety
 As for nf_update_f32().
 */
nf_status nf_update_f64(nf_engine *engine,
                        uint32_t set,
                        const double *positions,
                        size_t points,
                        size_t stride);

/*
 Gives every point of a set a search radius of its own, positive and at most the engine's radius,
 for engines with an nf_radius_rule other than uniform. Radii stay with the numbers of the
 points, and nf_retain_points() keeps them; after an update to another number of points they are
 gone. Lists that involve the set are gone until nf_find_neighbors(). Refused radii leave the set
 as it was.

 # Safety
 `radii` points to `points` numbers; `points` is the number of points of the set.
 */
nf_status nf_set_radii(nf_engine *engine, uint32_t set, const float *radii, size_t points);

/*
 The same with radii in double precision; an engine in single precision rounds them, as it does
 with its own radius.

 # Safety
 As for nf_set_radii().
 */
nf_status nf_set_radii_f64(nf_engine *engine, uint32_t set, const double *radii, size_t points);

/*
 Removes a set, with its points and lists: its number is refused from then on, and other sets
 keep theirs. A set that is added later gets a number that was not given before.
 */
nf_status nf_remove_set(nf_engine *engine, uint32_t set);

/*
 Keeps the points of a set whose entry in `keep`, one byte a point, is not 0, and removes all
 others. Points that are kept stay in their order and are renumbered from 0. Lists that involve
 the set are gone until nf_find_neighbors(), unless no point was removed.

 # Safety
 `keep` points to `points` bytes.
 */
nf_status nf_retain_points(nf_engine *engine, uint32_t set, const uint8_t *keep, size_t points);

/*
 Number of points in an array of `numbers` coordinates, three per point; numbers that are not
 whole points are refused.

 # Safety
 `points` points to a number.
 */
nf_status nf_whole_points(size_t numbers, size_t *points);

/*
 Number of point sets.

 # Safety
 `sets` points to a number.
 */
nf_status nf_point_sets(const nf_engine *engine, size_t *sets);

/*
 Number of points of a set.

 # Safety
 `points` points to a number.
 */
nf_status nf_points(const nf_engine *engine, uint32_t number, size_t *points);

/*
 Whether `targets` search among `sources`: 1, as for every pair at first, or 0.
 */
nf_status nf_set_active(nf_engine *engine, uint32_t targets, uint32_t sources, uint32_t active);

/*
 Whether every set searches among every set, later ones included: 1, as at first, or 0;
 nf_set_active() then sets single pairs. For many sets that meet few others each, such as the
 bodies of a scene.
 */
nf_status nf_set_all_active(nf_engine *engine, uint32_t active);

/*
 Reads the setting of nf_set_active() and nf_set_all_active().

 # Safety
 `active` points to a number.
 */
nf_status nf_is_active(const nf_engine *engine,
                       uint32_t targets,
                       uint32_t sources,
                       uint32_t *active);

/*
 Changes the search radius; all lists are gone until nf_find_neighbors(). An engine in f32 rounds
 it to float.
 */
nf_status nf_set_radius(nf_engine *engine, double radius);

/*
 The search radius.

 # Safety
 `radius` points to a number.
 */
nf_status nf_radius(const nf_engine *engine, double *radius);

/*
 Makes ready now what later steps would otherwise make when they first need it, for the jobs that
 the engine has done so far: the GPU of NF_DEVICE_AUTO, compiled programs, and page-locked
 memory. Returns when all of it is there. Before any job it is the lists of all active pairs of
 sets. Results are dropped, and lists are asked for again by nf_neighbors(). Without a GPU there
 is nothing to make ready.
 */
nf_status nf_warm_up(nf_engine *engine);

/*
 The order that makes a set local in memory: the present index of the point to be put at every
 place. Apply it to all arrays of the set and update the set, every few dozen steps.

 # Safety
 `order` points to `len` numbers; `len` is the number of points.
 */
nf_status nf_z_sort(const nf_engine *engine, uint32_t number, uint32_t *order, size_t len);

/*
 The report of the engine's last step, as JSON: the device and the reason for it, milliseconds
 of each stage, point sets, pairs, bytes. Copied as nf_engine_error() copies.

 # Safety
 As for nf_engine_error().
 */
nf_status nf_report(const nf_engine *engine, char *buffer, size_t capacity, size_t *needed);

/*
 Gives every point of a set a type, below the number of types of the engine's cut-offs. Types
 stay with the numbers of the points, and nf_retain_points() keeps them; after an update to
 another number of points they are asked for anew. Lists that involve the set are gone until
 nf_find_neighbors(). Refused types leave the set as it was.

 # Safety
 `types` points to `points` numbers; `points` is the number of points of the set.
 */
nf_status nf_set_types(nf_engine *engine, uint32_t set, const uint32_t *types, size_t points);

/*
 Leaves out pairs of points of a set: two numbers of points for each of `pairs` pairs, in any
 order, such as bonds. A pair is left out in every periodic image. Exclusions replace those given
 before; otherwise as nf_set_types().

 # Safety
 `points` points to twice `pairs` numbers.
 */
nf_status nf_exclude_pairs(nf_engine *engine, uint32_t set, const uint32_t *points, size_t pairs);

/*
 Leaves out pairs of a set by a list for every point, as one array: the points that point i
 excludes are the entries of `indices` from `offsets[i]` to the one before `offsets[i + 1]`,
 ascending. Lists must be symmetric. Otherwise as nf_exclude_pairs().

 # Safety
 `offsets` points to `points` + 1 numbers, where `points` is the number of points of the set, and
 `indices` to `count` numbers.
 */
nf_status nf_set_exclusions(nf_engine *engine,
                            uint32_t set,
                            const uint64_t *offsets,
                            size_t points,
                            const uint32_t *indices,
                            size_t count);

/*
 Leaves out pairs of points of the same molecule, whose number is given for every point of the
 set, and the images of a point itself; otherwise as nf_exclude_pairs(), which it replaces.

 # Safety
 `molecules` points to `points` numbers; `points` is the number of points of the set.
 */
nf_status nf_set_molecules(nf_engine *engine,
                           uint32_t set,
                           const uint32_t *molecules,
                           size_t points);

/*
 Leaves out no pair of a set any longer.
 */
nf_status nf_clear_exclusions(nf_engine *engine, uint32_t set);

/*
 Searches for `count` points of a set only, by their numbers in any order. The others have empty
 lists and no neighbours counted, and sums leave their results as they are; they are found as
 before. Otherwise as nf_set_types(). Not with half lists.

 # Safety
 `indices` points to `count` numbers.
 */
nf_status nf_set_targets(nf_engine *engine, uint32_t set, const uint32_t *indices, size_t count);

/*
 The same by one byte a point, 0 for the points that are not searched for.

 # Safety
 `mask` points to `points` bytes; `points` is the number of points of the set.
 */
nf_status nf_set_target_mask(nf_engine *engine, uint32_t set, const uint8_t *mask, size_t points);

/*
 Searches for all points of a set again.
 */
nf_status nf_clear_targets(nf_engine *engine, uint32_t set);

/*
 Number of neighbours in `sources` of every point of `targets`; no lists are written or needed.

 # Safety
 `counts` points to `len` numbers; `len` is the number of targets.
 */
nf_status nf_count_neighbors(const nf_engine *engine,
                             uint32_t targets,
                             uint32_t sources,
                             uint32_t *counts,
                             size_t len);

/*
 Mass density of every target: the sum of m W(d) over its neighbours in `sources`, its own m W(0)
 left out, with the C2 kernel of Wendland (1995, DOI 10.1007/BF02123482).

 The kernel is normalised for `dimensions`: 3, or 2 for points in a plane, whose densities are
 masses per area. `deliver` is an nf_deliver. A support larger than the search radius is refused.
 The kernel computes in float, also in an engine in f64, which rounds distances for it after it
 has decided pairs in double.

 `mass_stride` is the bytes from one mass to the next, a multiple of 4; 0 where they lie one
 behind the other.

 # Safety
 `mass` points to `masses` numbers, one per source, at these distances, `density` to `len`
 numbers, one per target.
 */
nf_status nf_sph_density(const nf_engine *engine,
                         uint32_t targets,
                         uint32_t sources,
                         float support,
                         uint32_t dimensions,
                         const float *mass,
                         size_t masses,
                         size_t mass_stride,
                         float *density,
                         size_t len,
                         uint32_t deliver);

/*
 Acceleration of every target by the pressure and the artificial viscosity of its neighbours in
 `sources` (Monaghan 1992, DOI 10.1146/annurev.aa.30.090192.002551, eq. 3.3 and 4.1).

 Accelerations have three numbers also for points in a plane. `deliver` is an nf_deliver. A
 support larger than the search radius is refused. The kernel computes in float, as that of
 nf_sph_density().

 # Safety
 The fields hold as many points as they say, `acceleration` three numbers for each of `len`
 targets.
 */
nf_status nf_sph_force(const nf_engine *engine,
                       uint32_t targets,
                       uint32_t sources,
                       const nf_sph_force_parameters *parameters,
                       const nf_sph_points *target_fields,
                       const nf_sph_points *source_fields,
                       float *acceleration,
                       size_t len,
                       uint32_t deliver);

/*
 Writes the lists of every active pair of sets.
 */
nf_status nf_find_neighbors(nf_engine *engine);

/*
 The lists that nf_find_neighbors() wrote for a pair of sets; nothing is copied.

 # Safety
 `lists` points to a structure.
 */
nf_status nf_neighbors(const nf_engine *engine,
                       uint32_t targets,
                       uint32_t sources,
                       nf_lists *lists);

/*
 The neighbours of one point in lists of this engine; NF_STATUS_OUT_OF_DATE when the engine was
 changed since they were got. In loops over all points read the lists directly.

 # Safety
 `lists` points to lists that nf_neighbors() filled and that were not altered, `neighbors` and
 `count` to places for the results.
 */
nf_status nf_neighbors_of(const nf_engine *engine,
                          const nf_lists *lists,
                          size_t point,
                          const uint32_t **neighbors,
                          size_t *count);

/*
 Copies lists one behind the other: those of point i are `indices[offsets[i]]` to
 `indices[offsets[i + 1] - 1]`, as sparse matrices have them. `offsets_len` is the number of
 points and one, `indices_len` the number of pairs; nf_neighbors() tells both.

 # Safety
 The arrays have as many elements as is said.
 */
nf_status nf_neighbors_csr(const nf_engine *engine,
                           uint32_t targets,
                           uint32_t sources,
                           uint64_t *offsets,
                           size_t offsets_len,
                           uint32_t *indices,
                           size_t indices_len);

/*
 Sets options to their defaults. Pass sizeof(nf_options): a size that is not the library's is
 refused, because header and library are then of different versions.

 # Safety
 `options` is null or points to `size` writable bytes.
 */
nf_status nf_options_init(nf_options *options, size_t size);

/*
 Makes a place for pairs, which searches fill; free it with nf_pairs_free().

 # Safety
 `pairs` points to a place for a handle.
 */
nf_status nf_pairs_new(nf_pairs **pairs);

/*
 Frees pairs; a null pointer is ignored.
 */
nf_status nf_pairs_free(nf_pairs *pairs);

/*
 The arrays of the last search; nothing is copied.

 # Safety
 `arrays` points to a structure.
 */
nf_status nf_pairs_arrays(const nf_pairs *pairs, nf_pair_arrays *arrays);

/*
 Copies the neighbours of the last search, which was asked for NF_QUANTITY_SOURCES, into rows of
 a fixed length: those of point i are the first numbers of `indices` from i * max_neighbors on,
 and `fill` stands in the other places. `counts` gets how many of a row are neighbours. A point
 that has more than `max_neighbors` keeps the first, in the order of the search; `largest` gets
 how many neighbours a point has at most, so look whether it is larger than the rows are long.
 Entry k of row i belongs to pair `offsets[i]` + k of nf_pairs_arrays().

 # Safety
 `indices` points to `indices_len` numbers, which must be points * max_neighbors, `counts` to
 `points`, which must be the number of points, and `largest` to a number.
 */
nf_status nf_pairs_padded(const nf_pairs *pairs,
                          size_t max_neighbors,
                          uint32_t fill,
                          uint32_t *indices,
                          size_t indices_len,
                          uint32_t *counts,
                          size_t points,
                          size_t *largest);

/*
 Finds the neighbours of every point of one set in another with the geometry of each pair.
 `quantities` is a sum of nf_quantity. No lists are written or needed. Where it fails there are
 no pairs. `pairs` keeps the memory of the engine's pairs too, for the next call.
 */
nf_status nf_pair_geometry(const nf_engine *engine,
                           uint32_t targets,
                           uint32_t sources,
                           uint32_t quantities,
                           nf_pairs *pairs);

/*
 Finds the neighbours in a set of positions that are not points; free what is found with
 nf_query_free(). Any number of threads may query an engine at the same time.

 # Safety
 `positions` points to `points` points, `query` to a place for a handle.
 */
nf_status nf_query_f32(const nf_engine *engine,
                       const float *positions,
                       size_t points,
                       size_t stride,
                       uint32_t sources,
                       nf_query **query);

/*
 The same in double precision.

 # Safety
 As for nf_query_f32().
 */
nf_status nf_query_f64(const nf_engine *engine,
                       const double *positions,
                       size_t points,
                       size_t stride,
                       uint32_t sources,
                       nf_query **query);

/*
 The same for positions with search radii of their own, one for each, positive and at most the
 engine's radius: in engines with the nf_radius_rule gather or symmetric, and no others.

 # Safety
 As for nf_query_f32(), and `radii` points to `radius_count` numbers, which must be as many as
 there are positions.
 */
nf_status nf_query_radii_f32(const nf_engine *engine,
                             const float *positions,
                             size_t points,
                             size_t stride,
                             const float *radii,
                             size_t radius_count,
                             uint32_t sources,
                             nf_query **query);

/*
 The same in double precision.

 # Safety
 As for nf_query_radii_f32().
 */
nf_status nf_query_radii_f64(const nf_engine *engine,
                             const double *positions,
                             size_t points,
                             size_t stride,
                             const double *radii,
                             size_t radius_count,
                             uint32_t sources,
                             nf_query **query);

/*
 Finds the neighbours in a set of some points of another, or of the same, given by their indices
 in any order: the lists of the query are theirs, one per index. Lists are full; the engine's
 filters hold, but nf_set_targets() does not matter.

 # Safety
 `points` points to `point_count` indices, `query` to a place for a handle.
 */
nf_status nf_query_points(const nf_engine *engine,
                          uint32_t targets,
                          uint32_t sources,
                          const uint32_t *points,
                          size_t point_count,
                          nf_query **query);

/*
 The lists of a query, one per position or index; nothing is copied.

 # Safety
 `lists` points to a structure.
 */
nf_status nf_query_lists(const nf_query *query, nf_lists *lists);

/*
 Frees a query; a null pointer is ignored.
 */
nf_status nf_query_free(nf_query *query);

/*
 The text of the last failure on this thread, "" before the first, of at most 4095 bytes: a
 longer one is cut, and whole in nf_engine_error() and its like. Never null. The pointer is the
 same for as long as the thread runs; the next failure on this thread writes its text there, so
 copy a text that is to stay.
 */
const char *nf_last_error(void);

/*
 A status in words, for messages; never null.
 */
const char *nf_status_text(int32_t status);

/*
 Version of the interface, which changes when programs have to: a program made for one version
 must not run with another.
 */
uint32_t nf_abi_version(void);

/*
 Version of the library, such as "0.1.0"; never null.
 */
const char *nf_version(void);

/*
 Sets options to their defaults. Pass sizeof(nf_systems_options).

 # Safety
 `options` is null or points to `size` writable bytes.
 */
nf_status nf_systems_options_init(nf_systems_options *options, size_t size);

/*
 Makes a search of many systems; free it with nf_systems_free().

 # Safety
 `options` points to initialised options whose text ends with a NUL, `systems` to a place for a
 handle.
 */
nf_status nf_systems_new(const nf_systems_options *options, nf_systems **systems);

/*
 Frees a search of systems; a null pointer is ignored.
 */
nf_status nf_systems_free(nf_systems *systems);

/*
 Copies the text of the last failure on this search, as nf_engine_error() does.

 # Safety
 `buffer` is null or points to `capacity` bytes, `needed` is null or points to a size.
 */
nf_status nf_systems_error(const nf_systems *systems,
                           char *buffer,
                           size_t capacity,
                           size_t *needed);

/*
 Finds the pairs of all systems within their radii; there are none between systems. `positions`
 has three numbers for each of `points` points, one behind the other. `quantities` is a sum of
 nf_quantity; targets and sources are places in the whole array. The text of a failure names the
 system; there are no pairs then.

 # Safety
 `positions` points to `points` points, `input` to a structure whose arrays are there.
 */
nf_status nf_systems_neighbors_f32(nf_systems *systems,
                                   const float *positions,
                                   size_t points,
                                   const nf_systems_input *input,
                                   uint32_t quantities,
                                   nf_pairs *pairs);

/*
 The same in double precision.

 # Safety
 As for nf_systems_neighbors_f32().
 */
nf_status nf_systems_neighbors_f64(nf_systems *systems,
                                   const double *positions,
                                   size_t points,
                                   const nf_systems_input *input,
                                   uint32_t quantities,
                                   nf_pairs *pairs);

/*
 How often the lists of a search with a skin were built, the first time included, by the calls in
 float and in double together; NF_STATUS_BAD_ARGUMENT for a search without a skin.

 # Safety
 `builds` points to a number.
 */
nf_status nf_systems_builds(const nf_systems *systems, uint64_t *builds);

/*
 Records the work of all engines of this process from now on to a file that `nearfield trace`
 reads. Once per process.

 # Safety
 `path` points to a text that ends with a NUL.
 */
nf_status nf_trace_start(const char *path);

/*
 Ends the recording and says whether everything is in the file; without one nothing is done.
 */
nf_status nf_trace_finish(void);

/*
 Makes lists with a skin, in the unit of the coordinates, for an engine of these options, whose
 radius is the one within which pairs are found; free them with nf_verlet_free(). With one radius
 for all points, and without cut-offs and k nearest. A GPU that the options name alone builds the
 lists, and nf_verlet_pair_geometry() searches there at the positions of now.

 # Safety
 `options` points to initialised options whose texts end with a NUL, `lists` to a place for a
 handle.
 */
nf_status nf_verlet_new(const nf_options *options, float skin, nf_verlet **lists);

/*
 Frees lists with a skin; a null pointer is ignored.
 */
nf_status nf_verlet_free(nf_verlet *lists);

/*
 Copies the text of the last failure on these lists, as nf_engine_error() does.

 # Safety
 As there.
 */
nf_status nf_verlet_error(const nf_verlet *lists, char *buffer, size_t capacity, size_t *needed);

/*
 Adds a point set, as nf_add_points_f32() does.

 # Safety
 As there.
 */
nf_status nf_verlet_add_points_f32(nf_verlet *lists,
                                   const float *positions,
                                   size_t points,
                                   size_t stride,
                                   uint32_t *set);

/*
 The same in double precision.

 # Safety
 As there.
 */
nf_status nf_verlet_add_points_f64(nf_verlet *lists,
                                   const double *positions,
                                   size_t points,
                                   size_t stride,
                                   uint32_t *set);

/*
 Gives a set new positions, as nf_update_f32() does. The lists stay as they are until
 nf_verlet_refresh().

 # Safety
 As there.
 */
nf_status nf_verlet_update_f32(nf_verlet *lists,
                               uint32_t set,
                               const float *positions,
                               size_t points,
                               size_t stride);

/*
 The same in double precision.

 # Safety
 As there.
 */
nf_status nf_verlet_update_f64(nf_verlet *lists,
                               uint32_t set,
                               const double *positions,
                               size_t points,
                               size_t stride);

/*
 Builds the lists anew if a pair within the radius could be missing; call it after the updates of
 every step. `rebuilt`, unless null, gets 1 if they were built and 0 if they were kept.

 # Safety
 `rebuilt` is null or points to a number.
 */
nf_status nf_verlet_refresh(nf_verlet *lists, uint32_t *rebuilt);

/*
 Finds the pairs within the radius at the positions of now, with their geometry, as
 nf_pair_geometry() does: from the stored lists, without a search. NF_STATUS_OUT_OF_DATE if
 nf_verlet_refresh() has to be called first.
 */
nf_status nf_verlet_pair_geometry(const nf_verlet *lists,
                                  uint32_t targets,
                                  uint32_t sources,
                                  uint32_t quantities,
                                  nf_pairs *pairs);

/*
 Says whether a set searches in another: 1, as all do at first, or 0.
 */
nf_status nf_verlet_set_active(nf_verlet *lists,
                               uint32_t targets,
                               uint32_t sources,
                               uint32_t active);

/*
 Removes a set, with its points and lists; other sets keep their numbers.
 */
nf_status nf_verlet_remove_set(nf_verlet *lists, uint32_t set);

/*
 How often lists were built, the first time included. Steps divided by it are the steps that a
 list lasts; the skin is chosen by that.

 # Safety
 `builds` points to a number.
 */
nf_status nf_verlet_builds(const nf_verlet *lists, uint64_t *builds);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* NEARFIELD_H */

/* runtime.h: what exists while scripts run: values, objects, tensors, garbage collection, frames, errors.
 *
 * Place in the pipeline: the ground of script.c (statements), program.c (calls) and interp.c (graphs). One runtime a
 * context. Objects are collected by mark and sweep at statement ends; whatever a running expression holds is on
 * the `temps` stack (see ccn__rt_push), so C code never counts references.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_LANG_RUNTIME_H
#define CCN_LANG_RUNTIME_H

#include "ast.h"
#include "graph.h"

#include <stdatomic.h>

/* ---- objects and values ------------------------------------------------------------------------------------------ */

typedef enum ccn__vkind {
  CCN__V_NONE,
  CCN__V_BOOL,
  CCN__V_INT,
  CCN__V_FLOAT,
  CCN__V_OP,   /* a built-in function or op, by name: u.name */
  CCN__V_HOST, /* a function of the host, which lives as long as the context */
  /* objects */
  CCN__V_STRING,
  CCN__V_LIST,
  CCN__V_TUPLE,
  CCN__V_RANGE,
  CCN__V_TENSOR, /* also bundles */
  CCN__V_TYPE,   /* f32[n] local, as an argument of zeros(...) */
  CCN__V_FN,
  CCN__V_PROGRAM,
  CCN__V_SCHEDULE,
  CCN__V_MODULE
} ccn__vkind;

typedef struct ccn__obj {
  struct ccn__obj *next; /* all objects of the runtime */
  uint8_t kind;          /* ccn__vkind */
  bool marked;
  bool pinned;           /* held from outside (the host, constants, modules) */
  struct ccn__obj *gray; /* marked, members not looked at yet (ccn__collect) */
} ccn__obj;

typedef struct ccn__val {
  uint8_t kind;
  bool single; /* of FLOAT: it came from an f32 or narrower tensor; printed with f32's digits */
  union {
    bool b;
    int64_t i;
    double f;
    ccn__name name;
    ccn__obj *o;
    struct ccn__string *string;
    struct ccn__list *list; /* LIST and TUPLE */
    struct ccn__range *range;
    struct ccn__tensor *tensor;
    struct ccn__typeval *type;
    struct ccn__fn *fn;
    struct ccn__program *program;
    struct ccn__schedule *schedule;
    struct ccn__module *module;
    const struct ccn__host_fn *host;
  };
} ccn__val;
#define CCN__NONE_VAL ((ccn__val){.kind = CCN__V_NONE})
/* Before the script runs: a value that is not known, except that it is a tensor with dims, thus no number. */
#define CCN__SOME_TENSOR ((ccn__val){.kind = CCN__V_NONE, .b = true})

typedef struct ccn__string {
  ccn__obj obj;
  size_t n;
  char at[]; /* NUL-terminated */
} ccn__string;

typedef struct ccn__list {
  ccn__obj obj;
  uint32_t n, cap;
  ccn__val *at;
} ccn__list;

typedef struct ccn__range {
  ccn__obj obj;
  int64_t start, end; /* [start, end) */
} ccn__range;

/* ---- buffers and tensors --------------------------------------------------------------------------------------------- */

/* Bytes of one rank's piece of one value. Counted; shared between ranks that hold the same replicated value and
 * between a tensor and the run that reads it; never written while shared (make a new one). */
typedef struct ccn__buf {
  uint32_t refs;
  size_t bytes;
  struct ccn__pool *pool;
  struct ccn__buf *prev, *next; /* in the pool */
  void *data;                   /* 64-byte aligned, unless it is the host's */
  struct ccn__outside *outside; /* whose bytes these are; NULL: the runtime's own */
} ccn__buf;

/* Memory of the host that buffers stand in. Written in place by updates, so nobody else may share such a buffer
 * (ccn__buf_share): what has it is one tensor, and runs that read it. */
typedef struct ccn__outside {
  uint32_t bufs; /* that stand in it; with the last of them it is given back */
  bool read_only;
  void (*release)(void *user);
  void *user;
} ccn__outside;

/* A set of buffers that can be dropped at once: each run of a graph has one, so that an error loses nothing. */
typedef struct ccn__pool {
  ccn__heap *heap;
  ccn__buf *first;
} ccn__pool;

ccn__buf *ccn__buf_new(ccn__pool *p, size_t bytes);  /* refs 1; every byte 0xff, a NaN in each float dtype */
ccn__buf *ccn__buf_room(ccn__pool *p, size_t bytes); /* the same with any bytes: scratch */
static inline ccn__buf *ccn__buf_ref(ccn__buf *b) { return b->refs++, b; }
/* A buffer in the host's memory; counts one more in `o` (on the heap), which goes with its last buffer. */
ccn__buf *ccn__buf_outside(ccn__pool *p, void *data, size_t bytes, ccn__outside *o);
/* For another tensor: the same buffer, or, where it is the host's memory, a copy. */
ccn__buf *ccn__buf_share(ccn__buf *b);
void ccn__buf_unref(ccn__buf *b);               /* NULL allowed */
void ccn__buf_move(ccn__buf *b, ccn__pool *to); /* into another pool; keeps its count */
void ccn__pool_clear(ccn__pool *p);             /* frees all, whatever their counts */

/* The members of a bundle. */
typedef struct ccn__members {
  uint32_t k;
  struct ccn__member {
    uint8_t rank;
    int64_t dim[CCN__MAX_RANK];
    int64_t start, elements; /* in the flat index space */
  } at[];
} ccn__members; /* on the heap, ccn__members_size bytes; freed with the tensor that owns it */
static inline size_t ccn__members_size(uint32_t k) {
  return sizeof(ccn__members) + (size_t)k * sizeof(struct ccn__member);
}

typedef struct ccn__cplace { /* a placement with all sizes known */
  uint8_t kind, op;
  uint16_t dim;
  int32_t coord;
  int64_t unit;
} ccn__cplace;

typedef struct ccn__tensor {
  ccn__obj obj;
  uint8_t dtype, rank, naxes;
  uint8_t bundle;                   /* ccn__bundle_kind; then rank 1 and `members` is there */
  bool host_only;                   /* no script can reach it: its buffers go with the last of the `holds` */
  uint32_t holds;                   /* of the host (api.h) */
  int64_t dim[CCN__MAX_RANK];       /* global */
  ccn__cplace place[CCN__MAX_AXES]; /* logical */
  ccn__members *members;            /* owned, or NULL */
  struct ccn__tensor *home;         /* where its bytes are instead, in slices (storage.c); or NULL */
  uint32_t home_at;                 /* which member of the home, a bundle, it is */
  uint32_t world;                   /* ranks */
  ccn__buf *buf[]; /* one each rank, contiguous row-major local piece; NULL where an at() value is not */
} ccn__tensor;

typedef struct ccn__typeval { /* a type expression evaluated in a script: all sizes known */
  ccn__obj obj;
  uint8_t dtype, rank, naxes;
  bool has_dims;
  int64_t dim[CCN__MAX_RANK];
  ccn__cplace place[CCN__MAX_AXES];
} ccn__typeval;

/* ---- scopes, functions, programs ----------------------------------------------------------------------------------------- */

typedef struct ccn__env { /* a scope of script names; closures keep it alive: it is an object (kind NONE) */
  ccn__obj obj;
  struct ccn__env *outer;
  uint32_t n, cap;
  struct ccn__binding {
    ccn__name name;
    ccn__val value;
  } * at; /* in order of definition; behind `cap` of them an index by name, if there are many (runtime.c) */
} ccn__env;

typedef struct ccn__fn {
  ccn__obj obj;
  const ccn__ast *ast; /* FN or LAMBDA */
  ccn__env *env;
  ccn__name name; /* NULL: a lambda */
} ccn__fn;

typedef struct ccn__program {
  ccn__obj obj;
  const ccn__ast *ast; /* PROGRAM */
  ccn__name name;
  ccn__env *constants;        /* script names its body reads, with their values when it was defined */
  bool generic;               /* has axis parameters */
  bool broken;                /* its check reported errors: callers stay silent */
  const uint8_t *axis_choice; /* P<dp>: the mesh axis of each axis parameter; NULL: in order */
  struct ccn__spec *specs;    /* lowered forms (program.c) */
  struct ccn__program *choices, *next_choice; /* P<a>, P<b>, ... (program.c) */
  /* P with s: */
  struct ccn__program *base;
  struct ccn__schedule *with;
  const ccn__ast *with_call; /* the schedule as written behind `with`: a name or a call with handles */
  ccn__env *with_env;        /* where it was written: schedules call schedules by name */
} ccn__program;

typedef struct ccn__schedule {
  ccn__obj obj;
  const ccn__ast *ast;
  ccn__name name;
  ccn__program *target; /* of `schedule NAME for PROGRAM`; NULL: generic */
  ccn__env *env;        /* where it was written: schedules call schedules by name */
} ccn__schedule;

typedef struct ccn__module {
  ccn__obj obj;
  const char *path;
  ccn__env *env;
} ccn__module;

/* What the host holds keeps a value alive (api.h). */
typedef struct ccn__hold {
  struct ccn__hold *prev, *next; /* in the runtime */
  ccn__val v;
} ccn__hold;

/* ---- the runtime --------------------------------------------------------------------------------------------------------------- */

typedef struct ccn__frame { /* for "in this call" notes, innermost first */
  struct ccn__frame *outer;
  const char *what; /* a name, "step", or words: "this import"; never NULL */
  ccn__span call;
} ccn__frame;

typedef struct ccn__passed { /* a state of a scheduled graph */
  const ccn__graph *g;
  const ccn__program *program;
  uint32_t step;    /* 0: before the first statement */
  const char *name; /* of the statement; "" for step 0 */
  bool exact;
  ccn__span span;
  uint64_t ns; /* that the statement took, its verification included */
} ccn__passed;

typedef struct ccn__sent { /* bytes that one collective of a program has sent (interp_traffic.c) */
  struct ccn__sent *next;
  const void *text;
  const char *program, *schedule; /* schedule: of `P with s`, or NULL */
  const char *name;               /* of the node */
  uint16_t op;
  uint64_t calls;
  uint64_t sent[]; /* by each rank of the world */
} ccn__sent;

struct ccn__exec;

/* What a backend keeps between calls; the first member of its own struct. Goes before the runtime's buffers. */
typedef struct ccn__engine {
  void (*drop)(struct ccn__engine *e);
} ccn__engine;

typedef struct ccn__rt {
  ccn__heap *heap;
  ccn__arena *arena; /* lives as long as the context: syntax, names, graphs */
  ccn__names *names;
  ccn__diags *diags;
  const ccn_options *options;
  ccn__mesh mesh; /* of the main script, with all sizes known; naxes 0 before the mesh statement */
  ccn__span mesh_span;
  uint32_t world; /* ranks; 1 until a mesh is declared */
  ccn__obj *objects;
  size_t nobjects, next_collect; /* collect when heap->live passes next_collect */
  ccn__pool pool;                /* buffers of tensors */
  CCN__VEC(ccn__val) temps;
  ccn__env *globals;
  CCN__VEC(ccn__env *) roots; /* environments in use, innermost last */
  ccn__frame *frames;
  ccn__span here; /* the statement that runs; stays when memory ends in it */
  bool trial;     /* programs store nothing (ccn_session_type) */
  bool unshared;  /* tests: see ccn__exec */
  bool recording; /* tensors have no elements (record.h) */
  uint32_t depth; /* nesting of evaluation, bounded (CCN0602) */
  volatile int interrupted;
  const _Atomic int *interrupt; /* the context's, set from other threads; may be NULL */
  struct ccn__module_list *modules;
  uint64_t deadline;                       /* of ccn__now_ms; 0: none */
  _Atomic uint64_t moves;                  /* grows while something happens; watchdogs look */
  _Atomic uint32_t rank;                   /* whose piece is being made; likewise */
  uint64_t npolls, ncalls, nops;           /* since the API looked last */
  ccn__sent *traffic[64];                  /* by the node's name; in the arena */
  const struct ccn__host_fn *const *hosts; /* the context's lists; may be NULL */
  const struct ccn__host_op *const *host_ops;
  ccn__hold *holds;
  /* passes/: applies the schedules of P to the graph of its base; NULL after errors. Set by the driver. */
  struct ccn__graph *(*schedule)(struct ccn__rt *rt, struct ccn__graph *g, const ccn__program *p);
  void (*execute)(struct ccn__exec *x); /* the backend; NULL: the interpreter (ccn__interp) */
  void *execute_user;
  ccn__engine *engine;
  void (*passed)(struct ccn__rt *rt, const ccn__passed *p, void *user); /* told of each; NULL: nobody asks */
  void *passed_user;
  ccn__arena scratch;      /* of formatting: what is in it is not needed any more when the next text begins */
  uint32_t per_rank;       /* nesting of per_rank(fn(r) {...}): program calls are refused there */
  ccn__ast_list call_axes; /* of a call f<ax>(...) from the script, while ccn__program_call starts */
} ccn__rt;

void ccn__rt_init(ccn__rt *rt, ccn__heap *heap, ccn__arena *arena, ccn__names *names, ccn__diags *diags,
                  const ccn_options *options); /* allocates nothing */
void ccn__rt_free(ccn__rt *rt); /* objects, buffers, scratch; not the arena. It may be initialised again */
/* After a throw: forgets what the abandoned evaluation held. */
void ccn__rt_unwind(ccn__rt *rt);

void ccn__rt_push(ccn__rt *rt, ccn__val v);                     /* keeps v alive until temps.n is set back */
void *ccn__obj_new(ccn__rt *rt, ccn__vkind kind, size_t bytes); /* zeroed; pushed on temps; throws */
void ccn__collect(ccn__rt *rt);
static inline void ccn__rt_moved(ccn__rt *rt) { /* one thread writes */
  atomic_store_explicit(&rt->moves, atomic_load_explicit(&rt->moves, memory_order_relaxed) + 1,
                        memory_order_relaxed);
}
void ccn__rt_poll(ccn__rt *rt); /* throws CCN_INTERRUPTED; CCN0608 behind the deadline */
uint64_t ccn__now_ns(void);     /* from some point on, steadily */
uint64_t ccn__now_ms(void);

ccn__val ccn__val_string(ccn__rt *rt, const char *s, size_t n);
ccn__list *ccn__list_new(ccn__rt *rt, ccn__vkind list_or_tuple, uint32_t cap);
void ccn__list_add(ccn__rt *rt, ccn__list *l, ccn__val v);
/* A tensor without buffers (all NULL); sizes and placements to be filled in. */
ccn__tensor *ccn__tensor_new(ccn__rt *rt, ccn__dtype t, uint32_t rank);
const char *ccn__val_kind_name(ccn__val v); /* "a list", "a number", ... */
static inline bool ccn__val_is_object(ccn__val v) { return v.kind >= CCN__V_STRING; }

/* A new scope is not on `temps`: whoever makes it pushes it on `roots` or links it to an object at once. */
ccn__env *ccn__env_new(ccn__rt *rt, ccn__env *outer);
ccn__val *ccn__env_find(const ccn__env *e, ccn__name name);   /* in this scope only; NULL if absent */
ccn__val *ccn__env_lookup(const ccn__env *e, ccn__name name); /* here and outwards */
void ccn__env_set(ccn__rt *rt, ccn__env *e, ccn__name name, ccn__val v); /* adds or replaces in this scope */
void ccn__roots_push(ccn__rt *rt, ccn__env *e);                          /* rt->roots.n-- takes it away */

/* Errors of a running script: report, then raise. raise adds a note for each frame and throws CCN_ERROR. */
CCN__NORETURN void ccn__rt_raise(ccn__rt *rt, ccn__diag *d);

/* ---- placed pieces (place.c) ------------------------------------------------------------------------------------------------------ */
/* The piece of a value of global extents `dim` that rank owns: start and extent along each dim (local extents). */
typedef struct ccn__box {
  int64_t start[CCN__MAX_RANK], extent[CCN__MAX_RANK];
  int64_t elements;
} ccn__box;
void ccn__box_of(const ccn__mesh *m, uint32_t rank, uint32_t ndims, const int64_t *dim,
                 const ccn__cplace *place, ccn__box *out);
/* Whether rank holds anything of the value (an at() value exists at one coordinate). */
bool ccn__rank_has(const ccn__mesh *m, uint32_t rank, const ccn__cplace *place);
/* The first rank that holds the same bytes as `rank` because of replicated axes (itself if it is that one). */
uint32_t ccn__rank_twin(const ccn__mesh *m, uint32_t rank, const ccn__cplace *place);
/* Copies the box `src_at .. + extent` (in the source's local coordinates) to `dst_at` in the destination. */
void ccn__copy_box(size_t item, uint32_t ndims, void *dst, const int64_t *dst_extent, const int64_t *dst_at,
                   const void *src, const int64_t *src_extent, const int64_t *src_at, const int64_t *extent);

#endif

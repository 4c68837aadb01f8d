/* interp_eval.h: what the evaluators of the reference interpreter share: run-time values, views, the sum tree's
 * counter, reduction operators, and the loop over ranks.
 *
 * Place in the pipeline: internal to interp*.c, place.c and redop.c.
 *
 * Sharing: a value that is replicated over an axis is computed once, for the rank with coordinate 0 there, and the
 * others refer to the same buffer. With `unshared` every rank computes for itself and the bits are compared.
 * Rules for evaluators: a buffer is written only before it is put into a second piece; references to buffers of
 * other pools are held in pieces only, where the clean-up after an error finds them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_LANG_INTERP_EVAL_H
#define CCN_LANG_INTERP_EVAL_H

#include "interp.h"

enum { CCN__BLOCK = 1024, CCN__BLOCK_LEVEL = 10, CCN__BLOCK_BYTES = 8 * CCN__BLOCK };
_Static_assert(CCN__BLOCK == 1 << CCN__BLOCK_LEVEL, "a block is a complete node of the sum tree");

/* ---- values ---------------------------------------------------------------------------------------------------- */

/* A complete node of the tree of a reduction whose reduced elements lie on several ranks. */
typedef struct ccn__part {
  uint32_t member; /* of a bundle reduced per tensor; else 0 */
  uint32_t level;
  uint64_t start;
} ccn__part;

/* What one rank holds of a value: `buf`, its local elements. If the value has a tree, instead: `nodes`, a sorted
 * array of nparts ccn__part, and in `buf` for each of them the kept elements (one element where the reduction is per
 * tensor) in the accumulation dtype. */
typedef struct ccn__piece {
  ccn__buf *buf, *nodes;
  uint32_t nparts;
} ccn__piece;

typedef struct ccn__value {
  uint8_t dtype, rank, naxes, bundle;
  uint32_t bundle_id;
  uint8_t tree;  /* the axes over which the parts of an owed reduction lie; 0: no parts */
  bool per;      /* of a tree: parts are per tensor of the bundle */
  uint8_t redop; /* of a tree */
  uint8_t nan;   /* 0 not looked yet, 1 none, 2 some */
  bool filled;   /* of a folded twin */
  uint32_t nstate;
  int64_t dim[CCN__MAX_RANK];
  ccn__cplace place[CCN__MAX_AXES];
  ccn__piece *piece;         /* one each rank */
  struct ccn__value *folded; /* of a tree, once somebody needed one value a rank */
  struct ccn__value **state; /* of REPEAT: the carried values, then room for the next ones */
  struct ccn__value *all;    /* every value of the run, for the clean-up */
} ccn__value;

typedef struct ccn__run {
  ccn__exec *x;
  ccn__rt *rt;
  const ccn__graph *g;
  const ccn__mesh *mesh;
  uint32_t world;
  bool unshared;
  ccn__arena arena;
  ccn__pool pool; /* every buffer made by this run */
  ccn__value *all;
  ccn__value **value;              /* of each node, once it was evaluated */
  ccn__id *next;                   /* the next node of the same region */
  ccn__id *first;                  /* of each region */
  ccn__id *free_first, *free_next; /* the values that nobody needs after a node */
  int64_t work;                    /* elements since the last poll */
} ccn__run;

/* In loops over elements. */
static inline void ccn__tick(ccn__run *r, int64_t elements) {
  r->work += elements;
  if (r->work < 16 * CCN__BLOCK) return;
  r->work = 0;
  ccn__rt_poll(r->rt);
}

typedef void ccn__eval_fn(ccn__run *r, const ccn__node *n, ccn__id id);
#define OP(id, name, kind, nin, sig, prule, dtypes, result, build, eval, kernel, params, doc) \
  ccn__eval_fn ccn__eval_##eval;
#include "ops.def"
#undef OP

/* interp.c, for those who walk a graph in their own way (interp_plan.c): */
typedef void ccn__run_fn(ccn__run *r, void *user);
void ccn__interp_with(ccn__exec *x, ccn__run_fn *body, void *user); /* sets up a run, calls body, cleans up */
ccn__value *ccn__value_prepare(ccn__run *r,
                               ccn__id id);          /* the node's value with its sizes, without buffers */
void ccn__run_node(ccn__run *r, ccn__id id);         /* prepares and evaluates; operands are there */
void ccn__value_release(ccn__run *r, ccn__value *v); /* its buffers; v may be NULL */
ccn__tensor *ccn__result_tensor(ccn__run *r, const ccn__value *v); /* for a result, without buffers */
void ccn__run_finish(ccn__run *r); /* outputs and updates are there: results and stores */

/* Operand i, folded to one value a rank if it is owed in parts; with `raw` as it is. */
ccn__value *ccn__operand(ccn__run *r, const ccn__node *n, uint32_t i);
ccn__value *ccn__operand_raw(ccn__run *r, const ccn__node *n, uint32_t i);
ccn__value *ccn__value_new(ccn__run *r);
void ccn__value_share(ccn__run *r, ccn__value *to, const ccn__value *from); /* all pieces, parts included */
void ccn__piece_share(ccn__piece *to, const ccn__piece *from);
void ccn__value_box(ccn__run *r, const ccn__value *v, uint32_t rank, ccn__box *out);
int64_t ccn__run_dim(ccn__run *r, const ccn__node *n, const ccn__dim *d);
ccn__number ccn__run_number(ccn__run *r, const ccn__node *n, ccn__attr_key key); /* of a LIT attribute */
ccn__value *ccn__fold(ccn__run *r, const ccn__node *n, ccn__value *v);           /* v, or its folded twin */

/* One rank's piece of the node that is being evaluated. */
typedef struct ccn__job {
  ccn__run *r;
  const ccn__node *n;
  ccn__value *out;
  uint32_t rank;
  ccn__box box; /* of the result */
  ccn__piece *piece;
  void *user;
} ccn__job;
typedef void ccn__job_fn(ccn__job *j);
/* Calls f for each rank that holds something of the result and shares nobody else's piece. */
void ccn__each_rank(ccn__run *r, const ccn__node *n, ccn__value *out, ccn__job_fn *f, void *user);
void *ccn__job_new(ccn__job *j); /* room for the rank's local elements */

/* Some ranks, ascending. */
typedef struct ccn__ranks {
  uint32_t n;
  uint32_t at[CCN__MAX_RANKS];
} ccn__ranks;
/* Combines the parts that these ranks hold of x into the job's piece: still in parts if the result has a tree, else
 * folded and rounded to the dtype. `average` > 1: the sum is divided by it, in the accumulation dtype. */
void ccn__merge_parts(ccn__job *j, const ccn__value *x, const ccn__ranks *from, int64_t average);

/* Messages. The diagnostic has the node's span; raise adds where it was inlined. */
const char *ccn__node_name(const ccn__node *n);
CCN__NORETURN void ccn__node_raise(ccn__run *r, const ccn__node *n, ccn__diag *d);
CCN__NORETURN void ccn__defect(ccn__run *r, const ccn__node *n, const char *what); /* CCN0699 */
/* "[3, 5]": global coordinates of local element i of a box; in the run's arena. */
const char *ccn__index_text(ccn__run *r, uint32_t ndims, const ccn__box *box, int64_t i);

/* CCN0605: element i of the indices (a box of ndims dims) is outside 0 .. extent - 1. */
CCN__NORETURN void ccn__index_raise(ccn__job *j, uint32_t ndims, const ccn__box *box, int64_t i,
                                    int64_t index, int64_t extent);

/* interp_collective.c: the group of a rank; the rank of its group with coordinate `root`; the rank whose value arrives
 * by a shift or permute, or a number beyond all ranks. */
void ccn__collective_group(const ccn__mesh *m, uint32_t over, uint32_t rank, ccn__ranks *out);
uint32_t ccn__collective_root(const ccn__mesh *m, uint32_t over, uint32_t rank, int64_t root);
uint32_t ccn__collective_sender(const ccn__mesh *m, const ccn__node *n, uint32_t rank);

/* interp_traffic.c: after a node was evaluated. */
void ccn__count_traffic(ccn__run *r, const ccn__node *n, ccn__id id);

/* interp_watch.c */
void ccn__watch_node(ccn__run *r, const ccn__node *n, ccn__id id);
void ccn__check_nan(ccn__run *r, const ccn__node *n, ccn__id id);

/* ---- views (place.c): the elements of a box, by linear index, out of memory laid out otherwise -------------------- */

typedef struct ccn__view {
  const char *base;
  uint32_t item;
  uint32_t n;                                           /* dims after merging, at least 1 */
  int64_t extent[CCN__MAX_RANK], stride[CCN__MAX_RANK]; /* strides in elements */
  const ccn__members
    *members; /* base holds one element for each member; element e is in the one of start + e */
  int64_t start;
} ccn__view;
void ccn__view_init(ccn__view *v, const void *base, size_t item, uint32_t n, const int64_t *extent,
                    const int64_t *stride);
void ccn__view_load(const ccn__view *v, int64_t first, size_t n, void *out);
static inline bool ccn__view_same(const ccn__view *v) { /* every element is the same one */
  return !v->members && v->n == 1 && v->stride[0] == 0;
}
static inline bool ccn__view_flat(const ccn__view *v) {
  return !v->members && v->n == 1 && v->stride[0] == 1;
}
/* n elements from `first`: where they lie if they lie together, else copied to scratch. */
static inline const void *ccn__view_block(const ccn__view *v, int64_t first, size_t n, void *scratch) {
  if (ccn__view_flat(v)) return v->base + first * v->item;
  ccn__view_load(v, first, n, scratch);
  return scratch;
}
/* What `box` of a value of `ndims` dims (aligned right, broadcasting) reads of x on this rank. */
void ccn__view_of(ccn__run *r, const ccn__node *n, ccn__view *v, const ccn__value *x, uint32_t rank,
                  uint32_t ndims, const int64_t *dim, const ccn__box *box);
/* The same where the elements of x's piece are at `base`, `item` bytes each: one part, a widened copy. */
void ccn__view_at(ccn__run *r, const ccn__node *n, ccn__view *v, const ccn__value *x, uint32_t rank,
                  const void *base, size_t item, uint32_t ndims, const int64_t *dim, const ccn__box *box);
/* n elements from `first` in dtype `to`: where they lie, or in `wide` (`raw` is scratch for what must be moved). */
const void *ccn__view_as(const ccn__view *v, ccn__dtype to, ccn__dtype from, int64_t first, size_t n,
                         void *raw, void *wide);
/* Global row-major indices of the local elements [first, first + n) of a box. */
void ccn__global_indices(uint32_t ndims, const int64_t *dim, const ccn__box *box, int64_t first, size_t n,
                         int64_t *out);
void ccn__strides(uint32_t n, const int64_t *extent, int64_t *out); /* row-major, in elements */

/* ---- reduction operators (redop.c) --------------------------------------------------------------------------------- */

typedef struct ccn__redop_row {
  uint8_t kernel; /* out[i] = combine(a[i], b[i]), in the accumulation dtype */
  bool floats_only;
  bool associative, commutative;             /* on integers and where floats do not round */
  bool averages;                             /* at the end divided by the number of ranks */
  void (*identity)(ccn__dtype t, void *out); /* one element */
} ccn__redop_row;
extern const ccn__redop_row ccn__redop_table[CCN__RED_COUNT];
bool ccn__redop_takes(ccn__redop op, ccn__dtype t);
void ccn__redop_combine(ccn__redop op, ccn__dtype acc, void *out, const void *a, const void *b, size_t n);
void ccn__redop_divide(ccn__dtype acc, void *x, size_t n, int64_t ranks); /* x / ranks, floats */
void ccn__fill(void *out, const void *element, size_t item, size_t n);

/* A stack of tree nodes, each a vector of `width` elements in the accumulation dtype. Nodes are pushed in order of
 * their index; complete siblings combine at once, so the stack is the set's maximal complete nodes. */
typedef struct ccn__counter {
  ccn__redop op;
  ccn__dtype acc;
  size_t item, width;
  uint32_t n, cap;
  ccn__part *node;
  char *data;
  ccn__buf *room;
} ccn__counter;
/* Room for `parts` nodes that stay and those in progress. Free with ccn__counter_done (or leave it to the pool). */
void ccn__counter_init(ccn__counter *c, ccn__pool *pool, ccn__redop op, ccn__dtype acc, size_t width,
                       uint64_t parts);
void ccn__counter_done(ccn__counter *c);
void ccn__counter_push(ccn__counter *c, uint64_t start, uint32_t level, const void *vector);
/* width 1: n elements of dtype t with indices start, start + 1, ... */
void ccn__counter_run(ccn__counter *c, uint64_t start, ccn__dtype t, const void *elements, uint64_t n);
/* The tree over what was pushed, absent children skipped; the stack is used up. At least one node was pushed. */
const void *ccn__counter_fold(ccn__counter *c);

#endif

/* graph.h: the typed dataflow graph: single assignment, regions, symbols, constraints.
 *
 * Place in the pipeline: made by lower.c from a program's AST, read by the interpreter, later by passes/. Nodes are
 * numbered in text order; a node's inputs have smaller numbers (carried values excepted, through `repeat`).
 * Values made inside an `on` block may be used behind it: the block is executed exactly once.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_LANG_GRAPH_H
#define CCN_LANG_GRAPH_H

#include "diag.h"
#include "index.h"
#include "op.h"

typedef uint32_t ccn__id;
#define CCN__NO_ID UINT32_MAX

typedef struct ccn__node {
  uint16_t op;
  uint16_t nin;
  uint32_t region; /* in which it stands; 0 = the body */
  uint32_t body;   /* ON, REPEAT: the region they hold; else 0 */
  const ccn__id *in;
  const ccn__type *type;
  ccn__attrs attrs;
  ccn__name name;     /* what people call it: "gsum", "blk[0].z", "norm.sum"; NULL if only `autoname` */
  ccn__name autoname; /* "matmul2": stable, by op and position in its label; NULL for params */
  ccn__span span;
  ccn__span call; /* the call through which it was inlined, or nowhere */
} ccn__node;

typedef struct ccn__region {
  ccn__id owner;        /* the ON or REPEAT node; CCN__NO_ID for the body */
  const ccn__id *yield; /* REPEAT: what the carried values become, one for each CARRY */
  uint32_t nyield;
} ccn__region;

typedef enum ccn__symbol_kind {
  CCN__SYM_DIM,
  CCN__SYM_SIZE /* of mesh axis `index` */,
  CCN__SYM_TOTAL /* of bundle `index` */,
  CCN__SYM_COUNT /* K of bundle `index` */
} ccn__symbol_kind;
typedef struct ccn__symbol {
  ccn__name name;
  uint8_t kind;
  uint32_t index;
  ccn__span span;
} ccn__symbol;

/* What could not be decided while the graph was made and is checked when sizes are known. */
typedef enum ccn__constraint_kind {
  CCN__NEED_WHOLE,    /* x is a whole number (CCN0310) */
  CCN__NEED_EQUAL,    /* x == y (code) */
  CCN__NEED_LESS_EQ,  /* 0 <= x <= y (CCN0309) */
  CCN__NEED_LESS,     /* 0 <= x < y */
  CCN__NEED_MULTIPLE, /* x is a multiple of y (CCN0214) */
  CCN__NEED_BUNDLES   /* bundles number x->… see bx, by: equal K and shapes (CCN0304) */
} ccn__constraint_kind;
typedef struct ccn__constraint {
  uint8_t kind;
  uint16_t code;
  const ccn__dim *x, *y;
  uint32_t bx, by;
  ccn__span span, other; /* primary, and where the other size comes from (may be nowhere) */
} ccn__constraint;

/* Parameters: one PARAM node for each tensor, scalar or bundle, in order; lists and tuples are flattened. */
typedef struct ccn__param {
  ccn__id node;
  ccn__id update; /* the UPDATE that stores to it, or CCN__NO_ID */
} ccn__param;

typedef struct ccn__graph {
  ccn__arena *arena;
  ccn__names *names;
  ccn__name name;
  ccn__mesh mesh;
  CCN__VEC(ccn__node) nodes;
  CCN__VEC(ccn__region) regions;
  CCN__VEC(ccn__symbol) symbols;
  struct
  { /* of symbols 0 .. n-1, if it is this graph's own: graphs are copied, and others add to `symbols` */
    ccn__index index;
    const struct ccn__graph *owner;
    uint32_t n;
  } symbols_by_name;
  CCN__VEC(ccn__constraint) constraints;
  CCN__VEC(ccn__param) params;
  const ccn__id *outputs; /* in order */
  uint32_t noutputs;
  bool returns_tuple; /* `return a, b`, also with one member */
  bool returns_none;
  uint32_t nbundles;
} ccn__graph;

ccn__graph *ccn__graph_new(ccn__arena *a, ccn__names *names, ccn__name name, const ccn__mesh *mesh);
/* Copies in and attrs. */
ccn__id ccn__graph_add(ccn__graph *g, ccn__op op, const ccn__id *in, uint32_t nin, const ccn__type *type,
                       ccn__attrs attrs, ccn__span span, uint32_t region);
uint32_t ccn__graph_symbol(ccn__graph *g, ccn__name name, ccn__symbol_kind kind, uint32_t index,
                           ccn__span span);
uint32_t ccn__graph_find_symbol(ccn__graph *g, ccn__name name, ccn__symbol_kind kind,
                                uint32_t index);               /* the first, or CCN__NO_INDEX */
const char *ccn__graph_symbol_name(void *graph, uint32_t sym); /* for ccn__dim_print */

/* ---- text form (graph_text.c): prints and reads back exactly; spans are not part of it ------------------------ */
void ccn__graph_print(const ccn__graph *g, ccn__text *out);
void ccn__type_print(const ccn__graph *g, const ccn__type *t, ccn__text *out); /* f32[N] sliced(0) over dp */
void ccn__place_print(const ccn__graph *g, const ccn__place *p, ccn__text *out);
void ccn__lit_print(const ccn__graph *g, const ccn__lit *l, ccn__text *out);
/* Reads one or more graphs from source number `source` of ds. NULL on error (diagnostics in ds; 0001 and friends).
 * The result is verified. Hostile input gets a diagnostic. */
typedef struct ccn__graph_list {
  ccn__graph **at;
  uint32_t n;
} ccn__graph_list;
bool ccn__graph_parse(ccn__arena *a, ccn__names *names, ccn__diags *ds, uint32_t source,
                      ccn__graph_list *out);

/* ---- inference (infer.c): the one rule over dims signatures ------------------------------------------------------ */
typedef struct ccn__type_error {
  uint16_t code;     /* 0: none */
  int8_t axis;       /* mesh axis, or -1 */
  int8_t x, y;       /* operands at fault, or -1 */
  int8_t xdim, ydim; /* their dims, or -1 */
  const char *text;  /* static; the reason in words, may be NULL */
} ccn__type_error;
/* The type of op applied to operands of these types; `want` gives dtype, shape and placement of ops whose result is
 * their own (makers, param, const) and the dtype of cast, one_hot, where's and argmax's operands need none.
 * Sizes of axes come from g->mesh; regions (on) are the caller's business. False: *err says what is wrong; err->code
 * is the first in the order of the language reference. May add constraints only through `need` (may be NULL). */
typedef struct ccn__infer_in {
  ccn__graph *g;
  ccn__op op;
  const ccn__type *const *in;
  uint32_t nin;
  ccn__attrs attrs;
  const ccn__type *want;
} ccn__infer_in;
bool ccn__infer(const ccn__infer_in *q, ccn__type *out, ccn__type_error *err);
/* Whether this is a dims signature that an op of the host may have; how many operands it has. */
bool ccn__sig_valid(const char *sig, uint32_t *out_nin);

/* ---- verifier (verify.c) -------------------------------------------------------------------------------------------
 * Checks everything a graph promises: numbering, regions, arity, types equal to what ccn__infer gives, attributes,
 * one update a parameter, outputs. NULL if right, else a text in g's arena that names the node. */
const char *ccn__graph_verify(ccn__graph *g);

#endif

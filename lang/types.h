/* types.h: dtype + shape + one placement for each mesh axis; meshes; literal expressions; reduction operators.
 *
 * Place in the pipeline: the vocabulary of lower.c, infer.c, graph.h and interp.c. Language reference, section 5.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_LANG_TYPES_H
#define CCN_LANG_TYPES_H

#include "dims.h"
#include "kernels.h"

#define CCN__MAX_RANK 8
#define CCN__MAX_AXES 6
#define CCN__MAX_RANKS 64      /* simulated ranks of the interpreter */
#define CCN__MAX_PLANNED 65536 /* ranks of plans that are not executed */

/* ---- reduction operators: rows of a table ------------------------------------------------------------------- */

typedef enum ccn__redop {
  CCN__RED_NONE,
#define REDOP(id, name, doc) CCN__RED_##id,
#include "redops.def"
#undef REDOP
  CCN__RED_COUNT
} ccn__redop;
const char *ccn__redop_name(ccn__redop op);
bool ccn__redop_find(const char *name, ccn__redop *out);

/* ---- placements ------------------------------------------------------------------------------------------------ */

typedef enum ccn__place_kind {
  CCN__REPLICATED,
  CCN__SLICED, /* dim, unit */
  CCN__LOCAL,
  CCN__PARTIAL, /* op */
  CCN__AT       /* coord */
} ccn__place_kind;

typedef struct ccn__place {
  uint8_t kind;
  uint8_t op; /* ccn__redop */
  uint16_t dim;
  int32_t coord;        /* not reduced modulo the axis while its size is unknown */
  const ccn__dim *unit; /* NULL = 1 */
} ccn__place;

/* A bundle is K tensors as one value: one flat dim whose extent is the symbol of all elements (TENSORS), or K
 * scalars that broadcast per tensor (SCALARS). Which tensors: the graph's bundle number. */
typedef enum ccn__bundle_kind { CCN__NO_BUNDLE, CCN__BUNDLE_TENSORS, CCN__BUNDLE_SCALARS } ccn__bundle_kind;

typedef struct ccn__type {
  uint8_t dtype; /* ccn__dtype */
  uint8_t rank;
  uint8_t naxes;  /* of the mesh */
  uint8_t bundle; /* ccn__bundle_kind */
  uint32_t bundle_id;
  const ccn__dim *dim[CCN__MAX_RANK];
  ccn__place place[CCN__MAX_AXES];
} ccn__type;

bool ccn__place_equal(const ccn__place *x, const ccn__place *y);
bool ccn__shape_equal(const ccn__type *x, const ccn__type *y); /* rank, dims, bundle */
bool ccn__type_equal(const ccn__type *x, const ccn__type *y);

/* ---- mesh -------------------------------------------------------------------------------------------------------- */

typedef struct ccn__mesh {
  uint32_t naxes;
  ccn__name name[CCN__MAX_AXES];
  int32_t size[CCN__MAX_AXES]; /* 0 = open, not known yet */
  ccn__span span[CCN__MAX_AXES];
} ccn__mesh;

/* World ranks are numbered row by row: the last axis varies fastest. Sizes must be known. */
uint32_t ccn__mesh_world(const ccn__mesh *m);
uint32_t ccn__mesh_coord(const ccn__mesh *m, uint32_t rank, uint32_t axis);
uint32_t ccn__mesh_stride(const ccn__mesh *m, uint32_t axis); /* rank distance of neighbours on the axis */

/* The map of sliced values: with c = u·ceil(ceil(D/u)/n), coordinate r owns [min(D, r·c), min(D, (r+1)·c)). */
void ccn__slice_range(int64_t extent, int64_t unit, int64_t n, int64_t r, int64_t *out_start,
                      int64_t *out_end);

/* ---- literals: numbers that have no dtype yet, perhaps depending on sizes ------------------------------------------ */

typedef enum ccn__lit_kind {
  CCN__LIT_INT,
  CCN__LIT_FLOAT,
  CCN__LIT_BOOL,
  CCN__LIT_DIM,     /* an extent, or size(axis): a polynomial over the graph's symbols */
  CCN__LIT_UNKNOWN, /* `check` only: a script constant whose value is not known; fits everywhere, counts as 1 */
  CCN__LIT_UNARY,
  CCN__LIT_BINARY,
  CCN__LIT_CALL /* sqrt(N), maximum(N, 4): `op` is a ccn__kernel_id; y is NULL where that takes one operand */
} ccn__lit_kind;

typedef struct ccn__lit {
  uint8_t kind;
  uint8_t op;            /* ccn__oper (ast.h), or the function of a CALL */
  uint16_t depth, nodes; /* of an expression, both bounded: it is walked recursively */
  union {
    int64_t i;
    double f;
    const ccn__dim *dim;
    struct {
      const struct ccn__lit *x, *y;
    };
  };
} ccn__lit;

typedef struct ccn__number {
  bool is_float;
  bool unknown; /* a size or constant that is not known here */
  union {
    int64_t i;
    double f;
  };
} ccn__number;

const ccn__lit *ccn__lit_int(ccn__arena *a, int64_t i);
const ccn__lit *ccn__lit_float(ccn__arena *a, double f);
const ccn__lit *ccn__lit_bool(ccn__arena *a, bool b);
const ccn__lit *ccn__lit_dim(ccn__arena *a, const ccn__dim *d); /* a constant dim becomes an INT */
/* Folds when both are known numbers (in 64-bit integers where exact and defined so, else f64); NULL when the
 * operation is not defined: *out_error says why (static). */
const ccn__lit *ccn__lit_unary(ccn__arena *a, uint8_t op, const ccn__lit *x, const char **out_error);
const ccn__lit *ccn__lit_binary(ccn__arena *a, uint8_t op, const ccn__lit *x, const ccn__lit *y,
                                const char **out_error);
/* How many operands the function takes of literals, 0 if literals do not fold through it. */
uint32_t ccn__lit_arity(ccn__kernel_id k);
const ccn__lit *ccn__lit_call(ccn__arena *a, ccn__kernel_id k, const ccn__lit *x, const ccn__lit *y,
                              const char **out_error);
/* Value given the symbols' values (NULL: symbols are unknown). Returns NULL or what is wrong (static).
 * An unknown number has no value, but is_float holds: which operations give fractions does not depend on sizes. */
const char *ccn__lit_eval(const ccn__lit *x, const int64_t *value, ccn__number *out);
static inline double ccn__number_f64(ccn__number n) { return n.is_float ? n.f : (double)n.i; }
/* Whether the number can be written in dtype t without becoming 0 or inf or losing an integer bit (CCN0102/0110);
 * NULL, or why not (static). */
const char *ccn__number_fits(ccn__number n, ccn__dtype t);
void ccn__number_store(ccn__number n, ccn__dtype t, void *out);

#endif

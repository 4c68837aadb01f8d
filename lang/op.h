/* op.h: the op table (ops.def) as C.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_LANG_OP_H
#define CCN_LANG_OP_H

#include "kernels.h"
#include "types.h"

typedef enum ccn__op {
#define OP(id, ...) CCN__OP_##id,
#include "ops.def"
#undef OP
  CCN__OP_COUNT
} ccn__op;

typedef enum ccn__op_kind {
  CCN__KIND_ELEM,
  CCN__KIND_REDUCE,
  CCN__KIND_SHAPE,
  CCN__KIND_LINEAR,
  CCN__KIND_MAKER,
  CCN__KIND_RANDOM,
  CCN__KIND_COLLECTIVE,
  CCN__KIND_EFFECT,
  CCN__KIND_HOST, /* not callable by its name in the table */
  CCN__KIND_STRUCT,
  CCN__KIND_COMPOSED
} ccn__op_kind;

typedef enum ccn__prule {
  CCN__PRULE_NEVER,      /* nothing owed passes: CCN0210 */
  CCN__PRULE_LINEAR,     /* neg, + and -: every operand owes a sum */
  CCN__PRULE_SCALE,      /* one operand owes a sum, the other is replicated */
  CCN__PRULE_SCALE_LEFT, /* the same, the left one owes */
  CCN__PRULE_MAXIMUM,    /* two that owe max, or one and a replicated one */
  CCN__PRULE_MINIMUM,
  CCN__PRULE_SELECT,   /* where: a replicated condition, two that owe the same sum, max or min */
  CCN__PRULE_WIDENING, /* casts between floats that lose nothing: sum, max, min */
  CCN__PRULE_REDUCE,   /* a reduction with the operator that is owed */
  CCN__PRULE_BILINEAR, /* matmul, conv2d: one owes a sum, the other is replicated */
  CCN__PRULE_SHAPE,    /* any operator */
  CCN__PRULE_CONCAT,   /* every operand owes the same operator */
  CCN__PRULE_TAKE,     /* x owes sum, max or min, idx is replicated */
  CCN__PRULE_SCATTER   /* v owes a sum, idx is replicated */
} ccn__prule;

typedef enum ccn__op_dtypes {
  CCN__DT_NUM,
  CCN__DT_FLOAT,
  CCN__DT_INT,
  CCN__DT_BOOL,
  CCN__DT_ANY
} ccn__op_dtypes;
typedef enum ccn__op_result { CCN__RES_SAME, CCN__RES_BOOL, CCN__RES_OWN } ccn__op_result;

typedef struct ccn__op_info {
  const char *name;
  uint8_t kind;
  int8_t nin;
  const char *sig;
  uint8_t prule, dtypes, result;
  uint8_t kernel; /* ccn__kernel_id, or CCN__K_COUNT */
  const char *params, *doc;
} ccn__op_info;

enum { CCN__HOST_OPERANDS = 8 }; /* at most, of an op of the host */
extern const ccn__op_info ccn__op_table[CCN__OP_COUNT];
bool ccn__op_has_name(ccn__op op); /* that texts may use: not those of the graph's own structure */
bool ccn__op_find(const char *name, ccn__op *out); /* callable ops only */
/* The name of a function that literals fold through (ccn__lit_arity), and back. */
const char *ccn__lit_function(ccn__kernel_id k);
bool ccn__lit_function_find(const char *name, ccn__kernel_id *out);
ccn__redop ccn__op_redop(ccn__op op); /* of sum, prod, max, min, any (max), all (min); else NONE */

typedef enum ccn__attr_key {
#define ATTR(id, name, kind) CCN__A_##id,
#include "attrs.def"
#undef ATTR
  CCN__ATTR_KEYS
} ccn__attr_key;

typedef enum ccn__attr_kind {
  CCN__ATTR_INT,
  CCN__ATTR_LIT,
  CCN__ATTR_INTS,
  CCN__ATTR_DIM,
  CCN__ATTR_DIMS,
  CCN__ATTR_PAIRS,
  CCN__ATTR_AXES,
  CCN__ATTR_RED,
  CCN__ATTR_ORDER,
  CCN__ATTR_TEXT
} ccn__attr_kind;
extern const struct ccn__attr_info {
  const char *name;
  uint8_t kind;
} ccn__attr_table[CCN__ATTR_KEYS];

/* The order in which a reducing collective adds; what each means: order.h. */
typedef enum ccn__order {
  CCN__ORDER_RANK,
  CCN__ORDER_AXIS, /* over several axes: over the first declared one, then the next */
  CCN__ORDER_TREE,
  CCN__ORDER_RING,
  CCN__ORDER_ANY, /* a library's: nobody knows it */
  CCN__ORDER_GROUPS,
  CCN__ORDER_BINARY,
  CCN__ORDER_DOUBLE,
  CCN__ORDER_COUNT
} ccn__order;
extern const char *const ccn__order_name[CCN__ORDER_COUNT];

typedef struct ccn__attr {
  uint8_t key;
  uint8_t n; /* of INTS, DIMS, PAIRS (numbers, not pairs) */
  union {
    int64_t i;
    const ccn__lit *lit;
    const int64_t *ints;
    const ccn__dim *dim;
    const ccn__dim *const *dims;
    const char *text;
  };
} ccn__attr;

typedef struct ccn__attrs {
  const ccn__attr *at;
  uint32_t n;
} ccn__attrs;

const ccn__attr *ccn__attr_find(ccn__attrs as, ccn__attr_key key); /* NULL if absent */
int64_t ccn__attr_int(ccn__attrs as, ccn__attr_key key, int64_t otherwise);

#endif

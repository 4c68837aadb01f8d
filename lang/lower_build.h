/* lower_build.h: what the build_* functions of lower_ops.c, lower_shape.c, lower_makers.c and others share: an op
 * call whose arguments have been put into the slots of its parameter list.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_LANG_LOWER_BUILD_H
#define CCN_LANG_LOWER_BUILD_H

#include "lower.h"

#define CCN__MAX_SLOTS 8
typedef struct ccn__build {
  ccn__lower *l;
  ccn__op op;
  const char *name; /* as written */
  ccn__span span;
  uint32_t nslots;
  char slot_name[CCN__MAX_SLOTS][12];
  bool slot_optional[CCN__MAX_SLOTS];
  const ccn__opd *slot[CCN__MAX_SLOTS]; /* NULL: not given */
} ccn__build;

const ccn__opd *ccn__slot(ccn__build *b, const char *name);
ccn__bv ccn__slot_value(ccn__build *b, const char *name); /* NONE if not given */
/* The node in the slot; literals become constants of dtype t (t < 0: CCN0103). */
ccn__id ccn__slot_node(ccn__build *b, const char *name, int t);
bool ccn__slot_i64(ccn__build *b, const char *name, int64_t otherwise, int64_t *out);
bool ccn__slot_bool(ccn__build *b, const char *name, bool *out);
ccn__name ccn__slot_word(ccn__build *b, const char *name); /* a bare word; NULL if not given or not a word */
/* A dim index, negative from the end. */
bool ccn__slot_dim(ccn__build *b, const char *name, uint32_t rank, int64_t otherwise, int64_t *out);
/* dims: [0, -1] or dims: 1, sorted; all of them if not given. */
bool ccn__slot_dims(ccn__build *b, const char *name, uint32_t rank, int64_t *out, uint8_t *out_n);
const ccn__type *ccn__slot_type(ccn__build *b, const char *name);
ccn__bv ccn__build_fail(ccn__build *b, uint16_t code, ccn__span span, const char *label, const char *text);
/* With a cure of its own instead of the code's. */
ccn__bv ccn__build_fail_cure(ccn__build *b, uint16_t code, ccn__span span, const char *label,
                             const char *text, const char *cure);

static inline ccn__bv ccn__built(ccn__build *b, ccn__id id) { return ccn__bv_node(id, b->span); }
static inline const ccn__type *ccn__ntype(const ccn__lower *l, ccn__id id) { return l->g->nodes.at[id].type; }

/* Steps of composed ops. Each takes CCN__NO_ID and passes it on. */
ccn__id ccn__step1(ccn__build *b, ccn__op op, ccn__id x);
ccn__id ccn__step2(ccn__build *b, ccn__op op, ccn__id x, ccn__id y);
ccn__id ccn__step_lit(ccn__build *b, const ccn__lit *lit, ccn__dtype t);
ccn__id ccn__step_cast(ccn__build *b, ccn__dtype t, ccn__id x);

/* ---- lower_slots.c ---- */
bool ccn__build_fill_slots(ccn__build *b, const ccn__opd *args, uint32_t nargs);
bool ccn__build_normal_dim(ccn__build *b, ccn__span span, uint32_t rank, int64_t *d);
ccn__bv ccn__build_not_whole(ccn__build *b, const char *slot, const char *cure);
bool ccn__build_fractional(ccn__bv v);
void ccn__build_read_slots(ccn__build *b);

/* ---- lower_ops.c ---- */
int ccn__build_common_dtype(ccn__lower *l, const ccn__bv *v, uint32_t n);

/* clang-format off */
#define BUILDERS(X) \
  X(elem) X(where) X(cast) X(dropout) X(reduce) X(mean) X(norm) X(dot) X(softmax) X(logsumexp) X(argmax) \
  X(layernorm) X(rmsnorm) X(clamp) X(matmul) X(conv2d) X(transpose) X(reshape) X(concat) X(index) X(take) \
  X(scatter_add) X(one_hot) X(full) X(iota) X(random) X(rank) X(update) X(collective) X(none)
/* clang-format on */
#define X(n) ccn__bv ccn__build_##n##_op(ccn__build *b);
BUILDERS(X)
#undef X

#endif

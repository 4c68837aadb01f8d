/* verify.h: what the parts of the verifier share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_LANG_VERIFY_H
#define CCN_LANG_VERIFY_H

#include "ast.h"
#include "graph.h"
#include "order.h"

enum {
  LIT_DEPTH = 1000,
  LIT_NODES = 100000, /* of one literal, shared ones counted each time */
  WHOLE_STEPS = 256   /* constraints tried for the dims of one type */
};

typedef struct ccn__verifier {
  ccn__graph *g;
  const char *text; /* what is wrong */
  ccn__id id;       /* the node that is looked at */
} ccn__verifier;

/* ---- verify_attrs.c ---- */
const ccn__type *ccn__verify_operand_type(const ccn__verifier *v, uint32_t i);
uint32_t ccn__verify_operand_rank(const ccn__verifier *v);
bool ccn__verify_attributes(ccn__verifier *v);
bool ccn__verify_is_coord(const ccn__verifier *v, int64_t c, uint32_t axis);

/* ---- verify_types.c ---- */
bool ccn__verify_same_type(ccn__verifier *v, const ccn__type *want, const char *whose);
bool ccn__verify_well_formed(ccn__verifier *v);
bool ccn__verify_inferred(ccn__verifier *v);
bool ccn__verify_is_maker(uint32_t op);
const char *ccn__verify_type_text(const ccn__verifier *v, const ccn__type *t);

/* ---- verify_blocks.c ---- */
bool ccn__verify_yields(ccn__verifier *v, const ccn__region *r);
bool ccn__verify_result(ccn__verifier *v);
const ccn__attr *ccn__verify_number_of(const ccn__node *n);
bool ccn__verify_leaves_on(ccn__verifier *v, ccn__id x, uint32_t to);
bool ccn__verify_on(ccn__verifier *v);
bool ccn__verify_carry(ccn__verifier *v);
bool ccn__verify_inside_on(ccn__verifier *v);
bool ccn__verify_enter(ccn__verifier *v);
bool ccn__verify_inside_repeat(const ccn__verifier *v, uint32_t region);

/* ---- verify.c ---- */
bool ccn__verify_fail(ccn__verifier *v, const char *fmt, ...) CCN__PRINTF(2, 3);
bool ccn__verify_fault(ccn__verifier *v, const char *fmt, ...) CCN__PRINTF(2, 3);
bool ccn__verify_encloses(const ccn__verifier *v, uint32_t outer, uint32_t region);
uint32_t ccn__verify_region_around(const ccn__verifier *v, uint32_t region);
bool ccn__verify_dim_known(const ccn__verifier *v, const ccn__dim *d);
bool ccn__verify_has_block(uint32_t op);
const char *ccn__verify_node_name(const ccn__verifier *v, ccn__id id);
bool ccn__verify_visible(const ccn__verifier *v, ccn__id id, uint32_t from);
const ccn__node *ccn__verify_node_at(const ccn__verifier *v, ccn__id id);

#endif

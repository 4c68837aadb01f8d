/* infer.h: what infer.c and infer_collective.c share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_LANG_INFER_H
#define CCN_LANG_INFER_H

#include "graph.h"

/* Fills *err and returns false. */
bool ccn__infer_fail(ccn__type_error *err, uint16_t code, int axis, int x, int y, const char *text);
bool ccn__infer_collective(const ccn__infer_in *q, ccn__type *out, ccn__type_error *err);
/* infer.c: which dims of a HOST node's operands mean the same one: equal numbers, -1 for what broadcasts. */
void ccn__host_labels(const ccn__infer_in *q, int8_t (*out_of)[CCN__MAX_RANK]);
/* A later axis than `a`, not in `except` (bit mask), that cuts dim d of t; -1 if none. */
int ccn__later_cut(const ccn__type *t, uint32_t a, uint32_t d, uint64_t except);

#endif

/* algorithm_words.h: what the two text forms of algorithms share (algorithm_text.c, algorithm_json.c).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_LANG_ALGORITHM_WORDS_H
#define CCN_LANG_ALGORITHM_WORDS_H

#include "algorithm.h"

extern const char *const ccn__algo_width_name[CCN__WIDTHS];
bool ccn__algorithm_rooted(ccn__op op); /* reduce, gather, broadcast, scatter */
bool ccn__prim_find(const char *name, size_t n, ccn__prim *out);
bool ccn__collective_find(const char *name, size_t n, ccn__op *out);

#endif

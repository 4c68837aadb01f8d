/* dims.h: extents as polynomials over symbols, in normal form, so that equality is comparison.
 *
 * A dim is (sum of integer coefficient * product of symbols) / den. H/16 is a dim with den 16; that it is a whole
 * number is a constraint that the caller records (ccn__dim_is_whole tells whether it is certain).
 * Symbols are numbers; who owns them (graph.h) knows their names. Immutable, in an arena.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_LANG_DIMS_H
#define CCN_LANG_DIMS_H

#include "base.h"

typedef struct ccn__monomial {
  int64_t coef;
  uint32_t degree;
  const uint32_t *sym; /* `degree` symbols, sorted, repeated for powers */
} ccn__monomial;

typedef struct ccn__dim {
  int64_t den; /* >= 1, no common divisor with all coefficients */
  uint32_t n;  /* terms, sorted: higher degree first, then by symbols; no zero coefficients */
  const ccn__monomial *term;
} ccn__dim;

const ccn__dim *ccn__dim_const(ccn__arena *a, int64_t value);
const ccn__dim *ccn__dim_symbol(ccn__arena *a, uint32_t sym);
/* NULL on overflow of 64 bits. */
const ccn__dim *ccn__dim_add(ccn__arena *a, const ccn__dim *x, const ccn__dim *y);
const ccn__dim *ccn__dim_sub(ccn__arena *a, const ccn__dim *x, const ccn__dim *y);
const ccn__dim *ccn__dim_mul(ccn__arena *a, const ccn__dim *x, const ccn__dim *y);
/* x / y where y is a constant (gives a denominator) or divides x exactly as a polynomial; else NULL. */
const ccn__dim *ccn__dim_div(ccn__arena *a, const ccn__dim *x, const ccn__dim *y);

bool ccn__dim_equal(const ccn__dim *x, const ccn__dim *y);
bool ccn__dim_is_const(const ccn__dim *x, int64_t *out); /* a whole constant; out may be NULL */
bool ccn__dim_is(const ccn__dim *x, int64_t value);
bool ccn__dim_is_whole(const ccn__dim *x); /* den == 1 */
bool ccn__dim_is_symbol(const ccn__dim *x, uint32_t *out);
bool ccn__dim_uses(const ccn__dim *x, uint32_t sym);

/* Value with symbol s = value[s]. Returns NULL, or a static text: "does not divide", "is too large". */
const char *ccn__dim_eval(const ccn__dim *x, const int64_t *value, int64_t *out);
/* x with each symbol s replaced by by[s] (NULL entries stay). NULL on overflow. */
const ccn__dim *ccn__dim_substitute(ccn__arena *a, const ccn__dim *x, const ccn__dim *const *by,
                                    uint32_t nby);

/* "2*N + M", "H/16", "(N - 1)/2"; name(user, s) gives the symbols' names. */
void ccn__dim_print(const ccn__dim *x, const char *(*name)(void *user, uint32_t sym), void *user,
                    ccn__text *out);

#endif

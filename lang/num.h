/* num.h: numbers as the machine holds them: conversions, Philox, the sum tree, .npy headers. Pure functions of
 * memory; no context, no allocation, nothing of the language but dtypes.
 *
 * Everything here is compiled with -ffp-contract=off and defines bits: engines must reproduce it exactly.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_LANG_NUM_H
#define CCN_LANG_NUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum ccn__dtype {
#define DTYPE(id, name, bytes, cls, acc) CCN__##id,
#include "dtype.def"
#undef DTYPE
  CCN__DTYPE_COUNT
} ccn__dtype;

typedef enum ccn__dclass { CCN__CLASS_F, CCN__CLASS_I, CCN__CLASS_U, CCN__CLASS_B } ccn__dclass;

const char *ccn__dtype_name(ccn__dtype t);
size_t ccn__dtype_size(ccn__dtype t); /* bytes an element; 0 for reserved names */
ccn__dclass ccn__dtype_class(ccn__dtype t);
ccn__dtype ccn__dtype_acc(ccn__dtype t); /* the dtype in which sums of it are accumulated */
bool ccn__dtype_find(const char *name, ccn__dtype *out);
static inline bool ccn__dtype_is_float(ccn__dtype t) { return ccn__dtype_class(t) == CCN__CLASS_F; }
static inline bool ccn__dtype_is_int(ccn__dtype t) {
  return ccn__dtype_class(t) == CCN__CLASS_I || ccn__dtype_class(t) == CCN__CLASS_U;
}
/* Every value of `from` is a value of `to`, both floats and different: f16→f32, bf16→f32, f32→f64, ... */
bool ccn__dtype_widens(ccn__dtype from, ccn__dtype to);

/* ---- conversions (language reference, "casts") -----------------------------------------------------------------
 * To a float: round to nearest even. Float → integer: truncates toward zero, saturates, NaN → 0. Integer → integer
 * wraps (keeps the low bits). Anything → bool: != 0 (NaN is true). bool → 0 or 1. */
float ccn__f16_to_f32(uint16_t h);
uint16_t ccn__f32_to_f16(float x);  /* nearest even, denormals kept, NaN stays NaN (quiet) */
uint16_t ccn__f64_to_f16(double x); /* one rounding */
float ccn__bf16_to_f32(uint16_t h);
uint16_t ccn__f32_to_bf16(float x);
uint16_t ccn__f64_to_bf16(double x); /* one rounding */
/* n elements; `in` and `out` do not overlap (or are equal pointers when the sizes are equal). */
void ccn__convert(ccn__dtype to, void *out, ccn__dtype from, const void *in, size_t n);
/* The value of one element as f64 (i64 beyond 2^53 rounds) or as i64 (floats as in the cast). */
double ccn__load_f64(ccn__dtype t, const void *p);
int64_t ccn__load_i64(ccn__dtype t, const void *p);
/* Stores a number given as f64, resp. i64, with the rules of the cast. */
void ccn__store_f64(ccn__dtype t, void *p, double x);
void ccn__store_i64(ccn__dtype t, void *p, int64_t x);

/* ---- Philox4x32-10 (Salmon et al., SC'11, "Parallel random numbers: as easy as 1, 2, 3") ------------------------ */
void ccn__philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);
/* Words 0 and 1 of n blocks: their counters are index (low, high), then high[0], high[1]. */
void ccn__philox_words(const int64_t *index, size_t n, const uint32_t high[2], const uint32_t key[2],
                       uint32_t *w0, uint32_t *w1);
/* The hash of the coordinates of an element's rank on axes over which the value is local: FNV-1a (32 bit) over the
 * coordinates as little-endian u32, in order of declaration of those axes; 0 when there is none. */
uint32_t ccn__coordinate_hash(const uint32_t *coordinate, uint32_t n);

/* ---- the sum tree ----------------------------------------------------------------------------------------------
 * A reduction over D elements is the binary tree of adjacent pairs over the global index: node (level k, j) covers
 * the indices [j·2^k, (j+1)·2^k); its value combines (k-1, 2j) and (k-1, 2j+1), in this order; a child without
 * elements is skipped. A piece [a, b) is held as its maximal complete nodes, at most 2·64 of them, by position. */
typedef struct ccn__tree_node {
  uint64_t start; /* first index; a multiple of 2^level */
  uint8_t level;
} ccn__tree_node;
#define CCN__TREE_MAX 128
/* The maximal complete nodes of [a, b), in order; returns how many. */
uint32_t ccn__tree_cover(uint64_t a, uint64_t b, ccn__tree_node out[CCN__TREE_MAX]);

#endif

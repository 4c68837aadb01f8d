/* redop.c: reduction operators as rows of a table, and the tree in which reductions combine.
 *
 * The tree: adjacent pairs over the global index (num.h), so that a rank's piece contributes its maximal complete
 * nodes and sums have the same bits for every number of ranks. A run of elements is taken in aligned blocks of up to
 * 1024: each level splits even from odd neighbours and combines them with one kernel call, which vectorises.
 * SPDX-License-Identifier: Apache-2.0 */
#include "interp_eval.h"

#include <math.h>

/* ---- the table ------------------------------------------------------------------------------------------------ */

/* -0 + x = x for every x; +0 would turn -0 into +0. */
static void zero(ccn__dtype t, void *out) { ccn__store_f64(t, out, ccn__dtype_is_float(t) ? -0.0 : 0.0); }
static void one(ccn__dtype t, void *out) { ccn__store_i64(t, out, 1); }
/* Floats from infinity; the cast to an integer saturates at its lowest and highest. */
static void lowest(ccn__dtype t, void *out) { ccn__store_f64(t, out, t == CCN__BOOL ? 0 : -INFINITY); }
static void highest(ccn__dtype t, void *out) { ccn__store_f64(t, out, INFINITY); }

const ccn__redop_row ccn__redop_table[CCN__RED_COUNT] = {
  [CCN__RED_SUM] = {CCN__K_ADD, false, true, true, false, zero},
  [CCN__RED_PROD] = {CCN__K_MUL, false, true, true, false, one},
  [CCN__RED_MAX] = {CCN__K_MAXIMUM, false, true, true, false, lowest},
  [CCN__RED_MIN] = {CCN__K_MINIMUM, false, true, true, false, highest},
  [CCN__RED_AVG] = {CCN__K_ADD, true, true, true, true, zero},
};

bool ccn__redop_takes(ccn__redop op, ccn__dtype t) {
  if (op == CCN__RED_NONE || !ccn__redop_table[op].identity) return false;
  if (ccn__redop_table[op].floats_only && !ccn__dtype_is_float(t)) return false;
  return ccn__kernel_exists((ccn__kernel_id)ccn__redop_table[op].kernel, ccn__dtype_acc(t));
}

void ccn__redop_combine(ccn__redop op, ccn__dtype acc, void *out, const void *a, const void *b, size_t n) {
  (void)ccn__kernel((ccn__kernel_id)ccn__redop_table[op].kernel, acc, out, a, b, NULL, n);
}

void ccn__redop_divide(ccn__dtype acc, void *x, size_t n, int64_t ranks) {
  if (acc == CCN__F64) {
    double *f = x;
    for (size_t i = 0; i < n; i++) f[i] /= (double)ranks;
  } else {
    float *f = x;
    for (size_t i = 0; i < n; i++) f[i] /= (float)ranks;
  }
}

/* ---- one complete node of elements that lie together ---------------------------------------------------------- */

#define SPLIT(T) \
  { \
    const T *x = from; \
    T *a = even, *b = odd; \
    for (size_t i = 0; i < n; i++) { \
      a[i] = x[2 * i]; \
      b[i] = x[2 * i + 1]; \
    } \
    break; \
  }
static void split(size_t item, const void *from, void *even, void *odd, size_t n) {
  switch (item) {
  case 1: SPLIT(uint8_t)
  case 2: SPLIT(uint16_t)
  case 4: SPLIT(uint32_t)
  default: SPLIT(uint64_t)
  }
}
#undef SPLIT

/* The node over 2^level elements, level <= CCN__BLOCK_LEVEL, in *out. */
static void block_node(ccn__redop op, ccn__dtype acc, const void *elements, uint32_t level, void *out) {
  _Alignas(64) char even[CCN__BLOCK_BYTES / 2], odd[CCN__BLOCK_BYTES / 2], pairs[CCN__BLOCK_BYTES / 2];
  const size_t item = ccn__dtype_size(acc);
  const void *x = elements;
  for (size_t n = (size_t)1 << level >> 1; n; n >>= 1) {
    split(item, x, even, odd, n);
    ccn__redop_combine(op, acc, pairs, even, odd, n);
    x = pairs;
  }
  memcpy(out, x, item);
}

/* ---- the counter ---------------------------------------------------------------------------------------------- */

void ccn__counter_init(ccn__counter *c, ccn__pool *pool, ccn__redop op, ccn__dtype acc, size_t width,
                       uint64_t parts) {
  const size_t item = ccn__dtype_size(acc), vector = item * (width ? width : 1);
  if (parts > UINT32_MAX - 128 || parts + 128 > SIZE_MAX / 4 / vector)
    ccn__throw(pool->heap, CCN_OUT_OF_MEMORY);
  const uint64_t cap = parts + 66; /* those in progress: one a level */
  *c = (ccn__counter){.op = op, .acc = acc, .item = item, .width = width, .cap = (uint32_t)cap};
  c->room = ccn__buf_new(pool, (size_t)cap * (sizeof(ccn__part) + vector));
  c->node = c->room->data;
  c->data = (char *)(c->node + cap);
}

void ccn__counter_done(ccn__counter *c) {
  ccn__buf_unref(c->room);
  c->room = NULL;
}

static void *slot(const ccn__counter *c, uint32_t i) { return c->data + (size_t)i * c->width * c->item; }

void ccn__counter_push(ccn__counter *c, uint64_t start, uint32_t level, const void *vector) {
  while (c->n) {
    const ccn__part *top = &c->node[c->n - 1];
    const bool siblings =
      top->level == level && !(top->start >> level & 1) && top->start + ((uint64_t)1 << level) == start;
    if (!siblings) break;
    void *s = slot(c, --c->n);
    ccn__redop_combine(c->op, c->acc, s, s, vector, c->width);
    vector = s;
    start = top->start;
    level++;
  }
  void *s = slot(c, c->n);
  if (s != vector) memcpy(s, vector, c->width * c->item);
  c->node[c->n++] = (ccn__part){0, level, start};
}

void ccn__counter_run(ccn__counter *c, uint64_t start, ccn__dtype t, const void *elements, uint64_t n) {
  _Alignas(64) char wide[CCN__BLOCK_BYTES];
  uint64_t node;
  const char *x = elements;
  while (n) {
    uint32_t level = 0;
    while (level < CCN__BLOCK_LEVEL && !(start >> level & 1) && (uint64_t)2 << level <= n) level++;
    const size_t m = (size_t)1 << level;
    const void *in = x;
    if (t != c->acc) {
      ccn__convert(c->acc, wide, t, x, m);
      in = wide;
    }
    block_node(c->op, c->acc, in, level, &node);
    ccn__counter_push(c, start, level, &node);
    start += m;
    n -= m;
    x += m * ccn__dtype_size(t);
  }
}

/* Combines the nodes [low, high) in slot low. Their nearest common ancestor parts them where its right child starts. */
static void fold(ccn__counter *c, uint32_t low, uint32_t high) {
  if (high - low < 2) return;
  const uint64_t a = c->node[low].start, b = c->node[high - 1].start;
  uint32_t level = 0;
  while (a >> level != b >> level) level++;
  const uint64_t right = b >> (level - 1) << (level - 1);
  uint32_t mid = low + 1;
  while (c->node[mid].start < right) mid++;
  fold(c, low, mid);
  fold(c, mid, high);
  ccn__redop_combine(c->op, c->acc, slot(c, low), slot(c, low), slot(c, mid), c->width);
}

const void *ccn__counter_fold(ccn__counter *c) {
  fold(c, 0, c->n);
  c->n = 0;
  return slot(c, 0);
}

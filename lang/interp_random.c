/* interp_random.c: random numbers by counter: element i of a value has the same number on every engine, for every
 * schedule and, unless it is local, for every number of ranks.
 *
 * Philox4x32-10. Counter words: global row-major index (low, high), step (low 32 bits), the hash of the rank's
 * coordinates on axes over which the value is local (0 if there is none). Key: seed (low, high). With w0, w1 the
 * first two words of the element's block:
 *   uniform   f32 (and f16, bf16, rounded from it): u = (w0 >> 8) * 2^-24;  f64: ((w0 << 32 | w1) >> 11) * 2^-53
 *   randn     Box and Muller, in f32 for every dtype: u1 = ((w0 >> 8) + 1) * 2^-24, u2 = (w1 >> 8) * 2^-24,
 *             sqrt(-2 * log(u1)) * cos(2*pi * u2), 2*pi = 0x1.921fb6p+2, log and cos of math.def, one rounding an op
 *   randint   low + (w0 * range >> 32) for ranges up to 2^32, else low + ((w1 << 32 | w0) * range >> 64)
 *   bernoulli, dropout   u < p with u as for f32 and p in f64; dropout keeps x * (1 / (1 - p)), that factor in f64,
 *             rounded to the dtype of computation (f32 for f16, bf16), then one multiplication and one rounding
 * SPDX-License-Identifier: Apache-2.0 */
#include "interp_eval.h"

typedef struct stream {
  uint32_t key[2], step, hash;
} stream;

static stream open_stream(ccn__job *j, const ccn__value *step) {
  const ccn__mesh *m = j->r->mesh;
  uint32_t coord[CCN__MAX_AXES], n = 0;
  const ccn__number seed = ccn__run_number(j->r, j->n, CCN__A_SEED);
  const uint64_t s = (uint64_t)seed.i;
  stream q = {.key = {(uint32_t)s, (uint32_t)(s >> 32)}};
  for (uint32_t a = 0; a < m->naxes; a++)
    if (j->out->place[a].kind == CCN__LOCAL) coord[n++] = ccn__mesh_coord(m, j->rank, a);
  q.hash = ccn__coordinate_hash(coord, n);
  if (!step) return q;
  if (!step->piece[j->rank].buf || !step->piece[j->rank].buf->bytes) ccn__defect(j->r, j->n, "has no step");
  q.step = (uint32_t)(uint64_t)ccn__load_i64((ccn__dtype)step->dtype, step->piece[j->rank].buf->data);
  return q;
}

/* Words 0 and 1 of the local elements [first, first + n). */
static void draw(ccn__job *j, const stream *q, int64_t first, size_t n, uint32_t *w0, uint32_t *w1) {
  int64_t index[CCN__BLOCK];
  ccn__global_indices(j->out->rank, j->out->dim, &j->box, first, n, index);
  ccn__philox_words(index, n, (const uint32_t[]){q->step, q->hash}, q->key, w0, w1);
}

/* ---- rand, randn, randint, bernoulli: n numbers of dtype t from their words ------------------------------------------- */

typedef struct limits {
  ccn__dtype t;
  int64_t low;
  uint64_t range; /* 0 means 2^64 */
  double p;
} limits;

static void uniform(const limits *q, void *out, const uint32_t *w0, const uint32_t *w1, size_t n) {
  float u[CCN__BLOCK];
  if (q->t == CCN__F64) {
    double *d = out;
    for (size_t i = 0; i < n; i++) d[i] = (double)(((uint64_t)w0[i] << 32 | w1[i]) >> 11) * 0x1p-53;
    return;
  }
  for (size_t i = 0; i < n; i++) u[i] = (float)(w0[i] >> 8) * 0x1p-24f;
  ccn__convert(q->t, out, CCN__F32, u, n);
}

static void normal(const limits *q, void *out, const uint32_t *w0, const uint32_t *w1, size_t n) {
  float x[CCN__BLOCK] = {0}, y[CCN__BLOCK] = {0};
  for (size_t i = 0; i < n; i++) {
    x[i] = (float)((w0[i] >> 8) + 1) * 0x1p-24f;
    y[i] = 0x1.921fb6p+2f * ((float)(w1[i] >> 8) * 0x1p-24f);
  }
  (void)ccn__kernel(CCN__K_LOG, CCN__F32, x, x, NULL, NULL, n);
  (void)ccn__kernel(CCN__K_COS, CCN__F32, y, y, NULL, NULL, n);
  for (size_t i = 0; i < n; i++) x[i] = -2.0f * x[i];
  (void)ccn__kernel(CCN__K_SQRT, CCN__F32, x, x, NULL, NULL, n);
  (void)ccn__kernel(CCN__K_MUL, CCN__F32, x, x, y, NULL, n);
  ccn__convert(q->t, out, CCN__F32, x, n);
}

/* The high 64 bits of a product of 64-bit numbers. */
static uint64_t high_half(uint64_t x, uint64_t y) {
  const uint64_t x0 = (uint32_t)x, x1 = x >> 32, y0 = (uint32_t)y, y1 = y >> 32;
  const uint64_t mid = x1 * y0 + (x0 * y0 >> 32), low = x0 * y1 + (uint32_t)mid;
  return x1 * y1 + (mid >> 32) + (low >> 32);
}

static void whole(const limits *q, void *out, const uint32_t *w0, const uint32_t *w1, size_t n) {
  int64_t v[CCN__BLOCK];
  const bool small = q->range && q->range <= (uint64_t)1 << 32;
  for (size_t i = 0; i < n; i++) {
    const uint64_t w = (uint64_t)w1[i] << 32 | w0[i];
    const uint64_t add = small ? w0[i] * q->range >> 32 : q->range ? high_half(w, q->range) : w;
    v[i] = (int64_t)((uint64_t)q->low + add);
  }
  ccn__convert(q->t, out, CCN__I64, v, n);
}

static void coin(const limits *q, void *out, const uint32_t *w0, const uint32_t *w1, size_t n) {
  uint8_t *b = out;
  (void)w1;
  for (size_t i = 0; i < n; i++) b[i] = (double)(w0[i] >> 8) * 0x1p-24 < q->p;
}

static void random_job(ccn__job *j) {
  const ccn__value *step = j->n->nin ? ccn__operand(j->r, j->n, 0) : NULL;
  const stream q = open_stream(j, step);
  limits l = {.t = (ccn__dtype)j->out->dtype};
  uint32_t w0[CCN__BLOCK], w1[CCN__BLOCK];
  void (*make)(const limits *, void *, const uint32_t *, const uint32_t *, size_t) = uniform;
  if (j->n->op == CCN__OP_RANDN) make = normal;
  if (j->n->op == CCN__OP_BERNOULLI) {
    make = coin;
    l.p = ccn__number_f64(ccn__run_number(j->r, j->n, CCN__A_P));
  }
  if (j->n->op == CCN__OP_RANDINT) {
    make = whole;
    l.low = ccn__run_number(j->r, j->n, CCN__A_LOW).i;
    l.range = (uint64_t)ccn__run_number(j->r, j->n, CCN__A_HIGH).i - (uint64_t)l.low;
  }
  char *to = ccn__job_new(j);
  for (int64_t e = 0; e < j->box.elements; e += CCN__BLOCK) {
    const size_t m = j->box.elements - e < CCN__BLOCK ? (size_t)(j->box.elements - e) : CCN__BLOCK;
    draw(j, &q, e, m, w0, w1);
    make(&l, to, w0, w1, m);
    to += m * ccn__dtype_size(l.t);
    ccn__tick(j->r, 4 * (int64_t)m);
  }
}

void ccn__eval_random(ccn__run *r, const ccn__node *n, ccn__id id) {
  ccn__each_rank(r, n, r->value[id], random_job, NULL);
}

/* ---- dropout ------------------------------------------------------------------------------------------------------------ */

static void drop_f32(float *out, const float *x, const uint32_t *w, double p, float scale, size_t n) {
  for (size_t i = 0; i < n; i++) out[i] = (double)(w[i] >> 8) * 0x1p-24 < p ? 0.0f : x[i] * scale;
}

static void drop_f64(double *out, const double *x, const uint32_t *w, double p, double scale, size_t n) {
  for (size_t i = 0; i < n; i++) out[i] = (double)(w[i] >> 8) * 0x1p-24 < p ? 0.0 : x[i] * scale;
}

static void dropout_job(ccn__job *j) {
  const ccn__value *x = ccn__operand(j->r, j->n, 0),
                   *step = j->n->nin > 1 ? ccn__operand(j->r, j->n, 1) : NULL;
  const ccn__dtype t = (ccn__dtype)j->out->dtype, acc = ccn__dtype_acc(t);
  const double p = ccn__number_f64(ccn__run_number(j->r, j->n, CCN__A_P)), scale = 1.0 / (1.0 - p);
  const stream q = open_stream(j, step);
  _Alignas(64) char raw[CCN__BLOCK_BYTES], wide[CCN__BLOCK_BYTES], result[CCN__BLOCK_BYTES];
  uint32_t w0[CCN__BLOCK], w1[CCN__BLOCK];
  ccn__view v;
  ccn__view_of(j->r, j->n, &v, x, j->rank, j->out->rank, j->out->dim, &j->box);
  char *to = ccn__job_new(j);
  for (int64_t e = 0; e < j->box.elements; e += CCN__BLOCK) {
    const size_t m = j->box.elements - e < CCN__BLOCK ? (size_t)(j->box.elements - e) : CCN__BLOCK;
    const void *in = ccn__view_as(&v, acc, t, e, m, raw, wide);
    draw(j, &q, e, m, w0, w1);
    if (acc == CCN__F64) drop_f64((double *)(void *)result, in, w0, p, scale, m);
    else drop_f32((float *)(void *)result, in, w0, p, (float)scale, m);
    ccn__convert(t, to, acc, result, m);
    to += m * ccn__dtype_size(t);
    ccn__tick(j->r, 4 * (int64_t)m);
  }
}

void ccn__eval_dropout(ccn__run *r, const ccn__node *n, ccn__id id) {
  ccn__each_rank(r, n, r->value[id], dropout_job, NULL);
}

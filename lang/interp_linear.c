/* interp_linear.c: matmul, conv2d, take, scatter_add.
 *
 * Each element of a product is added up in the order of the contracted index (k; c, i, j for a convolution), in the
 * accumulation dtype, from its first term on, and rounded once. Blocking keeps that order for each element. Engines
 * that call a library for these are exempt from equal bits and compared within a bound.
 * SPDX-License-Identifier: Apache-2.0 */
#include "interp_eval.h"

/* ---- pieces in the accumulation dtype ------------------------------------------------------------------------------ */

typedef struct wide {
  const char *data;
  ccn__buf *room; /* NULL if the piece itself has the dtype */
  ccn__box box;
} wide;

static wide widen(ccn__job *j, const ccn__value *x) {
  const ccn__dtype t = (ccn__dtype)x->dtype, acc = ccn__dtype_acc(t);
  const ccn__buf *buf = x->piece[j->rank].buf;
  wide w = {.room = NULL};
  if (!buf) ccn__defect(j->r, j->n, "reads a value that does not exist on this rank");
  ccn__value_box(j->r, x, j->rank, &w.box);
  w.data = buf->data;
  if (t == acc) return w;
  w.room = ccn__buf_new(&j->r->pool, (size_t)w.box.elements * ccn__dtype_size(acc));
  ccn__convert(acc, w.room->data, t, buf->data, (size_t)w.box.elements);
  w.data = w.room->data;
  return w;
}

/* What is computed in the accumulation dtype: the result's own memory, or room that is rounded into it. */
typedef struct sums {
  char *data;
  ccn__buf *room;
  ccn__dtype t, acc;
} sums;

static sums sums_new(ccn__job *j) {
  sums s = {.t = (ccn__dtype)j->out->dtype};
  s.acc = ccn__dtype_acc(s.t);
  s.data = ccn__job_new(j);
  if (s.t == s.acc) return s;
  s.room = ccn__buf_new(&j->r->pool, (size_t)j->box.elements * ccn__dtype_size(s.acc));
  s.data = s.room->data;
  return s;
}

static void sums_done(sums *s, ccn__job *j) {
  if (!s->room) return;
  ccn__convert(s->t, j->piece->buf->data, s->acc, s->data, (size_t)j->box.elements);
  ccn__buf_unref(s->room);
}

/* A contraction without terms: 0; but the piece of a rank that has none of them is neutral, -0. */
static void no_terms(sums *s, ccn__job *j, int64_t global_terms) {
  char element[8];
  ccn__store_f64(s->acc, element, global_terms ? -0.0 : 0.0);
  ccn__fill(s->data, element, ccn__dtype_size(s->acc), (size_t)j->box.elements);
}

static int64_t offset_in(ccn__job *j, int64_t start, int64_t extent, const ccn__box *b, uint32_t d) {
  const int64_t at = start - b->start[d];
  if (extent && (at < 0 || at + extent > b->extent[d]))
    ccn__defect(j->r, j->n, "reads outside the piece of an operand");
  return extent ? at : 0;
}

/* ---- matmul ---------------------------------------------------------------------------------------------------------- */

enum { K_BLOCK = 128, N_BLOCK = 512 }; /* of y: 256 KB of f32 stay near the core */

typedef struct product { /* c[m, n] = a[m, k] b[k, n], row-major with these row lengths */
  int64_t m, k, n, lda, ldb, ldc;
} product;

/* c[j] (+)= a0*b0[j] + ... term by term; four terms a pass save three passes over c. */
#define ROWS(T, NAME) \
  static void NAME##_row(T *restrict c, const T *a, const T *b, int64_t ldb, int64_t k0, int64_t k1, \
                         int64_t n) { \
    int64_t k = k0; \
    if (k == 0) { \
      for (int64_t i = 0; i < n; i++) c[i] = a[0] * b[i]; \
      k = 1; \
    } \
    for (; k + 4 <= k1; k += 4) { \
      const T a0 = a[k], a1 = a[k + 1], a2 = a[k + 2], a3 = a[k + 3]; \
      const T *b0 = b + k * ldb, *b1 = b0 + ldb, *b2 = b1 + ldb, *b3 = b2 + ldb; \
      for (int64_t i = 0; i < n; i++) { \
        T s = c[i] + a0 * b0[i]; \
        s = s + a1 * b1[i]; \
        s = s + a2 * b2[i]; \
        c[i] = s + a3 * b3[i]; \
      } \
    } \
    for (; k < k1; k++) \
      for (int64_t i = 0; i < n; i++) c[i] = c[i] + a[k] * b[k * ldb + i]; \
  } \
  static void NAME(ccn__run *r, const product *p, T *c, const T *a, const T *b) { \
    for (int64_t k = 0; k < p->k; k += K_BLOCK) { \
      const int64_t k1 = k + K_BLOCK < p->k ? k + K_BLOCK : p->k; \
      for (int64_t n = 0; n < p->n; n += N_BLOCK) { \
        const int64_t w = p->n - n < N_BLOCK ? p->n - n : N_BLOCK; \
        for (int64_t m = 0; m < p->m; m++) { \
          NAME##_row(c + m * p->ldc + n, a + m * p->lda, b + n, p->ldb, k, k1, w); \
          ccn__tick(r, w *(k1 - k) / 16); \
        } \
      } \
    } \
  }
ROWS(float, product_f32)
ROWS(double, product_f64)

/* Where batch number i of the result finds its matrix in an operand: dims aligned from the right, those of extent 1
 * broadcast. */
static int64_t batch_offset(ccn__job *j, const ccn__value *x, const ccn__box *b, const int64_t *stride,
                            int64_t i) {
  const ccn__value *out = j->out;
  int64_t at = 0;
  for (uint32_t e = out->rank - 2; e-- > 0;) {
    const int64_t c = i % j->box.extent[e], d = (int64_t)e - (int64_t)out->rank + x->rank;
    i /= j->box.extent[e];
    if (d < 0 || (x->dim[d] == 1 && out->dim[e] != 1)) continue;
    at += (c + offset_in(j, j->box.start[e], j->box.extent[e], b, (uint32_t)d)) * stride[d];
  }
  return at;
}

static void matmul_job(ccn__job *j) {
  const ccn__value *x = ccn__operand(j->r, j->n, 0), *y = ccn__operand(j->r, j->n, 1);
  const uint32_t xr = x->rank, yr = y->rank, rank = j->out->rank;
  wide a = widen(j, x), b = widen(j, y);
  sums s = sums_new(j);
  int64_t xs[CCN__MAX_RANK], ys[CCN__MAX_RANK], batches = 1;
  product p = {.m = j->box.extent[rank - 2], .n = j->box.extent[rank - 1], .k = a.box.extent[xr - 1]};
  if (p.k != b.box.extent[yr - 2] || (p.k && a.box.start[xr - 1] != b.box.start[yr - 2]))
    ccn__defect(j->r, j->n, "has operands cut in different places");
  p.lda = a.box.extent[xr - 1];
  p.ldb = b.box.extent[yr - 1];
  p.ldc = p.n;
  ccn__strides(xr, a.box.extent, xs);
  ccn__strides(yr, b.box.extent, ys);
  for (uint32_t d = 0; d + 2 < rank; d++) batches *= j->box.extent[d];
  if (p.k == 0) {
    no_terms(&s, j, x->dim[xr - 1]);
    batches = 0;
  }
  if (j->box.elements == 0) batches = 0;
  for (int64_t i = 0; i < batches; i++) {
    const int64_t ao = batch_offset(j, x, &a.box, xs, i) +
                       offset_in(j, j->box.start[rank - 2], p.m, &a.box, xr - 2) * xs[xr - 2];
    const int64_t bo =
      batch_offset(j, y, &b.box, ys, i) + offset_in(j, j->box.start[rank - 1], p.n, &b.box, yr - 1);
    if (s.acc == CCN__F64)
      product_f64(j->r, &p, (double *)(void *)s.data + i * p.m * p.n,
                  (const double *)(const void *)a.data + ao, (const double *)(const void *)b.data + bo);
    else
      product_f32(j->r, &p, (float *)(void *)s.data + i * p.m * p.n, (const float *)(const void *)a.data + ao,
                  (const float *)(const void *)b.data + bo);
  }
  sums_done(&s, j);
  ccn__buf_unref(a.room);
  ccn__buf_unref(b.room);
}

void ccn__eval_matmul(ccn__run *r, const ccn__node *n, ccn__id id) {
  const ccn__value *x = ccn__operand(r, n, 0), *y = ccn__operand(r, n, 1);
  if (x->rank < 2 || y->rank < 2 || r->value[id]->rank < 2 || !ccn__dtype_is_float((ccn__dtype)x->dtype))
    ccn__defect(r, n, "has no matrices");
  ccn__each_rank(r, n, r->value[id], matmul_job, NULL);
}

/* ---- conv2d ------------------------------------------------------------------------------------------------------------ */

typedef struct filter {
  int64_t c, h, w, i, j, oh, ow; /* channels; input, filter and result planes */
} filter;

/* One plane of the result from all channels, term by term; outside the image stand zeros. */
#define PLANES(T, NAME) \
  static void NAME(const filter *f, T *out, const T *x, const T *w) { \
    const int64_t up = (f->i - 1) / 2, left = (f->j - 1) / 2; \
    bool first = true; \
    for (int64_t c = 0; c < f->c; c++) \
      for (int64_t i = 0; i < f->i; i++) \
        for (int64_t k = 0; k < f->j; k++, first = false) { \
          const T a = w[(c * f->i + i) * f->j + k]; \
          for (int64_t h = 0; h < f->oh; h++) { \
            const int64_t row = h + i - up; \
            const bool inside = row >= 0 && row < f->h; \
            const T *from = x + (inside ? (c * f->h + row) * f->w : 0); \
            T *to = out + h * f->ow; \
            for (int64_t q = 0; q < f->ow; q++) { \
              const int64_t col = q + k - left; \
              const T term = (inside && col >= 0 && col < f->w ? from[col] : (T)0) * a; \
              to[q] = first ? term : to[q] + term; \
            } \
          } \
        } \
  }
PLANES(float, planes_f32)
PLANES(double, planes_f64)

static void conv2d_job(ccn__job *j) {
  const ccn__value *x = ccn__operand(j->r, j->n, 0), *y = ccn__operand(j->r, j->n, 1);
  wide a = widen(j, x), b = widen(j, y);
  sums s = sums_new(j);
  const int64_t *xe = a.box.extent, *we = b.box.extent, *oe = j->box.extent;
  const filter f = {xe[1], xe[2], xe[3], we[2], we[3], oe[2], oe[3]};
  const int64_t terms = f.c * f.i * f.j, plane = f.oh * f.ow;
  if (f.c != we[1] || (f.c && a.box.start[1] != b.box.start[1]))
    ccn__defect(j->r, j->n, "has operands cut in different places");
  if (j->box.elements && (f.oh != f.h || f.ow != f.w))
    ccn__defect(j->r, j->n, "has a result of another size than its image");
  if (terms == 0) no_terms(&s, j, x->dim[1] * f.i * f.j);
  const int64_t first_b = offset_in(j, j->box.start[0], oe[0], &a.box, 0);
  const int64_t first_o = offset_in(j, j->box.start[1], oe[1], &b.box, 0);
  for (int64_t n = 0; terms && plane && n < oe[0] * oe[1]; n++) {
    const int64_t xo = (first_b + n / oe[1]) * f.c * f.h * f.w, wo = (first_o + n % oe[1]) * terms;
    if (s.acc == CCN__F64)
      planes_f64(&f, (double *)(void *)s.data + n * plane, (const double *)(const void *)a.data + xo,
                 (const double *)(const void *)b.data + wo);
    else
      planes_f32(&f, (float *)(void *)s.data + n * plane, (const float *)(const void *)a.data + xo,
                 (const float *)(const void *)b.data + wo);
    ccn__tick(j->r, terms * plane / 16 + 1);
  }
  sums_done(&s, j);
  ccn__buf_unref(a.room);
  ccn__buf_unref(b.room);
}

void ccn__eval_conv2d(ccn__run *r, const ccn__node *n, ccn__id id) {
  const ccn__value *x = ccn__operand(r, n, 0), *w = ccn__operand(r, n, 1);
  if (x->rank != 4 || w->rank != 4 || r->value[id]->rank != 4 || !ccn__dtype_is_float((ccn__dtype)x->dtype))
    ccn__defect(r, n, "has no images");
  ccn__each_rank(r, n, r->value[id], conv2d_job, NULL);
}

/* ---- take -------------------------------------------------------------------------------------------------------------- */

/* The dims of x: `before`, the taken one, `after`; of the result: before, those of idx, after. */
typedef struct taking {
  const ccn__value *x, *idx;
  uint32_t dim;
} taking;

/* The indices of this rank's part of the result, as i64, checked against the global extent on every placement. */
static ccn__buf *load_indices(ccn__job *j, const ccn__value *idx, uint32_t ndims, const int64_t *dim,
                              const ccn__box *b, int64_t extent) {
  char raw[CCN__BLOCK_BYTES];
  ccn__view v;
  ccn__view_of(j->r, j->n, &v, idx, j->rank, ndims, dim, b);
  ccn__buf *room = ccn__buf_new(&j->r->pool, (size_t)b->elements * sizeof(int64_t));
  int64_t *index = room->data;
  for (int64_t e = 0; e < b->elements; e += CCN__BLOCK) {
    const size_t m = b->elements - e < CCN__BLOCK ? (size_t)(b->elements - e) : CCN__BLOCK;
    ccn__convert(CCN__I64, index + e, (ccn__dtype)idx->dtype, ccn__view_block(&v, e, m, raw), m);
    for (size_t i = 0; i < m; i++)
      if (index[e + (int64_t)i] < 0 || index[e + (int64_t)i] >= extent)
        ccn__index_raise(j, ndims, b, e + (int64_t)i, index[e + (int64_t)i], extent);
  }
  return room;
}

/* The dims [first, first + n) of a box. */
static ccn__box part_of_box(const ccn__box *b, uint32_t first, uint32_t n) {
  ccn__box p = {.elements = 1};
  for (uint32_t d = 0; d < n; d++) {
    p.start[d] = b->start[first + d];
    p.extent[d] = b->extent[first + d];
    p.elements *= p.extent[d];
  }
  return p;
}

static void take_job(ccn__job *j) {
  const taking *q = j->user;
  const ccn__value *x = q->x;
  const size_t item = ccn__dtype_size((ccn__dtype)x->dtype);
  const uint32_t dim = q->dim, ni = q->idx->rank, na = x->rank - dim - 1;
  const ccn__box rows = part_of_box(&j->box, 0, dim), picks = part_of_box(&j->box, dim, ni);
  const ccn__box tail = part_of_box(&j->box, dim + ni, na);
  const int64_t origin[CCN__MAX_RANK] = {0};
  int64_t stride[CCN__MAX_RANK], after[CCN__MAX_RANK];
  ccn__box b;
  char zero[8];
  ccn__value_box(j->r, x, j->rank, &b);
  if (!x->piece[j->rank].buf) ccn__defect(j->r, j->n, "reads a value that does not exist on this rank");
  const char *data = x->piece[j->rank].buf->data;
  ccn__buf *room = load_indices(j, q->idx, ni, j->out->dim + dim, &picks, x->dim[dim]);
  const int64_t *index = room->data;
  char *to = ccn__job_new(j);
  ccn__store_f64((ccn__dtype)x->dtype, zero, -0.0); /* neutral in the sum that is owed: -0 + -0 stays -0 */
  ccn__strides(x->rank, b.extent, stride);
  for (uint32_t d = 0; d < na; d++) after[d] = offset_in(j, tail.start[d], tail.extent[d], &b, dim + 1 + d);
  for (int64_t i = 0; j->box.elements && i < rows.elements * picks.elements; i++) {
    const int64_t row = index[i % picks.elements] - b.start[dim];
    int64_t rest = i / picks.elements, at = row * stride[dim];
    if (row < 0 || row >= b.extent[dim]) { /* another rank's: 0 */
      ccn__fill(to, zero, item, (size_t)tail.elements);
    } else {
      for (uint32_t d = dim; d-- > 0;) {
        at += (rest % rows.extent[d] + offset_in(j, rows.start[d], rows.extent[d], &b, d)) * stride[d];
        rest /= rows.extent[d];
      }
      ccn__copy_box(item, na, to, tail.extent, origin, data + at * (int64_t)item, b.extent + dim + 1, after,
                    tail.extent);
    }
    to += tail.elements * (int64_t)item;
    ccn__tick(j->r, tail.elements + 16);
  }
  ccn__buf_unref(room);
}

void ccn__eval_take(ccn__run *r, const ccn__node *n, ccn__id id) {
  taking q = {.x = ccn__operand(r, n, 0), .idx = ccn__operand(r, n, 1)};
  q.dim = (uint32_t)ccn__attr_int(n->attrs, CCN__A_DIM, 0);
  if (q.dim >= q.x->rank || r->value[id]->rank + 1 != q.x->rank + q.idx->rank)
    ccn__defect(r, n, "names no dim");
  ccn__each_rank(r, n, r->value[id], take_job, &q);
}

/* ---- scatter_add ------------------------------------------------------------------------------------------------------- */

/* The rows that this rank adds: of idx and v, whichever is cut says; the other one, whole, is read there. */
static void common_rows(ccn__job *j, const ccn__value *idx, const ccn__value *v, int64_t *start,
                        int64_t *count) {
  ccn__box bi, bv;
  ccn__value_box(j->r, idx, j->rank, &bi);
  ccn__value_box(j->r, v, j->rank, &bv);
  const int64_t ei = bi.start[0] + bi.extent[0], ev = bv.start[0] + bv.extent[0];
  *start = bi.start[0] > bv.start[0] ? bi.start[0] : bv.start[0];
  *count = (ei < ev ? ei : ev) - *start;
  if (*count < 0) *count = 0;
}

static void scatter_add_job(ccn__job *j) {
  const ccn__value *idx = ccn__operand(j->r, j->n, 0), *v = ccn__operand(j->r, j->n, 1);
  const uint32_t rank = j->out->rank;
  ccn__box rows = j->box;
  ccn__view view;
  char raw[CCN__BLOCK_BYTES], wide_block[CCN__BLOCK_BYTES];
  common_rows(j, idx, v, &rows.start[0], &rows.extent[0]);
  const ccn__box picks = {.start = {rows.start[0]}, .extent = {rows.extent[0]}, .elements = rows.extent[0]};
  ccn__buf *room = load_indices(j, idx, 1, idx->dim, &picks, j->out->dim[0]);
  const int64_t *index = room->data;
  int64_t width = 1; /* of a row */
  for (uint32_t d = 1; d < rank; d++) width *= j->box.extent[d];
  rows.elements = width * rows.extent[0];
  ccn__view_of(j->r, j->n, &view, v, j->rank, rank, v->dim, &rows);
  sums s = sums_new(j);
  const size_t item = ccn__dtype_size(s.acc);
  ccn__store_f64(s.acc, raw, 0);
  ccn__fill(s.data, raw, item, (size_t)j->box.elements);
  for (int64_t i = 0; i < rows.extent[0]; i++)
    for (int64_t e = 0; e < width; e += CCN__BLOCK) {
      const size_t m = width - e < CCN__BLOCK ? (size_t)(width - e) : CCN__BLOCK;
      const void *add = ccn__view_as(&view, s.acc, s.t, i * width + e, m, raw, wide_block);
      char *to = s.data + (size_t)(index[i] * width + e) * item;
      ccn__redop_combine(CCN__RED_SUM, s.acc, to, to, add, m);
      ccn__tick(j->r, (int64_t)m);
    }
  sums_done(&s, j);
  ccn__buf_unref(room);
}

void ccn__eval_scatter_add(ccn__run *r, const ccn__node *n, ccn__id id) {
  const ccn__value *idx = ccn__operand(r, n, 0), *v = ccn__operand(r, n, 1);
  if (idx->rank != 1 || v->rank < 1 || v->rank != r->value[id]->rank)
    ccn__defect(r, n, "has operands of the wrong rank");
  ccn__each_rank(r, n, r->value[id], scatter_add_job, NULL);
}

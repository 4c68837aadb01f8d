/* place.c: which piece of a value a rank holds, and moving elements between boxes of different layouts.
 *
 * The map (language reference, section 5): with c = u*ceil(ceil(D/u)/n), coordinate r owns [min(D, r*c),
 * min(D, (r+1)*c)). Where several axes cut one dim, the axis declared earlier cuts first and the later one applies
 * the same formula to the extent of the earlier piece.
 * SPDX-License-Identifier: Apache-2.0 */
#include "interp_eval.h"

/* Beyond this no allocation succeeds; products stop here instead of overflowing. */
#define MANY (INT64_MAX / 64)

void ccn__box_of(const ccn__mesh *m, uint32_t rank, uint32_t ndims, const int64_t *dim,
                 const ccn__cplace *place, ccn__box *out) {
  for (uint32_t d = 0; d < ndims; d++) {
    out->start[d] = 0;
    out->extent[d] = dim[d];
  }
  for (uint32_t a = 0; a < m->naxes; a++) {
    if (place[a].kind != CCN__SLICED) continue;
    const uint32_t d = place[a].dim;
    int64_t start, end;
    ccn__slice_range(out->extent[d], place[a].unit < 1 ? 1 : place[a].unit, m->size[a],
                     ccn__mesh_coord(m, rank, a), &start, &end);
    out->start[d] += start;
    out->extent[d] = end - start;
  }
  out->elements = 1;
  for (uint32_t d = 0; d < ndims; d++) {
    if (out->extent[d] == 0) {
      out->elements = 0;
      return;
    }
    out->elements = out->elements > MANY / out->extent[d] ? MANY : out->elements * out->extent[d];
  }
}

bool ccn__rank_has(const ccn__mesh *m, uint32_t rank, const ccn__cplace *place) {
  for (uint32_t a = 0; a < m->naxes; a++)
    if (place[a].kind == CCN__AT && ccn__mesh_coord(m, rank, a) != (uint32_t)place[a].coord) return false;
  return true;
}

uint32_t ccn__rank_twin(const ccn__mesh *m, uint32_t rank, const ccn__cplace *place) {
  uint32_t twin = rank;
  for (uint32_t a = 0; a < m->naxes; a++)
    if (place[a].kind == CCN__REPLICATED) twin -= ccn__mesh_coord(m, rank, a) * ccn__mesh_stride(m, a);
  return twin;
}

void ccn__strides(uint32_t n, const int64_t *extent, int64_t *out) {
  int64_t s = 1;
  for (uint32_t d = n; d-- > 0;) {
    out[d] = s;
    s *= extent[d];
  }
}

/* ---- boxes ---------------------------------------------------------------------------------------------------- */

/* Row-major position of `at` in an array of these extents. */
static int64_t linear(uint32_t n, const int64_t *extent, const int64_t *at) {
  int64_t i = 0;
  for (uint32_t d = 0; d < n; d++) i = i * extent[d] + at[d];
  return i;
}

void ccn__copy_box(size_t item, uint32_t ndims, void *dst, const int64_t *dst_extent, const int64_t *dst_at,
                   const void *src, const int64_t *src_extent, const int64_t *src_at, const int64_t *extent) {
  size_t run = item;
  uint32_t outer = ndims;
  for (uint32_t d = 0; d < ndims; d++)
    if (extent[d] <= 0) return;
  while (outer > 0) { /* the dims [outer, ndims) lie together in both arrays */
    outer--;
    run *= (size_t)extent[outer];
    if (extent[outer] != dst_extent[outer] || extent[outer] != src_extent[outer]) break;
  }
  int64_t from[CCN__MAX_RANK], to[CCN__MAX_RANK], i[CCN__MAX_RANK] = {0};
  ccn__strides(ndims, src_extent, from);
  ccn__strides(ndims, dst_extent, to);
  const char *s = (const char *)src + linear(ndims, src_extent, src_at) * (int64_t)item;
  char *t = (char *)dst + linear(ndims, dst_extent, dst_at) * (int64_t)item;
  for (;;) {
    int64_t ds = 0, dt = 0;
    for (uint32_t d = 0; d < outer; d++) {
      ds += i[d] * from[d];
      dt += i[d] * to[d];
    }
    memcpy(t + dt * (int64_t)item, s + ds * (int64_t)item, run);
    uint32_t d = outer;
    while (d > 0 && ++i[d - 1] == extent[d - 1]) i[--d] = 0;
    if (d == 0) return;
  }
}

/* ---- views ---------------------------------------------------------------------------------------------------- */

/* Drops dims of extent 1 and merges neighbours that one stride describes. */
void ccn__view_init(ccn__view *v, const void *base, size_t item, uint32_t n, const int64_t *extent,
                    const int64_t *stride) {
  *v = (ccn__view){.base = base, .item = (uint32_t)item};
  for (uint32_t d = 0; d < n; d++) {
    if (extent[d] == 1) continue;
    if (v->n && v->stride[v->n - 1] == stride[d] * extent[d]) {
      v->extent[v->n - 1] *= extent[d];
      v->stride[v->n - 1] = stride[d];
    } else {
      v->extent[v->n] = extent[d];
      v->stride[v->n++] = stride[d];
    }
  }
  if (v->n) return;
  v->n = 1; /* a single element */
  v->extent[0] = 1;
}

void ccn__fill(void *out, const void *element, size_t item, size_t n) {
  char *o = out;
  if (n == 0) return;
  memcpy(o, element, item);
  for (size_t done = 1; done < n;) { /* doubling: memcpy is fast for any size of element */
    const size_t more = done < n - done ? done : n - done;
    memcpy(o + done * item, o, more * item);
    done += more;
  }
}

#define GATHER(T) \
  { \
    const T *f = (const T *)(const void *)from; \
    T *t = (T *)(void *)to; \
    for (int64_t i = 0; i < n; i++) t[i] = f[i * stride]; \
    break; \
  }
static void gather(uint32_t item, char *to, const char *from, int64_t stride, int64_t n) {
  switch (item) {
  case 1: GATHER(uint8_t)
  case 2: GATHER(uint16_t)
  case 4: GATHER(uint32_t)
  default: GATHER(uint64_t)
  }
}
#undef GATHER

/* Per tensor: the scalar of the member in which each element is. Members follow each other; empty ones are passed. */
static void load_members(const ccn__view *v, int64_t first, size_t n, char *out) {
  int64_t e = v->start + first, end = e + (int64_t)n;
  uint32_t low = 0, high = v->members->k;
  while (high - low > 1) { /* the last member that starts at or before e */
    const uint32_t mid = low + (high - low) / 2;
    if (v->members->at[mid].start <= e) low = mid;
    else high = mid;
  }
  for (; e < end && low < v->members->k; low++) {
    int64_t stop = v->members->at[low].start + v->members->at[low].elements;
    if (stop > end) stop = end;
    if (stop <= e) continue;
    ccn__fill(out, v->base + (size_t)low * v->item, v->item, (size_t)(stop - e));
    out += (stop - e) * (int64_t)v->item;
    e = stop;
  }
}

void ccn__view_load(const ccn__view *v, int64_t first, size_t n, void *out) {
  char *to = out;
  int64_t i[CCN__MAX_RANK], rest = first, left = (int64_t)n;
  if (left == 0) return;
  if (v->members) {
    load_members(v, first, n, out);
    return;
  }
  const uint32_t last = v->n - 1;
  for (uint32_t d = v->n; d-- > 0;) {
    i[d] = rest % v->extent[d];
    rest /= v->extent[d];
  }
  while (left > 0) {
    int64_t at = 0, run = v->extent[last] - i[last];
    for (uint32_t d = 0; d < v->n; d++) at += i[d] * v->stride[d];
    if (run > left) run = left;
    const char *from = v->base + at * v->item;
    if (v->stride[last] == 1) memcpy(to, from, (size_t)run * v->item);
    else if (v->stride[last] == 0) ccn__fill(to, from, v->item, (size_t)run);
    else gather(v->item, to, from, v->stride[last], run);
    to += run * v->item;
    left -= run;
    i[last] += run;
    for (uint32_t d = last; i[d] == v->extent[d] && d > 0; d--) {
      i[d] = 0;
      i[d - 1]++;
    }
  }
}

const void *ccn__view_as(const ccn__view *v, ccn__dtype to, ccn__dtype from, int64_t first, size_t n,
                         void *raw, void *wide) {
  const void *x = ccn__view_block(v, first, n, raw);
  if (to == from) return x;
  ccn__convert(to, wide, from, x, n);
  return wide;
}

void ccn__view_at(ccn__run *r, const ccn__node *n, ccn__view *v, const ccn__value *x, uint32_t rank,
                  const void *base, size_t item, uint32_t ndims, const int64_t *dim, const ccn__box *box) {
  int64_t own[CCN__MAX_RANK], stride[CCN__MAX_RANK], at = 0;
  ccn__box xbox;
  ccn__value_box(r, x, rank, &xbox);
  ccn__strides(x->rank, xbox.extent, own);
  for (uint32_t e = 0; e < ndims; e++) {
    const int64_t d = (int64_t)e - (int64_t)ndims + x->rank;
    stride[e] = 0;
    if (d < 0 || (x->dim[d] == 1 && dim[e] != 1)) continue;
    const int64_t offset = box->start[e] - xbox.start[d];
    if (box->elements && (offset < 0 || offset + box->extent[e] > xbox.extent[d]))
      ccn__defect(r, n, "reads outside the piece of an operand");
    stride[e] = own[d];
    at += offset * own[d];
  }
  ccn__view_init(v, box->elements ? (const char *)base + at * (int64_t)item : base, item, ndims, box->extent,
                 stride);
}

void ccn__view_of(ccn__run *r, const ccn__node *n, ccn__view *v, const ccn__value *x, uint32_t rank,
                  uint32_t ndims, const int64_t *dim, const ccn__box *box) {
  if (!x->piece[rank].buf) ccn__defect(r, n, "reads a value that does not exist on this rank");
  ccn__view_at(r, n, v, x, rank, x->piece[rank].buf->data, ccn__dtype_size((ccn__dtype)x->dtype), ndims, dim,
               box);
}

void ccn__global_indices(uint32_t ndims, const int64_t *dim, const ccn__box *box, int64_t first, size_t n,
                         int64_t *out) {
  int64_t i[CCN__MAX_RANK], rest = first;
  if (n == 0) return;
  if (ndims == 0) {
    out[0] = 0;
    return;
  }
  for (uint32_t d = ndims; d-- > 0;) {
    i[d] = rest % box->extent[d];
    rest /= box->extent[d];
  }
  for (size_t done = 0; done < n;) {
    int64_t at = 0;
    for (uint32_t d = 0; d < ndims; d++) at = at * dim[d] + box->start[d] + i[d];
    for (; done < n && i[ndims - 1] < box->extent[ndims - 1]; i[ndims - 1]++) out[done++] = at++;
    for (uint32_t d = ndims - 1; d > 0 && i[d] == box->extent[d]; d--) {
      i[d] = 0;
      i[d - 1]++;
    }
  }
}

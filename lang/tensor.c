/* tensor.c: tensors as the script holds them: numbers out of them, other placements, descriptions.
 * SPDX-License-Identifier: Apache-2.0 */
#include "call.h"

ccn__cplace ccn__concrete(const ccn__place *p, int64_t unit) {
  ccn__cplace c = {.kind = p->kind};
  if (p->kind == CCN__SLICED) c.dim = p->dim, c.unit = unit;
  if (p->kind == CCN__PARTIAL) c.op = p->op;
  if (p->kind == CCN__AT) c.coord = p->coord;
  return c;
}

bool ccn__cplace_equal(const ccn__cplace *x, const ccn__cplace *y) {
  int64_t ux = x->unit < 1 ? 1 : x->unit, uy = y->unit < 1 ? 1 : y->unit;
  if (x->kind != y->kind) return false;
  if (x->kind == CCN__SLICED) return x->dim == y->dim && ux == uy;
  if (x->kind == CCN__PARTIAL) return x->op == y->op;
  return x->kind != CCN__AT || x->coord == y->coord;
}

static ccn__val number(ccn__dtype t, const void *p) {
  if (t == CCN__BOOL) return (ccn__val){.kind = CCN__V_BOOL, .b = *(const uint8_t *)p != 0};
  if (!ccn__dtype_is_float(t)) return (ccn__val){.kind = CCN__V_INT, .i = ccn__load_i64(t, p)};
  return (ccn__val){.kind = CCN__V_FLOAT, .single = t != CCN__F64, .f = ccn__load_f64(t, p)};
}

bool ccn__tensor_number(const ccn__tensor *t, ccn__val *out) {
  if (t->rank || t->bundle || !t->buf[0]) return false;
  for (uint32_t a = 0; a < t->naxes; a++)
    if (t->place[a].kind != CCN__REPLICATED) return false;
  *out = number((ccn__dtype)t->dtype, t->buf[0]->data);
  return true;
}

ccn__val ccn__tensor_element(const ccn__tensor *t, uint32_t rank, int64_t i) {
  const char *p = t->buf[rank]->data;
  return number((ccn__dtype)t->dtype, p + (size_t)i * ccn__dtype_size((ccn__dtype)t->dtype));
}

/* Whether rank q's piece holds elements of the same value as rank r's: they agree on every axis over which values
 * differ as wholes, and q is the first of those that hold the same piece. */
static bool contributes(const ccn__mesh *m, const ccn__tensor *t, uint32_t q, uint32_t r) {
  for (uint32_t a = 0; a < m->naxes; a++) {
    uint32_t cq = ccn__mesh_coord(m, q, a), cr = ccn__mesh_coord(m, r, a);
    switch (t->place[a].kind) {
    case CCN__REPLICATED:
      if (cq) return false;
      break;
    case CCN__SLICED: break;
    default:
      if (cq != cr) return false;
    }
  }
  return true;
}

static void copy_common(const ccn__tensor *t, const ccn__box *from, const void *src, const ccn__box *to,
                        void *dst) {
  int64_t extent[CCN__MAX_RANK], src_at[CCN__MAX_RANK], dst_at[CCN__MAX_RANK];
  for (uint32_t d = 0; d < t->rank; d++) {
    int64_t a = from->start[d] > to->start[d] ? from->start[d] : to->start[d];
    int64_t fe = from->start[d] + from->extent[d], te = to->start[d] + to->extent[d];
    int64_t b = fe < te ? fe : te;
    if (b <= a) return;
    extent[d] = b - a;
    src_at[d] = a - from->start[d];
    dst_at[d] = a - to->start[d];
  }
  ccn__copy_box(ccn__dtype_size((ccn__dtype)t->dtype), t->rank, dst, to->extent, dst_at, src, from->extent,
                src_at, extent);
}

static ccn__members *copy_members(ccn__rt *rt, const ccn__members *m) {
  ccn__members *c = ccn__heap_alloc(rt->heap, ccn__members_size(m->k));
  memcpy(c, m, ccn__members_size(m->k));
  return c;
}

ccn__tensor *ccn__tensor_convert(ccn__rt *rt, ccn__tensor *t, const ccn__cplace *want) {
  const ccn__mesh *m = &rt->mesh;
  bool same = true;
  if (t->home) {
    ccn__tensor *home = t->home;
    bool there = !home->bundle == !t->bundle; /* not a member of a list's bundle */
    for (uint32_t a = 0; a < t->naxes; a++) there = there && ccn__cplace_equal(&home->place[a], &want[a]);
    if (there) return home;
    t = ccn__tensor_here(rt, t);
  }
  for (uint32_t a = 0; a < t->naxes; a++) same &= ccn__cplace_equal(&t->place[a], &want[a]);
  if (same) return t;
  ccn__tensor *n = ccn__tensor_new(rt, (ccn__dtype)t->dtype, t->rank);
  memcpy(n->dim, t->dim, sizeof n->dim);
  n->naxes = t->naxes;
  n->bundle = t->bundle;
  if (t->members) n->members = copy_members(rt, t->members);
  memcpy(n->place, want, sizeof *want * t->naxes);
  for (uint32_t r = 0; r < rt->world && !rt->recording; r++) {
    ccn__box to;
    uint32_t twin = ccn__rank_twin(m, r, want);
    if (!ccn__rank_has(m, r, want)) continue;
    if (twin != r) {
      n->buf[r] = ccn__buf_ref(n->buf[twin]);
      continue;
    }
    ccn__box_of(m, r, t->rank, t->dim, want, &to);
    n->buf[r] = ccn__buf_new(&rt->pool, (size_t)to.elements * ccn__dtype_size((ccn__dtype)t->dtype));
    for (uint32_t q = 0; q < rt->world; q++) {
      ccn__box from;
      if (!t->buf[q] || !contributes(m, t, q, r)) continue;
      ccn__box_of(m, q, t->rank, t->dim, t->place, &from);
      copy_common(t, &from, t->buf[q]->data, &to, n->buf[r]->data);
    }
  }
  return n;
}

ccn__tensor *ccn__tensor_whole(ccn__rt *rt, ccn__tensor *t) {
  ccn__cplace want[CCN__MAX_AXES] = {{0}};
  for (uint32_t a = 0; a < t->naxes; a++)
    if (t->place[a].kind != CCN__REPLICATED && t->place[a].kind != CCN__SLICED) return NULL;
  return ccn__tensor_convert(rt, t, want);
}

void ccn__tensor_take(ccn__tensor *to, ccn__tensor *from) {
  to->home = NULL;
  for (uint32_t r = 0; r < to->world; r++) {
    ccn__buf *old = to->buf[r];
    if (old && old->outside) { /* the host looks at this memory */
      if (from->buf[r] && old->bytes) memmove(old->data, from->buf[r]->data, old->bytes);
      continue;
    }
    to->buf[r] = from->buf[r] ? ccn__buf_ref(from->buf[r]) : NULL;
    ccn__buf_unref(old);
  }
}

static void describe_place(ccn__rt *rt, const ccn__cplace *p, uint32_t a, ccn__text *s) {
  static const char *const words[] = {"replicated", "sliced", "local", "partial", "at"};
  if (p->kind == CCN__REPLICATED) return;
  ccn__text_printf(s, " %s", words[p->kind]);
  if (p->kind == CCN__SLICED) {
    ccn__text_printf(s, "(%u", p->dim);
    if (p->unit > 1) ccn__text_printf(s, ", unit: %lld", (long long)p->unit);
    ccn__text_putc(s, ')');
  }
  if (p->kind == CCN__PARTIAL) ccn__text_printf(s, "(%s)", ccn__redop_name((ccn__redop)p->op));
  if (p->kind == CCN__AT) ccn__text_printf(s, "(%d)", p->coord);
  ccn__text_printf(s, " over %s", rt->mesh.name[a]);
}

void ccn__tensor_placement(ccn__rt *rt, const ccn__tensor *t, ccn__text *s) {
  for (uint32_t a = 0; a < t->naxes; a++) describe_place(rt, &t->place[a], a, s);
}

const char *ccn__tensor_describe(ccn__rt *rt, const ccn__tensor *t) {
  ccn__text s;
  ccn__text_init(&s, rt->diags->arena);
  if (t->bundle) {
    ccn__text_printf(&s, "[%s%s] of %u", ccn__dtype_name((ccn__dtype)t->dtype),
                     t->bundle == CCN__BUNDLE_TENSORS ? "[*]" : "", t->members->k);
  } else {
    ccn__text_puts(&s, ccn__dtype_name((ccn__dtype)t->dtype));
    for (uint32_t d = 0; d < t->rank; d++)
      ccn__text_printf(&s, "%s%lld", d ? ", " : "[", (long long)t->dim[d]);
    if (t->rank) ccn__text_putc(&s, ']');
  }
  ccn__tensor_placement(rt, t, &s);
  return s.at;
}

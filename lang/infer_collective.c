/* infer_collective.c: the placement rows of the collectives (language reference, section 12).
 *
 * For each op: its own row's code for the named axes first, then CCN0210 for another axis, CCN0218 last.
 * SPDX-License-Identifier: Apache-2.0 */
#include "infer.h"

#define FAIL(code, axis, text) return ccn__infer_fail(err, (code), (int)(axis), 0, -1, (text))

static bool pays(ccn__redop op, uint8_t owed) {
  return op == owed || (op == CCN__RED_AVG && owed == CCN__RED_SUM);
}

static ccn__place sliced(int64_t dim, const ccn__dim *unit) {
  return (ccn__place){.kind = CCN__SLICED, .dim = (uint16_t)dim, .unit = unit};
}

/* The axis's own row: from the placement over it to the new one. */
static bool row(const ccn__infer_in *q, uint32_t a, ccn__place *p, ccn__type_error *err) {
  const ccn__attr *unit_attr = ccn__attr_find(q->attrs, CCN__A_UNIT),
                  *fill = ccn__attr_find(q->attrs, CCN__A_FILL);
  const ccn__dim *unit = unit_attr ? unit_attr->dim : NULL;
  ccn__redop op = (ccn__redop)ccn__attr_int(q->attrs, CCN__A_RED, 0);
  int64_t dim = ccn__attr_int(q->attrs, CCN__A_DIM, 0), root = ccn__attr_int(q->attrs, CCN__A_ROOT, 0);
  int32_t n = q->g->mesh.size[a];
  switch (q->op) {
  case CCN__OP_ALLREDUCE:
  case CCN__OP_REDUCESCATTER:
  case CCN__OP_REDUCE:
    if (p->kind == CCN__PARTIAL && !pays(op, p->op)) FAIL(211, a, "it owes another reduction");
    if (p->kind != CCN__PARTIAL && p->kind != CCN__LOCAL) FAIL(212, a, "there is nothing to reduce");
    *p = q->op == CCN__OP_REDUCESCATTER ? sliced(dim, unit) : (ccn__place){.kind = CCN__REPLICATED};
    if (q->op == CCN__OP_REDUCE) *p = (ccn__place){.kind = CCN__AT, .coord = (int32_t)root};
    return true;
  case CCN__OP_ALLGATHER:
  case CCN__OP_GATHER:
    if (p->kind != CCN__SLICED) FAIL(213, a, "it is not sliced");
    *p = (ccn__place){.kind = CCN__REPLICATED};
    if (q->op == CCN__OP_GATHER) *p = (ccn__place){.kind = CCN__AT, .coord = (int32_t)root};
    return true;
  case CCN__OP_ALLTOALL:
    if (ccn__attr_find(q->attrs, CCN__A_FROM)) {
      if (p->kind != CCN__SLICED || p->dim != ccn__attr_int(q->attrs, CCN__A_FROM, 0))
        FAIL(213, a, "it is not sliced along the dim to come from");
      *p = sliced(ccn__attr_int(q->attrs, CCN__A_TO, 0), unit);
      return true;
    }
    if (p->kind != CCN__LOCAL) FAIL(209, a, "only a local value is exchanged in blocks");
    return true;
  case CCN__OP_BROADCAST:
    if (p->kind != CCN__LOCAL && !(p->kind == CCN__AT && p->coord == root))
      FAIL(206, a, "a broadcast needs a local value or one that exists at its root");
    *p = (ccn__place){.kind = CCN__REPLICATED};
    return true;
  case CCN__OP_SCATTER:
    if (p->kind != CCN__AT || p->coord != root)
      FAIL(206, a, "a scatter needs a value that exists at its root only");
    *p = sliced(dim, unit);
    return true;
  case CCN__OP_SHIFT: {
    if (p->kind == CCN__REPLICATED) FAIL(215, a, "it is the same everywhere: nothing would move");
    if (p->kind == CCN__SLICED || p->kind == CCN__PARTIAL)
      FAIL(216, a, "a sliced or owed value cannot be shifted over its own axis");
    if (p->kind != CCN__AT) return true;
    int64_t to = p->coord + ccn__attr_int(q->attrs, CCN__A_BY, 0);
    if (fill && (to < 0 || (n && to >= n))) FAIL(215, a, "it would leave the open end");
    if (!fill && n) to = ((to % n) + n) % n;
    p->coord = (int32_t)to;
    return true;
  }
  case CCN__OP_PERMUTE: {
    if (p->kind == CCN__REPLICATED) FAIL(215, a, "it is the same everywhere: nothing would move");
    if (p->kind == CCN__SLICED || p->kind == CCN__PARTIAL)
      FAIL(216, a, "a sliced or owed value cannot be permuted over its own axis");
    if (p->kind != CCN__AT) return true;
    const ccn__attr *pairs = ccn__attr_find(q->attrs, CCN__A_PAIRS);
    for (int i = 0; pairs && i + 1 < pairs->n; i += 2)
      if (pairs->ints[i] == p->coord) return p->coord = (int32_t)pairs->ints[i + 1], true;
    FAIL(215, a, "no pair takes its coordinate anywhere");
  }
  case CCN__OP_SLICE:
    if (p->kind == CCN__SLICED) FAIL(217, a, "it is sliced already");
    if (p->kind == CCN__LOCAL) FAIL(203, a, "a local value has no common whole to slice");
    if (p->kind == CCN__PARTIAL) FAIL(210, a, "it owes a reduction");
    if (p->kind == CCN__AT) FAIL(206, a, "it exists at one coordinate only");
    *p = sliced(dim, unit);
    return true;
  default: /* TO_LOCAL */
    if (p->kind == CCN__SLICED || p->kind == CCN__LOCAL) FAIL(217, a, "it is different on each rank already");
    if (p->kind == CCN__AT) FAIL(206, a, "it exists at one coordinate only");
    *p = (ccn__place){.kind = CCN__LOCAL};
    return true;
  }
}

/* CCN0210 because of axes that are not named. */
static bool other_axes(const ccn__infer_in *q, uint64_t over, ccn__type_error *err) {
  const ccn__type *x = q->in[0];
  ccn__redop op = (ccn__redop)ccn__attr_int(q->attrs, CCN__A_RED, 0);
  const ccn__attr *fill = ccn__attr_find(q->attrs, CCN__A_FILL);
  for (uint32_t a = 0; a < x->naxes; a++) {
    if ((over >> a & 1) || x->place[a].kind != CCN__PARTIAL) continue;
    uint8_t owed = x->place[a].op;
    if (op && !pays(op, owed)) FAIL(210, a, "over another axis it owes another reduction");
    if (!fill) continue;
    ccn__number v;
    if (ccn__lit_eval(fill->lit, NULL, &v) || v.unknown) continue;
    double f = ccn__number_f64(v);
    bool named_local = false;
    for (uint32_t b = 0; b < x->naxes; b++) named_local |= (over >> b & 1) && x->place[b].kind == CCN__LOCAL;
    if (named_local && ((owed == CCN__RED_SUM && f != 0) || (owed == CCN__RED_PROD && f != 0 && f != 1)))
      FAIL(210, a, "the fill value would be counted once for each rank that owes");
  }
  return true;
}

int ccn__later_cut(const ccn__type *t, uint32_t a, uint32_t d, uint64_t except) {
  for (uint32_t b = a + 1; b < t->naxes; b++)
    if (!(except >> b & 1) && t->place[b].kind == CCN__SLICED && t->place[b].dim == d) return (int)b;
  return -1;
}

/* CCN0218: adding or removing axis a's cut of a dim that an axis behind a, not named, cuts. */
static bool cut_order(const ccn__infer_in *q, const ccn__type *out, uint64_t over, ccn__type_error *err) {
  const ccn__type *x = q->in[0];
  const char *text = "a later axis cuts this dim; gather that one first";
  for (uint32_t a = 0; a < x->naxes; a++) {
    if (!(over >> a & 1)) continue;
    const ccn__place *from = &x->place[a], *to = &out->place[a];
    int b = -1;
    if (from->kind == CCN__SLICED && !ccn__place_equal(from, to)) b = ccn__later_cut(x, a, from->dim, over);
    if (b < 0 && to->kind == CCN__SLICED && !ccn__place_equal(from, to))
      b = ccn__later_cut(x, a, to->dim, over);
    if (b < 0 && q->op == CCN__OP_ALLTOALL && !ccn__attr_find(q->attrs, CCN__A_FROM)) {
      uint64_t d = (uint64_t)ccn__attr_int(q->attrs, CCN__A_DIM, 0);
      for (uint32_t c = 0; c < x->naxes; c++)
        if (x->place[c].kind == CCN__SLICED && x->place[c].dim == d) b = (int)c;
      text = "another axis cuts this dim; gather that one first";
    }
    if (b >= 0) FAIL(218, b, text);
  }
  return true;
}

static bool attributes(const ccn__infer_in *q, uint64_t over, ccn__type_error *err) {
  static const ccn__attr_key dims[] = {CCN__A_DIM, CCN__A_FROM, CCN__A_TO};
  const ccn__type *x = q->in[0];
  ccn__redop op = (ccn__redop)ccn__attr_int(q->attrs, CCN__A_RED, 0);
  for (size_t i = 0; i < CCN__COUNT(dims); i++) {
    int64_t d = ccn__attr_int(q->attrs, dims[i], 0);
    bool given = ccn__attr_find(q->attrs, dims[i]) != NULL;
    if (given && (d < 0 || d >= x->rank)) FAIL(309, -1, "it has no such dim");
  }
  bool cuts = q->op == CCN__OP_REDUCESCATTER || q->op == CCN__OP_SCATTER || q->op == CCN__OP_SLICE;
  if (cuts && x->rank == 0) FAIL(309, -1, "a scalar has no dim to cut");
  if ((op == CCN__RED_SUM || op == CCN__RED_PROD) && x->dtype == CCN__BOOL)
    FAIL(104, -1, "bool has no sum; use max for any, min for all");
  if (op == CCN__RED_AVG && !ccn__dtype_is_float(x->dtype))
    FAIL(104, -1, "only floats have an average; cast first");
  const ccn__attr *root = ccn__attr_find(q->attrs, CCN__A_ROOT),
                  *pairs = ccn__attr_find(q->attrs, CCN__A_PAIRS);
  for (uint32_t a = 0; a < x->naxes; a++) {
    int32_t n = q->g->mesh.size[a];
    if (!(over >> a & 1)) continue;
    if (root && (root->i < 0 || (n && root->i >= n)))
      FAIL(308, a, "the root is not a coordinate of the axis");
    for (int i = 0; pairs && i < pairs->n; i++)
      if (pairs->ints[i] < 0 || (n && pairs->ints[i] >= n))
        FAIL(308, a, "a pair names no coordinate of the axis");
  }
  return true;
}

/* permute: no target twice; without fill a permutation of all coordinates. */
static bool permutation(const ccn__infer_in *q, uint64_t over, ccn__type_error *err) {
  const ccn__attr *pairs = ccn__attr_find(q->attrs, CCN__A_PAIRS);
  if (q->op != CCN__OP_PERMUTE || !pairs) return true;
  for (int i = 0; i < pairs->n; i += 2)
    for (int j = i + 2; j < pairs->n; j += 2) {
      if (pairs->ints[i + 1] == pairs->ints[j + 1]) FAIL(215, -1, "a target is named twice");
      if (!ccn__attr_find(q->attrs, CCN__A_FILL) && pairs->ints[i] == pairs->ints[j])
        FAIL(215, -1, "a source is named twice, without fill");
    }
  for (uint32_t a = 0; a < q->in[0]->naxes; a++) {
    int32_t n = q->g->mesh.size[a];
    if ((over >> a & 1) && n && !ccn__attr_find(q->attrs, CCN__A_FILL) && pairs->n / 2 != n)
      FAIL(215, a, "without fill the pairs must be a permutation of all coordinates");
  }
  return true;
}

bool ccn__infer_collective(const ccn__infer_in *q, ccn__type *out, ccn__type_error *err) {
  uint64_t over = (uint64_t)ccn__attr_int(q->attrs, CCN__A_OVER, 0);
  *out = *q->in[0];
  if (!attributes(q, over, err)) return false;
  for (uint32_t a = 0; a < out->naxes; a++)
    if ((over >> a & 1) && !row(q, a, &out->place[a], err)) return false;
  return permutation(q, over, err) && other_axes(q, over, err) && cut_order(q, out, over, err);
}

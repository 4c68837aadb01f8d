/* interp_watch.c: looking at values while a graph runs: --check-nan and --watch.
 * SPDX-License-Identifier: Apache-2.0 */
#include "interp_eval.h"

#include <math.h>

/* ---- the first NaN ------------------------------------------------------------------------------------------------ */

/* The index of the first NaN among n elements, or n. */
static size_t find_nan(ccn__run *r, ccn__dtype t, const char *x, size_t n) {
  double block[CCN__BLOCK];
  for (size_t e = 0; e < n; e += CCN__BLOCK) {
    const size_t m = n - e < CCN__BLOCK ? n - e : CCN__BLOCK;
    bool some = false;
    ccn__convert(CCN__F64, block, t, x + e * ccn__dtype_size(t), m);
    for (size_t i = 0; i < m; i++) some |= block[i] != block[i];
    for (size_t i = 0; some && i < m; i++)
      if (block[i] != block[i]) return e + i;
    ccn__tick(r, (int64_t)m);
  }
  return n;
}

/* The first rank with a NaN, and where; false if there is none. Looked for once a value. */
static bool has_nan(ccn__run *r, ccn__value *v, uint32_t *out_rank, size_t *out_index) {
  const ccn__dtype t = v->tree ? ccn__dtype_acc((ccn__dtype)v->dtype) : (ccn__dtype)v->dtype;
  if (v->nan == 1 || !ccn__dtype_is_float(t)) return false;
  for (uint32_t k = 0; k < r->world; k++) {
    const ccn__buf *b = v->piece[k].buf;
    if (!b || (ccn__rank_twin(r->mesh, k, v->place) != k)) continue;
    const size_t n = b->bytes / ccn__dtype_size(t), i = find_nan(r, t, b->data, n);
    if (i == n) continue;
    v->nan = 2;
    *out_rank = k;
    *out_index = i;
    return true;
  }
  v->nan = 1;
  return false;
}

void ccn__check_nan(ccn__run *r, const ccn__node *n, ccn__id id) {
  uint32_t rank;
  size_t index;
  ccn__value *v = r->value[id];
  ccn__box b;
  if (ccn__op_table[n->op].kind == CCN__KIND_STRUCT || n->op == CCN__OP_FULL)
    return; /* given, not computed */
  if (!has_nan(r, v, &rank, &index)) return;
  for (uint32_t i = 0; i < n->nin; i++) {
    uint32_t k;
    size_t e;
    ccn__value *x = r->value[n->in[i]];
    if (x && (x->nan == 2 || has_nan(r, x, &k, &e))) return; /* it only passes on what it got */
  }
  ccn__value_box(r, v, rank, &b);
  const char *where =
    b.elements && !v->per ? ccn__index_text(r, v->rank, &b, (int64_t)index % b.elements) : "a part";
  ccn__diag *d =
    ccn__error(r->rt->diags, 607, n->span, "no operand has one", "`%s` (%s) made a NaN on rank %u at %s",
               ccn__node_name(n), ccn__op_table[n->op].name, rank, where);
  ccn__node_raise(r, n, d);
}

/* ---- watched names -------------------------------------------------------------------------------------------------- */

/* "mh", or with the program's name in front, "adam.mh". */
static bool is_watched(ccn__run *r, const ccn__node *n) {
  const ccn_options *o = r->rt->options;
  const char *name = n->name ? n->name : n->autoname, *label = r->x->label ? r->x->label : "";
  const size_t l = strlen(label);
  if (!name || n->op == CCN__OP_ON || n->op == CCN__OP_REPEAT) return false;
  for (size_t i = 0; i < o->nwatch; i++) {
    const char *w = o->watch[i];
    if (strcmp(w, name) == 0) return true;
    if (strncmp(w, label, l) == 0 && w[l] == '.' && strcmp(w + l + 1, name) == 0) return true;
  }
  return false;
}

/* f32[1003] sliced(0) over dp */
static void print_type(ccn__run *r, const ccn__value *v, ccn__text *t) {
  static const char *const kinds[] = {"replicated", "sliced", "local", "partial", "at"};
  ccn__text_puts(t, ccn__dtype_name((ccn__dtype)v->dtype));
  ccn__text_putc(t, '[');
  for (uint32_t d = 0; d < v->rank; d++) ccn__text_printf(t, d ? ", %lld" : "%lld", (long long)v->dim[d]);
  ccn__text_putc(t, ']');
  for (uint32_t a = 0; a < r->mesh->naxes; a++) {
    const ccn__cplace *p = &v->place[a];
    if (p->kind == CCN__REPLICATED) continue;
    ccn__text_printf(t, " %s", kinds[p->kind]);
    if (p->kind == CCN__SLICED && p->unit > 1)
      ccn__text_printf(t, "(%u, unit: %lld)", p->dim, (long long)p->unit);
    else if (p->kind == CCN__SLICED) ccn__text_printf(t, "(%u)", p->dim);
    if (p->kind == CCN__PARTIAL) ccn__text_printf(t, "(%s)", ccn__redop_name((ccn__redop)p->op));
    if (p->kind == CCN__AT) ccn__text_printf(t, "(%d)", p->coord);
    ccn__text_printf(t, " over %s", r->mesh->name[a]);
  }
}

typedef struct statistics {
  double min, max, squares;
  uint64_t nan, elements; /* not NaN; NaN */
} statistics;

static void look_at(ccn__run *r, statistics *s, ccn__dtype t, const char *x, size_t n) {
  double block[CCN__BLOCK];
  for (size_t e = 0; e < n; e += CCN__BLOCK) {
    const size_t m = n - e < CCN__BLOCK ? n - e : CCN__BLOCK;
    ccn__convert(CCN__F64, block, t, x + e * ccn__dtype_size(t), m);
    for (size_t i = 0; i < m; i++) {
      const double f = block[i];
      if (f != f) {
        s->nan++;
        continue;
      }
      if (!s->elements++ || f < s->min) s->min = f;
      if (s->elements == 1 || f > s->max) s->max = f;
      s->squares += f * f;
    }
    ccn__tick(r, (int64_t)m);
  }
}

static void print_number(ccn__text *t, const char *what, double x, const ccn__value *v) {
  ccn__text_printf(t, "  %s ", what);
  if (ccn__dtype_is_float((ccn__dtype)v->dtype)) ccn__text_float(t, x, v->dtype != CCN__F64);
  else ccn__text_printf(t, "%.0f", x);
}

void ccn__watch_node(ccn__run *r, const ccn__node *n, ccn__id id) {
  const ccn_options *o = r->rt->options;
  statistics s = {0};
  ccn__text t;
  if (!o->watch_print || !is_watched(r, n)) return;
  const ccn__value *v = ccn__fold(r, n, r->value[id]);
  for (uint32_t k = 0; k < r->world; k++) { /* distinct pieces */
    const ccn__buf *b = v->piece[k].buf;
    if (b && ccn__rank_twin(r->mesh, k, v->place) == k)
      look_at(r, &s, (ccn__dtype)v->dtype, b->data, b->bytes / ccn__dtype_size((ccn__dtype)v->dtype));
  }
  ccn__text_init(&t, &r->arena);
  ccn__text_printf(&t, "watch %s%s%s  ", r->x->label ? r->x->label : "", r->x->label ? "." : "",
                   ccn__node_name(n));
  print_type(r, v, &t);
  if (s.elements) {
    print_number(&t, "min", s.min, v);
    print_number(&t, "max", s.max, v);
    ccn__text_puts(&t, "  norm ");
    ccn__text_float(&t, sqrt(s.squares), v->dtype != CCN__F64);
  }
  ccn__text_printf(&t, "  nan %llu\n", (unsigned long long)s.nan);
  o->watch_print(t.at, t.n, o->watch_user);
}

/* call_bind.c: arguments of a call from the script meet the parameters of a lowered graph: numbers, sizes,
 * placements, overlap, and the constraints that waited for sizes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "call.h"

static ccn__diag *bad(ccn__invoke *v, const ccn__actual *a, uint16_t code, const char *label,
                      const char *text) {
  bool place =
    code == 110 || code == 304 || code == 305 || code == 101 || code == 219 || code == 225 || code == 800;
  ccn__diag *d =
    ccn__error(v->rt->diags, code, place && a && a->span.source ? a->span : v->call, label, "%s", text);
  if (a && a->name) ccn__note(v->rt->diags, d, a->param, "parameter `%s` of `%s`", a->name, v->name);
  return d;
}

#define TEXT(...) ccn__arena_printf(v->rt->diags->arena, __VA_ARGS__)

/* ---- numbers and lists as tensors ---- */

static const char *number_why(ccn__val x, ccn__dtype t) {
  ccn__number n = x.kind == CCN__V_FLOAT ? (ccn__number){.is_float = true, .f = x.f}
                                         : (ccn__number){.i = x.kind == CCN__V_BOOL ? x.b : x.i};
  if ((x.kind == CCN__V_BOOL) != (t == CCN__BOOL))
    return t == CCN__BOOL ? "is neither true nor false" : "is no number";
  return ccn__number_fits(n, t);
}

static ccn__tensor *scalar(ccn__invoke *v, const ccn__actual *a, ccn__val x, ccn__dtype t) {
  const char *why = number_why(x, t);
  if (why) {
    ccn__text s;
    ccn__text_init(&s, v->rt->diags->arena);
    if (x.kind == CCN__V_FLOAT) ccn__text_float(&s, x.f, false);
    else ccn__text_printf(&s, "%lld", (long long)(x.kind == CCN__V_BOOL ? x.b : x.i));
    ccn__diag *d =
      bad(v, a, 110, "does not convert", TEXT("the number %s %s in %s", s.at, why, ccn__dtype_name(t)));
    ccn__hint(v->rt->diags, d,
              ccn__dtype_is_float(t) ? "declare the parameter with a wider dtype"
                                     : "pass a whole number in range, or declare the parameter as a float");
    ccn__rt_raise(v->rt, d);
  }
  ccn__tensor *r = ccn__tensor_new(v->rt, t, 0);
  ccn__number n = x.kind == CCN__V_FLOAT ? (ccn__number){.is_float = true, .f = x.f}
                                         : (ccn__number){.i = x.kind == CCN__V_BOOL ? x.b : x.i};
  ccn__buf *b = ccn__buf_new(&v->rt->pool, ccn__dtype_size(t));
  r->buf[0] = b;
  ccn__number_store(n, t, b->data);
  for (uint32_t k = 1; k < v->rt->world; k++) r->buf[k] = ccn__buf_ref(b);
  return r;
}

/* The members' tensors, each whole, in one flat tensor. */
static ccn__tensor *flatten(ccn__invoke *v, const ccn__actual *a, ccn__list *list, const ccn__type *want) {
  ccn__rt *rt = v->rt;
  ccn__tensor *home = ccn__list_home(list);
  if (home && home->dtype == want->dtype && home->bundle == want->bundle) return home;
  ccn__tensor **member = CCN__NEWN(v->arena, ccn__tensor *, list->n + 1);
  ccn__tensor *flat = ccn__tensor_new(rt, (ccn__dtype)want->dtype, 1);
  ccn__members *m = ccn__heap_alloc(rt->heap, ccn__members_size(list->n));
  flat->members = m;
  m->k = list->n;
  flat->bundle = want->bundle;
  for (uint32_t i = 0; i < list->n; i++) {
    ccn__val x = list->at[i];
    bool number = x.kind == CCN__V_INT || x.kind == CCN__V_FLOAT || x.kind == CCN__V_BOOL;
    if (number && want->bundle == CCN__BUNDLE_SCALARS)
      x = (ccn__val){.kind = CCN__V_TENSOR, .tensor = scalar(v, a, x, (ccn__dtype)want->dtype)};
    if (x.kind != CCN__V_TENSOR || x.tensor->bundle ||
        (want->bundle == CCN__BUNDLE_SCALARS && x.tensor->rank))
      ccn__rt_raise(rt, bad(v, a, 800, "not a list of them",
                            TEXT("element %u of the list is not a %s", i,
                                 want->bundle == CCN__BUNDLE_SCALARS ? "number" : "tensor")));
    member[i] = x.tensor;
    if (member[i]->dtype != want->dtype)
      ccn__rt_raise(rt, bad(v, a, 101, "another dtype",
                            TEXT("element %u of the list is %s, parameter `%s` is [%s[*]]", i,
                                 ccn__dtype_name((ccn__dtype)member[i]->dtype), a->name,
                                 ccn__dtype_name((ccn__dtype)want->dtype))));
    ccn__tensor *whole = ccn__tensor_whole(rt, member[i]);
    if (whole) member[i] = whole;
    if (!i) memcpy(flat->place, member[0]->place, sizeof flat->place);
    for (uint32_t k = 0; k < flat->naxes; k++)
      if (!ccn__cplace_equal(&member[i]->place[k], &flat->place[k]) ||
          member[i]->place[k].kind == CCN__SLICED)
        ccn__rt_raise(rt, bad(v, a, 219, "another placement",
                              TEXT("element %u of the list is %s: the tensors of a bundle have one placement",
                                   i, ccn__tensor_describe(rt, member[i]))));
    m->at[i].rank = member[i]->rank;
    memcpy(m->at[i].dim, member[i]->dim, sizeof m->at[i].dim);
    m->at[i].start = flat->dim[0];
    m->at[i].elements = 1;
    for (uint32_t d = 0; d < member[i]->rank; d++) m->at[i].elements *= member[i]->dim[d];
    flat->dim[0] += m->at[i].elements;
  }
  size_t size = ccn__dtype_size((ccn__dtype)want->dtype);
  for (uint32_t r = 0; r < rt->world && !rt->recording; r++) {
    uint32_t twin = ccn__rank_twin(&rt->mesh, r, flat->place);
    if (!ccn__rank_has(&rt->mesh, r, flat->place)) continue;
    if (twin != r) {
      flat->buf[r] = ccn__buf_ref(flat->buf[twin]);
      continue;
    }
    flat->buf[r] = ccn__buf_new(&rt->pool, (size_t)flat->dim[0] * size);
    for (uint32_t i = 0; i < list->n; i++)
      if (m->at[i].elements)
        memcpy((char *)flat->buf[r]->data + (size_t)m->at[i].start * size, member[i]->buf[r]->data,
               (size_t)m->at[i].elements * size);
  }
  return flat;
}

void ccn__invoke_actual(ccn__invoke *v, uint32_t i, ccn__val x, ccn__span span, const ccn__ast *param) {
  ccn__actual *a = &v->actual[i];
  const ccn__type *want = v->g->nodes.at[v->g->params.at[i].node].type;
  a->span = span;
  if (param) a->param = param->span, a->name = param->name;
  bool number = x.kind == CCN__V_INT || x.kind == CCN__V_FLOAT || x.kind == CCN__V_BOOL;
  bool list = x.kind == CCN__V_LIST || x.kind == CCN__V_TUPLE;
  if (number && !want->rank && !want->bundle) {
    a->tensor = scalar(v, a, x, (ccn__dtype)want->dtype);
  } else if (list && want->bundle) {
    a->list = x.list;
    a->tensor = flatten(v, a, x.list, want);
  } else if (x.kind == CCN__V_TENSOR) {
    a->given = a->tensor = x.tensor;
  } else {
    ccn__diag *d = bad(v, a, 800, "not that",
                       TEXT("parameter `%s` takes %s, not %s", a->name ? a->name : "x",
                            want->bundle ? "a bundle"
                            : want->rank ? "a tensor"
                                         : "a number",
                            ccn__val_kind_name(x)));
    ccn__rt_raise(v->rt, d);
  }
}

/* ---- sizes ---- */

static void check_kind(ccn__invoke *v, const ccn__actual *a, const ccn__type *want) {
  const ccn__tensor *t = a->tensor;
  if (t->dtype != want->dtype) {
    ccn__diag *d = bad(v, a, 101, TEXT("this is %s", ccn__dtype_name((ccn__dtype)t->dtype)),
                       TEXT("parameter `%s` is %s, the argument is %s", a->name,
                            ccn__dtype_name((ccn__dtype)want->dtype), ccn__dtype_name((ccn__dtype)t->dtype)));
    ccn__hint(v->rt->diags, d, "cast it, as in `%s(x)`", ccn__dtype_name((ccn__dtype)want->dtype));
    ccn__rt_raise(v->rt, d);
  }
  if (t->bundle != want->bundle)
    ccn__rt_raise(v->rt, bad(v, a, 305, "not that",
                             TEXT("parameter `%s` is %s", a->name,
                                  want->bundle ? "a bundle: pass a list of tensors" : "a tensor")));
  if (t->rank != want->rank) {
    ccn__diag *d = bad(v, a, 305, TEXT("this is %s", ccn__tensor_describe(v->rt, t)),
                       TEXT("parameter `%s` has %u dims, the argument has %u", a->name, want->rank, t->rank));
    ccn__rt_raise(v->rt, d);
  }
}

static void bind_symbols(ccn__invoke *v, const ccn__actual *a, const ccn__type *want) {
  for (uint32_t d = 0; d < want->rank; d++) {
    uint32_t s;
    int64_t have = a->tensor->dim[d];
    if (!ccn__dim_is_symbol(want->dim[d], &s)) continue;
    if (v->sym[s] < 0) {
      v->sym[s] = have;
      v->sym_span[s] = a->span;
      v->sym_by[s] = a->name;
      continue;
    }
    if (v->sym[s] == have) continue;
    ccn__diag *e = bad(v, a, 304, TEXT("here it is %lld", (long long)have),
                       TEXT("one symbol, two sizes: `%s` of `%s` is %lld and %lld", v->g->symbols.at[s].name,
                            v->name, (long long)v->sym[s], (long long)have));
    if (v->sym_span[s].source)
      ccn__note(v->rt->diags, e, v->sym_span[s], "`%s` became %lld here", v->g->symbols.at[s].name,
                (long long)v->sym[s]);
    ccn__rt_raise(v->rt, e);
  }
}

CCN__NORETURN static void refuse_extent(ccn__invoke *v, ccn__diag *d, const char *why) {
  ccn__hint(v->rt->diags, d,
            strstr(why, "divide")     ? "choose sizes that divide"
            : strstr(why, "negative") ? "choose sizes for which it is 0 or more"
                                      : "choose smaller sizes");
  ccn__rt_raise(v->rt, d);
}

static void check_extents(ccn__invoke *v, const ccn__actual *a, const ccn__type *want) {
  for (uint32_t d = 0; d < want->rank; d++) {
    int64_t n = 0;
    const char *why = ccn__dim_eval(want->dim[d], v->sym, &n);
    if (!why && n == a->tensor->dim[d]) continue;
    ccn__text s;
    ccn__text_init(&s, v->rt->diags->arena);
    ccn__dim_print(want->dim[d], ccn__graph_symbol_name, v->g, &s);
    if (why)
      refuse_extent(v,
                    bad(v, a, 310, TEXT("this is %s", ccn__tensor_describe(v->rt, a->tensor)),
                        TEXT("the extent %s of parameter `%s` %s", s.at, a->name, why)),
                    why);
    ccn__rt_raise(v->rt, bad(v, a, 305, TEXT("this is %s", ccn__tensor_describe(v->rt, a->tensor)),
                             TEXT("dim %u of parameter `%s` is %s = %lld, the argument has %lld", d, a->name,
                                  s.at, (long long)n, (long long)a->tensor->dim[d])));
  }
}

static void bind_bundle(ccn__invoke *v, const ccn__actual *a, const ccn__type *want) {
  v->bundle[want->bundle_id] = a->tensor->members;
  uint32_t total = ccn__graph_find_symbol(v->g, NULL, CCN__SYM_TOTAL, want->bundle_id);
  uint32_t count = ccn__graph_find_symbol(v->g, NULL, CCN__SYM_COUNT, want->bundle_id);
  if (total != CCN__NO_INDEX) v->sym[total] = want->bundle == CCN__BUNDLE_TENSORS ? a->tensor->dim[0] : 0;
  if (count != CCN__NO_INDEX) v->sym[count] = a->tensor->members->k;
}

/* ---- placements ---- */

static const char *place_hint(const ccn__cplace *from, const ccn__cplace *to) {
  bool owes = from->kind == CCN__PARTIAL || from->kind == CCN__LOCAL;
  if (owes && to->kind == CCN__REPLICATED)
    return "reduce it in a program first: `allreduce(sum, x)`, or declare the parameter `local`";
  if (owes && to->kind == CCN__SLICED)
    return "reduce and cut it in a program first: `reducescatter(sum, x, dim: ...)`";
  if (to->kind == CCN__LOCAL)
    return "make it local in a program first: `local(x)`, or declare the parameter without `local`";
  if (from->kind == CCN__SLICED && to->kind == CCN__SLICED)
    return "change its cut in a program first: `alltoall(x, from: ..., to: ...)`";
  return "declare the parameter with the placement that the argument has";
}

/* `cut`: the axes over which a schedule stores the parameter in slices; its type says replicated there. */
static void convert(ccn__invoke *v, ccn__actual *a, const ccn__type *want, int64_t cut) {
  ccn__tensor *t = a->tensor;
  ccn__cplace place[CCN__MAX_AXES];
  for (uint32_t k = 0; k < want->naxes; k++) {
    int64_t unit = 1;
    if (want->place[k].unit) {
      const char *why = ccn__dim_eval(want->place[k].unit, v->sym, &unit);
      if (why || unit < 1)
        ccn__rt_raise(v->rt,
                      bad(v, a, 310, "here",
                          TEXT("the unit of the cut of parameter `%s` %s", a->name,
                               why ? why : "is not positive"))); /* the general cure: sizes that divide */
    }
    place[k] = ccn__concrete(&want->place[k], unit);
    const ccn__cplace *from = &t->place[k];
    bool moves = (from->kind == CCN__REPLICATED || from->kind == CCN__SLICED) &&
                 (place[k].kind == CCN__REPLICATED || place[k].kind == CCN__SLICED);
    if (from->kind == CCN__SLICED && place[k].kind == CCN__SLICED && !(cut >> k & 1)) moves = false;
    if (moves || ccn__cplace_equal(from, &place[k])) continue;
    ccn__diag *d = bad(v, a, 219, TEXT("this is %s", ccn__tensor_describe(v->rt, t)),
                       TEXT("the argument for `%s` has another placement over `%s` than declared", a->name,
                            v->rt->mesh.name[k]));
    ccn__hint(v->rt->diags, d, "%s", place_hint(from, &place[k]));
    ccn__rt_raise(v->rt, d);
  }
  a->tensor = ccn__tensor_convert(v->rt, t, place);
}

/* ---- CCN0225 ---- */

static void refuse_overlap(ccn__invoke *v, uint32_t i, uint32_t j) {
  ccn__diag *d = ccn__error(v->rt->diags, 225, v->call, "the same tensor twice",
                            "the tensor for `%s`, which `%s` updates, is also passed for `%s`",
                            v->actual[i].name, v->name, v->actual[j].name);
  ccn__note(v->rt->diags, d, v->g->nodes.at[v->g->params.at[i].update].span, "the update of `%s`",
            v->actual[i].name);
  ccn__hint(v->rt->diags, d, "pass a copy: `copy(p)`");
  ccn__rt_raise(v->rt, d);
}

/* owner: of each tensor that was seen, the first argument that brought it. */
static void own(ccn__invoke *v, ccn__index *owner, const ccn__tensor *t, uint32_t i) {
  if (!t) return;
  uint32_t first = ccn__index_find(owner, t, 0);
  if (first == CCN__NO_INDEX) ccn__index_add(v->arena, owner, t, 0, i);
  else if (v->g->params.at[i].update != CCN__NO_ID) refuse_overlap(v, i, first);
  else if (v->g->params.at[first].update != CCN__NO_ID) refuse_overlap(v, first, i);
}

static void check_overlap(ccn__invoke *v) {
  ccn__index owner = {0};
  for (uint32_t i = 0; i < v->nactual; i++) {
    const ccn__actual *a = &v->actual[i];
    own(v, &owner, a->given, i);
    for (uint32_t k = 0; a->list && k < a->list->n; k++)
      if (a->list->at[k].kind == CCN__V_TENSOR) own(v, &owner, a->list->at[k].tensor, i);
  }
}

/* ---- CCN0226 ---- */

static bool read_only(const ccn__tensor *t) {
  for (uint32_t r = 0; t && r < t->world; r++)
    if (t->buf[r] && t->buf[r]->outside && t->buf[r]->outside->read_only) return true;
  return false;
}

static void check_writable(ccn__invoke *v) {
  for (uint32_t i = 0; i < v->nactual; i++) {
    const ccn__actual *a = &v->actual[i];
    if (v->g->params.at[i].update == CCN__NO_ID) continue;
    bool refused = read_only(a->given);
    for (uint32_t k = 0; a->list && k < a->list->n; k++)
      if (a->list->at[k].kind == CCN__V_TENSOR) refused = refused || read_only(a->list->at[k].tensor);
    if (!refused) continue;
    ccn__diag *d =
      ccn__error(v->rt->diags, 226, a->span.source ? a->span : v->call, "read-only",
                 "the tensor for `%s`, which `%s` updates, stands in memory that the host lent for "
                 "reading only",
                 a->name, v->name);
    ccn__note(v->rt->diags, d, v->g->nodes.at[v->g->params.at[i].update].span, "the update of `%s`", a->name);
    ccn__hint(v->rt->diags, d, "pass a copy: `copy(%s)`", a->name);
    ccn__rt_raise(v->rt, d);
  }
}

/* ---- constraints ---- */

static bool same_members(const ccn__members *x, const ccn__members *y) {
  if (x->k != y->k) return false;
  bool scalars = true, equal = true; /* of one of them: then only K counts */
  for (uint32_t i = 0; i < x->k; i++) {
    scalars &= x->at[i].rank == 0 || y->at[i].rank == 0;
    equal &= x->at[i].rank == y->at[i].rank &&
             memcmp(x->at[i].dim, y->at[i].dim, x->at[i].rank * sizeof(int64_t)) == 0;
  }
  return equal || scalars;
}

static const char *broken(ccn__invoke *v, const ccn__constraint *c) {
  int64_t x = 0, y = 0;
  const char *why = NULL;
  if (c->kind == CCN__NEED_BUNDLES)
    return same_members(v->bundle[c->bx], v->bundle[c->by])
             ? NULL
             : "the bundles that meet here have different tensors";
  why = ccn__dim_eval(c->x, v->sym, &x);
  if (!why && c->y) why = ccn__dim_eval(c->y, v->sym, &y);
  if (why) return TEXT("an extent %s", why);
  switch (c->kind) {
  case CCN__NEED_EQUAL:
    return x == y ? NULL
                  : TEXT("two extents that must be equal are %lld and %lld", (long long)x, (long long)y);
  case CCN__NEED_LESS_EQ:
    return x >= 0 && x <= y ? NULL : TEXT("the index %lld is outside 0 .. %lld", (long long)x, (long long)y);
  case CCN__NEED_LESS:
    return x >= 0 && x < y ? NULL
                           : TEXT("the index %lld is outside an extent of %lld", (long long)x, (long long)y);
  case CCN__NEED_MULTIPLE:
    return y && x % y == 0
             ? NULL
             : TEXT("the extent %lld is not a multiple of %lld ranks", (long long)x, (long long)y);
  default: return NULL;
  }
}

static void check_constraints(ccn__invoke *v) {
  for (uint32_t i = 0; i < v->g->constraints.n; i++) {
    const ccn__constraint *c = &v->g->constraints.at[i];
    const char *text = broken(v, c);
    if (!text) continue;
    ccn__diag *d = ccn__error(v->rt->diags, c->code, v->call, "with these sizes", "%s", text);
    ccn__note(v->rt->diags, d, c->span, "needed here");
    if (c->other.source) ccn__note(v->rt->diags, d, c->other, "the other extent");
    ccn__rt_raise(v->rt, d);
  }
}

/* No extent may be negative, no value too large to be held. */
static void check_sizes(ccn__invoke *v) {
  for (ccn__id i = 0; i < v->g->nodes.n; i++) {
    const ccn__type *t = v->g->nodes.at[i].type;
    int64_t total = (int64_t)ccn__dtype_size((ccn__dtype)t->dtype), n = 0;
    for (uint32_t d = 0; d < t->rank; d++) {
      const char *why = ccn__dim_eval(t->dim[d], v->sym, &n);
      if (!why && n < 0) why = "is negative";
      if (!why && n && __builtin_mul_overflow(total, n, &total)) why = "is too large";
      if (!why) continue;
      ccn__diag *e = ccn__error(v->rt->diags, 310, v->call, "with these sizes", "an extent %s", why);
      ccn__note(v->rt->diags, e, v->g->nodes.at[i].span, "of the result here");
      refuse_extent(v, e, why);
    }
  }
}

/* Numbers made of extents have their values only now: none may overflow, divide by zero or leave the range that its op
 * demands. */
static void check_numbers(ccn__invoke *v) {
  for (ccn__id i = 0; i < v->g->nodes.n; i++) {
    const ccn__node *n = &v->g->nodes.at[i];
    ccn__number low = {.i = 0}, x;
    for (uint32_t k = 0; k < n->attrs.n; k++) {
      const ccn__attr *a = &n->attrs.at[k];
      if (ccn__attr_table[a->key].kind != CCN__ATTR_LIT) continue;
      const char *why = ccn__lit_eval(a->lit, v->sym, &x);
      const int code = why ? 810 : 102;
      bool whole =
        (a->key == CCN__A_VALUE || a->key == CCN__A_FILL) && !ccn__dtype_is_float((ccn__dtype)n->type->dtype);
      if (!why && whole && x.is_float) why = ccn__number_fits(x, (ccn__dtype)n->type->dtype);
      if (!why && a->key == CCN__A_P && !(ccn__number_f64(x) >= 0 && ccn__number_f64(x) <= 1))
        why = "is not from 0 to 1";
      if (!why && a->key == CCN__A_LOW) low = x;
      if (!why && a->key == CCN__A_HIGH && (x.is_float || low.is_float || x.i <= low.i))
        why = "is not above `low`";
      if (!why) continue;
      ccn__diag *e =
        ccn__error(v->rt->diags, code, v->call, "with these sizes", "a number made of extents %s", why);
      ccn__note(v->rt->diags, e, n->span, "needed here");
      ccn__rt_raise(v->rt, e);
    }
  }
}

void ccn__invoke_bind(ccn__invoke *v) {
  ccn__graph *g = v->g;
  v->sym = CCN__NEWN(v->arena, int64_t, g->symbols.n + 1);
  v->sym_span = CCN__NEWN(v->arena, ccn__span, g->symbols.n + 1);
  v->sym_by = CCN__NEWN(v->arena, ccn__name, g->symbols.n + 1);
  v->bundle = CCN__NEWN(v->arena, ccn__members *, g->nbundles + 1);
  for (uint32_t s = 0; s < g->symbols.n; s++)
    v->sym[s] = g->symbols.at[s].kind == CCN__SYM_SIZE ? g->mesh.size[g->symbols.at[s].index] : -1;
  for (uint32_t i = 0; i < v->nactual; i++) {
    const ccn__type *want = g->nodes.at[g->params.at[i].node].type;
    check_kind(v, &v->actual[i], want);
    if (want->bundle) bind_bundle(v, &v->actual[i], want);
    else bind_symbols(v, &v->actual[i], want);
  }
  check_overlap(v);
  check_writable(v);
  for (uint32_t i = 0; i < v->nactual; i++) {
    const ccn__node *param = &g->nodes.at[g->params.at[i].node];
    const ccn__type *want = param->type;
    if (!want->bundle) check_extents(v, &v->actual[i], want);
    convert(v, &v->actual[i], want, ccn__attr_int(param->attrs, CCN__A_SHARD, 0));
    if (want->bundle) bind_bundle(v, &v->actual[i], want);
  }
  check_constraints(v);
  check_sizes(v);
  check_numbers(v);
}

/* script_tensor.c: tensors in the hands of a script: members of bundles, pieces of ranks, placing whole
 * values, tensor(...), copy, per_rank; the methods and fields of values.
 * SPDX-License-Identifier: Apache-2.0 */
#include "script.h"

/* ---- making tensors ------------------------------------------------------------------------------------ */

static size_t item_size(const ccn__tensor *t) { return ccn__dtype_size((ccn__dtype)t->dtype); }

ccn__tensor *ccn__tensor_place(ccn__rt *rt, ccn__dtype dtype, uint32_t rank, const int64_t *dim,
                               const ccn__cplace *place, const void *whole) {
  ccn__tensor *t = ccn__tensor_new(rt, dtype, rank);
  ccn__box box;
  int64_t zero[CCN__MAX_RANK] = {0};
  for (uint32_t d = 0; d < rank; d++) t->dim[d] = dim[d];
  for (uint32_t a = 0; a < t->naxes; a++) t->place[a] = place[a];
  for (uint32_t r = 0; r < t->world && !rt->recording; r++) {
    uint32_t twin = ccn__rank_twin(&rt->mesh, r, t->place);
    if (!ccn__rank_has(&rt->mesh, r, t->place)) continue;
    if (twin != r) {
      t->buf[r] = ccn__buf_ref(t->buf[twin]);
      continue;
    }
    ccn__box_of(&rt->mesh, r, rank, dim, t->place, &box);
    t->buf[r] = ccn__buf_new(&rt->pool, (size_t)box.elements * item_size(t));
    ccn__copy_box(item_size(t), rank, t->buf[r]->data, box.extent, zero, whole, dim, box.start, box.extent);
  }
  return t;
}

/* Another tensor of the same placement and the same buffers: buffers are never written while they are
 * shared. */
static ccn__tensor *share(ccn__rt *rt, ccn__tensor *t) {
  t = ccn__tensor_here(rt, t);
  ccn__tensor *c = ccn__tensor_new(rt, (ccn__dtype)t->dtype, t->rank);
  c->bundle = t->bundle;
  memcpy(c->dim, t->dim, sizeof c->dim);
  memcpy(c->place, t->place, sizeof c->place);
  if (t->members) {
    c->members = ccn__heap_alloc(rt->heap, ccn__members_size(t->members->k));
    memcpy(c->members, t->members, ccn__members_size(t->members->k));
  }
  for (uint32_t r = 0; r < t->world; r++)
    if (t->buf[r]) c->buf[r] = ccn__buf_share(t->buf[r]);
  return c;
}

ccn__val ccn__fn_copy(ccn__rt *rt, const ccn__builtin_call *c) {
  ccn__val v = c->at[0]->value;
  if (v.kind == CCN__V_TENSOR) return ccn__tensor_val(share(rt, v.tensor));
  if (v.kind != CCN__V_LIST) return v; /* nothing else changes */
  ccn__list *l = ccn__list_new(rt, CCN__V_LIST, v.list->n);
  for (uint32_t i = 0; i < v.list->n; i++) {
    ccn__val x = v.list->at[i];
    ccn__list_add(rt, l, x.kind == CCN__V_TENSOR ? ccn__tensor_val(share(rt, x.tensor)) : x);
  }
  return ccn__list_val(l);
}

/* ---- tensor([[1, 2], [3, 4]], f32) --------------------------------------------------------------------- */

/* Extents from the first elements; all others must agree. */
static uint32_t list_shape(ccn__rt *rt, ccn__val v, int64_t *dim, ccn__span span) {
  uint32_t rank = 0;
  while (v.kind == CCN__V_LIST || v.kind == CCN__V_TUPLE) {
    if (rank == CCN__MAX_RANK)
      ccn__fail(rt, 208, span, "nested too deeply", "reshape it to fewer dims",
                "a tensor has at most %d dims", CCN__MAX_RANK);
    dim[rank++] = v.list->n;
    if (!v.list->n) break;
    v = v.list->at[0];
  }
  return rank;
}

static void fill(ccn__rt *rt, ccn__val v, ccn__dtype t, uint32_t rank, const int64_t *dim, char **out,
                 ccn__span span) {
  bool list = v.kind == CCN__V_LIST || v.kind == CCN__V_TUPLE;
  if (rank > 0) {
    if (!list || v.list->n != dim[0])
      ccn__fail(rt, 805, span, "not rectangular", "all lists of one level need the same length",
                "the lists are not all of one length");
    for (uint32_t i = 0; i < v.list->n; i++) fill(rt, v.list->at[i], t, rank - 1, dim + 1, out, span);
    return;
  }
  ccn__val x = ccn__plain(v);
  if (!ccn__is_number(x) && x.kind != CCN__V_BOOL)
    ccn__fail(rt, 805, span, ccn__val_kind_name(x),
              list ? "all lists of one level need the same length" : "its elements are numbers",
              "an element of a tensor cannot be %s", ccn__val_kind_name(x));
  ccn__number n = {.is_float = x.kind == CCN__V_FLOAT};
  if (n.is_float) n.f = x.f;
  else n.i = x.kind == CCN__V_BOOL ? x.b : x.i;
  const char *why = ccn__number_fits(n, t);
  if (why)
    ccn__fail(rt, 110, span, why, "choose a dtype that holds it", "an element %s in %s", why,
              ccn__dtype_name(t));
  ccn__number_store(n, t, *out);
  *out += ccn__dtype_size(t);
}

ccn__val ccn__fn_tensor(ccn__rt *rt, const ccn__builtin_call *c) {
  ccn__val v = c->at[0]->value;
  int64_t dim[CCN__MAX_RANK] = {0};
  if (c->at[1]->value.kind != CCN__V_TYPE)
    ccn__fail(rt, 805, c->at[1]->span, ccn__val_kind_name(c->at[1]->value), "as in: tensor([1, 2, 3], f32)",
              "expected a dtype or a type");
  const ccn__typeval *type = c->at[1]->value.type;
  uint32_t rank = list_shape(rt, v, dim, c->at[0]->span);
  ccn__dtype t = (ccn__dtype)type->dtype;
  bool same = !type->has_dims || type->rank == rank;
  for (uint32_t d = 0; same && type->has_dims && d < rank; d++) same = type->dim[d] == dim[d];
  if (!same)
    ccn__fail(rt, 305, c->at[1]->span, "another shape", "leave the dims out: tensor([1, 2, 3], f32)",
              "the values do not have this shape");
  for (uint32_t a = 0; a < type->naxes; a++)
    if (type->place[a].kind == CCN__PARTIAL ||
        (type->place[a].kind == CCN__SLICED && type->place[a].dim >= rank))
      ccn__fail(rt, 805, c->at[1]->span, "not possible here",
                "write the dims too: tensor(l, f32[4] sliced(0))", "values cannot be given this placement");
  size_t n = ccn__dtype_size(t);
  for (uint32_t d = 0; d < rank; d++) {
    if (dim[d] && n > SIZE_MAX / 4 / (size_t)dim[d]) ccn__throw(rt->heap, CCN_OUT_OF_MEMORY);
    n *= (size_t)dim[d];
  }
  char *whole = ccn__temp_memory(rt, n + 1), *at = whole;
  if (n) fill(rt, v, t, rank, dim, &at, c->at[0]->span);
  return ccn__tensor_val(ccn__tensor_place(rt, t, rank, dim, type->place, whole));
}

/* ---- bundles ------------------------------------------------------------------------------------------- */

uint32_t ccn__bundle_count(const ccn__tensor *b) {
  return b->bundle == CCN__BUNDLE_SCALARS ? (uint32_t)b->dim[0] : b->members ? b->members->k : 0;
}

ccn__val ccn__bundle_member(ccn__rt *rt, ccn__tensor *b, int64_t i, ccn__span span) {
  i = ccn__position(rt, i, ccn__bundle_count(b), span, "a bundle");
  b = ccn__tensor_here(rt, b);
  for (uint32_t a = 0; a < b->naxes; a++)
    if (b->place[a].kind == CCN__SLICED) {
      b = ccn__tensor_whole(rt, b);
      if (!b)
        ccn__fail(rt, 805, span, "owed or local", "take one rank's pieces with x.on(r)",
                  "the members of this bundle are cut apart");
      break;
    }
  struct ccn__member m = {.start = i, .elements = 1};
  if (b->bundle == CCN__BUNDLE_TENSORS) m = b->members->at[i];
  ccn__tensor *t = ccn__tensor_new(rt, (ccn__dtype)b->dtype, m.rank);
  memcpy(t->dim, m.dim, sizeof t->dim);
  memcpy(t->place, b->place, sizeof t->place);
  size_t item = item_size(t);
  for (uint32_t r = 0; r < t->world; r++) {
    if (!b->buf[r]) continue;
    for (uint32_t q = 0; q < r && !t->buf[r]; q++)
      if (b->buf[q] == b->buf[r]) t->buf[r] = ccn__buf_ref(t->buf[q]);
    if (t->buf[r]) continue;
    t->buf[r] = ccn__buf_new(&rt->pool, (size_t)m.elements * item);
    memcpy(t->buf[r]->data, (const char *)b->buf[r]->data + (size_t)m.start * item,
           (size_t)m.elements * item);
  }
  return ccn__tensor_val(t);
}

/* ---- pieces of ranks ----------------------------------------------------------------------------------- */

/* A replicated tensor that holds what `rank` holds. */
ccn__val ccn__tensor_on(ccn__rt *rt, ccn__tensor *t, uint32_t rank, ccn__span span) {
  ccn__box box;
  t = ccn__tensor_here(rt, t);
  ccn__box_of(&rt->mesh, rank, t->rank, t->dim, t->place, &box);
  if (!t->buf[rank] && !rt->recording)
    ccn__fail(rt, 805, span, "nothing there", "ask a rank that has it",
              "this value does not exist on rank %u", rank);
  if (t->rank == 0 && !rt->recording) return ccn__tensor_element(t, rank, 0);
  bool whole = t->bundle && box.elements == t->dim[0];
  ccn__tensor *x = ccn__tensor_new(rt, (ccn__dtype)t->dtype, t->rank);
  memcpy(x->dim, box.extent, t->rank * sizeof *x->dim);
  if (whole && t->members) {
    x->bundle = t->bundle;
    x->members = ccn__heap_alloc(rt->heap, ccn__members_size(t->members->k));
    memcpy(x->members, t->members, ccn__members_size(t->members->k));
  }
  for (uint32_t a = 0; a < x->naxes; a++) x->place[a] = (ccn__cplace){.kind = CCN__REPLICATED, .unit = 1};
  for (uint32_t r = 0; r < x->world && !rt->recording; r++) x->buf[r] = ccn__buf_share(t->buf[rank]);
  return ccn__tensor_val(x);
}

static ccn__val method_on(ccn__rt *rt, ccn__val self, const ccn__arg *args, uint32_t n, ccn__span span) {
  if (n != 1) ccn__fail(rt, 800, span, "one argument", "x.on(0) is rank 0's value", "`on` takes one rank");
  int64_t r = ccn__whole(rt, args[0].value, args[0].span, "a rank");
  if (r < 0 || r >= self.tensor->world)
    ccn__fail(rt, 812, args[0].span, "no such rank", "ranks go from 0 to their number - 1",
              "there are %u ranks, and %lld is none of them", self.tensor->world, (long long)r);
  return ccn__tensor_on(rt, self.tensor, (uint32_t)r, args[0].span);
}

static ccn__val method_per_rank(ccn__rt *rt, ccn__val self, const ccn__arg *args, uint32_t n,
                                ccn__span span) {
  if (n)
    ccn__fail(rt, 800, args[0].span, "none", "x.per_rank() is the list of all ranks' values",
              "`per_rank` takes no argument");
  ccn__list *l = ccn__list_new(rt, CCN__V_LIST, self.tensor->world);
  ccn__tensor *t = ccn__tensor_here(rt, self.tensor);
  for (uint32_t r = 0; r < t->world; r++)
    ccn__list_add(rt, l, t->buf[r] || rt->recording ? ccn__tensor_on(rt, t, r, span) : CCN__NONE_VAL);
  return ccn__list_val(l);
}

/* ---- per_rank(fn(r) { ... }) --------------------------------------------------------------------------- */

static bool all_replicated(const ccn__tensor *t) {
  for (uint32_t a = 0; a < t->naxes; a++)
    if (t->place[a].kind != CCN__REPLICATED) return false;
  return true;
}

static ccn__tensor *as_tensor(ccn__rt *rt, ccn__val v, ccn__span span) {
  ccn__cplace place[CCN__MAX_AXES] = {{0}};
  if (v.kind == CCN__V_BOOL) {
    uint8_t b = v.b;
    return ccn__tensor_place(rt, CCN__BOOL, 0, NULL, place, &b);
  }
  if (v.kind == CCN__V_INT) return ccn__tensor_place(rt, CCN__I64, 0, NULL, place, &v.i);
  if (v.kind == CCN__V_FLOAT) return ccn__tensor_place(rt, CCN__F64, 0, NULL, place, &v.f);
  if (v.kind == CCN__V_TENSOR && !v.tensor->bundle && all_replicated(v.tensor))
    return ccn__tensor_here(rt, v.tensor);
  ccn__fail(rt, 805, span, ccn__val_kind_name(v), "return a number or a replicated tensor for each rank",
            "the function returns %s that cannot be one rank's value", ccn__val_kind_name(v));
}

static bool same_shape(const ccn__tensor *x, const ccn__tensor *y) {
  if (x->dtype != y->dtype || x->rank != y->rank) return false;
  for (uint32_t d = 0; d < x->rank; d++)
    if (x->dim[d] != y->dim[d]) return false;
  return true;
}

ccn__val ccn__fn_per_rank(ccn__rt *rt, const ccn__builtin_call *c) {
  ccn__val fn = c->at[0]->value;
  ccn__tensor *out = NULL, *first = NULL;
  if (fn.kind != CCN__V_FN)
    ccn__fail(rt, 805, c->at[0]->span, ccn__val_kind_name(fn),
              "as in: per_rank(fn(r) { return zeros(f32[n]) + r })", "expected a function of the rank");
  rt->per_rank++;
  for (uint32_t r = 0; r < rt->world; r++) {
    ccn__arg arg = {.value = ccn__int_val(r), .span = c->at[0]->span};
    ccn__tensor *t = as_tensor(rt, ccn__call_fn(rt, fn.fn, &arg, 1, c->span), c->at[0]->span);
    if (!out) {
      first = t;
      out = ccn__tensor_new(rt, (ccn__dtype)t->dtype, t->rank);
      memcpy(out->dim, t->dim, sizeof out->dim);
      for (uint32_t a = 0; a < out->naxes; a++) out->place[a] = (ccn__cplace){.kind = CCN__LOCAL, .unit = 1};
    }
    if (!same_shape(first, t)) {
      ccn__diag *d = ccn__error(rt->diags, 805, c->at[0]->span, "not the same for all ranks",
                                "rank 0 makes %s, rank %u makes %s", ccn__tensor_describe(rt, first), r,
                                ccn__tensor_describe(rt, t));
      ccn__hint(rt->diags, d, "return the same dtype and shape for every rank");
      ccn__rt_raise(rt, d);
    }
    if (!rt->recording) out->buf[r] = ccn__buf_share(t->buf[r]);
  }
  rt->per_rank--;
  return ccn__tensor_val(out);
}

/* ---- methods and fields -------------------------------------------------------------------------------- */

static ccn__val method_append(ccn__rt *rt, ccn__val self, const ccn__arg *args, uint32_t n, ccn__span span) {
  if (n != 1) ccn__fail(rt, 800, span, "one argument", "as in: l.append(3)", "`append` takes one value");
  ccn__list_add(rt, self.list, args[0].value);
  return CCN__NONE_VAL;
}

static ccn__val method_pop(ccn__rt *rt, ccn__val self, const ccn__arg *args, uint32_t n, ccn__span span) {
  if (n)
    ccn__fail(rt, 800, args[0].span, "none", "l.pop() takes the last element away",
              "`pop` takes no argument");
  if (!self.list->n)
    ccn__fail(rt, 812, span, "an empty list", "test its length first: len(x)", "there is no last element");
  return self.list->at[--self.list->n];
}

static ccn__val field_shape(ccn__rt *rt, ccn__val self) {
  ccn__list *l = ccn__list_new(rt, CCN__V_LIST, self.tensor->rank);
  for (uint32_t d = 0; d < self.tensor->rank; d++) ccn__list_add(rt, l, ccn__int_val(self.tensor->dim[d]));
  return ccn__list_val(l);
}

static ccn__val field_dtype(ccn__rt *rt, ccn__val self) {
  const char *name = ccn__dtype_name((ccn__dtype)self.tensor->dtype);
  return ccn__val_string(rt, name, strlen(name));
}

static ccn__val field_name(ccn__rt *rt, ccn__val self) {
  return ccn__val_string(rt, self.program->name, strlen(self.program->name));
}

static const struct {
  uint8_t kind;
  const char *name;
  ccn__val (*method)(ccn__rt *, ccn__val, const ccn__arg *, uint32_t, ccn__span);
  ccn__val (*field)(ccn__rt *, ccn__val);
} members[] = {
  {CCN__V_TENSOR, "on", method_on, NULL},       {CCN__V_TENSOR, "per_rank", method_per_rank, NULL},
  {CCN__V_TENSOR, "shape", NULL, field_shape},  {CCN__V_TENSOR, "dtype", NULL, field_dtype},
  {CCN__V_LIST, "append", method_append, NULL}, {CCN__V_LIST, "pop", method_pop, NULL},
  {CCN__V_PROGRAM, "name", NULL, field_name},
};

const char *ccn__member_name(uint8_t kind, uint32_t i) {
  for (size_t k = 0; k < CCN__COUNT(members); k++)
    if (members[k].kind == kind && i-- == 0) return members[k].name;
  return NULL;
}

CCN__NORETURN static void no_member(ccn__rt *rt, ccn__val self, ccn__name name, ccn__span span) {
  ccn__nearest near;
  ccn__text all;
  ccn__nearest_init(&near, name);
  ccn__text_init(&all, rt->diags->arena);
  if (self.kind == CCN__V_MODULE)
    for (uint32_t i = 0; i < self.module->env->n; i++) ccn__nearest_try(&near, self.module->env->at[i].name);
  for (size_t i = 0; i < CCN__COUNT(members); i++)
    if (members[i].kind == self.kind) {
      ccn__nearest_try(&near, members[i].name);
      ccn__text_printf(&all, "%s.%s%s", all.n ? ", " : "", members[i].name, members[i].method ? "()" : "");
    }
  ccn__diag *d = ccn__error(rt->diags, 801, span, "no such member", "%s has no member `%s`",
                            ccn__val_kind_name(self), name);
  if (self.kind != CCN__V_MODULE && ccn__is_builtin(name))
    ccn__hint(rt->diags, d, "functions are called with the value inside: %s(x)", name);
  else if (near.best) ccn__hint(rt->diags, d, "did you mean `%s`?", near.best);
  else if (all.n) ccn__hint(rt->diags, d, "%s has %s", ccn__val_kind_name(self), all.at);
  else ccn__hint(rt->diags, d, "functions are called with the value inside: len(x)");
  ccn__rt_raise(rt, d);
}

ccn__val ccn__method(ccn__rt *rt, ccn__val self, ccn__name name, ccn__span nspan, const ccn__arg *args,
                     uint32_t n, ccn__span span) {
  for (size_t i = 0; i < CCN__COUNT(members); i++) {
    if (members[i].kind != self.kind || strcmp(members[i].name, name)) continue;
    if (!members[i].method)
      ccn__fail(rt, 805, span, "not a function", "leave the parentheses out", "`%s` is a value", name);
    for (uint32_t k = 0; k < n; k++)
      if (args[k].name)
        ccn__fail(rt, 806, args[k].nspan, "not known", "leave the name out", "`%s` has no such parameter",
                  name);
    return members[i].method(rt, self, args, n, span);
  }
  no_member(rt, self, name, nspan);
}

ccn__val ccn__field(ccn__rt *rt, ccn__val self, ccn__name name, ccn__span nspan) {
  if (self.kind == CCN__V_MODULE) {
    const ccn__val *v = ccn__env_find(self.module->env, name);
    if (v) return *v;
  }
  for (size_t i = 0; i < CCN__COUNT(members); i++) {
    if (members[i].kind != self.kind || strcmp(members[i].name, name)) continue;
    if (!members[i].field)
      ccn__fail(rt, 805, nspan, "a function", "call it: x.per_rank(), l.append(1)", "`%s` must be called",
                name);
    return members[i].field(rt, self);
  }
  no_member(rt, self, name, nspan);
}

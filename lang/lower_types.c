/* lower_types.c: extents, type expressions, parameters and their arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lower.h"

void ccn__need(ccn__lower *l, ccn__constraint c) { *CCN__PUSH(l->arena, &l->g->constraints) = c; }

bool ccn__axis_find(ccn__lower *l, ccn__name name, uint32_t *out_axis) {
  for (uint32_t i = 0; i < l->frame->naxes; i++)
    if (l->frame->axis_name[i] == name) return *out_axis = l->frame->axis[i], true;
  return false;
}

/* ---- extents ---- */

static void need_whole(ccn__lower *l, const ccn__dim *d, ccn__span span) {
  if (!ccn__dim_is_whole(d))
    ccn__need(l, (ccn__constraint){.kind = CCN__NEED_WHOLE, .code = 310, .x = d, .span = span});
}

/* A literal as an extent: h = N / 2 is what f32[N/2] says. NULL if it is none. Literals are bounded in depth. */
static const ccn__dim *lit_dim(ccn__lower *l, const ccn__lit *x) {
  if (x->kind == CCN__LIT_INT) return ccn__dim_const(l->arena, x->i);
  if (x->kind == CCN__LIT_DIM) return x->dim;
  if (x->kind != CCN__LIT_BINARY) return NULL;
  const ccn__dim *a = lit_dim(l, x->x), *b = a ? lit_dim(l, x->y) : NULL;
  if (!b) return NULL;
  switch (x->op) {
  case CCN__T_PLUS: return ccn__dim_add(l->arena, a, b);
  case CCN__T_MINUS: return ccn__dim_sub(l->arena, a, b);
  case CCN__T_STAR: return ccn__dim_mul(l->arena, a, b);
  case CCN__T_SLASH: return ccn__dim_div(l->arena, a, b);
  default: return NULL;
  }
}

const ccn__dim *ccn__bv_dim(ccn__lower *l, ccn__bv v) {
  if (v.kind == CCN__B_ERROR) return NULL;
  const ccn__dim *known = v.kind == CCN__B_LIT ? lit_dim(l, v.lit) : NULL;
  if (known) need_whole(l, known, v.span);
  if (known) return known;
  if (v.kind == CCN__B_LIT &&
      v.lit->kind == CCN__LIT_UNKNOWN) /* check: any extent; each use is a symbol of its own */
    return ccn__dim_symbol(
      l->arena, ccn__graph_symbol(
                  l->g, ccn__internz(l->g->names, ccn__arena_printf(l->arena, "unknown%u", l->g->symbols.n)),
                  CCN__SYM_DIM, 0, v.span));
  ccn__diag *d = ccn__lower_error(l, 310, v.span, "not an extent",
                                  "an extent is a whole number, a symbol of the program, or + - * / of them");
  ccn__hint(l->ds, d,
            v.kind == CCN__B_NODE  ? "a tensor's value is known only when the program runs"
            : v.kind == CCN__B_LIT ? "inside the [ ] of a shape `/` divides extents exactly, as in `f32[N/2]`"
                                   : "write a number, a symbol of the program, or a constant of the script");
  return NULL;
}

static const ccn__dim *symbol(ccn__lower *l, ccn__name name, ccn__span span) {
  uint32_t s = ccn__graph_symbol(l->g, name, CCN__SYM_DIM, 0, span);
  const ccn__dim *d = ccn__dim_symbol(l->arena, s);
  ccn__scope_push(l->arena, &l->frame->dims, name,
                  (ccn__bv){.kind = CCN__B_LIT, .span = span, .lit = ccn__lit_dim(l->arena, d)});
  return d;
}

/* In the types of parameters every name is a symbol of the program (declare); elsewhere a name may also be a constant. */
static const ccn__dim *dim_of(ccn__lower *l, const ccn__ast *e, bool declare) {
  if (e->kind == CCN__AST_NAME) {
    ccn__bv *d = ccn__scope_find(&l->frame->dims, e->name);
    if (d) return ccn__bv_dim(l, *d);
    if (declare) return symbol(l, e->name, e->span);
    ccn__bv v = ccn__lower_expr(l, e);
    if (v.kind == CCN__B_LIT && v.lit->kind == CCN__LIT_UNKNOWN) return symbol(l, e->name, e->span);
    return ccn__bv_dim(l, v);
  }
  if (e->kind == CCN__AST_BINARY &&
      (e->op == CCN__T_PLUS || e->op == CCN__T_MINUS || e->op == CCN__T_STAR || e->op == CCN__T_SLASH)) {
    if (++l->depth > 500) {
      ccn__lower_error(l, 8, e->span, "here", "nested too deeply");
      l->depth--;
      return NULL;
    }
    const ccn__dim *x = dim_of(l, e->a, declare), *y = x ? dim_of(l, e->b, declare) : NULL, *r = NULL;
    l->depth--;
    if (!y) return NULL;
    if (e->op == CCN__T_PLUS) r = ccn__dim_add(l->arena, x, y);
    else if (e->op == CCN__T_MINUS) r = ccn__dim_sub(l->arena, x, y);
    else if (e->op == CCN__T_STAR) r = ccn__dim_mul(l->arena, x, y);
    else r = ccn__dim_div(l->arena, x, y);
    if (!r) {
      bool quotient = e->op == CCN__T_SLASH;
      ccn__diag *d = ccn__lower_error(
        l, 310, e->span, "here", quotient ? "this extent cannot be divided so" : "this extent is too large");
      ccn__hint(l->ds, d,
                quotient ? "divide by a whole number, or by an extent that is a factor, as in `N*M/N`"
                         : "an extent fits 64 bits");
    }
    if (r && e->op == CCN__T_SLASH) need_whole(l, r, e->span);
    return r;
  }
  if (e->kind == CCN__AST_UNARY && e->op == CCN__T_MINUS && e->a->kind == CCN__AST_INT)
    return ccn__dim_const(l->arena, -e->a->i);
  if (e->kind == CCN__AST_STAR) {
    ccn__lower_error(l, 1, e->span, "not here",
                     "`*` stands for the shapes of a bundle's tensors, as in `[f32[*]]`");
    return NULL;
  }
  return ccn__bv_dim(l, ccn__lower_expr(l, e));
}

const ccn__dim *ccn__lower_dim(ccn__lower *l, const ccn__ast *e) { return dim_of(l, e, false); }

static bool not_negative(ccn__lower *l, const ccn__dim *d, ccn__span span) {
  int64_t v;
  if (!ccn__dim_is_const(d, &v) || v >= 0) return true;
  ccn__diag *e = ccn__lower_error(l, 310, span, "negative", "an extent cannot be %lld", (long long)v);
  ccn__hint(l->ds, e, "extents are 0 or more");
  return false;
}

/* ---- placements ---- */

static const ccn__ast *place_arg(const ccn__ast *p, const char *name, uint32_t position) {
  uint32_t k = 0;
  for (uint32_t i = 0; i < p->list.n; i++) {
    const ccn__ast *a = p->list.at[i];
    if (a->name ? strcmp(a->name, name) == 0 : k++ == position) return a->a;
  }
  return NULL;
}

/* sliced(0, unit: u): one argument by position or by name, and what is named `unit`. */
static bool arguments_known(ccn__lower *l, const ccn__ast *p, const char *first) {
  for (uint32_t i = 0; i < p->list.n; i++) {
    const ccn__ast *a = p->list.at[i];
    bool unit = a->name && strcmp(a->name, "unit") == 0 && strcmp(p->name, "sliced") == 0;
    if (unit || (a->name ? strcmp(a->name, first) == 0 : i == 0)) continue;
    ccn__diag *d = ccn__lower_error(l, 806, a->name ? a->nspan : a->span, "not known",
                                    "`%s` has no such argument", p->name);
    ccn__hint(l->ds, d, "placements are sliced(0), sliced(0, unit: 64), partial(sum), at(2)");
    return false;
  }
  return true;
}

static bool place_of(ccn__lower *l, const ccn__ast *p, const ccn__type *t, bool declare, ccn__place *out) {
  *out = (ccn__place){.kind = CCN__REPLICATED};
  if (strcmp(p->name, "replicated") == 0) return true;
  if (strcmp(p->name, "local") == 0) return out->kind = CCN__LOCAL, true;
  const char *name = strcmp(p->name, "sliced") == 0 ? "dim"
                     : strcmp(p->name, "at") == 0   ? "coordinate"
                                                    : "op";
  if (!arguments_known(l, p, name)) return false;
  const ccn__ast *first = place_arg(p, name, 0);
  if (!first) {
    ccn__lower_error(l, 800, p->span, "incomplete", "`%s` needs an argument, as in `%s`", p->name,
                     strcmp(p->name, "sliced") == 0 ? "sliced(0)"
                     : strcmp(p->name, "at") == 0   ? "at(0)"
                                                    : "partial(sum)");
    return false;
  }
  if (strcmp(p->name, "partial") == 0) {
    ccn__redop op;
    if (first->kind != CCN__AST_NAME || !ccn__redop_find(first->name, &op) || op == CCN__RED_AVG) {
      ccn__lower_error(l, 801, first->span, "not an operator that can be owed",
                       "a value owes sum, prod, max or min");
      return false;
    }
    out->kind = CCN__PARTIAL;
    out->op = (uint8_t)op;
    return true;
  }
  int64_t v;
  ccn__bv b = ccn__lower_expr(l, first);
  if (!ccn__lit_i64(l, b, "the argument of a placement", &v)) return false;
  if (strcmp(p->name, "at") == 0) {
    if (v < 0 || v > INT32_MAX) {
      ccn__lower_error(l, 308, first->span, "no such coordinate", "coordinates count from 0");
      return false;
    }
    out->kind = CCN__AT;
    out->coord = (int32_t)v;
    return true;
  }
  if (v < 0) v += t->rank;
  if (v < 0 || v >= t->rank) {
    ccn__lower_error(l, 309, first->span, "no such dim", "a value of %u dims has no dim %lld to be cut in",
                     t->rank, (long long)v);
    return false;
  }
  out->kind = CCN__SLICED;
  out->dim = (uint16_t)v;
  const ccn__ast *unit = place_arg(p, "unit", UINT32_MAX);
  if (unit) {
    const ccn__dim *u = dim_of(l, unit, declare);
    if (!u) return false;
    int64_t c;
    if (ccn__dim_is_const(u, &c) && c < 1) {
      ccn__diag *e = ccn__lower_error(l, 310, unit->span, "not positive", "the unit of a cut is at least 1");
      ccn__hint(l->ds, e, "leave `unit:` out, or give the number of elements that stay together");
      return false;
    }
    out->unit = ccn__dim_is(u, 1) ? NULL : u;
  }
  return true;
}

static bool one_place(ccn__lower *l, const ccn__ast *p, ccn__type *t, bool declare, uint64_t *seen) {
  ccn__place place;
  uint32_t axis = 0;
  ccn__inline *f = l->frame;
  if (!f->naxes) {
    ccn__diag *d = ccn__lower_error(l, 300, p->span, "over which axis?", "`%s` needs a mesh", p->name);
    ccn__hint(
      l->ds, d,
      "begin the script with `mesh (dp)`, or give the program an axis parameter, as in `program f<ax>(...)`");
    return false;
  }
  if (!place_of(l, p, t, declare, &place)) return false;
  bool all = !p->axes.n && place.kind == CCN__LOCAL;
  if (p->axes.n && !ccn__axis_find(l, p->axes.at[0]->name, &axis)) {
    ccn__lower_error(l, 311, p->axes.at[0]->span, "unknown axis", "there is no mesh axis `%s` here",
                     p->axes.at[0]->name);
    return false;
  }
  if (!p->axes.n && !all) {
    if (f->naxes > 1) {
      ccn__diag *d = ccn__lower_error(l, 307, p->span, "over which axis?",
                                      "on a mesh with several axes `%s` must say over which", p->name);
      ccn__hint(l->ds, d, "write `%s(...) over %s`", p->name, f->axis_name[0]);
      return false;
    }
    axis = f->axis[0];
  }
  for (uint32_t i = 0; i < f->naxes; i++) {
    uint32_t a = f->axis[i];
    if (!all && a != axis) continue;
    if (*seen >> a & 1) {
      ccn__diag *d = ccn__lower_error(l, 307, p->span, "once more", "two placements over the axis `%s`",
                                      l->g->mesh.name[a]);
      ccn__hint(l->ds, d, "give each axis one placement");
      return false;
    }
    *seen |= UINT64_C(1) << a;
    if (place.kind == CCN__AT && l->g->mesh.size[a] && place.coord >= l->g->mesh.size[a]) {
      ccn__lower_error(l, 308, p->span, "no such coordinate", "axis `%s` has no coordinate %d",
                       l->g->mesh.name[a], place.coord);
      return false;
    }
    t->place[a] = place;
  }
  return true;
}

static bool bool_owes(ccn__lower *l, ccn__span span) {
  ccn__diag *d = ccn__lower_error(l, 104, span, "not for bool", "booleans are not added or multiplied");
  ccn__hint(l->ds, d, "a bool owes `partial(max)`, which is any, or `partial(min)`, which is all");
  return false;
}

static bool places_of(ccn__lower *l, const ccn__ast_list *places, bool declare, ccn__type *t) {
  uint64_t seen = 0;
  uint8_t owed = 0;
  for (uint32_t i = 0; i < places->n; i++)
    if (!one_place(l, places->at[i], t, declare, &seen)) return false;
  for (uint32_t a = 0; a < t->naxes; a++) {
    if (t->place[a].kind != CCN__PARTIAL) continue;
    if (t->dtype == CCN__BOOL && t->place[a].op != CCN__RED_MAX && t->place[a].op != CCN__RED_MIN)
      return bool_owes(l, places->at[0]->span);
    if (owed && owed != t->place[a].op) {
      ccn__lower_error(l, 210, places->at[0]->span, "two operators", "a value owes one operator");
      return false;
    }
    owed = t->place[a].op;
  }
  return true;
}

/* ---- types ---- */

static bool dtype_of(ccn__lower *l, const ccn__ast *t, uint8_t *out) {
  ccn__dtype d;
  if (!ccn__dtype_find(t->name, &d)) {
    ccn__lower_error(l, 100, t->span, "not a dtype", "unknown dtype `%s`", t->name);
    return false;
  }
  if (!ccn__dtype_size(d)) {
    ccn__lower_error(l, 100, t->span, "not there yet", "the dtype `%s` is reserved for later", t->name);
    return false;
  }
  *out = (uint8_t)d;
  return true;
}

static const ccn__type *tensor_type(ccn__lower *l, const ccn__ast *e, bool declare) {
  ccn__type *t = CCN__NEW(l->arena, ccn__type);
  t->naxes = (uint8_t)l->g->mesh.naxes;
  if (!dtype_of(l, e, &t->dtype)) return NULL;
  if (e->list.n > CCN__MAX_RANK) {
    ccn__lower_error(l, 208, e->span, "here", "a tensor has at most %d dims", CCN__MAX_RANK);
    return NULL;
  }
  for (uint32_t d = 0; d < e->list.n; d++) {
    t->dim[d] = dim_of(l, e->list.at[d], declare);
    if (!t->dim[d] || !not_negative(l, t->dim[d], e->list.at[d]->span)) return NULL;
  }
  t->rank = (uint8_t)e->list.n;
  return places_of(l, &e->params, declare, t) ? t : NULL;
}

const ccn__type *ccn__lower_type(ccn__lower *l, const ccn__ast *e, bool declare) {
  if (e->kind == CCN__AST_TENSOR_TYPE) return tensor_type(l, e, declare);
  if (e->kind != CCN__AST_ERROR)
    ccn__lower_error(l, 800, e->span, "not a tensor's type", "a tensor's type is needed here");
  return NULL;
}

static ccn__bundle_kind bundle_type(const ccn__ast *t) {
  if (t->kind != CCN__AST_LIST_TYPE || !t->a || t->a->kind != CCN__AST_TENSOR_TYPE) return CCN__NO_BUNDLE;
  if (!t->a->op) return CCN__BUNDLE_SCALARS;
  return t->a->list.n == 1 && t->a->list.at[0]->kind == CCN__AST_STAR ? CCN__BUNDLE_TENSORS : CCN__NO_BUNDLE;
}

static const ccn__ast_list *bundle_places(const ccn__ast *t) {
  return t->params.n ? &t->params : &t->a->params;
}

/* ---- parameters of the program itself ---- */

static ccn__id add_param(ccn__lower *l, const ccn__type *t, const char *name, ccn__span span) {
  ccn__attr number = {.key = CCN__A_NUMBER, .i = l->g->params.n};
  ccn__id id = ccn__graph_add(l->g, CCN__OP_PARAM, NULL, 0, t, (ccn__attrs){&number, 1}, span, 0);
  l->g->nodes.at[id].name = ccn__internz(l->g->names, name);
  *CCN__PUSH(l->arena, &l->g->params) = (ccn__param){.node = id, .update = CCN__NO_ID};
  return id;
}

/* Over the axes that a generic program does not name, the argument's placement. */
static void other_axes(ccn__lower *l, ccn__type *t, const ccn__tensor *arg) {
  if (!l->frame->program || !l->frame->program->generic || !arg) return;
  for (uint32_t a = 0; a < t->naxes && a < arg->naxes; a++) {
    bool named = false;
    for (uint32_t i = 0; i < l->frame->naxes; i++) named |= l->frame->axis[i] == a;
    const ccn__cplace *p = &arg->place[a];
    if (!named)
      t->place[a] = (ccn__place){
        .kind = p->kind,
        .op = p->op,
        .dim = p->dim,
        .coord = p->coord,
        .unit = p->kind == CCN__SLICED && p->unit > 1 ? ccn__dim_const(l->arena, p->unit) : NULL};
  }
}

static const ccn__tensor *tensor_of(const ccn__val *v) {
  return v && v->kind == CCN__V_TENSOR ? v->tensor : NULL;
}

static ccn__bv declare_bundle(ccn__lower *l, const ccn__ast *type, ccn__bundle_kind kind, const char *name,
                              const ccn__ast *param, const ccn__val *v) {
  ccn__type *t = CCN__NEW(l->arena, ccn__type);
  t->naxes = (uint8_t)l->g->mesh.naxes;
  t->rank = 1;
  t->bundle = (uint8_t)kind;
  t->bundle_id = l->g->nbundles++;
  ccn__name total = ccn__internz(l->g->names, ccn__arena_printf(l->arena, "%s.total", name));
  ccn__name count = ccn__internz(l->g->names, ccn__arena_printf(l->arena, "%s.count", name));
  uint32_t st = ccn__graph_symbol(l->g, total, CCN__SYM_TOTAL, t->bundle_id, param->span);
  uint32_t sc = ccn__graph_symbol(l->g, count, CCN__SYM_COUNT, t->bundle_id, param->span);
  t->dim[0] = ccn__dim_symbol(l->arena, kind == CCN__BUNDLE_TENSORS ? st : sc);
  if (!dtype_of(l, type->a, &t->dtype) || !places_of(l, bundle_places(type), true, t)) return CCN__B_FAIL;
  if (v && (v->kind == CCN__V_LIST || v->kind == CCN__V_TUPLE) && v->list->n)
    other_axes(l, t, tensor_of(&v->list->at[0]));
  else other_axes(l, t, tensor_of(v));
  return ccn__bv_node(add_param(l, t, name, param->span), param->span);
}

static ccn__bv declare(ccn__lower *l, const ccn__ast *type, const char *name, const ccn__ast *param,
                       const ccn__val *v) {
  ccn__bundle_kind bundle = bundle_type(type);
  if (bundle) return declare_bundle(l, type, bundle, name, param, v);
  bool list = type->kind == CCN__AST_LIST_TYPE, tuple = type->kind == CCN__AST_TUPLE_TYPE;
  if (!list && !tuple) {
    const ccn__type *t = ccn__lower_type(l, type, true);
    if (!t) return CCN__B_FAIL;
    other_axes(l, (ccn__type *)(uintptr_t)t, tensor_of(v)); /* made just now, by lower_type */
    return ccn__bv_node(add_param(l, t, name, param->span), param->span);
  }
  bool listy = v && (v->kind == CCN__V_LIST || v->kind == CCN__V_TUPLE);
  if (v && (!listy || (tuple && v->list->n != type->list.n))) {
    ccn__lower_error(l, 800, param->span, "declared here", "parameter `%s` takes a %s%s", name,
                     list ? "list" : "tuple", listy ? " of another length" : "");
    return CCN__B_FAIL;
  }
  ccn__bv r = {.kind = list ? CCN__B_LIST : CCN__B_TUPLE, .span = param->span, .abstract = list && !v};
  r.list.n = tuple ? type->list.n : v ? v->list->n : 1;
  r.list.at = CCN__NEWN(l->arena, ccn__bv, r.list.n + 1);
  for (uint32_t i = 0; i < r.list.n; i++) {
    const char *path = ccn__arena_printf(l->arena, list ? "%s[%u]" : "%s.%u", name, i);
    r.list.at[i] = declare(l, list ? type->a : type->list.at[i], path, param, v ? &v->list->at[i] : NULL);
    if (r.list.at[i].kind == CCN__B_ERROR) return CCN__B_FAIL;
  }
  return r;
}

/* CCN0303: a symbol that stands alone nowhere cannot be bound. Of each symbol, by its position in the scope: */
typedef struct symbol_use {
  bool alone;
  const ccn__ast *inside; /* the first extent in which it is only a part */
} symbol_use;

static void note_parts(ccn__lower *l, const ccn__ast *extent, const ccn__ast *e, symbol_use *use) {
  if (e->kind == CCN__AST_NAME) {
    uint32_t s = ccn__scope_position(&l->frame->dims, e->name);
    if (s != CCN__NO_INDEX && !use[s].inside) use[s].inside = extent;
  }
  if (e->a) note_parts(l, extent, e->a, use);
  if (e->b) note_parts(l, extent, e->b, use);
}

static void note_symbols(ccn__lower *l, const ccn__ast *type, symbol_use *use) {
  if (type->kind == CCN__AST_LIST_TYPE && type->a) note_symbols(l, type->a, use);
  for (uint32_t i = 0; i < type->list.n && type->kind == CCN__AST_TUPLE_TYPE; i++)
    note_symbols(l, type->list.at[i], use);
  for (uint32_t i = 0; i < type->list.n && type->kind == CCN__AST_TENSOR_TYPE; i++) {
    const ccn__ast *d = type->list.at[i];
    uint32_t s = d->kind == CCN__AST_NAME ? ccn__scope_position(&l->frame->dims, d->name) : CCN__NO_INDEX;
    if (s != CCN__NO_INDEX) use[s].alone = true;
    else if (d->kind != CCN__AST_NAME) note_parts(l, d, d, use);
  }
}

static void check_bindable(ccn__lower *l, const ccn__ast *program) {
  const ccn__scope *dims = &l->frame->dims;
  symbol_use *use = CCN__NEWN(l->arena, symbol_use, dims->n + 1);
  for (uint32_t i = 0; i < program->params.n; i++)
    if (program->params.at[i]->a) note_symbols(l, program->params.at[i]->a, use);
  for (uint32_t s = 0; s < dims->n; s++) {
    if (use[s].alone) continue;
    const ccn__name n = dims->at[s].name;
    ccn__diag *d =
      ccn__lower_error(l, 303, use[s].inside ? use[s].inside->span : dims->at[s].value.span,
                       "cannot be bound here", "the symbol `%s` occurs only inside an expression", n);
    ccn__hint(l->ds, d, "let it stand alone as the extent of some parameter, as in `f32[%s]`", n);
  }
}

bool ccn__declare_params(ccn__lower *l, const ccn__val *vals) {
  const ccn__ast *p = l->frame->program->ast;
  uint32_t errors = l->ds->errors;
  for (uint32_t i = 0; i < p->params.n; i++) {
    const ccn__ast *param = p->params.at[i];
    bool missing = vals && vals[i].kind == CCN__V_NONE;
    if (param->kind != CCN__AST_PARAM || (param->a && param->a->kind == CCN__AST_ERROR)) return false;
    if (!param->a) {
      ccn__diag *d =
        ccn__lower_error(l, 1, param->span, "has no type", "a parameter of a program needs a type");
      ccn__hint(l->ds, d, "write its dtype, shape and placement, as in `%s: f32[N]`", param->name);
      return false;
    }
    ccn__bv v = CCN__B_FAIL;
    if (param->b && (missing || !vals)) { /* the default is a literal of the parameter's dtype */
      const ccn__type *t = ccn__lower_type(l, param->a, true);
      ccn__bv d = t ? ccn__lower_expr(l, param->b) : CCN__B_FAIL;
      if (d.kind == CCN__B_ERROR) continue;
      if (t->rank || d.kind != CCN__B_LIT) {
        ccn__lower_error(l, 800, param->b->span, "not a literal number",
                         "only a scalar parameter has a default, and it is a literal number");
        continue;
      }
      if (ccn__is_boolean(d.lit) != (t->dtype == CCN__BOOL)) {
        ccn__diag *e = ccn__lower_error(
          l, 103, param->b->span, "of another kind", "the default of a parameter of %s is no %s",
          ccn__dtype_name((ccn__dtype)t->dtype), t->dtype == CCN__BOOL ? "number" : "boolean");
        ccn__hint(l->ds, e,
                  t->dtype == CCN__BOOL ? "write `true` or `false`" : "write a number, as in `%s: %s = 1.0`",
                  param->name, ccn__dtype_name((ccn__dtype)t->dtype));
        continue;
      }
      ccn__id id = ccn__as_node(l, d, t->dtype);
      v = ccn__bv_node(id, param->span);
      if (id != CCN__NO_ID) l->g->nodes.at[id].span = param->span;
    }
    if (!missing) v = declare(l, param->a, param->name, param, vals ? &vals[i] : NULL);
    ccn__scope_push(l->arena, &l->frame->names, param->name, v);
  }
  if (errors == l->ds->errors) check_bindable(l, p);
  return errors == l->ds->errors;
}

/* ---- arguments of an inlined call ---- */

typedef struct leaf {
  const ccn__ast *type, *param;
  ccn__id node;
  ccn__span span;
} leaf;

typedef struct binder {
  ccn__lower *l;
  ccn__inline *caller, *callee;
  CCN__VEC(leaf) leaves;
} binder;

static bool mismatch(binder *b, const leaf *f, uint16_t code, const char *label, const char *what,
                     const char *hint) {
  ccn__lower *l = b->l;
  l->frame = b->caller;
  ccn__diag *d = ccn__lower_error(l, code, f->span, label, "%s", what);
  ccn__note(l->ds, d, f->param->span, "parameter `%s` of `%s`", f->param->name, b->callee->program->name);
  if (hint) ccn__hint(l->ds, d, "%s", hint);
  return false;
}

static bool bind_dims(binder *b, const leaf *f) {
  ccn__lower *l = b->l;
  const ccn__type *t = l->g->nodes.at[f->node].type;
  for (uint32_t d = 0; d < t->rank; d++) {
    const ccn__ast *e = f->type->list.at[d];
    if (e->kind != CCN__AST_NAME) continue;
    ccn__bv *known = ccn__scope_find(&b->callee->dims, e->name);
    if (!known) {
      ccn__scope_push(
        l->arena, &b->callee->dims, e->name,
        (ccn__bv){.kind = CCN__B_LIT, .span = f->span, .lit = ccn__lit_dim(l->arena, t->dim[d])});
      continue;
    }
    const ccn__dim *k = ccn__bv_dim(l, *known);
    if (k && ccn__dim_equal(k, t->dim[d])) continue;
    ccn__text s;
    ccn__text_init(&s, l->arena);
    ccn__text_printf(&s, "one symbol, two sizes: `%s` of `%s` is ", e->name, b->callee->program->name);
    ccn__dim_print(k, ccn__graph_symbol_name, l->g, &s);
    ccn__text_puts(&s, " and ");
    ccn__dim_print(t->dim[d], ccn__graph_symbol_name, l->g, &s);
    return mismatch(b, f, 304, "the second size", s.at, NULL);
  }
  return true;
}

static bool check_dims(binder *b, const leaf *f) {
  ccn__lower *l = b->l;
  const ccn__type *t = l->g->nodes.at[f->node].type;
  for (uint32_t d = 0; d < t->rank; d++) {
    const ccn__ast *e = f->type->list.at[d];
    if (e->kind == CCN__AST_NAME) continue;
    l->frame = b->callee;
    const ccn__dim *want = ccn__lower_dim(l, e);
    l->frame = b->caller;
    if (!want) return false;
    if (!ccn__dim_equal(want, t->dim[d]))
      return mismatch(b, f, 305, "another extent",
                      ccn__arena_printf(l->arena,
                                        "dim %u of the argument for `%s` has another extent than declared", d,
                                        f->param->name),
                      NULL);
  }
  return true;
}

static const char *conversion(const ccn__place *from, const ccn__place *to) {
  if (from->kind == CCN__REPLICATED && to->kind == CCN__SLICED) return "cut it with `slice(x, dim: ...)`";
  if (from->kind == CCN__SLICED && to->kind == CCN__REPLICATED) return "gather it with `allgather(x)`";
  if (from->kind == CCN__SLICED && to->kind == CCN__SLICED)
    return "change the cut with `alltoall(x, from: ..., to: ...)`";
  if ((from->kind == CCN__LOCAL || from->kind == CCN__PARTIAL) && to->kind == CCN__REPLICATED)
    return "reduce it with `allreduce(sum, x)`";
  if ((from->kind == CCN__LOCAL || from->kind == CCN__PARTIAL) && to->kind == CCN__SLICED)
    return "reduce and cut it with `reducescatter(sum, x, dim: ...)`";
  if (to->kind == CCN__LOCAL) return "take each rank's bare value with `local(x)`";
  return "inside programs nothing is converted: say which collective should do it";
}

static bool check_places(binder *b, const leaf *f) {
  ccn__lower *l = b->l;
  const ccn__type *t = l->g->nodes.at[f->node].type;
  ccn__type want = *t;
  for (uint32_t i = 0; i < b->callee->naxes; i++)
    want.place[b->callee->axis[i]] = (ccn__place){.kind = CCN__REPLICATED};
  l->frame = b->callee;
  bool fine = places_of(l, f->type->kind == CCN__AST_LIST_TYPE ? bundle_places(f->type) : &f->type->params,
                        false, &want);
  l->frame = b->caller;
  if (!fine) return false;
  for (uint32_t a = 0; a < t->naxes; a++)
    if (!ccn__place_equal(&want.place[a], &t->place[a]))
      return mismatch(b, f, 219, ccn__arena_printf(l->arena, "this is %s", ccn__type_text(l->g, t)),
                      ccn__arena_printf(l->arena,
                                        "the argument for `%s` has another placement over `%s` than declared",
                                        f->param->name, l->g->mesh.name[a]),
                      conversion(&t->place[a], &want.place[a]));
  return true;
}

static bool bind_value(binder *b, const ccn__ast *type, const ccn__ast *param, ccn__bv *v) {
  ccn__lower *l = b->l;
  leaf f = {.type = type, .param = param, .span = v->span, .node = CCN__NO_ID};
  ccn__bundle_kind bundle = bundle_type(type);
  bool list = type->kind == CCN__AST_LIST_TYPE && !bundle, tuple = type->kind == CCN__AST_TUPLE_TYPE;
  if ((list || tuple) && ccn__is_unknown(*v)) return false; /* check: nothing can be said of it */
  if (list || tuple) {
    bool listy = v->kind == CCN__B_LIST || v->kind == CCN__B_TUPLE;
    if (!listy || (tuple && v->list.n != type->list.n))
      return mismatch(b, &f, 800, "not that",
                      ccn__arena_printf(l->arena, "parameter `%s` takes a %s%s", param->name,
                                        list ? "list" : "tuple", listy ? " of another length" : ""),
                      NULL);
    ccn__bv *at = CCN__NEWN(l->arena, ccn__bv, v->list.n + 1);
    for (uint32_t i = 0; i < v->list.n; i++) {
      at[i] = v->list.at[i];
      at[i].span = v->span;
      if (!bind_value(b, list ? type->a : type->list.at[i], param, &at[i])) return false;
    }
    v->list.at = at;
    return true;
  }
  const ccn__ast *element = bundle ? type->a : type;
  uint8_t dtype;
  l->frame = b->callee;
  bool fine = dtype_of(l, element, &dtype);
  l->frame = b->caller;
  if (!fine) return false;
  bool updated_param = v->kind == CCN__B_NODE && l->g->nodes.at[v->node].op == CCN__OP_PARAM;
  f.node = updated_param && !l->on ? v->node : ccn__as_node(l, *v, dtype);
  if (f.node == CCN__NO_ID) return false;
  const ccn__type *t = l->g->nodes.at[f.node].type;
  if (t->dtype != dtype)
    return mismatch(b, &f, 101,
                    ccn__arena_printf(l->arena, "this is %s", ccn__dtype_name((ccn__dtype)t->dtype)),
                    ccn__arena_printf(l->arena, "parameter `%s` is %s, the argument is %s", param->name,
                                      element->name, ccn__dtype_name((ccn__dtype)t->dtype)),
                    NULL);
  if (t->bundle != bundle)
    return mismatch(
      b, &f, 305, "not that",
      ccn__arena_printf(l->arena, "parameter `%s` is %s", param->name, bundle ? "a bundle" : "a tensor"),
      NULL);
  if (!bundle && t->rank != element->list.n)
    return mismatch(b, &f, 305, ccn__arena_printf(l->arena, "%u dims", t->rank),
                    ccn__arena_printf(l->arena, "parameter `%s` has %u dims, the argument has %u",
                                      param->name, element->list.n, t->rank),
                    NULL);
  *v = ccn__bv_node(f.node, v->span);
  *CCN__PUSH(l->arena, &b->leaves) = f;
  return bundle || bind_dims(b, &f);
}

bool ccn__bind_params(ccn__lower *l, ccn__inline *callee, ccn__bv *args, ccn__span call) {
  binder b = {.l = l, .caller = l->frame, .callee = callee};
  const ccn__ast *p = callee->program->ast;
  bool fine = true;
  (void)call;
  for (uint32_t i = 0; i < p->params.n && fine; i++) {
    const ccn__ast *param = p->params.at[i];
    if (!param->a || param->a->kind == CCN__AST_ERROR) return false;
    if (args[i].kind == CCN__B_NONE) { /* a default */
      l->frame = callee;
      args[i] = ccn__lower_expr(l, param->b);
      l->frame = b.caller;
      args[i].span = param->b->span;
    }
    fine = args[i].kind != CCN__B_ERROR && bind_value(&b, param->a, param, &args[i]);
    ccn__scope_push(l->arena, &callee->names, param->name, args[i]);
  }
  for (uint32_t i = 0; i < b.leaves.n && fine; i++)
    fine = b.leaves.at[i].type->kind == CCN__AST_LIST_TYPE || check_dims(&b, &b.leaves.at[i]);
  for (uint32_t i = 0; i < b.leaves.n && fine; i++) fine = check_places(&b, &b.leaves.at[i]);
  l->frame = b.caller;
  return fine;
}

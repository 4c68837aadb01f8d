/* lower_expr.c: expressions of programs: names, literals, operators, calls.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lower.h"
#include "script.h"

ccn__bv ccn__bv_node(ccn__id id, ccn__span span) {
  if (id == CCN__NO_ID) return CCN__B_FAIL;
  return (ccn__bv){.kind = CCN__B_NODE, .span = span, .node = id};
}

bool ccn__is_node(ccn__bv v) { return v.kind == CCN__B_NODE; }

bool ccn__is_unknown(ccn__bv v) { return v.kind == CCN__B_LIT && v.lit->kind == CCN__LIT_UNKNOWN; }

const ccn__type *ccn__type_of(const ccn__lower *l, ccn__bv v) { return l->g->nodes.at[v.node].type; }

static ccn__bv of_lit(const ccn__lit *lit, ccn__span span) {
  return (ccn__bv){.kind = CCN__B_LIT, .span = span, .lit = lit};
}

static const char *kind_words(ccn__bv v) {
  switch (v.kind) {
  case CCN__B_NODE: return "a tensor";
  case CCN__B_LIT: return "a number";
  case CCN__B_STRING: return "a string";
  case CCN__B_LIST: return "a list";
  case CCN__B_TUPLE: return "a tuple";
  case CCN__B_RANGE: return "a range";
  case CCN__B_TYPE: return "a type";
  case CCN__B_OP: return "an op";
  case CCN__B_PROGRAM: return "a program";
  case CCN__B_MODULE: return "a module";
  default: return "nothing";
  }
}

/* ---- names ---- */

ccn__bv *ccn__lookup(ccn__lower *l, ccn__name name) {
  ccn__bv *v = ccn__scope_find(&l->frame->names, name);
  return v ? v : ccn__scope_find(&l->frame->dims, name);
}

static ccn__bv from_list(ccn__lower *l, ccn__val v, ccn__span span) {
  ccn__bv r = {.kind = v.kind == CCN__V_LIST ? CCN__B_LIST : CCN__B_TUPLE, .span = span};
  r.list.n = v.list->n;
  r.list.at = CCN__NEWN(l->arena, ccn__bv, r.list.n + 1);
  for (uint32_t i = 0; i < r.list.n; i++) r.list.at[i] = ccn__from_val(l, v.list->at[i], span);
  return r;
}

static const ccn__lit *unknown_lit(ccn__lower *l) {
  ccn__lit *u = CCN__NEW(l->arena, ccn__lit);
  u->kind = CCN__LIT_UNKNOWN;
  return u;
}

static ccn__bv refuse_tensor(ccn__lower *l, ccn__span span) {
  ccn__diag *d = ccn__lower_error(l, 805, span, "a tensor of the script",
                                  "a program cannot read a tensor of the script by name");
  ccn__hint(l->ds, d, "pass it as an argument");
  return CCN__B_FAIL;
}

ccn__bv ccn__from_val(ccn__lower *l, ccn__val v, ccn__span span) {
  ccn__bv r = {.span = span};
  switch (v.kind) {
  case CCN__V_NONE:
    if (v.b) return refuse_tensor(l, span);
    r.kind = l->check ? CCN__B_LIT : CCN__B_NONE;
    if (l->check) r.lit = unknown_lit(l);
    return r;
  case CCN__V_BOOL: return of_lit(ccn__lit_bool(l->arena, v.b), span);
  case CCN__V_INT: return of_lit(ccn__lit_int(l->arena, v.i), span);
  case CCN__V_FLOAT: return of_lit(ccn__lit_float(l->arena, v.f), span);
  case CCN__V_OP:
    r.kind = CCN__B_OP;
    r.name = v.name;
    return r;
  case CCN__V_STRING:
    r.kind = CCN__B_STRING;
    r.string = ccn__arena_strndup(l->arena, v.string->at, v.string->n);
    return r;
  case CCN__V_LIST:
  case CCN__V_TUPLE: return from_list(l, v, span);
  case CCN__V_RANGE:
    r.kind = CCN__B_RANGE;
    r.list.n = 2;
    r.list.at = CCN__NEWN(l->arena, ccn__bv, 2);
    r.list.at[0] = of_lit(ccn__lit_int(l->arena, v.range->start), span);
    r.list.at[1] = of_lit(ccn__lit_int(l->arena, v.range->end), span);
    return r;
  case CCN__V_PROGRAM:
    r.kind = CCN__B_PROGRAM;
    r.program = v.program;
    return r;
  case CCN__V_MODULE:
    r.kind = CCN__B_MODULE;
    r.module = v.module;
    return r;
  case CCN__V_TENSOR: {
    ccn__val number;
    if (ccn__tensor_number(v.tensor, &number)) return ccn__from_val(l, number, span);
    return refuse_tensor(l, span);
  }
  default:
    ccn__lower_error(l, 805, span, "not usable here", "%s of the script cannot be used in a program",
                     ccn__val_kind_name(v));
    return CCN__B_FAIL;
  }
}

static ccn__bv unknown_name(ccn__lower *l, const ccn__ast *e) {
  ccn__nearest near;
  ccn__nearest_init(&near, e->name);
  uint32_t names = l->ds->errors < (l->ds->limit ? l->ds->limit : 100)
                     ? l->frame->names.n
                     : 0; /* errors beyond the limit are only counted */
  for (uint32_t i = 0; i < names; i++) ccn__nearest_try(&near, l->frame->names.at[i].name);
  for (uint32_t i = 0; i < l->frame->dims.n; i++) ccn__nearest_try(&near, l->frame->dims.at[i].name);
  for (int i = 0; i < CCN__OP_COUNT; i++)
    if (ccn__op_has_name((ccn__op)i)) ccn__nearest_try(&near, ccn__op_table[i].name);
  static const char *const others[] = {"zeros", "ones", "size"};
  for (size_t i = 0; i < CCN__COUNT(others); i++) ccn__nearest_try(&near, others[i]);
  const ccn__env *c = l->frame->program ? l->frame->program->constants : NULL;
  for (uint32_t i = 0; c && i < c->n; i++) ccn__nearest_try(&near, c->at[i].name);
  ccn__diag *d = ccn__lower_error(l, 801, e->span, "not known here", "unknown name `%s`", e->name);
  if (ccn__builtin_find(e->name))
    ccn__hint(l->ds, d, "`%s` is for scripts; a value of a program is returned, or shown with --watch",
              e->name);
  else if (near.best) ccn__hint(l->ds, d, "did you mean `%s`?", near.best);
  else ccn__hint(l->ds, d, "name a value with %s = ... above, or define it in the script", e->name);
  return CCN__B_FAIL;
}

/* A name in an outer text (a callee's text sees only its own names): recursion is found here. */
static bool is_recursion(ccn__lower *l, ccn__name name) {
  for (ccn__inline *f = l->frame; f; f = f->outer)
    if (f->program && f->program->ast->name == name && f == l->frame) return true;
  return false;
}

static ccn__bv name(ccn__lower *l, const ccn__ast *e) {
  ccn__bv *v = ccn__lookup(l, e->name);
  if (v) {
    ccn__bv r = *v;
    r.span = e->span;
    return r;
  }
  if (l->frame->program) {
    const ccn__env *c = l->frame->program->constants;
    const ccn__val *x = c ? ccn__env_find(c, e->name) : NULL;
    if (x) return ccn__from_val(l, *x, e->span);
    if (is_recursion(l, e->name))
      return (ccn__bv){.kind = CCN__B_PROGRAM, .span = e->span, .program = l->frame->program};
  }
  uint32_t axis;
  if (ccn__op_callable(e->name) || strcmp(e->name, "tensor") == 0 || ccn__axis_find(l, e->name, &axis))
    return (ccn__bv){.kind = CCN__B_OP, .span = e->span, .name = e->name};
  return unknown_name(l, e);
}

/* ---- nodes from values ---- */

static ccn__id enter_blocks(ccn__lower *l, ccn__on_block *on, ccn__id id) {
  if (!on || id == CCN__NO_ID) return id;
  id = enter_blocks(l, on->outer, id);
  if (id == CCN__NO_ID) return id;
  const ccn__node *n = &l->g->nodes.at[id];
  const ccn__place *p = &n->type->place[on->axis];
  if (p->kind == CCN__AT && p->coord == on->coord) return id;
  if (p->kind == CCN__REPLICATED && n->region >= on->region) return id; /* made inside */
  for (uint32_t i = 0; i < on->entered.n; i++)
    if (on->entered.at[i].from == id) return on->entered.at[i].to;
  ccn__attr at[2] = {{.key = CCN__A_AXIS, .i = on->axis}, {.key = CCN__A_COORD, .i = on->coord}};
  ccn__id to = ccn__emit(l, CCN__OP_ENTER, &id, 1, (ccn__attrs){at, 2}, NULL, n->span);
  if (to == CCN__NO_ID) return to;
  void *slot = CCN__PUSH(l->arena, &on->entered);
  memcpy(slot, (ccn__id[2]){id, to}, 2 * sizeof(ccn__id));
  return to;
}

bool ccn__is_boolean(const ccn__lit *x) {
  return x->kind == CCN__LIT_BOOL ||
         ((x->kind == CCN__LIT_UNARY || x->kind == CCN__LIT_BINARY) && x->op >= CCN__T_LT);
}

static bool divides(const ccn__lit *x) {
  return x->kind == CCN__LIT_BINARY && (x->op == CCN__T_SLASH || divides(x->x) || divides(x->y));
}

/* Whether a number is a fraction says its spelling, so that it is known before the sizes are. */
static ccn__id fraction(ccn__lower *l, ccn__bv v, ccn__dtype t) {
  bool quotient = divides(v.lit);
  ccn__diag *d =
    ccn__lower_error(l, 103, v.span, quotient ? "`/` gives a fraction" : "not a whole number's spelling",
                     "a fractional literal meets %s", ccn__dtype_name(t));
  ccn__hint(l->ds, d,
            quotient ? "divide with `//`, which rounds down, or cast the other operand first, as in `f32(x)`"
                     : "cast the other operand first, as in `f32(x)`");
  return CCN__NO_ID;
}

static ccn__id constant(ccn__lower *l, ccn__bv v, ccn__dtype t) {
  ccn__number n;
  if (v.lit->kind != CCN__LIT_UNKNOWN && ccn__is_boolean(v.lit) != (t == CCN__BOOL)) {
    ccn__diag *d = ccn__lower_error(
      l, 103, v.span, "not of that kind",
      ccn__is_boolean(v.lit) ? "a boolean literal meets %s" : "a number meets %s", ccn__dtype_name(t));
    ccn__hint(l->ds, d,
              t == CCN__BOOL ? "compare, as in `x != 0`, to get a bool"
                             : "select with `where(condition, x, y)`, or cast the condition");
    return CCN__NO_ID;
  }
  const char *why = ccn__lit_eval(v.lit, NULL, &n);
  if (!why && n.is_float && !ccn__dtype_is_float(t)) return fraction(l, v, t);
  if (!why) why = ccn__number_fits(n, t);
  if (why) {
    ccn__diag *d =
      ccn__lower_error(l, 102, v.span, "does not fit", "this literal %s in %s", why, ccn__dtype_name(t));
    ccn__hint(l->ds, d,
              ccn__dtype_is_float(t) ? "cast the other operand to a wider dtype first, as in `f32(x)`"
                                     : "cast the other operand to a wider integer first, as in `i32(x)`");
    return CCN__NO_ID;
  }
  ccn__type type = {.dtype = (uint8_t)t, .naxes = (uint8_t)l->g->mesh.naxes};
  ccn__attr a = {.key = CCN__A_VALUE, .lit = v.lit};
  return ccn__emit(l, CCN__OP_CONST, NULL, 0, (ccn__attrs){&a, 1}, &type, v.span);
}

ccn__id ccn__as_node(ccn__lower *l, ccn__bv v, int t) {
  if (v.kind == CCN__B_NODE) return enter_blocks(l, l->on, v.node);
  if (v.kind == CCN__B_ERROR) return CCN__NO_ID;
  if (v.kind == CCN__B_LIT) {
    if (t >= 0) return constant(l, v, (ccn__dtype)t);
    ccn__number n;
    if (ccn__is_boolean(v.lit) && !ccn__lit_eval(v.lit, NULL, &n)) return constant(l, v, CCN__BOOL);
    ccn__diag *d =
      ccn__lower_error(l, 103, v.span, "has no dtype", "a literal alone, where nothing fixes its dtype");
    ccn__hint(l->ds, d, "write its dtype, as in `f32(3)`");
    return CCN__NO_ID;
  }
  ccn__lower_error(l, 800, v.span, "not a tensor", "%s cannot stand where a tensor is needed", kind_words(v));
  return CCN__NO_ID;
}

bool ccn__lit_number(ccn__lower *l, ccn__bv v, const char *what, ccn__number *out) {
  *out = (ccn__number){.i = 0};
  if (v.kind == CCN__B_ERROR) return false;
  if (v.kind != CCN__B_LIT) {
    ccn__diag *d = ccn__lower_error(l, 800, v.span, "not known when the program is compiled",
                                    "%s must be a literal number, not %s", what, kind_words(v));
    if (v.kind == CCN__B_NODE)
      ccn__hint(l->ds, d, "a tensor or a scalar parameter has its value only when the program runs");
    return false;
  }
  const char *why = ccn__lit_eval(v.lit, NULL, out);
  if (why) {
    ccn__lower_error(l, 800, v.span, "not a number", "%s %s", what, why);
    return false;
  }
  return true;
}

static bool uses_extent(const ccn__lower *l, const ccn__lit *x) {
  if (x->kind == CCN__LIT_UNARY) return uses_extent(l, x->x);
  if (x->kind == CCN__LIT_BINARY || x->kind == CCN__LIT_CALL)
    return uses_extent(l, x->x) || (x->y && uses_extent(l, x->y));
  if (x->kind != CCN__LIT_DIM) return false;
  for (uint32_t s = 0; s < l->g->symbols.n; s++)
    if (l->g->symbols.at[s].kind != CCN__SYM_SIZE && ccn__dim_uses(x->dim, s)) return true;
  return false;
}

bool ccn__refuse_extent(ccn__lower *l, ccn__bv v, const char *what) {
  if (v.kind != CCN__B_LIT || !uses_extent(l, v.lit)) return false;
  ccn__diag *d = ccn__lower_error(l, 803, v.span, "depends on an extent",
                                  "%s depends on an extent, which is known only at a call", what);
  ccn__hint(l->ds, d, "use a constant of the script, or a list whose length decides");
  return true;
}

bool ccn__lit_i64(ccn__lower *l, ccn__bv v, const char *what, int64_t *out) {
  ccn__number n;
  *out = 0;
  if (!ccn__lit_number(l, v, what, &n) || ccn__refuse_extent(l, v, what)) return false;
  if (n.is_float) {
    ccn__lower_error(l, 800, v.span, "not a whole number", "%s must be a whole number", what);
    return false;
  }
  *out = n.unknown ? 1 : n.i;
  return true;
}

/* ---- operators ---- */

static const char *arithmetic_cure(const char *why) {
  if (strstr(why, "zero")) return "the divisor is 0: choose another, or decide with `if` in the script";
  if (strstr(why, "kind"))
    return "`and`, `or` and `not` take booleans, as in `N > 1 and M > 1`; the others take numbers";
  if (strstr(why, "64 bits")) return "whole numbers have 64 bits: compute with a float, as in `1.0 * x`";
  return "compute it in the script, and pass it";
}

static ccn__bv operation(ccn__lower *l, ccn__oper op, ccn__bv x, ccn__bv y, ccn__span span, bool unary) {
  if (x.kind == CCN__B_ERROR || (!unary && y.kind == CCN__B_ERROR)) return CCN__B_FAIL;
  bool strings = !unary && x.kind == CCN__B_STRING && y.kind == CCN__B_STRING;
  if (strings && (op == CCN__T_EQ || op == CCN__T_NE))
    return of_lit(ccn__lit_bool(l->arena, (strcmp(x.string, y.string) == 0) == (op == CCN__T_EQ)), span);
  if (ccn__is_unknown(x) && (unary || y.kind == CCN__B_STRING))
    return x; /* check: a string of the script, perhaps */
  if (!unary && ccn__is_unknown(y) && x.kind == CCN__B_STRING) return y;
  bool literal = x.kind == CCN__B_LIT && (unary || y.kind == CCN__B_LIT);
  if (!literal) return ccn__build_operator(l, op, x, unary ? (ccn__bv){.kind = CCN__B_NONE} : y, span);
  const char *why;
  const ccn__lit *r =
    unary ? ccn__lit_unary(l->arena, op, x.lit, &why) : ccn__lit_binary(l->arena, op, x.lit, y.lit, &why);
  if (r) return of_lit(r, span);
  ccn__diag *d = ccn__lower_error(l, 810, span, why, "`%s` of these numbers %s", ccn__oper_text(op), why);
  ccn__hint(l->ds, d, "%s", arithmetic_cure(why));
  return CCN__B_FAIL;
}

/* Chains like a + b + c + ... lean left and may be thousands long: walked with a stack of our own. */
static ccn__bv binary(ccn__lower *l, const ccn__ast *e) {
  CCN__VEC(const ccn__ast *) spine = {0};
  for (; e->kind == CCN__AST_BINARY; e = e->a) *CCN__PUSH(l->arena, &spine) = e;
  ccn__bv x = ccn__lower_expr(l, e);
  for (uint32_t i = spine.n; i-- > 0;) {
    ccn__bv y = ccn__lower_expr(l, spine.at[i]->b);
    const ccn__ast *old = l->bind_ast;
    x = operation(l, (ccn__oper)spine.at[i]->op, x, y, spine.at[i]->span, false);
    l->bind_ast = old;
  }
  return x;
}

/* ---- calls ---- */

static ccn__bv size_of_axis(ccn__lower *l, const ccn__ast *e) {
  uint32_t axis;
  const ccn__ast *a = e->list.n == 1 && !e->list.at[0]->name ? e->list.at[0]->a : NULL;
  if (!a || a->kind != CCN__AST_NAME) {
    ccn__lower_error(l, 800, e->span, "here", "size() takes one mesh axis, as in `size(dp)`");
    return CCN__B_FAIL;
  }
  if (!ccn__axis_find(l, a->name, &axis)) {
    ccn__diag *d =
      ccn__lower_error(l, 311, a->span, "unknown axis", "there is no mesh axis `%s` here", a->name);
    ccn__hint(l->ds, d, "only the axes of the mesh, or of the program's own <...>, exist in its text");
    return CCN__B_FAIL;
  }
  if (l->g->mesh.size[axis]) return of_lit(ccn__lit_int(l->arena, l->g->mesh.size[axis]), e->span);
  uint32_t s = ccn__graph_symbol(l->g, l->g->mesh.name[axis], CCN__SYM_SIZE, axis, e->span);
  return of_lit(ccn__lit_dim(l->arena, ccn__dim_symbol(l->arena, s)), e->span);
}

static ccn__bv length(ccn__lower *l, const ccn__ast *e) {
  ccn__bv v = e->list.n == 1 ? ccn__lower_expr(l, e->list.at[0]->a) : (ccn__bv){.kind = CCN__B_NONE};
  if (v.kind == CCN__B_ERROR || ccn__is_unknown(v)) return v;
  if (v.kind != CCN__B_LIST && v.kind != CCN__B_TUPLE) {
    ccn__diag *d = ccn__lower_error(l, 800, e->span, "here", "len() takes one list or tuple");
    if (v.kind == CCN__B_NODE)
      ccn__hint(l->ds, d, "a tensor's extents are the names in its type: of x: f32[N] it is `N`");
    return CCN__B_FAIL;
  }
  return of_lit(v.abstract ? unknown_lit(l) : ccn__lit_int(l->arena, v.list.n), e->span);
}

/* Where the parameter of this name stands; an index is made when the first name is met. */
static uint32_t parameter_named(ccn__lower *l, const ccn__ast_list *ps, ccn__index *by_name, ccn__name name) {
  for (uint32_t i = by_name->n; i < ps->n; i++) ccn__index_add(l->arena, by_name, ps->at[i]->name, 0, i);
  return ccn__index_find(by_name, name, 0);
}

/* Positional and named arguments of a program, in order of its parameters. */
static bool arrange(ccn__lower *l, const ccn__ast *e, const ccn__ast *program, ccn__bv *out) {
  const ccn__ast_list *ps = &program->params;
  uint32_t next = 0;
  ccn__index by_name = {0};
  for (uint32_t i = 0; i < ps->n; i++) out[i].kind = CCN__B_NONE;
  for (uint32_t i = 0; i < e->list.n; i++) {
    const ccn__ast *arg = e->list.at[i];
    uint32_t k = arg->name ? parameter_named(l, ps, &by_name, arg->name) : next++;
    if (k >= ps->n) {
      ccn__diag *d = ccn__lower_error(
        l, arg->name ? 806 : 800, arg->span, "not expected",
        arg->name ? "`%s` has no parameter `%s`" : "too many arguments for `%s`", program->name, arg->name);
      ccn__note(l->ds, d, program->nspan, "defined here");
      return false;
    }
    if (out[k].kind != CCN__B_NONE) {
      ccn__lower_error(l, 806, arg->span, "given twice", "parameter `%s` of `%s` is given twice",
                       ps->at[k]->name, program->name);
      return false;
    }
    out[k] = ccn__lower_expr(l, arg->a);
    out[k].span = arg->a->span;
    if (out[k].kind == CCN__B_ERROR) return false;
  }
  for (uint32_t i = 0; i < ps->n; i++) {
    if (out[i].kind != CCN__B_NONE || ps->at[i]->b) continue;
    ccn__diag *d =
      ccn__lower_error(l, 800, e->span, "one is missing", "`%s` needs an argument for its parameter `%s`",
                       program->name, ps->at[i]->name);
    ccn__note(l->ds, d, ps->at[i]->span, "declared here");
    return false;
  }
  return true;
}

/* Which mesh axis each axis parameter of the callee means. */
static bool choose_axes(ccn__lower *l, const ccn__ast *e, ccn__program *p, ccn__inline *callee) {
  const ccn__ast *ast = p->ast;
  if (!p->generic) {
    if (e->axes.n) {
      ccn__lower_error(l, 800, e->span, "here", "`%s` has no axis parameters", ast->name);
      return false;
    }
    for (uint32_t a = 0; a < l->rt->mesh.naxes && a < l->g->mesh.naxes; a++) {
      callee->axis_name[callee->naxes] = l->g->mesh.name[a];
      callee->axis[callee->naxes++] = (uint8_t)a;
    }
    return true;
  }
  if (e->axes.n ? e->axes.n != ast->axes.n : (ast->axes.n != 1 || l->frame->naxes != 1)) {
    ccn__diag *d = ccn__lower_error(l, 301, e->span, "which axis?",
                                    "`%s` is generic over %u %s: say which, as in `%s<%s>(...)`", ast->name,
                                    ast->axes.n, ast->axes.n == 1 ? "axis" : "axes", ast->name,
                                    l->frame->naxes ? l->frame->axis_name[0] : "dp");
    ccn__note(l->ds, d, ast->nspan, "defined here");
    ccn__hint(l->ds, d, "name the axes between the name and the arguments, as in `%s<%s>(...)`", ast->name,
              l->frame->naxes ? l->frame->axis_name[0] : "dp");
    return false;
  }
  for (uint32_t i = 0; i < ast->axes.n && i < CCN__MAX_AXES; i++) {
    uint32_t axis = l->frame->axis[0];
    if (e->axes.n && !ccn__axis_find(l, e->axes.at[i]->name, &axis)) {
      ccn__lower_error(l, 311, e->axes.at[i]->span, "unknown axis", "there is no mesh axis `%s` here",
                       e->axes.at[i]->name);
      return false;
    }
    for (uint32_t j = 0; j < i; j++)
      if (callee->axis[j] == axis) {
        ccn__lower_error(l, 311, e->axes.at[i]->span, "named twice",
                         "two axis parameters of `%s` cannot mean the same axis", ast->name);
        return false;
      }
    callee->axis_name[i] = ast->axes.at[i]->name;
    callee->axis[i] = (uint8_t)axis;
    callee->naxes = i + 1;
  }
  return true;
}

static const char *call_label(ccn__lower *l, ccn__name callee) {
  ccn__inline *f = l->frame;
  if (f->take_label) {
    const char *label = f->take_label;
    f->take_label = NULL;
    return ccn__arena_printf(l->arena, "%s.", label);
  }
  ccn__name key = ccn__internz(l->g->names, ccn__arena_printf(l->arena, "%s%s", f->prefix, callee));
  ccn__bv *before = ccn__scope_find(&f->calls, key);
  uint32_t n = before ? (uint32_t)before->lit->i : 0;
  ccn__scope_push(l->arena, &f->calls, key, of_lit(ccn__lit_int(l->arena, n + 1), (ccn__span){0}));
  return n ? ccn__arena_printf(l->arena, "%s%s%u.", f->prefix, callee, n + 1)
           : ccn__arena_printf(l->arena, "%s%s.", f->prefix, callee);
}

static ccn__bv call_program(ccn__lower *l, const ccn__ast *e, ccn__program *p) {
  while (p->base) p = p->base;
  for (ccn__inline *f = l->frame; f; f = f->outer)
    if (f->program && f->program->ast == p->ast) {
      ccn__diag *d = ccn__lower_error(
        l, 802, e->span, "calls itself",
        "`%s` calls itself: calls of programs are inlined, so this would never end", p->ast->name);
      ccn__hint(l->ds, d, "loop over a range or a list, or use `repeat`");
      return CCN__B_FAIL;
    }
  if (p->broken) return CCN__B_FAIL; /* its own errors have been reported */
  enum { MAX_CALLS = 100000 };
  if (++l->calls > MAX_CALLS) {
    ccn__lower_error(l, 608, e->span, "one too many",
                     "the program calls more than %d programs, all of them inlined", MAX_CALLS);
    return CCN__B_FAIL;
  }
  uint32_t n = p->ast->params.n;
  ccn__bv *args = CCN__NEWN(l->arena, ccn__bv, n + 1);
  ccn__inline callee = {.outer = l->frame, .program = p, .call = e->span};
  if (!arrange(l, e, p->ast, args) || !choose_axes(l, e, p, &callee)) return CCN__B_FAIL;
  callee.prefix = call_label(l, p->ast->name);
  callee.auto_count = CCN__NEWN(l->arena, uint16_t, CCN__OP_COUNT);
  callee.result = (ccn__bv){.kind = CCN__B_NONE, .span = e->span};
  uint32_t errors = l->ds->errors;
  if (!ccn__bind_params(l, &callee, args, e->span)) return CCN__B_FAIL;
  const ccn__ast *bind = l->bind_ast;
  ccn__on_block *on = l->on;
  l->frame = &callee;
  l->bind_ast = NULL;
  ccn__lower_block(l, p->ast->b);
  l->frame = callee.outer;
  l->bind_ast = bind;
  l->on = on;
  if (errors != l->ds->errors) return CCN__B_FAIL;
  callee.result.span = e->span;
  return callee.result;
}

static ccn__bv call_op(ccn__lower *l, const ccn__ast *e, const char *op) {
  ccn__opd *args = CCN__NEWN(l->arena, ccn__opd, e->list.n + 1);
  for (uint32_t i = 0; i < e->list.n; i++) {
    const ccn__ast *a = e->list.at[i];
    args[i] = (ccn__opd){.name = a->name, .nspan = a->nspan, .span = a->a->span, .ast = a->a};
  }
  return ccn__build_op(l, op, args, e->list.n, e->span);
}

static ccn__bv call(ccn__lower *l, const ccn__ast *e) {
  const ccn__ast *f = e->a;
  ccn__dtype t;
  if (f->kind == CCN__AST_NAME) {
    ccn__bv *bound = ccn__lookup(l, f->name);
    if (!bound && ccn__dtype_find(f->name, &t)) {
      if (e->list.n != 1 || e->list.at[0]->name) {
        ccn__lower_error(l, 800, e->span, "here", "a cast takes one value, as in `%s(x)`", f->name);
        return CCN__B_FAIL;
      }
      return ccn__build_cast(l, t, ccn__lower_expr(l, e->list.at[0]->a), e->span);
    }
    if (!bound && strcmp(f->name, "size") == 0) return size_of_axis(l, e);
    if (!bound && strcmp(f->name, "len") == 0) return length(l, e);
  }
  ccn__bv v = ccn__lower_expr(l, f);
  if (v.kind == CCN__B_ERROR) return v;
  if (v.kind == CCN__B_PROGRAM) return call_program(l, e, v.program);
  if (v.kind == CCN__B_OP && (ccn__op_callable(v.name) || ccn__host_op_find(l->rt, v.name))) {
    if (e->axes.n) {
      ccn__lower_error(l, 800, e->span, "here", "`%s` takes its axis with `over:`", v.name);
      return CCN__B_FAIL;
    }
    return call_op(l, e, v.name);
  }
  if (v.kind == CCN__B_LIT &&
      v.lit->kind == CCN__LIT_UNKNOWN) { /* check: a function of the script whose kind is not known */
    for (uint32_t i = 0; i < e->list.n; i++) (void)ccn__lower_expr(l, e->list.at[i]->a);
    return CCN__B_FAIL;
  }
  ccn__diag *d = ccn__lower_error(l, 805, f->span, "cannot be called",
                                  "%s is not something a program can call", kind_words(v));
  ccn__hint(l->ds, d, "programs call ops and other programs");
  return CCN__B_FAIL;
}

/* ---- the rest ---- */

static ccn__bv index_expr(ccn__lower *l, const ccn__ast *e) {
  ccn__bv x = ccn__lower_expr(l, e->a);
  if (x.kind == CCN__B_ERROR || ccn__is_unknown(x)) return x;
  if (x.kind == CCN__B_LIST || x.kind == CCN__B_TUPLE) {
    int64_t i = 0;
    if (e->list.n != 1 || e->list.at[0]->kind == CCN__AST_SLICE || e->list.at[0]->kind == CCN__AST_STAR) {
      ccn__lower_error(l, 800, e->span, "here", "a list is indexed with one whole number");
      return CCN__B_FAIL;
    }
    ccn__bv n = ccn__lower_expr(l, e->list.at[0]);
    if (n.kind == CCN__B_ERROR || !ccn__lit_i64(l, n, "the index of a list", &i)) return CCN__B_FAIL;
    if (x.abstract) return x.list.at[0];
    if (i < 0) i += x.list.n;
    if (i < 0 || i >= (int64_t)x.list.n) {
      ccn__lower_error(l, 812, e->list.at[0]->span, "outside", "a list of %u has no element %lld", x.list.n,
                       (long long)i);
      return CCN__B_FAIL;
    }
    x = x.list.at[i];
    x.span = e->span;
    return x;
  }
  ccn__index_arg *items = CCN__NEWN(l->arena, ccn__index_arg, e->list.n + 1);
  for (uint32_t i = 0; i < e->list.n; i++) {
    const ccn__ast *a = e->list.at[i];
    bool range = a->kind == CCN__AST_SLICE;
    const ccn__ast *start = range ? a->a : a, *end = range ? a->b : NULL;
    items[i] = (ccn__index_arg){.range = range, .span = a->span};
    if (start && !(items[i].start = ccn__lower_dim(l, start))) return CCN__B_FAIL;
    if (end && !(items[i].end = ccn__lower_dim(l, end))) return CCN__B_FAIL;
  }
  return ccn__build_index(l, x, items, e->list.n, e->span);
}

static ccn__bv field(ccn__lower *l, const ccn__ast *e) {
  ccn__bv x = ccn__lower_expr(l, e->a);
  if (x.kind == CCN__B_ERROR) return x;
  if (x.kind == CCN__B_MODULE && x.module) {
    ccn__nearest near;
    ccn__nearest_init(&near, e->name);
    for (uint32_t i = 0; i < x.module->env->n; i++) {
      if (x.module->env->at[i].name == e->name) return ccn__from_val(l, x.module->env->at[i].value, e->span);
      ccn__nearest_try(&near, x.module->env->at[i].name);
    }
    ccn__diag *d = ccn__lower_error(l, 801, e->nspan, "not known", "the module has no `%s`", e->name);
    if (near.best) ccn__hint(l->ds, d, "did you mean `%s`?", near.best);
    return CCN__B_FAIL;
  }
  if (x.kind == CCN__B_LIT && x.lit->kind == CCN__LIT_UNKNOWN) return x;
  ccn__diag *d =
    ccn__lower_error(l, 805, e->nspan, "not known", "%s has no `%s` in a program", kind_words(x), e->name);
  if (x.kind == CCN__B_NODE)
    ccn__hint(l->ds, d,
              strcmp(e->name, "T") == 0
                ? "write transpose(x)"
                : "what is done with a tensor is a call: sum(x); its extents are the names in its type");
  return CCN__B_FAIL;
}

static ccn__bv list_expr(ccn__lower *l, const ccn__ast *e) {
  ccn__bv r = {.kind = e->kind == CCN__AST_LIST ? CCN__B_LIST : CCN__B_TUPLE, .span = e->span};
  r.list.n = e->list.n;
  r.list.at = CCN__NEWN(l->arena, ccn__bv, r.list.n + 1);
  for (uint32_t i = 0; i < r.list.n; i++) {
    r.list.at[i] = ccn__lower_expr(l, e->list.at[i]);
    if (r.list.at[i].kind == CCN__B_ERROR) return CCN__B_FAIL;
  }
  return r;
}

static ccn__bv range_expr(ccn__lower *l, const ccn__ast *e) {
  ccn__bv r = {.kind = CCN__B_RANGE, .span = e->span}, a = ccn__lower_expr(l, e->a),
          b = ccn__lower_expr(l, e->b);
  if (a.kind == CCN__B_ERROR || b.kind == CCN__B_ERROR) return CCN__B_FAIL;
  if (a.kind != CCN__B_LIT || b.kind != CCN__B_LIT) {
    bool data = a.kind == CCN__B_NODE || b.kind == CCN__B_NODE;
    ccn__lower_error(l, data ? 803 : 805, e->span, "not numbers",
                     "the ends of a range in a program are whole numbers known when it is compiled");
    return CCN__B_FAIL;
  }
  if (e->op) b = operation(l, CCN__T_PLUS, b, of_lit(ccn__lit_int(l->arena, 1), e->span), e->span, false);
  if (b.kind == CCN__B_ERROR) return b;
  r.list.n = 2;
  r.list.at = CCN__NEWN(l->arena, ccn__bv, 2);
  r.list.at[0] = a;
  r.list.at[1] = b;
  return r;
}

static ccn__bv expression(ccn__lower *l, const ccn__ast *e) {
  switch (e->kind) {
  case CCN__AST_INT: return of_lit(ccn__lit_int(l->arena, e->i), e->span);
  case CCN__AST_FLOAT: return of_lit(ccn__lit_float(l->arena, e->f), e->span);
  case CCN__AST_BOOL: return of_lit(ccn__lit_bool(l->arena, e->i != 0), e->span);
  case CCN__AST_STRING:
    if (e->list.n > 1 || (e->list.n && e->list.at[0]->kind != CCN__AST_TEXT)) {
      ccn__lower_error(l, 805, e->span, "here", "a string with {values} belongs into the script");
      return CCN__B_FAIL;
    }
    return (ccn__bv){.kind = CCN__B_STRING, .span = e->span, .string = e->list.n ? e->list.at[0]->str : ""};
  case CCN__AST_NAME: return name(l, e);
  case CCN__AST_UNARY: {
    ccn__bv x = ccn__lower_expr(l, e->a);
    return operation(l, (ccn__oper)e->op, x, x, e->span, true);
  }
  case CCN__AST_BINARY: return binary(l, e);
  case CCN__AST_CALL: return call(l, e);
  case CCN__AST_INDEX: return index_expr(l, e);
  case CCN__AST_FIELD: return field(l, e);
  case CCN__AST_RANGE: return range_expr(l, e);
  case CCN__AST_LIST:
  case CCN__AST_TUPLE: return list_expr(l, e);
  case CCN__AST_TENSOR_TYPE:
  case CCN__AST_LIST_TYPE:
  case CCN__AST_TUPLE_TYPE: return (ccn__bv){.kind = CCN__B_TYPE, .span = e->span, .type = e};
  case CCN__AST_ERROR: return CCN__B_FAIL;
  default:
    ccn__lower_error(l, 805, e->span, "not in a program",
                     "this expression belongs into the script, not into a program");
    return CCN__B_FAIL;
  }
}

ccn__bv ccn__lower_expr(ccn__lower *l, const ccn__ast *e) {
  if (++l->depth > 500) {
    ccn__lower_error(l, 8, e->span, "here", "nested too deeply");
    l->depth--;
    return CCN__B_FAIL;
  }
  const ccn__ast *bind = l->bind_ast;
  if (bind && bind != e) l->bind_ast = NULL; /* the name belongs to the outermost op only */
  ccn__bv v = expression(l, e);
  l->bind_ast = bind;
  l->depth--;
  return v;
}

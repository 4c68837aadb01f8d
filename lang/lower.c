/* lower.c: program text → graph: frames, statements, and a program as a whole.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lower.h"

#define MAX_NODES 1000000u

void ccn__lower_init(ccn__lower *l, ccn__rt *rt, ccn__graph *g, bool check) {
  *l = (ccn__lower){.rt = rt, .g = g, .arena = g->arena, .ds = rt->diags, .check = check};
}

/* ---- names ---- */

ccn__name ccn__lower_full_name(ccn__lower *l, ccn__name name) {
  const char *p = l->frame->prefix;
  return p && *p ? ccn__internz(l->g->names, ccn__arena_printf(l->arena, "%s%s", p, name)) : name;
}

/* A value leaves the `on` block it was made in only as a value of that coordinate. */
static ccn__bv settle(ccn__lower *l, ccn__bv v) {
  if (l->on && (v.kind == CCN__B_LIST || v.kind == CCN__B_TUPLE)) {
    ccn__bv *at = CCN__NEWN(l->arena, ccn__bv, v.list.n + 1);
    for (uint32_t i = 0; i < v.list.n; i++) {
      at[i] = settle(l, v.list.at[i]);
      if (at[i].kind == CCN__B_ERROR) return CCN__B_FAIL;
    }
    v.list.at = at;
    return v;
  }
  if (v.kind == CCN__B_NODE && l->on) {
    ccn__id id = ccn__as_node(l, v, -1);
    if (id == CCN__NO_ID) return CCN__B_FAIL;
    if (l->g->nodes.at[id].type->place[l->on->axis].kind == CCN__REPLICATED) {
      int64_t axis = l->on->axis, coord = l->on->coord;
      ccn__attr at[2] = {{.key = CCN__A_AXIS, .i = axis}, {.key = CCN__A_COORD, .i = coord}};
      id = ccn__emit(l, CCN__OP_ENTER, &id, 1, (ccn__attrs){at, 2}, NULL, v.span);
      if (id == CCN__NO_ID) return CCN__B_FAIL;
    }
    v.node = id;
  }
  return v;
}

void ccn__bind(ccn__lower *l, ccn__name name, ccn__bv v) {
  v = settle(l, v);
  ccn__op op;
  if (l->check && !l->frame->outer && ccn__op_find(name, &op)) {
    ccn__diag *d = ccn__warning(l->ds, 808, v.span, "shadows the op",
                                "`%s` is also an op; from here on it means this value", name);
    (void)d;
  }
  if (v.kind == CCN__B_NODE) {
    ccn__node *n = &l->g->nodes.at[v.node];
    if (!n->name && n->op != CCN__OP_CONST) n->name = ccn__lower_full_name(l, name);
  }
  ccn__scope_push(l->arena, &l->frame->names, name, v);
}

void ccn__lower_bind_pattern(ccn__lower *l, const ccn__ast *pattern, ccn__bv v) {
  if (pattern->kind == CCN__AST_ERROR) return;
  if (pattern->kind == CCN__AST_NAME) {
    ccn__bind(l, pattern->name, v);
    return;
  }
  if (ccn__is_unknown(v) && pattern->kind == CCN__AST_TUPLE) {
    for (uint32_t i = 0; i < pattern->list.n; i++) ccn__lower_bind_pattern(l, pattern->list.at[i], v);
    return;
  }
  bool listy = v.kind == CCN__B_TUPLE || v.kind == CCN__B_LIST;
  if (v.kind != CCN__B_ERROR && (pattern->kind != CCN__AST_TUPLE || !listy || v.list.n != pattern->list.n)) {
    if (pattern->kind != CCN__AST_TUPLE || !listy)
      ccn__lower_error(l, 800, pattern->span, "cannot take this apart", "a %s is needed here",
                       pattern->kind == CCN__AST_TUPLE ? "tuple" : "name");
    else
      ccn__lower_error(l, 800, pattern->span, "wrong number of names", "%u names for %u values",
                       pattern->list.n, v.list.n);
    v = CCN__B_FAIL;
  }
  if (pattern->kind != CCN__AST_TUPLE) return;
  for (uint32_t i = 0; i < pattern->list.n; i++)
    ccn__lower_bind_pattern(l, pattern->list.at[i], v.kind == CCN__B_ERROR ? v : v.list.at[i]);
}

/* ---- bindings ---- */

static void assign(ccn__lower *l, const ccn__ast *s) {
  if (s->a->kind != CCN__AST_NAME && s->a->kind != CCN__AST_TUPLE) {
    if (s->a->kind != CCN__AST_ERROR)
      ccn__hint(l->ds,
                ccn__lower_error(l, 10, s->a->span, "not a name",
                                 "elements cannot be assigned in a program: values are never changed"),
                "make a new value, with `where` or `concat`");
    return;
  }
  ccn__ast *value = s->b;
  const ccn__ast *old_ast = l->bind_ast;
  ccn__name old_name = l->bind_name;
  l->bind_ast = s->a->kind == CCN__AST_NAME ? value : NULL;
  l->bind_name = s->a->name;
  ccn__bv v = ccn__lower_expr(l, value);
  l->bind_ast = old_ast;
  l->bind_name = old_name;
  if (v.kind == CCN__B_NONE) {
    ccn__lower_error(l, 805, value->span, "has no value", "this call returns nothing");
    v = CCN__B_FAIL;
  }
  ccn__lower_bind_pattern(l, s->a, v);
}

/* ---- statements ---- */

static void label_call(ccn__lower *l, const ccn__ast *s) {
  const char *label = l->frame->take_label;
  l->frame->take_label = ccn__arena_printf(l->arena, "%s%s", l->frame->prefix, s->name);
  ccn__bv v = ccn__lower_expr(l, s->b);
  l->frame->take_label = label;
  if (v.kind != CCN__B_NONE) ccn__bind(l, s->name, v);
}

void ccn__lower_statement(ccn__lower *l, const ccn__ast *s) {
  if (l->g->nodes.n > MAX_NODES) {
    ccn__lower_error(l, 608, s->span, "here", "the program has more than %u ops once its loops are unrolled",
                     MAX_NODES);
    l->frame->returned = true;
    return;
  }
  switch (s->kind) {
  case CCN__AST_ASSIGN:
  case CCN__AST_LET: assign(l, s); break;
  case CCN__AST_EXPR: (void)ccn__lower_expr(l, s->a); break;
  case CCN__AST_RETURN:
    l->frame->result = s->a ? ccn__lower_expr(l, s->a) : (ccn__bv){.kind = CCN__B_NONE, .span = s->span};
    if (s->a && s->a->kind != CCN__AST_TUPLE) l->frame->result = settle(l, l->frame->result);
    if (l->on || l->repeats) {
      if (l->frame->result.kind != CCN__B_ERROR)
        ccn__lower_error(l, 10, s->span, "inside a block",
                         "`return` stands at the end of a program, not inside `%s`", l->on ? "on" : "repeat");
      l->frame->result = CCN__B_FAIL;
    }
    l->frame->returned = true;
    break;
  case CCN__AST_FOR: ccn__lower_for_statement(l, s); break;
  case CCN__AST_IF: ccn__lower_if_statement(l, s); break;
  case CCN__AST_ON: ccn__lower_on_statement(l, s); break;
  case CCN__AST_REPEAT: ccn__lower_repeat_statement(l, s); break;
  case CCN__AST_LABEL_CALL: label_call(l, s); break;
  case CCN__AST_BLOCK: ccn__lower_block(l, s); break;
  case CCN__AST_ERROR: l->frame->result = CCN__B_FAIL; break;
  case CCN__AST_WHILE: {
    ccn__diag *d =
      ccn__lower_error(l, 803, s->span, "here", "a program has no `while`: its length would depend on data");
    ccn__hint(l->ds, d, "use `for` over a range, or loop in the script and call the program");
    break;
  }
  case CCN__AST_ASSERT: {
    ccn__bv c = ccn__lower_expr(l, s->a);
    ccn__number n;
    if (ccn__refuse_extent(l, c, "this assertion")) break;
    if (c.kind == CCN__B_NODE)
      ccn__lower_error(l, 803, s->a->span, "depends on data",
                       "a program cannot assert something about the value of a tensor");
    else if (c.kind == CCN__B_LIT && !ccn__lit_eval(c.lit, NULL, &n) && !n.unknown && !n.is_float && !n.i)
      ccn__lower_error(l, 601, s->span, "does not hold", "assertion failed");
    break;
  }
  default:
    ccn__lower_error(l, 10, s->span, "not in a program",
                     "this statement belongs into the script, not into a program");
  }
}

void ccn__lower_block(ccn__lower *l, const ccn__ast *block) {
  if (++l->depth > 500) {
    ccn__lower_error(l, 8, block->span, "here", "nested too deeply");
    l->frame->returned = true;
  }
  for (uint32_t i = 0; i < block->list.n && !l->frame->returned; i++)
    ccn__lower_statement(l, block->list.at[i]);
  l->depth--;
}

/* ---- a program ---- */

/* The mesh a program is lowered for: the main script's, or, checked on its own, the axes of its text. */
static bool choose_mesh(ccn__rt *rt, ccn__program *p, bool check, ccn__mesh *out, ccn__inline *frame) {
  const ccn__ast_list *axes = &p->ast->axes;
  *out = rt->mesh;
  frame->naxes = 0;
  if (!p->generic) {
    frame->naxes = rt->mesh.naxes;
    for (uint32_t a = 0; a < rt->mesh.naxes; a++)
      frame->axis_name[a] = rt->mesh.name[a], frame->axis[a] = (uint8_t)a;
    return true;
  }
  if (check) {
    *out = (ccn__mesh){.naxes = axes->n < CCN__MAX_AXES ? axes->n : CCN__MAX_AXES};
    for (uint32_t a = 0; a < out->naxes; a++)
      out->name[a] = axes->at[a]->name, out->span[a] = axes->at[a]->span;
  }
  if (!check && rt->mesh.naxes < axes->n) return false;
  frame->naxes = axes->n < CCN__MAX_AXES ? axes->n : CCN__MAX_AXES;
  for (uint32_t a = 0; a < frame->naxes; a++)
    frame->axis_name[a] = axes->at[a]->name, frame->axis[a] = (uint8_t)a;
  return true;
}

ccn__graph *ccn__lower_program(ccn__rt *rt, ccn__program *p, const ccn__val *vals, bool check) {
  ccn__lower l;
  ccn__mesh mesh;
  ccn__inline frame = {.program = p, .prefix = ""};
  if (p->ast->axes.n > CCN__MAX_AXES) {
    ccn__error(rt->diags, 208, p->ast->span, "here", "a program has at most %d axes", CCN__MAX_AXES);
    return NULL;
  }
  uint32_t errors = rt->diags->errors;
  if (!choose_mesh(rt, p, check, &mesh, &frame)) return NULL;
  if (p->axis_choice)
    for (uint32_t a = 0; a < frame.naxes; a++) frame.axis[a] = p->axis_choice[a];
  ccn__graph *g = ccn__graph_new(rt->arena, rt->names, p->name, &mesh);
  ccn__lower_init(&l, rt, g, check);
  frame.auto_count = CCN__NEWN(l.arena, uint16_t, CCN__OP_COUNT);
  l.frame = &frame;
  frame.result = (ccn__bv){.kind = CCN__B_NONE, .span = p->ast->span};
  if (!ccn__declare_params(&l, vals)) return NULL;
  ccn__lower_block(&l, p->ast->b);
  if (errors != rt->diags->errors || frame.result.kind == CCN__B_ERROR) return NULL;
  ccn__lower_finish(&l, frame.result, p->ast->span);
  return errors == rt->diags->errors ? g : NULL;
}

/* lower.c: program text → graph: frames, statements, regions, and what is left when the text has been walked.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lower.h"

#define MAX_NODES 1000000u
#define MAX_ITERATIONS 1000000

void ccn__lower_init(ccn__lower *l, ccn__rt *rt, ccn__graph *g, bool check) {
  *l = (ccn__lower){.rt = rt, .g = g, .arena = g->arena, .ds = rt->diags, .check = check};
}

/* ---- names ---- */

static ccn__name full_name(ccn__lower *l, ccn__name name) {
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
    if (!n->name && n->op != CCN__OP_CONST) n->name = full_name(l, name);
  }
  ccn__scope_push(l->arena, &l->frame->names, name, v);
}

static void bind_pattern(ccn__lower *l, const ccn__ast *pattern, ccn__bv v) {
  if (pattern->kind == CCN__AST_ERROR) return;
  if (pattern->kind == CCN__AST_NAME) {
    ccn__bind(l, pattern->name, v);
    return;
  }
  if (ccn__is_unknown(v) && pattern->kind == CCN__AST_TUPLE) {
    for (uint32_t i = 0; i < pattern->list.n; i++) bind_pattern(l, pattern->list.at[i], v);
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
    bind_pattern(l, pattern->list.at[i], v.kind == CCN__B_ERROR ? v : v.list.at[i]);
}

static void statement(ccn__lower *l, const ccn__ast *s);

/* ---- bindings ---- */

static void assign(ccn__lower *l, const ccn__ast *s) {
  if (s->a->kind != CCN__AST_NAME && s->a->kind != CCN__AST_TUPLE) {
    if (s->a->kind != CCN__AST_ERROR)
      ccn__lower_error(l, 10, s->a->span, "not a name",
                       "elements cannot be assigned in a program: values are never changed");
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
  bind_pattern(l, s->a, v);
}

/* ---- for ---- */

/* Whether a statement list has exactly one call of a program (looked at by name). */
static uint32_t count_calls(ccn__lower *l, const ccn__ast *n) {
  if (!n) return 0;
  uint32_t c = 0;
  if (n->kind == CCN__AST_CALL && n->a->kind == CCN__AST_NAME) {
    ccn__bv *v = ccn__lookup(l, n->a->name);
    bool program = v && v->kind == CCN__B_PROGRAM;
    if (!v && l->frame->program) {
      const ccn__val *x = ccn__env_find(l->frame->program->constants, n->a->name);
      program = x && x->kind == CCN__V_PROGRAM;
    }
    c += program;
  }
  c += count_calls(l, n->a) + count_calls(l, n->b) + count_calls(l, n->c);
  for (uint32_t i = 0; i < n->list.n; i++) c += count_calls(l, n->list.at[i]);
  return c;
}

static void iteration(ccn__lower *l, const ccn__ast *s, ccn__bv item, int64_t i, bool only_call) {
  ccn__inline *f = l->frame;
  if (++l->turns > MAX_ITERATIONS) {
    ccn__lower_error(l, 608, s->b->span, "too long to unroll",
                     "the loops of this program have more than %d turns together", MAX_ITERATIONS);
    f->returned = true;
    return;
  }
  const char *prefix = f->prefix, *label = f->take_label;
  uint16_t *count = f->auto_count;
  if (s->name) {
    f->auto_count = CCN__NEWN(l->arena, uint16_t, CCN__OP_COUNT); /* the same names in every turn */
    const char *here = ccn__arena_printf(l->arena, "%s%s[%lld]", prefix, s->name, (long long)i);
    if (only_call) f->take_label = here;
    f->prefix = ccn__arena_printf(l->arena, "%s.", here);
  }
  bind_pattern(l, s->a, item);
  ccn__lower_block(l, s->c);
  f->prefix = prefix;
  f->take_label = label;
  f->auto_count = count;
}

/* check: a list without length is walked once; a name it carries around must keep its type. */
static void abstract_loop(ccn__lower *l, const ccn__ast *s, ccn__bv list, bool only_call) {
  uint32_t before = l->frame->names.n;
  ccn__bv item = list.list.at[0];
  iteration(l, s, item, 0, only_call);
  for (uint32_t i = before; i < l->frame->names.n; i++) {
    ccn__scope_entry now = l->frame->names.at[i], old = now;
    while (old.shadowed > before) old = l->frame->names.at[old.shadowed - 1];
    if (!old.shadowed) continue;
    old = l->frame->names.at[old.shadowed - 1];
    if (old.value.kind != CCN__B_NODE || now.value.kind != CCN__B_NODE) continue;
    const ccn__type *a = l->g->nodes.at[old.value.node].type, *b = l->g->nodes.at[now.value.node].type;
    if (ccn__type_equal(a, b)) continue;
    ccn__diag *d = ccn__lower_error(l, 813, now.value.span, "changes its type here",
                                    "`%s` is carried around the loop and must keep its type: %s becomes %s",
                                    now.name, ccn__type_text(l->g, a), ccn__type_text(l->g, b));
    ccn__note(l->ds, d, old.value.span, "its type before the loop");
    return;
  }
}

static void for_statement(ccn__lower *l, const ccn__ast *s) {
  ccn__bv v = ccn__lower_expr(l, s->b);
  bool only_call = s->name && count_calls(l, s->c) == 1;
  if (v.kind == CCN__B_ERROR) return;
  if (ccn__is_unknown(v)) { /* check: some list of the script; one turn stands for all */
    iteration(l, s, v, 0, only_call);
    return;
  }
  if (v.kind == CCN__B_RANGE) {
    v.list.at[0].span = v.list.at[1].span = s->b->span;
    if (ccn__refuse_extent(l, v.list.at[0], "this loop") || ccn__refuse_extent(l, v.list.at[1], "this loop"))
      return;
    ccn__number a, b;
    const char *e = ccn__lit_eval(v.list.at[0].lit, NULL, &a);
    if (!e) e = ccn__lit_eval(v.list.at[1].lit, NULL, &b);
    if (e || a.is_float || b.is_float) {
      ccn__lower_error(l, 805, s->b->span, "not a range of whole numbers",
                       "a loop in a program needs whole numbers known when it is compiled");
      return;
    }
    if (a.unknown || b.unknown) b.i = a.i + 1;
    if (b.i > a.i && (uint64_t)b.i - (uint64_t)a.i > MAX_ITERATIONS) {
      ccn__lower_error(l, 608, s->b->span, "too long to unroll",
                       "a loop in a program is unrolled, and this one has more than %d turns",
                       MAX_ITERATIONS);
      return;
    }
    uint32_t errors = l->ds->errors;
    for (int64_t i = a.i; i < b.i && errors == l->ds->errors; i++) {
      ccn__bv item = {.kind = CCN__B_LIT, .span = s->b->span, .lit = ccn__lit_int(l->arena, i)};
      if (a.unknown || b.unknown) {
        ccn__lit *u = CCN__NEW(l->arena, ccn__lit);
        u->kind = CCN__LIT_UNKNOWN;
        item.lit = u;
      }
      iteration(l, s, item, i, only_call);
    }
    return;
  }
  if (v.kind != CCN__B_LIST && v.kind != CCN__B_TUPLE) {
    ccn__diag *d =
      ccn__lower_error(l, v.kind == CCN__B_NODE ? 803 : 805, s->b->span, "cannot be gone through",
                       "a loop in a program goes through a range or a list");
    if (v.kind == CCN__B_NODE) ccn__hint(l->ds, d, "an op works on all elements at once");
    return;
  }
  if (v.abstract && v.list.n) {
    abstract_loop(l, s, v, only_call);
    return;
  }
  uint32_t errors = l->ds->errors;
  for (uint32_t i = 0; i < v.list.n && errors == l->ds->errors; i++)
    iteration(l, s, v.list.at[i], i, only_call);
}

/* ---- if ---- */

static void if_statement(ccn__lower *l, const ccn__ast *s) {
  ccn__bv c = ccn__lower_expr(l, s->a);
  if (c.kind == CCN__B_ERROR) return;
  if (c.kind == CCN__B_NODE) {
    ccn__diag *d = ccn__lower_error(l, 803, s->a->span, "depends on data",
                                    "a program cannot branch on the value of a tensor");
    ccn__hint(l->ds, d, "select with `where(condition, x, y)`, which works on every rank alike");
    return;
  }
  if (ccn__refuse_extent(l, c, "this branch")) return;
  ccn__number n;
  if (c.kind != CCN__B_LIT || ccn__lit_eval(c.lit, NULL, &n) || n.is_float) {
    ccn__lower_error(l, 805, s->a->span, "not true or false", "the condition of `if` must be true or false");
    return;
  }
  if (n.unknown) { /* check: either branch may be taken; both must be right */
    uint32_t names = l->frame->names.n;
    if (s->c) {
      if (s->c->kind == CCN__AST_BLOCK) ccn__lower_block(l, s->c);
      else statement(l, s->c);
      ccn__scope_cut(&l->frame->names, names);
    }
    ccn__lower_block(l, s->b);
    return;
  }
  if (n.i) ccn__lower_block(l, s->b);
  else if (s->c && s->c->kind == CCN__AST_BLOCK) ccn__lower_block(l, s->c);
  else if (s->c) statement(l, s->c);
}

/* ---- on, repeat ---- */

static uint32_t new_region(ccn__lower *l, ccn__id owner) {
  *CCN__PUSH(l->arena, &l->g->regions) = (ccn__region){.owner = owner};
  uint32_t r = l->g->regions.n - 1;
  l->g->nodes.at[owner].body = r;
  return r;
}

static const ccn__type *none_type(ccn__lower *l) {
  ccn__type *t = CCN__NEW(l->arena, ccn__type);
  t->naxes = (uint8_t)l->g->mesh.naxes;
  t->dtype = CCN__BOOL;
  return t;
}

static void assigned_names(ccn__arena *a, const ccn__ast *n, ccn__name *out, uint32_t *count, uint32_t max) {
  if (!n) return;
  if (n->kind == CCN__AST_ASSIGN || n->kind == CCN__AST_LET) {
    const ccn__ast *p = n->a;
    for (uint32_t i = 0; i < (p->kind == CCN__AST_TUPLE ? p->list.n : 1); i++) {
      const ccn__ast *x = p->kind == CCN__AST_TUPLE ? p->list.at[i] : p;
      if (x->kind == CCN__AST_NAME && *count < max) out[(*count)++] = x->name;
    }
  }
  assigned_names(a, n->b, out, count, max);
  assigned_names(a, n->c, out, count, max);
  for (uint32_t i = 0; i < n->list.n; i++) assigned_names(a, n->list.at[i], out, count, max);
}

/* After an error: the names that the block would have bound are known, so that their uses are no further errors. */
static void bind_nothing(ccn__lower *l, const ccn__ast *block) {
  ccn__name name[64];
  uint32_t n = 0;
  assigned_names(l->arena, block, name, &n, 64);
  for (uint32_t i = 0; i < n; i++) ccn__bind(l, name[i], CCN__B_FAIL);
}

static bool on_place(ccn__lower *l, const ccn__ast *s, uint32_t *out_axis, int64_t *out_coord) {
  uint32_t axis;
  int64_t coord;
  if (!ccn__axis_find(l, s->name, &axis)) {
    ccn__lower_error(l, 311, s->nspan.source ? s->nspan : s->span, "unknown axis",
                     "there is no mesh axis `%s` here", s->name);
    return false;
  }
  ccn__bv c = ccn__lower_expr(l, s->a);
  if (c.kind == CCN__B_ERROR || !ccn__lit_i64(l, c, "the coordinate", &coord)) return false;
  int32_t n = l->g->mesh.size[axis];
  if (coord < 0 || (n && coord >= n) || coord > INT32_MAX) {
    ccn__lower_error(l, 308, s->a->span, "no such coordinate", "axis `%s` has no coordinate %lld", s->name,
                     (long long)coord);
    return false;
  }
  for (ccn__on_block *o = l->on; o; o = o->outer)
    if (o->axis == axis && o->coord != coord) {
      ccn__diag *d = ccn__lower_error(l, 206, s->span, "never executed",
                                      "this block is inside one for another coordinate of `%s`", s->name);
      ccn__note(l->ds, d, o->span, "the outer block");
      return false;
    }
  *out_axis = axis;
  *out_coord = coord;
  return true;
}

static void on_statement(ccn__lower *l, const ccn__ast *s) {
  uint32_t axis;
  int64_t coord;
  if (!on_place(l, s, &axis, &coord)) {
    bind_nothing(l, s->b);
    return;
  }
  ccn__attr at[2] = {{.key = CCN__A_AXIS, .i = axis}, {.key = CCN__A_COORD, .i = coord}};
  ccn__id id =
    ccn__graph_add(l->g, CCN__OP_ON, NULL, 0, none_type(l), (ccn__attrs){at, 2}, s->span, l->region);
  uint32_t outer = l->region;
  ccn__on_block block = {
    .outer = l->on, .axis = axis, .coord = (int32_t)coord, .region = new_region(l, id), .span = s->span};
  if (block.span.end > s->b->span.start) block.span.end = s->b->span.start;
  l->region = block.region;
  l->on = &block;
  ccn__lower_block(l, s->b);
  l->on = block.outer;
  l->region = outer;
}

static void repeat_statement(ccn__lower *l, const ccn__ast *s) {
  ccn__bv times = ccn__lower_expr(l, s->a);
  int64_t k;
  if (times.kind == CCN__B_ERROR || !ccn__lit_i64(l, times, "the number of turns", &k)) return;
  if (k < 0) {
    ccn__lower_error(l, 310, s->a->span, "negative", "a block cannot be repeated %lld times", (long long)k);
    return;
  }
  enum { MAX_CARRIED = 256 };
  ccn__name candidates[MAX_CARRIED], name[MAX_CARRIED];
  ccn__id init[MAX_CARRIED], yield[MAX_CARRIED];
  ccn__span where[MAX_CARRIED];
  uint32_t nc = 0, n = 0;
  assigned_names(l->arena, s->b, candidates, &nc, MAX_CARRIED);
  for (uint32_t i = 0; i < nc; i++) {
    ccn__bv *v = ccn__lookup(l, candidates[i]);
    bool again = false;
    for (uint32_t j = 0; j < n; j++) again |= name[j] == candidates[i];
    if (v && v->kind == CCN__B_LIT) {
      ccn__diag *d = ccn__lower_error(l, 103, v->span, "a literal",
                                      "`%s` is carried around the block, but it is a literal without dtype",
                                      candidates[i]);
      ccn__note(l->ds, d, s->span, "the block that changes it");
      ccn__hint(l->ds, d, "give it a dtype, as in `f32(0)`");
      return;
    }
    if (again || !v || v->kind != CCN__B_NODE) continue;
    init[n] = ccn__as_node(l, *v, -1);
    if (init[n] == CCN__NO_ID) return;
    where[n] = v->span;
    name[n++] = candidates[i];
  }
  ccn__attr at = {.key = CCN__A_TIMES, .lit = times.lit};
  ccn__id id =
    ccn__graph_add(l->g, CCN__OP_REPEAT, init, n, none_type(l), (ccn__attrs){&at, 1}, s->span, l->region);
  uint32_t outer = l->region, errors = l->ds->errors, names = l->frame->names.n;
  l->region = new_region(l, id);
  l->repeats++;
  for (uint32_t i = 0; i < n; i++) {
    ccn__attr number = {.key = CCN__A_NUMBER, .i = i};
    ccn__id c = ccn__graph_add(l->g, CCN__OP_CARRY, NULL, 0, l->g->nodes.at[init[i]].type,
                               (ccn__attrs){&number, 1}, where[i], l->region);
    l->g->nodes.at[c].name = full_name(l, name[i]);
    ccn__scope_push(l->arena, &l->frame->names, name[i], ccn__bv_node(c, where[i]));
  }
  ccn__lower_block(l, s->b);
  for (uint32_t i = 0; i < n && errors == l->ds->errors; i++) {
    ccn__bv v = *ccn__lookup(l, name[i]);
    yield[i] = ccn__as_node(l, v, -1);
    if (yield[i] == CCN__NO_ID) break;
    const ccn__type *a = l->g->nodes.at[init[i]].type, *b = l->g->nodes.at[yield[i]].type;
    if (ccn__type_equal(a, b)) continue;
    ccn__diag *d = ccn__lower_error(l, 813, v.span, "changes its type here",
                                    "`%s` is carried around the loop and must keep its type: %s becomes %s",
                                    name[i], ccn__type_text(l->g, a), ccn__type_text(l->g, b));
    ccn__note(l->ds, d, where[i], "its type before the loop");
  }
  l->repeats--;
  if (errors == l->ds->errors) {
    ccn__region *r = &l->g->regions.at[l->region];
    ccn__id *y = CCN__NEWN(l->arena, ccn__id, n ? n : 1);
    memcpy(y, yield, n * sizeof *y);
    r->yield = y;
    r->nyield = n;
  }
  l->region = outer;
  ccn__scope_cut(&l->frame->names, names);
  for (uint32_t i = 0; i < n && errors == l->ds->errors; i++) {
    ccn__attr number = {.key = CCN__A_NUMBER, .i = i};
    ccn__id r = ccn__graph_add(l->g, CCN__OP_RESULT, &id, 1, l->g->nodes.at[init[i]].type,
                               (ccn__attrs){&number, 1}, s->span, l->region);
    ccn__bind(l, name[i], ccn__bv_node(r, s->span));
  }
}

/* ---- statements ---- */

static void label_call(ccn__lower *l, const ccn__ast *s) {
  const char *label = l->frame->take_label;
  l->frame->take_label = ccn__arena_printf(l->arena, "%s%s", l->frame->prefix, s->name);
  ccn__bv v = ccn__lower_expr(l, s->b);
  l->frame->take_label = label;
  if (v.kind != CCN__B_NONE) ccn__bind(l, s->name, v);
}

static void statement(ccn__lower *l, const ccn__ast *s) {
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
  case CCN__AST_FOR: for_statement(l, s); break;
  case CCN__AST_IF: if_statement(l, s); break;
  case CCN__AST_ON: on_statement(l, s); break;
  case CCN__AST_REPEAT: repeat_statement(l, s); break;
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
  for (uint32_t i = 0; i < block->list.n && !l->frame->returned; i++) statement(l, block->list.at[i]);
  l->depth--;
}

/* ---- the end: outputs, CCN0224, dead code ---- */

static bool add_outputs(ccn__lower *l, ccn__bv v, ccn__id *out, uint32_t *n, uint32_t max) {
  if (v.kind == CCN__B_TUPLE || v.kind == CCN__B_LIST) {
    for (uint32_t i = 0; i < v.list.n; i++)
      if (!add_outputs(l, v.list.at[i], out, n, max)) return false;
    return true;
  }
  ccn__id id = ccn__as_node(l, v, -1);
  if (id == CCN__NO_ID) return false;
  if (*n == max) {
    ccn__lower_error(l, 800, v.span, "here", "a program returns at most %u values", max);
    return false;
  }
  out[(*n)++] = id;
  return true;
}

static void report_entry_reader(ccn__lower *l, ccn__id reader, ccn__id t, ccn__id u) {
  ccn__diag *d = ccn__lower_error(
    l, 224, l->g->nodes.at[reader].span, "reads both",
    "this depends on the updated `%s` and reads its value at entry, which the update has overwritten by then",
    l->g->nodes.at[t].name);
  ccn__note(l->ds, d, l->g->nodes.at[u].span, "the update");
  ccn__hint(l->ds, d, "read the value at entry before the update, or use the update's result");
}

/* A carried value depends on what goes into its repeat, the result on what the block yields. */
static bool through_repeat(const ccn__graph *g, ccn__id i, const uint8_t *after) {
  const ccn__node *n = &g->nodes.at[i];
  if (n->op == CCN__OP_CARRY) return after[g->regions.at[n->region].owner];
  if (n->op != CCN__OP_RESULT) return false;
  const ccn__region *r = &g->regions.at[g->nodes.at[n->in[0]].body];
  for (uint32_t k = 0; k < r->nyield; k++)
    if (after[r->yield[k]]) return true;
  return false;
}

/* An op that reads a parameter's value at entry runs before the store, so it must not depend on what is stored.
 * Only parameters that are read behind their update need the walk. */
static void check_entry_readers(ccn__lower *l) {
  ccn__graph *g = l->g;
  ccn__id *last_reader = CCN__NEWN(l->arena, ccn__id, g->nodes.n + 1);
  uint8_t *after = CCN__NEWN(l->arena, uint8_t, g->nodes.n + 1);
  for (ccn__id i = 0; i < g->nodes.n; i++)
    for (uint32_t k = 0; k < g->nodes.at[i].nin; k++) last_reader[g->nodes.at[i].in[k]] = i;
  for (uint32_t p = 0; p < g->params.n; p++) {
    ccn__id u = g->params.at[p].update, t = g->params.at[p].node;
    if (u == CCN__NO_ID || last_reader[t] <= u) continue;
    memset(after, 0, g->nodes.n);
    after[u] = 1;
    for (ccn__id i = u + 1; i <= last_reader[t]; i++) {
      const ccn__node *n = &g->nodes.at[i];
      bool reads = false;
      after[i] |= through_repeat(g, i, after);
      for (uint32_t k = 0; k < n->nin; k++) {
        after[i] |= after[n->in[k]];
        reads |= n->in[k] == t;
      }
      if (!reads || !after[i]) continue;
      report_entry_reader(l, i, t, u);
      break;
    }
  }
}

static void mark(uint8_t *live, ccn__id id) {
  if (id != CCN__NO_ID) live[id] = 1;
}

/* Marks what outputs and updates need. Inputs have smaller numbers except through `repeat`, whose block is live as a
 * whole when it is; so one walk down suffices if a live repeat marks its yields before they are passed: they are
 * behind it, hence the loop. */
static void mark_live(ccn__graph *g, uint8_t *live) {
  for (uint32_t i = 0; i < g->noutputs; i++) mark(live, g->outputs[i]);
  for (uint32_t p = 0; p < g->params.n; p++) {
    mark(live, g->params.at[p].node);
    mark(live, g->params.at[p].update);
  }
  for (bool again = true; again;) {
    again = false;
    for (ccn__id i = g->nodes.n; i-- > 0;) {
      if (!live[i]) continue;
      const ccn__node *n = &g->nodes.at[i];
      for (uint32_t k = 0; k < n->nin; k++) live[n->in[k]] = 1;
      ccn__id owner = g->regions.at[n->region].owner;
      if (owner != CCN__NO_ID && !live[owner]) live[owner] = 1, again |= owner > i;
      if (n->op != CCN__OP_REPEAT) continue;
      const ccn__region *r = &g->regions.at[n->body];
      for (uint32_t k = 0; k < r->nyield; k++)
        if (!live[r->yield[k]]) live[r->yield[k]] = 1, again = true;
    }
    for (ccn__id i = 0; i < g->nodes.n; i++) /* carried values keep their numbers */
      if (g->nodes.at[i].op == CCN__OP_CARRY && !live[i] && live[g->regions.at[g->nodes.at[i].region].owner])
        live[i] = 1;
  }
}

static void warn_unused(ccn__lower *l, const ccn__node *n) {
  bool moves =
    ccn__op_table[n->op].kind == CCN__KIND_COLLECTIVE && n->op != CCN__OP_SLICE && n->op != CCN__OP_TO_LOCAL;
  if (!moves || !l->check || l->frame->outer) return;
  ccn__diag *d =
    ccn__warning(l->ds, 809, n->span, "its result is not used",
                 "this `%s` is removed on all ranks: nobody needs its result", ccn__op_table[n->op].name);
  ccn__hint(l->ds, d, "delete it, or use its result");
}

static void remove_dead(ccn__lower *l) {
  ccn__graph *g = l->g;
  uint8_t *live = CCN__NEWN(l->arena, uint8_t, g->nodes.n + 1);
  ccn__id *to = CCN__NEWN(l->arena, ccn__id, g->nodes.n + 1), n = 0;
  mark_live(g, live);
  for (ccn__id i = 0; i < g->nodes.n; i++) {
    if (!live[i]) warn_unused(l, &g->nodes.at[i]);
    to[i] = live[i] ? n++ : CCN__NO_ID;
  }
  if (n == g->nodes.n) return;
  for (ccn__id i = 0; i < g->nodes.n; i++) {
    if (!live[i]) continue;
    ccn__node *x = &g->nodes.at[to[i]];
    *x = g->nodes.at[i];
    ccn__id *in = CCN__NEWN(l->arena, ccn__id, x->nin + 1);
    for (uint32_t k = 0; k < x->nin; k++) in[k] = to[x->in[k]];
    x->in = in;
  }
  g->nodes.n = n;
  /* regions of dead blocks go too */
  uint32_t nr = 1, *rto = CCN__NEWN(l->arena, uint32_t, g->regions.n + 1);
  for (uint32_t r = 1; r < g->regions.n; r++) {
    if (to[g->regions.at[r].owner] == CCN__NO_ID) continue;
    ccn__region x = g->regions.at[r];
    x.owner = to[x.owner];
    ccn__id *y = CCN__NEWN(l->arena, ccn__id, x.nyield + 1);
    for (uint32_t k = 0; k < x.nyield; k++) y[k] = to[x.yield[k]];
    x.yield = y;
    rto[r] = nr;
    g->regions.at[nr++] = x;
  }
  g->regions.n = nr;
  for (ccn__id i = 0; i < n; i++) {
    g->nodes.at[i].region = rto[g->nodes.at[i].region];
    g->nodes.at[i].body = rto[g->nodes.at[i].body];
  }
  ccn__id *out = CCN__NEWN(l->arena, ccn__id, g->noutputs + 1);
  for (uint32_t i = 0; i < g->noutputs; i++) out[i] = to[g->outputs[i]];
  g->outputs = out;
  for (uint32_t p = 0; p < g->params.n; p++) {
    g->params.at[p].node = to[g->params.at[p].node];
    if (g->params.at[p].update != CCN__NO_ID) g->params.at[p].update = to[g->params.at[p].update];
  }
}

void ccn__lower_finish(ccn__lower *l, ccn__bv result, ccn__span span) {
  enum { MAX_OUTPUTS = 4096 };
  ccn__id *out = CCN__NEWN(l->arena, ccn__id, MAX_OUTPUTS);
  uint32_t n = 0;
  (void)span;
  l->g->returns_none = result.kind == CCN__B_NONE;
  l->g->returns_tuple = result.kind == CCN__B_TUPLE || result.kind == CCN__B_LIST;
  if (result.kind != CCN__B_NONE && !add_outputs(l, result, out, &n, MAX_OUTPUTS)) return;
  l->g->outputs = out;
  l->g->noutputs = n;
  check_entry_readers(l);
  remove_dead(l);
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

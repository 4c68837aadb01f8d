/* lower_blocks.c: for and if, which unroll; on and repeat, which become regions.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lower.h"

#define MAX_ITERATIONS 1000000

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
  ccn__lower_bind_pattern(l, s->a, item);
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

void ccn__lower_for_statement(ccn__lower *l, const ccn__ast *s) {
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

void ccn__lower_if_statement(ccn__lower *l, const ccn__ast *s) {
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
      else ccn__lower_statement(l, s->c);
      ccn__scope_cut(&l->frame->names, names);
    }
    ccn__lower_block(l, s->b);
    return;
  }
  if (n.i) ccn__lower_block(l, s->b);
  else if (s->c && s->c->kind == CCN__AST_BLOCK) ccn__lower_block(l, s->c);
  else if (s->c) ccn__lower_statement(l, s->c);
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

void ccn__lower_on_statement(ccn__lower *l, const ccn__ast *s) {
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

void ccn__lower_repeat_statement(ccn__lower *l, const ccn__ast *s) {
  ccn__bv times = ccn__lower_expr(l, s->a);
  int64_t k;
  if (times.kind == CCN__B_ERROR || !ccn__lit_i64(l, times, "the number of turns", &k)) return;
  if (k < 0) {
    ccn__diag *d =
      ccn__lower_error(l, 310, s->a->span, "negative", "a block cannot be repeated %lld times", (long long)k);
    ccn__hint(l->ds, d, "a block is repeated 0 times or more");
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
    l->g->nodes.at[c].name = ccn__lower_full_name(l, name[i]);
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

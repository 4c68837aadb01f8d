/* lower_report.c: inference's verdicts as messages: what met what, where each placement came from, what cures it.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "lower.h"

CCN__PRINTF(2, 0) static const char *vprintf_arena(ccn__arena *a, const char *fmt, va_list ap) {
  va_list again;
  va_copy(again, ap);
  int n = vsnprintf(NULL, 0, fmt, ap);
  char *s = ccn__arena_alloc(a, (size_t)(n > 0 ? n : 0) + 1);
  if (n > 0) vsnprintf(s, (size_t)n + 1, fmt, again);
  va_end(again);
  return s;
}

ccn__diag *ccn__lower_error(ccn__lower *l, uint16_t code, ccn__span span, const char *label, const char *fmt,
                            ...) {
  va_list ap;
  va_start(ap, fmt);
  const char *text = vprintf_arena(l->ds->arena, fmt, ap);
  va_end(ap);
  ccn__diag *d = ccn__error(l->ds, code, span, label, "%s", text);
  int shown = 0;
  for (ccn__inline *f = l->frame; f && f->outer && shown < 8; f = f->outer, shown++)
    ccn__note(l->ds, d, f->call, "in this call of `%s`", f->program ? f->program->name : "?");
  return d;
}

const char *ccn__type_text(const ccn__graph *g, const ccn__type *t) {
  ccn__text out;
  ccn__text_init(&out, g->arena);
  ccn__type_print(g, t, &out);
  return out.at ? out.at : "";
}

/* As people write it. */
static const char *pretty(ccn__op op) {
  switch (op) {
  case CCN__OP_ADD: return "+";
  case CCN__OP_SUB: return "-";
  case CCN__OP_MUL: return "*";
  case CCN__OP_DIV: return "/";
  case CCN__OP_FLOORDIV: return "//";
  case CCN__OP_MOD: return "%";
  case CCN__OP_POW: return "**";
  case CCN__OP_LT: return "<";
  case CCN__OP_LE: return "<=";
  case CCN__OP_GT: return ">";
  case CCN__OP_GE: return ">=";
  case CCN__OP_EQ: return "==";
  case CCN__OP_NE: return "!=";
  case CCN__OP_NEG: return "-";
  case CCN__OP_INDEX: return "[...]";
  case CCN__OP_ENTER: return "on";
  default: return ccn__op_table[op].name;
  }
}

const char *ccn__node_text(ccn__lower *l, ccn__id id) {
  const ccn__node *n = &l->g->nodes.at[id];
  if (n->name) return ccn__arena_printf(l->arena, "`%s`", n->name);
  if (n->op == CCN__OP_CONST) return "the literal";
  if (n->op == CCN__OP_ENTER) return ccn__node_text(l, n->in[0]);
  const ccn__attr *host = ccn__attr_find(n->attrs, CCN__A_HOST);
  return ccn__arena_printf(l->arena, "the result of `%s`", host ? host->text : pretty((ccn__op)n->op));
}

/* The node that gave the value its placement over the axis: walk up while an operand has the same one. */
static ccn__id origin(ccn__lower *l, ccn__id id, int axis) {
  for (;;) {
    const ccn__node *n = &l->g->nodes.at[id];
    const ccn__place *p = &n->type->place[axis];
    if (n->op == CCN__OP_ENTER && (int)ccn__attr_int(n->attrs, CCN__A_AXIS, -1) == axis) return id;
    bool collective = ccn__op_table[n->op].kind == CCN__KIND_COLLECTIVE;
    if (collective && (ccn__attr_int(n->attrs, CCN__A_OVER, 0) >> axis & 1)) return id;
    ccn__id next = CCN__NO_ID;
    for (uint32_t i = 0; i < n->nin; i++) {
      const ccn__node *m = &l->g->nodes.at[n->in[i]];
      if (m->type->place[axis].kind != p->kind) continue;
      if (next == CCN__NO_ID || (l->g->nodes.at[next].op == CCN__OP_CONST)) next = n->in[i];
    }
    if (next == CCN__NO_ID || l->g->nodes.at[next].op == CCN__OP_CONST) return id;
    id = next;
  }
}

static const char *place_words(ccn__lower *l, const ccn__type *t, int axis) {
  ccn__text out;
  ccn__text_init(&out, l->arena);
  ccn__place_print(l->g, &t->place[axis], &out);
  return ccn__arena_printf(l->arena, "%s over %s", out.at ? out.at : "replicated", l->g->mesh.name[axis]);
}

void ccn__note_origin(ccn__lower *l, ccn__diag *d, ccn__id id, int axis) {
  const ccn__node *n = &l->g->nodes.at[id];
  if (axis < 0) {
    ccn__note(l->ds, d, n->span, "%s is %s", ccn__node_text(l, id), ccn__type_text(l->g, n->type));
    return;
  }
  ccn__id from = origin(l, id, axis);
  const ccn__node *o = &l->g->nodes.at[from];
  const char *words = place_words(l, n->type, axis);
  if (from == id) {
    ccn__note(l->ds, d, n->span, "%s is %s", ccn__node_text(l, id), words);
    return;
  }
  if (n->name) ccn__note(l->ds, d, n->span, "%s is %s", ccn__node_text(l, id), words);
  ccn__note(l->ds, d, o->span, "because %s is %s", ccn__node_text(l, from), place_words(l, o->type, axis));
}

typedef struct words {
  const char *x, *y, *axis, *op, *xtype, *ytype, *why;
} words;

static const char *message(ccn__lower *l, const ccn__type_error *e, const ccn__infer_in *q, words w) {
  ccn__arena *a = l->arena;
  switch (e->code) {
  case 101:
    return ccn__arena_printf(a, "two dtypes meet in `%s`: %s is %s, %s is %s", w.op, w.x, w.xtype, w.y,
                             w.ytype);
  case 103: return ccn__arena_printf(a, "`/` is real division, but %s is %s", w.x, w.xtype);
  case 104:
    return ccn__arena_printf(a, "`%s` is not defined for %s%s%s", w.op, w.xtype, w.why ? ": " : "",
                             w.why ? w.why : "");
  case 201:
    return ccn__arena_printf(a, "the operands of `%s` are cut in different dims or units over %s", w.op,
                             w.axis);
  case 202: return ccn__arena_printf(a, "%s is cut along a dim that `%s` broadcasts", w.x, w.op);
  case 203:
    if (w.y) return ccn__arena_printf(a, "a local value meets a sliced one in `%s` over %s", w.op, w.axis);
    return ccn__arena_printf(a, "`%s` needs a replicated value, but %s is local over %s", w.op, w.x, w.axis);
  case 204:
    return ccn__arena_printf(a, "`%s` cannot work along the dim in which %s is cut over %s", w.op, w.x,
                             w.axis);
  case 205:
    return ccn__arena_printf(a, "`%s` reduces a dim that is cut over %s, but %s is whole there", w.op, w.axis,
                             w.x);
  case 206:
    if (q->op == CCN__OP_ENTER)
      return ccn__arena_printf(
        a, "%s is no value of one coordinate of %s, so that the `on` block cannot read it", w.x, w.axis);
    return ccn__arena_printf(a, "%s does not exist at the same coordinate of %s as the rest of `%s`%s%s", w.x,
                             w.axis, w.op, w.why ? ": " : "", w.why ? w.why : "");
  case 207:
    return ccn__arena_printf(a, "this reshape would tear the pieces of %s apart over %s", w.x, w.axis);
  case 209:
    return ccn__arena_printf(a, "alltoall along a dim exchanges local values, but %s is not local over %s",
                             w.x, w.axis);
  case 210:
    return ccn__arena_printf(a, "%s owes a reduction over %s, and `%s` does not pass it on", w.x, w.axis,
                             w.op);
  case 211:
    return ccn__arena_printf(a, "%s owes another reduction over %s than `%s` pays", w.x, w.axis,
                             ccn__redop_name((ccn__redop)ccn__attr_int(q->attrs, CCN__A_RED, 0)));
  case 212:
    return ccn__arena_printf(a, "`%s` has nothing to reduce: %s is neither local nor owed over %s", w.op, w.x,
                             w.axis);
  case 213:
    return ccn__arena_printf(a, "`%s` needs a sliced value: %s is not sliced %sover %s", w.op, w.x,
                             q->op == CCN__OP_ALLTOALL ? "along that dim " : "", w.axis);
  case 215: return ccn__arena_printf(a, "`%s` of %s: %s", w.op, w.x, w.why ? w.why : "nothing would move");
  case 216:
    return ccn__arena_printf(a, "`%s` over %s of a value that is sliced or owed over it", w.op, w.axis);
  case 217: return ccn__arena_printf(a, "`%s` of %s: %s over %s", w.op, w.x, w.why ? w.why : "", w.axis);
  case 218:
    return ccn__arena_printf(a, "axis %s cuts the same dim of %s further, so `%s` must not touch it", w.axis,
                             w.x, w.op);
  case 220: return ccn__arena_printf(a, "update stores %s in %s", w.xtype, w.ytype);
  case 221: return ccn__arena_printf(a, "update stores %s in %s: the shapes differ", w.xtype, w.ytype);
  case 222:
    return ccn__arena_printf(a, "update stores %s in %s: the placements differ over %s", w.xtype, w.ytype,
                             w.axis);
  case 305:
    if (w.y && e->ydim >= 0) {
      ccn__text t;
      ccn__text_init(&t, a);
      ccn__text_printf(&t, "shapes that do not meet in `%s`: dim %d of %s is ", w.op, e->xdim, w.x);
      ccn__dim_print(q->in[e->x]->dim[e->xdim], ccn__graph_symbol_name, l->g, &t);
      ccn__text_printf(&t, ", dim %d of %s is ", e->ydim, w.y);
      ccn__dim_print(q->in[e->y]->dim[e->ydim], ccn__graph_symbol_name, l->g, &t);
      return t.at;
    }
    return ccn__arena_printf(a, "`%s` of %s: %s", w.op, w.xtype ? w.xtype : "these operands",
                             w.why ? w.why : "shapes that do not meet");
  default: return ccn__arena_printf(a, "`%s`: %s", w.op, w.why ? w.why : "it does not fit");
  }
}

static const char *dtype_cure(const ccn__infer_in *q, ccn__dtype have) {
  ccn__op_dtypes want = (ccn__op_dtypes)ccn__op_table[q->op].dtypes;
  bool indices = q->op == CCN__OP_TAKE || q->op == CCN__OP_SCATTER_ADD || want == CCN__DT_INT;
  if (have == CCN__BOOL && !indices && want != CCN__DT_FLOAT)
    return "booleans take `and`, `or`, `not`, `any`, `all`; to count them cast first: i32(x)";
  if (want == CCN__DT_BOOL) return "compare first, as in `x != 0`";
  return indices ? "cast it to an integer first: i64(x)" : NULL;
}

static const char *cure(ccn__lower *l, const ccn__infer_in *q, const ccn__type_error *e, words w) {
  ccn__arena *a = l->arena;
  switch (e->code) {
  case 101: return ccn__arena_printf(a, "cast one of them, as in `f32(%s)`", w.x[0] == '`' ? "x" : "...");
  case 104: return dtype_cure(q, (ccn__dtype)q->in[e->x >= 0 ? e->x : 0]->dtype);
  case 206:
    return q->op == CCN__OP_ENTER ? "`allreduce` an owed value, or `allgather` a sliced one, before the block"
                                  : NULL;
  case 103: return "cast first, as in `f32(x) / 2`, or use `//`, which rounds down";
  case 203:
    return w.y ? "`allgather` the sliced value, or `reducescatter` the local one"
               : "only a replicated value can be sliced; `reducescatter` it instead";
  case 205:
    return ccn__arena_printf(a, "give each rank its part: `slice(%s, dim: ...)`, or declare it sliced",
                             w.x[0] == '`' ? "w" : "x");
  case 207:
    return "`allgather` it first, or slice it with a `unit:` that is a multiple of the new inner extent";
  case 210: return "pay it first with `allreduce`, or take each rank's bare piece with `local(x)`";
  case 212: return "it is the same on every rank already: use it as it is";
  case 305:
    if (e->y >= 0 || !e->text) return NULL;
    return ccn__arena_printf(a, "its dims are %s; reshape, transpose and x[0] change the number of dims",
                             ccn__op_table[q->op].sig);
  case 222: return "`allreduce` a local or owed value, `allgather` a sliced one, before it is stored";
  default: return NULL; /* the code's own hint */
  }
}

static const char *label(uint16_t code) {
  switch (code) {
  case 101: return "two dtypes";
  case 103: return "whole numbers";
  case 104: return "not for this dtype";
  case 201: return "cut in different dims or units";
  case 202: return "cut along a broadcast dim";
  case 203: return "local with sliced";
  case 204: return "along the cut";
  case 205: return "whole where it must be cut";
  case 206: return "not at the same coordinate";
  case 210: return "a reduction is still owed";
  case 220: return "another dtype";
  case 221: return "another shape";
  case 222: return "another placement";
  case 305: return "these shapes do not meet";
  default: return "here";
  }
}

void ccn__report_type_error(ccn__lower *l, const ccn__infer_in *q, const ccn__id *in,
                            const ccn__type_error *e, ccn__span span) {
  words w = {.op = pretty(q->op), .why = e->text, .axis = e->axis >= 0 ? l->g->mesh.name[e->axis] : ""};
  bool has_x = e->x >= 0 && (uint32_t)e->x < q->nin, has_y = e->y >= 0 && (uint32_t)e->y < q->nin;
  if (has_x) w.x = ccn__node_text(l, in[e->x]), w.xtype = ccn__type_text(l->g, q->in[e->x]);
  if (has_y) w.y = ccn__node_text(l, in[e->y]), w.ytype = ccn__type_text(l->g, q->in[e->y]);
  if (!w.x) w.x = "it";
  if (e->code == 101 || e->code == 104 || e->code == 103) {
    if (has_x) w.xtype = ccn__dtype_name((ccn__dtype)q->in[e->x]->dtype);
    if (has_y) w.ytype = ccn__dtype_name((ccn__dtype)q->in[e->y]->dtype);
  }
  ccn__diag *d =
    ccn__lower_error(l, e->code, span, e->text ? e->text : label(e->code), "%s", message(l, e, q, w));
  const char *hint = cure(l, q, e, w);
  if (hint) ccn__hint(l->ds, d, "%s", hint);
  int axis = e->code >= 200 && e->code < 300 && e->code != 220 && e->code != 221 ? e->axis : -1;
  if (has_x) ccn__note_origin(l, d, in[e->x], axis);
  if (has_y && in[e->y] != in[has_x ? e->x : e->y]) ccn__note_origin(l, d, in[e->y], axis);
  else if (has_y && !has_x) ccn__note_origin(l, d, in[e->y], axis);
}

/* op_call.c: ops at script level: each call is a program of one op, made, run and forgotten.
 * SPDX-License-Identifier: Apache-2.0 */
#include "call.h"

typedef struct op_args {
  ccn__name name; /* NULL: an operator or an index */
  ccn__oper op;
  const ccn__arg *args;
  uint32_t nargs;
  const ccn__index_item *items;
  uint32_t nitems;
  ccn__span call;
  ccn__val result;
} op_args;

/* The graph's parameters, each once, in order of appearance. */
typedef struct leaves {
  ccn__lower *l;
  ccn__arena *arena;
  CCN__VEC(ccn__val) val;
  CCN__VEC(ccn__span) span;
} leaves;

static bool name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* What the script calls it, if it is a name of its own; messages speak of it. */
static ccn__name param_name(const leaves *s, ccn__span span) {
  ccn__graph *g = s->l->g;
  const ccn__diags *ds = s->l->ds;
  const char *text = span.source && span.source < ds->nsources ? ds->sources[span.source]->text : "";
  uint32_t n = *text ? span.end - span.start : 0;
  bool name = n > 0 && !(text[span.start] >= '0' && text[span.start] <= '9');
  for (uint32_t i = 0; i < n && name; i++) name = name_char(text[span.start + i]);
  ccn__name own = name ? ccn__intern(g->names, text + span.start, n) : NULL;
  for (uint32_t i = 0; i < g->params.n && own; i++)
    if (g->nodes.at[g->params.at[i].node].name == own) own = NULL;
  return own ? own : ccn__internz(g->names, ccn__arena_printf(s->arena, "x%u", g->params.n));
}

static ccn__bv tensor_param(leaves *s, ccn__val x, ccn__span span) {
  ccn__lower *l = s->l;
  const ccn__tensor *t = x.tensor;
  for (uint32_t i = 0; i < s->val.n; i++)
    if (s->val.at[i].tensor == t) return ccn__bv_node(l->g->params.at[i].node, span);
  ccn__type type = {
    .dtype = t->dtype, .rank = t->rank, .naxes = (uint8_t)l->g->mesh.naxes, .bundle = t->bundle};
  for (uint32_t d = 0; d < t->rank; d++) type.dim[d] = ccn__dim_const(s->arena, t->dim[d]);
  if (t->bundle) {
    type.bundle_id = l->g->nbundles++;
    uint32_t total = ccn__graph_symbol(l->g, NULL, CCN__SYM_TOTAL, type.bundle_id, span);
    uint32_t count = ccn__graph_symbol(l->g, NULL, CCN__SYM_COUNT, type.bundle_id, span);
    type.dim[0] = ccn__dim_symbol(s->arena, t->bundle == CCN__BUNDLE_TENSORS ? total : count);
  }
  for (uint32_t a = 0; a < t->naxes; a++) {
    const ccn__cplace *p = &t->place[a];
    type.place[a] =
      (ccn__place){.kind = p->kind,
                   .op = p->op,
                   .dim = p->dim,
                   .coord = p->coord,
                   .unit = p->kind == CCN__SLICED && p->unit > 1 ? ccn__dim_const(s->arena, p->unit) : NULL};
  }
  ccn__attr number = {.key = CCN__A_NUMBER, .i = l->g->params.n};
  ccn__id id = ccn__graph_add(l->g, CCN__OP_PARAM, NULL, 0, &type, (ccn__attrs){&number, 1}, span, 0);
  l->g->nodes.at[id].name = param_name(s, span);
  *CCN__PUSH(s->arena, &l->g->params) = (ccn__param){.node = id, .update = CCN__NO_ID};
  *CCN__PUSH(s->arena, &s->val) = x;
  *CCN__PUSH(s->arena, &s->span) = span;
  return ccn__bv_node(id, span);
}

static ccn__bv value(leaves *s, ccn__val x, ccn__span span) {
  if (x.kind == CCN__V_TENSOR) return tensor_param(s, x, span);
  if (x.kind == CCN__V_LIST || x.kind == CCN__V_TUPLE) {
    ccn__bv r = {.kind = x.kind == CCN__V_LIST ? CCN__B_LIST : CCN__B_TUPLE, .span = span};
    r.list.n = x.list->n;
    r.list.at = CCN__NEWN(s->arena, ccn__bv, r.list.n + 1);
    for (uint32_t i = 0; i < r.list.n; i++) r.list.at[i] = value(s, x.list->at[i], span);
    return r;
  }
  if (x.kind == CCN__V_TYPE) return (ccn__bv){.kind = CCN__B_TYPE, .span = span, .typeval = x.type};
  return ccn__from_val(s->l, x, span);
}

/* Seeds, fill values, probabilities: a replicated scalar is its number. */
static ccn__val plain(const op_args *o, uint32_t i) {
  ccn__val v = o->args[i].value, number;
  ccn__op op;
  bool maker = ccn__op_find(o->name, &op) &&
               (ccn__op_table[op].kind == CCN__KIND_MAKER || ccn__op_table[op].kind == CCN__KIND_RANDOM);
  return maker && i > 0 && v.kind == CCN__V_TENSOR && ccn__tensor_number(v.tensor, &number) ? number : v;
}

/* Scalars of the script keep their f64 value; beside tensors they are literals. */
static ccn__bv apply(ccn__lower *l, leaves *s, op_args *o) {
  if (o->items) {
    ccn__bv x = value(s, o->args[0].value, o->args[0].span);
    ccn__index_arg *items = CCN__NEWN(s->arena, ccn__index_arg, o->nitems + 1);
    for (uint32_t i = 0; i < o->nitems; i++) {
      const ccn__index_item *it = &o->items[i];
      items[i] = (ccn__index_arg){.range = it->is_range, .span = it->span};
      if (it->has_start || !it->is_range) items[i].start = ccn__dim_const(s->arena, it->start);
      if (it->has_end) items[i].end = ccn__dim_const(s->arena, it->end);
    }
    return ccn__build_index(l, x, items, o->nitems, o->call);
  }
  if (!o->name) {
    ccn__bv x = value(s, o->args[0].value, o->args[0].span), y = {.kind = CCN__B_NONE};
    if (o->nargs > 1) y = value(s, o->args[1].value, o->args[1].span);
    return ccn__build_operator(l, o->op, x, y, o->call);
  }
  ccn__dtype t;
  if (ccn__dtype_find(o->name, &t)) { /* a cast */
    ccn__bv x = o->nargs ? value(s, o->args[0].value, o->args[0].span) : CCN__B_FAIL;
    return ccn__build_cast(l, t, x, o->call);
  }
  ccn__opd *args = CCN__NEWN(s->arena, ccn__opd, o->nargs + 1);
  for (uint32_t i = 0; i < o->nargs; i++)
    args[i] = (ccn__opd){.name = o->args[i].name,
                         .nspan = o->args[i].nspan,
                         .span = o->args[i].span,
                         .value = value(s, plain(o, i), o->args[i].span)};
  return ccn__build_op(l, o->name, args, o->nargs, o->call);
}

static ccn__val number_of(const ccn__lit *lit) {
  ccn__number n;
  if (ccn__lit_eval(lit, NULL, &n)) return CCN__NONE_VAL;
  if (lit->kind == CCN__LIT_BOOL) return (ccn__val){.kind = CCN__V_BOOL, .b = n.i != 0};
  return n.is_float ? (ccn__val){.kind = CCN__V_FLOAT, .f = n.f} : (ccn__val){.kind = CCN__V_INT, .i = n.i};
}

static void op_body(ccn__rt *rt, ccn__arena *arena, void *user) {
  op_args *o = user;
  ccn__lower l;
  const char *label = o->name ? o->name : o->items ? "[]" : ccn__oper_text(o->op);
  ccn__graph *g = ccn__graph_new(arena, rt->names, label, &rt->mesh);
  ccn__inline frame = {.prefix = "", .naxes = rt->mesh.naxes};
  leaves s = {.l = &l, .arena = arena};
  uint32_t errors = rt->diags->errors;
  for (uint32_t a = 0; a < rt->mesh.naxes; a++)
    frame.axis_name[a] = rt->mesh.name[a], frame.axis[a] = (uint8_t)a;
  ccn__lower_init(&l, rt, g, false);
  l.script = true;
  l.frame = &frame;
  ccn__bv r = apply(&l, &s, o);
  if (r.kind == CCN__B_LIT && errors == rt->diags->errors) {
    o->result = number_of(r.lit);
    return;
  }
  if (r.kind != CCN__B_ERROR) ccn__lower_finish(&l, r, o->call);
  if (errors != rt->diags->errors) ccn__rt_raise(rt, rt->diags->last);
  ccn__invoke v = {.rt = rt, .arena = arena, .name = label, .g = g, .call = o->call, .nactual = s.val.n};
  v.actual = CCN__NEWN(arena, ccn__actual, s.val.n + 1);
  for (uint32_t i = 0; i < s.val.n; i++) {
    ccn__invoke_actual(&v, i, s.val.at[i], s.span.at[i], NULL);
    v.actual[i].name = "x";
  }
  ccn__invoke_bind(&v);
  ccn__invoke_run(&v);
  o->result = v.result;
}

static bool only_in_programs(ccn__op op) {
  return ccn__op_table[op].kind == CCN__KIND_COLLECTIVE || op == CCN__OP_UPDATE || op == CCN__OP_RANK;
}

ccn__val ccn__op_call(ccn__rt *rt, ccn__name name, const ccn__arg *args, uint32_t nargs, ccn__span call) {
  ccn__op op;
  op_args o = {.name = name, .args = args, .nargs = nargs, .call = call};
  if (ccn__op_find(name, &op) && only_in_programs(op)) {
    ccn__diag *d =
      ccn__error(rt->diags, 804, call, "not in the script", "`%s` stands in programs only", name);
    ccn__hint(rt->diags, d,
              "write a program that does it, and call that: `program f(x: f32[N] local) { ... }`");
    ccn__rt_raise(rt, d);
  }
  ccn__with_arena(rt, op_body, &o);
  return o.result;
}

ccn__val ccn__operator_call(ccn__rt *rt, ccn__oper op, ccn__arg x, ccn__arg y, ccn__span span) {
  ccn__arg args[2] = {x, y};
  op_args o = {.op = op, .args = args, .nargs = y.value.kind == CCN__V_NONE ? 1 : 2, .call = span};
  ccn__with_arena(rt, op_body, &o);
  return o.result;
}

ccn__val ccn__index_call(ccn__rt *rt, ccn__arg x, const ccn__index_item *items, uint32_t n, ccn__span span) {
  static const ccn__index_item none;
  op_args o = {.args = &x, .nargs = 1, .items = items ? items : &none, .nitems = n, .call = span};
  ccn__with_arena(rt, op_body, &o);
  return o.result;
}

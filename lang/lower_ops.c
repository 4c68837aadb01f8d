/* lower_ops.c: calls of ops → nodes: inference, elementwise ops, reductions, update; the table of builders.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lower_build.h"
#include "math.h"

/* ---- nodes ---- */

static ccn__name auto_name(ccn__lower *l, ccn__op op) {
  if (!l->frame || !l->frame->auto_count || ccn__op_table[op].kind == CCN__KIND_STRUCT) return NULL;
  uint32_t n = ++l->frame->auto_count[op];
  const char *name = ccn__op_table[op].name;
  return ccn__internz(l->g->names, n > 1 ? ccn__arena_printf(l->arena, "%s%s%u", l->frame->prefix, name, n)
                                         : ccn__arena_printf(l->arena, "%s%s", l->frame->prefix, name));
}

/* Bundles of different parameters meet: that they have equal tensors is checked at the call. */
static void bundles_meet(ccn__lower *l, const ccn__type *const *in, uint32_t nin, ccn__span span) {
  for (uint32_t i = 0; i < nin; i++)
    for (uint32_t j = i + 1; j < nin; j++)
      if (in[i]->bundle && in[j]->bundle && in[i]->bundle_id != in[j]->bundle_id)
        ccn__need(l, (ccn__constraint){.kind = CCN__NEED_BUNDLES,
                                       .code = 304,
                                       .bx = in[i]->bundle_id,
                                       .by = in[j]->bundle_id,
                                       .span = span});
}

ccn__id ccn__emit(ccn__lower *l, ccn__op op, const ccn__id *in, uint32_t nin, ccn__attrs attrs,
                  const ccn__type *want, ccn__span span) {
  const ccn__type **types = CCN__NEWN(l->arena, const ccn__type *, nin + 1);
  for (uint32_t i = 0; i < nin; i++) {
    if (in[i] == CCN__NO_ID) return CCN__NO_ID;
    types[i] = ccn__ntype(l, in[i]);
  }
  ccn__type *t = CCN__NEW(l->arena, ccn__type);
  ccn__type_error err;
  ccn__infer_in q = {.g = l->g, .op = op, .in = types, .nin = nin, .attrs = attrs, .want = want};
  if (!ccn__infer(&q, t, &err)) {
    ccn__report_type_error(l, &q, in, &err, span);
    return CCN__NO_ID;
  }
  bundles_meet(l, types, nin, span);
  ccn__id id = ccn__graph_add(l->g, op, in, nin, t, attrs, span, l->region);
  ccn__node *n = &l->g->nodes.at[id];
  n->autoname = auto_name(l, op);
  if (l->frame && l->frame->outer) n->call = l->frame->call;
  return id;
}

ccn__id ccn__step1(ccn__build *b, ccn__op op, ccn__id x) {
  return ccn__emit(b->l, op, &x, 1, (ccn__attrs){0}, NULL, b->span);
}

ccn__id ccn__step2(ccn__build *b, ccn__op op, ccn__id x, ccn__id y) {
  return ccn__emit(b->l, op, (ccn__id[]){x, y}, 2, (ccn__attrs){0}, NULL, b->span);
}

ccn__id ccn__step_lit(ccn__build *b, const ccn__lit *lit, ccn__dtype t) {
  return ccn__as_node(b->l, (ccn__bv){.kind = CCN__B_LIT, .span = b->span, .lit = lit}, t);
}

ccn__id ccn__step_cast(ccn__build *b, ccn__dtype t, ccn__id x) {
  if (x == CCN__NO_ID || ccn__ntype(b->l, x)->dtype == t) return x;
  ccn__type want = {.dtype = (uint8_t)t};
  return ccn__emit(b->l, CCN__OP_CAST, &x, 1, (ccn__attrs){0}, &want, b->span);
}

/* ---- elementwise ---- */

/* The dtype that literals among the values take: the first tensor's. -1 if there is none. */
int ccn__build_common_dtype(ccn__lower *l, const ccn__bv *v, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    if (v[i].kind == CCN__B_NODE) return ccn__type_of(l, v[i])->dtype;
  return -1;
}

/* sqrt(2.0), maximum(1, N) of literals fold in f64, by the same definitions as on tensors. */
static bool fold(ccn__build *b, const ccn__bv *v, uint32_t n, ccn__bv *out) {
  const ccn__op_info *op = &ccn__op_table[b->op];
  ccn__kernel_id k = (ccn__kernel_id)op->kernel;
  const char *why;
  if (op->result != CCN__RES_SAME || ccn__lit_arity(k) != n) return false;
  for (uint32_t i = 0; i < n; i++)
    if (v[i].kind != CCN__B_LIT) return false;
  const ccn__lit *r = ccn__lit_call(b->l->arena, k, v[0].lit, n > 1 ? v[1].lit : NULL, &why);
  *out = (ccn__bv){.kind = CCN__B_LIT, .span = b->span, .lit = r};
  if (!r) *out = ccn__build_fail(b, 810, b->span, why, ccn__arena_printf(b->l->arena, "the result %s", why));
  return true;
}

static ccn__bv elementwise(ccn__build *b, ccn__bv *v, uint32_t n) {
  ccn__id in[3];
  ccn__bv folded;
  for (uint32_t i = 0; i < n; i++)
    if (v[i].kind == CCN__B_ERROR) return CCN__B_FAIL;
  int t = ccn__build_common_dtype(b->l, v, n);
  if (t < 0 && fold(b, v, n, &folded)) return folded;
  for (uint32_t i = 0; i < n; i++) {
    in[i] = ccn__as_node(b->l, v[i], t);
    if (in[i] == CCN__NO_ID) return CCN__B_FAIL;
  }
  return ccn__built(b, ccn__emit(b->l, b->op, in, n, (ccn__attrs){0}, NULL, b->span));
}

ccn__bv ccn__build_elem_op(ccn__build *b) {
  ccn__bv v[3];
  uint32_t n = (uint32_t)ccn__op_table[b->op].nin;
  for (uint32_t i = 0; i < n; i++) v[i] = ccn__slot_value(b, b->slot_name[i]);
  return elementwise(b, v, n);
}

ccn__bv ccn__build_where_op(ccn__build *b) {
  ccn__bv v[2] = {ccn__slot_value(b, "x"), ccn__slot_value(b, "y")};
  ccn__id in[3] = {ccn__slot_node(b, "cond", CCN__BOOL)};
  if (in[0] == CCN__NO_ID) return CCN__B_FAIL;
  for (uint32_t i = 0; i < 2; i++) {
    in[1 + i] = ccn__as_node(b->l, v[i], ccn__build_common_dtype(b->l, v, 2));
    if (in[1 + i] == CCN__NO_ID) return CCN__B_FAIL;
  }
  return ccn__built(b, ccn__emit(b->l, CCN__OP_WHERE, in, 3, (ccn__attrs){0}, NULL, b->span));
}

ccn__bv ccn__build_cast(ccn__lower *l, ccn__dtype t, ccn__bv x, ccn__span span) {
  ccn__build b = {.l = l, .op = CCN__OP_CAST, .name = ccn__dtype_name(t), .span = span};
  if (x.kind == CCN__B_ERROR) return x;
  if (!ccn__dtype_size(t))
    return ccn__build_fail(&b, 100, span, "not there yet", "this dtype is reserved for later");
  if (x.kind == CCN__B_LIT) { /* f32(3) gives the literal its dtype; f32(2.5e0), i32(2.0) likewise if exact */
    ccn__number n;
    const char *why = ccn__lit_eval(x.lit, NULL, &n);
    if (!why) why = ccn__number_fits(n, t);
    if (why) {
      ccn__lower_error(l, 102, x.span, "does not fit", "this literal %s in %s", why, ccn__dtype_name(t));
      return CCN__B_FAIL;
    }
    ccn__type type = {.dtype = (uint8_t)t, .naxes = (uint8_t)l->g->mesh.naxes};
    ccn__attr a = {.key = CCN__A_VALUE, .lit = x.lit};
    return ccn__built(&b, ccn__emit(l, CCN__OP_CONST, NULL, 0, (ccn__attrs){&a, 1}, &type, span));
  }
  ccn__id id = ccn__as_node(l, x, -1);
  return ccn__built(&b, ccn__step_cast(&b, t, id));
}

ccn__bv ccn__build_cast_op(ccn__build *b) {
  return ccn__build_fail(b, 800, b->span, "here", "a cast is written with the dtype, as in `f32(x)`");
}

static ccn__op operator_op(ccn__oper op, bool unary) {
  static const ccn__op of[CCN__T_OPER_COUNT] = {
    [CCN__T_PLUS] = CCN__OP_ADD,  [CCN__T_MINUS] = CCN__OP_SUB,       [CCN__T_STAR] = CCN__OP_MUL,
    [CCN__T_SLASH] = CCN__OP_DIV, [CCN__T_SLASH2] = CCN__OP_FLOORDIV, [CCN__T_PERCENT] = CCN__OP_MOD,
    [CCN__T_POW] = CCN__OP_POW,   [CCN__T_LT] = CCN__OP_LT,           [CCN__T_LE] = CCN__OP_LE,
    [CCN__T_GT] = CCN__OP_GT,     [CCN__T_GE] = CCN__OP_GE,           [CCN__T_EQ] = CCN__OP_EQ,
    [CCN__T_NE] = CCN__OP_NE,     [CCN__T_AND] = CCN__OP_AND,         [CCN__T_OR] = CCN__OP_OR,
    [CCN__T_NOT] = CCN__OP_NOT};
  return unary && op == CCN__T_MINUS ? CCN__OP_NEG : of[op];
}

ccn__bv ccn__build_operator(ccn__lower *l, ccn__oper op, ccn__bv x, ccn__bv y, ccn__span span) {
  bool unary = y.kind == CCN__B_NONE;
  ccn__build b = {.l = l, .op = operator_op(op, unary), .name = ccn__oper_text(op), .span = span};
  ccn__bv v[2] = {x, y};
  return elementwise(&b, v, unary ? 1 : 2);
}

/* ---- reductions ---- */

ccn__bv ccn__build_reduce_op(ccn__build *b) {
  ccn__id x = ccn__slot_node(b, "x", -1);
  if (x == CCN__NO_ID) return CCN__B_FAIL;
  const ccn__type *t = ccn__ntype(b->l, x);
  int64_t *dims = CCN__NEWN(b->l->arena, int64_t, CCN__MAX_RANK);
  ccn__attr at[3];
  uint32_t n = 0;
  uint8_t nd;
  bool keep;
  if (!ccn__slot_dims(b, "dims", t->rank, dims, &nd) || !ccn__slot_bool(b, "keep", &keep)) return CCN__B_FAIL;
  at[n++] = (ccn__attr){.key = CCN__A_DIMS, .n = nd, .ints = dims};
  if (keep) at[n++] = (ccn__attr){.key = CCN__A_KEEP, .i = 1};
  if (ccn__slot(b, "per")) {
    ccn__name word = ccn__slot_word(b, "per");
    if (!word || strcmp(word, "tensor") != 0)
      return ccn__build_fail(b, 800, ccn__slot(b, "per")->span, "here", "the only `per:` is `per: tensor`");
    if (t->bundle != CCN__BUNDLE_TENSORS)
      return ccn__build_fail(b, 305, b->span, "not a bundle", "`per: tensor` is for bundles");
    at[n++] = (ccn__attr){.key = CCN__A_PER, .i = 1};
  }
  return ccn__built(b, ccn__emit(b->l, b->op, &x, 1, (ccn__attrs){at, n}, NULL, b->span));
}

/* ---- update ---- */

ccn__bv ccn__build_update_op(ccn__build *b) {
  ccn__lower *l = b->l;
  ccn__bv t = ccn__slot_value(b, "t"), e = ccn__slot_value(b, "e");
  if (t.kind == CCN__B_ERROR || e.kind == CCN__B_ERROR) return CCN__B_FAIL;
  if (t.kind != CCN__B_NODE || l->g->nodes.at[t.node].op != CCN__OP_PARAM) {
    ccn__diag *d =
      ccn__lower_error(l, 805, t.span, "not a parameter", "`update` stores in a parameter of the program");
    if (t.kind == CCN__B_NODE)
      ccn__note(l->ds, d, l->g->nodes.at[t.node].span, "this value was computed here");
    ccn__hint(l->ds, d, "a name that was bound again no longer means the parameter");
    return CCN__B_FAIL;
  }
  if (l->repeats)
    return ccn__build_fail(b, 10, b->span, "here",
                           "it cannot stand inside `repeat`; carry the value and update behind the block");
  int64_t number = ccn__attr_int(l->g->nodes.at[t.node].attrs, CCN__A_NUMBER, 0);
  ccn__param *p = &l->g->params.at[number];
  if (p->update != CCN__NO_ID) {
    ccn__diag *d = ccn__lower_error(l, 223, b->span, "the second", "parameter `%s` is updated twice",
                                    l->g->nodes.at[t.node].name);
    ccn__note(l->ds, d, l->g->nodes.at[p->update].span, "the first update");
    ccn__hint(l->ds, d, "combine both into one expression");
    return CCN__B_FAIL;
  }
  for (ccn__on_block *on = l->on; on; on = on->outer) {
    const ccn__place *place = &ccn__ntype(l, t.node)->place[on->axis];
    if (place->kind == CCN__AT && place->coord == on->coord) continue;
    ccn__diag *d = ccn__lower_error(l, 222, b->span, "only one coordinate stores",
                                    "parameter `%s` does not live at coordinate %d of `%s` alone",
                                    l->g->nodes.at[t.node].name, on->coord, l->g->mesh.name[on->axis]);
    ccn__note(l->ds, d, l->g->nodes.at[t.node].span, "declared here");
    ccn__hint(l->ds, d, "declare it `at(%d) over %s`, or update it behind the block", on->coord,
              l->g->mesh.name[on->axis]);
    return CCN__B_FAIL;
  }
  ccn__id in[2] = {t.node, ccn__as_node(l, e, ccn__ntype(l, t.node)->dtype)};
  ccn__id id = ccn__emit(l, CCN__OP_UPDATE, in, 2, (ccn__attrs){0}, NULL, b->span);
  if (id != CCN__NO_ID) p->update = id;
  return ccn__built(b, id);
}

ccn__bv ccn__build_none_op(ccn__build *b) {
  return ccn__build_fail(b, 800, b->span, "here", "it cannot be called");
}

/* ---- calls ---- */

bool ccn__op_callable(const char *name) {
  ccn__op op;
  return ccn__op_find(name, &op) || strcmp(name, "zeros") == 0 || strcmp(name, "ones") == 0 ||
         strcmp(name, "size") == 0;
}

ccn__bv ccn__build_op(ccn__lower *l, const char *name, const ccn__opd *args, uint32_t nargs, ccn__span span) {
  static ccn__bv (*const builders[CCN__OP_COUNT])(ccn__build *) = {
#define OP(id, opname, kind, nin, sig, prule, dtypes, result, build, eval, kernel, params, doc) \
  [CCN__OP_##id] = ccn__build_##build##_op,
#include "ops.def"
#undef OP
  };
  const struct ccn__host_op *host = ccn__host_op_find(l->rt, name);
  if (host) return ccn__build_host(l, host, args, nargs, span);
  ccn__build b = {.l = l, .name = name, .span = span, .op = CCN__OP_FULL};
  bool filled = strcmp(name, "zeros") == 0 || strcmp(name, "ones") == 0;
  if (!filled && !ccn__op_find(name, &b.op)) {
    ccn__lower_error(l, 801, span, "not an op", "`%s` is not an op", name);
    return CCN__B_FAIL;
  }
  ccn__build_read_slots(&b);
  if (filled) b.nslots = 1; /* the value is in the name */
  return ccn__build_fill_slots(&b, args, nargs) ? builders[b.op](&b) : CCN__B_FAIL;
}

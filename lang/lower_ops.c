/* lower_ops.c: calls of ops → nodes: slots of the parameter list, inference, and the ops that are one node each.
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

/* ---- slots ---- */

static void read_slots(ccn__build *b) {
  const char *p = ccn__op_table[b->op].params;
  while (*p && b->nslots < CCN__MAX_SLOTS) {
    size_t n = strcspn(p, ",?"), room = sizeof b->slot_name[0] - 1;
    memcpy(b->slot_name[b->nslots], p, n < room ? n : room);
    b->slot_optional[b->nslots++] = p[n] == '?';
    p += strcspn(p, ",");
    while (*p == ',' || *p == ' ') p++;
  }
}

ccn__bv ccn__build_fail(ccn__build *b, uint16_t code, ccn__span span, const char *label, const char *text) {
  ccn__lower_error(b->l, code, span, label, "`%s`: %s", b->name, text);
  return CCN__B_FAIL;
}

static bool fill_slots(ccn__build *b, const ccn__opd *args, uint32_t nargs) {
  uint32_t next = 0;
  for (uint32_t i = 0; i < nargs; i++) {
    uint32_t k = next;
    if (args[i].name)
      for (k = 0; k < b->nslots && strcmp(b->slot_name[k], args[i].name) != 0; k++) {}
    else next++;
    if (k >= b->nslots) {
      ccn__diag *d = ccn__lower_error(
        b->l, args[i].name ? 806 : 800, args[i].name ? args[i].nspan : args[i].span, "not expected",
        args[i].name ? "`%s` has no parameter `%s`" : "too many arguments for `%s`", b->name, args[i].name);
      ccn__hint(b->l->ds, d, "its parameters are: %s", ccn__op_table[b->op].params);
      return false;
    }
    if (b->slot[k]) {
      ccn__lower_error(b->l, 806, args[i].span, "given twice", "parameter `%s` of `%s` is given twice",
                       b->slot_name[k], b->name);
      return false;
    }
    b->slot[k] = &args[i];
  }
  for (uint32_t k = 0; k < b->nslots; k++) {
    if (b->slot[k] || b->slot_optional[k]) continue;
    bool step = strcmp(b->slot_name[k], "step") == 0;
    ccn__diag *d = ccn__lower_error(b->l, step ? 120 : 800, b->span, "one is missing",
                                    "`%s` needs its parameter `%s`", b->name, b->slot_name[k]);
    ccn__hint(
      b->l->ds, d,
      step ? "give the training step, as in `step: step`: without it every step would drop the same elements"
           : "its parameters are: %s",
      ccn__op_table[b->op].params);
    return false;
  }
  return true;
}

const ccn__opd *ccn__slot(ccn__build *b, const char *name) {
  for (uint32_t k = 0; k < b->nslots; k++)
    if (strcmp(b->slot_name[k], name) == 0) return b->slot[k];
  return NULL;
}

ccn__bv ccn__slot_value(ccn__build *b, const char *name) {
  const ccn__opd *a = ccn__slot(b, name);
  if (!a) return (ccn__bv){.kind = CCN__B_NONE};
  ccn__bv v = a->ast ? ccn__lower_expr(b->l, a->ast) : a->value;
  v.span = a->span;
  return v;
}

ccn__id ccn__slot_node(ccn__build *b, const char *name, int t) {
  return ccn__as_node(b->l, ccn__slot_value(b, name), t);
}

bool ccn__slot_i64(ccn__build *b, const char *name, int64_t otherwise, int64_t *out) {
  *out = otherwise;
  if (!ccn__slot(b, name)) return true;
  return ccn__lit_i64(b->l, ccn__slot_value(b, name), ccn__arena_printf(b->l->arena, "`%s`", name), out);
}

bool ccn__slot_bool(ccn__build *b, const char *name, bool *out) {
  int64_t v;
  *out = false;
  if (!ccn__slot_i64(b, name, 0, &v)) return false;
  *out = v != 0;
  return true;
}

static ccn__name word_of(const ccn__opd *a) {
  if (a->ast) return a->ast->kind == CCN__AST_NAME ? a->ast->name : NULL;
  return a->value.kind == CCN__B_OP ? a->value.name : NULL;
}

ccn__name ccn__slot_word(ccn__build *b, const char *name) {
  const ccn__opd *a = ccn__slot(b, name);
  return a ? word_of(a) : NULL;
}

static bool normal_dim(ccn__build *b, ccn__span span, uint32_t rank, int64_t *d) {
  int64_t given = *d;
  if (*d < 0) *d += rank;
  if (*d >= 0 && *d < rank) return true;
  ccn__lower_error(b->l, 309, span, "no such dim", "`%s`: a value of %u dims has no dim %lld", b->name, rank,
                   (long long)given);
  return false;
}

bool ccn__slot_dim(ccn__build *b, const char *name, uint32_t rank, int64_t otherwise, int64_t *out) {
  const ccn__opd *a = ccn__slot(b, name);
  return ccn__slot_i64(b, name, otherwise, out) && normal_dim(b, a ? a->span : b->span, rank, out);
}

bool ccn__slot_dims(ccn__build *b, const char *name, uint32_t rank, int64_t *out, uint8_t *out_n) {
  const ccn__opd *a = ccn__slot(b, name);
  *out_n = 0;
  if (!a) {
    for (uint32_t d = 0; d < rank; d++) out[(*out_n)++] = d;
    return true;
  }
  ccn__bv v = ccn__slot_value(b, name), one[1] = {v};
  if (v.kind == CCN__B_ERROR) return false;
  bool list = v.kind == CCN__B_LIST || v.kind == CCN__B_TUPLE;
  uint64_t seen = 0;
  for (uint32_t i = 0; i < (list ? v.list.n : 1); i++) {
    int64_t d;
    ccn__bv x = list ? v.list.at[i] : one[0];
    if (!ccn__lit_i64(b->l, x, "a dim", &d) || !normal_dim(b, x.span, rank, &d)) return false;
    if (seen >> d & 1) {
      ccn__lower_error(b->l, 309, x.span, "named twice", "`%s`: dim %lld is named twice", b->name,
                       (long long)d);
      return false;
    }
    seen |= UINT64_C(1) << d;
  }
  for (uint32_t d = 0; d < rank; d++)
    if (seen >> d & 1) out[(*out_n)++] = d;
  return true;
}

static const ccn__type *type_of_value(ccn__build *b, const ccn__typeval *v) {
  ccn__type *t = CCN__NEW(b->l->arena, ccn__type);
  t->dtype = v->dtype;
  t->rank = v->rank;
  t->naxes = (uint8_t)b->l->g->mesh.naxes;
  for (uint32_t d = 0; d < v->rank; d++) t->dim[d] = ccn__dim_const(b->l->arena, v->dim[d]);
  for (uint32_t a = 0; a < t->naxes && a < v->naxes; a++) {
    const ccn__cplace *p = &v->place[a];
    t->place[a] = (ccn__place){
      .kind = p->kind,
      .op = p->op,
      .dim = p->dim,
      .coord = p->coord,
      .unit = p->kind == CCN__SLICED && p->unit > 1 ? ccn__dim_const(b->l->arena, p->unit) : NULL};
  }
  return t;
}

const ccn__type *ccn__slot_type(ccn__build *b, const char *name) {
  const ccn__opd *a = ccn__slot(b, name);
  ccn__bv v = ccn__slot_value(b, name);
  if (v.kind == CCN__B_ERROR) return NULL;
  if (v.kind == CCN__B_TYPE && a->ast) return ccn__lower_type(b->l, v.type, false);
  if (v.kind == CCN__B_TYPE) return type_of_value(b, v.typeval);
  (void)ccn__build_fail(b, 800, a->span, "not a type", "a type is needed here, as in `f32[8]`");
  return NULL;
}

/* ---- elementwise ---- */

/* The dtype that literals among the values take: the first tensor's. -1 if there is none. */
static int common_dtype(ccn__lower *l, const ccn__bv *v, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    if (v[i].kind == CCN__B_NODE) return ccn__type_of(l, v[i])->dtype;
  return -1;
}

/* sqrt(2.0), maximum(1, 2) of literals fold in f64, by the same definitions as on tensors. */
static bool fold(ccn__build *b, const ccn__bv *v, uint32_t n, ccn__bv *out) {
  double x[3] = {0}, r = 0;
  int64_t i0 = 0, i1 = 0;
  ccn__kernel_id k = (ccn__kernel_id)ccn__op_table[b->op].kernel;
  if (k == CCN__K_COUNT || n > 2 || ccn__op_table[b->op].result != CCN__RES_SAME ||
      !ccn__kernel_exists(k, CCN__F64))
    return false;
  bool whole = true;
  for (uint32_t i = 0; i < n; i++) {
    ccn__number number;
    if (v[i].kind != CCN__B_LIT || ccn__lit_eval(v[i].lit, NULL, &number) || number.unknown) return false;
    x[i] = ccn__number_f64(number);
    whole &= !number.is_float;
    *(i ? &i1 : &i0) = number.i;
  }
  ccn__kernel(k, CCN__F64, &r, &x[0], n > 1 ? &x[1] : NULL, NULL, 1);
  bool keeps_whole = k == CCN__K_MAXIMUM || k == CCN__K_MINIMUM || k == CCN__K_ABS || k == CCN__K_SIGN;
  if (whole && keeps_whole) { /* exactly, which f64 cannot say of 64 bits */
    if (k == CCN__K_ABS && i0 == INT64_MIN) {
      *out =
        ccn__build_fail(b, 810, b->span, "is too large for 64 bits", "the result is too large for 64 bits");
      return true;
    }
    i0 = k == CCN__K_ABS                      ? (i0 < 0 ? -i0 : i0)
         : k == CCN__K_SIGN                   ? (i0 > 0) - (i0 < 0)
         : (i0 > i1) == (k == CCN__K_MAXIMUM) ? i0
                                              : i1;
  }
  *out =
    (ccn__bv){.kind = CCN__B_LIT,
              .span = b->span,
              .lit = whole && keeps_whole ? ccn__lit_int(b->l->arena, i0) : ccn__lit_float(b->l->arena, r)};
  return true;
}

static ccn__bv elementwise(ccn__build *b, ccn__bv *v, uint32_t n) {
  ccn__id in[3];
  ccn__bv folded;
  for (uint32_t i = 0; i < n; i++)
    if (v[i].kind == CCN__B_ERROR) return CCN__B_FAIL;
  int t = common_dtype(b->l, v, n);
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
    in[1 + i] = ccn__as_node(b->l, v[i], common_dtype(b->l, v, 2));
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

/* ---- linear algebra and shape ---- */

ccn__bv ccn__build_matmul_op(ccn__build *b) {
  ccn__id in[2] = {ccn__slot_node(b, "x", -1)};
  if (in[0] == CCN__NO_ID) return CCN__B_FAIL;
  in[1] = ccn__slot_node(b, b->op == CCN__OP_MATMUL ? "y" : "w", -1);
  return ccn__built(b, ccn__emit(b->l, b->op, in, 2, (ccn__attrs){0}, NULL, b->span));
}

ccn__bv ccn__build_conv2d_op(ccn__build *b) { return ccn__build_matmul_op(b); }

ccn__bv ccn__build_transpose_op(ccn__build *b) {
  ccn__id x = ccn__slot_node(b, "x", -1);
  if (x == CCN__NO_ID) return CCN__B_FAIL;
  const ccn__type *t = ccn__ntype(b->l, x);
  int64_t *perm = CCN__NEWN(b->l->arena, int64_t, CCN__MAX_RANK);
  uint32_t n = t->rank;
  for (uint32_t d = 0; d < n; d++) perm[d] = d;
  if (!ccn__slot(b, "order")) {
    if (n < 2) return ccn__build_fail(b, 305, b->span, "here", "it has fewer than two dims");
    perm[n - 1] = n - 2;
    perm[n - 2] = n - 1;
  } else {
    ccn__bv v = ccn__slot_value(b, "order");
    if (v.kind == CCN__B_ERROR) return v;
    if ((v.kind != CCN__B_LIST && v.kind != CCN__B_TUPLE) || v.list.n != n)
      return ccn__build_fail(b, 305, v.span, "here", "the order must name each dim once");
    for (uint32_t d = 0; d < n; d++)
      if (!ccn__lit_i64(b->l, v.list.at[d], "a dim", &perm[d]) ||
          !normal_dim(b, v.list.at[d].span, n, &perm[d]))
        return CCN__B_FAIL;
  }
  ccn__attr a = {.key = CCN__A_PERM, .n = (uint8_t)n, .ints = perm};
  return ccn__built(b, ccn__emit(b->l, CCN__OP_TRANSPOSE, &x, 1, (ccn__attrs){&a, 1}, NULL, b->span));
}

/* [B, S, H/64]: extents, as text or as values. */
static bool shape_arg(ccn__build *b, const char *slot, ccn__type *t) {
  const ccn__opd *a = ccn__slot(b, slot);
  bool text = a->ast && (a->ast->kind == CCN__AST_LIST || a->ast->kind == CCN__AST_TUPLE);
  ccn__bv v = {.kind = CCN__B_ERROR};
  if (!text) {
    v = ccn__slot_value(b, slot);
    if (v.kind == CCN__B_ERROR) return false;
    if (v.kind != CCN__B_LIST && v.kind != CCN__B_TUPLE) {
      (void)ccn__build_fail(b, 800, a->span, "not a shape", "a shape is a list of extents, as in `[4, N]`");
      return false;
    }
  }
  uint32_t n = text ? a->ast->list.n : v.list.n;
  if (n > CCN__MAX_RANK) {
    (void)ccn__build_fail(b, 208, a->span, "here", "a tensor has at most 8 dims");
    return false;
  }
  for (uint32_t d = 0; d < n; d++) {
    int64_t c;
    t->dim[d] = text ? ccn__lower_dim(b->l, a->ast->list.at[d]) : ccn__bv_dim(b->l, v.list.at[d]);
    if (!t->dim[d]) return false;
    if (ccn__dim_is_const(t->dim[d], &c) && c < 0) {
      (void)ccn__build_fail(b, 310, text ? a->ast->list.at[d]->span : a->span, "negative",
                            "an extent cannot be negative");
      return false;
    }
  }
  t->rank = (uint8_t)n;
  t->naxes = (uint8_t)b->l->g->mesh.naxes;
  return true;
}

ccn__bv ccn__build_reshape_op(ccn__build *b) {
  ccn__type want = {.rank = 0};
  ccn__id x = ccn__slot_node(b, "x", -1);
  if (x == CCN__NO_ID || !shape_arg(b, "shape", &want)) return CCN__B_FAIL;
  return ccn__built(b, ccn__emit(b->l, CCN__OP_RESHAPE, &x, 1, (ccn__attrs){0}, &want, b->span));
}

ccn__bv ccn__build_concat_op(ccn__build *b) {
  ccn__bv v = ccn__slot_value(b, "list");
  int64_t dim;
  if (v.kind == CCN__B_ERROR) return v;
  if ((v.kind != CCN__B_LIST && v.kind != CCN__B_TUPLE) || !v.list.n)
    return ccn__build_fail(b, 800, v.span, "here",
                           "it takes a list of at least one tensor, as in `concat([x, y], dim: 0)`");
  if (v.list.n > 100) return ccn__build_fail(b, 800, v.span, "here", "it takes at most 100 tensors");
  ccn__id *in = CCN__NEWN(b->l->arena, ccn__id, v.list.n);
  int t = common_dtype(b->l, v.list.at, v.list.n);
  for (uint32_t i = 0; i < v.list.n; i++)
    if ((in[i] = ccn__as_node(b->l, v.list.at[i], t)) == CCN__NO_ID) return CCN__B_FAIL;
  if (!ccn__slot_dim(b, "dim", ccn__ntype(b->l, in[0])->rank, 0, &dim)) return CCN__B_FAIL;
  ccn__attr a = {.key = CCN__A_DIM, .i = dim};
  return ccn__built(b, ccn__emit(b->l, CCN__OP_CONCAT, in, v.list.n, (ccn__attrs){&a, 1}, NULL, b->span));
}

ccn__bv ccn__build_index_op(ccn__build *b) {
  return ccn__build_fail(b, 800, b->span, "here",
                         "an element or a part is taken with brackets, as in `x[1:3]`");
}

/* -1 counts from the end. */
static const ccn__dim *from_end(ccn__lower *l, const ccn__dim *d, const ccn__dim *extent) {
  int64_t v;
  return ccn__dim_is_const(d, &v) && v < 0 ? ccn__dim_add(l->arena, extent, d) : d;
}

/* Certain now, an error now, or a constraint. */
static bool inside(ccn__build *b, const ccn__dim *x, const ccn__dim *limit, bool strict, ccn__span span) {
  int64_t v, n;
  const ccn__dim *room = ccn__dim_sub(b->l->arena, limit, x);
  bool low = ccn__dim_is_const(x, &v), high = room && ccn__dim_is_const(room, &n);
  if ((low && v < 0) || (high && n < (strict ? 1 : 0))) {
    ccn__lower_error(b->l, 309, span, "outside", "this index is outside the dim");
    return false;
  }
  if (low && high) return true;
  ccn__need(
    b->l,
    (ccn__constraint){
      .kind = strict ? CCN__NEED_LESS : CCN__NEED_LESS_EQ, .code = 309, .x = x, .y = limit, .span = span});
  return true;
}

ccn__bv ccn__build_index(ccn__lower *l, ccn__bv xv, const ccn__index_arg *items, uint32_t n, ccn__span span) {
  ccn__build b = {.l = l, .op = CCN__OP_INDEX, .name = "[]", .span = span};
  ccn__id x = ccn__as_node(l, xv, -1);
  if (x == CCN__NO_ID) return CCN__B_FAIL;
  const ccn__type *t = ccn__ntype(l, x);
  if (t->bundle)
    return ccn__build_fail(&b, 305, span, "a bundle", "a program works on all tensors of a bundle alike");
  if (n > t->rank) return ccn__build_fail(&b, 309, span, "too many", "more indices than dims");
  const ccn__dim **start = CCN__NEWN(l->arena, const ccn__dim *, CCN__MAX_RANK),
                 **count = CCN__NEWN(l->arena, const ccn__dim *, CCN__MAX_RANK);
  int64_t *drop = CCN__NEWN(l->arena, int64_t, CCN__MAX_RANK);
  const ccn__dim *zero = ccn__dim_const(l->arena, 0);
  for (uint32_t d = 0; d < t->rank; d++) {
    const ccn__dim *extent = t->dim[d];
    start[d] = zero;
    count[d] = extent;
    if (d >= n) continue;
    if (items[d].start) start[d] = from_end(l, items[d].start, extent);
    if (!items[d].range) {
      drop[d] = 1;
      count[d] = ccn__dim_const(l->arena, 1);
      if (!start[d] || !inside(&b, start[d], extent, true, items[d].span)) return CCN__B_FAIL;
      continue;
    }
    const ccn__dim *end = items[d].end ? from_end(l, items[d].end, extent) : extent;
    if (!start[d] || !end || !inside(&b, start[d], end, false, items[d].span) ||
        !inside(&b, end, extent, false, items[d].span))
      return CCN__B_FAIL;
    count[d] = ccn__dim_sub(l->arena, end, start[d]);
    if (!count[d]) return ccn__build_fail(&b, 310, span, "here", "this extent is too large");
  }
  ccn__attr at[3] = {{.key = CCN__A_START, .n = t->rank, .dims = start},
                     {.key = CCN__A_COUNT, .n = t->rank, .dims = count},
                     {.key = CCN__A_DROP, .n = t->rank, .ints = drop}};
  return ccn__built(&b, ccn__emit(l, CCN__OP_INDEX, &x, 1, (ccn__attrs){at, 3}, NULL, span));
}

ccn__bv ccn__build_take_op(ccn__build *b) {
  ccn__id in[2] = {ccn__slot_node(b, "x", -1)};
  int64_t dim;
  if (in[0] == CCN__NO_ID) return CCN__B_FAIL;
  in[1] = ccn__slot_node(b, "idx", CCN__I64);
  if (in[1] == CCN__NO_ID || !ccn__slot_dim(b, "dim", ccn__ntype(b->l, in[0])->rank, 0, &dim))
    return CCN__B_FAIL;
  ccn__attr a = {.key = CCN__A_DIM, .i = dim};
  return ccn__built(b, ccn__emit(b->l, CCN__OP_TAKE, in, 2, (ccn__attrs){&a, 1}, NULL, b->span));
}

ccn__bv ccn__build_scatter_add_op(ccn__build *b) {
  ccn__type want = {.rank = 0};
  if (!shape_arg(b, "shape", &want)) return CCN__B_FAIL;
  ccn__id in[2] = {ccn__slot_node(b, "idx", CCN__I64), CCN__NO_ID};
  if (in[0] != CCN__NO_ID) in[1] = ccn__slot_node(b, "v", -1);
  if (in[1] == CCN__NO_ID) return CCN__B_FAIL;
  const ccn__type *v = ccn__ntype(b->l, in[1]);
  bool fits = want.rank >= 1 && v->rank == want.rank;
  for (uint32_t d = 1; d < want.rank && fits; d++) fits = ccn__dim_equal(want.dim[d], v->dim[d]);
  if (!fits)
    return ccn__build_fail(b, 305, b->span, "here",
                           "the shape must be that of `v` with another first extent");
  return ccn__built(b, ccn__emit(b->l, CCN__OP_SCATTER_ADD, in, 2, (ccn__attrs){0}, &want, b->span));
}

ccn__bv ccn__build_one_hot_op(ccn__build *b) {
  ccn__id x = ccn__slot_node(b, "x", -1);
  if (x == CCN__NO_ID) return CCN__B_FAIL;
  const ccn__type *t = ccn__ntype(b->l, x), *as = NULL;
  const ccn__opd *n = ccn__slot(b, "n");
  const ccn__dim *extent = n->ast ? ccn__lower_dim(b->l, n->ast) : ccn__bv_dim(b->l, n->value);
  if (!extent || (ccn__slot(b, "as") && !(as = ccn__slot_type(b, "as")))) return CCN__B_FAIL;
  if (t->rank == CCN__MAX_RANK)
    return ccn__build_fail(b, 208, b->span, "here", "a tensor has at most 8 dims");
  ccn__type want = *t;
  want.dtype = as ? as->dtype : CCN__F32;
  want.dim[want.rank++] = extent;
  return ccn__built(b, ccn__emit(b->l, CCN__OP_ONE_HOT, &x, 1, (ccn__attrs){0}, &want, b->span));
}

/* ---- makers ---- */

ccn__bv ccn__build_full_op(ccn__build *b) {
  const ccn__type *t = ccn__slot_type(b, "type");
  if (!t) return CCN__B_FAIL;
  const ccn__lit *lit = ccn__lit_int(b->l->arena, strcmp(b->name, "ones") == 0);
  if (t->dtype == CCN__BOOL) lit = ccn__lit_bool(b->l->arena, strcmp(b->name, "ones") == 0);
  if (ccn__slot(b, "value")) {
    ccn__number n;
    ccn__bv v = ccn__slot_value(b, "value");
    if (!ccn__lit_number(b->l, v, "the value", &n)) return CCN__B_FAIL;
    const char *why = ccn__number_fits(n, (ccn__dtype)t->dtype);
    if (why) {
      ccn__lower_error(b->l, 102, v.span, "does not fit", "this literal %s in %s", why,
                       ccn__dtype_name((ccn__dtype)t->dtype));
      return CCN__B_FAIL;
    }
    lit = v.lit;
  }
  ccn__attr a = {.key = CCN__A_VALUE, .lit = lit};
  return ccn__built(b, ccn__emit(b->l, CCN__OP_FULL, NULL, 0, (ccn__attrs){&a, 1}, t, b->span));
}

ccn__bv ccn__build_iota_op(ccn__build *b) {
  const ccn__type *t = ccn__slot_type(b, "type");
  ccn__attr a = {.key = CCN__A_DIM};
  if (!t) return CCN__B_FAIL;
  if (t->dtype == CCN__BOOL) return ccn__build_fail(b, 104, b->span, "bool", "it is not defined for bool");
  bool dim = ccn__slot(b, "dim") != NULL;
  if (dim && !ccn__slot_dim(b, "dim", t->rank, 0, &a.i)) return CCN__B_FAIL;
  return ccn__built(b, ccn__emit(b->l, CCN__OP_IOTA, NULL, 0, (ccn__attrs){&a, dim}, t, b->span));
}

/* step: an integer scalar that is the same everywhere. */
static ccn__id step_node(ccn__build *b) {
  ccn__bv v = ccn__slot_value(b, "step");
  if (v.kind == CCN__B_NONE) return ccn__step_lit(b, ccn__lit_int(b->l->arena, 0), CCN__I64);
  ccn__id id = ccn__as_node(b->l, v, CCN__I64);
  if (id == CCN__NO_ID) return id;
  const ccn__type *t = ccn__ntype(b->l, id);
  bool same = t->rank == 0 && !t->bundle && ccn__dtype_is_int((ccn__dtype)t->dtype);
  for (uint32_t a = 0; a < t->naxes; a++)
    same &= t->place[a].kind == CCN__REPLICATED || t->place[a].kind == CCN__AT;
  if (same) return id;
  (void)ccn__build_fail(b, ccn__dtype_is_int((ccn__dtype)t->dtype) ? 800 : 104, v.span, "here",
                        "`step` is a whole number that is the same on every rank");
  return CCN__NO_ID;
}

static bool lit_attr(ccn__build *b, const char *slot, ccn__attr_key key, ccn__attr *out, ccn__number *n) {
  ccn__bv v = ccn__slot_value(b, slot);
  *out = (ccn__attr){.key = (uint8_t)key};
  if (!ccn__lit_number(b->l, v, ccn__arena_printf(b->l->arena, "`%s`", slot), n)) return false;
  out->lit = v.lit;
  return true;
}

static bool probability(ccn__build *b, ccn__attr *out) {
  ccn__number n;
  if (!lit_attr(b, "p", CCN__A_P, out, &n)) return false;
  double p = ccn__number_f64(n);
  if (n.unknown || (p >= 0 && p <= 1)) return true;
  (void)ccn__build_fail(b, 102, ccn__slot(b, "p")->span, "not a probability", "`p` is a number from 0 to 1");
  return false;
}

static bool seed(ccn__build *b, ccn__attr *out) {
  ccn__number n;
  if (!lit_attr(b, "seed", CCN__A_SEED, out, &n)) return false;
  if (!n.is_float) return true;
  (void)ccn__build_fail(b, 102, ccn__slot(b, "seed")->span, "not a whole number", "`seed` is a whole number");
  return false;
}

ccn__bv ccn__build_random_op(ccn__build *b) {
  const ccn__type *t = ccn__slot_type(b, "type");
  ccn__attr at[3];
  ccn__number low, high;
  uint32_t n = 0;
  if (!t || !seed(b, &at[n++])) return CCN__B_FAIL;
  static const ccn__op_dtypes need[] = {CCN__DT_FLOAT, CCN__DT_INT, CCN__DT_BOOL};
  ccn__op_dtypes c = (ccn__op_dtypes)ccn__op_table[b->op].dtypes;
  ccn__dtype d = (ccn__dtype)t->dtype;
  bool fits = c == need[0] ? ccn__dtype_is_float(d) : c == need[1] ? ccn__dtype_is_int(d) : d == CCN__BOOL;
  if (!fits)
    return ccn__build_fail(b, 104, ccn__slot(b, "type")->span, ccn__dtype_name(d),
                           "it does not make values of this dtype");
  if (b->op == CCN__OP_BERNOULLI && !probability(b, &at[n++])) return CCN__B_FAIL;
  if (b->op == CCN__OP_RANDINT) {
    if (!lit_attr(b, "low", CCN__A_LOW, &at[n++], &low) || !lit_attr(b, "high", CCN__A_HIGH, &at[n++], &high))
      return CCN__B_FAIL;
    bool known = !low.unknown && !high.unknown;
    if (known && (low.is_float || high.is_float || low.i >= high.i || ccn__number_fits(low, d) ||
                  ccn__number_fits((ccn__number){.i = high.i - 1}, d)))
      return ccn__build_fail(b, 102, b->span, "here",
                             "`low` and `high` are whole numbers of this dtype, low < high");
  }
  ccn__id step = step_node(b);
  return ccn__built(b, ccn__emit(b->l, b->op, &step, 1, (ccn__attrs){at, n}, t, b->span));
}

ccn__bv ccn__build_dropout_op(ccn__build *b) {
  ccn__attr at[2];
  ccn__id in[2] = {ccn__slot_node(b, "x", -1)};
  if (in[0] == CCN__NO_ID || !probability(b, &at[0]) || !seed(b, &at[1])) return CCN__B_FAIL;
  in[1] = step_node(b);
  return ccn__built(b, ccn__emit(b->l, CCN__OP_DROPOUT, in, 2, (ccn__attrs){at, 2}, NULL, b->span));
}

ccn__bv ccn__build_rank_op(ccn__build *b) {
  ccn__name word = ccn__slot_word(b, "axis");
  uint32_t axis;
  if (!word || !ccn__axis_find(b->l, word, &axis)) {
    ccn__lower_error(b->l, 311, ccn__slot(b, "axis")->span, "not an axis",
                     "`rank` takes a mesh axis of this text, as in `rank(%s)`",
                     b->l->frame->naxes ? b->l->frame->axis_name[0] : "dp");
    return CCN__B_FAIL;
  }
  ccn__type t = {.dtype = CCN__I32, .naxes = (uint8_t)b->l->g->mesh.naxes};
  t.place[axis].kind = CCN__LOCAL;
  ccn__attr a = {.key = CCN__A_AXIS, .i = axis};
  return ccn__built(b, ccn__emit(b->l, CCN__OP_RANK, NULL, 0, (ccn__attrs){&a, 1}, &t, b->span));
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
  ccn__param *p = NULL;
  for (uint32_t i = 0; i < l->g->params.n; i++)
    if (l->g->params.at[i].node == t.node) p = &l->g->params.at[i];
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
  ccn__build b = {.l = l, .name = name, .span = span, .op = CCN__OP_FULL};
  bool filled = strcmp(name, "zeros") == 0 || strcmp(name, "ones") == 0;
  if (!filled && !ccn__op_find(name, &b.op)) {
    ccn__lower_error(l, 801, span, "not an op", "`%s` is not an op", name);
    return CCN__B_FAIL;
  }
  read_slots(&b);
  if (filled) b.nslots = 1; /* the value is in the name */
  return fill_slots(&b, args, nargs) ? builders[b.op](&b) : CCN__B_FAIL;
}

/* script_call.c: calls: what is called, with which arguments; functions, programs, ops, and names that
 * nothing defines.
 * SPDX-License-Identifier: Apache-2.0 */
#include "script.h"

/* ---- names that are always there ----------------------------------------------------------------------- */

static bool is_dtype(const char *name) {
  ccn__dtype t;
  return ccn__dtype_find(name, &t);
}

/* Words that arguments of ops use as names: sum(b, per: tensor). `tensor` is a function too. */
bool ccn__is_builtin(const char *name) {
  return ccn__builtin_find(name) || is_dtype(name) || ccn__op_callable(name) || strcmp(name, "size") == 0 ||
         strcmp(name, "rank") == 0;
}

/* What other systems call it. */
static bool foreign_name(ccn__nearest *near) {
  static const char *const names[][2] = {
    {"float16", "f16"}, {"half", "f16"},
    {"float32", "f32"}, {"float64", "f64"},
    {"double", "f64"},  {"bfloat16", "bf16"},
    {"int8", "i8"},     {"int16", "i16"},
    {"int32", "i32"},   {"int64", "i64"},
    {"uint8", "u8"},    {"True", "true"},
    {"False", "false"}, {"all_reduce", "allreduce"},
    {"arange", "iota"}, {"mm", "matmul"},
  };
  for (size_t i = 0; i < CCN__COUNT(names); i++) {
    if (strcmp(near->name, names[i][0]) != 0) continue;
    near->best = names[i][1];
    near->distance = 0;
    return true;
  }
  return false;
}

void ccn__nearest_builtin(ccn__nearest *near) {
  const ccn__builtin *b;
  if (foreign_name(near)) return;
  for (uint32_t i = 0; (b = ccn__builtin_at(i)); i++) ccn__nearest_try(near, b->name);
  for (int i = 0; i < CCN__OP_COUNT; i++)
    if (ccn__op_has_name((ccn__op)i)) ccn__nearest_try(near, ccn__op_table[i].name);
  for (int t = 0; t < CCN__DTYPE_COUNT; t++) ccn__nearest_try(near, ccn__dtype_name((ccn__dtype)t));
  ccn__nearest_try(near, "zeros");
  ccn__nearest_try(near, "ones");
  ccn__nearest_try(near, "size");
}

void ccn__unknown_name(ccn__rt *rt, const ccn__env *env, ccn__name name, ccn__span span) {
  ccn__nearest near;
  ccn__nearest_init(&near, name);
  for (; env; env = env->outer)
    for (uint32_t i = 0; i < env->n; i++) ccn__nearest_try(&near, env->at[i].name);
  ccn__nearest_builtin(&near);
  ccn__diag *d = ccn__error(rt->diags, 801, span, "not defined here", "nothing is called `%s`", name);
  if (near.best) ccn__hint(rt->diags, d, "did you mean `%s`?", near.best);
  else ccn__hint(rt->diags, d, "a variable is made with let: let %s = ...", name);
  ccn__rt_raise(rt, d);
}

bool ccn__program_only(const char *name) {
  ccn__op op;
  if (!ccn__op_find(name, &op)) return false;
  return ccn__op_table[op].kind == CCN__KIND_COLLECTIVE || ccn__op_table[op].kind == CCN__KIND_EFFECT ||
         op == CCN__OP_RANK;
}

ccn__diag *ccn__program_only_error(ccn__rt *rt, const char *name, ccn__span span) {
  bool rank = strcmp(name, "rank") == 0;
  ccn__diag *d =
    ccn__error(rt->diags, 804, span, rank ? "scripts run the same on all ranks" : "only in programs",
               rank ? "a script does not know a rank" : "`%s` stands in programs only", name);
  if (rank)
    ccn__hint(rt->diags, d,
              "in a program rank(axis) is the coordinate; a script reads a rank's value with x.on(r), "
              "and makes values by rank with per_rank(fn(r) { ... })");
  else
    ccn__hint(rt->diags, d,
              "put it into a program and call that: program f(x: f32[N] local) { return %s(...) }", name);
  return d;
}

/* ---- arguments ----------------------------------------------------------------------------------------- */

static ccn__val argument(ccn__rt *rt, ccn__env *env, const ccn__ast *a, bool loads) {
  if (loads && a->name && strcmp(a->name, "as") == 0) return ccn__eval_type(rt, env, a->a, true);
  return ccn__eval(rt, env, a->a);
}

/* `loads`: in load(path, as: f32[B, S]) unknown names of the type stand for any extent. */
static const ccn__arg *arguments(ccn__rt *rt, ccn__env *env, const ccn__ast *call, bool loads) {
  ccn__arg *args = ccn__temp_memory(rt, call->list.n * sizeof *args);
  for (uint32_t i = 0; i < call->list.n; i++) {
    const ccn__ast *a = call->list.at[i];
    args[i] = (ccn__arg){a->name, a->nspan, argument(rt, env, a, loads), a->a->span};
  }
  return args;
}

/* ---- ops ----------------------------------------------------------------------------------------------- */

/* sum, prod, max, min of a list of numbers, or max(a, b) of numbers. */
static bool fold_list(ccn__rt *rt, ccn__op op, const ccn__val *x, uint32_t n, ccn__span span, ccn__val *out) {
  ccn__calc_error err;
  if (op != CCN__OP_SUM && op != CCN__OP_PROD && op != CCN__OP_MAX && op != CCN__OP_MIN) return false;
  for (uint32_t i = 0; i < n; i++)
    if (!ccn__is_number(x[i])) return false;
  if (n == 0 && (op == CCN__OP_MAX || op == CCN__OP_MIN))
    ccn__fail(rt, 604, span, "an empty list", "test its length first: len(x)", "%s of an empty list",
              op == CCN__OP_MAX ? "maximum" : "minimum");
  ccn__val v = n ? x[0] : ccn__int_val(op == CCN__OP_PROD);
  for (uint32_t i = 1; i < n; i++) {
    bool done =
      op == CCN__OP_SUM || op == CCN__OP_PROD
        ? ccn__calc_binary(op == CCN__OP_SUM ? CCN__T_PLUS : CCN__T_STAR, v, x[i], &v, &err)
        : ccn__calc_op(op == CCN__OP_MAX ? CCN__OP_MAXIMUM : CCN__OP_MINIMUM, (ccn__val[]){v, x[i]}, 2, &v);
    if (!done) ccn__fail(rt, err.code, span, err.why, err.hint, "the result %s", err.why);
  }
  *out = v;
  return true;
}

enum { FOLDED = 8 };

/* An op on numbers alone is arithmetic. */
static bool fold(ccn__rt *rt, ccn__op op, const ccn__arg *args, uint32_t n, ccn__span span, ccn__val *out) {
  ccn__val x[FOLDED];
  if (n == 1 && !args[0].name && (args[0].value.kind == CCN__V_LIST || args[0].value.kind == CCN__V_TUPLE)) {
    const ccn__list *l = args[0].value.list;
    return fold_list(rt, op, l->at, l->n, span, out);
  }
  if (n == 0 || n > FOLDED) return false;
  for (uint32_t i = 0; i < n; i++) {
    x[i] = args[i].value;
    if (args[i].name || !(ccn__is_number(x[i]) || x[i].kind == CCN__V_BOOL)) return false;
  }
  if (ccn__calc_op(op, x, n, out)) return true;
  return n > 1 && fold_list(rt, op, x, n, span, out);
}

static ccn__val call_op(ccn__rt *rt, ccn__name name, const ccn__arg *args, uint32_t n, ccn__span span) {
  ccn__op op;
  ccn__val out;
  if (ccn__op_find(name, &op) && fold(rt, op, args, n, span, &out)) return out;
  return ccn__op_call(rt, name, args, n, span);
}

/* f32(x): a number is rounded as the cast does; tensors are cast by the op. */
static ccn__val call_cast(ccn__rt *rt, ccn__name name, const ccn__arg *args, uint32_t n, ccn__span span) {
  ccn__dtype t;
  if (!ccn__dtype_find(name, &t) || ccn__dtype_size(t) == 0)
    ccn__fail(rt, 100, span, "not available", "the dtypes are f64 f32 f16 bf16 i64 i32 i16 i8 u8 bool",
              "there are no values of `%s` yet", name);
  if (n != 1 || args[0].name)
    ccn__fail(rt, 800, span, "one argument", "a cast is written f32(x)", "`%s` takes one value", name);
  ccn__val v = args[0].value;
  if (ccn__is_number(v) || v.kind == CCN__V_BOOL) return ccn__calc_cast(t, v);
  return ccn__op_call(rt, name, args, n, span);
}

/* A function by its name. */
static ccn__val call_named(ccn__rt *rt, ccn__name name, const ccn__arg *args, uint32_t n, ccn__span call,
                           ccn__span span) {
  const ccn__builtin *b = ccn__builtin_find(name);
  if (b) return ccn__builtin_run(rt, b, args, n, call);
  if (ccn__program_only(name)) ccn__rt_raise(rt, ccn__program_only_error(rt, name, span));
  if (is_dtype(name)) return call_cast(rt, name, args, n, call);
  return call_op(rt, name, args, n, call);
}

/* ---- what is called ------------------------------------------------------------------------------------ */

static ccn__val call_program(ccn__rt *rt, ccn__program *p, const ccn__arg *args, uint32_t n, ccn__span call) {
  if (rt->per_rank)
    ccn__fail(rt, 804, call, "inside per_rank", "call it outside; per_rank only makes the values it needs",
              "a program cannot be called for one rank alone");
  return ccn__program_call(rt, p, args, n, call);
}

ccn__val ccn__call_value(ccn__rt *rt, ccn__val callee, const ccn__arg *args, uint32_t n, ccn__span call,
                         ccn__span span) {
  switch (callee.kind) {
  case CCN__V_FN: return ccn__call_fn(rt, callee.fn, args, n, call);
  case CCN__V_PROGRAM: return call_program(rt, callee.program, args, n, call);
  case CCN__V_OP: return call_named(rt, callee.name, args, n, call, span);
  case CCN__V_HOST: return ccn__host_call(rt, callee.host, args, n, call);
  default:
    ccn__fail(rt, 805, span, ccn__val_kind_name(callee),
              "only functions and programs are called; an element is x[0]", "%s cannot be called",
              ccn__val_kind_name(callee));
  }
}

/* size(axis): the argument is an axis, not a value. */
static ccn__val call_size(ccn__rt *rt, const ccn__ast *call) {
  const ccn__ast *a = call->list.n == 1 && !call->list.at[0]->name ? call->list.at[0]->a : NULL;
  if (!a || a->kind != CCN__AST_NAME)
    ccn__fail(rt, 800, call->span, "one axis",
              "size(dp) is the number of ranks on an axis, len(x) that of a value's members",
              "`size` takes the name of a mesh axis");
  for (uint32_t i = 0; i < rt->mesh.naxes; i++)
    if (rt->mesh.name[i] == a->name) return ccn__int_val(rt->mesh.size[i]);
  ccn__fail(rt, 311, a->span, "no such axis", "axes are declared in the script's first statement: mesh (dp)",
            "the mesh has no axis `%s`", a->name);
}

static ccn__val call_unbound(ccn__rt *rt, ccn__env *env, const ccn__ast *e) {
  ccn__name name = e->a->name;
  if (ccn__program_only(name)) ccn__rt_raise(rt, ccn__program_only_error(rt, name, e->a->span));
  if (strcmp(name, "size") == 0) return call_size(rt, e);
  if (!ccn__is_builtin(name)) ccn__unknown_name(rt, env, name, e->a->span);
  bool loads = strcmp(name, "load") == 0;
  return call_named(rt, name, arguments(rt, env, e, loads), e->list.n, e->span, e->a->span);
}

static ccn__val call_with_axes(ccn__rt *rt, ccn__val callee, const ccn__ast *e, const ccn__arg *args) {
  if (callee.kind != CCN__V_PROGRAM)
    ccn__fail(rt, 805, e->a->span, ccn__val_kind_name(callee), "leave the <...> out",
              "only programs have axes");
  rt->call_axes = e->axes;
  ccn__val v = call_program(rt, callee.program, args, e->list.n, e->span);
  rt->call_axes = (ccn__ast_list){0};
  return v;
}

ccn__val ccn__eval_call(ccn__rt *rt, ccn__env *env, const ccn__ast *e) {
  const ccn__ast *c = e->a;
  ccn__val callee;
  if (c->kind == CCN__AST_NAME) {
    const ccn__val *bound = ccn__env_lookup(env, c->name);
    if (!bound) return call_unbound(rt, env, e);
    callee = *bound;
    if (ccn__val_is_object(callee)) ccn__rt_push(rt, callee);
  } else if (c->kind == CCN__AST_FIELD) {
    ccn__val self = ccn__eval(rt, env, c->a);
    if (self.kind != CCN__V_MODULE)
      return ccn__method(rt, self, c->name, c->nspan, arguments(rt, env, e, false), e->list.n, e->span);
    callee = ccn__field(rt, self, c->name, c->nspan);
  } else {
    callee = ccn__eval(rt, env, c);
  }
  const ccn__arg *args = arguments(rt, env, e, false);
  if (e->axes.n) return call_with_axes(rt, callee, e, args);
  return ccn__call_value(rt, callee, args, e->list.n, e->span, c->span);
}

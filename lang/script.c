/* script.c: statements of scripts: bindings, control flow, functions, the mesh, program and schedule values.
 *
 *   statement ─┬─ let, assignment ── patterns ─┐
 *              ├─ if, while, for, return, ...  ├── ccn__eval (script_expr.c) ── calls (script_call.c) ── program.h
 *              └─ fn, program, schedule, import┘
 *
 * Every statement ends with its temporaries forgotten and, when memory has grown, with a collection.
 * SPDX-License-Identifier: Apache-2.0 */
#include "script.h"

typedef enum flow { NEXT, BREAK, CONTINUE, RETURN } flow;

static flow statement(ccn__rt *rt, ccn__env *env, const ccn__ast *s, ccn__val *result);
static flow block(ccn__rt *rt, ccn__env *env, const ccn__ast *b, ccn__val *result);

/* ---- bindings ------------------------------------------------------------------------------------------ */

static void assign_name(ccn__rt *rt, ccn__env *env, const ccn__ast *target, ccn__val v) {
  ccn__val *known = ccn__env_lookup(env, target->name);
  if (known) {
    *known = v;
    return;
  }
  ccn__nearest near;
  ccn__nearest_init(&near, target->name);
  for (const ccn__env *e = env; e; e = e->outer)
    for (uint32_t i = 0; i < e->n; i++) ccn__nearest_try(&near, e->at[i].name);
  ccn__diag *d =
    ccn__error(rt->diags, 801, target->span, "no such variable", "nothing is called `%s`", target->name);
  if (near.best) ccn__hint(rt->diags, d, "did you mean `%s`? A new variable is made with let", near.best);
  else ccn__hint(rt->diags, d, "a new variable is made with let: let %s = ...", target->name);
  ccn__rt_raise(rt, d);
}

static void assign_element(ccn__rt *rt, ccn__env *env, const ccn__ast *target, ccn__val v) {
  ccn__val x = ccn__eval(rt, env, target->a);
  if (x.kind != CCN__V_LIST)
    ccn__fail(rt, 805, target->a->span, ccn__val_kind_name(x),
              x.kind == CCN__V_TENSOR
                ? "tensors change through `update` in programs only; where(...) and concat make new ones"
                : "only elements of lists can be given values",
              "an element of %s cannot be given a value", ccn__val_kind_name(x));
  const ccn__ast *at = target->list.at[0];
  if (target->list.n != 1 || at->kind == CCN__AST_SLICE || at->kind == CCN__AST_STAR)
    ccn__fail(rt, 805, target->span, "not one element", "give elements their values one by one: x[i] = v",
              "only one element can be given a value");
  int64_t i = ccn__whole(rt, ccn__eval(rt, env, at), at->span, "an index");
  x.list->at[ccn__position(rt, i, x.list->n, at->span, "a list")] = v;
}

/* `define`: let and loops make new names in `env`; otherwise the names must be there. */
static void bind(ccn__rt *rt, ccn__env *env, const ccn__ast *target, ccn__val v, bool define,
                 ccn__span span) {
  switch (target->kind) {
  case CCN__AST_NAME:
    if (define) ccn__env_set(rt, env, target->name, v);
    else assign_name(rt, env, target, v);
    return;
  case CCN__AST_INDEX: assign_element(rt, env, target, v); return;
  case CCN__AST_FIELD:
    ccn__fail(rt, 805, target->span, "cannot be changed", "keep changing values in variables or lists",
              "a member cannot be given a value");
  default: break;
  }
  if (v.kind != CCN__V_TUPLE && v.kind != CCN__V_LIST)
    ccn__fail(rt, 805, span, ccn__val_kind_name(v), "only tuples and lists are taken apart",
              "%s cannot be taken apart into %u names", ccn__val_kind_name(v), target->list.n);
  if (v.list->n != target->list.n) {
    ccn__diag *d = ccn__error(rt->diags, 805, span, "", "%u values for %u names", v.list->n, target->list.n);
    d->primary.text = ccn__arena_printf(rt->diags->arena, "%u values", v.list->n);
    ccn__note(rt->diags, d, target->span, "%u names", target->list.n);
    ccn__hint(rt->diags, d, "write as many names as there are values");
    ccn__rt_raise(rt, d);
  }
  for (uint32_t i = 0; i < target->list.n; i++)
    bind(rt, env, target->list.at[i], v.list->at[i], define, span);
}

/* ---- functions ----------------------------------------------------------------------------------------- */

static const char *fn_name(const ccn__fn *f) { return f->name ? f->name : "the function"; }

CCN__NORETURN static void no_such_parameter(ccn__rt *rt, const ccn__fn *fn, const ccn__arg *a) {
  const ccn__ast_list *params = &fn->ast->params;
  ccn__nearest near;
  ccn__nearest_init(&near, a->name);
  for (uint32_t i = 0; i < params->n; i++) ccn__nearest_try(&near, params->at[i]->name);
  ccn__diag *d = ccn__error(rt->diags, 806, a->nspan, "no such parameter", "%s has no parameter `%s`",
                            fn_name(fn), a->name);
  ccn__note(rt->diags, d, fn->ast->nspan.source ? fn->ast->nspan : fn->ast->span, "defined here");
  if (near.best) ccn__hint(rt->diags, d, "did you mean `%s`?", near.best);
  else ccn__hint(rt->diags, d, "leave the name out or use one of the parameters' names");
  ccn__rt_raise(rt, d);
}

CCN__NORETURN static void too_many_arguments(ccn__rt *rt, const ccn__fn *fn, const ccn__arg *a, uint32_t n) {
  uint32_t most = fn->ast->params.n;
  ccn__diag *d = ccn__error(rt->diags, 800, a->span, "one too many", "%s takes %u argument%s, not %u",
                            fn_name(fn), most, most == 1 ? "" : "s", n);
  ccn__note(rt->diags, d, fn->ast->nspan.source ? fn->ast->nspan : fn->ast->span, "defined here");
  ccn__hint(rt->diags, d, "leave the last ones out");
  ccn__rt_raise(rt, d);
}

/* Named arguments go into the scope unseen; if that then holds more names than parameters have got values, one of them
 * is no parameter's. So nothing is searched for. */
static void check_names(ccn__rt *rt, const ccn__fn *fn, const ccn__env *env, const ccn__arg *args,
                        uint32_t n) {
  const ccn__ast_list *params = &fn->ast->params;
  uint32_t known = 0;
  for (uint32_t k = 0; k < params->n; k++) known += ccn__env_find(env, params->at[k]->name) != NULL;
  for (uint32_t i = 0; i < n && known < env->n; i++) {
    bool found = !args[i].name;
    for (uint32_t k = 0; k < params->n && !found; k++) found = params->at[k]->name == args[i].name;
    if (!found) no_such_parameter(rt, fn, &args[i]);
  }
}

static void bind_arguments(ccn__rt *rt, const ccn__fn *fn, ccn__env *env, const ccn__arg *args, uint32_t n,
                           ccn__span call) {
  const ccn__ast_list *params = &fn->ast->params;
  for (uint32_t i = 0; i < n; i++) {
    if (!args[i].name && i >= params->n) too_many_arguments(rt, fn, &args[i], n);
    ccn__name name = args[i].name ? args[i].name : params->at[i]->name;
    if (ccn__env_find(env, name))
      ccn__fail(rt, 806, args[i].name ? args[i].nspan : args[i].span, "a second time", "pass it once",
                "parameter `%s` is given twice", name);
    ccn__env_set(rt, env, name, args[i].value);
  }
  check_names(rt, fn, env, args, n);
  for (uint32_t k = 0; k < params->n; k++) {
    const ccn__ast *p = params->at[k];
    if (p->b || ccn__env_find(env, p->name)) continue;
    ccn__diag *d = ccn__error(rt->diags, 800, call, "incomplete", "argument `%s` is missing", p->name);
    ccn__note(rt->diags, d, p->nspan, "the parameter");
    ccn__hint(rt->diags, d, "pass a value for `%s`", p->name);
    ccn__rt_raise(rt, d);
  }
}

/* Defaults are evaluated at the call, in the function's scope: they may name the parameters before them. */
static void bind_defaults(ccn__rt *rt, const ccn__fn *fn, ccn__env *env) {
  for (uint32_t k = 0; k < fn->ast->params.n; k++) {
    const ccn__ast *p = fn->ast->params.at[k];
    if (!ccn__env_find(env, p->name)) ccn__env_set(rt, env, p->name, ccn__eval(rt, env, p->b));
  }
}

ccn__val ccn__call_fn(ccn__rt *rt, ccn__fn *fn, const ccn__arg *args, uint32_t n, ccn__span call) {
  uint32_t mark = rt->temps.n;
  ccn__val result = CCN__NONE_VAL;
  ccn__enter(rt, call);
  ccn__env *env = ccn__env_new(rt, fn->env);
  ccn__roots_push(rt, env);
  ccn__frame frame = {rt->frames, fn->name ? fn->name : "this call of a function", call};
  bind_arguments(rt, fn, env, args, n, call);
  rt->frames = &frame;
  bind_defaults(rt, fn, env);
  block(rt, env, fn->ast->b, &result);
  rt->frames = frame.outer;
  rt->roots.n--;
  ccn__leave(rt);
  rt->temps.n = mark;
  if (ccn__val_is_object(result)) ccn__rt_push(rt, result);
  return result;
}

static void define_fn(ccn__rt *rt, ccn__env *env, const ccn__ast *s) {
  ccn__fn *f = ccn__obj_new(rt, CCN__V_FN, sizeof *f);
  f->ast = s;
  f->env = env;
  f->name = s->name;
  ccn__env_set(rt, env, s->name, (ccn__val){.kind = CCN__V_FN, .fn = f});
}

/* ---- programs and schedules ---------------------------------------------------------------------------- */

/* The value as it is now: lists may change later, a scalar tensor may be updated. */
static ccn__val snapshot(ccn__rt *rt, ccn__val v, int depth) {
  if (v.kind == CCN__V_TENSOR) return ccn__plain(v);
  if ((v.kind != CCN__V_LIST && v.kind != CCN__V_TUPLE) || depth > 20) return v;
  ccn__list *l = ccn__list_new(rt, (ccn__vkind)v.kind, v.list->n);
  for (uint32_t i = 0; i < v.list->n; i++) ccn__list_add(rt, l, snapshot(rt, v.list->at[i], depth + 1));
  return ccn__list_val(l);
}

/* Notes the script's values of all names in the text. Types are left out: names in dims are the program's
 * own. */
static void capture(ccn__rt *rt, ccn__env *env, ccn__env *constants, const ccn__ast *n) {
  if (!n || n->kind == CCN__AST_TENSOR_TYPE || n->kind == CCN__AST_LIST_TYPE ||
      n->kind == CCN__AST_TUPLE_TYPE)
    return;
  if (n->kind == CCN__AST_NAME) {
    const ccn__val *v = ccn__env_lookup(env, n->name);
    if (v && !ccn__env_find(constants, n->name)) ccn__env_set(rt, constants, n->name, snapshot(rt, *v, 0));
    return;
  }
  capture(rt, env, constants, n->a);
  capture(rt, env, constants, n->b);
  capture(rt, env, constants, n->c);
  for (uint32_t i = 0; i < n->list.n; i++) capture(rt, env, constants, n->list.at[i]);
  for (uint32_t i = 0; i < n->params.n; i++) capture(rt, env, constants, n->params.at[i]);
}

ccn__program *ccn__program_new(ccn__rt *rt, ccn__env *env, const ccn__ast *ast) {
  ccn__program *p = ccn__obj_new(rt, CCN__V_PROGRAM, sizeof *p);
  p->ast = ast;
  p->name = ast->name;
  p->generic = ast->axes.n > 0;
  p->constants = ccn__env_new(rt, NULL);
  capture(rt, env, p->constants, ast);
  return p;
}

/* The name stands for the program before its body is looked at, so that recursion is seen for what it is. */
static void define_program(ccn__rt *rt, ccn__env *env, const ccn__ast *s) {
  ccn__program *p = ccn__program_new(rt, env, s);
  ccn__val v = {.kind = CCN__V_PROGRAM, .program = p};
  ccn__env_set(rt, env, s->name, v);
  ccn__env_set(rt, p->constants, s->name, v);
}

static void define_schedule(ccn__rt *rt, ccn__env *env, const ccn__ast *s) {
  ccn__schedule *x = ccn__obj_new(rt, CCN__V_SCHEDULE, sizeof *x);
  x->ast = s;
  x->name = s->name;
  x->env = env;
  if (s->a) {
    ccn__val p = ccn__eval(rt, env, s->a);
    if (p.kind != CCN__V_PROGRAM)
      ccn__fail(rt, 400, s->a->span, ccn__val_kind_name(p),
                "a schedule is for a program: schedule s for step { ... }", "%s is no program",
                ccn__val_kind_name(p));
    x->target = p.program;
  }
  ccn__env_set(rt, env, s->name, (ccn__val){.kind = CCN__V_SCHEDULE, .schedule = x});
}

static void run_mesh(ccn__rt *rt, ccn__env *env, const ccn__ast *s) {
  int64_t size[CCN__MAX_AXES] = {0};
  for (uint32_t a = 0; a < s->list.n && a < CCN__MAX_AXES; a++)
    if (s->list.at[a]->a)
      size[a] =
        ccn__whole(rt, ccn__eval(rt, env, s->list.at[a]->a), s->list.at[a]->a->span, "the size of an axis");
  if (!ccn__mesh_define(rt, s, size, true)) ccn__rt_raise(rt, rt->diags->last);
}

/* ---- control flow -------------------------------------------------------------------------------------- */

static flow run_if(ccn__rt *rt, ccn__env *env, const ccn__ast *s, ccn__val *result) {
  for (; s; s = s->c) {
    if (s->kind == CCN__AST_BLOCK) return block(rt, env, s, result);
    if (ccn__truth(rt, ccn__eval(rt, env, s->a), s->a->span, "the condition of `if`"))
      return block(rt, env, s->b, result);
  }
  return NEXT;
}

static flow run_while(ccn__rt *rt, ccn__env *env, const ccn__ast *s, ccn__val *result) {
  uint32_t mark = rt->temps.n;
  while (ccn__truth(rt, ccn__eval(rt, env, s->a), s->a->span, "the condition of `while`")) {
    ccn__rt_poll(rt);
    flow f = block(rt, env, s->b, result);
    if (f == RETURN) return f;
    if (f == BREAK) break;
    rt->temps.n = mark;
  }
  return NEXT;
}

static flow one_round(ccn__rt *rt, ccn__env *env, const ccn__ast *s, ccn__val v, ccn__val *result) {
  ccn__rt_poll(rt);
  ccn__env *inner = ccn__env_new(rt, env); /* a new one each time: closures keep theirs */
  ccn__roots_push(rt, inner);
  bind(rt, inner, s->a, v, true, s->b->span);
  flow f = block(rt, inner, s->c, result);
  rt->roots.n--;
  return f;
}

static flow run_for(ccn__rt *rt, ccn__env *env, const ccn__ast *s, ccn__val *result) {
  ccn__val over = ccn__eval(rt, env, s->b);
  flow f = NEXT;
  if (over.kind == CCN__V_RANGE) {
    for (int64_t i = over.range->start; i < over.range->end && (f == NEXT || f == CONTINUE); i++)
      f = one_round(rt, env, s, ccn__int_val(i), result);
  } else if (over.kind == CCN__V_LIST || over.kind == CCN__V_TUPLE) {
    for (uint32_t i = 0; i < over.list->n && (f == NEXT || f == CONTINUE); i++)
      f = one_round(rt, env, s, over.list->at[i], result);
  } else {
    ccn__fail(rt, 805, s->b->span, ccn__val_kind_name(over),
              over.kind == CCN__V_INT ? "go through a range: for i in 0..n { }"
              : over.kind == CCN__V_TENSOR
                ? "go through the indices: for i in 0..len(x) { }; most loops over elements are one op"
                : "for goes through ranges, lists and tuples",
              "cannot go through %s", ccn__val_kind_name(over));
  }
  return f == RETURN ? RETURN : NEXT;
}

static void run_assert(ccn__rt *rt, ccn__env *env, const ccn__ast *s) {
  const ccn__val holds = ccn__eval(rt, env, s->a);
  if (rt->recording && ccn__plain(holds).kind == CCN__V_TENSOR) return; /* it decides nothing else */
  if (ccn__truth(rt, holds, s->a->span, "the condition of `assert`")) return;
  ccn__diag *d = NULL;
  if (s->b) {
    ccn__val v = ccn__eval(rt, env, s->b);
    ccn__text t;
    ccn__scratch_begin(rt, &t);
    ccn__format(rt, &t, v);
    d = ccn__error(rt->diags, 601, s->a->span, "this is false", "assertion failed: %s", t.n ? t.at : "");
    ccn__scratch_end(rt);
  } else {
    d = ccn__error(rt->diags, 601, s->a->span, "this is false", "assertion failed");
  }
  ccn__hint(rt->diags, d, "print the values that it compares");
  ccn__rt_raise(rt, d);
}

/* ---- statements ---------------------------------------------------------------------------------------- */

static flow perform(ccn__rt *rt, ccn__env *env, const ccn__ast *s, ccn__val *result) {
  switch ((ccn__ast_kind)s->kind) {
  case CCN__AST_EXPR: ccn__eval(rt, env, s->a); return NEXT;
  case CCN__AST_LET: bind(rt, env, s->a, ccn__eval(rt, env, s->b), true, s->b->span); return NEXT;
  case CCN__AST_ASSIGN: bind(rt, env, s->a, ccn__eval(rt, env, s->b), false, s->b->span); return NEXT;
  case CCN__AST_IF: return run_if(rt, env, s, result);
  case CCN__AST_WHILE: return run_while(rt, env, s, result);
  case CCN__AST_FOR: return run_for(rt, env, s, result);
  case CCN__AST_RETURN: *result = s->a ? ccn__eval(rt, env, s->a) : CCN__NONE_VAL; return RETURN;
  case CCN__AST_BREAK: return BREAK;
  case CCN__AST_CONTINUE: return CONTINUE;
  case CCN__AST_ASSERT: run_assert(rt, env, s); return NEXT;
  case CCN__AST_FN: define_fn(rt, env, s); return NEXT;
  case CCN__AST_PROGRAM: define_program(rt, env, s); return NEXT;
  case CCN__AST_SCHEDULE: define_schedule(rt, env, s); return NEXT;
  case CCN__AST_MESH: run_mesh(rt, env, s); return NEXT;
  case CCN__AST_BLOCK: return block(rt, env, s, result);
  case CCN__AST_IMPORT: {
    ccn__module *m = ccn__module_import(rt, s->str, s->span);
    ccn__env_set(rt, env, ccn__import_name(rt, s), (ccn__val){.kind = CCN__V_MODULE, .module = m});
    return NEXT;
  }
  default:
    ccn__fail(rt, 804, s->span, "only in programs", "put it into a program",
              "this statement stands in programs only");
  }
}

static flow statement(ccn__rt *rt, ccn__env *env, const ccn__ast *s, ccn__val *result) {
  uint32_t mark = rt->temps.n;
  const ccn__span outer = rt->here;
  rt->here = s->span;
  ccn__rt_poll(rt);
  ccn__enter(rt, s->span);
  flow f = perform(rt, env, s, result);
  ccn__leave(rt);
  rt->here = outer;
  if (f == RETURN) return f; /* the result is on temps */
  rt->temps.n = mark;
  if (rt->heap->live > rt->next_collect) ccn__collect(rt);
  return f;
}

static bool defines(const ccn__ast *b) {
  for (uint32_t i = 0; i < b->list.n; i++)
    if (b->list.at[i]->kind == CCN__AST_LET || b->list.at[i]->kind == CCN__AST_FN) return true;
  return false;
}

static flow block(ccn__rt *rt, ccn__env *env, const ccn__ast *b, ccn__val *result) {
  bool scope = defines(b); /* others need no scope of their own */
  flow f = NEXT;
  if (scope) {
    env = ccn__env_new(rt, env);
    ccn__roots_push(rt, env);
  }
  for (uint32_t i = 0; i < b->list.n && f == NEXT; i++) f = statement(rt, env, b->list.at[i], result);
  if (scope) rt->roots.n--;
  return f;
}

void ccn__script_run(ccn__rt *rt, ccn__env *env, const ccn__ast *b) {
  ccn__val result = CCN__NONE_VAL;
  ccn__roots_push(rt, env);
  for (uint32_t i = 0; i < b->list.n; i++)
    if (statement(rt, env, b->list.at[i], &result) != NEXT) break;
  rt->roots.n--;
}

/* There is room for it: a statement is noted, or it is not carried out. */
static void reserve_note(ccn__rt *rt, ccn__journal *journal) {
  if (!journal) return;
  *CCN__PUSH(rt->arena, journal) = NULL;
  journal->n--;
}

static void note(ccn__journal *journal, const ccn__ast *s) {
  if (journal) journal->at[journal->n++] = s;
}

ccn__val ccn__script_value(ccn__rt *rt, ccn__env *env, const ccn__ast *b, ccn__journal *journal) {
  ccn__val v = CCN__NONE_VAL;
  const ccn__ast *last = b->list.n ? b->list.at[b->list.n - 1] : NULL;
  bool bare = last && last->kind == CCN__AST_EXPR;
  ccn__roots_push(rt, env);
  for (uint32_t i = 0; i + bare < b->list.n; i++) {
    reserve_note(rt, journal);
    if (statement(rt, env, b->list.at[i], &v) != NEXT) bare = false;
    note(journal, b->list.at[i]);
  }
  if (bare) {
    reserve_note(rt, journal);
    rt->here = last->span;
    ccn__rt_poll(rt);
    v = ccn__eval(rt, env, last->a);
    if (rt->heap->live > rt->next_collect) ccn__collect(rt);
    note(journal, last);
  }
  rt->roots.n--;
  return v;
}

/* ---- the mesh ------------------------------------------------------------------------------------------ */

static bool mesh_error(ccn__rt *rt, uint16_t code, ccn__span span, const char *label, const char *hint,
                       const char *message) {
  ccn__diag *d = ccn__error(rt->diags, code, span, label, "%s", message);
  ccn__hint(rt->diags, d, "%s", hint);
  return false;
}

static bool fill_mesh(ccn__rt *rt, const ccn__ast *s, const int64_t *size, ccn__mesh *m, int64_t *fixed,
                      int *open) {
  const int64_t most = rt->recording ? CCN__MAX_PLANNED : CCN__MAX_RANKS;
  if (s->list.n > CCN__MAX_AXES)
    return mesh_error(rt, 208, s->list.at[CCN__MAX_AXES]->span, "one axis too many",
                      "join axes that are always used together", "a mesh has at most 6 axes");
  for (uint32_t a = 0; a < s->list.n; a++) {
    const ccn__ast *x = s->list.at[a];
    for (uint32_t b = 0; b < a; b++)
      if (m->name[b] == x->name)
        return mesh_error(rt, 11, x->span, "a second time", "give each axis its own name",
                          "two axes have one name");
    m->name[a] = x->name;
    m->span[a] = x->span;
    m->naxes = a + 1;
    if (!x->a) {
      if (*open >= 0)
        return mesh_error(rt, 302, x->span, "a second open axis", "give all axes but one a size",
                          "only one axis may be left open");
      *open = (int)a;
    } else if (size[a] < 1 || size[a] > most || *fixed * size[a] > most) {
      return mesh_error(rt, size[a] < 1 ? 310 : 302, x->a->span,
                        size[a] < 1 ? "not positive" : "too many ranks",
                        rt->recording ? "sizes are positive, and their product is at most 65536"
                                      : "sizes are positive, and their product is at most 64",
                        "the mesh cannot have this size");
    } else {
      *fixed *= size[a];
      m->size[a] = (int32_t)size[a];
    }
  }
  return true;
}

/* A session and its modules may all say which mesh they mean, as long as it is one. */
static bool same_mesh(ccn__rt *rt, const ccn__ast *s, const ccn__mesh *m) {
  bool same = m->naxes == rt->mesh.naxes;
  for (uint32_t a = 0; same && a < m->naxes; a++)
    same = m->name[a] == rt->mesh.name[a] && m->size[a] == rt->mesh.size[a];
  if (same) return true;
  ccn__diag *d = ccn__error(rt->diags, 300, s->span, "another mesh", "a mesh is declared once");
  ccn__note(rt->diags, d, rt->mesh_span, "the mesh");
  ccn__hint(rt->diags, d, "leave it out, or begin a new session");
  return false;
}

bool ccn__mesh_define(ccn__rt *rt, const ccn__ast *s, const int64_t *size, bool running) {
  ccn__mesh m = {0};
  int64_t fixed = 1, world = rt->options->ranks;
  int open = -1;
  if (!fill_mesh(rt, s, size, &m, &fixed, &open)) return false;
  if (world == 0) world = fixed;
  if (running && (open >= 0 ? world % fixed : world != fixed)) {
    ccn__diag *d =
      ccn__error(rt->diags, 302, s->span, "", "%lld ranks do not fill the mesh", (long long)world);
    d->primary.text = ccn__arena_printf(rt->diags->arena, "needs %s%lld ranks",
                                        open >= 0 ? "a multiple of " : "", (long long)fixed);
    ccn__hint(rt->diags, d, "run with %s%lld ranks, or change the sizes of the axes",
              open >= 0 ? "a multiple of " : "", (long long)fixed);
    return false;
  }
  if (running && open >= 0) m.size[open] = (int32_t)(world / fixed);
  if (running && rt->mesh_span.source) return same_mesh(rt, s, &m);
  rt->mesh = m;
  rt->mesh_span = s->span;
  rt->world = running ? (uint32_t)world : 1;
  return true;
}

/* program.c: program values: the lowered forms of each, calls from the script, results.
 *
 * A program is lowered once for each set of what lowering depends on (a "spec"): lengths of lists, arguments left
 * out, and, for a generic program, placements over the axes it does not name. Sizes are bound at each call.
 * SPDX-License-Identifier: Apache-2.0 */
#include "call.h"

struct ccn__spec {
  struct ccn__spec *next;
  const char *key;
  ccn__graph *g;
};

void ccn__with_arena(ccn__rt *rt, void (*body)(ccn__rt *rt, ccn__arena *a, void *user), void *user) {
  ccn__trap trap;
  ccn__frame *frames = rt->frames;
  ccn__arena *a = ccn__heap_alloc(rt->heap, sizeof *a);
  ccn__arena_init(a, rt->heap);
  CCN__TRY(rt->heap, trap)
  { body(rt, a, user); }
  CCN__CATCH(rt->heap, trap)
  {
    rt->frames = frames;
    ccn__arena_free(a);
    ccn__heap_free(rt->heap, a, sizeof *a);
    ccn__throw(rt->heap, trap.status);
  }
  ccn__arena_free(a);
  ccn__heap_free(rt->heap, a, sizeof *a);
}

struct ccn__graph *ccn__program_check(ccn__rt *rt, ccn__program *p) {
  ccn__graph *g = ccn__lower_program(rt, p, NULL, true);
  p->broken = !g;
  return g;
}

/* ---- schedules ---- */

ccn__graph *ccn__program_check_schedules(ccn__rt *rt, ccn__program *p) {
  ccn__program *root = p;
  while (root->base) root = root->base;
  if (root->broken || !rt->schedule) return NULL;
  ccn__graph *g = ccn__lower_program(rt, root, NULL, true);
  return g ? rt->schedule(rt, g, p) : NULL;
}

void ccn__program_try(ccn__rt *rt, ccn__program *p, ccn__span span) {
  uint32_t errors = rt->diags->errors, warnings = rt->diags->warnings;
  (void)span;
  (void)warnings;
  (void)ccn__program_check_schedules(rt, p);
  if (rt->diags->errors != errors) ccn__rt_raise(rt, rt->diags->last);
}

/* ---- specs ---- */

static bool is_bundle(const ccn__ast *t) {
  if (t->kind != CCN__AST_LIST_TYPE || !t->a || t->a->kind != CCN__AST_TENSOR_TYPE) return false;
  return !t->a->op || (t->a->list.n == 1 && t->a->list.at[0]->kind == CCN__AST_STAR);
}

static void key_tensor(ccn__text *key, const ccn__val *v) {
  if ((v->kind == CCN__V_LIST || v->kind == CCN__V_TUPLE) && v->list->n) v = &v->list->at[0];
  if (v->kind != CCN__V_TENSOR) return;
  for (uint32_t a = 0; a < v->tensor->naxes; a++) {
    const ccn__cplace *p = &v->tensor->place[a];
    ccn__text_printf(key, "%d.%d.%d.%d.%lld,", p->kind, p->op, p->dim, p->coord, (long long)p->unit);
  }
}

static void key_of(const ccn__ast *type, const ccn__val *v, bool generic, ccn__text *key) {
  bool list = type->kind == CCN__AST_LIST_TYPE && !is_bundle(type), tuple = type->kind == CCN__AST_TUPLE_TYPE;
  if (!list && !tuple) {
    if (generic) key_tensor(key, v);
    ccn__text_putc(key, ';');
    return;
  }
  if (v->kind != CCN__V_LIST && v->kind != CCN__V_TUPLE) return;
  ccn__text_printf(key, "[%u:", v->list->n);
  for (uint32_t i = 0; i < v->list->n; i++)
    if (list || i < type->list.n) key_of(list ? type->a : type->list.at[i], &v->list->at[i], generic, key);
  ccn__text_putc(key, ']');
}

static ccn__graph *spec(ccn__invoke *v, const ccn__val *vals) {
  ccn__program *p = v->program;
  struct ccn__spec **specs = v->scheduled->base ? &v->scheduled->specs : &p->specs;
  ccn__text key;
  ccn__text_init(&key, v->arena);
  ccn__text_putc(&key, '.');
  for (uint32_t a = 0; p->axis_choice && a < p->ast->axes.n; a++)
    ccn__text_printf(&key, "<%u>", p->axis_choice[a]);
  for (uint32_t i = 0; i < p->ast->params.n; i++) {
    const ccn__ast *type = p->ast->params.at[i]->a;
    if (vals[i].kind == CCN__V_NONE) ccn__text_putc(&key, 'd');
    else if (type) key_of(type, &vals[i], p->generic, &key);
  }
  for (struct ccn__spec *s = *specs; s; s = s->next)
    if (strcmp(s->key, key.at) == 0) return s->g;
  ccn__frame frame = {.outer = v->rt->frames, .what = v->name, .call = v->call};
  uint32_t errors = v->rt->diags->errors;
  v->rt->frames = &frame;
  ccn__graph *g = ccn__lower_program(v->rt, p, vals, false);
  if (!g) {
    if (v->rt->diags->errors == errors)
      ccn__rt_raise(v->rt, ccn__error(v->rt->diags, 301, v->call, "which axis?",
                                      "`%s` is generic over %u axes: say which", v->name, p->ast->axes.n));
    ccn__rt_raise(v->rt, v->rt->diags->last);
  }
  if (v->scheduled->base && v->rt->schedule) {
    g = v->rt->schedule(v->rt, g, v->scheduled);
    if (!g) ccn__rt_raise(v->rt, v->rt->diags->last);
  }
  v->rt->frames = frame.outer;
  struct ccn__spec *s = CCN__NEW(v->rt->arena, struct ccn__spec);
  s->key = ccn__arena_strndup(v->rt->arena, key.at, key.n);
  s->g = g;
  s->next = *specs;
  *specs = s;
  return g;
}

/* ---- arguments ---- */

static void hint_parameters(ccn__diags *ds, ccn__diag *d, const ccn__ast *program) {
  ccn__text t;
  ccn__text_init(&t, ds->arena);
  for (uint32_t i = 0; i < program->params.n; i++)
    ccn__text_printf(&t, "%s%s%s", i ? ", " : "", program->params.at[i]->name,
                     program->params.at[i]->b ? "?" : "");
  ccn__hint(ds, d, "its parameters are: %s", t.at);
}

static void arrange(ccn__invoke *v, const ccn__arg *args, uint32_t nargs, ccn__val *vals, ccn__span *spans) {
  const ccn__ast *ast = v->program->ast;
  ccn__diags *ds = v->rt->diags;
  uint32_t next = 0;
  ccn__diag *d;
  bool *given = CCN__NEWN(v->arena, bool, ast->params.n + 1), named = false;
  ccn__index by_name = {0};
  for (uint32_t i = 0; i < nargs; i++) named |= args[i].name != NULL;
  for (uint32_t k = 0; k < ast->params.n && named; k++)
    ccn__index_add(v->arena, &by_name, ast->params.at[k]->name, 0, k);
  for (uint32_t i = 0; i < nargs; i++) {
    uint32_t k = args[i].name ? ccn__index_find(&by_name, args[i].name, 0) : next++;
    if (k >= ast->params.n || given[k]) {
      if (k < ast->params.n)
        d = ccn__error(ds, 806, args[i].span, "given twice", "parameter `%s` of `%s` is given twice",
                       ast->params.at[k]->name, v->name);
      else if (args[i].name)
        d = ccn__error(ds, 806, args[i].nspan, "not expected", "`%s` has no parameter `%s`", v->name,
                       args[i].name);
      else
        d = ccn__error(ds, 800, args[i].span, "not expected", "too many arguments for `%s`, which takes %u",
                       v->name, ast->params.n);
      ccn__note(ds, d, ast->nspan, "defined here");
      ccn__rt_raise(v->rt, d);
    }
    given[k] = true;
    vals[k] = args[i].value;
    spans[k] = args[i].span;
    if (vals[k].kind == CCN__V_NONE)
      ccn__rt_raise(v->rt, ccn__error(ds, 800, args[i].span, "has no value",
                                      "the argument for `%s` is nothing", ast->params.at[k]->name));
  }
  for (uint32_t k = 0; k < ast->params.n; k++) {
    if (given[k] || ast->params.at[k]->b) continue;
    d = ccn__error(ds, 800, v->call, "one is missing", "`%s` needs an argument for its parameter `%s`",
                   v->name, ast->params.at[k]->name);
    ccn__note(ds, d, ast->params.at[k]->span, "declared here");
    hint_parameters(ds, d, ast);
    ccn__rt_raise(v->rt, d);
  }
}

static void flatten_args(ccn__invoke *v, const ccn__ast *type, const ccn__ast *param, ccn__val x,
                         ccn__span span) {
  bool list = type->kind == CCN__AST_LIST_TYPE && !is_bundle(type), tuple = type->kind == CCN__AST_TUPLE_TYPE;
  if (!list && !tuple) {
    ccn__invoke_actual(v, v->nactual++, x, span, param);
    return;
  }
  for (uint32_t i = 0; i < x.list->n; i++)
    flatten_args(v, list ? type->a : type->list.at[i], param, x.list->at[i], span);
}

/* ---- running ---- */

static bool is_sharded(const ccn__invoke *v, uint32_t i) {
  return ccn__attr_find(v->g->nodes.at[v->g->params.at[i].node].attrs, CCN__A_SHARD) != NULL;
}

/* An updated argument that was converted for the call, or made of a list, gets its new value in its own form. What
 * the schedule shards stays in slices. */
static void store_back(ccn__invoke *v, uint32_t i) {
  ccn__rt *rt = v->rt;
  ccn__actual *a = &v->actual[i];
  const bool updated = v->g->params.at[i].update != CCN__NO_ID, cut = is_sharded(v, i);
  if (a->given) {
    if (a->given == a->tensor || a->given->home == a->tensor) return;
    if (cut && ccn__tensor_cut(a->given, a->tensor)) return;
    if (updated) ccn__tensor_take(a->given, ccn__tensor_convert(rt, a->tensor, a->given->place));
    return;
  }
  if (!a->list || ccn__list_home(a->list) == a->tensor) return;
  if ((cut && ccn__list_cut(a->list, a->tensor)) || !updated) return;
  ccn__tensor *flat = ccn__bundle_uncut(rt, a->tensor);
  for (uint32_t k = 0; k < a->list->n; k++) {
    ccn__tensor *t = ccn__tensor_member(rt, flat, k);
    if (a->list->at[k].kind == CCN__V_TENSOR) {
      ccn__tensor *own = a->list->at[k].tensor;
      ccn__tensor_take(own, ccn__tensor_convert(rt, t, own->place));
    } else {
      a->list->at[k] = (ccn__val){.kind = CCN__V_TENSOR, .tensor = t};
    }
  }
}

void ccn__invoke_run(ccn__invoke *v) {
  ccn__rt *rt = v->rt;
  ccn__graph *g = v->g;
  ccn__tensor **arg = CCN__NEWN(v->arena, ccn__tensor *, v->nactual + 1),
              **out = CCN__NEWN(v->arena, ccn__tensor *, g->noutputs + 1);
  for (uint32_t i = 0; i < v->nactual; i++) arg[i] = v->actual[i].tensor;
  ccn__exec x = {.rt = rt,
                 .g = g,
                 .sym = v->sym,
                 .bundle = v->bundle,
                 .arg = arg,
                 .result = out,
                 .label = v->name,
                 .text = v->scheduled && v->scheduled->base ? (const void *)v->scheduled->with_call
                         : v->program                       ? (const void *)v->program->ast
                                                            : NULL,
                 .schedule = v->scheduled && v->scheduled->base ? v->scheduled->with->name : NULL,
                 .unshared = rt->unshared};
  ccn__frame frame = {.outer = rt->frames, .what = v->name, .call = v->call};
  rt->frames = &frame;
  if (rt->execute) rt->execute(&x);
  else ccn__interp(&x);
  rt->frames = frame.outer;
  for (uint32_t i = 0; i < v->nactual && !rt->trial; i++)
    if (g->params.at[i].update != CCN__NO_ID || is_sharded(v, i)) store_back(v, i);
  v->result = CCN__NONE_VAL;
  if (g->returns_tuple) {
    ccn__list *l = ccn__list_new(rt, CCN__V_TUPLE, g->noutputs);
    for (uint32_t i = 0; i < g->noutputs; i++)
      ccn__list_add(rt, l, (ccn__val){.kind = CCN__V_TENSOR, .tensor = out[i]});
    v->result = (ccn__val){.kind = CCN__V_TUPLE, .list = l};
  } else if (g->noutputs) {
    v->result = (ccn__val){.kind = CCN__V_TENSOR, .tensor = out[0]};
  }
}

/* ---- calls ---- */

typedef struct call_args {
  ccn__program *program, *scheduled;
  const ccn__arg *args;
  uint32_t nargs;
  ccn__span call;
  ccn__val result;
} call_args;

/* f<dp>(...) from the script: the program with its axes chosen; one object for each choice, so that its lowered
 * forms are found again. */
static ccn__program *with_axes(ccn__rt *rt, ccn__program *p, ccn__ast_list axes, ccn__span call) {
  uint8_t choice[CCN__MAX_AXES] = {0};
  if (axes.n != p->ast->axes.n) {
    ccn__diag *d = ccn__error(rt->diags, 301, call, "which axes?", "`%s` has %u axis parameters, not %u",
                              p->name, p->ast->axes.n, axes.n);
    ccn__note(rt->diags, d, p->ast->nspan, "defined here");
    ccn__hint(rt->diags, d, "name one axis of the mesh for each");
    ccn__rt_raise(rt, d);
  }
  for (uint32_t i = 0; i < axes.n; i++) {
    uint32_t a = 0;
    while (a < rt->mesh.naxes && rt->mesh.name[a] != axes.at[i]->name) a++;
    if (a == rt->mesh.naxes)
      ccn__rt_raise(rt, ccn__error(rt->diags, 311, axes.at[i]->span, "unknown axis",
                                   "the mesh has no axis `%s`", axes.at[i]->name));
    for (uint32_t j = 0; j < i; j++)
      if (choice[j] == a)
        ccn__rt_raise(rt, ccn__error(rt->diags, 311, axes.at[i]->span, "named twice",
                                     "two axis parameters of `%s` cannot mean the same axis", p->name));
    choice[i] = (uint8_t)a;
  }
  for (ccn__program *q = p->choices; q; q = q->next_choice)
    if (memcmp(q->axis_choice, choice, axes.n) == 0) return q;
  uint8_t *own = CCN__NEWN(rt->arena, uint8_t, CCN__MAX_AXES);
  memcpy(own, choice, sizeof choice);
  ccn__program *q = CCN__NEW(rt->arena, ccn__program); /* in the arena: it lives as long as the program may */
  *q = *p;
  q->axis_choice = own;
  q->specs = NULL;
  q->choices = NULL;
  q->next_choice = p->choices;
  p->choices = q;
  return q;
}

static ccn__program *choose_axes(ccn__rt *rt, ccn__program *p, ccn__span call) {
  ccn__ast_list axes = rt->call_axes;
  rt->call_axes = (ccn__ast_list){0};
  if (axes.n && !p->generic)
    ccn__rt_raise(rt, ccn__error(rt->diags, 800, call, "here", "`%s` has no axis parameters", p->name));
  if (axes.n) return with_axes(rt, p, axes, call);
  if (!p->generic) return p;
  if (!rt->mesh.naxes) {
    ccn__diag *d = ccn__error(rt->diags, 300, call, "over which axis?",
                              "`%s` is generic over a mesh axis, but the script declares no mesh", p->name);
    ccn__hint(rt->diags, d, "begin the script with `mesh (dp)`");
    ccn__rt_raise(rt, d);
  }
  if (p->ast->axes.n == 1 && rt->mesh.naxes == 1) return p;
  ccn__diag *d = ccn__error(rt->diags, 301, call, "which axis?",
                            "`%s` is generic over %u %s: say which, as in `%s<%s>(...)`", p->name,
                            p->ast->axes.n, p->ast->axes.n == 1 ? "axis" : "axes", p->name, rt->mesh.name[0]);
  ccn__note(rt->diags, d, p->ast->nspan, "defined here");
  ccn__hint(rt->diags, d, "name the axes between the name and the arguments, as in `%s<%s>(...)`", p->name,
            rt->mesh.name[0]);
  ccn__rt_raise(rt, d);
}

static void call_body(ccn__rt *rt, ccn__arena *arena, void *user) {
  call_args *c = user;
  ccn__program *p = c->program;
  uint32_t n = p->ast->params.n;
  ccn__val *vals = CCN__NEWN(arena, ccn__val, n + 1);
  ccn__span *spans = CCN__NEWN(arena, ccn__span, n + 1);
  ccn__invoke v = {
    .rt = rt, .arena = arena, .program = p, .scheduled = c->scheduled, .name = p->name, .call = c->call};
  arrange(&v, c->args, c->nargs, vals, spans);
  v.g = spec(&v, vals);
  v.actual = CCN__NEWN(arena, ccn__actual, v.g->params.n + 1);
  for (uint32_t i = 0; i < n; i++)
    if (vals[i].kind != CCN__V_NONE)
      flatten_args(&v, p->ast->params.at[i]->a, p->ast->params.at[i], vals[i], spans[i]);
  ccn__invoke_bind(&v);
  ccn__invoke_run(&v);
  c->result = v.result;
}

ccn__val ccn__program_call(ccn__rt *rt, ccn__program *p, const ccn__arg *args, uint32_t nargs,
                           ccn__span call) {
  ccn__program *scheduled = p;
  rt->ncalls++;
  while (p->base) p = p->base;
  call_args c = {
    .program = choose_axes(rt, p, call), .scheduled = scheduled, .args = args, .nargs = nargs, .call = call};
  ccn__with_arena(rt, call_body, &c);
  return c.result;
}

/* driver.c: the path of a text, from source to what it does.
 *
 *   source ──► parse ──► AST ──► names ──► program values ──► check ──► typed graphs
 *                         │                                               │
 *                    dump "ast"          run the script              dump "graph"
 *                                              │
 *                       statement by statement: script.c ── a call of a program or op ──► program.c:
 *                       specialise (lower.c, infer.c) ──► graph ──► interpreter (interp.c) ──► tensors
 *
 * Each stage is one call in ccn__drive and runs only if the stages before it reported nothing. Imported
 * modules go the same way, from their import statement (modules.c). Entries of a session (ccn__drive_entry) go
 * the same way too, but begin with what the session knows.
 * SPDX-License-Identifier: Apache-2.0 */
#include "driver.h"

#include "parser.h"
#include "record.h"
#include "schedule.h"

/* ---- stages -------------------------------------------------------------------------------------------- */

static const ccn__ast *parse(ccn__state *s, const char *name, const char *text, size_t size,
                             bool *incomplete) {
  uint32_t source = ccn__source_add(&s->rt, name, text, size);
  return ccn__parse(&s->arena, &s->names, &s->diags, source, incomplete);
}

static void dump_ast(ccn__state *s, const ccn__job *job, const ccn__ast *ast) {
  ccn__text t;
  ccn__text_init(&t, &s->arena);
  ccn__ast_print(ast, &t);
  if (t.n && job->write) job->write(t.at, t.n, job->user);
}

/* The names that every main script has. */
static ccn__env *main_names(ccn__rt *rt) {
  ccn__env *env = ccn__env_new(rt, NULL);
  ccn__roots_push(rt, env);
  ccn__list *args = ccn__list_new(rt, CCN__V_LIST, (uint32_t)rt->options->nargs);
  for (size_t i = 0; i < rt->options->nargs; i++)
    ccn__list_add(rt, args, ccn__val_string(rt, rt->options->args[i], strlen(rt->options->args[i])));
  ccn__env_set(rt, env, ccn__internz(rt->names, "args"), ccn__list_val(args));
  ccn__host_names(rt, env);
  rt->roots.n--;
  return env;
}

static void check_names(ccn__state *s, const ccn__ast *ast, ccn__program_list *programs) {
  ccn__env *env = main_names(&s->rt);
  *ccn__env_find(env, ccn__internz(&s->names, "args")) = CCN__NONE_VAL; /* known when the script runs */
  ccn__names_check(&s->rt, ast, true, env, programs);
}

/* Also after errors of the names: programs are checked each on its own. */
static void check_programs(ccn__state *s, const ccn__job *job, const ccn__ast *ast,
                           const ccn__program_list *programs) {
  for (uint32_t i = 0; i < programs->n; i++) {
    ccn__program *p = programs->at[i];
    ccn__rt_poll(&s->rt);
    if (p->base && s->diags.errors) continue; /* schedules build on programs and names that are right */
    ccn__graph *g = p->base ? ccn__program_check_schedules(&s->rt, p) : ccn__program_check(&s->rt, p);
    bool dump = p->base ? job->dump_scheduled : job->dump_graph;
    const uint32_t source = p->base ? p->with_call->span.source : p->ast->span.source;
    if (!g || !dump || s->diags.errors || source != ast->span.source) continue;
    ccn__text t;
    ccn__text_init(&t, &s->arena);
    ccn__graph_print(g, &t);
    if (t.n && job->write) job->write(t.at, t.n, job->user);
  }
}

void ccn__drive_run(ccn__state *s, const ccn__ast *ast) {
  ccn__rt_unwind(&s->rt);
  s->rt.mesh = (ccn__mesh){0};
  s->rt.mesh_span = (ccn__span){0};
  s->rt.world = 1;
  s->rt.globals = main_names(&s->rt);
  ccn__script_run(&s->rt, s->rt.globals, ast);
}

void ccn__drive(ccn__state *s, const ccn__job *job) {
  ccn__program_list programs = {0};
  const ccn__ast *ast = parse(s, job->name, job->text, job->size, NULL);
  if (s->diags.errors) return;
  if (job->dump_ast) dump_ast(s, job, ast);
  if (job->last == CCN__STAGE_PARSE) return;
  check_names(s, ast, &programs);
  check_programs(s, job, ast, &programs);
  if (s->diags.errors || job->last == CCN__STAGE_CHECK) return;
  ccn__plan_dump dump = {.job = job};
  if (job->dump_plan) {
    s->rt.execute = ccn__backend_dump;
    s->rt.execute_user = &dump;
  }
  if (job->instead) job->instead(s, ast, job);
  else ccn__drive_run(s, ast);
}

void ccn__drive_graph(ccn__state *s, const ccn__job *job) {
  ccn__graph_list graphs = {0};
  uint32_t source = ccn__source_add(&s->rt, job->name, job->text, job->size);
  if (!ccn__graph_parse(&s->arena, &s->names, &s->diags, source, &graphs)) return;
  for (uint32_t i = 0; i < graphs.n; i++) {
    ccn__text t;
    ccn__text_init(&t, &s->arena);
    ccn__graph_print(graphs.at[i], &t);
    if (t.n && job->write) job->write(t.at, t.n, job->user);
  }
}

/* ---- sessions ------------------------------------------------------------------------------------------ */

ccn__env *ccn__session_env(ccn__state *s) {
  if (!s->assigned) {
    s->assigned = ccn__env_new(&s->rt, NULL);
    s->assigned->obj.pinned = true;
  }
  if (!s->rt.globals) s->rt.globals = main_names(&s->rt);
  return s->rt.globals;
}

ccn__module *ccn__main_module(ccn__rt *rt, const char *name) {
  ccn__module *m = ccn__obj_new(rt, CCN__V_MODULE, sizeof *m);
  m->path = ccn__arena_strndup(rt->arena, name, strlen(name));
  m->env = main_names(rt);
  return m;
}

/* What the check may know: the values of what cannot change by itself. */
static ccn__env *known_names(ccn__rt *rt, const ccn__env *from) {
  ccn__env *to = ccn__env_new(rt, NULL);
  for (uint32_t i = 0; i < from->n; i++) {
    ccn__val v = from->at[i].value;
    switch (v.kind) {
    case CCN__V_LIST:
    case CCN__V_TUPLE:
    case CCN__V_TENSOR: v = CCN__NONE_VAL; break;
    default: break;
    }
    ccn__env_set(rt, to, from->at[i].name, v);
  }
  return to;
}

/* Tensors know their ranks, and lowered programs their mesh: a mesh comes before them. */
static bool mesh_comes_late(ccn__rt *rt) {
  ccn__collect(rt);
  for (const ccn__obj *o = rt->objects; o; o = o->next) {
    if (o->kind == CCN__V_TENSOR) return true;
    const ccn__program *p = o->kind == CCN__V_PROGRAM ? (const ccn__program *)o : NULL;
    if (p && (p->specs || p->choices)) return true;
  }
  return false;
}

static bool check_entry(ccn__state *s, ccn__entry *e, const ccn__ast *ast) {
  ccn__rt *rt = &s->rt;
  ccn__program_list programs = {0};
  const ccn__ast *first = ast->list.n ? ast->list.at[0] : NULL;
  if (first && first->kind == CCN__AST_MESH && !rt->mesh_span.source && mesh_comes_late(rt)) {
    ccn__diag *d = ccn__error(rt->diags, 300, first->span, "too late",
                              "a mesh is declared before the first tensor and the first call of a program");
    ccn__hint(rt->diags, d, "begin a new session with it");
    return false;
  }
  ccn__names_check_entry(rt, ast, known_names(rt, e->env), e->assigned, &programs);
  check_programs(s, &(ccn__job){0}, ast, &programs);
  return s->diags.errors == 0;
}

/* What the check changes is put back: the mesh is declared when the statement runs. */
static bool check_entry_apart(ccn__state *s, ccn__entry *e, const ccn__ast *ast) {
  ccn__rt *rt = &s->rt;
  const ccn__mesh mesh = rt->mesh;
  const ccn__span span = rt->mesh_span;
  const uint32_t world = rt->world;
  volatile bool good = false;
  ccn__trap trap;
  CCN__TRY(rt->heap, trap)
  { good = check_entry(s, e, ast); }
  CCN__CATCH(rt->heap, trap)
  {}
  rt->mesh = mesh;
  rt->mesh_span = span;
  rt->world = world;
  if (trap.status != CCN_OK) ccn__throw(rt->heap, trap.status);
  return good;
}

static bool is_expression(ccn__state *s, const ccn__ast *ast) {
  if (ast->list.n == 1 && ast->list.at[0]->kind == CCN__AST_EXPR) return true;
  ccn__diag *d = ccn__error(&s->diags, 10, ast->span, "no expression", "only an expression has a type");
  ccn__hint(&s->diags, d, "write one expression, or the name of a program");
  return false;
}

static void entry_body(ccn__state *s, ccn__entry *e) {
  const ccn__ast *ast = parse(s, e->name, e->text, e->size, &e->incomplete);
  if (s->diags.errors || (e->trial && !is_expression(s, ast)) || !check_entry_apart(s, e, ast)) return;
  e->value = ccn__script_value(&s->rt, e->env, ast, e->noted ? &s->journal : NULL);
}

void ccn__drive_entry(ccn__state *s, ccn__entry *e) {
  struct ccn__module_list *const modules = ccn__modules_mark(&s->rt);
  ccn__trap trap;
  ccn__roots_push(&s->rt, e->env);
  ccn__roots_push(&s->rt, e->assigned);
  CCN__TRY(&s->context->heap, trap)
  { entry_body(s, e); }
  CCN__CATCH(&s->context->heap, trap)
  {}
  if (trap.status != CCN_OK || s->diags.errors) ccn__modules_back(&s->rt, modules);
  if (trap.status != CCN_OK) ccn__throw(&s->context->heap, trap.status);
  s->rt.roots.n -= 2;
}

/* ---- the state between texts --------------------------------------------------------------------------- */

uint32_t ccn__source_add(ccn__rt *rt, const char *name, const char *text, size_t size) {
  ccn__diags *ds = rt->diags;
  uint32_t n = ds->nsources ? ds->nsources : 1; /* number 0 means nowhere */
  ccn__source *s = CCN__NEW(rt->arena, ccn__source);
  if (size >= UINT32_MAX) ccn__throw(rt->heap, CCN_OUT_OF_MEMORY);
  s->name = ccn__arena_strndup(rt->arena, name, strlen(name));
  s->text = ccn__arena_strndup(rt->arena, text, size);
  s->size = (uint32_t)size;
  if (n == 1 || (n & (n - 1)) == 0) { /* full: a power of two */
    ccn__source **more = CCN__NEWN(rt->arena, ccn__source *, 2 * n);
    for (uint32_t i = 1; i < n; i++) more[i] = ds->sources[i];
    if (n == 1) more[0] = CCN__NEW(rt->arena, ccn__source), more[0]->name = more[0]->text = "";
    else more[0] = ds->sources[0];
    ds->sources = more;
  }
  ds->sources[n] = s;
  ds->nsources = n + 1;
  return n;
}

void ccn__state_reset(ccn__state *s, ccn_context *c) {
  ccn__rt_free(&s->rt);
  ccn__arena_free(&s->told);
  ccn__arena_free(&s->arena);
  ccn__names_init(&s->names, &s->arena);
  s->diags = (ccn__diags){.arena = &s->told};
  ccn__rt_init(&s->rt, &c->heap, &s->arena, &s->names, &s->diags, &c->options);
  s->rt.schedule = ccn__schedule_apply;
  s->rt.execute = ccn__backend_find(c->options.backend)->execute;
  s->rt.recording = s->rt.execute == ccn__record_execute;
  s->rt.interrupt = &c->interrupt;
  s->rt.hosts = &c->hosts;
  s->rt.host_ops = &c->host_ops;
  s->assigned = NULL;
  s->journal = (ccn__journal){0};
  s->places = NULL;
}

void ccn__state_begin(ccn__state *s) {
  ccn__source **sources = s->diags.sources;
  uint32_t n = s->diags.nsources;
  ccn__arena_free(&s->told);
  s->diags = (ccn__diags){.arena = &s->told, .sources = sources, .nsources = n};
}

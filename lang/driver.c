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
 * modules go the same way, from their import statement (modules.c).
 * SPDX-License-Identifier: Apache-2.0 */
#include "driver.h"

#include "parser.h"
#include "schedule.h"

/* ---- stages -------------------------------------------------------------------------------------------- */

static const ccn__ast *parse(ccn_context *c, const ccn__job *job) {
  uint32_t source = ccn__source_add(&c->rt, job->name, job->text, job->size);
  return ccn__parse(&c->arena, &c->names, &c->diags, source, NULL);
}

static void dump_ast(ccn_context *c, const ccn__job *job, const ccn__ast *ast) {
  ccn__text t;
  ccn__text_init(&t, &c->arena);
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
  rt->roots.n--;
  return env;
}

static void check_names(ccn_context *c, const ccn__ast *ast, ccn__program_list *programs) {
  ccn__env *env = main_names(&c->rt);
  *ccn__env_find(env, ccn__internz(&c->names, "args")) = CCN__NONE_VAL; /* known when the script runs */
  ccn__names_check(&c->rt, ast, true, env, programs);
}

/* Also after errors of the names: programs are checked each on its own. */
static void check_programs(ccn_context *c, const ccn__job *job, const ccn__ast *ast,
                           const ccn__program_list *programs) {
  for (uint32_t i = 0; i < programs->n; i++) {
    ccn__program *p = programs->at[i];
    ccn__rt_poll(&c->rt);
    if (p->base && c->diags.errors) continue; /* schedules build on programs and names that are right */
    ccn__graph *g = p->base ? ccn__program_check_schedules(&c->rt, p) : ccn__program_check(&c->rt, p);
    bool dump = p->base ? job->dump_scheduled : job->dump_graph;
    if (!g || !dump || c->diags.errors || p->ast->span.source != ast->span.source) continue;
    ccn__text t;
    ccn__text_init(&t, &c->arena);
    ccn__graph_print(g, &t);
    if (t.n && job->write) job->write(t.at, t.n, job->user);
  }
}

static void run(ccn_context *c, const ccn__ast *ast) {
  ccn__rt_unwind(&c->rt);
  c->rt.mesh = (ccn__mesh){0};
  c->rt.mesh_span = (ccn__span){0};
  c->rt.world = 1;
  c->rt.globals = main_names(&c->rt);
  ccn__script_run(&c->rt, c->rt.globals, ast);
}

void ccn__drive(ccn_context *c, const ccn__job *job) {
  ccn__program_list programs = {0};
  const ccn__ast *ast = parse(c, job);
  if (c->diags.errors) return;
  if (job->dump_ast) dump_ast(c, job, ast);
  if (job->last == CCN__STAGE_PARSE) return;
  check_names(c, ast, &programs);
  check_programs(c, job, ast, &programs);
  if (c->diags.errors || job->last == CCN__STAGE_CHECK) return;
  run(c, ast);
}

void ccn__drive_graph(ccn_context *c, const ccn__job *job) {
  ccn__graph_list graphs = {0};
  uint32_t source = ccn__source_add(&c->rt, job->name, job->text, job->size);
  if (!ccn__graph_parse(&c->arena, &c->names, &c->diags, source, &graphs)) return;
  for (uint32_t i = 0; i < graphs.n; i++) {
    ccn__text t;
    ccn__text_init(&t, &c->arena);
    ccn__graph_print(graphs.at[i], &t);
    if (t.n && job->write) job->write(t.at, t.n, job->user);
  }
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

void ccn__context_reset(ccn_context *c) {
  ccn__rt_free(&c->rt);
  ccn__arena_free(&c->told);
  ccn__arena_free(&c->arena);
  ccn__names_init(&c->names, &c->arena);
  c->diags = (ccn__diags){.arena = &c->told};
  ccn__rt_init(&c->rt, &c->heap, &c->arena, &c->names, &c->diags, &c->options);
  c->rt.schedule = ccn__schedule_apply;
}

/* api_shell.c: what shells and editors ask about a session: its script, names, graphs, types; options that
 * may change; formatting.
 * SPDX-License-Identifier: Apache-2.0 */
#include "api.h"
#include "call.h"
#include "format.h"

typedef struct ask {
  const char *name, *text;
  size_t size;
  ccn_name_fn tell;
  ccn_write_fn write;
  void *user;
  bool incomplete;
} ask;

static void put(const ask *q, const ccn__text *t) {
  if (t->n) q->write(t->at, t->n, q->user);
}

/* ---- the session as a script --------------------------------------------------------------------------- */

static bool calls_something(const ccn__ast *n) {
  if (!n) return false;
  if (n->kind == CCN__AST_CALL || calls_something(n->a) || calls_something(n->b) || calls_something(n->c))
    return true;
  for (uint32_t i = 0; i < n->list.n; i++)
    if (calls_something(n->list.at[i])) return true;
  return false;
}

static void put_statement(ccn__state *s, ccn__text *t, const ccn__ast *n) {
  const ccn__source *source = s->diags.sources[n->span.source];
  if (n->kind == CCN__AST_EXPR && !calls_something(n->a)) return;
  ccn__text_add(t, source->text + n->span.start, n->span.end - n->span.start);
  ccn__text_putc(t, '\n');
}

static void write_session(ccn__state *s, void *user) {
  const ccn__journal *j = &s->journal;
  const ccn__ast *mesh = NULL; /* the same one may have been declared several times */
  ccn__text t;
  ccn__scratch_begin(&s->rt, &t);
  for (uint32_t i = 0; i < j->n && !mesh; i++)
    if (j->at[i]->kind == CCN__AST_MESH) mesh = j->at[i];
  if (mesh) put_statement(s, &t, mesh);
  for (uint32_t i = 0; i < j->n; i++)
    if (j->at[i]->kind != CCN__AST_MESH) put_statement(s, &t, j->at[i]);
  put(user, &t);
  ccn__scratch_end(&s->rt);
}

ccn_status ccn_session_write(ccn_context *c, ccn_write_fn write, void *user) {
  if (!c || !write) return CCN_INVALID_ARGUMENT;
  return ccn__guarded(c, &c->session, 0, write_session, &(ask){.write = write, .user = user});
}

/* ---- names --------------------------------------------------------------------------------------------- */

static void tell_scope(const ask *q, const ccn__env *env) {
  for (uint32_t i = 0; i < env->n; i++) q->tell(env->at[i].name, ccn__kind_of(env->at[i].value), q->user);
}

/* The names in the program's text, whether it checks or not. */
static void tell_bindings(const ask *q, const ccn__ast *n) {
  if (!n) return;
  if (n->kind == CCN__AST_LET || n->kind == CCN__AST_ASSIGN) {
    const ccn__ast *target = n->a;
    if (target->kind == CCN__AST_NAME) q->tell(target->name, CCN_KIND_OTHER, q->user);
    for (uint32_t i = 0; i < target->list.n; i++)
      if (target->list.at[i]->kind == CCN__AST_NAME)
        q->tell(target->list.at[i]->name, CCN_KIND_OTHER, q->user);
    return;
  }
  tell_bindings(q, n->a);
  tell_bindings(q, n->b);
  tell_bindings(q, n->c);
  for (uint32_t i = 0; i < n->list.n; i++) tell_bindings(q, n->list.at[i]);
}

static void tell_names(ccn__state *s, void *user) {
  const ask *q = user;
  const char *member;
  const ccn__env *env = ccn__session_env(s);
  if (!q->name) {
    tell_scope(q, env);
    return;
  }
  const ccn__val *v = ccn__env_find(env, ccn__internz(&s->names, q->name));
  if (!v) return;
  if (v->kind == CCN__V_MODULE) tell_scope(q, v->module->env);
  if (v->kind == CCN__V_PROGRAM) {
    for (uint32_t i = 0; i < v->program->ast->params.n; i++)
      q->tell(v->program->ast->params.at[i]->name, CCN_KIND_OTHER, q->user);
    tell_bindings(q, v->program->ast->b);
  }
  for (uint32_t i = 0; (member = ccn__member_name((uint8_t)v->kind, i)); i++)
    q->tell(member, CCN_KIND_OTHER, q->user);
}

ccn_status ccn_session_names(ccn_context *c, const char *of, ccn_name_fn fn, void *user) {
  if (!c || !fn) return CCN_INVALID_ARGUMENT;
  return ccn__guarded(c, &c->session, 0, tell_names, &(ask){.name = of, .tell = fn, .user = user});
}

/* ---- graphs -------------------------------------------------------------------------------------------- */

static ccn__graph *checked(ccn__state *s, ccn__program *p) {
  ccn__graph *g = p->base ? ccn__program_check_schedules(&s->rt, p) : ccn__program_check(&s->rt, p);
  if (!g) ccn__throw(s->rt.heap, CCN_ERROR);
  return g;
}

static void write_graph(ccn__state *s, void *user) {
  const ask *q = user;
  ccn__text t;
  ccn__val v = ccn__function_value(s, ccn__session_env(s), q->name);
  if (v.kind != CCN__V_PROGRAM)
    ccn__fail(&s->rt, 805, (ccn__span){0}, NULL, "only programs have graphs", "`%.100s` is %s", q->name,
              ccn__val_kind_name(v));
  ccn__text_init(&t, &s->arena);
  ccn__graph_print(checked(s, v.program), &t);
  put(q, &t);
}

ccn_status ccn_session_graph(ccn_context *c, const char *program, ccn_write_fn write, void *user) {
  if (!c || !program || !write || strlen(program) > UINT16_MAX) return CCN_INVALID_ARGUMENT;
  return ccn__guarded(c, &c->session, CCN__RUNS, write_graph,
                      &(ask){.name = program, .write = write, .user = user});
}

/* ---- types --------------------------------------------------------------------------------------------- */

static void put_params(ccn__state *s, ccn__text *t, const ccn__ast *f) {
  ccn__text_printf(t, " %s(", f->name ? f->name : "");
  for (uint32_t i = 0; i < f->params.n; i++) {
    const ccn__ast *p = f->params.at[i];
    ccn__text_printf(t, i ? ", %s" : "%s", p->name);
    if (p->a)
      ccn__text_printf(t, ": %.*s", (int)(p->a->span.end - p->a->span.start),
                       s->diags.sources[p->a->span.source]->text + p->a->span.start);
    if (p->b) ccn__text_puts(t, "?");
  }
  ccn__text_putc(t, ')');
}

static void put_signature(ccn__state *s, ccn__text *t, ccn__program *p) {
  const ccn__program *root = p;
  while (root->base) root = root->base;
  ccn__text_puts(t, "program");
  put_params(s, t, root->ast);
  const ccn__graph *g = checked(s, p);
  for (uint32_t i = 0; i < g->noutputs; i++) {
    ccn__text_puts(t, i ? ", " : g->noutputs > 1 ? " -> (" : " -> ");
    ccn__type_print(g, g->nodes.at[g->outputs[i]].type, t);
  }
  if (g->noutputs > 1) ccn__text_putc(t, ')');
}

static void put_type(ccn__state *s, ccn__text *t, ccn__val v) {
  if (v.kind == CCN__V_TENSOR) {
    ccn__text_puts(t, ccn__tensor_describe(&s->rt, v.tensor));
  } else if (v.kind == CCN__V_PROGRAM) {
    put_signature(s, t, v.program);
  } else if (v.kind == CCN__V_FN) {
    ccn__text_puts(t, "fn");
    put_params(s, t, v.fn->ast);
  } else if (v.kind == CCN__V_LIST || v.kind == CCN__V_TUPLE) {
    ccn__text_printf(t, "%s of %u", ccn__val_kind_name(v), v.list->n);
  } else if (ccn__is_number(v)) {
    ccn__text_puts(t, v.kind == CCN__V_INT ? "a whole number" : "a float");
  } else {
    ccn__text_puts(t, ccn__val_kind_name(v));
  }
}

static void type_body(ccn__state *s, ask *q) {
  ccn__entry e = {.name = q->name,
                  .text = q->text,
                  .size = q->size,
                  .env = ccn__session_env(s),
                  .assigned = s->assigned,
                  .trial = true};
  ccn__drive_entry(s, &e);
  q->incomplete = e.incomplete;
  if (s->diags.errors) return;
  ccn__text t;
  ccn__text_init(&t, &s->arena);
  put_type(s, &t, e.value);
  put(q, &t);
}

/* Without what the host hears of a run. */
static void write_type(ccn__state *s, void *user) {
  ccn__rt *rt = &s->rt;
  const ccn_options *own = rt->options;
  ccn_options quiet = *own;
  ccn__trap trap;
  quiet.print = quiet.progress = quiet.watch_print = NULL;
  quiet.write = NULL;
  rt->options = &quiet;
  rt->trial = true;
  CCN__TRY(rt->heap, trap)
  { type_body(s, user); }
  CCN__CATCH(rt->heap, trap)
  {}
  rt->options = own;
  rt->trial = false;
  if (trap.status != CCN_OK) ccn__throw(rt->heap, trap.status);
}

ccn_status ccn_session_type(ccn_context *c, const char *name, const char *text, size_t size,
                            ccn_write_fn write, void *user) {
  ask q = {.name = name, .text = text, .size = size, .write = write, .user = user};
  if (!c || !name || !write || (!text && size) || size >= UINT32_MAX) return CCN_INVALID_ARGUMENT;
  ccn_status status = ccn__guarded(c, &c->session, CCN__RUNS, write_type, &q);
  return status == CCN_ERROR && q.incomplete ? CCN_INCOMPLETE : status;
}

/* ---- options ------------------------------------------------------------------------------------------- */

/* A host that changes them often must not make the context grow: the old ones go. */
static void update_options(ccn__state *s, void *user) {
  const ccn_options *o = user;
  ccn_context *c = s->context;
  ccn__arena next;
  ccn__trap trap;
  const char *const *volatile watch = NULL;
  ccn__arena_init(&next, &c->heap);
  CCN__TRY(&c->heap, trap)
  { watch = ccn__copy_texts(&next, o->watch, o->nwatch); }
  CCN__CATCH(&c->heap, trap)
  {
    ccn__arena_free(&next);
    ccn__throw(&c->heap, trap.status);
  }
  ccn__arena_free(&c->watched);
  c->watched = next;
  c->options.watch = watch;
  c->options.nwatch = watch ? o->nwatch : 0;
  c->options.check_nan = o->check_nan;
  c->options.time_limit_ms = o->time_limit_ms;
  c->options.memory_limit = c->heap.limit = o->memory_limit;
}

ccn_status ccn_options_update(ccn_context *c, const ccn_options *given) {
  ccn_options o;
  if (!c || !given || !given->size) return CCN_INVALID_ARGUMENT;
  ccn_options_init(&o, sizeof o);
  memcpy(&o, given, given->size < sizeof o ? given->size : sizeof o);
  return ccn__guarded(c, &c->session, 0, update_options, &o);
}

/* ---- formatting ---------------------------------------------------------------------------------------- */

static void format(ccn__state *s, void *user) {
  const ask *q = user;
  ccn__text t;
  ccn__text_init(&t, &s->arena);
  uint32_t source = ccn__source_add(&s->rt, q->name, q->text, q->size);
  if (ccn__format_source(&s->arena, &s->names, &s->diags, source, &t)) put(q, &t);
}

ccn_status ccn_format(ccn_context *c, const char *name, const char *text, size_t size, ccn_write_fn write,
                      void *user) {
  ask q = {.name = name, .text = text, .size = size, .write = write, .user = user};
  if (!c || !name || !write || (!text && size) || size >= UINT32_MAX) return CCN_INVALID_ARGUMENT;
  return ccn__guarded(c, &c->once, CCN__RUNS | CCN__FRESH, format, &q);
}

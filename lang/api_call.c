/* api_call.c: modules, their functions and signatures, and calls that are used again and again.
 * SPDX-License-Identifier: Apache-2.0 */
#include "api.h"
#include "call.h"
#include "parser.h"

struct ccn_function { /* in the arena of the session */
  ccn_function *next;
  ccn_module *module;
  const char *name;
  ccn__val v; /* FN or PROGRAM; kept alive by the module's list */
  ccn_param *param, *result;
  uint32_t nparams, nresults;
};

struct ccn_module {
  ccn__handle h; /* a list: the module, then the values of its functions */
  ccn_function *first;
};

struct ccn_call {
  ccn__handle h; /* a list: the arguments, then the result */
  const ccn_function *f;
  ccn__arg *arg; /* one for each parameter */
};

/* ---- modules --------------------------------------------------------------------------------------------- */

typedef struct load_work {
  ccn__entry entry;
  ccn_module *module;
} load_work;

static void load(ccn__state *s, void *user) {
  load_work *w = user;
  ccn__rt *rt = &s->rt;
  (void)ccn__session_env(s);
  ccn__list *list = ccn__list_new(rt, CCN__V_LIST, 4);
  ccn__module *m = ccn__main_module(rt, w->entry.name);
  ccn__list_add(rt, list, (ccn__val){.kind = CCN__V_MODULE, .module = m});
  w->entry.env = m->env;
  w->entry.assigned = ccn__env_new(rt, NULL);
  ccn__drive_entry(s, &w->entry);
  if (!s->diags.errors) w->module = ccn__handle_new(s, sizeof *w->module, ccn__list_val(list));
}

ccn_status ccn_module_load(ccn_context *c, const char *name, const char *text, size_t size,
                           ccn_module **out) {
  load_work w = {.entry = {.name = name, .text = text, .size = size}};
  if (out) *out = NULL;
  if (!c || !out || !name || (!text && size) || size >= UINT32_MAX) return CCN_INVALID_ARGUMENT;
  ccn_status status = ccn__guarded(c, &c->session, CCN__RUNS, load, &w);
  *out = w.module;
  return status;
}

void ccn_module_release(ccn_module *m) {
  if (m) ccn__handle_release(&m->h);
}

/* ---- names of functions: "optim.adam@zero(gsum)" is `optim.adam with zero(adam.gsum)` --------------------- */

static bool name_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         (unsigned char)c >= 0x80;
}

/* One argument of a schedule: a name is a handle of the program's. */
static const char *schedule_argument(ccn__text *t, const char *at, const char *program, size_t length) {
  while (*at == ' ') at++;
  bool own = !strncmp(at, program, length) && at[length] == '.';
  bool name = name_letter(*at) && !(*at >= '0' && *at <= '9') && *at != '.';
  if (name && !own) ccn__text_printf(t, "%.*s.", (int)length, program);
  int depth = 0;
  for (; *at && (depth || (*at != ',' && *at != ')')); at++) {
    depth += (*at == '(' || *at == '[') - (*at == ')' || *at == ']');
    ccn__text_putc(t, *at);
  }
  return at;
}

static const char *with_text(ccn__rt *rt, const char *name) {
  ccn__text t;
  size_t base = strcspn(name, "@");
  const char *program = name, *at = name + base;
  ccn__text_init(&t, rt->arena);
  ccn__text_add(&t, name, base);
  for (const char *p = name; p < at; p++)
    if (*p == '.') program = p + 1;
  size_t length = (size_t)(at - program);
  while (*at == '@') {
    size_t n = 1 + strcspn(at + 1, "@(");
    ccn__text_puts(&t, " with ");
    ccn__text_add(&t, at + 1, n - 1);
    at += n;
    if (*at != '(') continue;
    do {
      ccn__text_putc(&t, *at);
      at = schedule_argument(&t, at + 1, program, length);
    } while (*at == ',');
    if (*at) ccn__text_putc(&t, *at++);
  }
  ccn__text_puts(&t, at); /* what does not belong there, for the parser to complain about */
  return t.n ? t.at : "";
}

ccn__val ccn__function_value(ccn__state *s, ccn__env *env, const char *name) {
  ccn__rt *rt = &s->rt;
  const char *text = with_text(rt, name);
  uint32_t source = ccn__source_add(rt, name, text, strlen(text));
  const ccn__ast *ast = ccn__parse(&s->arena, &s->names, &s->diags, source, NULL);
  if (s->diags.errors) ccn__throw(rt->heap, CCN_ERROR);
  const ccn__ast *e = ast->list.n == 1 && ast->list.at[0]->kind == CCN__AST_EXPR ? ast->list.at[0]->a : NULL;
  const ccn__ast *base = e;
  while (base && base->kind == CCN__AST_WITH) base = base->a;
  if (!base || (base->kind != CCN__AST_NAME && base->kind != CCN__AST_FIELD))
    ccn__fail(rt, 1, ast->span, "not a name",
              "functions are named \"adam\", \"optim.adam\" or \"adam@zero(gsum)\"",
              "this does not name a function");
  ccn__roots_push(rt, env);
  ccn__val v = ccn__eval(rt, env, e);
  rt->roots.n--;
  if (v.kind != CCN__V_PROGRAM && v.kind != CCN__V_FN)
    ccn__fail(rt, 805, e->span, ccn__val_kind_name(v), "programs and functions are called",
              "%s cannot be called", ccn__val_kind_name(v));
  return v;
}

/* ---- signatures ------------------------------------------------------------------------------------------ */

static const char *kept(ccn__state *s, const ccn__text *t) {
  return ccn__intern(&s->names, t->n ? t->at : "", t->n);
}

static const char *source_text(ccn__state *s, ccn__span span) {
  if (!span.source || span.source >= s->diags.nsources) return "";
  return ccn__intern(&s->names, s->diags.sources[span.source]->text + span.start, span.end - span.start);
}

static const char *placement_text(ccn__state *s, const ccn__graph *g, const ccn__type *t) {
  ccn__text text;
  ccn__scratch_begin(&s->rt, &text);
  for (uint32_t a = 0; a < t->naxes; a++) {
    if (t->place[a].kind == CCN__REPLICATED) continue;
    if (text.n) ccn__text_putc(&text, ' ');
    ccn__place_print(g, &t->place[a], &text);
    ccn__text_printf(&text, " over %s", g->mesh.name[a]);
  }
  const char *r = kept(s, &text);
  ccn__scratch_end(&s->rt);
  return r;
}

static void fill_type(ccn__state *s, ccn__graph *g, ccn__id id, ccn_param *p) {
  const ccn__type *t = g->nodes.at[id].type;
  p->dtype = t->dtype;
  p->placement = placement_text(s, g, t);
  if (t->bundle) return;
  p->ndim = t->rank;
  for (uint32_t d = 0; d < t->rank; d++) {
    ccn__text text;
    ccn__scratch_begin(&s->rt, &text);
    ccn__dim_print(t->dim[d], ccn__graph_symbol_name, g, &text);
    p->dims[d] = kept(s, &text);
    ccn__scratch_end(&s->rt);
  }
}

static ccn_param unknown(const char *name) {
  return (ccn_param){
    .size = sizeof(ccn_param), .name = name, .type = "", .dtype = -1, .ndim = -1, .placement = ""};
}

/* Lists and tuples have several nodes, or none, with names of their own: their type stays unknown. */
static void find_param(ccn__state *s, ccn__graph *g, const ccn__ast *ast, ccn_param *p) {
  for (uint32_t i = 0; i < g->params.n; i++) {
    if (g->nodes.at[g->params.at[i].node].name != ast->name) continue;
    fill_type(s, g, g->params.at[i].node, p);
    p->updated = g->params.at[i].update != CCN__NO_ID;
  }
}

static void fill_signature(ccn__state *s, ccn_function *f) {
  bool program = f->v.kind == CCN__V_PROGRAM;
  const ccn__ast *ast = program ? f->v.program->ast : f->v.fn->ast;
  ccn__graph *g = NULL;
  if (program) {
    ccn__program *p = f->v.program;
    g = p->base ? ccn__program_check_schedules(&s->rt, p) : ccn__program_check(&s->rt, p);
    if (!g && s->diags.errors) ccn__throw(s->rt.heap, CCN_ERROR);
  }
  f->nparams = ast->params.n;
  f->param = CCN__NEWN(&s->arena, ccn_param, f->nparams + 1);
  for (uint32_t i = 0; i < f->nparams; i++) {
    const ccn__ast *p = ast->params.at[i];
    f->param[i] = unknown(p->name);
    f->param[i].optional = p->b != NULL;
    if (p->a) f->param[i].type = source_text(s, p->a->span);
    if (g) find_param(s, g, p, &f->param[i]);
  }
  if (!g) return;
  f->nresults = g->noutputs;
  f->result = CCN__NEWN(&s->arena, ccn_param, f->nresults + 1);
  for (uint32_t i = 0; i < f->nresults; i++) {
    const ccn__node *n = &g->nodes.at[g->outputs[i]];
    f->result[i] = unknown(n->name ? n->name : n->autoname ? n->autoname : "");
    fill_type(s, g, g->outputs[i], &f->result[i]);
  }
}

typedef struct find_work {
  ccn_module *module;
  const char *name;
  ccn_function *f;
} find_work;

static void find_function(ccn__state *s, void *user) {
  find_work *w = user;
  ccn_module *m = w->module;
  for (ccn_function *f = m->first; f; f = f->next)
    if (!strcmp(f->name, w->name)) {
      w->f = f;
      return;
    }
  ccn_function *f = CCN__NEW(&s->arena, ccn_function);
  f->module = m;
  f->name = ccn__arena_strndup(&s->arena, w->name, strlen(w->name));
  f->v = ccn__function_value(s, m->h.hold.v.list->at[0].module->env, w->name);
  fill_signature(s, f);
  ccn__list_add(&s->rt, m->h.hold.v.list, f->v);
  f->next = m->first;
  w->f = m->first = f;
}

ccn_status ccn_module_function(ccn_module *m, const char *name, const ccn_function **out) {
  if (out) *out = NULL;
  if (!m || !name || !out || strlen(name) > UINT16_MAX) return CCN_INVALID_ARGUMENT;
  find_work w = {.module = m, .name = name};
  ccn__state *s = m->h.state;
  ccn_status status = ccn__guarded(s->context, &m->h.state, CCN__RUNS, find_function, &w);
  if (status == CCN_ERROR && s->diags.last && s->diags.last->code == 801) status = CCN_NOT_FOUND;
  *out = status == CCN_OK ? w.f : NULL;
  return status;
}

const char *ccn_function_name(const ccn_function *f) { return f ? f->name : NULL; }
size_t ccn_function_params(const ccn_function *f) { return f ? f->nparams : 0; }
size_t ccn_function_results(const ccn_function *f) { return f ? f->nresults : 0; }

static ccn_status copy_param(const ccn_param *from, size_t i, size_t n, ccn_param *out) {
  if (!out || out->size < offsetof(ccn_param, type)) return CCN_INVALID_ARGUMENT;
  if (i >= n) return CCN_NOT_FOUND;
  size_t size = out->size;
  memcpy(out, &from[i], size < sizeof *out ? size : sizeof *out);
  out->size = size;
  return CCN_OK;
}

ccn_status ccn_function_param(const ccn_function *f, size_t i, ccn_param *out) {
  return f ? copy_param(f->param, i, f->nparams, out) : CCN_INVALID_ARGUMENT;
}

ccn_status ccn_function_result(const ccn_function *f, size_t i, ccn_param *out) {
  return f ? copy_param(f->result, i, f->nresults, out) : CCN_INVALID_ARGUMENT;
}

int ccn_function_param_find(const ccn_function *f, const char *name) {
  for (uint32_t i = 0; f && name && i < f->nparams; i++)
    if (!strcmp(f->param[i].name, name)) return (int)i;
  return -1;
}

/* ---- calls ----------------------------------------------------------------------------------------------- */

static ccn__val *slots(const ccn_call *call) { return call->h.hold.v.list->at; }
static ccn__val *result_slot(const ccn_call *call) { return &slots(call)[call->f->nparams]; }

/* The tensors of an argument or a result. */
static void hold_tensors(ccn__val v, void (*hold)(ccn__val v)) {
  if (v.kind != CCN__V_LIST && v.kind != CCN__V_TUPLE) hold(v);
  else
    for (uint32_t i = 0; i < v.list->n; i++) hold(v.list->at[i]);
}

static void set_slot(ccn__val *slot, ccn__val v) {
  hold_tensors(v, ccn__val_hold); /* first: it may be the same */
  hold_tensors(*slot, ccn__val_let);
  *slot = v;
}

static void set_result(ccn_call *call, ccn__val v) { set_slot(result_slot(call), v); }

static void forget(ccn_call *call) {
  for (uint32_t i = 0; i < call->f->nparams; i++) set_slot(&slots(call)[i], CCN__NONE_VAL);
  set_result(call, CCN__NONE_VAL);
}

static void drop_call(ccn__handle *h) {
  ccn_call *call = (ccn_call *)(void *)h;
  forget(call);
  ccn__heap_free(h->state->rt.heap, call->arg, (call->f->nparams + 1) * sizeof *call->arg);
  ccn__handle_release(&call->f->module->h);
}

typedef struct call_work {
  const ccn_function *f;
  ccn_call *call;
  size_t i;
  ccn__val v;
  const char *text;
  size_t size;
  ccn_tensor *const *tensors;
  ccn_tensor *tensor;
  ccn_value *value;
} call_work;

static void create(ccn__state *s, void *user) {
  call_work *w = user;
  ccn__list *list = ccn__list_new(&s->rt, CCN__V_LIST, w->f->nparams + 1);
  for (uint32_t i = 0; i <= w->f->nparams; i++) ccn__list_add(&s->rt, list, CCN__NONE_VAL);
  size_t bytes = (w->f->nparams + 1) * sizeof(ccn__arg);
  ccn__arg *arg = ccn__heap_alloc(s->rt.heap, bytes);
  ccn__trap trap;
  CCN__TRY(s->rt.heap, trap)
  { w->call = ccn__handle_new(s, sizeof *w->call, ccn__list_val(list)); }
  CCN__CATCH(s->rt.heap, trap)
  {
    ccn__heap_free(s->rt.heap, arg, bytes);
    ccn__throw(s->rt.heap, trap.status);
  }
  w->call->f = w->f;
  w->call->arg = arg;
  w->call->h.drop = drop_call;
  ccn__handle_retain(&w->f->module->h);
}

ccn_status ccn_call_create(const ccn_function *f, ccn_call **out) {
  if (out) *out = NULL;
  if (!f || !out) return CCN_INVALID_ARGUMENT;
  call_work w = {.f = f};
  ccn_status status = ccn__guarded(f->module->h.state->context, &f->module->h.state, 0, create, &w);
  *out = w.call;
  return status;
}

void ccn_call_release(ccn_call *call) {
  if (call) ccn__handle_release(&call->h);
}

static ccn_status in_call(ccn_call *call, unsigned flags, ccn__work *work, call_work *w) {
  w->call = call;
  w->f = call->f;
  return ccn__guarded(call->h.state->context, &call->h.state, flags, work, w);
}

static void reset(ccn__state *s, void *user) {
  (void)s;
  forget(((call_work *)user)->call);
}

ccn_status ccn_call_reset(ccn_call *call) {
  return call ? in_call(call, 0, reset, &(call_work){0}) : CCN_INVALID_ARGUMENT;
}

/* ---- arguments ------------------------------------------------------------------------------------------- */

static void set_value(ccn__state *s, void *user) {
  call_work *w = user;
  (void)s;
  set_slot(&slots(w->call)[w->i], w->v);
}

static ccn_status set(ccn_call *call, size_t i, ccn__val v) {
  if (!call) return CCN_INVALID_ARGUMENT;
  if (i >= call->f->nparams) return CCN_NOT_FOUND;
  return in_call(call, 0, set_value, &(call_work){.i = i, .v = v});
}

ccn_status ccn_call_set_i64(ccn_call *call, size_t i, int64_t x) { return set(call, i, ccn__int_val(x)); }
ccn_status ccn_call_set_f64(ccn_call *call, size_t i, double x) { return set(call, i, ccn__float_val(x)); }
ccn_status ccn_call_set_bool(ccn_call *call, size_t i, int x) { return set(call, i, ccn__bool_val(x != 0)); }

ccn_status ccn_call_set_value(ccn_call *call, size_t i, ccn_value *v) {
  if (!call || (v && v->h.state != call->h.state)) return CCN_INVALID_ARGUMENT;
  return set(call, i, v ? v->h.hold.v : CCN__NONE_VAL);
}

static void set_string(ccn__state *s, void *user) {
  call_work *w = user;
  set_slot(&slots(w->call)[w->i], ccn__val_string(&s->rt, w->text, w->size));
}

ccn_status ccn_call_set_string(ccn_call *call, size_t i, const char *text, size_t size) {
  if (!call || (!text && size)) return CCN_INVALID_ARGUMENT;
  if (i >= call->f->nparams) return CCN_NOT_FOUND;
  return in_call(call, 0, set_string, &(call_work){.i = i, .text = text, .size = size});
}

/* What can be said before the sizes are known. */
static void check_tensor(ccn__state *s, const ccn_function *f, size_t i, const ccn__tensor *t) {
  const ccn_param *p = &f->param[i];
  const ccn__ast *ast = f->v.kind == CCN__V_PROGRAM ? f->v.program->ast->params.at[i] : NULL;
  if (!ast || p->dtype < 0 || p->ndim < 0) return;
  if (t->dtype == p->dtype && t->rank == p->ndim) return;
  ccn__report_begin(s);
  bool dtype = t->dtype != p->dtype;
  ccn__diag *d =
    ccn__error(&s->diags, dtype ? 101 : 305, ast->span, "the parameter", "parameter `%s` is %s, not %s",
               p->name, p->type, ccn__tensor_describe(&s->rt, t));
  ccn__hint(&s->diags, d, "%s", dtype ? "pass a tensor of its dtype" : "pass a tensor with as many dims");
  ccn__throw(s->rt.heap, CCN_ERROR);
}

static void set_tensor(ccn__state *s, void *user) {
  call_work *w = user;
  check_tensor(s, w->f, w->i, w->v.tensor);
  set_slot(&slots(w->call)[w->i], w->v);
}

ccn_status ccn_call_set_tensor(ccn_call *call, size_t i, ccn_tensor *t) {
  if (!call || !t || t->h.state != call->h.state) return CCN_INVALID_ARGUMENT;
  if (i >= call->f->nparams) return CCN_NOT_FOUND;
  return in_call(call, 0, set_tensor, &(call_work){.i = i, .v = t->h.hold.v});
}

static void set_tensors(ccn__state *s, void *user) {
  call_work *w = user;
  ccn__list *list = ccn__list_new(&s->rt, CCN__V_LIST, (uint32_t)w->size);
  for (size_t i = 0; i < w->size; i++) ccn__list_add(&s->rt, list, w->tensors[i]->h.hold.v);
  set_slot(&slots(w->call)[w->i], ccn__list_val(list));
}

ccn_status ccn_call_set_tensors(ccn_call *call, size_t i, ccn_tensor *const *t, size_t n) {
  if (!call || (!t && n) || n > UINT16_MAX) return CCN_INVALID_ARGUMENT;
  if (i >= call->f->nparams) return CCN_NOT_FOUND;
  for (size_t k = 0; k < n; k++)
    if (!t[k] || t[k]->h.state != call->h.state) return CCN_INVALID_ARGUMENT;
  return in_call(call, 0, set_tensors, &(call_work){.i = i, .tensors = t, .size = n});
}

/* ---- running --------------------------------------------------------------------------------------------- */

/* Arguments left out have their defaults; those behind one are given by name. */
static uint32_t collect_arguments(ccn_call *call) {
  const ccn_function *f = call->f;
  const ccn__ast *ast = f->v.kind == CCN__V_PROGRAM ? f->v.program->ast : f->v.fn->ast;
  uint32_t n = 0;
  for (uint32_t i = 0; i < f->nparams; i++) {
    ccn__val v = slots(call)[i];
    if (v.kind == CCN__V_NONE) continue;
    call->arg[n] = (ccn__arg){.name = n == i ? NULL : ast->params.at[i]->name, .value = v};
    n++;
  }
  return n;
}

static void own_results(ccn__val v) {
  if (v.kind == CCN__V_TENSOR) v.tensor->host_only = true;
  if (v.kind == CCN__V_TUPLE)
    for (uint32_t i = 0; i < v.list->n; i++) own_results(v.list->at[i]);
}

static void run(ccn__state *s, void *user) {
  call_work *w = user;
  ccn_call *call = w->call;
  ccn__val callee = w->f->v, v;
  set_result(call, CCN__NONE_VAL);
  uint32_t n = collect_arguments(call);
  if (callee.kind == CCN__V_PROGRAM) {
    v = ccn__program_call(&s->rt, callee.program, call->arg, n, (ccn__span){0});
    own_results(v);
  } else {
    for (uint32_t i = 0; i < n; i++) ccn__val_escapes(call->arg[i].value);
    v = ccn__call_fn(&s->rt, callee.fn, call->arg, n, (ccn__span){0});
  }
  set_result(call, v);
  if (s->rt.heap->live > s->rt.next_collect) ccn__collect(&s->rt);
}

ccn_status ccn_call_run(ccn_call *call) {
  return call ? in_call(call, CCN__RUNS, run, &(call_work){0}) : CCN_INVALID_ARGUMENT;
}

size_t ccn_call_results(const ccn_call *call) {
  if (!call) return 0;
  ccn__val v = *result_slot(call);
  return v.kind == CCN__V_TUPLE ? v.list->n : v.kind != CCN__V_NONE;
}

static ccn__val result_value(const ccn_call *call, size_t i) {
  ccn__val v = *result_slot(call);
  return v.kind == CCN__V_TUPLE ? v.list->at[i] : v;
}

static void take_tensor(ccn__state *s, void *user) {
  call_work *w = user;
  w->tensor = ccn__tensor_handle(s, w->v.tensor);
}

ccn_status ccn_call_result(ccn_call *call, size_t i, ccn_tensor **out) {
  if (out) *out = NULL;
  if (!call || !out) return CCN_INVALID_ARGUMENT;
  if (i >= ccn_call_results(call)) return CCN_NOT_FOUND;
  call_work w = {.v = result_value(call, i)};
  if (w.v.kind != CCN__V_TENSOR) return CCN_NOT_FOUND;
  ccn_status status = in_call(call, 0, take_tensor, &w);
  *out = w.tensor;
  return status;
}

static void take_value(ccn__state *s, void *user) {
  call_work *w = user;
  w->value = ccn__handle_new(s, sizeof *w->value, w->v);
}

ccn_status ccn_call_result_value(ccn_call *call, size_t i, ccn_value **out) {
  if (out) *out = NULL;
  if (!call || !out) return CCN_INVALID_ARGUMENT;
  if (i >= ccn_call_results(call)) return CCN_NOT_FOUND;
  call_work w = {.v = result_value(call, i)};
  ccn_status status = in_call(call, 0, take_value, &w);
  *out = w.value;
  return status;
}

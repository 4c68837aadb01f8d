/* record.c: see record.h. Recording is a backend whose results have types and no elements; a plan is made,
 * costed and timed once for each program and its sizes, however often it is called.
 * SPDX-License-Identifier: Apache-2.0 */
#include "record.h"

#include "api.h"
#include "call.h"
#include "sim.h"

/* ---- results without elements -------------------------------------------------------------------- */

static ccn__tensor *result(const ccn__exec *x, ccn__id id) {
  ccn__rt *rt = x->rt;
  const ccn__type *type = x->g->nodes.at[id].type;
  ccn__tensor *t = ccn__tensor_new(rt, (ccn__dtype)type->dtype, type->rank);
  for (uint32_t d = 0; d < type->rank; d++) (void)ccn__dim_eval(type->dim[d], x->sym, &t->dim[d]);
  for (uint32_t a = 0; a < x->g->mesh.naxes; a++) {
    int64_t unit = 1;
    if (type->place[a].unit) (void)ccn__dim_eval(type->place[a].unit, x->sym, &unit);
    t->place[a] = ccn__concrete(&type->place[a], unit);
  }
  if (!type->bundle) return t;
  const ccn__members *m = x->bundle[type->bundle_id];
  t->members = ccn__heap_alloc(rt->heap, ccn__members_size(m->k));
  memcpy(t->members, m, ccn__members_size(m->k));
  t->bundle = type->bundle;
  return t;
}

/* ---- one plan ------------------------------------------------------------------------------------ */

static uint64_t mix(uint64_t h, uint64_t x) {
  h = (h ^ x) * UINT64_C(0x9e3779b97f4a7c15);
  return h ^ h >> 29;
}

uint64_t ccn__record_key(const ccn__exec *x) {
  uint64_t h = 1;
  for (uint32_t s = 0; s < x->g->symbols.n; s++) h = mix(h, (uint64_t)x->sym[s]);
  for (uint32_t b = 0; b < x->g->nbundles; b++)
    for (uint32_t k = 0; k < x->bundle[b]->k; k++) h = mix(h, (uint64_t)x->bundle[b]->at[k].elements);
  return h;
}

typedef struct recording {
  ccn__exec *x;
  ccn__recorder *r;
  ccn__recorded *row;
  bool fresh; /* its texts are to be made */
} recording;

static const char *kept(ccn__rt *rt, const ccn__text *t) {
  return ccn__arena_strndup(rt->arena, t->n ? t->at : "", t->n);
}

static void write_trace(recording *c, const ccn__plan *p, const ccn__sim_result *sim, ccn__arena *a) {
  ccn__text t;
  ccn__text_init(&t, a);
  ccn__sim_trace(p, sim, c->r->seconds, &t);
  for (size_t at = 0; at < t.n;) { /* lines become members of one array */
    const char *end = memchr(t.at + at, '\n', t.n - at);
    c->r->trace(c->r->traced ? ",\n" : "\n", c->r->traced ? 2 : 1, c->r->trace_user);
    c->r->traced = true;
    c->r->trace(t.at + at, (size_t)(end - t.at) - at, c->r->trace_user);
    at = (size_t)(end - t.at) + 1;
  }
}

enum { SHOWN_RANKS = 4, COLUMNS = 72 }; /* of a timeline */

/* The plan with steps that take their floors. */
static double least_time(ccn__arena *a, const ccn__plan *p, const ccn__cost *cost) {
  ccn__cost least = *cost;
  ccn__sim_result sim;
  least.step = CCN__NEWN(a, ccn__step_cost, p->steps.n + 1);
  for (uint32_t i = 0; i < p->steps.n; i++) {
    least.step[i] = cost->step[i];
    least.step[i].time = cost->step[i].floor;
  }
  ccn__sim_plan(a, p, &least, &(ccn__sim_options){0}, &sim);
  return sim.time;
}

bool ccn__record_price(ccn__arena *a, const ccn__exec *x, const ccn__graph *g,
                       const ccn__cost_options *options, ccn__priced *out, const char **out_why) {
  ccn__plan *p = ccn__plan_make(a, g, x->sym, x->bundle);
  ccn__sim_result sim;
  if (x->schedule) p->label = ccn__arena_printf(a, "%s@%s", g->name, x->schedule);
  ccn__cost *cost = ccn__cost_make(a, p, options, out_why);
  if (!cost) return false;
  ccn__sim_plan(a, p, cost, &(ccn__sim_options){0}, &sim);
  *out = (ccn__priced){.plan = p, .cost = cost, .seconds = sim.time, .floor = least_time(a, p, cost)};
  return true;
}

static void plan_it(ccn__rt *rt, ccn__arena *a, void *user) {
  recording *c = user;
  ccn__recorder *r = c->r;
  const ccn__cost_options options = {
    .machine = r->machine, .algorithm = r->algorithm, .timer = ccn__sim_algorithm};
  ccn__priced price;
  ccn__sim_result sim;
  const char *why;
  if (!ccn__record_price(a, c->x, c->x->g, &options, &price, &why)) {
    r->why = ccn__arena_strndup(rt->arena, why, strlen(why));
    return;
  }
  const ccn__plan *p = price.plan;
  const ccn__cost *cost = price.cost;
  if (r->trace || r->timelines) ccn__sim_plan(a, p, cost, &(ccn__sim_options){.trace = true}, &sim);
  c->row->seconds = price.seconds;
  c->row->floor = price.floor;
  ccn__text t;
  ccn__text_init(&t, a);
  if (c->fresh && r->tables)
    ccn__cost_print(p, cost, price.seconds, c->row->floor, &t), c->row->table = kept(rt, &t);
  ccn__text_init(&t, a);
  if (c->fresh && r->json)
    ccn__cost_print_json(p, cost, price.seconds, c->row->floor, &t), c->row->json = kept(rt, &t);
  ccn__text_init(&t, a);
  if (c->fresh && r->timelines)
    ccn__sim_timeline(p, &sim, SHOWN_RANKS, COLUMNS, &t), c->row->timeline = kept(rt, &t);
  if (r->trace) write_trace(c, p, &sim, a);
}

static bool is_wanted(const ccn__recorder *r, const ccn__exec *x) {
  if (!x->text || !r->machine || r->why) return false; /* an op of the script, no program */
  if (r->program && strcmp(r->program, x->g->name ? x->g->name : "") != 0) return false;
  return !r->schedule || (x->schedule && strcmp(r->schedule, x->schedule) == 0);
}

static ccn__recorded *row_of(ccn__recorder *r, const ccn__exec *x, bool *out_fresh) {
  const uint64_t key = ccn__record_key(x);
  for (ccn__recorded *row = r->first; row; row = row->next)
    if (row->g == x->g && row->key == key) return row;
  ccn__recorded *row = CCN__NEW(x->rt->arena, ccn__recorded);
  *row = (ccn__recorded){.g = x->g, .key = key, .program = x->g->name, .schedule = x->schedule};
  if (r->last) *r->last = row;
  else r->first = row;
  r->last = &row->next;
  *out_fresh = true;
  return row;
}

void ccn__record_execute(ccn__exec *x) {
  ccn__recorder *r = x->rt->execute_user;
  if (r && is_wanted(r, x)) {
    recording c = {.x = x, .r = r};
    c.row = row_of(r, x, &c.fresh);
    if (c.fresh || r->trace) ccn__with_arena(x->rt, plan_it, &c);
    c.row->calls++;
    r->calls++;
    r->seconds += c.row->seconds;
    if (r->why) ccn__fail(x->rt, 501, (ccn__span){0}, "", "choose another with --algorithm", "%s", r->why);
  }
  for (uint32_t k = 0; k < x->g->noutputs; k++) x->result[k] = result(x, x->g->outputs[k]);
}

/* ---- a program and its sizes --------------------------------------------------------------------- */

typedef struct sizing {
  ccn__rt *rt;
  const ccn__record_call *call;
  ccn__env *env; /* sizes as numbers */
  const ccn__ast *param;
} sizing;

/* What stands behind `name=` among the sizes; NULL: nothing. */
static const char *given(const sizing *z, const char *name) {
  const size_t n = strlen(name);
  for (size_t i = z->call->nsizes; i-- > 0;)
    if (strncmp(z->call->sizes[i], name, n) == 0 && z->call->sizes[i][n] == '=')
      return z->call->sizes[i] + n + 1;
  return NULL;
}

static bool read_int(const char **at, int64_t *out) {
  int64_t x = 0;
  const char *s = *at;
  for (; *s >= '0' && *s <= '9' && x <= INT64_MAX / 10 - 9; s++) x = x * 10 + (*s - '0');
  if (s == *at) return false;
  *at = s;
  *out = x;
  return true;
}

CCN__NORETURN static void bad_size(const sizing *z, const char *text) {
  ccn__fail(z->rt, 510, (ccn__span){0}, "",
            "sizes are N=1000, len(ws)=2, and of a list of tensors ps=1000,64x32", "`%s` is no size", text);
}

static void read_sizes(sizing *z) {
  for (size_t i = 0; i < z->call->nsizes; i++) {
    const char *text = z->call->sizes[i], *equals = strchr(text, '=');
    if (!equals || equals == text) bad_size(z, text);
    const char *at = equals + 1;
    int64_t x;
    if (!read_int(&at, &x) || (*at && *at != ',' && *at != 'x')) bad_size(z, text);
    if (!*at && !memchr(text, '(', (size_t)(equals - text)))
      ccn__env_set(z->rt, z->env, ccn__intern(z->rt->names, text, (size_t)(equals - text)), ccn__int_val(x));
  }
}

static ccn__val argument(sizing *z, const ccn__ast *type);

static void need_name(const sizing *z, const ccn__ast *e) {
  if (!e) return;
  if (e->kind == CCN__AST_NAME && !ccn__env_lookup(z->env, e->name) && !ccn__is_builtin(e->name))
    ccn__fail(z->rt, 510, e->span, "how large?", "say it: -D N=1000",
              "the size `%s` of parameter `%s` is not given", e->name, z->param->name);
  if (e->kind != CCN__AST_CALL) need_name(z, e->a);
  need_name(z, e->b);
  for (uint32_t i = 0; i < e->list.n; i++) need_name(z, e->list.at[i]);
}

static ccn__tensor *tensor(sizing *z, const ccn__ast *type, uint32_t rank, const int64_t *dim) {
  ccn__typeval *v;
  if (rank) { /* a member of a bundle: the element type without its star */
    ccn__ast plain = *type;
    plain.list = (ccn__ast_list){0};
    plain.op = 0;
    v = ccn__eval_type(z->rt, z->env, &plain, false).type;
  } else {
    for (uint32_t d = 0; d < type->list.n; d++) need_name(z, type->list.at[d]);
    v = ccn__eval_type(z->rt, z->env, type, false).type;
  }
  return ccn__tensor_place(z->rt, (ccn__dtype)v->dtype, rank ? rank : v->rank, rank ? dim : v->dim, v->place,
                           NULL);
}

/* "1000,64x32": a tensor of each shape. */
static ccn__val shapes(sizing *z, const ccn__ast *type, const char *text) {
  ccn__list *l = ccn__list_new(z->rt, CCN__V_LIST, 4);
  for (const char *at = text; *at;) {
    int64_t dim[CCN__MAX_RANK];
    uint32_t rank = 0;
    do {
      if (*at == 'x') at++;
      if (rank == CCN__MAX_RANK || !read_int(&at, &dim[rank++])) bad_size(z, text);
    } while (*at == 'x');
    if (*at && *at++ != ',') bad_size(z, text);
    ccn__list_add(z->rt, l, ccn__tensor_val(tensor(z, type, rank, dim)));
  }
  return ccn__list_val(l);
}

static ccn__val list(sizing *z, const ccn__ast *type) {
  const ccn__ast *element = type->a;
  const char *text = given(z, z->param->name);
  const char *length = given(z, ccn__arena_printf(z->rt->arena, "len(%s)", z->param->name));
  const bool star = element->kind == CCN__AST_TENSOR_TYPE && element->list.n == 1 &&
                    element->list.at[0]->kind == CCN__AST_STAR;
  int64_t n = 0;
  if (star && text) return shapes(z, element, text);
  if (star || !length || !read_int(&length, &n) || n > 1 << 20)
    ccn__fail(z->rt, 510, type->span, "how many?",
              star ? "give their shapes: -D NAME=1000,64x32" : "say it: -D 'len(NAME)=2'",
              "what the list `%s` holds is not given", z->param->name);
  ccn__list *l = ccn__list_new(z->rt, CCN__V_LIST, (uint32_t)n);
  for (int64_t i = 0; i < n; i++) ccn__list_add(z->rt, l, argument(z, element));
  return ccn__list_val(l);
}

static ccn__val argument(sizing *z, const ccn__ast *type) {
  if (type->kind == CCN__AST_LIST_TYPE) return list(z, type);
  if (type->kind != CCN__AST_TUPLE_TYPE) return ccn__tensor_val(tensor(z, type, 0, NULL));
  ccn__list *l = ccn__list_new(z->rt, CCN__V_TUPLE, type->list.n);
  for (uint32_t i = 0; i < type->list.n; i++) ccn__list_add(z->rt, l, argument(z, type->list.at[i]));
  return ccn__list_val(l);
}

/* Names in it are known, and it calls nothing. */
static bool is_plain(const ccn__rt *rt, const ccn__ast *e) {
  if (!e) return true;
  if (e->kind == CCN__AST_CALL || e->kind == CCN__AST_INDEX || e->kind == CCN__AST_LAMBDA) return false;
  if (e->kind == CCN__AST_WITH) return is_plain(rt, e->a); /* its schedule may have handles, as a call has */
  if (e->kind == CCN__AST_NAME) return ccn__env_lookup(rt->globals, e->name) != NULL;
  bool plain = is_plain(rt, e->a) && is_plain(rt, e->b) && is_plain(rt, e->c);
  for (uint32_t i = 0; i < e->list.n; i++) plain = plain && is_plain(rt, e->list.at[i]);
  return plain;
}

static bool defines(const ccn__rt *rt, const ccn__ast *s) {
  switch (s->kind) {
  case CCN__AST_MESH:
  case CCN__AST_IMPORT:
  case CCN__AST_PROGRAM:
  case CCN__AST_SCHEDULE:
  case CCN__AST_FN: return true;
  case CCN__AST_LET: return is_plain(rt, s->b);
  default: return false;
  }
}

/* Statement by statement, since whether a `let` is plain depends on the ones before it. */
static void define(ccn__state *s, const ccn__ast *ast) {
  ccn__ast none = *ast;
  none.list = (ccn__ast_list){0};
  ccn__drive_run(s, &none);
  for (uint32_t i = 0; i < ast->list.n; i++) {
    if (!defines(&s->rt, ast->list.at[i])) continue;
    none.list = (ccn__ast_list){ast->list.at + i, 1};
    ccn__script_run(&s->rt, s->rt.globals, &none);
  }
}

/* Axis parameters of a generic program stand for the mesh's axes in order, while its types are read. */
static void name_axes(const ccn__program *p, ccn__mesh *mesh) {
  for (uint32_t i = 0; i < p->ast->axes.n && i < mesh->naxes; i++)
    mesh->name[p->axis_choice ? p->axis_choice[i] : i] = p->ast->axes.at[i]->name;
}

void ccn__record_program(ccn__state *s, const ccn__ast *ast, const ccn__record_call *call) {
  ccn__rt *rt = &s->rt;
  define(s, ast);
  const ccn__val v = ccn__function_value(s, rt->globals, call->program);
  if (v.kind != CCN__V_PROGRAM)
    ccn__fail(rt, 510, (ccn__span){0}, "", "name a program", "`%s` is no program", call->program);
  const ccn__program *p = v.program;
  while (p->base) p = p->base;
  sizing z = {.rt = rt, .call = call, .env = ccn__env_new(rt, rt->globals)};
  ccn__roots_push(rt, z.env);
  read_sizes(&z);
  const ccn__mesh mesh = rt->mesh;
  ccn__arg *args = CCN__NEWN(rt->arena, ccn__arg, p->ast->params.n + 1);
  name_axes(p, &rt->mesh);
  for (uint32_t i = 0; i < p->ast->params.n; i++) {
    z.param = p->ast->params.at[i];
    if (!z.param->a)
      ccn__fail(rt, 510, z.param->span, "of any kind", "call it in a script", "`%s` has no type",
                z.param->name);
    args[i] = (ccn__arg){.value = argument(&z, z.param->a)};
  }
  rt->mesh = mesh;
  (void)ccn__program_call(rt, v.program, args, p->ast->params.n, (ccn__span){0});
  rt->roots.n--;
}

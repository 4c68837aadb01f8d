/* schedule.c: carries out the statements of schedules: arguments → handles → passes → handles.
 * SPDX-License-Identifier: Apache-2.0 */
#include "handles.h"

enum { MAX_SCHEDULE_DEPTH = 32, MAX_STAGES = 64 };

static bool statement(ccn__schedule_run *r, const ccn__ast *s);

static bool fail(ccn__schedule_run *r, uint16_t code, ccn__span span, const char *label, const char *text,
                 const char *hint) {
  ccn__diag *d = ccn__error(r->rt->diags, code, span, label, "%s", text);
  if (!hint && (code == 800 || code == 806))
    hint = "the language reference lists what each statement of a schedule takes";
  if (hint) ccn__hint(r->rt->diags, d, "%s", hint);
  return false;
}

/* ---- arguments ---- */

static const ccn__ast *named(const ccn__ast *call, const char *name) {
  for (uint32_t i = 0; i < call->list.n; i++)
    if (call->list.at[i]->name && strcmp(call->list.at[i]->name, name) == 0) return call->list.at[i]->a;
  return NULL;
}

static uint32_t positional(const ccn__ast *call) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < call->list.n; i++) n += !call->list.at[i]->name;
  return n;
}

static bool only_named(ccn__schedule_run *r, const ccn__ast *call, const char *const *allowed, uint32_t n) {
  for (uint32_t i = 0; i < call->list.n; i++) {
    const ccn__ast *a = call->list.at[i];
    bool known = !a->name;
    for (uint32_t k = 0; k < n; k++) known |= a->name && strcmp(a->name, allowed[k]) == 0;
    if (!known)
      return fail(r, 806, a->nspan, "not expected",
                  ccn__arena_printf(r->arena, "`%s` has no parameter `%s`", call->a->name, a->name), NULL);
  }
  return true;
}

/* Argument k as nodes. An empty list is CCN0407 (`try` skips the statement). */
static bool nodes(ccn__schedule_run *r, const ccn__ast *call, uint32_t k, ccn__ids *out, bool *selected,
                  bool *empty) {
  ccn__handle h = ccn__handle_eval(r, call->list.at[k]->a);
  if (h.kind == CCN__H_ERROR) return false;
  if (h.kind != CCN__H_NODES)
    return fail(r, 800, call->list.at[k]->span, "not an op",
                ccn__arena_printf(r->arena, "`%s` takes handles of ops", call->a->name), NULL);
  ccn__ids ids = ccn__handle_ids(r, &h);
  for (uint32_t i = 0; i < ids.n; i++) *CCN__PUSH(r->arena, out) = ids.at[i];
  if (selected) *selected = h.selected;
  if (!ids.n && !h.selected) {
    *empty = true;
    if (!r->trying)
      return fail(r, 407, call->list.at[k]->span, "nothing", "the selection is empty",
                  "write `try` before the statement if that may happen");
  }
  return true;
}

static bool one_node(ccn__schedule_run *r, const ccn__ast *call, uint32_t k, ccn__id *out, bool *empty) {
  ccn__ids ids = {0};
  if (!nodes(r, call, k, &ids, NULL, empty)) return false;
  if (*empty) return true;
  if (ids.n != 1)
    return fail(r, 408, call->list.at[k]->span, "not exactly one",
                ccn__arena_printf(r->arena, "`%s` takes one op here, not %u", call->a->name, ids.n),
                "name the one that is meant");
  *out = ids.at[0];
  return true;
}

static bool number(ccn__schedule_run *r, const ccn__ast *e, int64_t otherwise, int64_t *out) {
  *out = otherwise;
  if (!e) return true;
  ccn__handle h = ccn__handle_eval(r, e);
  if (h.kind == CCN__H_NUMBER) return *out = h.number, true;
  return h.kind != CCN__H_ERROR &&
         fail(r, 800, e->span, "not a whole number", "a whole number is needed here", NULL);
}

/* ---- results ---- */

static ccn__handle of_ids(ccn__schedule_run *r, const ccn__ids *ids, ccn__span span) {
  ccn__handle h = {.kind = CCN__H_NODES, .span = span};
  for (uint32_t i = 0; i < ids->n; i++) *CCN__PUSH(r->arena, &h.items) = (ccn__item){ids->at[i], {0}};
  return h;
}

static void bind(ccn__schedule_run *r, ccn__name name, ccn__handle h) {
  void *slot = CCN__PUSH(r->arena, &r->scope->names);
  struct ccn__named_handle x = {name, h};
  memcpy(slot, &x, sizeof x);
}

static bool bind_results(ccn__schedule_run *r, const ccn__ast *pattern, ccn__handle *h, uint32_t n) {
  if (!pattern) return true;
  if (pattern->kind == CCN__AST_NAME && n == 1) return bind(r, pattern->name, h[0]), true;
  if (pattern->kind == CCN__AST_TUPLE && pattern->list.n == n) {
    for (uint32_t i = 0; i < n; i++)
      if (pattern->list.at[i]->kind == CCN__AST_NAME) bind(r, pattern->list.at[i]->name, h[i]);
    return true;
  }
  return fail(r, 800, pattern->span, "wrong number of names",
              ccn__arena_printf(r->arena, "the statement gives %u handles", n), NULL);
}

/* ---- statements that are passes ---- */

typedef struct step {
  ccn__pass pass;
  ccn__ids used;
  ccn__ids out[2];
  uint32_t nout;
} step;

static bool do_split(ccn__schedule_run *r, const ccn__ast *call, step *t, bool *empty) {
  static const char *const allowed[] = {"dim", "unit", "into", "root"};
  const ccn__ast *into = named(call, "into"), *u = named(call, "unit");
  ccn__id x = CCN__NO_ID;
  int64_t dim, root, unit;
  bool broadcast = into && into->kind == CCN__AST_NAME && strcmp(into->name, "reduce_broadcast") == 0;
  if (!only_named(r, call, allowed, 4)) return false;
  if (into && !broadcast)
    return fail(r, 800, into->span, "here", "the only `into:` is `reduce_broadcast`", NULL);
  if (positional(call) != 1) return fail(r, 800, call->span, "here", "`split` takes one all-reduce", NULL);
  if (!one_node(r, call, 0, &x, empty) || !number(r, named(call, "dim"), 0, &dim) ||
      !number(r, named(call, "root"), 0, &root) || !number(r, u, 1, &unit))
    return false;
  if (*empty) return true;
  if (unit < 1) return fail(r, 310, u->span, "not positive", "the unit of a cut is at least 1", NULL);
  *CCN__PUSH(r->arena, &t->used) = x;
  t->nout = 2;
  return ccn__pass_split(&t->pass, x, dim, unit > 1 ? ccn__dim_const(r->arena, unit) : NULL, broadcast, root,
                         &t->out[0], &t->out[1]);
}

static bool do_reorder(ccn__schedule_run *r, const ccn__ast *call, step *t, bool *empty) {
  ccn__ids ops = {0};
  ccn__id g = CCN__NO_ID;
  if (positional(call) != 2 || call->list.n != 2)
    return fail(r, 800, call->span, "here", "`reorder` takes ops and a gather", NULL);
  if (!nodes(r, call, 0, &ops, NULL, empty) || !one_node(r, call, 1, &g, empty)) return false;
  if (*empty) return true;
  for (uint32_t i = 0; i < ops.n; i++) *CCN__PUSH(r->arena, &t->used) = ops.at[i];
  *CCN__PUSH(r->arena, &t->used) = g;
  t->nout = 2;
  return ccn__pass_reorder(&t->pass, &ops, g, &t->out[0], &t->out[1]);
}

static bool do_fuse(ccn__schedule_run *r, const ccn__ast *call, step *t, bool *empty) {
  bool none = false;
  for (uint32_t k = 0; k < call->list.n; k++)
    if (!nodes(r, call, k, &t->used, NULL, &none)) return false;
  if (!t->used.n)
    return *empty = true, r->trying || fail(r, 407, call->span, "nothing", "the selection is empty", NULL);
  t->nout = 1;
  return ccn__pass_fuse(&t->pass, &t->used, &t->out[0]);
}

static bool do_overlap(ccn__schedule_run *r, const ccn__ast *call, step *t, bool *empty) {
  ccn__ids stage[MAX_STAGES] = {{0}};
  if (call->list.n > MAX_STAGES) return fail(r, 800, call->span, "here", "too many stages", NULL);
  for (uint32_t k = 0; k < call->list.n; k++) {
    if (!nodes(r, call, k, &stage[k], NULL, empty)) return false;
    if (*empty) return true;
    for (uint32_t i = 0; i < stage[k].n; i++) *CCN__PUSH(r->arena, &t->used) = stage[k].at[i];
  }
  t->nout = 1;
  return ccn__pass_overlap(&t->pass, stage, call->list.n, &t->out[0]);
}

static bool do_dead(ccn__schedule_run *r, const ccn__ast *call, step *t, bool *empty) {
  ccn__id x = CCN__NO_ID;
  if (call->list.n != 1) return fail(r, 800, call->span, "here", "`dead` takes one op", NULL);
  if (!one_node(r, call, 0, &x, empty)) return false;
  if (*empty) return true;
  *CCN__PUSH(r->arena, &t->used) = x;
  return ccn__pass_dead(&t->pass, x);
}

static bool do_algorithm(ccn__schedule_run *r, const ccn__ast *call, step *t, bool *empty) {
  static const char *const allowed[] = {"group"};
  ccn__id x = CCN__NO_ID;
  int64_t group;
  if (!only_named(r, call, allowed, 1)) return false;
  const ccn__ast *word = positional(call) == 2 ? call->list.at[1]->a : NULL;
  if (!word || word->kind != CCN__AST_NAME)
    return fail(
      r, 800, call->span, "here",
      "`algorithm` takes a collective and direct, ring, tree, double, halving, hierarchical or library",
      NULL);
  if (!one_node(r, call, 0, &x, empty) || !number(r, named(call, "group"), 0, &group)) return false;
  return *empty || ccn__pass_algorithm(&t->pass, x, word->name, group);
}

static bool do_mark(ccn__schedule_run *r, const ccn__ast *call, step *t, bool *empty) {
  const char *f = call->a->name;
  if (strcmp(f, "accumulate") == 0) /* the interpreter has to define its result first */
    return fail(r, 402, call->span, "not there yet",
                "`accumulate` is reserved: sums are added in the accumulation dtype", "leave it out");
  ccn__ids ops = {0};
  int64_t value = 1;
  uint32_t n = call->list.n;
  ccn__attr_key key = CCN__A_FAST;
  if (strcmp(f, "fast") != 0) {
    const ccn__ast *last = n == 2 ? call->list.at[1]->a : NULL;
    key = strcmp(f, "chunks") == 0 ? CCN__A_CHUNKS : CCN__A_ACCUMULATE;
    ccn__dtype d;
    if (!last)
      return fail(r, 800, call->span, "here",
                  ccn__arena_printf(r->arena, "`%s` takes an op and %s", f,
                                    key == CCN__A_CHUNKS ? "a number" : "a dtype"),
                  NULL);
    if (key == CCN__A_CHUNKS && !number(r, last, 1, &value)) return false;
    if (key == CCN__A_CHUNKS && value < 1)
      return fail(r, 800, last->span, "not positive", "there is at least one chunk", NULL);
    if (key == CCN__A_ACCUMULATE) {
      const char *name = last->kind == CCN__AST_TENSOR_TYPE || last->kind == CCN__AST_NAME ? last->name : "";
      if (!ccn__dtype_find(name, &d) || !ccn__dtype_is_float(d) || !ccn__dtype_size(d))
        return fail(r, 100, last->span, "not a float dtype", "`accumulate` takes a float dtype, as in f16",
                    NULL);
      value = d;
    }
    n = 1;
  }
  for (uint32_t k = 0; k < n; k++)
    if (!nodes(r, call, k, &ops, NULL, empty)) return false;
  return *empty || ccn__pass_mark(&t->pass, &ops, key, value);
}

/* The verifier runs behind every pass, always: a defect of a pass must not become a wrong result. */
static bool follow(ccn__schedule_run *r, step *t) {
  const char *wrong = ccn__graph_verify(t->pass.g);
  if (wrong)
    return fail(r, 499, t->pass.span, "a defect of CCN",
                ccn__arena_printf(r->arena, "`%s` made a wrong graph: %s", t->pass.name, wrong),
                "please report it with the program");
  if (!ccn__kernels_hold(&t->pass) || !ccn__chains_hold(&t->pass)) return false;
  ccn__handles_follow(r, t->pass.edit.from, t->pass.edit.map, &t->used, t->pass.span);
  r->g = t->pass.g;
  return true;
}

/* shard takes its arguments one by one; what the first changes the second sees. */
static bool do_shard(ccn__schedule_run *r, const ccn__ast *call) {
  for (uint32_t k = 0; k < call->list.n; k++) {
    ccn__ids ids = {0};
    bool selected = false, empty = false;
    if (!nodes(r, call, k, &ids, &selected, &empty)) return false;
    step t = {.pass = {.rt = r->rt, .g = r->g, .arena = r->arena, .span = call->span, .name = "shard"}};
    if (!ccn__pass_shard(&t.pass, &ids, !selected)) return false;
    if (t.pass.g != r->g && !follow(r, &t)) return false;
  }
  return true;
}

static bool run_body(ccn__schedule_run *r, const ccn__ast *block) {
  for (uint32_t i = 0; i < block->list.n; i++)
    if (!statement(r, block->list.at[i])) return false;
  return true;
}

/* ---- schedules calling schedules ---- */

static bool run_schedule(ccn__schedule_run *r, const ccn__schedule *s, ccn__handle *args, uint32_t nargs,
                         ccn__span call) {
  const ccn__ast *schedule = s->ast;
  const ccn__env *env = r->env;
  ccn__schedule_scope scope = {.outer = r->scope, .schedule = schedule};
  if (r->depth >= MAX_SCHEDULE_DEPTH)
    return fail(r, 802, call, "here", "schedules call each other without end", NULL);
  if (nargs != schedule->params.n)
    return fail(r, 800, call, "here",
                ccn__arena_printf(r->arena, "schedule `%s` takes %u %s, not %u", schedule->name,
                                  schedule->params.n, schedule->params.n == 1 ? "handle" : "handles", nargs),
                NULL);
  r->scope = &scope;
  r->env = s->env;
  r->depth++;
  for (uint32_t i = 0; i < nargs; i++) bind(r, schedule->params.at[i]->name, args[i]);
  bool fine = run_body(r, schedule->b);
  r->depth--;
  r->env = env;
  r->scope = scope.outer;
  if (!fine && call.source != schedule->span.source) /* it stands in a module: say who applied it */
    ccn__note(r->rt->diags, r->rt->diags->last, call, "schedule `%s` is applied here", schedule->name);
  return fine;
}

static bool call_schedule(ccn__schedule_run *r, const ccn__ast *call, const ccn__schedule *s) {
  ccn__handle *args = CCN__NEWN(r->arena, ccn__handle, call->list.n + 1);
  for (uint32_t i = 0; i < call->list.n; i++) {
    args[i] = ccn__handle_eval(r, call->list.at[i]->a);
    if (args[i].kind == CCN__H_ERROR) return false;
  }
  return run_schedule(r, s, args, call->list.n, call->span);
}

static const ccn__schedule *find_schedule(ccn__schedule_run *r, const ccn__ast *f) {
  const ccn__val *v = NULL;
  if (f->kind == CCN__AST_NAME && r->env) v = ccn__env_lookup(r->env, f->name);
  if (f->kind == CCN__AST_FIELD && f->a->kind == CCN__AST_NAME && r->env) {
    const ccn__val *m = ccn__env_lookup(r->env, f->a->name);
    if (m && m->kind == CCN__V_MODULE) v = ccn__env_find(m->module->env, f->name);
  }
  return v && v->kind == CCN__V_SCHEDULE ? v->schedule : NULL;
}

/* ---- statements ---- */

/* Whoever asked hears of each state of the graph. */
static void report(ccn__schedule_run *r, const char *name, ccn__span span, uint64_t start) {
  static const struct {
    const char *name;
    bool exact;
  } passes[] = {
#define EXACT true
#define REASSOCIATING false
#define PASS(name, params, class, doc) {#name, class},
#include "passes.def"
#undef PASS
#undef EXACT
#undef REASSOCIATING
  };
  ccn__rt *rt = r->rt;
  if (!rt->passed) return;
  ccn__passed p = {.g = r->g,
                   .program = r->program,
                   .step = r->step++,
                   .name = name,
                   .exact = true,
                   .span = span,
                   .ns = start ? ccn__now_ns() - start : 0};
  for (size_t i = 0; i < CCN__COUNT(passes); i++)
    if (strcmp(passes[i].name, name) == 0) p.exact = passes[i].exact;
  rt->passed(rt, &p, rt->passed_user);
}

static bool perform(ccn__schedule_run *r, const ccn__ast *pattern, const ccn__ast *call) {
  static const struct {
    const char *name;
    bool (*run)(ccn__schedule_run *, const ccn__ast *, step *, bool *);
  } table[] = {{"split", do_split},     {"reorder", do_reorder}, {"fuse", do_fuse},
               {"overlap", do_overlap}, {"dead", do_dead},       {"algorithm", do_algorithm},
               {"fast", do_mark},       {"chunks", do_mark},     {"accumulate", do_mark}};
  if (call->kind != CCN__AST_CALL) {
    ccn__handle h = ccn__handle_eval(r, call); /* a name for a selection */
    return h.kind != CCN__H_ERROR && bind_results(r, pattern, &h, 1);
  }
  const char *f = call->a->kind == CCN__AST_NAME ? call->a->name : "";
  const uint64_t start = r->rt->passed ? ccn__now_ns() : 0;
  if (strcmp(f, "shard") == 0) {
    if (!do_shard(r, call)) return false;
    report(r, f, call->span, start);
    return true;
  }
  for (size_t i = 0; i < CCN__COUNT(table); i++) {
    if (strcmp(table[i].name, f) != 0) continue;
    step t = {.pass = {.rt = r->rt, .g = r->g, .arena = r->arena, .span = call->span, .name = f}};
    bool empty = false;
    if (!table[i].run(r, call, &t, &empty)) return false;
    ccn__handle h[2];
    if (!empty && !follow(r, &t)) return false;
    report(r, f, call->span, start);
    for (uint32_t k = 0; k < 2; k++) h[k] = of_ids(r, &t.out[k], call->span);
    return bind_results(r, pattern, h, t.nout ? t.nout : 1);
  }
  const ccn__schedule *s = find_schedule(r, call->a);
  if (s) return call_schedule(r, call, s);
  ccn__handle h = ccn__handle_eval(r, call); /* sel = after(ag) */
  return h.kind != CCN__H_ERROR && bind_results(r, pattern, &h, 1);
}

static bool loop(ccn__schedule_run *r, const ccn__ast *s) {
  ccn__handle h = ccn__handle_eval(r, s->b);
  if (h.kind == CCN__H_ERROR) return false;
  if (s->a->kind != CCN__AST_NAME)
    return fail(r, 800, s->a->span, "not a name", "a loop of a schedule has one name", NULL);
  for (uint32_t i = 0; i < h.labels.n; i++) {
    ccn__handle one = {.kind = CCN__H_LABELS, .span = s->span};
    *CCN__PUSH(r->arena, &one.labels) = h.labels.at[i];
    bind(r, s->a->name, one);
    if (!run_body(r, s->c)) return false;
  }
  if (h.kind != CCN__H_NODES) return true;
  ccn__name hidden =
    ccn__internz(r->g->names, " loop"); /* follows the nodes while the body changes the graph */
  bind(r, hidden, h);
  for (uint32_t i = 0;; i++) {
    ccn__handle *all = ccn__handle_find(r, hidden);
    if (i >= all->items.n) break;
    ccn__handle one = {.kind = CCN__H_NODES, .span = s->span};
    *CCN__PUSH(r->arena, &one.items) = all->items.at[i];
    uint32_t before = all->items.n;
    bind(r, s->a->name, one);
    if (!run_body(r, s->c)) return false;
    all = ccn__handle_find(r, hidden);
    if (all->items.n < before) i--;
  }
  return true;
}

static bool statement(ccn__schedule_run *r, const ccn__ast *s) {
  bool trying = r->trying, fine;
  switch (s->kind) {
  case CCN__AST_ASSIGN:
  case CCN__AST_LET: return perform(r, s->a, s->b);
  case CCN__AST_EXPR: return perform(r, NULL, s->a);
  case CCN__AST_FOR: return loop(r, s);
  case CCN__AST_TRY:
    r->trying = true;
    fine = statement(r, s->a);
    r->trying = trying;
    return fine;
  case CCN__AST_BLOCK: return run_body(r, s);
  case CCN__AST_ERROR: return false;
  default:
    return fail(r, 10, s->span, "not in a schedule",
                "a schedule consists of transformations, loops over handles and calls of schedules", NULL);
  }
}

/* ---- a program with schedules ---- */

/* The handles in `P with s(adam.gsum)`; a generic schedule's single one may be left out where there is one all-reduce. */
static bool apply_one(ccn__schedule_run *r, const ccn__program *p) {
  const ccn__ast *with = p->with_call, *schedule = p->with->ast;
  ccn__schedule_scope none = {0};
  uint32_t n = with && with->kind == CCN__AST_CALL ? with->list.n : 0;
  ccn__handle *args = CCN__NEWN(r->arena, ccn__handle, n + 2);
  ccn__span span = with ? with->span : schedule->nspan;
  r->scope = &none;
  for (uint32_t i = 0; i < n; i++) {
    args[i] = ccn__handle_eval(r, with->list.at[i]->a);
    if (args[i].kind == CCN__H_ERROR) return false;
  }
  if (!n && schedule->params.n == 1) {
    ccn__ids ids = {0};
    for (ccn__id i = 0; i < r->g->nodes.n; i++)
      if (r->g->nodes.at[i].op == CCN__OP_ALLREDUCE) *CCN__PUSH(r->arena, &ids) = i;
    if (ids.n != 1)
      return fail(r, 408, span, "which one?",
                  ccn__arena_printf(r->arena, "the program has %u all-reduces", ids.n),
                  "name one, as in `P with s(P.gsum)`");
    args[n++] = of_ids(r, &ids, span);
  }
  return run_schedule(r, p->with, args, n, span);
}

ccn__graph *ccn__schedule_apply(ccn__rt *rt, ccn__graph *g, const ccn__program *p) {
  const ccn__program *chain[MAX_SCHEDULE_DEPTH];
  uint32_t n = 0;
  for (const ccn__program *q = p; q->base; q = q->base) {
    if (n == MAX_SCHEDULE_DEPTH)
      return fail(&(ccn__schedule_run){.rt = rt}, 802, p->ast->nspan, "here", "too many schedules", NULL),
             NULL;
    chain[n++] = q;
  }
  ccn__schedule_run r = {.rt = rt, .arena = g->arena, .g = g, .program = p, .env = rt->globals};
  report(&r, "", p->with_call ? p->with_call->span : p->ast->nspan, 0);
  while (n-- > 0) {
    r.env = chain[n]->with_env ? chain[n]->with_env : rt->globals;
    if (!apply_one(&r, chain[n])) return NULL;
  }
  return r.g;
}

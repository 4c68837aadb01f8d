/* api_tune.c: the search for schedules, for hosts: which programs, what of it is kept, and how it is said.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "api.h"
#include "call.h"
#include "jit.h"
#include "record.h"
#include "sim.h"
#include "tune.h"

enum { PATH = 4096, KEEP = 64 << 20 /* bytes of the cache's folder */, FORMATS = 3 };
static const char *const formats[FORMATS] = {"schedule", "explain", "json"};
static const char tag[] = "tune 1"; /* of what is kept: the number changes with the moves and the costs */

/* What was tuned already: a program with its sizes. */
typedef struct tuned {
  struct tuned *next;
  const char *program;
  uint64_t key;
} tuned;

typedef struct tuner {
  ccn__job job; /* first: ccn__job.instead gets it */
  ccn_plan_desc plan;
  ccn_tune_desc desc;
  uint32_t format;
  const ccn__machine *machine;
  const char *program; /* NULL: all */
  tuned *first;
  const ccn__exec *x; /* the call at hand */
  ccn__arena *arena;  /* of the call at hand */
} tuner;

static ccn__graph *unscheduled(ccn__rt *rt, ccn__graph *g, const ccn__program *p) {
  (void)rt, (void)p;
  return g;
}

/* ---- prices ---------------------------------------------------------------------------------------------- */

static bool price_of(const tuner *w, ccn__arena *a, const ccn__graph *g, ccn__priced *out) {
  const ccn__cost_options options = {
    .machine = w->machine, .algorithm = w->plan.algorithm, .timer = ccn__sim_algorithm};
  const char *why;
  return ccn__record_price(a, w->x, g, &options, out, &why);
}

typedef struct pricing {
  const tuner *w;
  const ccn__graph *g;
  double seconds;
} pricing;

static void price_it(ccn__rt *rt, ccn__arena *a, void *user) {
  pricing *q = user;
  ccn__priced p;
  (void)rt;
  if (price_of(q->w, a, q->g, &p)) q->seconds = p.seconds;
}

static double price(void *user, const ccn__graph *g) {
  const tuner *w = user;
  pricing q = {w, g, -1};
  ccn__with_arena(w->x->rt, price_it, &q);
  return q.seconds;
}

static void progress(void *user, uint32_t seen) {
  const tuner *w = user;
  w->desc.progress(seen, w->desc.progress_user);
}

/* ---- texts ----------------------------------------------------------------------------------------------- */

static void put_sizes(const tuner *w, ccn__text *t, const char *before, const char *between,
                      const char *equals) {
  const ccn__graph *g = w->x->g;
  for (uint32_t i = 0, n = 0; i < g->symbols.n; i++)
    if (g->symbols.at[i].kind == CCN__SYM_DIM)
      ccn__text_printf(t, "%s%s%s%lld", n++ ? between : before, g->symbols.at[i].name, equals,
                       (long long)w->x->sym[i]);
}

/* Comments: a line each. */
static void put_comment(ccn__text *t, const char *text) {
  for (const char *end; *text; text = *end ? end + 1 : end) {
    end = text + strcspn(text, "\n");
    ccn__text_printf(t, end > text ? "# %.*s\n" : "#%.*s\n", (int)(end - text), text);
  }
}

static void put_row(const tuner *w, ccn__text *t, const ccn__tuned *s, const char *what) {
  ccn__priced p;
  if (s->seconds < 0 || !price_of(w, w->arena, s->g, &p)) {
    ccn__text_printf(t, "#      no time     %s\n", what);
    return;
  }
  ccn__text_printf(t, "#   %10.6g ms  %3.0f %% of its limit  %s%s\n", s->seconds * 1e3,
                   s->seconds > 0 ? 100 * p.floor / s->seconds : 100.0, what,
                   s->exact ? "" : " (adds in another order)");
}

static void put_head(const tuner *w, const ccn__tune_result *r, ccn__text *t) {
  const ccn__tuned *best = &r->seen.at[r->best];
  ccn__text_printf(t, "# %s on %u rank%s of %s", w->x->g->name, w->x->rt->world,
                   w->x->rt->world == 1 ? "" : "s", w->machine->name);
  put_sizes(w, t, ", ", ", ", " = ");
  ccn__text_printf(
    t, "\n# %u different graph%s from %u moves (%u refused or without sense, %u seen before)%s\n", r->seen.n,
    r->seen.n == 1 ? "" : "s", r->moves, r->refused, r->known, r->whole ? "" : "; not all were tried");
  if (r->best) put_row(w, t, best, "with this schedule");
  if (r->second && r->second != CCN__NO_ID) put_row(w, t, &r->seen.at[r->second], "with the next best");
  put_row(w, t, &r->seen.at[0], r->best ? "alone" : "alone: nothing is faster");
}

static void put_plan(const tuner *w, ccn__text *t, const ccn__tuned *s, const char *what) {
  ccn__priced p;
  ccn__text table;
  ccn__text_printf(t, "#\n# %s:\n", what);
  put_comment(t, s->body);
  if (s->seconds < 0 || !price_of(w, w->arena, s->g, &p)) return;
  ccn__text_init(&table, w->arena);
  ccn__cost_print(p.plan, p.cost, p.seconds, p.floor, &table);
  put_comment(t, table.at);
}

static void put_schedule(const tuner *w, const ccn__tune_result *r, ccn__text *t) {
  if (r->best)
    ccn__text_printf(t, "schedule %s_tuned for %s {\n%s}\n", w->x->g->name, w->x->g->name,
                     r->seen.at[r->best].body);
}

static void put_explained(const tuner *w, const ccn__tune_result *r, ccn__text *t) {
  if (r->best) put_plan(w, t, &r->seen.at[r->best], "with this schedule");
  if (r->second && r->second != CCN__NO_ID) put_plan(w, t, &r->seen.at[r->second], "with the next best");
  put_plan(w, t, &r->seen.at[0], "alone");
}

static void put_json(const tuner *w, const ccn__tune_result *r, ccn__text *t) {
  ccn__text_puts(t, "{\"program\": ");
  ccn__json_string(t, w->x->g->name, strlen(w->x->g->name));
  ccn__text_printf(t, ", \"ranks\": %u, \"machine\": ", w->x->rt->world);
  ccn__json_string(t, w->machine->name, strlen(w->machine->name));
  ccn__text_puts(t, ", \"sizes\": {");
  put_sizes(w, t, "\"", ", \"", "\": ");
  ccn__text_printf(
    t, "}, \"moves\": %u, \"refused\": %u, \"known\": %u, \"whole\": %s, \"best\": %u, \"seen\": [", r->moves,
    r->refused, r->known, r->whole ? "true" : "false", r->best);
  for (uint32_t i = 0; i < r->seen.n; i++) {
    const ccn__tuned *s = &r->seen.at[i];
    ccn__text_printf(t, "%s{\"seconds\": ", i ? ", " : "");
    if (s->seconds < 0) ccn__text_puts(t, "null");
    else ccn__text_printf(t, "%.9g", s->seconds);
    ccn__text_printf(t, ", \"exact\": %s, \"schedule\": ", s->exact ? "true" : "false");
    ccn__json_string(t, s->body, strlen(s->body));
    ccn__text_putc(t, '}');
  }
  ccn__text_puts(t, "]}\n");
}

/* ---- the cache ------------------------------------------------------------------------------------------- */

/* All that decides: the program's graph, its sizes, the machine, what is allowed; and the price of the program alone,
 * which changes with the planner and the cost model. */
static ccn__jit_key key_of(tuner *w, ccn__arena *a) {
  ccn__text t;
  ccn__text_init(&t, a);
  ccn__graph_print(w->x->g, &t);
  ccn__machine_print(w->machine, &t);
  put_sizes(w, &t, "\nsizes ", " ", "=");
  ccn__text_printf(&t, "\nkey %llu ranks %u reassociate %d algorithm %s\n",
                   (unsigned long long)ccn__record_key(w->x), w->x->rt->world, w->desc.reassociate != 0,
                   w->plan.algorithm ? w->plan.algorithm : "");
  ccn__text_printf(&t, "alone %.17g moves %u\n", price(w, w->x->g), ccn__tune_moves());
  for (uint32_t i = 0; i < w->x->g->mesh.naxes; i++) ccn__text_printf(&t, "%d ", (int)w->x->g->mesh.size[i]);
  return ccn__jit_hash(t.at, t.n, (ccn__jit_key){{0, 0}});
}

static bool folder(const tuner *w, char *out) {
  return !(w->desc.cache && !*w->desc.cache) && ccn__cache_folder(w->desc.cache, out, PATH);
}

/* One behind the other, each with its NUL: the text of each format. */
static bool from_cache(const tuner *w, ccn__jit_key key) {
  char path[PATH];
  size_t size = 0, at = 0;
  char *found = folder(w, path) ? ccn__cache_get(path, key, tag, &size) : NULL;
  if (!found) return false;
  const bool ends = size && !found[size - 1];
  for (uint32_t i = 0; ends && i < w->format && at < size; i++) at += strlen(found + at) + 1;
  const bool good = ends && at < size;
  if (good) w->job.write(found + at, strlen(found + at), w->job.user);
  free(found);
  return good;
}

/* ---- one program ----------------------------------------------------------------------------------------- */

static void tune(ccn__rt *rt, ccn__arena *a, void *user) {
  tuner *w = user;
  const ccn__tune_options o = {
    .reassociate = w->desc.reassociate != 0,
    .price = price,
    .progress = w->desc.progress ? progress : NULL,
    .user = w,
  };
  const ccn__jit_key key = key_of(w, a);
  ccn__tune_result r;
  ccn__text head, all;
  size_t start[FORMATS + 1];
  char path[PATH];
  w->arena = a;
  if (from_cache(w, key)) return;
  ccn__tune(rt, a, w->x->g, &o, &r);
  ccn__text_init(&head, a);
  put_head(w, &r, &head);
  ccn__text_init(&all, a);
  for (uint32_t i = 0; i < FORMATS; i++) {
    start[i] = all.n;
    if (i < 2) ccn__text_puts(&all, head.at);
    if (i == 1) put_explained(w, &r, &all);
    if (i < 2) put_schedule(w, &r, &all);
    else put_json(w, &r, &all);
    ccn__text_putc(&all, 0);
  }
  start[FORMATS] = all.n;
  w->job.write(all.at + start[w->format], start[w->format + 1] - start[w->format] - 1, w->job.user);
  if (folder(w, path)) (void)ccn__cache_put(path, key, tag, all.at, all.n, KEEP);
}

static bool is_new(tuner *w, const ccn__exec *x) {
  const uint64_t key = ccn__record_key(x);
  if (!x->text || !x->g->name || (w->program && strcmp(w->program, x->g->name) != 0)) return false;
  for (const tuned *t = w->first; t; t = t->next)
    if (t->key == key && strcmp(t->program, x->g->name) == 0) return false;
  tuned *t = CCN__NEW(x->rt->arena, tuned);
  *t = (tuned){.next = w->first, .program = x->g->name, .key = key};
  w->first = t;
  return true;
}

static void execute(ccn__exec *x) {
  tuner *w = x->rt->execute_user;
  if (is_new(w, x)) {
    ccn__exec plain = *x;
    plain.schedule = NULL;
    w->x = &plain;
    ccn__with_arena(x->rt, tune, w);
    w->x = NULL;
  }
  x->rt->execute_user = NULL; /* results, and nothing recorded */
  ccn__record_execute(x);
  x->rt->execute_user = w;
}

static void instead(ccn__state *s, const ccn__ast *ast, const ccn__job *job) {
  ccn__plan_run(s, ast, &((const tuner *)job)->plan);
}

static void drive(ccn__state *s, void *user) {
  tuner *w = user;
  ccn_options *o = &s->context->options;
  const ccn_options kept = *o;
  w->machine = ccn__plan_machine(s, &w->plan);
  if (w->plan.program && !w->plan.nsizes) {
    const char *at = strpbrk(w->plan.program, "@");
    w->program =
      at ? ccn__arena_strndup(&s->arena, w->plan.program, (size_t)(at - w->plan.program)) : w->plan.program;
  }
  s->rt.recording = true;
  s->rt.schedule = unscheduled;
  s->rt.execute = execute;
  s->rt.execute_user = w;
  w->job.instead = instead;
  o->print = NULL;
  o->progress = NULL;
  ccn__trap trap;
  CCN__TRY(s->rt.heap, trap)
  { ccn__drive(s, &w->job); }
  CCN__CATCH(s->rt.heap, trap)
  {}
  o->print = kept.print;
  o->progress = kept.progress;
  s->rt.execute_user = NULL;
  if (trap.status != CCN_OK) ccn__throw(s->rt.heap, trap.status);
}

ccn_status ccn_tune_write(ccn_context *c, const char *name, const char *text, size_t size,
                          const ccn_tune_desc *desc, const char *format, ccn_write_fn write, void *user) {
  tuner w = {.format = FORMATS};
  if (!c || !name || (!text && size) || size >= UINT32_MAX || !format || !write || (desc && !desc->size))
    return CCN_INVALID_ARGUMENT;
  for (uint32_t i = 0; i < FORMATS; i++)
    if (strcmp(format, formats[i]) == 0) w.format = i;
  if (w.format == FORMATS) return CCN_INVALID_ARGUMENT;
  if (desc) memcpy(&w.desc, desc, desc->size < sizeof w.desc ? desc->size : sizeof w.desc);
  if (w.desc.plan) {
    const size_t n = w.desc.plan->size;
    if (!n) return CCN_INVALID_ARGUMENT;
    memcpy(&w.plan, w.desc.plan, n < sizeof w.plan ? n : sizeof w.plan);
  }
  if (w.plan.nsizes && (!w.plan.program || !w.plan.sizes)) return CCN_INVALID_ARGUMENT;
  w.job = (ccn__job){
    .name = name, .text = text, .size = size, .last = CCN__STAGE_RUN, .write = write, .user = user};
  return ccn__guarded(c, &c->once, CCN__RUNS | CCN__FRESH, drive, &w);
}

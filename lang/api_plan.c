/* api_plan.c: plans with their costs for hosts, and machines.
 * SPDX-License-Identifier: Apache-2.0 */
#include "algorithms.h"
#include "api.h"
#include "ccn_machines.h"
#include "record.h"

const char *ccn_machine_list(size_t i, const char **out_text) {
  size_t n = 0;
  while (ccn__machines[n].name) n++;
  if (out_text) *out_text = i < n ? ccn__machines[i].text : NULL;
  return i < n ? ccn__machines[i].name : NULL;
}

typedef struct plan_work {
  ccn__job job; /* first: ccn__job.instead gets it */
  ccn_plan_desc desc;
  const char *format;
} plan_work;

static void refuse(ccn__state *s, const char *message, const char *hint) {
  ccn__diag *d = ccn__error(&s->diags, 501, (ccn__span){0}, "", "%s", message);
  ccn__hint(&s->diags, d, "%s", hint);
  ccn__throw(s->rt.heap, CCN_ERROR);
}

static const char *machine_names(ccn__arena *a) {
  ccn__text t;
  ccn__text_init(&t, a);
  for (size_t i = 0; ccn__machines[i].name; i++)
    ccn__text_printf(&t, "%s%s", i ? ", " : "there are ", ccn__machines[i].name);
  ccn__text_puts(&t, ", and files");
  return t.at;
}

const ccn__machine *ccn__plan_machine(ccn__state *s, const ccn_plan_desc *d) {
  const char *text = d->machine_text, *why = NULL;
  const char *name = d->machine ? d->machine : "h200";
  for (size_t i = 0; !text && ccn__machines[i].name; i++)
    if (strcmp(ccn__machines[i].name, name) == 0) text = ccn__machines[i].text;
  if (!text)
    refuse(s, ccn__arena_printf(&s->arena, "there is no machine `%.60s`", name), machine_names(&s->arena));
  const ccn__machine *m = ccn__machine_read(&s->arena, text, strlen(text), &why);
  if (!m)
    refuse(s, ccn__arena_printf(&s->arena, "this is no machine: %s", why), "`ccn machine h200` shows one");
  return m;
}

static bool is(const plan_work *w, const char *format) { return strcmp(w->format, format) == 0; }

/* ---- output -------------------------------------------------------------------------------------- */

static void put(const plan_work *w, const ccn__text *t) {
  if (t->n) w->job.write(t->at, t->n, w->job.user);
}

static void write_plans(ccn__state *s, const plan_work *w, const ccn__recorder *r) {
  ccn__text t;
  ccn__text_init(&t, &s->arena);
  for (const ccn__recorded *row = r->first; row; row = row->next) {
    if (is(w, "json")) {
      ccn__text_printf(&t, "%s, \"calls\": %llu}\n", row->json, (unsigned long long)row->calls);
      continue;
    }
    if (row != r->first) ccn__text_putc(&t, '\n');
    ccn__text_puts(&t, row->table);
    if (row->calls > 1) ccn__text_printf(&t, "  called %llu times\n", (unsigned long long)row->calls);
  }
  if (!r->first && !is(w, "json")) ccn__text_puts(&t, "no such program is called\n");
  put(w, &t);
}

static void write_times(ccn__state *s, const plan_work *w, const ccn__recorder *r) {
  ccn__text t;
  ccn__text_init(&t, &s->arena);
  for (const ccn__recorded *row = r->first; row; row = row->next) {
    ccn__text_printf(&t, "%s%s%s: %llu call%s, %.6g ms each, %.3g ms at least\n",
                     row->program ? row->program : "", row->schedule ? "@" : "",
                     row->schedule ? row->schedule : "", (unsigned long long)row->calls,
                     row->calls == 1 ? "" : "s", row->seconds * 1e3, row->floor * 1e3);
    ccn__text_puts(&t, row->timeline ? row->timeline : "");
  }
  ccn__text_printf(&t, "virtual time of %u rank%s of %s: %.6g ms\n", s->rt.world, s->rt.world == 1 ? "" : "s",
                   r->machine->name, r->seconds * 1e3);
  put(w, &t);
}

/* ---- the run ------------------------------------------------------------------------------------- */

void ccn__plan_run(ccn__state *s, const ccn__ast *ast, const ccn_plan_desc *d) {
  if (d->nsizes)
    ccn__record_program(s, ast,
                        &(ccn__record_call){.program = d->program, .sizes = d->sizes, .nsizes = d->nsizes});
  else ccn__drive_run(s, ast);
}

static void instead(ccn__state *s, const ccn__ast *ast, const ccn__job *job) {
  ccn__plan_run(s, ast, &((const plan_work *)job)->desc);
}

static void split_name(ccn__state *s, const ccn_plan_desc *d, ccn__recorder *r) {
  const char *at = d->program ? strchr(d->program, '@') : NULL;
  r->program = d->program;
  if (!at) return;
  r->program = ccn__arena_strndup(&s->arena, d->program, (size_t)(at - d->program));
  const char *paren = strchr(at, '(');
  r->schedule = ccn__arena_strndup(&s->arena, at + 1, paren ? (size_t)(paren - at) - 1 : strlen(at + 1));
}

static void drive_plan(ccn__state *s, void *user) {
  plan_work *w = user;
  ccn__generator g;
  ccn_options *o = &s->context->options;
  const ccn_options kept = *o;
  ccn__recorder r = {.machine = ccn__plan_machine(s, &w->desc), .algorithm = w->desc.algorithm};
  if (r.algorithm && !ccn__generator_find(r.algorithm, &g))
    refuse(s, ccn__arena_printf(&s->arena, "there is no algorithm `%.60s`", r.algorithm),
           "`ccn algo` lists them");
  if (!w->desc.nsizes) split_name(s, &w->desc, &r);
  r.tables = is(w, "table");
  r.json = is(w, "json");
  r.timelines = is(w, "time");
  r.trace = w->desc.trace;
  r.trace_user = w->desc.trace_user;
  s->rt.recording = true;
  s->rt.execute = ccn__record_execute;
  s->rt.execute_user = &r;
  w->job.instead = instead;
  if (!is(w, "time")) o->print = NULL, o->progress = NULL;
  if (r.trace) r.trace("[", 1, r.trace_user);
  ccn__trap trap;
  CCN__TRY(s->rt.heap, trap)
  { ccn__drive(s, &w->job); }
  CCN__CATCH(s->rt.heap, trap)
  {}
  o->print = kept.print;
  o->progress = kept.progress;
  s->rt.execute_user = NULL;
  if (r.trace) r.trace("\n]\n", 3, r.trace_user);
  if (trap.status != CCN_OK) ccn__throw(s->rt.heap, trap.status);
  if (s->diags.errors) return;
  if (is(w, "time")) write_times(s, w, &r);
  else write_plans(s, w, &r);
}

ccn_status ccn_plan_write(ccn_context *c, const char *name, const char *text, size_t size,
                          const ccn_plan_desc *desc, const char *format, ccn_write_fn write, void *user) {
  plan_work w = {.format = format};
  if (!c || !name || (!text && size) || size >= UINT32_MAX || !format || !write || (desc && !desc->size))
    return CCN_INVALID_ARGUMENT;
  if (!is(&w, "table") && !is(&w, "json") && !is(&w, "time")) return CCN_INVALID_ARGUMENT;
  if (desc) memcpy(&w.desc, desc, desc->size < sizeof w.desc ? desc->size : sizeof w.desc);
  if (w.desc.nsizes && (!w.desc.program || !w.desc.sizes)) return CCN_INVALID_ARGUMENT;
  w.job = (ccn__job){
    .name = name, .text = text, .size = size, .last = CCN__STAGE_RUN, .write = write, .user = user};
  return ccn__guarded(c, &c->once, CCN__RUNS | CCN__FRESH, drive_plan, &w);
}

static void measure(ccn__state *s, void *user) {
  const ccn__job *job = user;
  ccn__text t;
  ccn__text_init(&t, &s->arena);
  ccn__machine_print(ccn__machine_measure(&s->arena), &t);
  job->write(t.at, t.n, job->user);
}

ccn_status ccn_machine_measure(ccn_context *c, ccn_write_fn write, void *user) {
  if (!c || !write) return CCN_INVALID_ARGUMENT;
  return ccn__guarded(c, &c->once, CCN__RUNS | CCN__FRESH, measure,
                      &(ccn__job){.write = write, .user = user});
}

/* api_report.c: what the host may ask about: what a context has used and sent, and what the statements of
 * schedules made of programs.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "api.h"

/* ---- the report ------------------------------------------------------------------------------------- */

static void json_text(ccn__text *t, const char *s) {
  if (s) ccn__json_string(t, s, strlen(s));
  else ccn__text_puts(t, "null");
}

static void json_numbers(ccn__text *t, const uint64_t *x, uint32_t n) {
  ccn__text_putc(t, '[');
  for (uint32_t i = 0; i < n; i++) ccn__text_printf(t, i ? ", %llu" : "%llu", (unsigned long long)x[i]);
  ccn__text_putc(t, ']');
}

static void json_traffic(ccn__text *t, const ccn__rt *rt) {
  bool first = true;
  ccn__text_puts(t, "[");
  for (size_t b = 0; b < CCN__COUNT(rt->traffic); b++)
    for (const ccn__sent *row = rt->traffic[b]; row; row = row->next, first = false) {
      ccn__text_puts(t, first ? "\n  {\"program\": " : ",\n  {\"program\": ");
      json_text(t, row->program);
      ccn__text_puts(t, ", \"schedule\": ");
      json_text(t, row->schedule);
      ccn__text_puts(t, ", \"name\": ");
      json_text(t, row->name);
      ccn__text_printf(t, ", \"op\": \"%s\", \"calls\": %llu, \"sent\": ", ccn__op_table[row->op].name,
                       (unsigned long long)row->calls);
      json_numbers(t, row->sent, rt->world);
      ccn__text_putc(t, '}');
    }
  ccn__text_putc(t, ']');
}

static void write_report(ccn__state *s, void *user) {
  const ccn__job *job = user;
  const ccn_context *c = s->context;
  ccn__rt *rt = c->last ? &c->last->rt : &s->rt; /* of the last text, or of the session */
  uint64_t *resident = CCN__NEWN(&s->rt.scratch, uint64_t, rt->world);
  ccn__text t;
  if (!c->callbacks) ccn__collect(rt);
  ccn__resident_bytes(rt, resident);
  ccn__text_init(&t, &s->rt.scratch);
  ccn__text_printf(&t,
                   "{\"memory_live\": %zu, \"memory_peak\": %zu, \"memory_limit\": %zu, \"calls\": %llu, "
                   "\"ops\": %llu,\n \"resident\": ",
                   c->heap.live, c->heap.peak, c->heap.limit, (unsigned long long)c->ncalls,
                   (unsigned long long)c->nops);
  json_numbers(&t, resident, rt->world);
  ccn__text_puts(&t, ",\n \"traffic\": ");
  json_traffic(&t, rt);
  ccn__text_puts(&t, "}\n");
  job->write(t.at, t.n, job->user);
}

ccn_status ccn_report_write(ccn_context *c, ccn_write_fn write, void *user) {
  if (!c || !write) return CCN_INVALID_ARGUMENT;
  return ccn__guarded(c, &c->session, CCN__NESTS, write_report, &(ccn__job){.write = write, .user = user});
}

/* ---- passes ----------------------------------------------------------------------------------------- */

typedef struct passes_work {
  ccn__job job;
  ccn_pass_fn tell;
  void *user;
  uint32_t programs; /* with schedules, seen so far */
} passes_work;

static void tell(ccn__rt *rt, const ccn__passed *p, void *user) {
  passes_work *w = user;
  ccn__text t;
  ccn__text_init(&t, rt->diags->arena);
  ccn__graph_print(p->g, &t);
  if (!p->step) w->programs++;
  ccn_pass out = {.size = sizeof out,
                  .program = p->program->name,
                  .number = w->programs - 1,
                  .step = p->step,
                  .name = p->name,
                  .exact = p->exact,
                  .seconds = (double)p->ns * 1e-9,
                  .nodes = p->g->nodes.n,
                  .graph = t.at,
                  .graph_size = t.n};
  if (p->span.source && p->span.source < rt->diags->nsources) {
    uint32_t column;
    ccn__source *source = rt->diags->sources[p->span.source];
    out.file = source->name;
    ccn__source_locate(rt->diags->arena, source, p->span.start, &out.line, &column);
  }
  w->tell(&out, w->user);
}

static void drive_passes(ccn__state *s, void *user) {
  passes_work *w = user;
  s->rt.passed = tell;
  s->rt.passed_user = w;
  ccn__drive(s, &w->job);
}

ccn_status ccn_passes(ccn_context *c, const char *name, const char *text, size_t size, ccn_pass_fn fn,
                      void *user) {
  passes_work w = {
    .job = {.name = name, .text = text, .size = size, .last = CCN__STAGE_CHECK}, .tell = fn, .user = user};
  if (!c || !fn || !name || (!text && size) || size >= UINT32_MAX) return CCN_INVALID_ARGUMENT;
  return ccn__guarded(c, &c->once, CCN__RUNS | CCN__FRESH, drive_passes, &w);
}

const char *ccn_pass_list(size_t i, const char **out_summary) {
  static const struct {
    const char *name, *summary;
  } passes[] = {
#define PASS(name, params, class, doc) {#name, doc},
#include "passes.def"
#undef PASS
  };
  if (i >= CCN__COUNT(passes)) return NULL;
  if (out_summary) *out_summary = passes[i].summary;
  return passes[i].name;
}

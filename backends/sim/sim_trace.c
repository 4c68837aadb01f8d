/* sim_trace.c: what was simulated as Chrome trace events, and as a picture of characters.
 * SPDX-License-Identifier: Apache-2.0 */
#include "sim.h"

static const char *name_of(const ccn__plan *p, const ccn__step *t) {
  const ccn__node *best = NULL;
  for (uint32_t k = 0; k < t->nnodes; k++) {
    const ccn__node *n = &p->g->nodes.at[t->node[k]];
    const bool collective = ccn__op_table[n->op].kind == CCN__KIND_COLLECTIVE;
    if (!best || (n->name && !best->name) ||
        (collective && ccn__op_table[best->op].kind != CCN__KIND_COLLECTIVE))
      best = n;
  }
  if (!best || t->kind == CCN__STEP_COPY) return ccn__step_kind_name[t->kind];
  return best->name ? best->name : best->autoname ? best->autoname : ccn__op_table[best->op].name;
}

void ccn__sim_trace(const ccn__plan *p, const ccn__sim_result *r, double offset, ccn__text *out) {
  for (uint32_t i = 0; i < r->events.n; i++) {
    const ccn__sim_event *e = &r->events.at[i];
    const ccn__step *t = &p->steps.at[e->step];
    const char *name = name_of(p, t);
    ccn__text_puts(out, "{\"ph\": \"X\", \"name\": ");
    ccn__json_string(out, name, strlen(name));
    ccn__text_printf(out,
                     ", \"cat\": \"%s\", \"pid\": %u, \"tid\": %u, \"ts\": ", ccn__step_kind_name[t->kind],
                     e->rank, t->stream);
    ccn__text_float(out, (offset + e->start) * 1e6, false);
    ccn__text_puts(out, ", \"dur\": ");
    ccn__text_float(out, (e->end - e->start) * 1e6, false);
    ccn__text_puts(out, ", \"args\": {\"program\": ");
    ccn__json_string(out, p->label ? p->label : "", p->label ? strlen(p->label) : 0);
    ccn__text_printf(out, ", \"step\": %u, \"chunk\": %u, \"chunks\": %u}}\n", e->step, t->chunk, t->chunks);
  }
}

/* Letters for chunks of steps that compute, digits for those of steps that meet; # and = where nothing is
 * cut. */
static char letter(const ccn__step *t) {
  if (t->chunks < 2) return t->group ? '=' : '#';
  return (char)(t->group ? '0' + t->chunk % 10 : 'a' + t->chunk % 26);
}

static void one_line(const ccn__plan *p, const ccn__sim_result *r, uint32_t rank, uint32_t stream,
                     uint32_t width, ccn__text *out) {
  char line[256];
  if (width > sizeof line - 1) width = sizeof line - 1;
  memset(line, '.', width);
  line[width] = 0;
  for (uint32_t i = 0; i < r->events.n; i++) {
    const ccn__sim_event *e = &r->events.at[i];
    const ccn__step *t = &p->steps.at[e->step];
    if (e->rank != rank || t->stream != stream || !(r->time > 0)) continue;
    uint32_t from = (uint32_t)(e->start / r->time * width), to = (uint32_t)(e->end / r->time * width);
    if (from >= width) from = width - 1;
    for (uint32_t x = from; x < width && (x < to || x == from); x++) line[x] = letter(t);
  }
  ccn__text_printf(out, "  rank %-4u stream %u |%s|\n", rank, stream, line);
}

void ccn__sim_timeline(const ccn__plan *p, const ccn__sim_result *r, uint32_t ranks, uint32_t width,
                       ccn__text *out) {
  for (uint32_t k = 0; k < ranks && k < p->world; k++)
    for (uint32_t s = 0; s < p->nstreams; s++) one_line(p, r, k, s, width, out);
}

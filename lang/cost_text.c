/* cost_text.c: a plan with its costs: a table for people, JSON for programs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "record.h"

#include <stdio.h>

static const char *node_name(const ccn__plan *p, ccn__id i) {
  const ccn__node *n = &p->g->nodes.at[i];
  return n->name ? n->name : n->autoname ? n->autoname : ccn__op_table[n->op].name;
}

/* Three digits and a unit of a thousand: "13.6 ms", "4 GB". */
static const char *amount(double x, const char *unit, char *out, size_t n) {
  static const char *const prefix[] = {"n", "u", "m", "", "k", "M", "G", "T", "P", "E"};
  uint32_t k = 3;
  if (x < 1e-11) return snprintf(out, n, "0"), out;
  while (x >= 999.5 && k < 9) x /= 1000, k++;
  while (x < 0.9995 && k > 0) x *= 1000, k--;
  snprintf(out, n, "%.*f %s%s", x < 9.995 ? 2 : x < 99.95 ? 1 : 0, x, prefix[k], unit);
  return out;
}

/* What changes the order of sums, one line each. */
static void print_reassociating(const ccn__plan *p, ccn__text *out) {
  const ccn__graph *g = p->g;
  for (ccn__id i = 0; i < g->nodes.n; i++) {
    const ccn__node *n = &g->nodes.at[i];
    const int64_t order = ccn__attr_int(n->attrs, CCN__A_ORDER, CCN__ORDER_RANK);
    const ccn__order family = ccn__order_of(order);
    const bool fast = ccn__attr_int(n->attrs, CCN__A_FAST, 0);
    const bool wider = ccn__attr_find(n->attrs, CCN__A_ACCUMULATE) != NULL;
    if (!fast && !wider && (family == CCN__ORDER_RANK || family == CCN__ORDER_AXIS)) continue;
    ccn__text_printf(out, "  reassociates: `%s`", node_name(p, i));
    if (family != CCN__ORDER_RANK && family != CCN__ORDER_AXIS) {
      ccn__text_puts(out, ", order ");
      ccn__order_print(order, out);
    }
    ccn__text_puts(out, wider ? ", accumulate" : "");
    ccn__text_puts(out, fast ? ", fast\n" : "\n");
  }
}

/* "kernel avg, w1 (+17)": names until the column is full. */
static void step_name(const ccn__plan *p, const ccn__step *t, ccn__text *out) {
  enum { WIDTH = 42 };
  const size_t start = out->n;
  uint32_t shown = 0;
  ccn__text_puts(out, ccn__step_kind_name[t->kind]);
  if (t->chunks > 1) ccn__text_printf(out, " %u/%u", t->chunk + 1, t->chunks);
  for (uint32_t k = 0; k < t->nnodes && t->kind != CCN__STEP_COPY; k++) {
    const ccn__node *n = &p->g->nodes.at[t->node[k]];
    const char *name = node_name(p, t->node[k]);
    if (!n->name && t->nnodes > 1 && ccn__op_table[n->op].kind != CCN__KIND_COLLECTIVE) continue;
    if (out->n - start + strlen(name) + 9 > WIDTH) break;
    ccn__text_printf(out, "%s %s", shown++ ? "," : "", name);
  }
  if (shown < t->nnodes && t->kind != CCN__STEP_COPY) ccn__text_printf(out, " (+%u)", t->nnodes - shown);
  while (out->n - start < WIDTH) ccn__text_putc(out, ' ');
}

static void print_row(const ccn__plan *p, const ccn__cost *c, uint32_t i, ccn__text *out) {
  const ccn__step *t = &p->steps.at[i];
  const ccn__step_cost *s = &c->step[i];
  char a[5][32];
  if (t->kind == CCN__STEP_REPEAT) {
    ccn__text_printf(out, "  %-4u repeat steps %u-%u, %lld times\n", i, i + 1, t->end - 1,
                     (long long)t->times);
    return;
  }
  ccn__text_printf(out, "  %-4u ", i);
  step_name(p, t, out);
  ccn__text_printf(out, " %9s %9s %9s %9s %9s  %-7s %4.0f%%\n", amount((double)s->sent, "B", a[0], 32),
                   amount((double)s->memory, "B", a[1], 32), amount(s->flops, "", a[2], 32),
                   amount(s->floor, "s", a[3], 32), amount(s->time, "s", a[4], 32), ccn__bound_name[s->bound],
                   s->time > 0 ? 100 * s->floor / s->time : 100.0);
}

void ccn__cost_print(const ccn__plan *p, const ccn__cost *c, double seconds, double floor, ccn__text *out) {
  const ccn__mesh *m = &p->g->mesh;
  char a[4][32];
  ccn__text_printf(out, "plan %s on %u rank%s", p->label ? p->label : "", p->world, p->world == 1 ? "" : "s");
  for (uint32_t k = 0; k < m->naxes; k++)
    ccn__text_printf(out, "%s%s: %d", k ? ", " : " (", m->name[k], (int)m->size[k]);
  if (m->naxes) ccn__text_putc(out, ')');
  ccn__text_printf(out, " of %s\n  %-4s %-42s %9s %9s %9s %9s %9s  %-7s %5s\n", c->machine->name, "step", "",
                   "sent", "memory", "flops", "floor", "time", "bound", "limit");
  for (uint32_t i = 0; i < p->steps.n; i++) print_row(p, c, i, out);
  ccn__text_printf(out, "  total %s, %.0f%% of the limit; memory of a rank %s",
                   amount(seconds, "s", a[0], 32), seconds > 0 ? 100 * floor / seconds : 100.0,
                   amount((double)c->memory, "B", a[1], 32));
  ccn__text_printf(out, " of %s%s\n", amount(c->machine->memory, "B", a[2], 32),
                   (double)c->memory > c->machine->memory ? ": it does not fit" : "");
  for (uint32_t i = 0; i < c->sent.n; i++) {
    int64_t most = 0;
    for (uint32_t r = 0; r < p->world; r++)
      if (c->sent.at[i].sent[r] > most) most = c->sent.at[i].sent[r];
    ccn__text_printf(
      out, "  %s `%s`: algorithm %s, %s sent\n", ccn__op_table[p->g->nodes.at[c->sent.at[i].node].op].name,
      node_name(p, c->sent.at[i].node), c->sent.at[i].algorithm, amount((double)most, "B", a[3], 32));
  }
  for (uint32_t i = 0; i < c->sent.n; i++)
    if (c->sent.at[i].reorders)
      ccn__text_printf(out, "  would reassociate: `%s`, by algorithm %s\n", node_name(p, c->sent.at[i].node),
                       c->sent.at[i].algorithm);
  print_reassociating(p, out);
}

/* ---- JSON ---------------------------------------------------------------------------------------- */

static void put_number(ccn__text *out, const char *key, double x) {
  ccn__text_printf(out, ", \"%s\": ", key);
  ccn__text_float(out, x, false);
}

static void put_string(ccn__text *out, const char *before, const char *s) {
  ccn__text_puts(out, before);
  ccn__json_string(out, s, strlen(s));
}

static void json_step(const ccn__plan *p, const ccn__cost *c, uint32_t i, ccn__text *out) {
  const ccn__step *t = &p->steps.at[i];
  const ccn__step_cost *s = &c->step[i];
  ccn__text_printf(out, "{\"kind\": \"%s\", \"stream\": %u, \"chunk\": %u, \"chunks\": %u, \"ops\": [",
                   ccn__step_kind_name[t->kind], t->stream, t->chunk, t->chunks);
  for (uint32_t k = 0; k < t->nnodes && t->kind != CCN__STEP_COPY; k++)
    put_string(out, k ? ", " : "", node_name(p, t->node[k]));
  ccn__text_printf(out, "], \"sent\": %lld, \"memory\": %lld", (long long)s->sent, (long long)s->memory);
  put_number(out, "flops", s->flops);
  put_number(out, "floor", s->floor);
  put_number(out, "time", s->time);
  put_number(out, "passes", s->passes);
  ccn__text_printf(out, ", \"bound\": \"%s\"}", ccn__bound_name[s->bound]);
}

static void json_sent(const ccn__plan *p, const ccn__sent_cost *s, ccn__text *out) {
  put_string(out, "{\"name\": ", node_name(p, s->node));
  ccn__text_printf(out, ", \"op\": \"%s\"", ccn__op_table[p->g->nodes.at[s->node].op].name);
  put_string(out, ", \"algorithm\": ", s->algorithm);
  ccn__text_printf(out, ", \"reorders\": %s", s->reorders ? "true" : "false");
  ccn__text_puts(out, ", \"sent\": [");
  for (uint32_t r = 0; r < p->world; r++)
    ccn__text_printf(out, "%s%lld", r ? ", " : "", (long long)s->sent[r]);
  ccn__text_puts(out, "]}");
}

void ccn__cost_print_json(const ccn__plan *p, const ccn__cost *c, double seconds, double floor,
                          ccn__text *out) {
  put_string(out, "{\"program\": ", p->label ? p->label : "");
  put_string(out, ", \"machine\": ", c->machine->name);
  ccn__text_printf(out, ", \"ranks\": %u", p->world);
  put_number(out, "time", seconds);
  put_number(out, "floor", floor);
  ccn__text_printf(out, ", \"memory\": %lld, \"steps\": [", (long long)c->memory);
  for (uint32_t i = 0; i < p->steps.n; i++) {
    if (i) ccn__text_puts(out, ", ");
    json_step(p, c, i, out);
  }
  ccn__text_puts(out, "], \"collectives\": [");
  for (uint32_t i = 0; i < c->sent.n; i++) {
    if (i) ccn__text_puts(out, ", ");
    json_sent(p, &c->sent.at[i], out);
  }
  ccn__text_putc(out, ']');
}

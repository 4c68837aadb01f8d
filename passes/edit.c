/* edit.c: making a graph from another: copies in order with changes in between.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "schedule.h"

void ccn__edit_begin(ccn__pass *s) {
  ccn__graph *g = s->g, *n = CCN__NEW(s->arena, ccn__graph);
  *n = *g;
  n->arena = s->arena;
  n->nodes.at = NULL;
  n->nodes.n = n->nodes.cap = 0;
  n->regions.at = CCN__NEWN(s->arena, ccn__region, g->regions.n + 1);
  n->regions.cap = g->regions.n;
  memcpy(n->regions.at, g->regions.at, g->regions.n * sizeof *n->regions.at);
  n->params.at = CCN__NEWN(s->arena, ccn__param, g->params.n + 1);
  n->params.cap = g->params.n;
  memcpy(n->params.at, g->params.at, g->params.n * sizeof *n->params.at);
  /* symbols and constraints stay as they are: shared until one is added */
  n->symbols.cap = n->symbols.n;
  n->constraints.cap = n->constraints.n;
  s->edit = (ccn__edit){.from = g, .to = n, .map = CCN__NEWN(s->arena, ccn__id, g->nodes.n + 1)};
  memset(s->edit.map, 0xff, (g->nodes.n + 1) * sizeof(ccn__id));
}

static ccn__id copy(ccn__pass *s, const ccn__node *n, const ccn__id *in) {
  ccn__id id = ccn__graph_add(s->edit.to, (ccn__op)n->op, in, n->nin, n->type, n->attrs, n->span, n->region);
  ccn__node *c = &s->edit.to->nodes.at[id];
  c->body = n->body;
  c->name = n->name;
  c->autoname = n->autoname;
  c->call = n->call;
  if (n->body) s->edit.to->regions.at[n->body].owner = id;
  return id;
}

ccn__id ccn__edit_keep(ccn__pass *s, ccn__id i) {
  const ccn__node *n = &s->g->nodes.at[i];
  ccn__id *in = CCN__NEWN(s->arena, ccn__id, n->nin + 1);
  for (uint32_t k = 0; k < n->nin; k++) in[k] = s->edit.map[n->in[k]];
  return s->edit.map[i] = copy(s, n, in);
}

ccn__id ccn__edit_add(ccn__pass *s, ccn__op op, const ccn__id *in, uint32_t nin, ccn__attrs attrs,
                      const ccn__type *want, const ccn__node *like, ccn__type_error *err) {
  const ccn__type **types = CCN__NEWN(s->arena, const ccn__type *, nin + 1);
  ccn__type t;
  for (uint32_t i = 0; i < nin; i++) types[i] = s->edit.to->nodes.at[in[i]].type;
  ccn__infer_in q = {.g = s->edit.to, .op = op, .in = types, .nin = nin, .attrs = attrs, .want = want};
  if (!ccn__infer(&q, &t, err)) return CCN__NO_ID;
  ccn__id id = ccn__graph_add(s->edit.to, op, in, nin, &t, attrs, like->span, like->region);
  s->edit.to->nodes.at[id].call = like->call;
  return id;
}

void ccn__edit_name(ccn__pass *s, ccn__id id, const ccn__node *base, const char *suffix) {
  const char *b = base->name ? base->name : base->autoname;
  if (b)
    s->edit.to->nodes.at[id].name =
      ccn__internz(s->g->names, ccn__arena_printf(s->arena, "%s.%s", b, suffix));
}

ccn__graph *ccn__edit_end(ccn__pass *s) {
  ccn__graph *n = s->edit.to;
  ccn__id *map = s->edit.map, *out = CCN__NEWN(s->arena, ccn__id, n->noutputs + 1);
  for (uint32_t i = 0; i < n->noutputs; i++) out[i] = map[n->outputs[i]];
  n->outputs = out;
  for (uint32_t i = 0; i < n->params.n; i++) {
    n->params.at[i].node = map[n->params.at[i].node];
    if (n->params.at[i].update != CCN__NO_ID) n->params.at[i].update = map[n->params.at[i].update];
  }
  for (uint32_t r = 1; r < n->regions.n; r++) {
    ccn__id *y = CCN__NEWN(s->arena, ccn__id, n->regions.at[r].nyield + 1);
    for (uint32_t k = 0; k < n->regions.at[r].nyield; k++) y[k] = map[n->regions.at[r].yield[k]];
    n->regions.at[r].yield = y;
  }
  return n;
}

ccn__attrs ccn__attrs_without(ccn__arena *a, ccn__attrs as, ccn__attr_key key) {
  ccn__attr *at = CCN__NEWN(a, ccn__attr, as.n + 1);
  uint32_t n = 0;
  for (uint32_t i = 0; i < as.n; i++)
    if (as.at[i].key != key) at[n++] = as.at[i];
  return (ccn__attrs){at, n};
}

ccn__attrs ccn__attrs_with(ccn__arena *a, ccn__attrs as, ccn__attr x) {
  ccn__attrs r = ccn__attrs_without(a, as, (ccn__attr_key)x.key);
  ccn__attr *at = (ccn__attr *)(uintptr_t)r.at; /* made just now, with room for one more */
  at[r.n] = x;
  return (ccn__attrs){at, r.n + 1};
}

ccn__diag *ccn__refuse(ccn__pass *s, uint16_t code, ccn__id node, const char *note, const char *fmt, ...) {
  char text[512];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  ccn__diag *d = ccn__error(s->rt->diags, code, s->span, "refused", "`%s`: %s", s->name, text);
  if (node != CCN__NO_ID) ccn__note(s->rt->diags, d, s->g->nodes.at[node].span, "%s", note);
  return d;
}

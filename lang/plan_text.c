/* plan_text.c: a plan as text for people and as JSON for programs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "plan.h"

const char *const ccn__step_kind_name[CCN__STEP_KINDS] = {
  [CCN__STEP_KERNEL] = "kernel", [CCN__STEP_COLLECTIVE] = "collective",
  [CCN__STEP_MATMUL] = "matmul", [CCN__STEP_OP] = "op",
  [CCN__STEP_COPY] = "copy",     [CCN__STEP_REPEAT] = "repeat"};
static const char *const buffer_kind_name[] = {"argument", "result", "temporary"};

static const char *node_name(const ccn__plan *p, ccn__id i) {
  const ccn__node *n = &p->g->nodes.at[i];
  return n->name ? n->name : n->autoname ? n->autoname : ccn__op_table[n->op].name;
}

static bool only_effect(const ccn__plan *p, ccn__id i) { return p->g->nodes.at[i].op == CCN__OP_UPDATE; }

static void print_axes(const ccn__plan *p, uint8_t mask, ccn__text *out) {
  const char *between = "";
  for (uint32_t a = 0; a < p->g->mesh.naxes; a++) {
    if (!(mask >> a & 1)) continue;
    ccn__text_printf(out, "%s%s", between, p->g->mesh.name[a]);
    between = ", ";
  }
}

static int64_t bytes_of_kind(const ccn__plan *p, uint8_t kind) {
  int64_t sum = 0;
  for (uint32_t b = 0; b < p->buffers.n; b++)
    if (p->buffers.at[b].kind == kind) sum += p->buffers.at[b].bytes;
  return sum;
}

static void print_head(const ccn__plan *p, ccn__text *out) {
  const ccn__mesh *m = &p->g->mesh;
  ccn__text_printf(out, "plan %s on %u rank%s", p->label ? p->label : "", p->world, p->world == 1 ? "" : "s");
  for (uint32_t a = 0; a < m->naxes; a++)
    ccn__text_printf(out, "%s%s: %d", a ? ", " : " (", m->name[a], (int)m->size[a]);
  if (m->naxes) ccn__text_putc(out, ')');
  ccn__text_printf(out,
                   "\n  memory of a rank: %lld bytes of arguments, %lld of results, %lld of temporaries\n",
                   (long long)bytes_of_kind(p, CCN__BUFFER_ARGUMENT),
                   (long long)bytes_of_kind(p, CCN__BUFFER_RESULT), (long long)p->arena_bytes);
}

static void print_buffer(const ccn__plan *p, uint32_t i, ccn__text *out) {
  const ccn__buffer *b = &p->buffers.at[i];
  ccn__text_printf(out, "  b%-3u %-9s %10lld bytes", i, buffer_kind_name[b->kind], (long long)b->bytes);
  if (b->kind == CCN__BUFFER_TEMPORARY) ccn__text_printf(out, " at %lld", (long long)b->offset);
  ccn__text_printf(out, "  epochs %u-%u  `%s`: ", b->first, b->last, node_name(p, b->value));
  ccn__type_print(p->g, p->g->nodes.at[b->value].type, out);
  if (b->peers) ccn__text_puts(out, ", used by peers");
  ccn__text_putc(out, '\n');
}

enum { SHOWN = 24 }; /* of a long list; JSON has all */

/* The named ops of a step, and how many others. */
static void print_ops(const ccn__plan *p, const ccn__step *t, ccn__text *out) {
  uint32_t others = 0, named = 0;
  const char *between = " ";
  for (uint32_t k = 0; k < t->nnodes; k++) {
    const ccn__node *n = &p->g->nodes.at[t->node[k]];
    const bool shown = n->name || t->nnodes == 1 || ccn__op_table[n->op].kind == CCN__KIND_COLLECTIVE;
    if (!shown || ++named > SHOWN) {
      others++;
      continue;
    }
    ccn__text_printf(out, "%s`%s`", between, node_name(p, t->node[k]));
    if (!only_effect(p, t->node[k])) ccn__text_printf(out, " (%s)", ccn__op_table[n->op].name);
    between = ", ";
  }
  if (others)
    ccn__text_printf(out, "%s%u %s%s", between, others, t->nnodes == others ? "" : "other ",
                     others == 1 ? "op" : "ops");
}

static void print_accesses(const ccn__step *t, uint8_t mode, const char *word, ccn__text *out) {
  const char *between = word;
  uint32_t n = 0;
  for (uint32_t k = 0; k < t->naccess; k++) {
    const ccn__access *x = &t->access[k];
    if (!(x->mode & mode) || x->buffer == CCN__NO_BUFFER || ++n > SHOWN) continue;
    ccn__text_printf(out, "%sb%u%s", between, x->buffer,
                     x->mode & (mode == CCN__READ ? CCN__READ_PEERS : CCN__WRITE_PEERS) ? " of peers" : "");
    between = ", ";
  }
  if (n > SHOWN) ccn__text_printf(out, ", and %u more", n - SHOWN);
}

static void print_step(const ccn__plan *p, uint32_t i, ccn__text *out) {
  const ccn__step *t = &p->steps.at[i];
  ccn__text_printf(out, "  %-3u ", i);
  if (p->nstreams > 1) ccn__text_printf(out, "stream %u  ", t->stream);
  ccn__text_puts(out, ccn__step_kind_name[t->kind]);
  if (t->kind == CCN__STEP_REPEAT) {
    ccn__text_printf(out, " steps %u-%u, %lld times\n", i + 1, t->end - 1, (long long)t->times);
    return;
  }
  if (t->chunks > 1) ccn__text_printf(out, " chunk %u of %u", t->chunk + 1, t->chunks);
  ccn__text_putc(out, ':');
  if (t->kind != CCN__STEP_COPY) print_ops(p, t, out);
  if (t->group) {
    ccn__text_puts(out, "; over ");
    print_axes(p, t->group, out);
  }
  print_accesses(t, CCN__READ, "; reads ", out);
  print_accesses(t, CCN__WRITE, "; writes ", out);
  for (uint32_t w = 0; w < t->nwait; w++)
    ccn__text_printf(out, "%s%u", w ? ", " : "; waits for ", t->wait[w]);
  ccn__text_putc(out, '\n');
}

void ccn__plan_print(const ccn__plan *p, ccn__text *out) {
  print_head(p, out);
  for (uint32_t b = 0; b < p->buffers.n; b++) print_buffer(p, b, out);
  for (uint32_t i = 0; i < p->steps.n; i++) print_step(p, i, out);
}

/* ---- JSON ------------------------------------------------------------------------------------------------------ */

static void json_string(ccn__text *out, const char *key, const char *value) {
  ccn__text_printf(out, "\"%s\": ", key);
  ccn__json_string(out, value, strlen(value));
}

static void json_buffer(const ccn__plan *p, uint32_t i, ccn__text *out) {
  const ccn__buffer *b = &p->buffers.at[i];
  ccn__text type;
  ccn__text_init(&type, p->arena);
  ccn__type_print(p->g, p->g->nodes.at[b->value].type, &type);
  ccn__text_putc(out, '{');
  json_string(out, "kind", buffer_kind_name[b->kind]);
  ccn__text_puts(out, ", ");
  json_string(out, "value", node_name(p, b->value));
  ccn__text_puts(out, ", ");
  json_string(out, "type", type.at);
  ccn__text_printf(out, ", \"bytes\": %lld, \"offset\": %lld, \"first\": %u, \"last\": %u, \"peers\": %s}",
                   (long long)b->bytes, (long long)b->offset, b->first, b->last, b->peers ? "true" : "false");
}

static void json_accesses(const ccn__step *t, uint8_t mode, ccn__text *out) {
  const char *between = "";
  for (uint32_t k = 0; k < t->naccess; k++) {
    const ccn__access *x = &t->access[k];
    if (!(x->mode & mode) || x->buffer == CCN__NO_BUFFER) continue;
    ccn__text_printf(out, "%s{\"buffer\": %u, \"peers\": %s, \"chunked\": %s}", between, x->buffer,
                     x->mode & (mode == CCN__READ ? CCN__READ_PEERS : CCN__WRITE_PEERS) ? "true" : "false",
                     x->chunked ? "true" : "false");
    between = ", ";
  }
}

static void json_step(const ccn__plan *p, uint32_t i, ccn__text *out) {
  const ccn__step *t = &p->steps.at[i];
  ccn__text_putc(out, '{');
  json_string(out, "kind", ccn__step_kind_name[t->kind]);
  ccn__text_printf(out, ", \"stream\": %u, \"epoch\": %u, \"chunk\": %u, \"chunks\": %u", t->stream, t->epoch,
                   t->chunk, t->chunks);
  if (t->kind == CCN__STEP_REPEAT)
    ccn__text_printf(out, ", \"end\": %u, \"times\": %lld", t->end, (long long)t->times);
  ccn__text_puts(out, ", \"over\": \"");
  print_axes(p, t->group, out);
  ccn__text_puts(out, "\", \"ops\": [");
  for (uint32_t k = 0; k < t->nnodes && t->kind != CCN__STEP_COPY; k++) {
    ccn__text_puts(out, k ? ", {" : "{");
    json_string(out, "name", node_name(p, t->node[k]));
    ccn__text_puts(out, ", ");
    json_string(out, "op", ccn__op_table[p->g->nodes.at[t->node[k]].op].name);
    ccn__text_putc(out, '}');
  }
  ccn__text_puts(out, "], \"reads\": [");
  json_accesses(t, CCN__READ, out);
  ccn__text_puts(out, "], \"writes\": [");
  json_accesses(t, CCN__WRITE, out);
  ccn__text_puts(out, "], \"waits\": [");
  for (uint32_t w = 0; w < t->nwait; w++) ccn__text_printf(out, "%s%u", w ? ", " : "", t->wait[w]);
  ccn__text_puts(out, "]}");
}

void ccn__plan_print_json(const ccn__plan *p, ccn__text *out) {
  const ccn__mesh *m = &p->g->mesh;
  ccn__text_putc(out, '{');
  json_string(out, "program", p->label ? p->label : "");
  ccn__text_printf(out, ", \"ranks\": %u, \"mesh\": {", p->world);
  for (uint32_t a = 0; a < m->naxes; a++)
    ccn__text_printf(out, "%s\"%s\": %d", a ? ", " : "", m->name[a], (int)m->size[a]);
  ccn__text_printf(out, "}, \"streams\": %u, \"temporaries\": %lld, \"buffers\": [", p->nstreams,
                   (long long)p->arena_bytes);
  for (uint32_t b = 0; b < p->buffers.n; b++) {
    if (b) ccn__text_puts(out, ", ");
    json_buffer(p, b, out);
  }
  ccn__text_puts(out, "], \"steps\": [");
  for (uint32_t i = 0; i < p->steps.n; i++) {
    if (i) ccn__text_puts(out, ", ");
    json_step(p, i, out);
  }
  ccn__text_puts(out, "]}\n");
}

/* plan_buffers.c: where values live: which need memory, updates in place, lifetimes, the arena of temporaries.
 * SPDX-License-Identifier: Apache-2.0 */
#include "plan_impl.h"

enum { PART_PLACE = 16 }; /* where in the tree a part stands */

typedef struct homes {
  ccn__planner *s;
  ccn__plan *p;
  uint32_t *epoch;    /* of each group */
  uint32_t last_fail; /* the last epoch in which something can be refused, + 1 */
} homes;

static uint32_t group_of(const homes *h, ccn__id i) { return h->s->group_of[i]; }
static bool is_literal(const homes *h, ccn__id i) { return h->s->g->nodes.at[i].op == CCN__OP_CONST; }

/* Operand k is a value that the node reads; an update's first operand only says which tensor. */
static bool reads(const ccn__node *n, uint32_t k) { return !(n->op == CCN__OP_UPDATE && k == 0); }

static bool scalar_like(const ccn__shape *h) { return h->rank == 0 || h->bundle == CCN__BUNDLE_SCALARS; }

/* Peers read the operand of these where it stands. */
static bool peers_read(const ccn__node *n) {
  switch ((ccn__op)n->op) {
  case CCN__OP_REDUCESCATTER:
  case CCN__OP_REDUCE:
  case CCN__OP_ALLREDUCE: return true;
  default: return false;
  }
}

/* ---- which values need memory ------------------------------------------------------------------------------------ */

static void need(ccn__planner *s, ccn__id i) { s->needed[s->root[i]] = true; }

void ccn__plan_needed(ccn__planner *s) {
  const ccn__graph *g = s->g;
  for (ccn__id i = 0; i < g->nodes.n; i++) {
    const ccn__node *n = &g->nodes.at[i];
    for (uint32_t k = 0; k < n->nin; k++) {
      const ccn__id r = s->root[n->in[k]];
      const bool exchanged = peers_read(n) && !scalar_like(&s->shape[r]);
      if (!reads(n, k) || (s->root[i] != i && n->op != CCN__OP_REPEAT)) continue;
      if (s->group_of[r] != s->group_of[i] || exchanged) need(s, r);
    }
  }
  for (uint32_t k = 0; k < g->noutputs; k++) need(s, g->outputs[k]);
  for (uint32_t k = 0; k < g->params.n; k++)
    if (g->params.at[k].update != CCN__NO_ID) need(s, g->params.at[k].update);
  for (uint32_t r = 0; r < g->regions.n; r++)
    for (uint32_t k = 0; k < g->regions.at[r].nyield; k++) need(s, g->regions.at[r].yield[k]);
}

/* ---- sizes --------------------------------------------------------------------------------------------------------- */

/* At most so many parts has a run of n elements of a sum tree. */
static int64_t parts_of_run(int64_t n) {
  int64_t levels = 2;
  for (int64_t k = n; k > 1; k /= 2) levels += 2;
  return n < levels ? n : levels;
}

/* What a rank keeps of an owed reduction, at most: parts of the sum tree, with their places. */
static int64_t bytes_in_parts(const ccn__plan *p, ccn__id i, uint32_t rank) {
  const ccn__node *n = &p->g->nodes.at[i];
  while (ccn__op_table[n->op].kind != CCN__KIND_REDUCE && n->nin && p->parts[n->in[0]])
    n = &p->g->nodes.at[n->in[0]];
  if (ccn__op_table[n->op].kind != CCN__KIND_REDUCE) return ccn__plan_bytes(p, i, rank);
  const ccn__shape *x = &p->shape[n->in[0]];
  ccn__box b;
  ccn__box_of(&p->g->mesh, rank, x->rank, x->dim, x->place, &b);
  const int64_t kept = ccn__plan_bytes(p, i, rank) / (int64_t)ccn__dtype_size((ccn__dtype)p->shape[i].dtype);
  const int64_t item = (int64_t)ccn__dtype_size(ccn__dtype_acc((ccn__dtype)x->dtype));
  int64_t run = 1, runs = 1;
  bool cut = false;
  for (uint32_t d = x->rank; d-- > 0;) {
    if (cut) runs *= b.extent[d];
    else run *= b.extent[d];
    cut = cut || b.extent[d] != x->dim[d];
  }
  if (kept > 1 && run > 0) runs = run * runs / kept > 0 ? run * runs / kept : 1, run = 1;
  return runs * parts_of_run(run) * (item * (kept > 1 ? kept : 1) + PART_PLACE);
}

static int64_t widest(const ccn__plan *p, ccn__id i) {
  int64_t most = 0;
  for (uint32_t r = 0; r < p->world; r++) {
    const int64_t b = p->parts[i] ? bytes_in_parts(p, i, r) : ccn__plan_bytes(p, i, r);
    if (b > most) most = b;
  }
  return most;
}

static uint32_t add_buffer(homes *h, uint8_t kind, ccn__id value) {
  *CCN__PUSH(h->s->arena, &h->p->buffers) = (ccn__buffer){
    .kind = kind, .value = value, .bytes = widest(h->p, value), .first = UINT32_MAX, .param = UINT32_MAX};
  return h->p->buffers.n - 1;
}

/* ---- updates in place ------------------------------------------------------------------------------------------------ */

static bool same_shape(const homes *h, const ccn__shape *x, const ccn__shape *y) {
  if (x->rank != y->rank || x->dtype != y->dtype) return false;
  for (uint32_t d = 0; d < x->rank; d++)
    if (x->dim[d] != y->dim[d]) return false;
  for (uint32_t a = 0; a < h->s->g->mesh.naxes; a++)
    if (x->place[a].kind != y->place[a].kind || x->place[a].dim != y->place[a].dim ||
        x->place[a].unit != y->place[a].unit || x->place[a].coord != y->place[a].coord)
      return false;
  return true;
}

/* Operand k is read element by element, at the index of the result's (a reduction: each element once). `own`: only
 * the elements of the rank's slice over these axes, which no peer writes. */
static bool same_element(const homes *h, ccn__id i, uint32_t k, uint8_t own) {
  const ccn__node *n = &h->s->g->nodes.at[i];
  const ccn__shape *x = &h->s->shape[n->in[k]], *y = &h->s->shape[i];
  const uint8_t kind = ccn__op_table[n->op].kind;
  if (n->in[k] != h->s->root[n->in[k]]) return false; /* under another shape */
  if (kind == CCN__KIND_REDUCE) return !own;
  if (n->op == CCN__OP_SLICE) return true;
  if ((kind != CCN__KIND_ELEM && n->op != CCN__OP_DROPOUT) || x->rank != y->rank) return false;
  for (uint32_t d = 0; d < x->rank; d++)
    if (x->dim[d] != y->dim[d]) return false;
  for (uint32_t a = 0; a < h->s->g->mesh.naxes; a++)
    if ((own >> a & 1) && y->place[a].kind != CCN__SLICED) return false;
  return true;
}

static bool kept_whole(const homes *h, ccn__id root) {
  const ccn__graph *g = h->s->g;
  for (uint32_t k = 0; k < g->noutputs; k++)
    if (h->s->root[g->outputs[k]] == root) return true;
  for (uint32_t k = 0; k < g->params.n; k++)
    if (g->params.at[k].update != CCN__NO_ID && h->s->root[g->params.at[k].update] == root) return true;
  for (uint32_t r = 0; r < g->regions.n; r++)
    for (uint32_t k = 0; k < g->regions.at[r].nyield; k++)
      if (h->s->root[g->regions.at[r].yield[k]] == root) return true;
  return false;
}

/* Whether the value that parameter k gets can be made in the parameter's own memory: all that read the old value do
 * so before, or the same element in the same step; nothing behind can fail (then nothing may have been stored). */
static bool in_place(const homes *h, uint32_t k) {
  const ccn__graph *g = h->s->g;
  const ccn__id t = g->params.at[k].node, r = h->s->root[g->params.at[k].update];
  const uint32_t w = group_of(h, r);
  if (!w || h->p->buffer[r] != CCN__NO_BUFFER || h->p->parts[r] || g->nodes.at[r].op == CCN__OP_RESULT)
    return false;
  const ccn__group *made = &h->s->groups.at[w - 1];
  if (made->region || h->epoch[w - 1] < h->last_fail) return false;
  if (!same_shape(h, &h->s->shape[t], &h->s->shape[r]) || kept_whole(h, t)) return false;
  uint8_t own = 0;
  if (ccn__op_table[g->nodes.at[r].op].kind == CCN__KIND_COLLECTIVE)
    own = (uint8_t)ccn__attr_int(g->nodes.at[r].attrs, CCN__A_OVER, 0);
  for (ccn__id i = 0; i < g->nodes.n; i++)
    for (uint32_t j = 0; j < g->nodes.at[i].nin; j++) {
      if (h->s->root[g->nodes.at[i].in[j]] != t || !reads(&g->nodes.at[i], j) || h->s->root[i] != i) continue;
      const uint32_t q = group_of(h, i);
      if (!q) continue;
      if (h->epoch[q - 1] < h->epoch[w - 1] && !g->nodes.at[i].body) continue;
      if (q != w || !same_element(h, i, j, own)) return false;
    }
  return true;
}

/* ---- making buffers ---------------------------------------------------------------------------------------------------- */

static void make_buffers(homes *h) {
  const ccn__graph *g = h->s->g;
  ccn__plan *p = h->p;
  for (ccn__id i = 0; i < g->nodes.n; i++) p->buffer[i] = CCN__NO_BUFFER;
  for (uint32_t k = 0; k < g->params.n; k++) {
    const uint32_t b = add_buffer(h, CCN__BUFFER_ARGUMENT, g->params.at[k].node);
    p->buffers.at[b].param = k;
    p->buffer[g->params.at[k].node] = b;
  }
  for (uint32_t k = 0; k < g->params.n; k++)
    if (g->params.at[k].update != CCN__NO_ID && in_place(h, k))
      p->buffer[h->s->root[g->params.at[k].update]] = p->buffer[g->params.at[k].node];
  for (uint32_t k = 0; k < g->noutputs; k++) {
    const ccn__id r = h->s->root[g->outputs[k]];
    if (p->buffer[r] == CCN__NO_BUFFER && group_of(h, r) && !p->parts[r] &&
        g->nodes.at[r].op != CCN__OP_RESULT)
      p->buffer[r] = add_buffer(h, CCN__BUFFER_RESULT, r);
  }
  for (ccn__id i = 0; i < g->nodes.n; i++) {
    const ccn__node *n = &g->nodes.at[i];
    const bool makes =
      group_of(h, i) && n->op != CCN__OP_REPEAT && n->op != CCN__OP_RESULT && h->s->root[i] == i;
    if (p->buffer[i] != CCN__NO_BUFFER) continue;
    if (n->op == CCN__OP_CARRY || (makes && h->s->needed[i]))
      p->buffer[i] = add_buffer(h, CCN__BUFFER_TEMPORARY, i);
  }
  for (ccn__id i = 0; i < g->nodes.n; i++) { /* other names */
    const ccn__node *n = &g->nodes.at[i];
    if (n->op == CCN__OP_RESULT) {
      const int64_t number = ccn__attr_int(n->attrs, CCN__A_NUMBER, 0);
      for (ccn__id j = 0; j < g->nodes.n; j++)
        if (g->nodes.at[j].op == CCN__OP_CARRY && g->regions.at[g->nodes.at[j].region].owner == n->in[0] &&
            ccn__attr_int(g->nodes.at[j].attrs, CCN__A_NUMBER, 0) == number)
          p->buffer[i] = p->buffer[j];
    }
    if (h->s->root[i] != i) p->buffer[i] = p->buffer[h->s->root[i]];
  }
}

/* ---- accesses ------------------------------------------------------------------------------------------------------------- */

typedef struct accesses {
  CCN__VEC(ccn__access) list;
} accesses;

static ccn__access *touch(homes *h, accesses *a, uint32_t buffer, ccn__id value, uint8_t mode) {
  for (uint32_t k = 0; k < a->list.n; k++)
    if (a->list.at[k].buffer == buffer && a->list.at[k].value == value) {
      a->list.at[k].mode |= mode;
      return &a->list.at[k];
    }
  ccn__access *x = CCN__PUSH(h->s->arena, &a->list);
  *x = (ccn__access){.buffer = buffer, .value = value, .mode = mode, .same_elem = true};
  if (mode & (CCN__READ_PEERS | CCN__WRITE_PEERS)) h->p->buffers.at[buffer].peers = true;
  return x;
}

static void touch_node(homes *h, accesses *a, const ccn__step *t, ccn__id i) {
  const ccn__node *n = &h->s->g->nodes.at[i];
  const bool meets =
    ccn__op_table[n->op].kind == CCN__KIND_COLLECTIVE && n->op != CCN__OP_SLICE && h->s->root[i] == i;
  for (uint32_t k = 0; k < n->nin; k++) {
    const ccn__id r = h->s->root[n->in[k]];
    const uint32_t b = h->p->buffer[r];
    if (!reads(n, k) || b == CCN__NO_BUFFER || h->s->root[i] != i) continue;
    const bool outside = group_of(h, r) != group_of(h, i);
    const bool peers =
      meets && (t->kind == CCN__STEP_COLLECTIVE || peers_read(n)) && !scalar_like(&h->s->shape[r]);
    if (!outside && !peers) continue;
    ccn__access *x = touch(h, a, b, r, (uint8_t)(CCN__READ | (peers ? CCN__READ_PEERS : 0)));
    if (peers) h->p->buffers.at[b].peers = true;
    if (peers || !same_element(h, i, k, 0)) x->same_elem = false;
  }
  if (h->s->root[i] == i && h->p->buffer[i] != CCN__NO_BUFFER)
    touch(h, a, h->p->buffer[i], i, (uint8_t)(CCN__WRITE | (meets ? CCN__WRITE_PEERS : 0)));
}

static void copy_pair(homes *h, accesses *a, ccn__id from, ccn__id to, uint32_t buffer) {
  const ccn__id r = h->s->root[from];
  *CCN__PUSH(h->s->arena, &a->list) = (ccn__access){
    .buffer = is_literal(h, r) ? CCN__NO_BUFFER : h->p->buffer[r], .mode = CCN__READ, .value = from};
  *CCN__PUSH(h->s->arena, &a->list) = (ccn__access){.buffer = buffer, .mode = CCN__WRITE, .value = to};
}

/* Of the carried values: before the loop from the operands, in it from what the pass made. */
static void carry_pairs(homes *h, accesses *a, const ccn__step *t) {
  const ccn__graph *g = h->s->g;
  for (uint32_t k = 0; k < t->nnodes; k++) {
    const ccn__node *n = &g->nodes.at[t->node[k]];
    const ccn__region *body = &g->regions.at[n->region];
    const int64_t number = ccn__attr_int(n->attrs, CCN__A_NUMBER, 0);
    const bool inside = t->region == n->region;
    const ccn__id from = inside ? body->yield[number] : g->nodes.at[body->owner].in[number];
    if (h->s->root[from] != t->node[k]) copy_pair(h, a, from, t->node[k], h->p->buffer[t->node[k]]);
  }
}

/* An update in a loop of no passes stores nothing. */
static bool never_runs(const homes *h, uint32_t region) {
  const ccn__graph *g = h->s->g;
  for (; region; region = g->nodes.at[g->regions.at[region].owner].region) {
    const ccn__node *n = &g->nodes.at[g->regions.at[region].owner];
    const ccn__attr *a = n->op == CCN__OP_REPEAT ? ccn__attr_find(n->attrs, CCN__A_TIMES) : NULL;
    ccn__number times = {.i = 1};
    if (a && !ccn__lit_eval(a->lit, h->p->sym, &times) && times.i < 1) return true;
  }
  return false;
}

/* Stores that were not in place, and results that must be folded. */
static void last_copies(homes *h) {
  const ccn__graph *g = h->s->g;
  ccn__plan *p = h->p;
  accesses a = {0};
  p->result = CCN__NEWN(h->s->arena, uint32_t, g->noutputs + 1);
  for (uint32_t k = 0; k < g->noutputs; k++) {
    const ccn__id r = h->s->root[g->outputs[k]];
    p->result[k] = p->buffer[r];
    /* what is read at the end must be the program's own: an argument may be stored over in this step */
    const bool argument = p->buffer[r] != CCN__NO_BUFFER && g->nodes.at[r].op == CCN__OP_PARAM;
    if (is_literal(h, r) || (!p->parts[r] && g->nodes.at[r].op != CCN__OP_RESULT && !argument)) continue;
    p->result[k] = add_buffer(h, CCN__BUFFER_RESULT, g->outputs[k]);
    p->buffers.at[p->result[k]].bytes = 0;
    for (uint32_t q = 0; q < p->world; q++) {
      const int64_t b = ccn__plan_bytes(p, g->outputs[k], q);
      if (b > p->buffers.at[p->result[k]].bytes) p->buffers.at[p->result[k]].bytes = b;
    }
    copy_pair(h, &a, g->outputs[k], g->outputs[k], p->result[k]);
  }
  for (uint32_t k = 0; k < g->params.n; k++) {
    const ccn__param *m = &g->params.at[k];
    if (m->update == CCN__NO_ID || p->buffer[m->update] == p->buffer[m->node]) continue;
    if (never_runs(h, g->nodes.at[m->update].region)) continue;
    copy_pair(h, &a, m->update, m->update, p->buffer[m->node]);
  }
  if (!a.list.n) return;
  ccn__step *t = CCN__PUSH(h->s->arena, &p->steps);
  *t = (ccn__step){
    .kind = CCN__STEP_COPY, .epoch = p->nepochs++, .chunks = 1, .access = a.list.at, .naccess = a.list.n};
}

static void make_accesses(homes *h) {
  ccn__plan *p = h->p;
  for (uint32_t k = 0; k < p->steps.n; k++) {
    ccn__step *t = &p->steps.at[k];
    accesses a = {0};
    if (t->kind == CCN__STEP_COPY) carry_pairs(h, &a, t);
    else if (t->kind != CCN__STEP_REPEAT)
      for (uint32_t j = 0; j < t->nnodes; j++) touch_node(h, &a, t, t->node[j]);
    for (uint32_t j = 0; j < a.list.n && t->chunks > 1; j++) {
      ccn__chunk c;
      ccn__plan_chunk(p, t, a.list.at[j].value, 0, &c);
      a.list.at[j].chunked = !c.whole;
    }
    t->access = a.list.at;
    t->naccess = a.list.n;
  }
}

/* ---- lifetimes and the arena ---------------------------------------------------------------------------------------------- */

static void live(ccn__buffer *b, uint32_t from, uint32_t to) {
  if (b->first == UINT32_MAX || from < b->first) b->first = from;
  if (to > b->last) b->last = to;
}

static void find_lives(ccn__plan *p) {
  for (uint32_t k = 0; k < p->steps.n; k++)
    for (uint32_t j = 0; j < p->steps.at[k].naccess; j++)
      if (p->steps.at[k].access[j].buffer != CCN__NO_BUFFER)
        live(&p->buffers.at[p->steps.at[k].access[j].buffer], p->steps.at[k].epoch, p->steps.at[k].epoch);
  for (uint32_t k = p->steps.n;
       k-- > 0;) { /* what comes into a loop is wanted in each pass; inner loops first */
    const ccn__step *t = &p->steps.at[k];
    if (t->kind != CCN__STEP_REPEAT) continue;
    const uint32_t end = p->steps.at[t->end - 1].epoch;
    for (uint32_t b = 0; b < p->buffers.n; b++) {
      ccn__buffer *x = &p->buffers.at[b];
      if (x->first <= t->epoch && x->last > t->epoch && x->last < end) x->last = end;
    }
  }
  for (uint32_t b = 0; b < p->buffers.n; b++)
    if (p->buffers.at[b].first == UINT32_MAX) p->buffers.at[b].first = p->buffers.at[b].last = 0;
}

static int64_t padded(int64_t bytes) { return (bytes + 63) / 64 * 64; }

/* The lowest free place below those that live at the same time, which are sorted by offset. */
static void place_temporaries(homes *h) {
  ccn__plan *p = h->p;
  const uint32_t n = p->buffers.n;
  uint32_t *order = CCN__NEWN(h->s->arena, uint32_t, n + 1),
           *count = CCN__NEWN(h->s->arena, uint32_t, p->nepochs + 2);
  for (uint32_t b = 0; b < n; b++) count[p->buffers.at[b].first + 1]++;
  for (uint32_t e = 0; e < p->nepochs; e++) count[e + 1] += count[e];
  for (uint32_t b = 0; b < n; b++) order[count[p->buffers.at[b].first]++] = b;
  uint32_t *live_now = CCN__NEWN(h->s->arena, uint32_t, n + 1), nlive = 0;
  for (uint32_t k = 0; k < n; k++) {
    ccn__buffer *x = &p->buffers.at[order[k]];
    if (x->kind != CCN__BUFFER_TEMPORARY) continue;
    uint32_t kept = 0, at = 0;
    for (uint32_t i = 0; i < nlive; i++)
      if (p->buffers.at[live_now[i]].last >= x->first) live_now[kept++] = live_now[i];
    nlive = kept;
    int64_t offset = 0;
    for (; at < nlive; at++) {
      const ccn__buffer *y = &p->buffers.at[live_now[at]];
      if (offset + padded(x->bytes) <= y->offset) break;
      offset = y->offset + padded(y->bytes);
    }
    x->offset = offset;
    memmove(live_now + at + 1, live_now + at, (nlive - at) * sizeof *live_now);
    live_now[at] = order[k];
    nlive++;
    if (offset + padded(x->bytes) > p->arena_bytes) p->arena_bytes = offset + padded(x->bytes);
  }
}

void ccn__plan_buffers(ccn__planner *s) {
  homes h = {.s = s, .p = s->p};
  s->p->root = s->root;
  s->p->parts = s->parts;
  h.epoch = CCN__NEWN(s->arena, uint32_t, s->groups.n + 1);
  for (uint32_t k = 0; k < s->p->steps.n; k++) {
    const ccn__step *t = &s->p->steps.at[k];
    for (uint32_t j = 0; j < t->nnodes; j++)
      if (t->kind != CCN__STEP_COPY && s->group_of[t->node[j]])
        h.epoch[s->group_of[t->node[j]] - 1] = t->epoch;
    if (t->may_fail) h.last_fail = t->epoch + 1;
  }
  make_buffers(&h);
  make_accesses(&h);
  last_copies(&h);
  find_lives(s->p);
  place_temporaries(&h);
}

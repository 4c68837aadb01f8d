/* interp_traffic.c: how many bytes each rank sends to others, collective by collective.
 *
 * Counted as a direct exchange sends them, which no algorithm undercuts in sum: an all-reduce is a
 * reduce-scatter and an all-gather of equal pieces, 2(n - 1)/n of the value. A reduction that is owed in
 * parts of the sum tree sends its parts. What stays on a rank is not sent.
 * SPDX-License-Identifier: Apache-2.0 */
#include "interp_eval.h"

typedef struct counter {
  ccn__run *r;
  const ccn__node *n;
  const ccn__value *x, *out;
  uint32_t over;
  size_t item;
} counter;

static uint64_t elements(const counter *c, const ccn__value *v, uint32_t rank, ccn__box *box) {
  if (!ccn__rank_has(c->r->mesh, rank, v->place)) return 0;
  ccn__value_box(c->r, v, rank, box);
  return (uint64_t)box->elements;
}

/* What two boxes of one value have in common. */
static uint64_t common(uint32_t ndims, const ccn__box *x, const ccn__box *y) {
  uint64_t n = 1;
  for (uint32_t d = 0; d < ndims; d++) {
    const int64_t start = x->start[d] > y->start[d] ? x->start[d] : y->start[d];
    const int64_t xend = x->start[d] + x->extent[d], yend = y->start[d] + y->extent[d];
    const int64_t end = xend < yend ? xend : yend;
    if (end <= start) return 0;
    n *= (uint64_t)(end - start);
  }
  return n;
}

/* Rank `rank`, member `me` of n: of E elements it sends the others' pieces, then its own to all of them. */
static uint64_t both_halves(uint64_t e, uint64_t n, uint64_t me) {
  const uint64_t piece = (e + n - 1) / n, start = me * piece < e ? me * piece : e;
  const uint64_t own = start + piece < e ? piece : e - start;
  return e - own + (n - 1) * own;
}

static uint64_t sent_by(const counter *c, uint32_t rank) {
  ccn__ranks group;
  ccn__box xb = {{0}, {0}, 0}, ob = {{0}, {0}, 0};
  ccn__collective_group(c->r->mesh, c->over, rank, &group);
  const uint64_t n = group.n, e = elements(c, c->x, rank, &xb), own = elements(c, c->out, rank, &ob);
  const int64_t root = ccn__attr_int(c->n->attrs, CCN__A_ROOT, 0);
  const bool is_root = ccn__collective_root(c->r->mesh, c->over, rank, root) == rank;
  uint64_t me = 0;
  while (me + 1 < n && group.at[me] != rank) me++;
  switch ((ccn__op)c->n->op) {
  case CCN__OP_ALLREDUCE: return both_halves(e, n, me) * c->item;
  case CCN__OP_REDUCESCATTER: return (e - own) * c->item;
  case CCN__OP_ALLGATHER: return e * (n - 1) * c->item;
  case CCN__OP_REDUCE:
  case CCN__OP_GATHER: return is_root ? 0 : e * c->item;
  case CCN__OP_BROADCAST: return is_root ? e * (n - 1) * c->item : 0;
  case CCN__OP_SCATTER: return is_root ? (e - own) * c->item : 0;
  case CCN__OP_ALLTOALL:
    if (!ccn__attr_find(c->n->attrs, CCN__A_FROM)) return (e - e / n) * c->item;
    return (e - common(c->x->rank, &xb, &ob)) * c->item;
  default: return 0;
  }
}

/* Parts of a sum tree: all that a rank has goes to whoever merges them. */
static uint64_t sent_parts(const counter *c, uint32_t rank) {
  ccn__ranks group;
  ccn__box xb = {{0}, {0}, 0}, ob = {{0}, {0}, 0};
  const uint64_t bytes = c->x->piece[rank].buf ? c->x->piece[rank].buf->bytes : 0;
  ccn__collective_group(c->r->mesh, c->over, rank, &group);
  const uint64_t e = elements(c, c->x, rank, &xb), own = elements(c, c->out, rank, &ob);
  const int64_t root = ccn__attr_int(c->n->attrs, CCN__A_ROOT, 0);
  if (c->n->op == CCN__OP_REDUCESCATTER) return e ? bytes / e * (e - own) : 0;
  if (c->n->op == CCN__OP_REDUCE)
    return ccn__collective_root(c->r->mesh, c->over, rank, root) == rank ? 0 : bytes;
  return bytes * (group.n - 1);
}

static void count_moves(const counter *c, uint64_t *sent) {
  ccn__box box;
  for (uint32_t to = 0; to < c->r->world; to++) {
    const uint32_t from = ccn__collective_sender(c->r->mesh, c->n, to);
    if (from < c->r->world && from != to) sent[from] += elements(c, c->x, from, &box) * c->item;
  }
}

/* ---- rows ------------------------------------------------------------------------------------------- */

static ccn__sent *row_of(ccn__run *r, const ccn__node *n) {
  const char *name = n->name ? n->name : n->autoname ? n->autoname : ccn__op_table[n->op].name;
  const char *label = r->x->label ? r->x->label : "";
  uint32_t hash = n->op;
  for (const char *p = name; *p; p++) hash = hash * 31 + (uint8_t)*p;
  ccn__sent **at = &r->rt->traffic[hash % CCN__COUNT(r->rt->traffic)];
  for (; *at; at = &(*at)->next)
    if ((*at)->text == r->x->text && (*at)->op == n->op && strcmp((*at)->name, name) == 0 &&
        strcmp((*at)->program, label) == 0)
      return *at;
  ccn__sent *row = ccn__arena_alloc(r->rt->arena, sizeof *row + r->world * sizeof row->sent[0]);
  memset(row, 0, sizeof *row + r->world * sizeof row->sent[0]);
  row->text = r->x->text;
  row->program = ccn__arena_strndup(r->rt->arena, label, strlen(label));
  row->schedule = r->x->schedule;
  row->name = ccn__arena_strndup(r->rt->arena, name, strlen(name));
  row->op = n->op;
  return *at = row;
}

void ccn__count_traffic(ccn__run *r, const ccn__node *n, ccn__id id) {
  if (ccn__op_table[n->op].kind != CCN__KIND_COLLECTIVE || n->op == CCN__OP_SLICE ||
      n->op == CCN__OP_TO_LOCAL)
    return;
  const ccn__value *x = r->value[n->in[0]];
  counter c = {.r = r,
               .n = n,
               .x = x,
               .out = r->value[id],
               .over = (uint32_t)ccn__attr_int(n->attrs, CCN__A_OVER, 0),
               .item = ccn__dtype_size((ccn__dtype)x->dtype)};
  ccn__sent *row = row_of(r, n);
  const bool parts = x->tree && !(c.over & ~(uint32_t)x->tree);
  row->calls++;
  if (n->op == CCN__OP_SHIFT || n->op == CCN__OP_PERMUTE) {
    count_moves(&c, row->sent);
    return;
  }
  for (uint32_t k = 0; k < r->world; k++) row->sent[k] += parts ? sent_parts(&c, k) : sent_by(&c, k);
}

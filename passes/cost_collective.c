/* cost_collective.c: the collectives of a step: which algorithm, the sizes of its pieces for each group of
 * ranks, and what the simulator says of each; a use that was timed once is not timed again.
 *
 * Values that owe in parts of the sum tree send their parts; who wants the sum merges them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cost_impl.h"
#include "interp_eval.h"

enum { MOST_RANKS = CCN_ALGORITHM_RANKS };

typedef struct group {
  ccn__costing *c;
  const ccn__step *t;
  ccn__id id;
  const ccn__node *n;
  uint32_t over;
  uint32_t size;
  uint32_t *world; /* rank of each member */
} group;

/* ---- groups -------------------------------------------------------------------------------------- */

static bool is_first_of_group(const ccn__mesh *m, uint32_t over, uint32_t rank) {
  for (uint32_t a = 0; a < m->naxes; a++)
    if ((over >> a & 1) && ccn__mesh_coord(m, rank, a)) return false;
  return true;
}

/* The members of the group whose first rank is `first`, ascending. */
static void find_members(group *q, uint32_t first) {
  const ccn__mesh *m = &q->c->p->g->mesh;
  for (uint32_t i = 0; i < q->size; i++) {
    uint32_t rank = first, rest = i;
    for (uint32_t a = m->naxes; a-- > 0;) {
      if (!(q->over >> a & 1)) continue;
      rank += rest % (uint32_t)m->size[a] * ccn__mesh_stride(m, a);
      rest /= (uint32_t)m->size[a];
    }
    q->world[i] = rank;
  }
}

/* ---- which algorithm ----------------------------------------------------------------------------- */

static bool is_direct(const group *q) {
  const ccn__machine *m = q->c->options->machine;
  return m->link[ccn__machine_level(m, q->world[0], q->world[q->size - 1])].direct;
}

static ccn__generator direct(const group *q, ccn__op op) {
  if (q->size > 1 && !is_direct(q)) return CCN__MAKE_pairs;
  return op == CCN__OP_ALLREDUCE ? CCN__MAKE_twoshot : CCN__MAKE_oneshot;
}

/* As the options or the graph say; what they leave open is done directly. */
static ccn__generator generator_of(const group *q, ccn__op op, uint32_t *out_group) {
  const int64_t order = ccn__attr_int(q->n->attrs, CCN__A_ORDER, CCN__ORDER_RANK);
  const ccn__attr *word = ccn__attr_find(q->n->attrs, CCN__A_ALGORITHM);
  ccn__generator g = direct(q, op);
  *out_group = ccn__order_group(order);
  if (q->c->options->algorithm) {
    ccn__generator wanted;
    const ccn__link *inner = &q->c->options->machine->link[0];
    if (!ccn__generator_find(q->c->options->algorithm, &wanted) || !ccn__generator_makes(wanted, op))
      return g;
    if (ccn__order_numbered(ccn__generator_table[wanted].order)) {
      *out_group = inner->ranks && q->size % inner->ranks == 0 ? inner->ranks : q->size;
    }
    return wanted;
  }
  for (int i = 0; word && i < CCN__GENERATORS; i++)
    if (strcmp(ccn__generator_table[i].word, word->text) == 0 && strcmp(word->text, "direct") != 0 &&
        ccn__generator_makes((ccn__generator)i, op))
      g = (ccn__generator)i;
  return g;
}

static uint64_t hash(uint64_t h, const void *data,
                     size_t n) { /* FNV-1a by words of eight bytes, then bytes */
  const unsigned char *p = data;
  uint64_t w;
  for (; n >= sizeof w; n -= sizeof w, p += sizeof w) {
    memcpy(&w, p, sizeof w);
    h = (h ^ w) * UINT64_C(0x9e3779b97f4a7c15);
    h ^= h >> 32;
  }
  for (; n; n--, p++) h = (h ^ *p) * UINT64_C(1099511628211);
  return h;
}
enum { HASH_FROM = 0x2545f491 };

static ccn__algorithm *make(const group *q, ccn__op op, const uint16_t *source, uint32_t root) {
  ccn__costing *c = q->c;
  ccn__algo_want want = {.op = op, .nranks = q->size, .root = root, .chunks = 1, .source = source};
  const ccn__generator g = generator_of(q, op, &want.group);
  const uint64_t sources = source ? hash(HASH_FROM, source, q->size * sizeof *source) : 0;
  const char *why;
  for (ccn__made *x = c->made; x; x = x->next)
    if (x->generator == g && x->want.op == op && x->want.nranks == q->size && x->want.root == root &&
        x->want.group == want.group && x->sources == sources)
      return x->a;
  if (q->size > MOST_RANKS) {
    c->why = ccn__arena_printf(c->arena, "a collective over %u ranks; algorithms are made for up to %u",
                               q->size, MOST_RANKS);
    return NULL;
  }
  ccn__algorithm *a = ccn__algorithm_make(c->arena, g, &want, &why);
  if (!a) {
    c->why = ccn__arena_printf(c->arena, "algorithm %s for %s on %u ranks: %s", ccn__generator_table[g].name,
                               ccn__op_table[op].name, q->size, why);
    return NULL;
  }
  ccn__made *x = CCN__NEW(c->arena, ccn__made);
  *x = (ccn__made){.next = c->made, .generator = g, .want = want, .sources = sources, .a = a};
  return c->made = x, a;
}

/* ---- sizes of pieces ----------------------------------------------------------------------------- */

static int64_t elements(const group *q, ccn__id i, uint32_t rank, ccn__box *box) {
  const ccn__shape *h = &q->c->p->shape[i];
  *box = (ccn__box){{0}, {0}, 0};
  if (!ccn__rank_has(&q->c->p->g->mesh, rank, h->place)) return 0;
  ccn__box_of(&q->c->p->g->mesh, rank, h->rank, h->dim, h->place, box);
  return box->elements;
}

static int64_t common(uint32_t ndims, const ccn__box *x, const ccn__box *y) {
  int64_t n = 1;
  for (uint32_t d = 0; d < ndims; d++) {
    const int64_t start = x->start[d] > y->start[d] ? x->start[d] : y->start[d];
    const int64_t xend = x->start[d] + x->extent[d], yend = y->start[d] + y->extent[d];
    const int64_t end = xend < yend ? xend : yend;
    n *= end > start ? end - start : 0;
  }
  return n;
}

/* Of what rank s has, what rank r wants; without a `from` the blocks are equal. */
static void alltoall_counts(const group *q, int64_t *count) {
  const ccn__id x = q->n->in[0];
  const bool blocks = !ccn__attr_find(q->n->attrs, CCN__A_FROM);
  ccn__box *in = CCN__NEWN(q->c->arena, ccn__box, q->size), *out = CCN__NEWN(q->c->arena, ccn__box, q->size);
  for (uint32_t r = 0; r < q->size; r++) {
    elements(q, x, q->world[r], &in[r]);
    elements(q, q->id, q->world[r], &out[r]);
  }
  for (uint32_t s = 0; s < q->size; s++)
    for (uint32_t r = 0; r < q->size; r++)
      count[(size_t)s * q->size + r] =
        blocks ? in[s].elements / q->size : common(q->c->p->shape[x].rank, &in[s], &out[r]);
}

static void fill_counts(const group *q, const ccn__algorithm *a, int64_t *count) {
  const uint32_t pieces = ccn__algorithm_pieces(a);
  const ccn__id x = q->n->in[0];
  ccn__box box;
  switch (a->op) {
  case CCN__OP_ALLTOALL: alltoall_counts(q, count); break;
  case CCN__OP_REDUCESCATTER:
  case CCN__OP_SCATTER:
    for (uint32_t r = 0; r < q->size; r++) count[r] = elements(q, q->id, q->world[r], &box);
    break;
  case CCN__OP_ALLGATHER:
  case CCN__OP_GATHER:
    for (uint32_t r = 0; r < q->size; r++) count[r] = elements(q, x, q->world[r], &box);
    break;
  default: ccn__algorithm_counts(a, elements(q, x, q->world[0], &box), 1, 1, count);
  }
  if (a->op == CCN__OP_BROADCAST || a->op == CCN__OP_SHIFT || a->op == CCN__OP_PERMUTE) {
    int64_t all = 0; /* it exists at the root, or on some ranks, only */
    for (uint32_t r = 0; r < q->size; r++) {
      const int64_t e = elements(q, x, q->world[r], &box);
      if (e > all) all = e;
    }
    ccn__algorithm_counts(a, all, 1, 1, count);
  }
  for (uint32_t i = 0; i < pieces; i++) count[i] = ccn__cost_share(count[i], q->t);
}

/* ---- values in parts ----------------------------------------------------------------------------- */

/* All that a rank has goes to whoever merges it: an all-gather of parts, or a gather to the root. */
static ccn__op parts_counts(const group *q, ccn__op op, int64_t *count, int64_t *out_item) {
  const ccn__id x = q->n->in[0];
  const int64_t item = (int64_t)ccn__dtype_size(ccn__dtype_acc((ccn__dtype)q->c->p->shape[x].dtype));
  int64_t width;
  *out_item = item;
  if (op == CCN__OP_REDUCESCATTER) {
    *out_item = item * ccn__cost_parts(q->c->p, x, q->world[0], &width);
    return op;
  }
  for (uint32_t r = 0; r < q->size; r++) {
    const int64_t parts = ccn__cost_parts(q->c->p, x, q->world[r], &width);
    count[r] = ccn__cost_share(parts * width, q->t);
  }
  return op == CCN__OP_REDUCE ? CCN__OP_GATHER : CCN__OP_ALLGATHER;
}

/* ---- the least on links -------------------------------------------------------------------------- */

/* How often the data of a rank must cross, in full: 2 for reduce and gather in one, else 1; `rest` of a
 * whole: the part that others have. */
static double least_time(const group *q, ccn__op op, double bytes) {
  const ccn__machine *m = q->c->options->machine;
  const uint32_t level = ccn__machine_level(m, q->world[0], q->world[q->size - 1]);
  const bool cut = op == CCN__OP_ALLREDUCE || op == CCN__OP_REDUCESCATTER || op == CCN__OP_ALLGATHER ||
                   op == CCN__OP_ALLTOALL;
  const double times = op == CCN__OP_ALLREDUCE ? 2 : 1;
  double longest = 0, within = 1; /* members that the levels below join */
  for (uint32_t l = 0; l <= level; l++) {
    double here = q->size / within; /* at most, on this level */
    if (l < level) {
      uint32_t n = 1;
      while (n < q->size && ccn__machine_level(m, q->world[0], q->world[n]) <= l) n++;
      here = n / within;
    }
    if (here < 1) here = 1;
    const double part = op == CCN__OP_ALLTOALL ? bytes * (1 - within / q->size)
                                               : bytes / within * (cut ? (here - 1) / here : here > 1);
    const double time = times * part / m->link[l].bandwidth;
    if (time > longest) longest = time;
    within *= here;
  }
  return longest;
}

/* Bytes of the whole: what a rank puts in, or gets out. */
static double whole_bytes(const group *q, const int64_t *count, uint32_t pieces, ccn__op op, int64_t item) {
  int64_t sum = 0;
  for (uint32_t i = 0; i < pieces; i++) sum += count[i];
  return (double)sum * (double)item / (op == CCN__OP_ALLTOALL ? q->size : 1);
}

/* ---- one use ------------------------------------------------------------------------------------- */

/* With memory of its own, which is given back: an algorithm over many ranks has millions of steps. */
static bool time_use(ccn__costing *c, const ccn__collective_use *use, ccn__collective_cost *out) {
  ccn__heap *heap = c->arena->heap;
  ccn__arena *scratch = CCN__NEW(c->arena, ccn__arena);
  volatile bool good = false;
  ccn__trap trap;
  ccn__arena_init(scratch, heap);
  CCN__TRY(heap, trap)
  { good = c->options->timer(scratch, use, out); }
  CCN__CATCH(heap, trap)
  {
    ccn__arena_free(scratch);
    ccn__throw(heap, trap.status);
  }
  ccn__arena_free(scratch);
  return good;
}

static ccn__collective_cost *timed(const group *q, const ccn__collective_use *use) {
  ccn__costing *c = q->c;
  const uint32_t n = q->size;
  uint64_t key = hash(HASH_FROM, &use->a, sizeof use->a);
  key = hash(key, use->count, ccn__algorithm_pieces(use->a) * sizeof *use->count);
  key = hash(key, &use->item, sizeof use->item);
  for (uint32_t l = 0; l < use->machine->nlinks; l++) { /* who is near whom */
    const uint32_t ranks = use->machine->link[l].ranks;
    for (uint32_t i = 0; i < n && ranks; i++) {
      const uint32_t far = use->world[i] / ranks - use->world[0] / ranks;
      key = hash(key, &far, sizeof far);
    }
  }
  for (ccn__timed *x = c->timed[key & 255]; x; x = x->next)
    if (x->key == key) return &x->cost;
  ccn__timed *x = CCN__NEW(c->arena, ccn__timed);
  *x = (ccn__timed){.next = c->timed[key & 255], .key = key};
  x->cost.sent = CCN__NEWN(c->arena, int64_t, n);
  x->cost.memory = CCN__NEWN(c->arena, int64_t, n);
  if (!time_use(c, use, &x->cost)) c->why = "an algorithm cannot end";
  c->timed[key & 255] = x;
  return &x->cost;
}

static const uint16_t *sources_of(const group *q) {
  if (q->n->op != CCN__OP_SHIFT && q->n->op != CCN__OP_PERMUTE) return NULL;
  uint16_t *source = CCN__NEWN(q->c->arena, uint16_t, q->size);
  for (uint32_t i = 0; i < q->size; i++) {
    const uint32_t from = ccn__collective_sender(&q->c->p->g->mesh, q->n, q->world[i]);
    source[i] = CCN__NOBODY;
    for (uint32_t j = 0; j < q->size; j++)
      if (q->world[j] == from) source[i] = (uint16_t)j;
  }
  return source;
}

static ccn__sent_cost *row_of(ccn__costing *c, ccn__id id, const ccn__algorithm *a) {
  const int64_t order = ccn__attr_int(c->p->g->nodes.at[id].attrs, CCN__A_ORDER, CCN__ORDER_RANK);
  for (uint32_t i = 0; i < c->cost->sent.n; i++)
    if (c->cost->sent.at[i].node == id) return &c->cost->sent.at[i];
  ccn__sent_cost *row = CCN__PUSH(c->arena, &c->cost->sent);
  *row =
    (ccn__sent_cost){.node = id, .algorithm = a->name, .sent = CCN__NEWN(c->arena, int64_t, c->p->world)};
  row->reorders = c->options->algorithm && ccn__algorithm_reduces(a) && a->order != order;
  return row;
}

/* The whole number of passes, for bytes. */
static int64_t passes_of(const ccn__step_cost *s) { return (int64_t)s->passes; }

static void one_group(group *q, ccn__step_cost *s, double *link, double *floor, int64_t *sent,
                      int64_t *memory) {
  ccn__costing *c = q->c;
  const ccn__mesh *m = &c->p->g->mesh;
  const ccn__shape *x = &c->p->shape[q->n->in[0]];
  const ccn__op node_op = (ccn__op)q->n->op;
  const uint32_t most_pieces = q->size * (node_op == CCN__OP_ALLTOALL ? q->size : 1);
  int64_t *count = CCN__NEWN(c->arena, int64_t, most_pieces + 1);
  ccn__collective_use use = {.machine = c->options->machine, .world = q->world, .count = count};
  use.item = (int64_t)ccn__dtype_size((ccn__dtype)x->dtype);
  ccn__op op = node_op;
  const bool parts = c->p->parts[q->n->in[0]];
  if (parts) op = parts_counts(q, op, count, &use.item);
  const ccn__attr *wider = ccn__attr_find(q->n->attrs, CCN__A_ACCUMULATE);
  use.acc = (int64_t)ccn__dtype_size(wider ? (ccn__dtype)wider->i : ccn__dtype_acc((ccn__dtype)x->dtype));
  const int64_t root = ccn__attr_int(q->n->attrs, CCN__A_ROOT, 0);
  uint32_t at_root = 0;
  for (uint32_t i = 0; i < q->size; i++)
    if (ccn__collective_root(m, q->over, q->world[0], root) == q->world[i]) at_root = i;
  ccn__algorithm *a = make(q, op, sources_of(q), at_root);
  if (!a) return;
  use.a = a;
  if (!parts || op == node_op) fill_counts(q, a, count);
  const ccn__collective_cost *k = timed(q, &use);
  ccn__sent_cost *row = row_of(c, q->id, a);
  for (uint32_t i = 0; i < q->size; i++) {
    row->sent[q->world[i]] += k->sent[i] * passes_of(s);
    if (k->sent[i] > *sent) *sent = k->sent[i];
    if (k->memory[i] > *memory) *memory = k->memory[i];
  }
  if (k->time > *link) *link = k->time;
  const double least =
    q->size < 2 ? 0 : least_time(q, op, whole_bytes(q, count, ccn__algorithm_pieces(a), op, use.item));
  if (least > *floor) *floor = least;
}

static void one_collective(ccn__costing *c, const ccn__step *t, ccn__id id, ccn__step_cost *s,
                           ccn__on_links *out) {
  const ccn__mesh *m = &c->p->g->mesh;
  group q = {.c = c, .t = t, .id = id, .n = &c->p->g->nodes.at[id], .size = 1};
  double link = 0, floor = 0;
  int64_t sent = 0, memory = 0;
  q.over = (uint32_t)ccn__attr_int(q.n->attrs, CCN__A_OVER, 0);
  for (uint32_t a = 0; a < m->naxes; a++)
    if (q.over >> a & 1) q.size *= (uint32_t)m->size[a];
  q.world = CCN__NEWN(c->arena, uint32_t, q.size);
  for (uint32_t r = 0; r < c->p->world && !c->why; r++) {
    if (!is_first_of_group(m, q.over, r)) continue;
    find_members(&q, r);
    if (ccn__plan_does(c->p, t, r)) one_group(&q, s, &link, &floor, &sent, &memory);
  }
  s->link += q.size > 1 ? link : 0;
  s->sent += sent;
  if (t->kind == CCN__STEP_COLLECTIVE) s->memory += memory;
  const ccn__machine *machine = c->options->machine;
  const uint32_t level = ccn__machine_level(machine, q.world[0], q.world[q.size - 1]);
  out->floor += floor;
  out->bytes += (double)sent / machine->link[level].bandwidth;
}

void ccn__cost_collectives(ccn__costing *c, const ccn__step *t, ccn__step_cost *s, ccn__on_links *out) {
  for (uint32_t k = 0; k < t->nnodes && !c->why && t->kind != CCN__STEP_COPY; k++) {
    const ccn__op op = (ccn__op)c->p->g->nodes.at[t->node[k]].op;
    if (ccn__op_table[op].kind == CCN__KIND_COLLECTIVE && op != CCN__OP_SLICE && op != CCN__OP_TO_LOCAL &&
        c->p->root[t->node[k]] == t->node[k])
      one_collective(c, t, t->node[k], s, out);
  }
}

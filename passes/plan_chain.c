/* plan_chain.c: groups become steps; an overlapped chain is cut in chunks, its stages each on a stream.
 *
 * Chunk k of a chain is piece k of every slice that the chain's collective makes, along the dim that it cuts, so a
 * reduce-scatter can begin when the matmul before it has made one piece for each rank. Without such a collective the
 * dim itself is cut, the first one. SPDX-License-Identifier: Apache-2.0 */
#include "plan_impl.h"

enum { DEFAULT_CHUNKS = 4 };

/* ---- how a chain is cut --------------------------------------------------------------------------------------- */

typedef struct cutting {
  ccn__planner *s;
  ccn__chain *c;
  bool possible, seen;
  uint8_t others; /* axes that cut the dim beside the chain's own */
} cutting;

static bool makes_slices(ccn__op op) {
  return op == CCN__OP_REDUCESCATTER || op == CCN__OP_ALLGATHER || op == CCN__OP_SLICE;
}

/* The axis and dim along which the chain's first slicing collective cuts. Where axes declared before cut the dim too,
 * its slices lie in theirs. */
static void find_dim(cutting *u, ccn__id i) {
  const ccn__node *n = ccn__plan_node(u->s, i);
  const ccn__mesh *m = &u->s->g->mesh;
  if (u->c->back || !makes_slices((ccn__op)n->op)) return;
  const ccn__shape *cut = &u->s->shape[n->op == CCN__OP_ALLGATHER ? n->in[0] : i];
  const uint32_t over = (uint32_t)ccn__attr_int(n->attrs, CCN__A_OVER, 0);
  u->possible = cut->rank && over && !(over & (over - 1)); /* over several axes slices are cut again */
  for (uint32_t a = 0; a < m->naxes && u->possible; a++) {
    if (!(over >> a & 1)) continue;
    const uint32_t d = cut->place[a].dim;
    u->c->back = cut->rank - d;
    u->c->extent = cut->dim[d];
    u->c->axis = (int32_t)a;
    u->c->unit = cut->place[a].unit;
    for (uint32_t b = a + 1; b < m->naxes; b++)
      if (cut->place[b].kind == CCN__SLICED && cut->place[b].dim == d) u->possible = false;
  }
}

static bool has_dim(const ccn__chain *c, const ccn__shape *h) {
  return h->rank >= c->back && h->dim[h->rank - c->back] == c->extent;
}

/* Pieces lie over one another only if other axes cut the dim of all values of the chain alike. */
static bool cut_alike(cutting *u, const ccn__shape *h) {
  uint8_t cut = 0;
  if (!has_dim(u->c, h)) return true;
  for (uint32_t a = 0; a < u->s->g->mesh.naxes; a++)
    if ((int32_t)a != u->c->axis && h->place[a].kind == CCN__SLICED &&
        h->place[a].dim == h->rank - u->c->back)
      cut |= (uint8_t)(1u << a);
  if (!u->seen) u->others = cut;
  u->seen = true;
  return u->others == cut;
}

static bool made_in_chain(const cutting *u, ccn__id i, ccn__id operand) {
  const ccn__planner *s = u->s;
  const uint32_t made = s->group_of[s->root[operand]];
  return made && s->groups.at[made - 1].chain == s->groups.at[s->group_of[i] - 1].chain;
}

/* Whether piece k of the result needs no more than piece k of operands that have the dim. */
static bool runs_by_piece(const cutting *u, ccn__id i) {
  const ccn__node *n = ccn__plan_node(u->s, i);
  const ccn__op op = (ccn__op)n->op;
  const uint32_t back = u->c->back;
  if (!has_dim(u->c, &u->s->shape[i]) || u->s->parts[i] || u->s->shape[i].bundle) return false;
  switch (ccn__op_table[op].kind) {
  case CCN__KIND_ELEM: return op != CCN__OP_ONE_HOT;
  case CCN__KIND_RANDOM:
  case CCN__KIND_MAKER:
  case CCN__KIND_EFFECT: return true;
  case CCN__KIND_LINEAR: /* rows or a batch; columns are cut in the second operand */
    if (op != CCN__OP_MATMUL) return false;
    return back > 2 || !made_in_chain(u, i, n->in[back == 2]); /* of the other operand each piece needs all */
  case CCN__KIND_COLLECTIVE: return op != CCN__OP_ALLTOALL && op != CCN__OP_TO_LOCAL;
  default: return false;
  }
}

/* A number that each chunk makes again: it must not be made of what chunks make piece by piece. */
static bool made_again(const cutting *u, ccn__id i) {
  const ccn__node *n = ccn__plan_node(u->s, i);
  if (u->s->shape[i].rank || u->s->needed[i]) return false;
  for (uint32_t k = 0; k < n->nin; k++)
    if (u->s->shape[n->in[k]].rank && made_in_chain(u, i, n->in[k])) return false;
  return true;
}

/* Length of the slices of a value on a rank: of the first one, which is the longest. */
static int64_t slice_length(const ccn__mesh *m, const ccn__chain *c, const ccn__shape *h, uint32_t rank) {
  ccn__cplace place[CCN__MAX_AXES];
  ccn__box b;
  const uint32_t d = h->rank - c->back;
  memcpy(place, h->place, sizeof place);
  if (c->axis >= 0) {
    place[c->axis] = (ccn__cplace){.kind = CCN__SLICED, .dim = (uint16_t)d, .unit = c->unit};
    rank -= ccn__mesh_coord(m, rank, (uint32_t)c->axis) * ccn__mesh_stride(m, (uint32_t)c->axis);
  }
  ccn__box_of(m, rank, h->rank, h->dim, place, &b);
  return b.extent[d];
}

static int64_t longest_slice(const ccn__planner *s, uint32_t chain, const ccn__chain *c) {
  int64_t most = 0;
  for (uint32_t k = 0; k < s->groups.n; k++)
    for (uint32_t j = 0; s->groups.at[k].chain == chain && j < s->groups.at[k].nodes.n; j++) {
      const ccn__shape *h = &s->shape[s->groups.at[k].nodes.at[j]];
      const int64_t e = has_dim(c, h) ? slice_length(&s->g->mesh, c, h, 0) : 0;
      if (e > most) most = e;
    }
  return most;
}

void ccn__plan_cut(ccn__planner *s, uint32_t chain, ccn__chain *out) {
  cutting u = {.s = s, .c = out, .possible = true};
  int64_t wanted = 0;
  *out = (ccn__chain){.chunks = 1, .axis = -1};
  for (uint32_t k = 0; k < s->groups.n; k++) {
    const ccn__group *p = &s->groups.at[k];
    if (p->chain != chain) continue;
    if (p->stage + 1 > out->nstages) out->nstages = p->stage + 1;
    for (uint32_t j = 0; j < p->nodes.n; j++) {
      const ccn__id i = p->nodes.at[j];
      const int64_t w = ccn__attr_int(ccn__plan_node(s, i)->attrs, CCN__A_CHUNKS, 0);
      if (w > wanted) wanted = w;
      find_dim(&u, i);
    }
  }
  for (uint32_t pass = 0; pass < 2; pass++)
    for (uint32_t k = 0; k < s->groups.n && u.possible; k++)
      for (uint32_t j = 0; s->groups.at[k].chain == chain && j < s->groups.at[k].nodes.n; j++) {
        const ccn__id i = s->groups.at[k].nodes.at[j];
        if (!out->back && s->shape[i].rank) { /* no collective slices: the first dim */
          out->back = s->shape[i].rank;
          out->extent = s->shape[i].dim[0];
          out->axis = -1;
        }
        if (pass && !made_again(&u, i) && (!runs_by_piece(&u, i) || !cut_alike(&u, &s->shape[i])))
          u.possible = false;
      }
  if (!u.possible || !out->back) return;
  const int64_t most = longest_slice(s, chain, out);
  if (!wanted) wanted = DEFAULT_CHUNKS;
  if (wanted > most) wanted = most;
  out->chunks = wanted > 1 ? (uint32_t)wanted : 1;
}

void ccn__plan_chunk(const ccn__plan *p, const ccn__step *s, ccn__id node, uint32_t rank, ccn__chunk *out) {
  const ccn__shape *h = &p->shape[node];
  *out = (ccn__chunk){.whole = true};
  if (!s->chain || s->chunks < 2) return;
  const ccn__chain *c = &p->chains.at[s->chain - 1];
  ccn__box b;
  if (h->rank < c->back || h->dim[h->rank - c->back] != c->extent) return;
  ccn__box_of(&p->g->mesh, rank, h->rank, h->dim, h->place, &b);
  out->whole = false;
  out->dim = h->rank - c->back;
  out->extent = b.extent[out->dim];
  out->piece = slice_length(&p->g->mesh, c, h, rank);
  if (out->piece < 1) out->piece = 1;
  out->n = (uint32_t)((out->extent + out->piece - 1) / out->piece);
  out->k = s->chunk;
  out->c = s->chunks;
}

void ccn__chunk_range(const ccn__chunk *c, uint32_t i, int64_t *start, int64_t *end) {
  const int64_t from = (int64_t)i * c->piece, to = from + c->piece < c->extent ? from + c->piece : c->extent;
  const int64_t each = (c->piece + c->c - 1) / c->c; /* the last chunks of a short slice may be empty */
  *start = from + c->k * each < to ? from + c->k * each : to;
  *end = *start + each < to ? *start + each : to;
}

/* ---- steps ---------------------------------------------------------------------------------------------------- */

static uint8_t group_axes(const ccn__planner *s, const ccn__group *p) {
  uint8_t over = 0;
  for (uint32_t k = 0; k < p->nodes.n; k++) {
    const ccn__node *n = ccn__plan_node(s, p->nodes.at[k]);
    if (ccn__op_table[n->op].kind == CCN__KIND_COLLECTIVE && n->op != CCN__OP_SLICE)
      over |= (uint8_t)ccn__attr_int(n->attrs, CCN__A_OVER, 0);
  }
  return over;
}

static ccn__step *add_step(ccn__planner *s, const ccn__group *p, uint32_t epoch) {
  ccn__step *t = CCN__PUSH(s->arena, &s->p->steps);
  *t = (ccn__step){.kind = p->kind,
                   .group = group_axes(s, p),
                   .may_fail = ccn__plan_may_fail(s, p),
                   .epoch = epoch,
                   .fuse = p->fuse,
                   .region = p->region,
                   .chunks = 1,
                   .node = p->nodes.at,
                   .nnodes = p->nodes.n};
  return t;
}

/* The steps of a chain: chunk by chunk, each stage behind the one before; stages run on streams of their own. */
static void chain_steps(ccn__planner *s, uint32_t first, uint32_t n, uint32_t epoch) {
  ccn__plan *p = s->p;
  ccn__chain c;
  ccn__plan_cut(s, s->groups.at[first].chain, &c);
  while (p->chains.n < s->groups.at[first].chain)
    *CCN__PUSH(s->arena, &p->chains) = (ccn__chain){.chunks = 1};
  p->chains.at[s->groups.at[first].chain - 1] = c;
  const uint32_t start = p->steps.n;
  uint32_t *wait = CCN__NEWN(s->arena, uint32_t, (size_t)n * c.chunks + c.nstages + 2);
  for (uint32_t k = 0; k < c.chunks; k++)
    for (uint32_t j = 0; j < n; j++) {
      const ccn__group *g = &s->groups.at[first + j];
      const uint32_t at = p->steps.n;
      ccn__step *t = add_step(s, g, epoch);
      t->chain = g->chain;
      t->stage = g->stage;
      t->stream = (uint8_t)(c.chunks > 1 ? g->stage : 0);
      t->chunk = k;
      t->chunks = c.chunks;
      if (t->stream + 1u > p->nstreams) p->nstreams = t->stream + 1u;
      t->wait = wait;
      if (t->stream && j > 0 && p->steps.at[at - 1].stream != t->stream) wait[t->nwait++] = at - 1;
      wait += t->nwait;
    }
  for (uint32_t j = 0; j < n && c.chunks > 1; j++) { /* nobody begins before what stands before the chain */
    ccn__step *t = &p->steps.at[start + j];
    if (t->stream && !t->nwait && start > 0) {
      uint32_t *w = CCN__NEW(s->arena, uint32_t);
      *w = start - 1;
      t->wait = w;
      t->nwait = 1;
    }
  }
}

/* The next step of stream 0 waits for every stream of the chain before it. */
static void wait_for_chain(ccn__planner *s, ccn__step *t, uint32_t at) {
  ccn__plan *p = s->p;
  const ccn__step *before = at ? &p->steps.at[at - 1] : NULL;
  if (!before || !before->chain || before->chunks < 2 || (t->chain && t->stream)) return;
  uint32_t *wait = CCN__NEWN(s->arena, uint32_t, p->nstreams + t->nwait + 1), n = t->nwait;
  bool seen[256] = {true};
  if (n) memcpy(wait, t->wait, n * sizeof *wait);
  for (uint32_t k = at; k-- > 0 && p->steps.at[k].chain == before->chain;) {
    if (seen[p->steps.at[k].stream]) continue;
    seen[p->steps.at[k].stream] = true;
    wait[n++] = k;
  }
  t->wait = wait;
  t->nwait = n;
}

void ccn__plan_steps(ccn__planner *s) {
  ccn__plan *p = s->p;
  uint32_t *step_of = CCN__NEWN(s->arena, uint32_t, s->groups.n + 1), epoch = 0;
  p->nstreams = 1;
  for (uint32_t k = 0; k < s->groups.n;) {
    const ccn__group *g = &s->groups.at[k];
    const uint32_t at = p->steps.n;
    uint32_t n = 1;
    step_of[k] = at;
    if (g->chain) {
      while (k + n < s->groups.n && s->groups.at[k + n].chain == g->chain) step_of[k + n] = at + n, n++;
      chain_steps(s, k, n, epoch++);
    } else {
      ccn__step *t = add_step(s, g, epoch++);
      if (g->repeat != CCN__NO_ID) {
        ccn__number times = {0};
        const ccn__attr *a = ccn__attr_find(ccn__plan_node(s, g->repeat)->attrs, CCN__A_TIMES);
        if (a) (void)ccn__lit_eval(a->lit, p->sym, &times);
        t->times = times.i;
      }
    }
    wait_for_chain(s, &p->steps.at[at], at);
    k += n;
  }
  step_of[s->groups.n] = p->steps.n;
  for (uint32_t k = 0; k < s->groups.n; k++)
    if (s->groups.at[k].repeat != CCN__NO_ID) p->steps.at[step_of[k]].end = step_of[s->groups.at[k].end];
  p->nepochs = epoch;
}

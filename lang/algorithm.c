/* algorithm.c: what the fields of a collective algorithm mean: buffers and their pieces, sizes, traffic;
 * making one.
 * SPDX-License-Identifier: Apache-2.0 */
#include "algorithm.h"

#define RECV CCN__DOES_RECV
#define SEND CCN__DOES_SEND
#define SRC CCN__DOES_SRC
#define DST CCN__DOES_DST
#define ACC CCN__DOES_ACC
const struct ccn__prim_info ccn__prim_table[CCN__PRIM_COUNT] = {
#define PRIM(id, name, does, doc) [CCN__PRIM_##id] = {name, does, doc},
#include "prims.def"
#undef PRIM
};

const char *const ccn__algo_buf_name[CCN__BUF_COUNT] = {"in", "out", "scratch"};
const char *const ccn__protocol_name[CCN__PROTOCOLS] = {"simple", "ll", "ll128"};

bool ccn__prim_combines(ccn__prim p) {
  const uint8_t does = ccn__prim_table[p].does;
  return (does & ACC) || (does & (RECV | SRC)) == (RECV | SRC);
}

/* ---- buffers --------------------------------------------------------------------------------- */

typedef enum shape { NOTHING, ALL, PART, BLOCKS, VALUE } shape;

/* What a rank has in `in` and gets in `out`. */
static shape shape_of(const ccn__algorithm *a, uint32_t rank, bool out) {
  const bool at_root = rank == a->root;
  switch (a->op) {
  case CCN__OP_ALLREDUCE: return ALL;
  case CCN__OP_REDUCE: return out && !at_root ? NOTHING : ALL;
  case CCN__OP_BROADCAST: return !out && !at_root ? NOTHING : ALL;
  case CCN__OP_REDUCESCATTER: return out ? PART : ALL;
  case CCN__OP_ALLGATHER: return out ? ALL : PART;
  case CCN__OP_GATHER: return !out ? PART : at_root ? ALL : NOTHING;
  case CCN__OP_SCATTER: return out ? PART : at_root ? ALL : NOTHING;
  case CCN__OP_ALLTOALL: return BLOCKS;
  default: return out && a->source[rank] == CCN__NOBODY ? NOTHING : VALUE;
  }
}

bool ccn__algorithm_reduces(const ccn__algorithm *a) {
  return a->op == CCN__OP_ALLREDUCE || a->op == CCN__OP_REDUCE || a->op == CCN__OP_REDUCESCATTER;
}

uint32_t ccn__algorithm_chunks(const ccn__algorithm *a, uint32_t rank, ccn__algo_buf buf) {
  if (buf == CCN__BUF_SCRATCH) return a->rank[rank].scratch.n;
  switch (shape_of(a, rank, buf == CCN__BUF_OUT)) {
  case ALL: return a->slices * a->chunks;
  case BLOCKS: return a->nranks * a->chunks;
  case NOTHING: return 0;
  default: return a->chunks;
  }
}

uint32_t ccn__algorithm_pieces(const ccn__algorithm *a) {
  if (a->op == CCN__OP_ALLTOALL) return a->nranks * a->nranks * a->chunks;
  if (a->op == CCN__OP_SHIFT || a->op == CCN__OP_PERMUTE) return a->chunks;
  return a->slices * a->chunks;
}

uint32_t ccn__algorithm_piece(const ccn__algorithm *a, uint32_t rank, ccn__algo_buf buf, uint32_t i) {
  if (buf == CCN__BUF_SCRATCH) return a->rank[rank].scratch.at[i].piece;
  switch (shape_of(a, rank, buf == CCN__BUF_OUT)) {
  case PART: return rank * a->chunks + i;
  case BLOCKS:
    if (buf == CCN__BUF_IN) return rank * a->nranks * a->chunks + i;
    return (i / a->chunks * a->nranks + rank) * a->chunks + i % a->chunks;
  default: return i;
  }
}

uint32_t ccn__algorithm_owner(const ccn__algorithm *a, uint32_t rank, uint32_t piece) {
  switch (a->op) {
  case CCN__OP_BROADCAST:
  case CCN__OP_SCATTER: return a->root;
  case CCN__OP_ALLTOALL: return piece / a->chunks / a->nranks;
  case CCN__OP_SHIFT:
  case CCN__OP_PERMUTE: return a->source[rank];
  default: return piece / a->chunks;
  }
}

uint32_t ccn__algorithm_merges(const ccn__algorithm *a, uint32_t piece, ccn__merge *out) {
  const uint32_t slice = piece / a->chunks, n = a->nranks;
  if (a->merges) {
    memcpy(out, a->merges + (size_t)slice * (n - 1), (n - 1) * sizeof *out);
    return n > 1 ? out[n - 2].to : 0;
  }
  const ccn__order order = ccn__order_of(a->order);
  uint32_t anchor = a->op == CCN__OP_REDUCE ? a->root : slice;
  if (a->op == CCN__OP_ALLREDUCE && ccn__order_slices(order, n) == 1) anchor = 0;
  return ccn__order_merges(order, ccn__order_group(a->order), n, anchor, out);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* `length` indices of `inner` elements, cut in the algorithm's chunks. */
static void cut(const ccn__algorithm *a, int64_t length, int64_t inner, int64_t *count) {
  int64_t start, end;
  for (uint32_t j = 0; j < a->chunks; j++) {
    ccn__slice_range(length, 1, a->chunks, j, &start, &end);
    count[j] = (end - start) * inner;
  }
}

void ccn__algorithm_counts(const ccn__algorithm *a, int64_t extent, int64_t unit, int64_t inner,
                           int64_t *count) {
  const uint32_t pieces = ccn__algorithm_pieces(a), n = pieces / a->chunks;
  const bool whole = a->op == CCN__OP_SHIFT || a->op == CCN__OP_PERMUTE;
  for (uint32_t s = 0; s < n; s++) {
    int64_t start = 0, end = extent;
    if (a->op == CCN__OP_ALLTOALL) ccn__slice_range(extent, unit, a->nranks, s % a->nranks, &start, &end);
    else if (!whole) ccn__slice_range(extent, unit, n, s, &start, &end);
    cut(a, end - start, inner, count + (size_t)s * a->chunks);
  }
}

void ccn__algorithm_counts2(const ccn__algorithm *a, int64_t d, int64_t d_unit, int64_t e, int64_t e_unit,
                            int64_t inner, int64_t *count) {
  for (uint32_t s = 0; s < a->nranks; s++)
    for (uint32_t r = 0; r < a->nranks; r++) {
      int64_t d0, d1, e0, e1;
      ccn__slice_range(d, d_unit, a->nranks, s, &d0, &d1);
      ccn__slice_range(e, e_unit, a->nranks, r, &e0, &e1);
      cut(a, (d1 - d0) * (e1 - e0), inner, count + ((size_t)s * a->nranks + r) * a->chunks);
    }
}

/* ---- traffic --------------------------------------------------------------------------------- */

typedef struct meter {
  const ccn__algorithm *a;
  const int64_t *count;
  int64_t item, acc;
} meter;

/* Elements and bytes of one side of a step; a register has elements but no bytes. */
static int64_t measure(const meter *m, uint32_t rank, uint8_t buf, uint32_t first, uint32_t n,
                       uint32_t stride, int64_t *out_bytes) {
  int64_t elements = 0, bytes = 0;
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t at = first + i * stride;
    const int64_t k = m->count[ccn__algorithm_piece(m->a, rank, (ccn__algo_buf)buf, at)];
    const uint8_t width = buf == CCN__BUF_SCRATCH ? m->a->rank[rank].scratch.at[at].width : CCN__NARROW;
    elements += k;
    bytes += width == CCN__REGISTER ? 0 : k * (width == CCN__WIDE ? m->acc : m->item);
  }
  *out_bytes = bytes;
  return elements;
}

static void meter_step(const meter *m, uint32_t rank, const ccn__algo_step *s, ccn__algo_traffic *t) {
  const uint8_t does = ccn__prim_table[s->prim].does;
  const bool recv = does & RECV, send = does & SEND;
  const uint32_t src_rank = recv || s->from == CCN__NOBODY ? rank : s->from;
  const uint32_t dst_rank = send || s->to == CCN__NOBODY ? rank : s->to;
  int64_t elements = 0, bytes;
  t->steps++;
  t->barriers += s->prim == CCN__PRIM_BARRIER;
  if (does & SRC) {
    elements = measure(m, src_rank, s->src_buf, s->src, s->count, s->src_stride, &bytes);
    *(src_rank == rank ? &t->read : &t->loaded) += bytes;
  }
  if (does & DST) {
    elements = measure(m, dst_rank, s->dst_buf, s->dst, s->count, s->dst_stride, &bytes);
    *(dst_rank == rank ? &t->written : &t->stored) += bytes;
    if (does & ACC) *(dst_rank == rank ? &t->read : &t->loaded) += bytes;
  }
  if (ccn__prim_combines((ccn__prim)s->prim)) t->combined += elements;
  if (recv) t->received += elements * (s->flags & CCN__ALGO_FROM_WIDE ? m->acc : m->item);
  if (send) t->sent += elements * (s->flags & CCN__ALGO_TO_WIDE ? m->acc : m->item);
  t->messages += send;
}

void ccn__algorithm_traffic(const ccn__algorithm *a, uint32_t rank, const int64_t *count, int64_t item,
                            int64_t acc, ccn__algo_traffic *out) {
  const meter m = {a, count, item, acc};
  *out = (ccn__algo_traffic){0};
  for (uint32_t c = 0; c < a->rank[rank].channels.n; c++) {
    const ccn__algo_channel *ch = &a->rank[rank].channels.at[c];
    for (uint32_t i = 0; i < ch->steps.n; i++) meter_step(&m, rank, &ch->steps.at[i], out);
  }
}

/* ---- making ---------------------------------------------------------------------------------- */

ccn__algorithm *ccn__algorithm_new(ccn__arena *arena, const char *name, ccn__op op, uint32_t nranks) {
  ccn__algorithm *a = CCN__NEW(arena, ccn__algorithm);
  *a = (ccn__algorithm){.arena = arena,
                        .name = name,
                        .op = op,
                        .nranks = nranks,
                        .slices = nranks,
                        .chunks = 1,
                        .capacity = 2,
                        .order = CCN__ORDER_RANK};
  a->rank = CCN__NEWN(arena, ccn__algo_rank, nranks);
  return a;
}

uint32_t ccn__algorithm_channel(ccn__algorithm *a, uint32_t rank, uint32_t link) {
  ccn__algo_rank *r = &a->rank[rank];
  *CCN__PUSH(a->arena, &r->channels) = (ccn__algo_channel){.link = link};
  return r->channels.n - 1;
}

uint32_t ccn__algorithm_scratch(ccn__algorithm *a, uint32_t rank, uint32_t piece, ccn__algo_width width) {
  ccn__algo_rank *r = &a->rank[rank];
  *CCN__PUSH(a->arena, &r->scratch) = (ccn__algo_slot){piece, (uint8_t)width};
  return r->scratch.n - 1;
}

ccn__algo_step *ccn__algorithm_step(ccn__algorithm *a, uint32_t rank, uint32_t channel, ccn__prim prim) {
  ccn__algo_step *s = CCN__PUSH(a->arena, &a->rank[rank].channels.at[channel].steps);
  *s = (ccn__algo_step){.prim = (uint8_t)prim,
                        .from = CCN__NOBODY,
                        .to = CCN__NOBODY,
                        .count = 1,
                        .src_stride = 1,
                        .dst_stride = 1,
                        .after_channel = CCN__NO_CHANNEL};
  return s;
}

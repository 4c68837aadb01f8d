/* algorithm_run.c: an algorithm on data: every contribution in the tensor's dtype, every sum in the
 * accumulation dtype, one rounding where a step finishes it. The bits are those of the declared order,
 * whatever the interleaving.
 * SPDX-License-Identifier: Apache-2.0 */
#include "algorithm_engine.h"
#include "interp_eval.h"

typedef struct value { /* the elements of one piece */
  const void *data;
  bool wide;
} value;

typedef struct message {
  char *data; /* its chunks one behind the other */
  size_t room;
} message;

typedef struct runner {
  const ccn__algorithm *a;
  const ccn__algo_data *d;
  ccn__arena *arena;
  ccn__algo_engine e;
  size_t item, acc;
  int64_t **in_at, **out_at; /* of each rank and chunk: the first element */
  char ***scratch;           /* of each rank and chunk: room for its piece in the accumulation dtype */
  bool **wide;               /* of each rank and scratch chunk: what a register holds now */
  message *message;
  char *x, *y, *z; /* room for the largest piece in the accumulation dtype */
} runner;

static int64_t elements(const runner *r, uint32_t rank, uint8_t buf, uint32_t i) {
  return r->d->count[ccn__algorithm_piece(r->a, rank, (ccn__algo_buf)buf, i)];
}

static int64_t *offsets(runner *r, uint32_t rank, uint8_t buf) {
  const uint32_t n = ccn__algorithm_chunks(r->a, rank, (ccn__algo_buf)buf);
  int64_t *at = CCN__NEWN(r->arena, int64_t, n + 1);
  for (uint32_t i = 0; i < n; i++) at[i + 1] = at[i] + elements(r, rank, buf, i);
  return at;
}

/* The largest of both widths: a kernel may make one from the other in place of neither. */
static size_t widest(const runner *r) { return r->acc > r->item ? r->acc : r->item; }

static void lay_out(runner *r) {
  const uint32_t n = r->a->nranks, pieces = ccn__algorithm_pieces(r->a);
  int64_t largest = 0;
  for (uint32_t i = 0; i < pieces; i++) largest = r->d->count[i] > largest ? r->d->count[i] : largest;
  r->in_at = CCN__NEWN(r->arena, int64_t *, n);
  r->out_at = CCN__NEWN(r->arena, int64_t *, n);
  r->scratch = CCN__NEWN(r->arena, char **, n);
  r->wide = CCN__NEWN(r->arena, bool *, n);
  for (uint32_t k = 0; k < n; k++) {
    const uint32_t m = r->a->rank[k].scratch.n;
    r->in_at[k] = offsets(r, k, CCN__BUF_IN);
    r->out_at[k] = offsets(r, k, CCN__BUF_OUT);
    r->scratch[k] = CCN__NEWN(r->arena, char *, m);
    r->wide[k] = CCN__NEWN(r->arena, bool, m);
    for (uint32_t i = 0; i < m; i++)
      r->scratch[k][i] = ccn__arena_alloc(r->arena, (size_t)elements(r, k, CCN__BUF_SCRATCH, i) * widest(r));
  }
  r->message = CCN__NEWN(r->arena, message, r->e.nmessages);
  r->x = ccn__arena_alloc(r->arena, (size_t)largest * widest(r));
  r->y = ccn__arena_alloc(r->arena, (size_t)largest * widest(r));
  r->z = ccn__arena_alloc(r->arena, (size_t)largest * widest(r));
}

static value load(const runner *r, uint32_t rank, uint8_t buf, uint32_t i) {
  if (buf == CCN__BUF_IN)
    return (value){(const char *)r->d->in[rank] + r->in_at[rank][i] * (int64_t)r->item, false};
  if (buf == CCN__BUF_OUT)
    return (value){(const char *)r->d->out[rank] + r->out_at[rank][i] * (int64_t)r->item, false};
  return (value){r->scratch[rank][i], r->wide[rank][i]};
}

static void store(runner *r, uint32_t rank, uint8_t buf, uint32_t i, value v, int64_t n) {
  char *to = (char *)(uintptr_t)load(r, rank, buf, i).data;
  const size_t bytes = (size_t)n * (v.wide ? r->acc : r->item);
  if (bytes && to != v.data) memmove(to, v.data, bytes); /* in place a chunk may be copied to itself */
  if (buf == CCN__BUF_SCRATCH) r->wide[rank][i] = v.wide;
}

static const void *widen(const runner *r, value v, void *room, int64_t n) {
  if (v.wide || r->d->dtype == r->d->acc) return v.data;
  ccn__convert(r->d->acc, room, r->d->dtype, v.data, (size_t)n);
  return room;
}

static value combine(runner *r, value a, value b, int64_t n) {
  ccn__redop_combine(r->d->redop, r->d->acc, r->z, widen(r, a, r->x, n), widen(r, b, r->y, n), (size_t)n);
  return (value){r->z, true};
}

static value finish(runner *r, value v, int64_t n) {
  const void *sum = widen(r, v, r->x, n);
  if (ccn__redop_table[r->d->redop].averages) {
    if (n && sum != r->z) memcpy(r->z, sum, (size_t)n * r->acc);
    ccn__redop_divide(r->d->acc, r->z, (size_t)n, r->a->nranks);
    sum = r->z;
  }
  ccn__convert(r->d->dtype, r->y, r->d->acc, sum, (size_t)n);
  return (value){r->y, false};
}

/* One chunk of a step; `got` and `sent` are where its messages' chunk begins. Returns its elements. */
static int64_t one_chunk(runner *r, uint32_t rank, const ccn__algo_step *s, uint32_t i, const char *got,
                         char *sent) {
  const uint8_t does = ccn__prim_table[s->prim].does;
  const uint32_t src_rank = does & CCN__DOES_RECV || s->from == CCN__NOBODY ? rank : s->from;
  const uint32_t dst_rank = does & CCN__DOES_SEND || s->to == CCN__NOBODY ? rank : s->to;
  const uint32_t src = s->src + i * s->src_stride, dst = s->dst + i * s->dst_stride;
  const int64_t n =
    does & CCN__DOES_SRC ? elements(r, src_rank, s->src_buf, src) : elements(r, dst_rank, s->dst_buf, dst);
  value term[2];
  uint32_t k = 0;
  if (does & CCN__DOES_ACC) term[k++] = load(r, dst_rank, s->dst_buf, dst);
  if (does & CCN__DOES_RECV) term[k++] = (value){got, (s->flags & CCN__ALGO_FROM_WIDE) != 0};
  if (does & CCN__DOES_SRC) term[k++] = load(r, src_rank, s->src_buf, src);
  const bool swap = s->flags & CCN__ALGO_SWAP;
  value v = k == 2 ? combine(r, term[swap], term[!swap], n) : term[0];
  if (s->flags & CCN__ALGO_FINISH) v = finish(r, v, n);
  if (does & CCN__DOES_DST) store(r, dst_rank, s->dst_buf, dst, v, n);
  if (does & CCN__DOES_SEND && n) memcpy(sent, v.data, (size_t)n * (v.wide ? r->acc : r->item));
  return n;
}

static char *message_room(runner *r, uint32_t rank, const ccn__algo_step *s, uint32_t out) {
  const bool src = ccn__prim_table[s->prim].does & CCN__DOES_SRC;
  message *m = &r->message[out];
  size_t need = 0;
  for (uint32_t i = 0; i < s->count; i++)
    need += (size_t)(src ? elements(r, rank, s->src_buf, s->src + i * s->src_stride)
                         : elements(r, rank, s->dst_buf, s->dst + i * s->dst_stride)) *
            (s->flags & CCN__ALGO_TO_WIDE ? r->acc : r->item);
  if (m->room < need || !m->data) {
    m->data = ccn__arena_alloc(r->arena, need + 1);
    m->room = need;
  }
  return m->data;
}

static bool run_step(void *user, uint32_t channel, uint32_t step, uint32_t in, uint32_t out) {
  runner *r = user;
  const ccn__algo_step *s = ccn__engine_step(&r->e, channel, step);
  const uint32_t rank = r->e.rank_of[channel];
  if (!(ccn__prim_table[s->prim].does & (CCN__DOES_SRC | CCN__DOES_DST))) return true;
  const char *got = in == CCN__NONE ? NULL : r->message[in].data;
  char *sent = out == CCN__NONE ? NULL : message_room(r, rank, s, out);
  for (uint32_t i = 0; i < s->count; i++) {
    const size_t n = (size_t)one_chunk(r, rank, s, i, got, sent);
    if (got) got += n * (s->flags & CCN__ALGO_FROM_WIDE ? r->acc : r->item);
    if (sent) sent += n * (s->flags & CCN__ALGO_TO_WIDE ? r->acc : r->item);
  }
  return true;
}

bool ccn__algorithm_run(const ccn__algorithm *a, const ccn__algo_data *d, ccn__arena *scratch) {
  runner r = {.a = a, .d = d, .arena = scratch};
  ccn__algo_fault fault;
  for (uint32_t i = 1; a->equal && i < ccn__algorithm_pieces(a); i++)
    if (d->count[i] != d->count[0]) return false;
  r.item = ccn__dtype_size(d->dtype);
  r.acc = ccn__dtype_size(d->acc);
  if (!ccn__engine_init(&r.e, a, scratch, &fault)) return false;
  lay_out(&r);
  return ccn__engine_run(&r.e, d->seed, run_step, &r) && ccn__engine_ended(&r.e, &fault);
}

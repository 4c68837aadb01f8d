/* algorithm_check.c: proves an algorithm by running it once on symbols. A value is an expression over
 * contributions, kept once however often it occurs, so that comparing two is comparing numbers; sets are
 * counted only where something is wrong or the order is `any`. Channels are deterministic, so one run
 * stands for all (algorithm_engine.h); that memory adds nothing to that is what algorithm_races.c proves.
 * SPDX-License-Identifier: Apache-2.0 */
#include "algorithm_engine.h"

#include <stdio.h>

#define MOST_PIECES ((1u << 30) - 1)

/* ---- form ------------------------------------------------------------------------------------ */

typedef struct former {
  const ccn__algorithm *a;
  ccn__arena *arena;
  ccn__algo_fault *out;
  uint32_t rank, channel, step;
} former;

CCN__PRINTF(2, 3) static bool malformed(former *f, const char *fmt, ...) {
  ccn__text t;
  char text[160];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  ccn__text_init(&t, f->arena);
  if (f->rank != CCN__NONE) ccn__text_printf(&t, "rank %u", f->rank);
  if (f->channel != CCN__NONE) ccn__text_printf(&t, " channel %u", f->channel);
  if (f->step != CCN__NONE) ccn__text_printf(&t, " step %u", f->step);
  ccn__text_printf(&t, "%s%s", t.n ? ": " : "", text);
  *f->out = (ccn__algo_fault){
    CCN__FAULT_FORM, f->rank == CCN__NONE ? 0 : f->rank, f->channel, f->step, CCN__NO_CHANNEL, t.at};
  return false;
}

/* The chunks of one side of a step. */
static bool range_fine(former *f, uint32_t rank, uint8_t buf, uint32_t first, uint32_t count,
                       uint32_t stride) {
  if (buf >= CCN__BUF_COUNT) return malformed(f, "there is no such buffer");
  const uint32_t n = ccn__algorithm_chunks(f->a, rank, (ccn__algo_buf)buf);
  const uint64_t last = (uint64_t)first + (uint64_t)(count - 1) * stride;
  if (last < n) return true;
  return malformed(f, "%s[%llu] of rank %u: it has %u chunks", ccn__algo_buf_name[buf],
                   (unsigned long long)last, rank, n);
}

static bool peers_fine(former *f, const ccn__algo_step *s, uint8_t does) {
  const bool local = s->prim == CCN__PRIM_COPY || s->prim == CCN__PRIM_REDUCE;
  const bool needs[2] = {does & CCN__DOES_RECV, does & CCN__DOES_SEND};
  const uint16_t peer[2] = {s->from, s->to};
  static const char *const side[2] = {"from", "to"};
  for (int i = 0; i < 2; i++) {
    if (peer[i] == CCN__NOBODY) {
      if (needs[i]) return malformed(f, "%s needs `%s`", ccn__prim_table[s->prim].name, side[i]);
      continue;
    }
    if (!needs[i] && !local) return malformed(f, "%s has no `%s`", ccn__prim_table[s->prim].name, side[i]);
    if (peer[i] >= f->a->nranks)
      return malformed(f, "%s %u: there are %u ranks", side[i], peer[i], f->a->nranks);
    if (peer[i] == f->rank) return malformed(f, "%s itself", side[i]);
  }
  return true;
}

static bool after_fine(former *f, const ccn__algo_step *s) {
  const ccn__algo_rank *r = &f->a->rank[f->rank];
  if (s->after_channel == CCN__NO_CHANNEL) return true;
  if (s->after_channel >= r->channels.n)
    return malformed(f, "waits for channel %u, which is not there", s->after_channel);
  if (s->after_step >= r->channels.at[s->after_channel].steps.n)
    return malformed(f, "waits for step %u of channel %u, which has %u", s->after_step, s->after_channel,
                     r->channels.at[s->after_channel].steps.n);
  return true;
}

static bool register_of_peer(const ccn__algorithm *a, uint32_t rank, uint8_t buf, uint32_t first,
                             uint32_t count, uint32_t stride) {
  for (uint32_t i = 0; buf == CCN__BUF_SCRATCH && i < count; i++)
    if (a->rank[rank].scratch.at[first + i * stride].width == CCN__REGISTER) return true;
  return false;
}

static bool step_fine(former *f, const ccn__algo_step *s) {
  if (s->prim >= CCN__PRIM_COUNT) return malformed(f, "there is no such primitive");
  const uint8_t does = ccn__prim_table[s->prim].does;
  uint8_t takes = 0;
  if (!peers_fine(f, s, does) || !after_fine(f, s)) return false;
  if (!s->count) return malformed(f, "no chunks");
  if (does & CCN__DOES_RECV) takes |= CCN__ALGO_FROM_WIDE;
  if (does & CCN__DOES_SEND) takes |= CCN__ALGO_TO_WIDE;
  if (does & CCN__DOES_DST || does & CCN__DOES_SEND) takes |= CCN__ALGO_FINISH;
  if (ccn__prim_combines((ccn__prim)s->prim)) takes |= CCN__ALGO_SWAP;
  if (s->flags & ~takes)
    return malformed(f, "%s has no use for one of its flags", ccn__prim_table[s->prim].name);
  if (does & CCN__DOES_SRC) {
    const bool peer = !(does & CCN__DOES_RECV) && s->from != CCN__NOBODY;
    const uint32_t rank = peer ? s->from : f->rank;
    if (!range_fine(f, rank, s->src_buf, s->src, s->count, s->src_stride)) return false;
    if (peer && register_of_peer(f->a, rank, s->src_buf, s->src, s->count, s->src_stride))
      return malformed(f, "reads a register of rank %u", rank);
  }
  if (does & CCN__DOES_DST) {
    const bool peer = !(does & CCN__DOES_SEND) && s->to != CCN__NOBODY;
    const uint32_t rank = peer ? s->to : f->rank;
    if (!range_fine(f, rank, s->dst_buf, s->dst, s->count, s->dst_stride)) return false;
    if (peer && register_of_peer(f->a, rank, s->dst_buf, s->dst, s->count, s->dst_stride))
      return malformed(f, "writes a register of rank %u", rank);
  }
  return true;
}

static bool merges_fine(former *f) {
  const uint32_t n = f->a->nranks;
  bool *used = CCN__NEWN(f->arena, bool, n);
  for (uint32_t s = 0; f->a->merges && s < f->a->slices; s++) {
    memset(used, 0, n * sizeof *used);
    for (uint32_t i = 0; i + 1 < n; i++) {
      const ccn__merge m = f->a->merges[(size_t)s * (n - 1) + i];
      if (m.to >= n || m.from >= n || m.to == m.from || used[m.to] || used[m.from])
        return malformed(f, "the order of slice %u is no tree over the ranks", s);
      used[m.from] = true;
    }
  }
  return true;
}

static bool whole_fine(former *f) {
  const ccn__algorithm *a = f->a;
  const bool moves_values = a->op == CCN__OP_SHIFT || a->op == CCN__OP_PERMUTE;
  const bool sliced = a->op != CCN__OP_ALLREDUCE && a->op != CCN__OP_REDUCE && a->op != CCN__OP_BROADCAST;
  if (ccn__op_table[a->op].kind != CCN__KIND_COLLECTIVE || a->op == CCN__OP_SLICE ||
      a->op == CCN__OP_TO_LOCAL)
    return malformed(f, "%s is no collective", ccn__op_table[a->op].name);
  if (a->nranks < 1 || a->nranks >= CCN__NOBODY) return malformed(f, "%u ranks", a->nranks);
  if (a->root >= a->nranks) return malformed(f, "root %u of %u ranks", a->root, a->nranks);
  if (a->chunks < 1 || a->slices < 1 || (uint64_t)a->slices * a->chunks > MOST_PIECES ||
      (a->op == CCN__OP_ALLTOALL && (uint64_t)a->nranks * a->nranks * a->chunks > MOST_PIECES))
    return malformed(f, "%u slices in %u chunks each", a->slices, a->chunks);
  if (sliced && a->slices != a->nranks) return malformed(f, "%u slices for %u ranks", a->slices, a->nranks);
  if (a->capacity < 1 || a->capacity > 1 << 16) return malformed(f, "a capacity of %u messages", a->capacity);
  if (moves_values != (a->source != NULL))
    return malformed(f, "a source for each rank goes with shift and permute");
  for (uint32_t r = 0; a->source && r < a->nranks; r++)
    if (a->source[r] != CCN__NOBODY && a->source[r] >= a->nranks)
      return malformed(f, "a source out of range");
  if (!ccn__order_valid(a->order)) return malformed(f, "there is no such order");
  if (a->protocol >= CCN__PROTOCOLS) return malformed(f, "there is no such protocol");
  if (a->op == CCN__OP_ALLREDUCE && !a->merges) {
    const uint32_t k = ccn__order_slices(ccn__order_of(a->order), a->nranks);
    if (k > 1 && a->slices != k) return malformed(f, "the order goes with %u slices", k);
  }
  return merges_fine(f);
}

bool ccn__algorithm_form(const ccn__algorithm *a, ccn__arena *arena, ccn__algo_fault *out) {
  former f = {a, arena, out, CCN__NONE, CCN__NONE, CCN__NONE};
  if (!whole_fine(&f)) return false;
  const uint32_t pieces = ccn__algorithm_pieces(a);
  uint64_t chunks = 0;
  for (f.rank = 0; f.rank < a->nranks; f.rank++) {
    const ccn__algo_rank *r = &a->rank[f.rank];
    for (int b = 0; b < CCN__BUF_COUNT; b++) chunks += ccn__algorithm_chunks(a, f.rank, (ccn__algo_buf)b);
    if (chunks > UINT32_MAX) return malformed(&f, "too many chunks");
    for (uint32_t i = 0; i < r->scratch.n; i++)
      if (r->scratch.at[i].piece >= pieces || r->scratch.at[i].width >= CCN__WIDTHS)
        return malformed(&f, "scratch[%u] has no such piece", i);
  }
  for (f.rank = 0; f.rank < a->nranks; f.rank++) {
    const ccn__algo_rank *r = &a->rank[f.rank];
    for (f.channel = 0; f.channel < r->channels.n; f.channel++) {
      for (f.step = 0; f.step < r->channels.at[f.channel].steps.n; f.step++)
        if (!step_fine(&f, &r->channels.at[f.channel].steps.at[f.step])) return false;
      f.step = CCN__NONE;
    }
    f.channel = CCN__NONE;
  }
  return true;
}

/* ---- symbols --------------------------------------------------------------------------------- */

typedef enum kind { LEAF, SUM, FINISHED } kind;
typedef struct symbol {
  uint32_t x, y; /* LEAF: rank; SUM: two symbols; FINISHED: one */
  uint32_t piece : 30;
  uint32_t kind : 2;
} symbol;

typedef struct reader {
  uint32_t channel, step, next;
} reader;

typedef struct cell {
  uint32_t value;         /* symbol + 1; 0: nothing */
  uint32_t channel, step; /* who wrote it last; CCN__NONE: nobody */
  uint32_t readers;       /* since then; index + 1 */
} cell;

typedef struct prover {
  const ccn__algorithm *a;
  ccn__arena *arena;
  ccn__algo_fault *out;
  ccn__algo_engine e;
  CCN__VEC(symbol) symbols;
  uint32_t *table, ntable;                /* hash table of symbols: index + 1 */
  uint32_t (*first_cell)[CCN__BUF_COUNT]; /* of each rank */
  cell *cells;
  CCN__VEC(reader) readers;
  uint32_t **message; /* of each slot: symbols */
  uint32_t *room;     /* of each slot */
  bool shared;        /* two channels may touch one cell */
  uint32_t *stack;    /* of exactly_once */
  bool *seen;
  uint32_t channel, step;
  CCN__VEC(uint32_t) trace;
  ccn__algo_pairs pairs;
} prover;

static uint32_t hash(uint32_t k, uint32_t piece, uint32_t x, uint32_t y) {
  uint64_t h = (((uint64_t)x << 32 | y) ^ (uint64_t)k << 30) * 0x9e3779b97f4a7c15u;
  h = (h ^ h >> 32 ^ piece) * 0xbf58476d1ce4e5b9u;
  return (uint32_t)(h >> 32);
}

static void grow_table(prover *p) {
  p->ntable = p->ntable ? 2 * p->ntable : 1024;
  p->table = CCN__NEWN(p->arena, uint32_t, p->ntable);
  for (uint32_t i = 0; i < p->symbols.n; i++) {
    const symbol *s = &p->symbols.at[i];
    uint32_t h = hash(s->kind, s->piece, s->x, s->y) & (p->ntable - 1);
    while (p->table[h]) h = (h + 1) & (p->ntable - 1);
    p->table[h] = i + 1;
  }
}

static uint32_t intern(prover *p, kind k, uint32_t piece, uint32_t x, uint32_t y) {
  if (2 * p->symbols.n >= p->ntable) grow_table(p);
  uint32_t h = hash(k, piece, x, y) & (p->ntable - 1);
  for (; p->table[h]; h = (h + 1) & (p->ntable - 1)) {
    const symbol *s = &p->symbols.at[p->table[h] - 1];
    if (s->kind == k && s->piece == piece && s->x == x && s->y == y) return p->table[h] - 1;
  }
  *CCN__PUSH(p->arena, &p->symbols) = (symbol){x, y, piece, k};
  p->table[h] = p->symbols.n;
  return p->symbols.n - 1;
}

/* Whether each rank's contribution is in it exactly once: then it is a tree with n leaves. */
static bool exactly_once(const prover *p, uint32_t value, uint32_t *stack, bool *seen) {
  uint32_t depth = 0, leaves = 0;
  memset(seen, 0, p->a->nranks * sizeof *seen);
  stack[depth++] = value;
  while (depth) {
    const symbol *s = &p->symbols.at[stack[--depth]];
    if (s->kind == LEAF) {
      if (seen[s->x]) return false;
      seen[s->x] = true;
      leaves++;
      continue;
    }
    if (depth + leaves + 2 > p->a->nranks + 1) return false;
    stack[depth++] = s->x;
    if (s->kind == SUM) stack[depth++] = s->y;
  }
  return leaves == p->a->nranks;
}

/* ---- what a value is, in words --------------------------------------------------------------- */

/* How often each rank's contribution is in it (at most 255 times). */
static void count_ranks(const prover *p, uint32_t value, uint8_t *count) {
  uint8_t *times = CCN__NEWN(p->arena, uint8_t, value + 1); /* parts are older than wholes */
  memset(count, 0, p->a->nranks);
  times[value] = 1;
  for (uint32_t i = value + 1; i-- > 0;) {
    const symbol *s = &p->symbols.at[i];
    const uint32_t part[2] = {s->x, s->y};
    if (!times[i]) continue;
    for (int k = 0; k < (s->kind == SUM ? 2 : 1); k++) {
      uint8_t *to = s->kind == LEAF ? &count[s->x] : &times[part[k]];
      *to = *to + times[i] > 255 ? 255 : (uint8_t)(*to + times[i]);
    }
  }
}

static void say_value(const prover *p, uint32_t value, uint32_t depth, ccn__text *t) {
  const symbol *s = &p->symbols.at[value];
  if (t->n > 300 || depth > 60) {
    ccn__text_puts(t, "...");
    return;
  }
  if (s->kind == LEAF) {
    ccn__text_printf(t, "r%u", s->x);
  } else if (s->kind == FINISHED) {
    say_value(p, s->x, depth, t);
  } else {
    ccn__text_putc(t, '(');
    say_value(p, s->x, depth + 1, t);
    ccn__text_puts(t, " + ");
    say_value(p, s->y, depth + 1, t);
    ccn__text_putc(t, ')');
  }
}

static const char *value_text(const prover *p, uint32_t value) {
  ccn__text t;
  ccn__text_init(&t, p->arena);
  say_value(p, value, 0, &t);
  return t.at;
}

CCN__PRINTF(4, 5)
static bool wrong(prover *p, ccn__algo_fault_kind k, uint32_t chunk, const char *fmt, ...) {
  char text[200];
  ccn__text t;
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  const uint32_t rank = p->e.rank_of[p->channel], channel = p->channel - p->e.first_channel[rank];
  ccn__text_init(&t, p->arena);
  ccn__text_printf(&t, "rank %u channel %u step %u (", rank, channel, p->step);
  ccn__algo_step_print(ccn__engine_step(&p->e, p->channel, p->step), &t);
  ccn__text_printf(&t, "): %s", text);
  *p->out = (ccn__algo_fault){k, rank, channel, p->step, chunk, t.at};
  return false;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Where a chunk lies. In place the smaller buffer is a part of the larger one. */
static cell *find_cell(const prover *p, uint32_t rank, uint8_t buf, uint32_t i) {
  const uint32_t *first = p->first_cell[rank];
  if (p->a->inplace && buf != CCN__BUF_SCRATCH) {
    const uint32_t n = ccn__algorithm_chunks(p->a, rank, CCN__BUF_IN),
                   m = ccn__algorithm_chunks(p->a, rank, CCN__BUF_OUT);
    const bool part =
      n && m && n != m && ccn__algorithm_chunks(p->a, rank, (ccn__algo_buf)buf) == p->a->chunks;
    return &p->cells[first[0] + i + (part ? rank * p->a->chunks : 0)];
  }
  return &p->cells[first[buf] + i];
}

static void lay_out(prover *p) {
  uint32_t n = 0;
  p->first_cell = ccn__arena_alloc(p->arena, p->a->nranks * sizeof *p->first_cell);
  for (uint32_t r = 0; r < p->a->nranks; r++) {
    for (int b = 0; b < CCN__BUF_COUNT; b++) {
      p->first_cell[r][b] = n;
      n += ccn__algorithm_chunks(p->a, r, (ccn__algo_buf)b);
    }
  }
  p->cells = CCN__NEWN(p->arena, cell, n);
  for (uint32_t i = 0; i < n; i++) p->cells[i].channel = CCN__NONE;
  for (uint32_t r = 0; r < p->a->nranks; r++)
    for (uint32_t i = 0; i < ccn__algorithm_chunks(p->a, r, CCN__BUF_IN); i++)
      find_cell(p, r, CCN__BUF_IN, i)->value =
        intern(p, LEAF, ccn__algorithm_piece(p->a, r, CCN__BUF_IN, i), r, 0) + 1;
}

static void order(prover *p, uint32_t channel, uint32_t step, uint32_t rank, uint8_t buf, uint32_t chunk,
                  bool writes_first, bool writes) {
  if (channel == p->channel) return;
  *CCN__PUSH(p->arena, &p->pairs) =
    (ccn__algo_pair){channel, step, p->channel, p->step, rank, buf, chunk, writes_first, writes};
}

/* Notes what the access must be ordered with: it is behind the last write, a write behind all readers
 * since, and what touches a peer's memory behind that peer's start (its end is told apart). */
static void touch(prover *p, cell *c, uint32_t rank, uint8_t buf, uint32_t chunk, bool writes) {
  if (!p->shared) return;
  if (c->channel != CCN__NONE) order(p, c->channel, c->step, rank, buf, chunk, true, writes);
  else if (rank != p->e.rank_of[p->channel]) order(p, CCN__NONE, 0, rank, buf, chunk, true, writes);
  if (!writes) {
    reader *r = c->readers ? &p->readers.at[c->readers - 1] : NULL;
    if (r && r->channel == p->channel) {
      r->step = p->step;
      return;
    }
    *CCN__PUSH(p->arena, &p->readers) = (reader){p->channel, p->step, c->readers};
    c->readers = p->readers.n;
    return;
  }
  for (uint32_t i = c->readers; i; i = p->readers.at[i - 1].next)
    order(p, p->readers.at[i - 1].channel, p->readers.at[i - 1].step, rank, buf, chunk, false, true);
  c->readers = 0;
  c->channel = p->channel;
  c->step = p->step;
}

static bool load(prover *p, uint32_t rank, uint8_t buf, uint32_t i, uint32_t *out) {
  cell *c = find_cell(p, rank, buf, i);
  if (!c->value)
    return wrong(p, CCN__FAULT_VALUE, i, "reads %s[%u] of rank %u before anything is there",
                 ccn__algo_buf_name[buf], i, rank);
  touch(p, c, rank, buf, i, false);
  *out = c->value - 1;
  return true;
}

static bool store(prover *p, uint32_t rank, uint8_t buf, uint32_t i, uint32_t value) {
  const symbol *s = &p->symbols.at[value];
  const uint32_t piece = ccn__algorithm_piece(p->a, rank, (ccn__algo_buf)buf, i);
  const uint8_t width = buf == CCN__BUF_SCRATCH ? p->a->rank[rank].scratch.at[i].width : CCN__NARROW;
  if (buf == CCN__BUF_IN && !p->a->inplace) return wrong(p, CCN__FAULT_VALUE, i, "writes its input");
  if (s->piece != piece && !p->a->equal)
    return wrong(p, CCN__FAULT_VALUE, i, "puts piece %u in %s[%u] of rank %u, which is for piece %u",
                 s->piece, ccn__algo_buf_name[buf], i, rank, piece);
  if (width != CCN__REGISTER && (s->kind == SUM) != (width == CCN__WIDE))
    return wrong(p, CCN__FAULT_VALUE, i, "%s[%u] of rank %u is %s, the value is %s", ccn__algo_buf_name[buf],
                 i, rank, width == CCN__WIDE ? "wide" : "narrow",
                 s->kind == SUM ? "an unfinished sum" : "no sum");
  cell *c = find_cell(p, rank, buf, i);
  touch(p, c, rank, buf, i, true);
  c->value = value + 1;
  return true;
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* x + y, unless one is finished or they are pieces of different places. */
static bool add(prover *p, const ccn__algo_step *s, uint32_t i, uint32_t x, uint32_t y, uint32_t *out) {
  const symbol *a = &p->symbols.at[x], *b = &p->symbols.at[y];
  const uint32_t chunk =
    ccn__prim_table[s->prim].does & CCN__DOES_SRC ? s->src + i * s->src_stride : s->dst + i * s->dst_stride;
  if (!ccn__algorithm_reduces(p->a))
    return wrong(p, CCN__FAULT_VALUE, chunk, "adds, but this collective only moves");
  if (a->piece != b->piece)
    return wrong(p, CCN__FAULT_VALUE, chunk, "adds piece %u to piece %u", b->piece, a->piece);
  if (a->kind == FINISHED || b->kind == FINISHED)
    return wrong(p, CCN__FAULT_VALUE, chunk, "adds to a result that is finished");
  *out = s->flags & CCN__ALGO_SWAP ? intern(p, SUM, a->piece, y, x) : intern(p, SUM, a->piece, x, y);
  return true;
}

static bool one_chunk(prover *p, const ccn__algo_step *s, uint32_t i, const uint32_t *in, uint32_t *sent) {
  const uint8_t does = ccn__prim_table[s->prim].does;
  const uint32_t rank = p->e.rank_of[p->channel];
  const uint32_t src_rank = does & CCN__DOES_RECV || s->from == CCN__NOBODY ? rank : s->from;
  const uint32_t dst_rank = does & CCN__DOES_SEND || s->to == CCN__NOBODY ? rank : s->to;
  const uint32_t dst = s->dst + i * s->dst_stride;
  uint32_t term[2], n = 0, value;
  if (does & CCN__DOES_ACC && !load(p, dst_rank, s->dst_buf, dst, &term[n++])) return false;
  if (does & CCN__DOES_RECV) term[n++] = in[i];
  if (does & CCN__DOES_SRC && !load(p, src_rank, s->src_buf, s->src + i * s->src_stride, &term[n++]))
    return false;
  value = term[0];
  if (n == 2 && !add(p, s, i, term[0], term[1], &value)) return false;
  if (s->flags & CCN__ALGO_FINISH) {
    if (!ccn__algorithm_reduces(p->a) || p->symbols.at[value].kind == FINISHED)
      return wrong(p, CCN__FAULT_VALUE, dst, "finishes what is no sum");
    value = intern(p, FINISHED, p->symbols.at[value].piece, value, 0);
  }
  if (does & CCN__DOES_DST && !store(p, dst_rank, s->dst_buf, dst, value)) return false;
  if (does & CCN__DOES_SEND) {
    const bool wide = p->symbols.at[value].kind == SUM;
    if (wide != ((s->flags & CCN__ALGO_TO_WIDE) != 0))
      return wrong(p, CCN__FAULT_VALUE, does & CCN__DOES_SRC ? s->src : dst, "sends %s as %s",
                   wide ? "an unfinished sum" : "what is no sum", wide ? "narrow" : "wide");
    sent[i] = value;
  }
  return true;
}

/* The message fits what the step expects: as many chunks, as wide. */
static bool message_fits(prover *p, const ccn__algo_step *s, uint32_t in) {
  const uint32_t n = p->message[in][0], chunk = s->prim == CCN__PRIM_RECV_REDUCE_SEND ? s->src : s->dst;
  if (n != s->count)
    return wrong(p, CCN__FAULT_VALUE, chunk, "gets a message of %u chunk%s", n, n == 1 ? "" : "s");
  for (uint32_t i = 0; i < n; i++) {
    const symbol *x = &p->symbols.at[p->message[in][i + 1]];
    if ((x->kind == SUM) != ((s->flags & CCN__ALGO_FROM_WIDE) != 0))
      return wrong(p, CCN__FAULT_VALUE, chunk + i, "gets %s",
                   x->kind == SUM ? "a wide message" : "a narrow message");
    if (s->prim == CCN__PRIM_RECV_REDUCE_SEND || p->a->equal) continue;
    const uint32_t at = s->dst + i * s->dst_stride,
                   want = ccn__algorithm_piece(p->a, p->e.rank_of[p->channel], (ccn__algo_buf)s->dst_buf, at);
    if (x->piece != want)
      return wrong(p, CCN__FAULT_VALUE, at, "gets piece %u of rank %u where piece %u belongs", x->piece,
                   s->from, want);
  }
  return true;
}

/* Messages of slot `out`: the number of chunks, then their symbols. */
static uint32_t *message_room(prover *p, uint32_t out, uint32_t count) {
  if (p->room[out] <= count) {
    p->room[out] = count + 1;
    p->message[out] = CCN__NEWN(p->arena, uint32_t, count + 1);
  }
  p->message[out][0] = count;
  return p->message[out] + 1;
}

static bool prove_step(void *user, uint32_t channel, uint32_t step, uint32_t in, uint32_t out) {
  prover *p = user;
  const ccn__algo_step *s = ccn__engine_step(&p->e, channel, step);
  p->channel = channel;
  p->step = step;
  *CCN__PUSH(p->arena, &p->trace) = channel;
  if (!(ccn__prim_table[s->prim].does & (CCN__DOES_SRC | CCN__DOES_DST))) return true;
  if (in != CCN__NONE && !message_fits(p, s, in)) return false;
  uint32_t *sent = out == CCN__NONE ? NULL : message_room(p, out, s->count);
  const uint32_t *got = in == CCN__NONE ? NULL : p->message[in] + 1;
  for (uint32_t i = 0; i < s->count; i++)
    if (!one_chunk(p, s, i, got, sent)) return false;
  return true;
}

/* ---- results --------------------------------------------------------------------------------- */

/* What is wrong with the set of contributions. */
static void say_set(const prover *p, uint32_t value, ccn__text *t) {
  uint8_t *count = CCN__NEWN(p->arena, uint8_t, p->a->nranks);
  uint32_t told = 0;
  count_ranks(p, value, count);
  for (uint32_t r = 0; r < p->a->nranks && told < 4; r++) {
    if (count[r] == 1) continue;
    if (count[r]) ccn__text_printf(t, "%srank %u is there %u times", told ? ", " : "", r, count[r]);
    else ccn__text_printf(t, "%srank %u is missing", told ? ", " : "", r);
    told++;
  }
}

static bool bad_result(prover *p, uint32_t rank, uint32_t chunk, const char *text) {
  *p->out = (ccn__algo_fault){CCN__FAULT_RESULT, rank, CCN__NO_CHANNEL, CCN__NO_CHANNEL, chunk, NULL};
  p->out->text = ccn__arena_printf(p->arena, "rank %u, out[%u]: %s", rank, chunk, text);
  return false;
}

/* The declared sum of a piece, finished; CCN__NONE for an order that nobody knows. */
static uint32_t declared(prover *p, uint32_t piece, ccn__merge *merges, uint32_t *lane) {
  const uint32_t n = p->a->nranks;
  if (!p->a->merges && ccn__order_of(p->a->order) == CCN__ORDER_ANY) return CCN__NONE;
  const uint32_t sum = ccn__algorithm_merges(p->a, piece, merges);
  for (uint32_t r = 0; r < n; r++) lane[r] = intern(p, LEAF, piece, r, 0);
  for (uint32_t i = 0; i + 1 < n; i++)
    lane[merges[i].to] = intern(p, SUM, piece, lane[merges[i].to], lane[merges[i].from]);
  return intern(p, FINISHED, piece, lane[sum], 0);
}

static bool result_fine(prover *p, uint32_t rank, uint32_t chunk, uint32_t want) {
  const uint32_t have = find_cell(p, rank, CCN__BUF_OUT, chunk)->value;
  ccn__text t;
  ccn__text_init(&t, p->arena);
  if (!have) return bad_result(p, rank, chunk, "nothing was written there");
  const uint32_t value = have - 1;
  if (value == want) return true;
  const symbol *s = &p->symbols.at[value];
  if (!ccn__algorithm_reduces(p->a)) {
    ccn__text_printf(&t, "holds piece %u of rank %u instead of piece %u of rank %u", s->piece, s->x,
                     p->symbols.at[want].piece, p->symbols.at[want].x);
    return bad_result(p, rank, chunk, t.at);
  }
  const uint32_t piece = ccn__algorithm_piece(p->a, rank, CCN__BUF_OUT, chunk);
  if (s->piece != piece) {
    ccn__text_printf(&t, "holds piece %u, not %u", s->piece, piece);
    return bad_result(p, rank, chunk, t.at);
  }
  if (!exactly_once(p, value, p->stack, p->seen)) {
    say_set(p, value, &t);
    return bad_result(p, rank, chunk, t.at);
  }
  if (s->kind != FINISHED) return bad_result(p, rank, chunk, "holds a sum that was not finished");
  if (want == CCN__NONE) return true;
  ccn__text_printf(&t, "adds %s; declared is ", value_text(p, value));
  ccn__text_puts(&t, value_text(p, want));
  return bad_result(p, rank, chunk, t.at);
}

/* Of each piece the declared value is made once. An unknown order's are counted once for each value that
 * occurs. */
static bool results_fine(prover *p) {
  const uint32_t n = p->a->nranks, pieces = ccn__algorithm_pieces(p->a);
  const bool reduces = ccn__algorithm_reduces(p->a);
  ccn__merge *merges = CCN__NEWN(p->arena, ccn__merge, n);
  uint32_t *lane = CCN__NEWN(p->arena, uint32_t, n), *want = CCN__NEWN(p->arena, uint32_t, pieces);
  uint32_t *proven = CCN__NEWN(p->arena, uint32_t, pieces);
  for (uint32_t r = 0; r < n; r++)
    for (uint32_t i = 0; i < ccn__algorithm_chunks(p->a, r, CCN__BUF_OUT); i++) {
      const uint32_t piece = ccn__algorithm_piece(p->a, r, CCN__BUF_OUT, i);
      const uint32_t have = find_cell(p, r, CCN__BUF_OUT, i)->value;
      if (!reduces) {
        if (!result_fine(p, r, i, intern(p, LEAF, piece, ccn__algorithm_owner(p->a, r, piece), 0)))
          return false;
        continue;
      }
      if (have && proven[piece] == have) continue;
      if (!want[piece])
        want[piece] = declared(p, piece, merges, lane) + 1; /* CCN__NONE + 1 is 0: asked again */
      if (!result_fine(p, r, i, want[piece] - 1)) return false;
      proven[piece] = have;
    }
  return true;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Whether two channels can touch one chunk at all. */
static bool shares_memory(const ccn__algo_engine *e) {
  for (uint32_t r = 0; r < e->a->nranks; r++)
    if (e->first_channel[r + 1] - e->first_channel[r] > 1) return true;
  for (uint32_t c = 0; c < e->nchannels; c++)
    for (uint32_t i = 0; i < ccn__engine_channel(e, c)->steps.n; i++) {
      const ccn__algo_step *s = ccn__engine_step(e, c, i);
      const bool local = s->prim == CCN__PRIM_COPY || s->prim == CCN__PRIM_REDUCE;
      if (local && (s->from != CCN__NOBODY || s->to != CCN__NOBODY)) return true;
    }
  return false;
}

/* Each touch of a peer's memory happens before that peer ends. The last of each channel stands for the
 * earlier ones. */
static void before_ends(prover *p) {
  for (uint32_t c = 0; c < p->e.nchannels; c++) {
    bool *told = NULL;
    for (uint32_t i = ccn__engine_channel(&p->e, c)->steps.n; i-- > 0;) {
      const ccn__algo_step *s = ccn__engine_step(&p->e, c, i);
      if (s->prim != CCN__PRIM_COPY && s->prim != CCN__PRIM_REDUCE) continue;
      const uint16_t peer[2] = {s->from, s->to};
      for (int k = 0; k < 2; k++) {
        if (peer[k] == CCN__NOBODY) continue;
        if (!told) told = CCN__NEWN(p->arena, bool, p->a->nranks);
        if (told[peer[k]]) continue;
        told[peer[k]] = true;
        *CCN__PUSH(p->arena, &p->pairs) = (ccn__algo_pair){
          c, i, CCN__NONE, 0, peer[k], k ? s->dst_buf : s->src_buf, k ? s->dst : s->src, k == 1, true};
      }
    }
  }
}

bool ccn__algorithm_check(const ccn__algorithm *a, ccn__arena *scratch, ccn__algo_fault *out) {
  prover *p = CCN__NEW(scratch, prover);
  p->a = a;
  p->arena = scratch;
  p->out = out;
  *out = (ccn__algo_fault){CCN__FAULT_NONE, 0, 0, 0, 0, ""};
  if (!ccn__algorithm_form(a, scratch, out) || !ccn__engine_init(&p->e, a, scratch, out)) return false;
  p->shared = shares_memory(&p->e);
  p->stack = CCN__NEWN(scratch, uint32_t, a->nranks + 2);
  p->seen = CCN__NEWN(scratch, bool, a->nranks);
  p->message = CCN__NEWN(scratch, uint32_t *, p->e.nmessages);
  p->room = CCN__NEWN(scratch, uint32_t, p->e.nmessages);
  lay_out(p);
  if (!ccn__engine_run(&p->e, 0, prove_step, p) || !ccn__engine_ended(&p->e, out) || !results_fine(p))
    return false;
  if (!p->shared) return true;
  before_ends(p);
  return ccn__algorithm_ordered(&p->e, p->trace.at, p->trace.n, &p->pairs, out);
}

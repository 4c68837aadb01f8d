/* algorithm_text.c: the text form of collective algorithms, which reads back exactly, and a picture for
 * people.
 *
 *   algorithm "ring" allreduce {
 *     ranks 2
 *     slices 2
 *     chunks 1
 *     protocol simple
 *     capacity 2
 *     order ring
 *     rank 0 {
 *       scratch 0 wide, 1 register
 *       channel link 0 {
 *         recv-reduce-copy out[0:2] = in[0:2] from 1 wide finish after 1.4
 *
 * A step is its primitive, dst, `=` src, `@` the peer in whose memory that lies, the peers of its messages
 * each with `wide` if a sum crosses, then finish, swap, and what it waits for (channel . step). [a:b] are
 * chunks a to b - 1, [a:b:s] every s-th of them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "algorithm.h"
#include "algorithm_words.h"

/* ---- printing -------------------------------------------------------------------------------- */

static void put_range(uint8_t buf, uint32_t first, uint32_t count, uint32_t stride, ccn__text *t) {
  const uint64_t end = (uint64_t)first + (uint64_t)count * stride;
  ccn__text_printf(t, " %s[%u", buf < CCN__BUF_COUNT ? ccn__algo_buf_name[buf] : "?", first);
  if (count != 1 || stride != 1) ccn__text_printf(t, ":%llu", (unsigned long long)end);
  if (stride != 1) ccn__text_printf(t, ":%u", stride);
  ccn__text_putc(t, ']');
}

void ccn__algo_step_print(const ccn__algo_step *s, ccn__text *t) {
  const uint8_t does = ccn__prim_table[s->prim].does;
  const bool recv = does & CCN__DOES_RECV, send = does & CCN__DOES_SEND;
  ccn__text_puts(t, ccn__prim_table[s->prim].name);
  if (does & CCN__DOES_DST) put_range(s->dst_buf, s->dst, s->count, s->dst_stride, t);
  if (does & CCN__DOES_DST && !send && s->to != CCN__NOBODY) ccn__text_printf(t, "@%u", s->to);
  if ((does & CCN__DOES_DST) && (does & CCN__DOES_SRC)) ccn__text_puts(t, " =");
  if (does & CCN__DOES_SRC) put_range(s->src_buf, s->src, s->count, s->src_stride, t);
  if (does & CCN__DOES_SRC && !recv && s->from != CCN__NOBODY) ccn__text_printf(t, "@%u", s->from);
  if (recv) ccn__text_printf(t, " from %u%s", s->from, s->flags & CCN__ALGO_FROM_WIDE ? " wide" : "");
  if (send) ccn__text_printf(t, " to %u%s", s->to, s->flags & CCN__ALGO_TO_WIDE ? " wide" : "");
  if (s->flags & CCN__ALGO_FINISH) ccn__text_puts(t, " finish");
  if (s->flags & CCN__ALGO_SWAP) ccn__text_puts(t, " swap");
  if (s->after_channel != CCN__NO_CHANNEL)
    ccn__text_printf(t, " after %u.%u", s->after_channel, s->after_step);
}

const char *const ccn__algo_width_name[CCN__WIDTHS] = {"narrow", "wide", "register"};

/* Printable ASCII without quotes stands for itself; everything else as \xx. */
static void put_quoted(const char *s, ccn__text *t) {
  ccn__text_putc(t, '"');
  for (; *s; s++) {
    const unsigned char c = (unsigned char)*s;
    if (c < 32 || c >= 127 || c == '"' || c == '\\') ccn__text_printf(t, "\\%02x", c);
    else ccn__text_putc(t, *s);
  }
  ccn__text_putc(t, '"');
}

bool ccn__algorithm_rooted(ccn__op op) {
  return op == CCN__OP_REDUCE || op == CCN__OP_GATHER || op == CCN__OP_BROADCAST || op == CCN__OP_SCATTER;
}

static void put_head(const ccn__algorithm *a, ccn__text *t) {
  ccn__text_puts(t, "algorithm ");
  put_quoted(a->name, t);
  ccn__text_printf(t, " %s {\n  ranks %u\n", ccn__op_table[a->op].name, a->nranks);
  if (ccn__algorithm_rooted(a->op)) ccn__text_printf(t, "  root %u\n", a->root);
  if (a->source) {
    ccn__text_puts(t, "  source");
    for (uint32_t r = 0; r < a->nranks; r++)
      if (a->source[r] == CCN__NOBODY) ccn__text_puts(t, " none");
      else ccn__text_printf(t, " %u", a->source[r]);
    ccn__text_putc(t, '\n');
  }
  ccn__text_printf(t, "  slices %u\n  chunks %u\n", a->slices, a->chunks);
  if (a->equal) ccn__text_puts(t, "  equal\n");
  if (a->inplace) ccn__text_puts(t, "  inplace\n");
  ccn__text_printf(t, "  protocol %s\n  capacity %u\n", ccn__protocol_name[a->protocol], a->capacity);
  if (a->min_bytes || a->max_bytes)
    ccn__text_printf(t, "  bytes %lld %lld\n", (long long)a->min_bytes, (long long)a->max_bytes);
  ccn__text_puts(t, "  order ");
  ccn__order_print(a->order, t);
  ccn__text_putc(t, '\n');
  for (uint32_t s = 0; a->merges && s < a->slices; s++) {
    ccn__text_puts(t, "  merges");
    for (uint32_t i = 0; i + 1 < a->nranks; i++) {
      const ccn__merge m = a->merges[(size_t)s * (a->nranks - 1) + i];
      ccn__text_printf(t, " %u+%u", m.to, m.from);
    }
    ccn__text_putc(t, '\n');
  }
}

static void put_rank(const ccn__algorithm *a, uint32_t rank, ccn__text *t) {
  const ccn__algo_rank *r = &a->rank[rank];
  ccn__text_printf(t, "  rank %u {\n", rank);
  for (uint32_t i = 0; i < r->scratch.n; i++) {
    const ccn__algo_slot *s = &r->scratch.at[i];
    ccn__text_printf(t, "%s %u", i ? "," : "    scratch", s->piece);
    if (s->width != CCN__NARROW) ccn__text_printf(t, " %s", ccn__algo_width_name[s->width]);
  }
  if (r->scratch.n) ccn__text_putc(t, '\n');
  for (uint32_t c = 0; c < r->channels.n; c++) {
    const ccn__algo_channel *ch = &r->channels.at[c];
    ccn__text_printf(t, "    channel link %u {\n", ch->link);
    for (uint32_t i = 0; i < ch->steps.n; i++) {
      ccn__text_puts(t, "      ");
      ccn__algo_step_print(&ch->steps.at[i], t);
      ccn__text_putc(t, '\n');
    }
    ccn__text_puts(t, "    }\n");
  }
  ccn__text_puts(t, "  }\n");
}

void ccn__algorithm_print(const ccn__algorithm *a, ccn__text *out) {
  put_head(a, out);
  for (uint32_t r = 0; r < a->nranks; r++) put_rank(a, r, out);
  ccn__text_puts(out, "}\n");
}

/* ---- reading --------------------------------------------------------------------------------- */

typedef struct lexer {
  ccn__arena *arena;
  const char *p, *end;
  uint32_t line;
  const char *error;
  const char *at; /* the token: a word, a number, one character, or a string with its quotes */
  size_t n;
} lexer;

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool unexpected(lexer *l, const char *want) {
  if (l->error) return false;
  if (l->n)
    l->error = ccn__arena_printf(l->arena, "line %u: %s expected, not `%.*s`", l->line, want,
                                 (int)(l->n < 40 ? l->n : 40), l->at);
  else l->error = ccn__arena_printf(l->arena, "line %u: %s expected", l->line, want);
  return false;
}

static void next(lexer *l) {
  while (l->p < l->end && (*l->p == ' ' || *l->p == '\n' || *l->p == '\t' || *l->p == '\r' || *l->p == '#')) {
    if (*l->p == '#')
      while (l->p + 1 < l->end && l->p[1] != '\n') l->p++;
    if (*l->p == '\n') l->line++;
    l->p++;
  }
  l->at = l->p;
  l->n = 0;
  if (l->p == l->end) return;
  const char c = *l->p++;
  if (is_letter(c))
    while (l->p < l->end && (is_letter(*l->p) || is_digit(*l->p) || *l->p == '-')) l->p++;
  else if (is_digit(c))
    while (l->p < l->end && is_digit(*l->p)) l->p++;
  else if (c == '"') {
    while (l->p < l->end && *l->p != '"' && *l->p != '\n') l->p++;
    if (l->p < l->end && *l->p == '"') l->p++;
  }
  l->n = (size_t)(l->p - l->at);
}

static bool is(const lexer *l, const char *word) {
  return !l->error && l->n == strlen(word) && memcmp(l->at, word, l->n) == 0;
}

static bool accept(lexer *l, const char *word) {
  if (!is(l, word)) return false;
  next(l);
  return true;
}

static bool expect(lexer *l, const char *word) { return accept(l, word) || unexpected(l, word); }

static uint64_t number(lexer *l, uint64_t most) {
  uint64_t x = 0;
  if (l->error) return 0;
  if (!l->n || !is_digit(*l->at)) {
    unexpected(l, "a number");
    return 0;
  }
  for (size_t i = 0; i < l->n; i++) {
    if (x > (INT64_MAX - 9) / 10) x = UINT64_MAX / 16;
    x = 10 * x + (uint64_t)(l->at[i] - '0');
  }
  if (x > most) {
    unexpected(l, "a smaller number");
    return 0;
  }
  next(l);
  return x;
}

static int hex(char c) { return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

static const char *string(lexer *l) {
  char *s, *to;
  if (l->error || l->n < 2 || l->at[0] != '"' || l->at[l->n - 1] != '"') {
    unexpected(l, "a string");
    return "";
  }
  to = s = ccn__arena_strndup(l->arena, l->at + 1, l->n - 2);
  for (const char *p = s; *p; p++) {
    if (*p != '\\') {
      *to++ = *p;
    } else if (hex(p[1]) >= 0 && hex(p[2]) >= 0 && 16 * hex(p[1]) + hex(p[2])) {
      *to++ = (char)(16 * hex(p[1]) + hex(p[2]));
      p += 2;
    } else {
      unexpected(l, "two hexadecimal digits behind \\");
      break;
    }
  }
  *to = 0;
  next(l);
  return s;
}

/* Which of the names the token is; `n` if none. */
static uint32_t word_of(lexer *l, const char *const *names, uint32_t n, const char *what) {
  for (uint32_t i = 0; i < n; i++)
    if (accept(l, names[i])) return i;
  unexpected(l, what);
  return n;
}

static uint16_t peer(lexer *l) { return (uint16_t)number(l, CCN__NOBODY - 1); }

static void range(lexer *l, ccn__algo_step *s, bool first, uint8_t *buf, uint32_t *start, uint16_t *stride) {
  *buf = (uint8_t)word_of(l, ccn__algo_buf_name, CCN__BUF_COUNT, "in, out or scratch");
  expect(l, "[");
  *start = (uint32_t)number(l, UINT32_MAX);
  uint64_t end = (uint64_t)*start + 1;
  *stride = 1;
  if (accept(l, ":")) end = number(l, (uint64_t)1 << 50);
  if (accept(l, ":")) *stride = (uint16_t)number(l, UINT16_MAX);
  if (l->error) return;
  const uint64_t length = end - *start;
  if (end <= *start || !*stride || length % *stride || length / *stride > UINT32_MAX)
    unexpected(l, "[first:end] or [first:end:stride]");
  else if (!first && s->count != length / *stride) unexpected(l, "as many chunks as on the other side");
  else s->count = (uint32_t)(length / *stride);
  expect(l, "]");
}

static void read_step(lexer *l, ccn__algo_step *s) {
  const uint8_t does = ccn__prim_table[s->prim].does;
  const bool recv = does & CCN__DOES_RECV, send = does & CCN__DOES_SEND, dst = does & CCN__DOES_DST,
             src = does & CCN__DOES_SRC;
  if (dst) range(l, s, true, &s->dst_buf, &s->dst, &s->dst_stride);
  if (dst && !send && accept(l, "@")) s->to = peer(l);
  if (dst && src) expect(l, "=");
  if (src) range(l, s, !dst, &s->src_buf, &s->src, &s->src_stride);
  if (src && !recv && accept(l, "@")) s->from = peer(l);
  if (recv && expect(l, "from")) s->from = peer(l);
  if (recv && accept(l, "wide")) s->flags |= CCN__ALGO_FROM_WIDE;
  if (send && expect(l, "to")) s->to = peer(l);
  if (send && accept(l, "wide")) s->flags |= CCN__ALGO_TO_WIDE;
  if (accept(l, "finish")) s->flags |= CCN__ALGO_FINISH;
  if (accept(l, "swap")) s->flags |= CCN__ALGO_SWAP;
  if (!accept(l, "after")) return;
  s->after_channel = (uint32_t)number(l, UINT32_MAX - 1);
  expect(l, ".");
  s->after_step = (uint32_t)number(l, UINT32_MAX);
}

bool ccn__prim_find(const char *name, size_t n, ccn__prim *out) {
  for (int i = 0; i < CCN__PRIM_COUNT; i++) {
    if (strlen(ccn__prim_table[i].name) != n || memcmp(ccn__prim_table[i].name, name, n) != 0) continue;
    *out = (ccn__prim)i;
    return true;
  }
  return false;
}

static void read_rank(lexer *l, ccn__algorithm *a, uint32_t rank) {
  expect(l, "{");
  if (accept(l, "scratch")) do {
      const uint32_t piece = (uint32_t)number(l, UINT32_MAX);
      uint32_t width = CCN__NARROW;
      for (uint32_t w = CCN__WIDE; w < CCN__WIDTHS; w++)
        if (accept(l, ccn__algo_width_name[w])) width = w;
      ccn__algorithm_scratch(a, rank, piece, (ccn__algo_width)width);
    } while (accept(l, ","));
  while (accept(l, "channel")) {
    expect(l, "link");
    const uint32_t c = ccn__algorithm_channel(a, rank, (uint32_t)number(l, UINT32_MAX));
    ccn__prim prim;
    expect(l, "{");
    while (!l->error && !is(l, "}")) {
      if (!ccn__prim_find(l->at, l->n, &prim)) {
        unexpected(l, "a primitive");
        return;
      }
      next(l);
      read_step(l, ccn__algorithm_step(a, rank, c, prim));
    }
    expect(l, "}");
  }
  expect(l, "}");
}

static int64_t read_order(lexer *l) {
  const ccn__order order = (ccn__order)word_of(l, ccn__order_name, CCN__ORDER_COUNT, "an order");
  uint32_t group = 0;
  if (order < CCN__ORDER_COUNT && ccn__order_numbered(order) && expect(l, "(")) {
    group = (uint32_t)number(l, UINT16_MAX + 1);
    expect(l, ")");
  }
  return ccn__order_pack(order, group);
}

static void read_merges(lexer *l, ccn__algorithm *a) {
  ccn__merge *m = CCN__NEWN(a->arena, ccn__merge, 0);
  CCN__VEC(ccn__merge) all = {0};
  do {
    for (uint32_t i = 0; i + 1 < a->nranks && !l->error; i++) {
      const uint16_t to = peer(l);
      expect(l, "+");
      *CCN__PUSH(a->arena, &all) = (ccn__merge){to, peer(l)};
    }
  } while (accept(l, "merges"));
  if (all.n != (uint64_t)a->slices * (a->nranks - 1)) unexpected(l, "merges of every slice");
  a->merges = all.n ? all.at : m;
}

static void read_source(lexer *l, ccn__algorithm *a) {
  uint16_t *source = CCN__NEWN(a->arena, uint16_t, a->nranks);
  for (uint32_t r = 0; r < a->nranks && !l->error; r++) source[r] = accept(l, "none") ? CCN__NOBODY : peer(l);
  a->source = source;
}

bool ccn__collective_find(const char *name, size_t n, ccn__op *out) {
  for (int i = 0; i < CCN__OP_COUNT; i++) {
    if (ccn__op_table[i].kind != CCN__KIND_COLLECTIVE || i == CCN__OP_SLICE || i == CCN__OP_TO_LOCAL)
      continue;
    if (strlen(ccn__op_table[i].name) != n || memcmp(ccn__op_table[i].name, name, n) != 0) continue;
    *out = (ccn__op)i;
    return true;
  }
  return false;
}

/* In the order in which they are printed. */
static ccn__algorithm *read_head(lexer *l) {
  ccn__op op = CCN__OP_ALLREDUCE;
  expect(l, "algorithm");
  const char *name = string(l);
  if (!l->error && !ccn__collective_find(l->at, l->n, &op)) unexpected(l, "a collective");
  next(l);
  expect(l, "{");
  expect(l, "ranks");
  const uint32_t n = (uint32_t)number(l, CCN__NOBODY - 1);
  if (!l->error && !n) unexpected(l, "at least one rank");
  if (l->error) return NULL;
  ccn__algorithm *a = ccn__algorithm_new(l->arena, name, op, n);
  if (ccn__algorithm_rooted(op) && expect(l, "root")) a->root = (uint32_t)number(l, n - 1);
  if ((op == CCN__OP_SHIFT || op == CCN__OP_PERMUTE) && expect(l, "source")) read_source(l, a);
  expect(l, "slices");
  a->slices = (uint32_t)number(l, UINT32_MAX);
  expect(l, "chunks");
  a->chunks = (uint32_t)number(l, UINT32_MAX);
  a->equal = accept(l, "equal");
  a->inplace = accept(l, "inplace");
  expect(l, "protocol");
  a->protocol = (uint8_t)word_of(l, ccn__protocol_name, CCN__PROTOCOLS, "simple, ll or ll128");
  expect(l, "capacity");
  a->capacity = (uint32_t)number(l, UINT32_MAX);
  if (accept(l, "bytes")) {
    a->min_bytes = (int64_t)number(l, INT64_MAX / 2);
    a->max_bytes = (int64_t)number(l, INT64_MAX / 2);
  }
  expect(l, "order");
  a->order = read_order(l);
  if (accept(l, "merges")) read_merges(l, a);
  return a;
}

ccn__algorithm *ccn__algorithm_read(ccn__arena *arena, const char *text, size_t size,
                                    const char **out_error) {
  lexer l = {.arena = arena, .p = text, .end = text + size, .line = 1};
  next(&l);
  ccn__algorithm *a = read_head(&l);
  for (uint32_t r = 0; a && r < a->nranks && !l.error; r++) {
    if (expect(&l, "rank") && number(&l, CCN__NOBODY) != r) unexpected(&l, "the ranks in order");
    read_rank(&l, a, r);
  }
  expect(&l, "}");
  if (!l.error && l.n) unexpected(&l, "the end");
  *out_error = l.error;
  return l.error ? NULL : a;
}

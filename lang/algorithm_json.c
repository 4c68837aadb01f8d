/* algorithm_json.c: algorithms as JSON: one object, the fields of the type under the words of the text
 * form.
 *
 *   {"name": "ring", "collective": "allreduce", "ranks": 2, "slices": 2, "chunks": 1, "protocol": "simple",
 *    "capacity": 2, "order": "ring", "programs": [{"scratch": [[0, "wide"]], "channels": [{"link": 0, "steps": [
 *      {"do": "send", "src": ["in", 1, 1], "from": 3, "to": 1, "flags": ["to_wide"], "after": [0, 4]}]}]}]}
 * src and dst: buffer, first chunk, stride; "count" stands beside them if it is not 1. Members that say
 * nothing (root of an allreduce, an empty list of flags) are left out. Members may come in any order.
 * SPDX-License-Identifier: Apache-2.0 */
#include "algorithm_words.h"
#include "diag.h"
#include "json.h"

static const char *const flag_name[] = {"from_wide", "to_wide", "finish", "swap"};

/* ---- printing -------------------------------------------------------------------------------- */

static void put_side(const char *key, uint8_t buf, uint32_t first, uint32_t stride, ccn__text *t) {
  ccn__text_printf(t, ", \"%s\": [\"%s\", %u, %u]", key, ccn__algo_buf_name[buf], first, stride);
}

static void put_step(const ccn__algo_step *s, ccn__text *t) {
  const uint8_t does = ccn__prim_table[s->prim].does;
  ccn__text_printf(t, "{\"do\": \"%s\"", ccn__prim_table[s->prim].name);
  if (does & CCN__DOES_SRC) put_side("src", s->src_buf, s->src, s->src_stride, t);
  if (does & CCN__DOES_DST) put_side("dst", s->dst_buf, s->dst, s->dst_stride, t);
  if (s->count != 1) ccn__text_printf(t, ", \"count\": %u", s->count);
  if (s->from != CCN__NOBODY) ccn__text_printf(t, ", \"from\": %u", s->from);
  if (s->to != CCN__NOBODY) ccn__text_printf(t, ", \"to\": %u", s->to);
  const char *between = ", \"flags\": [";
  for (uint32_t i = 0; i < CCN__COUNT(flag_name); i++) {
    if (!(s->flags >> i & 1)) continue;
    ccn__text_printf(t, "%s\"%s\"", between, flag_name[i]);
    between = ", ";
  }
  if (s->flags) ccn__text_putc(t, ']');
  if (s->after_channel != CCN__NO_CHANNEL)
    ccn__text_printf(t, ", \"after\": [%u, %u]", s->after_channel, s->after_step);
  ccn__text_putc(t, '}');
}

static void put_rank(const ccn__algo_rank *r, ccn__text *t) {
  ccn__text_puts(t, "{\"scratch\": [");
  for (uint32_t i = 0; i < r->scratch.n; i++)
    ccn__text_printf(t, "%s[%u, \"%s\"]", i ? ", " : "", r->scratch.at[i].piece,
                     ccn__algo_width_name[r->scratch.at[i].width]);
  ccn__text_puts(t, "], \"channels\": [");
  for (uint32_t c = 0; c < r->channels.n; c++) {
    const ccn__algo_channel *ch = &r->channels.at[c];
    ccn__text_printf(t, "%s{\"link\": %u, \"steps\": [", c ? ", " : "", ch->link);
    for (uint32_t i = 0; i < ch->steps.n; i++) {
      if (i) ccn__text_puts(t, ", ");
      put_step(&ch->steps.at[i], t);
    }
    ccn__text_puts(t, "]}");
  }
  ccn__text_puts(t, "]}");
}

static void put_merges(const ccn__algorithm *a, ccn__text *t) {
  ccn__text_puts(t, ", \"merges\": [");
  for (uint32_t s = 0; s < a->slices; s++) {
    ccn__text_puts(t, s ? ", [" : "[");
    for (uint32_t i = 0; i + 1 < a->nranks; i++) {
      const ccn__merge m = a->merges[(size_t)s * (a->nranks - 1) + i];
      ccn__text_printf(t, "%s[%u, %u]", i ? ", " : "", m.to, m.from);
    }
    ccn__text_putc(t, ']');
  }
  ccn__text_putc(t, ']');
}

void ccn__algorithm_print_json(const ccn__algorithm *a, ccn__text *t) {
  ccn__text_puts(t, "{\"name\": ");
  ccn__json_string(t, a->name, strlen(a->name));
  ccn__text_printf(t, ", \"collective\": \"%s\", \"ranks\": %u", ccn__op_table[a->op].name, a->nranks);
  if (ccn__algorithm_rooted(a->op)) ccn__text_printf(t, ", \"root\": %u", a->root);
  for (uint32_t r = 0; a->source && r < a->nranks; r++) {
    ccn__text_puts(t, r ? ", " : ", \"source\": [");
    if (a->source[r] == CCN__NOBODY) ccn__text_puts(t, "\"none\"");
    else ccn__text_printf(t, "%u", a->source[r]);
  }
  if (a->source) ccn__text_putc(t, ']');
  ccn__text_printf(t, ", \"slices\": %u, \"chunks\": %u", a->slices, a->chunks);
  if (a->equal) ccn__text_puts(t, ", \"equal\": 1");
  if (a->inplace) ccn__text_puts(t, ", \"inplace\": 1");
  ccn__text_printf(t, ", \"protocol\": \"%s\", \"capacity\": %u", ccn__protocol_name[a->protocol],
                   a->capacity);
  if (a->min_bytes || a->max_bytes)
    ccn__text_printf(t, ", \"min_bytes\": %lld, \"max_bytes\": %lld", (long long)a->min_bytes,
                     (long long)a->max_bytes);
  ccn__text_printf(t, ", \"order\": \"%s\"", ccn__order_name[ccn__order_of(a->order)]);
  if (ccn__order_group(a->order)) ccn__text_printf(t, ", \"group\": %u", ccn__order_group(a->order));
  if (a->merges) put_merges(a, t);
  ccn__text_puts(t, ", \"programs\": [");
  for (uint32_t r = 0; r < a->nranks; r++) {
    if (r) ccn__text_puts(t, ", ");
    put_rank(&a->rank[r], t);
  }
  ccn__text_puts(t, "]}");
}

/* ---- reading --------------------------------------------------------------------------------- */

static void wrong(ccn__json *j, const char *what) {
  if (!j->error) j->error = what;
}

static uint64_t number(ccn__json *j, uint64_t most) {
  uint64_t x = 0;
  if (ccn__json_read_natural(j, &x) && x > most) wrong(j, "a number is too large");
  return j->error ? 0 : x;
}

static uint32_t word(ccn__json *j, const char *const *names, uint32_t n) {
  const char *s;
  size_t size;
  if (!ccn__json_read_string(j, &s, &size)) return 0;
  for (uint32_t i = 0; i < n; i++)
    if (strlen(names[i]) == size && memcmp(names[i], s, size) == 0) return i;
  wrong(j, "an unknown word");
  return 0;
}

/* The next of a list that must have another. */
static bool element(ccn__json *j, bool *first) {
  if (ccn__json_element(j, first)) return true;
  wrong(j, "a list is too short");
  return false;
}

static void end(ccn__json *j, bool *first) {
  if (!j->error && ccn__json_element(j, first)) wrong(j, "a list is too long");
}

static bool is(const char *key, size_t n, const char *name) {
  return strlen(name) == n && memcmp(key, name, n) == 0;
}

static void read_pair(ccn__json *j, uint64_t most, uint32_t *x, uint32_t *y) {
  bool first = true;
  if (!ccn__json_open(j, '[')) return;
  if (element(j, &first)) *x = (uint32_t)number(j, most);
  if (element(j, &first)) *y = (uint32_t)number(j, most);
  end(j, &first);
}

static void read_side(ccn__json *j, uint8_t *buf, uint32_t *at, uint16_t *stride) {
  bool first = true;
  if (!ccn__json_open(j, '[')) return;
  if (element(j, &first)) *buf = (uint8_t)word(j, ccn__algo_buf_name, CCN__BUF_COUNT);
  if (element(j, &first)) *at = (uint32_t)number(j, UINT32_MAX);
  if (element(j, &first)) *stride = (uint16_t)number(j, UINT16_MAX);
  end(j, &first);
}

static void read_flags(ccn__json *j, ccn__algo_step *s) {
  bool first = true;
  if (!ccn__json_open(j, '[')) return;
  while (ccn__json_element(j, &first)) s->flags |= (uint8_t)(1u << word(j, flag_name, CCN__COUNT(flag_name)));
}

static void read_step(ccn__json *j, ccn__algo_step *s) {
  const char *key, *name;
  size_t n, size;
  bool first = true, named = false;
  ccn__prim prim;
  if (!ccn__json_open(j, '{')) return;
  while (ccn__json_member(j, &first, &key, &n)) {
    if (is(key, n, "do")) {
      named = ccn__json_read_string(j, &name, &size) && ccn__prim_find(name, size, &prim);
      if (named) s->prim = (uint8_t)prim;
    } else if (is(key, n, "src")) read_side(j, &s->src_buf, &s->src, &s->src_stride);
    else if (is(key, n, "dst")) read_side(j, &s->dst_buf, &s->dst, &s->dst_stride);
    else if (is(key, n, "count")) s->count = (uint32_t)number(j, UINT32_MAX);
    else if (is(key, n, "from")) s->from = (uint16_t)number(j, CCN__NOBODY - 1);
    else if (is(key, n, "to")) s->to = (uint16_t)number(j, CCN__NOBODY - 1);
    else if (is(key, n, "flags")) read_flags(j, s);
    else if (is(key, n, "after")) read_pair(j, UINT32_MAX - 1, &s->after_channel, &s->after_step);
    else wrong(j, "an unknown member of a step");
  }
  if (!named) wrong(j, "a step has no known `do`");
}

static void read_scratch(ccn__json *j, ccn__algorithm *a, uint32_t rank) {
  bool first = true;
  if (!ccn__json_open(j, '[')) return;
  while (ccn__json_element(j, &first)) {
    bool inner = true;
    uint32_t piece = 0, width = 0;
    if (!ccn__json_open(j, '[')) return;
    if (element(j, &inner)) piece = (uint32_t)number(j, UINT32_MAX);
    if (element(j, &inner)) width = word(j, ccn__algo_width_name, CCN__WIDTHS);
    end(j, &inner);
    ccn__algorithm_scratch(a, rank, piece, (ccn__algo_width)width);
  }
}

static void read_steps(ccn__json *j, ccn__algorithm *a, uint32_t rank, uint32_t channel) {
  bool first = true;
  if (!ccn__json_open(j, '[')) return;
  while (ccn__json_element(j, &first)) read_step(j, ccn__algorithm_step(a, rank, channel, CCN__PRIM_NOP));
}

static void read_channel(ccn__json *j, ccn__algorithm *a, uint32_t rank) {
  const uint32_t c = ccn__algorithm_channel(a, rank, 0);
  const char *key;
  size_t n;
  bool first = true;
  if (!ccn__json_open(j, '{')) return;
  while (ccn__json_member(j, &first, &key, &n)) {
    if (is(key, n, "link")) a->rank[rank].channels.at[c].link = (uint32_t)number(j, UINT32_MAX);
    else if (is(key, n, "steps")) read_steps(j, a, rank, c);
    else wrong(j, "an unknown member of a channel");
  }
}

static void read_rank(ccn__json *j, ccn__algorithm *a, uint32_t rank) {
  const char *key;
  size_t n;
  bool first = true;
  if (!ccn__json_open(j, '{')) return;
  while (ccn__json_member(j, &first, &key, &n)) {
    bool inner = true;
    if (is(key, n, "scratch")) read_scratch(j, a, rank);
    else if (!is(key, n, "channels")) wrong(j, "an unknown member of a rank");
    else if (ccn__json_open(j, '['))
      while (ccn__json_element(j, &inner)) read_channel(j, a, rank);
  }
}

static void read_programs(ccn__json *j, ccn__algorithm *a) {
  bool first = true;
  if (!ccn__json_open(j, '[')) return;
  for (uint32_t r = 0; r < a->nranks; r++)
    if (element(j, &first)) read_rank(j, a, r);
  end(j, &first);
}

static void read_source(ccn__json *j, ccn__algorithm *a) {
  uint16_t *source = CCN__NEWN(a->arena, uint16_t, a->nranks);
  static const char *const none[] = {"none"};
  bool first = true;
  if (!ccn__json_open(j, '[')) return;
  for (uint32_t r = 0; r < a->nranks && element(j, &first); r++) {
    const char *p = j->p;
    while (p < j->end && (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r')) p++;
    if (p < j->end && *p == '"') source[r] = (uint16_t)(word(j, none, 1) + CCN__NOBODY);
    else source[r] = (uint16_t)number(j, CCN__NOBODY - 1);
  }
  end(j, &first);
  a->source = source;
}

static void read_merges(ccn__json *j, ccn__algorithm *a) {
  CCN__VEC(ccn__merge) all = {0};
  bool first = true;
  if (!ccn__json_open(j, '[')) return;
  for (uint32_t s = 0; s < a->slices && element(j, &first); s++) {
    bool inner = true;
    if (!ccn__json_open(j, '[')) return;
    for (uint32_t i = 0; i + 1 < a->nranks && element(j, &inner); i++) {
      uint32_t to = 0, from = 0;
      read_pair(j, CCN__NOBODY - 1, &to, &from);
      *CCN__PUSH(a->arena, &all) = (ccn__merge){(uint16_t)to, (uint16_t)from};
    }
    end(j, &inner);
  }
  end(j, &first);
  a->merges = all.n ? all.at : CCN__NEWN(a->arena, ccn__merge, 1);
}

/* Where the lists begin, which need to know how many ranks there are. */
typedef struct lists {
  ccn__json source, merges, programs;
} lists;

static void skip_list(ccn__json *j, ccn__json *where) {
  *where = *j;
  ccn__json_skip(j);
}

static void read_fields(ccn__json *j, ccn__algorithm *a, lists *later) {
  const char *key, *s;
  size_t n, size;
  uint32_t group = 0;
  bool first = true;
  if (!ccn__json_open(j, '{')) return;
  while (ccn__json_member(j, &first, &key, &n)) {
    if (is(key, n, "name")) {
      if (ccn__json_read_string(j, &s, &size)) a->name = s;
    } else if (is(key, n, "collective")) {
      if (ccn__json_read_string(j, &s, &size) && !ccn__collective_find(s, size, &a->op))
        wrong(j, "an unknown collective");
    } else if (is(key, n, "ranks")) a->nranks = (uint32_t)number(j, CCN__NOBODY - 1);
    else if (is(key, n, "root")) a->root = (uint32_t)number(j, CCN__NOBODY - 1);
    else if (is(key, n, "slices")) a->slices = (uint32_t)number(j, UINT32_MAX);
    else if (is(key, n, "chunks")) a->chunks = (uint32_t)number(j, UINT32_MAX);
    else if (is(key, n, "equal")) a->equal = number(j, 1);
    else if (is(key, n, "inplace")) a->inplace = number(j, 1);
    else if (is(key, n, "protocol")) a->protocol = (uint8_t)word(j, ccn__protocol_name, CCN__PROTOCOLS);
    else if (is(key, n, "capacity")) a->capacity = (uint32_t)number(j, UINT32_MAX);
    else if (is(key, n, "min_bytes")) a->min_bytes = (int64_t)number(j, INT64_MAX);
    else if (is(key, n, "max_bytes")) a->max_bytes = (int64_t)number(j, INT64_MAX);
    else if (is(key, n, "order")) a->order = word(j, ccn__order_name, CCN__ORDER_COUNT);
    else if (is(key, n, "group")) group = (uint32_t)number(j, UINT16_MAX + 1);
    else if (is(key, n, "source")) skip_list(j, &later->source);
    else if (is(key, n, "merges")) skip_list(j, &later->merges);
    else if (is(key, n, "programs")) skip_list(j, &later->programs);
    else wrong(j, "an unknown member of an algorithm");
  }
  a->order = ccn__order_pack((ccn__order)a->order, group);
}

ccn__algorithm *ccn__algorithm_read_json(ccn__arena *arena, const char *text, size_t size,
                                         const char **out_error) {
  ccn__json j;
  lists later = {0};
  ccn__algorithm *a = ccn__algorithm_new(arena, "", CCN__OP_COUNT, 1);
  ccn__json_init(&j, arena, text, size);
  read_fields(&j, a, &later);
  if (!j.error && !ccn__json_at_end(&j)) wrong(&j, "something follows the algorithm");
  if (a->op == CCN__OP_COUNT || !a->nranks || !later.programs.p)
    wrong(&j, "collective, ranks or programs are missing");
  const bool moves_values = a->op == CCN__OP_SHIFT || a->op == CCN__OP_PERMUTE;
  if (moves_values != (later.source.p != NULL)) wrong(&j, "a source goes with shift and permute");
  *out_error = j.error;
  if (j.error) return NULL;
  a->rank = CCN__NEWN(arena, ccn__algo_rank, a->nranks);
  if (later.source.p) read_source(&later.source, a);
  if (later.merges.p) read_merges(&later.merges, a);
  read_programs(&later.programs, a);
  *out_error = later.source.error   ? later.source.error
               : later.merges.error ? later.merges.error
                                    : later.programs.error;
  return *out_error ? NULL : a;
}

/* algorithm_picture.c: an algorithm as a table for people: a column a rank, for each channel a row a step.
 * SPDX-License-Identifier: Apache-2.0 */
#include "algorithm.h"

/* in3, in0-3, in0-6/2 */
static void put_range(uint8_t buf, uint32_t first, uint32_t count, uint32_t stride, ccn__text *t) {
  static const char *const letter[CCN__BUF_COUNT] = {"in", "out", "s"};
  ccn__text_printf(t, "%s%u", letter[buf], first);
  if (count > 1) ccn__text_printf(t, "-%u", first + (count - 1) * stride);
  if (count > 1 && stride > 1) ccn__text_printf(t, "/%u", stride);
}

/* What arrives, `>` what becomes of it: "3> +in2 >1" receives from 3, adds in2, sends to 1. */
static void put_cell(const ccn__algo_step *s, ccn__text *t) {
  const uint8_t does = ccn__prim_table[s->prim].does;
  const bool recv = does & CCN__DOES_RECV, send = does & CCN__DOES_SEND, dst = does & CCN__DOES_DST;
  if (!(does & (CCN__DOES_SRC | CCN__DOES_DST))) ccn__text_puts(t, ccn__prim_table[s->prim].name);
  if (recv) ccn__text_printf(t, "%u> ", s->from);
  if (dst) {
    if (does & CCN__DOES_ACC) ccn__text_putc(t, '+');
    put_range(s->dst_buf, s->dst, s->count, s->dst_stride, t);
    if (!send && s->to != CCN__NOBODY) ccn__text_printf(t, "@%u", s->to);
    if (does & CCN__DOES_SRC) ccn__text_putc(t, '=');
  }
  if (does & CCN__DOES_SRC) {
    if (recv) ccn__text_putc(t, '+');
    put_range(s->src_buf, s->src, s->count, s->src_stride, t);
    if (!recv && s->from != CCN__NOBODY) ccn__text_printf(t, "@%u", s->from);
  }
  if (send) ccn__text_printf(t, " >%u", s->to);
  if (s->after_channel != CCN__NO_CHANNEL) ccn__text_printf(t, " ;%u.%u", s->after_channel, s->after_step);
}

static uint32_t most_channels(const ccn__algorithm *a) {
  uint32_t most = 0;
  for (uint32_t r = 0; r < a->nranks; r++)
    if (a->rank[r].channels.n > most) most = a->rank[r].channels.n;
  return most;
}

static const ccn__algo_channel *channel(const ccn__algorithm *a, uint32_t rank, uint32_t c) {
  return c < a->rank[rank].channels.n ? &a->rank[rank].channels.at[c] : NULL;
}

static void end_row(ccn__text *out) {
  while (out->n && out->at[out->n - 1] == ' ') out->n--;
  ccn__text_putc(out, '\n');
}

static void picture_channel(const ccn__algorithm *a, uint32_t c, ccn__text *cell, ccn__text *out) {
  uint32_t rows = 0;
  size_t *width = CCN__NEWN(cell->arena, size_t, a->nranks);
  for (uint32_t r = 0; r < a->nranks; r++) {
    const ccn__algo_channel *ch = channel(a, r, c);
    width[r] = 8;
    if (ch && ch->steps.n > rows) rows = ch->steps.n;
    for (uint32_t i = 0; ch && i < ch->steps.n; i++) {
      cell->n = 0;
      put_cell(&ch->steps.at[i], cell);
      if (cell->n > width[r]) width[r] = cell->n;
    }
  }
  ccn__text_printf(out, "channel %-3u", c);
  for (uint32_t r = 0; r < a->nranks; r++) ccn__text_printf(out, "  rank %-*u", (int)width[r] - 5, r);
  end_row(out);
  for (uint32_t i = 0; i < rows; i++) {
    ccn__text_printf(out, "%11u", i);
    for (uint32_t r = 0; r < a->nranks; r++) {
      const ccn__algo_channel *ch = channel(a, r, c);
      cell->n = 0;
      ccn__text_puts(cell, "");
      if (ch && i < ch->steps.n) put_cell(&ch->steps.at[i], cell);
      ccn__text_printf(out, "  %-*.*s", (int)width[r], (int)cell->n, cell->at);
    }
    end_row(out);
  }
}

void ccn__algorithm_picture(const ccn__algorithm *a, ccn__text *out) {
  ccn__text cell;
  ccn__text_init(&cell, a->arena);
  ccn__text_puts(&cell, " ");
  const uint32_t n = most_channels(a);
  for (uint32_t c = 0; c < n; c++) picture_channel(a, c, &cell, out);
}

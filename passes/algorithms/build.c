/* build.c: steps from a few words, and sums in a given order, for the generators beside it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "algorithms.h"

ccn__algo_step *ccn__build(ccn__builder *b, ccn__prim prim, uint8_t flags) {
  ccn__algo_step *s = ccn__algorithm_step(b->a, b->rank, b->channel, prim);
  s->flags = flags;
  if (ccn__prim_table[prim].does) s->count = b->count;
  return s;
}

static void read_from(ccn__algo_step *s, ccn__at src) {
  s->src_buf = (uint8_t)src.buf;
  s->src = src.first;
  s->src_stride = s->count > 1 ? (uint16_t)src.stride : 1;
}

static void write_to(ccn__algo_step *s, ccn__at dst) {
  s->dst_buf = (uint8_t)dst.buf;
  s->dst = dst.first;
  s->dst_stride = s->count > 1 ? (uint16_t)dst.stride : 1;
}

ccn__algo_step *ccn__build_send(ccn__builder *b, ccn__at src, uint32_t to, uint8_t flags) {
  ccn__algo_step *s = ccn__build(b, CCN__PRIM_SEND, flags);
  read_from(s, src);
  s->to = (uint16_t)to;
  return s;
}

ccn__algo_step *ccn__build_recv(ccn__builder *b, ccn__at dst, uint32_t from, uint8_t flags) {
  ccn__algo_step *s = ccn__build(b, CCN__PRIM_RECV, flags);
  write_to(s, dst);
  s->from = (uint16_t)from;
  return s;
}

ccn__algo_step *ccn__build_both(ccn__builder *b, ccn__prim prim, ccn__at dst, ccn__at src, uint8_t flags) {
  ccn__algo_step *s = ccn__build(b, prim, flags);
  write_to(s, dst);
  read_from(s, src);
  return s;
}

/* Item i is added to what came before it, at `left`; the first two are one step. */
static void add_item(ccn__builder *b, const ccn__row *w, uint32_t i) {
  const uint8_t wide = w->wide ? CCN__ALGO_FROM_WIDE : 0;
  const bool last = i + 1 == w->items;
  const uint8_t end = last && w->finish ? CCN__ALGO_FINISH : 0;
  const ccn__at dst = last ? w->dst : w->sum;
  if (i == w->own && i > 1) {
    ccn__build_both(b, CCN__PRIM_REDUCE, w->sum, w->src, 0);
    const bool is_there = w->dst.buf == w->sum.buf && w->dst.first == w->sum.first && !end;
    if (last && !is_there) ccn__build_both(b, CCN__PRIM_COPY, w->dst, w->sum, end);
    return;
  }
  if (!last && i > 1) {
    ccn__algo_step *s = ccn__build_recv(b, w->sum, w->peer[i], wide);
    s->prim = CCN__PRIM_RECV_REDUCE;
    return;
  }
  const bool own_first = i == 1 && w->own == 0, own_second = i == 1 && w->own == 1;
  const ccn__at left = i > 1 ? w->sum : own_first || own_second ? w->src : w->first;
  if (i == 1 && !own_first && !own_second) ccn__build_recv(b, w->first, w->peer[0], wide);
  ccn__algo_step *s = ccn__build_both(b, CCN__PRIM_RECV_REDUCE_COPY, dst, left,
                                      (uint8_t)(wide | end | (own_second ? 0 : CCN__ALGO_SWAP)));
  s->from = w->peer[own_second ? 0 : i];
}

void ccn__build_row(ccn__builder *b, const ccn__row *w) {
  if (w->items == 1) {
    ccn__build_both(b, CCN__PRIM_COPY, w->dst, w->src, w->finish ? CCN__ALGO_FINISH : 0);
    return;
  }
  for (uint32_t i = 1; i < w->items; i++) add_item(b, w, i);
}

/* agenda.c: see agenda.h. SPDX-License-Identifier: Apache-2.0 */
#include "agenda.h"

static bool earlier(const ccn__due *x, const ccn__due *y) {
  if (x->at < y->at || x->at > y->at) return x->at < y->at;
  return x->who != y->who ? x->who < y->who : x->part < y->part;
}

void ccn__agenda_add(ccn__arena *a, ccn__agenda *g, ccn__due x) {
  uint32_t i = g->n;
  *CCN__PUSH(a, g) = x;
  for (; i && earlier(&x, &g->at[(i - 1) / 2]); i = (i - 1) / 2) g->at[i] = g->at[(i - 1) / 2];
  g->at[i] = x;
}

ccn__due ccn__agenda_take(ccn__agenda *g) {
  const ccn__due first = g->at[0], last = g->at[--g->n];
  uint32_t i = 0;
  for (uint32_t child = 1; child < g->n; child = 2 * i + 1) {
    if (child + 1 < g->n && earlier(&g->at[child + 1], &g->at[child])) child++;
    if (!earlier(&g->at[child], &last)) break;
    g->at[i] = g->at[child];
    i = child;
  }
  g->at[i] = last;
  return first;
}

/* cost_parts.c: how many parts of a sum tree a rank holds of a value that owes in parts (language reference,
 * section 9): the complete nodes that cover what the rank has of the reduced elements.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cost_impl.h"

typedef struct reduced {
  const ccn__plan *p;
  const ccn__node *n;
  ccn__shape x;
  bool dim[CCN__MAX_RANK];
  uint8_t cut; /* axes that cut a reduced dim */
} reduced;

static bool is_first(const reduced *q, uint32_t rank) {
  for (uint32_t a = 0; a < q->p->g->mesh.naxes; a++)
    if ((q->cut >> a & 1) && ccn__mesh_coord(&q->p->g->mesh, rank, a)) return false;
  return true;
}

static int64_t cover(int64_t start, int64_t length) {
  ccn__tree_node node[CCN__TREE_MAX];
  return length < 1 ? 0 : ccn__tree_cover((uint64_t)start, (uint64_t)(start + length), node);
}

/* Of each tensor of a bundle by itself. */
static int64_t per_tensor(const reduced *q, const ccn__box *b, uint32_t rank) {
  const ccn__members *ms = q->p->bundle[q->x.bundle_id];
  const int64_t end = b->start[0] + b->extent[0];
  int64_t parts = 0;
  for (uint32_t k = 0; k < ms->k; k++) {
    const struct ccn__member *m = &ms->at[k];
    const int64_t from = b->start[0] > m->start ? b->start[0] : m->start;
    const int64_t to = end < m->start + m->elements ? end : m->start + m->elements;
    parts += m->elements ? cover(from - m->start, to - from) : is_first(q, rank);
  }
  return parts;
}

/* Behind the last reduced dim that is cut all is one run of the tree's index; the others before it step. */
static int64_t of_dims(const reduced *q, const ccn__box *b, uint32_t rank) {
  int64_t weight[CCN__MAX_RANK] = {0}, extent = 1, at[CCN__MAX_RANK] = {0}, parts = 0;
  uint32_t dim[CCN__MAX_RANK], n = 0;
  for (uint32_t d = 0; d < q->x.rank; d++)
    if (q->dim[d]) dim[n++] = d;
  for (uint32_t i = n; i-- > 0;) {
    weight[i] = extent;
    extent *= q->x.dim[dim[i]];
  }
  if (extent == 0) return is_first(q, rank);
  if (b->elements == 0) return 0;
  uint32_t run = n;
  while (run > 0 && (run == n || b->extent[dim[run]] == q->x.dim[dim[run]])) run--;
  const int64_t first = n ? b->start[dim[run]] * weight[run] : 0;
  const int64_t length = n ? b->extent[dim[run]] * weight[run] : 1;
  for (;;) {
    int64_t start = first;
    for (uint32_t i = 0; i < run; i++) start += (b->start[dim[i]] + at[i]) * weight[i];
    parts += cover(start, length);
    uint32_t i = run;
    while (i > 0 && ++at[i - 1] == b->extent[dim[i - 1]]) at[--i] = 0;
    if (i == 0) return parts;
  }
}

int64_t ccn__cost_parts(const ccn__plan *p, ccn__id i, uint32_t rank, int64_t *out_width) {
  const ccn__graph *g = p->g;
  uint32_t merged = 0;
  ccn__box b;
  ccn__box_of(&g->mesh, rank, p->shape[i].rank, p->shape[i].dim, p->shape[i].place, &b);
  *out_width = b.elements;
  while (ccn__op_table[g->nodes.at[i].op].kind != CCN__KIND_REDUCE && g->nodes.at[i].nin) {
    const ccn__node *n = &g->nodes.at[i];
    if (ccn__op_table[n->op].kind == CCN__KIND_COLLECTIVE)
      merged |= (uint32_t)ccn__attr_int(n->attrs, CCN__A_OVER, 0);
    i = n->in[n->op == CCN__OP_UPDATE];
  }
  reduced q = {.p = p, .n = &g->nodes.at[i]};
  if (ccn__op_table[q.n->op].kind != CCN__KIND_REDUCE) return 1;
  q.x = p->shape[q.n->in[0]];
  const ccn__attr *dims = ccn__attr_find(q.n->attrs, CCN__A_DIMS);
  for (uint32_t d = 0; d < q.x.rank; d++) q.dim[d] = !dims;
  for (uint32_t k = 0; dims && k < dims->n; k++) q.dim[dims->ints[k]] = true;
  for (uint32_t a = 0; a < g->mesh.naxes; a++) {
    if (merged >> a & 1) q.x.place[a] = (ccn__cplace){.kind = CCN__REPLICATED, .unit = 1};
    if (q.x.place[a].kind == CCN__SLICED && q.dim[q.x.place[a].dim]) q.cut |= (uint8_t)(1u << a);
  }
  ccn__box_of(&g->mesh, rank, q.x.rank, q.x.dim, q.x.place, &b);
  if (q.x.bundle == CCN__BUNDLE_TENSORS && ccn__attr_int(q.n->attrs, CCN__A_PER, 0)) {
    *out_width = 1;
    return per_tensor(&q, &b, rank);
  }
  return of_dims(&q, &b, rank);
}

/* plan.c: from a graph with sizes to a plan: shapes, groups of nodes, steps, buffers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "plan_impl.h"

static int64_t extent(const ccn__planner *s, const ccn__dim *d) {
  int64_t value = 0;
  (void)ccn__dim_eval(d, s->p->sym, &value); /* checked when the sizes were bound */
  return value;
}

static void shape_of(const ccn__planner *s, const ccn__type *t, ccn__shape *out) {
  const ccn__mesh *m = &s->g->mesh;
  out->dtype = t->dtype;
  out->rank = t->rank;
  out->bundle = t->bundle;
  out->bundle_id = t->bundle_id;
  for (uint32_t d = 0; d < t->rank; d++) out->dim[d] = extent(s, t->dim[d]);
  for (uint32_t a = 0; a < m->naxes; a++) {
    const ccn__place *p = &t->place[a];
    ccn__cplace *c = &out->place[a];
    *c = (ccn__cplace){.kind = p->kind, .op = p->op, .dim = p->dim, .unit = 1};
    if (p->kind == CCN__AT) c->coord = (p->coord % m->size[a] + m->size[a]) % m->size[a];
    if (p->unit) c->unit = extent(s, p->unit);
  }
}

static bool cut_by_reduction(const ccn__planner *s, const ccn__node *n) {
  const ccn__type *x = s->g->nodes.at[n->in[0]].type;
  for (uint32_t a = 0; a < s->g->mesh.naxes; a++)
    if (n->type->place[a].kind == CCN__PARTIAL && x->place[a].kind == CCN__SLICED) return true;
  return false;
}

static bool owes(const ccn__type *t) {
  for (uint32_t a = 0; a < t->naxes; a++)
    if (t->place[a].kind == CCN__PARTIAL) return true;
  return false;
}

/* Whether the value is kept as parts of the sum tree (language reference, section 9). */
static bool in_parts(const ccn__planner *s, const ccn__node *n) {
  if (!owes(n->type)) return false;
  switch ((ccn__op)n->op) {
  case CCN__OP_RESHAPE:
  case CCN__OP_TRANSPOSE:
  case CCN__OP_INDEX:
  case CCN__OP_ENTER:
  case CCN__OP_ALLREDUCE:
  case CCN__OP_REDUCESCATTER:
  case CCN__OP_REDUCE: return s->parts[n->in[0]];
  case CCN__OP_UPDATE: return s->parts[n->in[1]];
  case CCN__OP_CARRY:
  case CCN__OP_RESULT: return true; /* perhaps: it is what the block before made */
  default: return ccn__op_table[n->op].kind == CCN__KIND_REDUCE && cut_by_reduction(s, n);
  }
}

int64_t ccn__plan_bytes(const ccn__plan *p, ccn__id node, uint32_t rank) {
  const ccn__shape *h = &p->shape[node];
  const ccn__mesh *m = &p->g->mesh;
  ccn__box b;
  if (!ccn__rank_has(m, rank, h->place)) return 0;
  ccn__box_of(m, rank, h->rank, h->dim, h->place, &b);
  return b.elements * (int64_t)ccn__dtype_size((ccn__dtype)h->dtype);
}

bool ccn__plan_does(const ccn__plan *p, const ccn__step *s, uint32_t rank) {
  const ccn__graph *g = p->g;
  for (uint32_t r = s->region; r; r = g->nodes.at[g->regions.at[r].owner].region) {
    const ccn__node *n = &g->nodes.at[g->regions.at[r].owner];
    if (n->op != CCN__OP_ON) continue;
    uint32_t axis = (uint32_t)ccn__attr_int(n->attrs, CCN__A_AXIS, 0);
    int64_t size = g->mesh.size[axis], at = ccn__attr_int(n->attrs, CCN__A_COORD, 0);
    if (ccn__mesh_coord(&g->mesh, rank, axis) != (uint32_t)((at % size + size) % size)) return false;
  }
  return true;
}

static void shapes(ccn__planner *s) {
  const ccn__graph *g = s->g;
  for (ccn__id i = 0; i < g->nodes.n; i++) {
    const ccn__node *n = &g->nodes.at[i];
    if (n->type) shape_of(s, n->type, &s->shape[i]);
    s->parts[i] = n->type && in_parts(s, n);
    s->root[i] = i;
    if (n->op == CCN__OP_UPDATE) s->root[i] = s->root[n->in[1]];
    if (n->op == CCN__OP_RESHAPE || n->op == CCN__OP_ENTER ||
        (n->op == CCN__OP_TO_LOCAL && !s->parts[n->in[0]]))
      s->root[i] = s->root[n->in[0]];
  }
}

ccn__plan *ccn__plan_make(ccn__arena *a, const ccn__graph *g, const int64_t *sym,
                          ccn__members *const *bundle) {
  ccn__plan *p = CCN__NEW(a, ccn__plan);
  const uint32_t n = g->nodes.n + 1;
  ccn__planner s = {.p = p, .arena = a, .g = g, .bundle = bundle};
  p->arena = a;
  p->g = g;
  p->sym = sym;
  p->bundle = bundle;
  p->world = ccn__mesh_world(&g->mesh);
  p->label = g->name;
  p->shape = s.shape = CCN__NEWN(a, ccn__shape, n);
  p->buffer = CCN__NEWN(a, uint32_t, n);
  s.unit = CCN__NEWN(a, uint32_t, n);
  s.unit_next = CCN__NEWN(a, uint32_t, n);
  s.unit_last = CCN__NEWN(a, uint32_t, n);
  s.group_of = CCN__NEWN(a, uint32_t, n);
  s.root = CCN__NEWN(a, ccn__id, n);
  s.parts = CCN__NEWN(a, bool, n);
  s.needed = CCN__NEWN(a, bool, n);
  shapes(&s);
  ccn__plan_groups(&s);
  ccn__plan_needed(&s);
  ccn__plan_steps(&s);
  ccn__plan_buffers(&s);
  return p;
}

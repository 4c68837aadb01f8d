/* verify_blocks.c: what holds for `on` and `repeat`.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify.h"

/* ---- blocks -------------------------------------------------------------------------------------------- */

const ccn__attr *ccn__verify_number_of(const ccn__node *n) { return ccn__attr_find(n->attrs, CCN__A_NUMBER); }

/* A carried value inside the loop: number k of the repeat whose block it stands in. */
bool ccn__verify_carry(ccn__verifier *v) {
  const ccn__node *n = ccn__verify_node_at(v, v->id);
  ccn__id owner = v->g->regions.at[n->region].owner;
  if (!n->region || ccn__verify_node_at(v, owner)->op != CCN__OP_REPEAT)
    return ccn__verify_fault(v, "a carry stands in the block of a repeat");
  const ccn__node *loop = ccn__verify_node_at(v, owner);
  int64_t k = ccn__verify_number_of(n)->i;
  if (k >= loop->nin) return ccn__verify_fault(v, "the repeat has no carried value %lld", (long long)k);
  if (v->id != owner + 1 + (uint32_t)k)
    return ccn__verify_fault(v, "carries stand first in their block, in order");
  return ccn__verify_same_type(v, ccn__verify_node_at(v, loop->in[k])->type, "the carried value's");
}

bool ccn__verify_result(ccn__verifier *v) {
  const ccn__node *n = ccn__verify_node_at(v, v->id), *loop = ccn__verify_node_at(v, n->in[0]);
  if (loop->op != CCN__OP_REPEAT) return ccn__verify_fault(v, "a result belongs to a repeat");
  int64_t k = ccn__verify_number_of(n)->i;
  if (k >= loop->nin) return ccn__verify_fault(v, "the repeat has no carried value %lld", (long long)k);
  return ccn__verify_same_type(v, ccn__verify_node_at(v, loop->in[k])->type, "the carried value's");
}

bool ccn__verify_inside_repeat(const ccn__verifier *v, uint32_t region) {
  for (; region; region = ccn__verify_region_around(v, region))
    if (ccn__verify_node_at(v, v->g->regions.at[region].owner)->op == CCN__OP_REPEAT) return true;
  return false;
}

/* Every block `on` around the node: what is computed there exists at its coordinate, or is the same
 * everywhere (literals, makers, replicated values, until one of the coordinate meets them) and does not
 * leave, see leaves_on. rank() is local before it enters. */
bool ccn__verify_inside_on(ccn__verifier *v) {
  const ccn__node *n = ccn__verify_node_at(v, v->id);
  for (uint32_t r = n->region; r; r = ccn__verify_region_around(v, r)) {
    const ccn__node *on = ccn__verify_node_at(v, v->g->regions.at[r].owner);
    if (on->op != CCN__OP_ON) continue;
    uint32_t axis = (uint32_t)ccn__attr_int(on->attrs, CCN__A_AXIS, 0);
    int64_t coord = ccn__attr_int(on->attrs, CCN__A_COORD, 0);
    const char *name = v->g->mesh.name[axis];
    if (ccn__attr_int(n->attrs, CCN__A_OVER, 0) >> axis & 1)
      return ccn__verify_fault(v, "CCN0306: a collective over %s inside `on` %s", name, name);
    if (ccn__verify_has_block(n->op) || ccn__verify_is_maker(n->op)) continue;
    const ccn__place *p = &n->type->place[axis];
    bool same = p->kind == CCN__REPLICATED && n->op != CCN__OP_UPDATE;
    if (!same && !(p->kind == CCN__AT && p->coord == coord))
      return ccn__verify_fault(v, "its type is not at(%lld) over %s, where its block is", (long long)coord,
                               name);
  }
  return true;
}

/* What leaves an `on` block exists at its coordinate. */
bool ccn__verify_leaves_on(ccn__verifier *v, ccn__id x, uint32_t to) {
  const ccn__node *n = ccn__verify_node_at(v, x);
  for (uint32_t r = n->region; r && !ccn__verify_encloses(v, r, to); r = ccn__verify_region_around(v, r)) {
    const ccn__node *on = ccn__verify_node_at(v, v->g->regions.at[r].owner);
    int64_t axis = ccn__attr_int(on->attrs, CCN__A_AXIS, 0);
    if (on->op == CCN__OP_ON && n->type->place[axis].kind != CCN__AT)
      return ccn__verify_fail(v,
                              "%%%u (%s): it is used behind its block, but its type is not at(%lld) over %s",
                              (unsigned)x, ccn__verify_node_name(v, x),
                              (long long)ccn__attr_int(on->attrs, CCN__A_COORD, 0), v->g->mesh.name[axis]);
  }
  return true;
}

bool ccn__verify_enter(ccn__verifier *v) {
  const ccn__node *n = ccn__verify_node_at(v, v->id);
  for (uint32_t r = n->region; r; r = ccn__verify_region_around(v, r)) {
    const ccn__node *on = ccn__verify_node_at(v, v->g->regions.at[r].owner);
    if (on->op != CCN__OP_ON ||
        ccn__attr_int(on->attrs, CCN__A_AXIS, 0) != ccn__attr_int(n->attrs, CCN__A_AXIS, 0))
      continue;
    if (ccn__attr_int(on->attrs, CCN__A_COORD, 0) == ccn__attr_int(n->attrs, CCN__A_COORD, 0))
      return ccn__verify_inferred(v);
    return ccn__verify_fault(v, "it reads at another coordinate than its block");
  }
  return ccn__verify_fault(v, "it stands outside a block of that axis");
}

bool ccn__verify_on(ccn__verifier *v) {
  const ccn__node *n = ccn__verify_node_at(v, v->id);
  uint32_t axis = (uint32_t)ccn__attr_int(n->attrs, CCN__A_AXIS, 0);
  if (!ccn__verify_is_coord(v, ccn__attr_int(n->attrs, CCN__A_COORD, 0), axis))
    return ccn__verify_fault(v, "CCN0308: %s has no such coordinate", v->g->mesh.name[axis]);
  return true;
}

/* The block of a repeat gives each carried value its next one, of the same type. */
bool ccn__verify_yields(ccn__verifier *v, const ccn__region *r) {
  const ccn__node *loop = ccn__verify_node_at(v, r->owner);
  uint32_t body = loop->body, ncarries = 0;
  if (loop->op != CCN__OP_REPEAT) return true;
  v->id = r->owner;
  while (r->owner + 1 + ncarries < v->g->nodes.n) {
    const ccn__node *c = ccn__verify_node_at(v, r->owner + 1 + ncarries);
    if (c->op != CCN__OP_CARRY || c->region != body) break;
    ncarries++;
  }
  if (ncarries != loop->nin || r->nyield != loop->nin)
    return ccn__verify_fault(v, "it has %u carried values, its block %u carries and %u yields",
                             (unsigned)loop->nin, (unsigned)ncarries, (unsigned)r->nyield);
  for (uint32_t k = 0; k < r->nyield; k++) {
    ccn__id y = r->yield[k];
    if (y >= v->g->nodes.n || ccn__verify_has_block(ccn__verify_node_at(v, y)->op) ||
        !ccn__verify_visible(v, y, body))
      return ccn__verify_fault(v, "what it yields for carried value %u is no value of its block",
                               (unsigned)k);
    const ccn__type *got = ccn__verify_node_at(v, y)->type, *want = ccn__verify_node_at(v, loop->in[k])->type;
    if (!ccn__type_equal(got, want))
      return ccn__verify_fault(v, "carried value %u becomes %s from %s", (unsigned)k,
                               ccn__verify_type_text(v, got), ccn__verify_type_text(v, want));
    if (!ccn__verify_leaves_on(v, y, body)) return false;
  }
  return true;
}

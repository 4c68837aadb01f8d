/* verify.c: checks everything that a graph promises (graph.h), so that whoever reads graphs need not.
 *
 * In this order: mesh and symbols, regions, then each node's place, operands, attributes and type, what
 * holds for blocks, parameters and updates, outputs, constraints. The first thing that is wrong is the
 * answer. Nothing here trusts anything that was not checked before: graphs come from text, too.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify.h"

#include <stdio.h>

/* Says what is wrong, of the whole graph. */
bool ccn__verify_fail(ccn__verifier *v, const char *fmt, ...) {
  char s[512];
  va_list args;
  va_start(args, fmt);
  vsnprintf(s, sizeof s, fmt, args);
  va_end(args);
  v->text = ccn__arena_printf(v->g->arena, "%s", s);
  return false;
}

const char *ccn__verify_node_name(const ccn__verifier *v, ccn__id id) {
  const ccn__node *n = &v->g->nodes.at[id];
  if (n->name) return n->name;
  if (n->autoname) return n->autoname;
  return n->op < CCN__OP_COUNT ? ccn__op_table[n->op].name : "?";
}

/* Says what is wrong, of the node that is looked at. */
bool ccn__verify_fault(ccn__verifier *v, const char *fmt, ...) {
  char s[512];
  va_list args;
  va_start(args, fmt);
  vsnprintf(s, sizeof s, fmt, args);
  va_end(args);
  v->text =
    ccn__arena_printf(v->g->arena, "%%%u (%s): %s", (unsigned)v->id, ccn__verify_node_name(v, v->id), s);
  return false;
}

const ccn__node *ccn__verify_node_at(const ccn__verifier *v, ccn__id id) { return &v->g->nodes.at[id]; }

/* ---- mesh and symbols ---------------------------------------------------------------------------------- */

static bool mesh_and_symbols(ccn__verifier *v) {
  const ccn__graph *g = v->g;
  const ccn__mesh *m = &g->mesh;
  if (m->naxes > CCN__MAX_AXES) return ccn__verify_fail(v, "the mesh has more than %d axes", CCN__MAX_AXES);
  for (uint32_t i = 0; i < m->naxes; i++) {
    if (!m->name[i] || m->size[i] < 0)
      return ccn__verify_fail(v, "axis %u of the mesh has no name or a negative size", (unsigned)i);
    for (uint32_t j = 0; j < i; j++)
      if (m->name[i] == m->name[j]) return ccn__verify_fail(v, "the mesh has two axes %s", m->name[i]);
  }
  for (uint32_t i = 0; i < g->symbols.n; i++) {
    const ccn__symbol *s = &g->symbols.at[i];
    if (!s->name || s->kind > CCN__SYM_COUNT)
      return ccn__verify_fail(v, "symbol %u has no name or no kind", (unsigned)i);
    uint32_t end = s->kind == CCN__SYM_SIZE ? m->naxes : s->kind == CCN__SYM_DIM ? UINT32_MAX : g->nbundles;
    if (s->index >= end)
      return ccn__verify_fail(v, "symbol %s belongs to an axis or bundle that is not there", s->name);
    if (ccn__graph_find_symbol(v->g, s->name, (ccn__symbol_kind)s->kind, s->index) != i)
      return ccn__verify_fail(v, "symbol %s is there twice", s->name);
  }
  return true;
}

bool ccn__verify_dim_known(const ccn__verifier *v, const ccn__dim *d) {
  if (!d || d->den < 1) return false;
  for (uint32_t i = 0; i < d->n; i++)
    for (uint32_t j = 0; j < d->term[i].degree; j++)
      if (d->term[i].sym[j] >= v->g->symbols.n) return false;
  return true;
}

/* ---- regions ------------------------------------------------------------------------------------------- */

bool ccn__verify_has_block(uint32_t op) { return op == CCN__OP_ON || op == CCN__OP_REPEAT; }

static bool regions(ccn__verifier *v) {
  const ccn__graph *g = v->g;
  if (!g->regions.n || g->regions.at[0].owner != CCN__NO_ID || g->regions.at[0].nyield)
    return ccn__verify_fail(v, "region 0 is not the body of the graph");
  for (uint32_t i = 1; i < g->regions.n; i++) {
    const ccn__region *r = &g->regions.at[i];
    if (r->owner >= g->nodes.n || g->nodes.at[r->owner].body != i)
      return ccn__verify_fail(v, "region %u has no owner", (unsigned)i);
    if (i > 1 && r->owner <= g->regions.at[i - 1].owner)
      return ccn__verify_fail(v, "region %u is out of order", (unsigned)i);
    v->id = r->owner;
    if (r->nyield && g->nodes.at[r->owner].op != CCN__OP_REPEAT)
      return ccn__verify_fault(v, "only the block of a repeat yields");
  }
  return true;
}

/* Regions around a node end at the body, in a correct graph; owners are smaller than what they hold, so
 * the climb ends in any graph. */
uint32_t ccn__verify_region_around(const ccn__verifier *v, uint32_t region) {
  return region ? ccn__verify_node_at(v, v->g->regions.at[region].owner)->region : 0;
}

bool ccn__verify_encloses(const ccn__verifier *v, uint32_t outer, uint32_t region) {
  while (region != outer && region) region = ccn__verify_region_around(v, region);
  return region == outer;
}

/* A value is seen in its region and what that holds; what an `on` block makes is seen behind it as well. */
bool ccn__verify_visible(const ccn__verifier *v, ccn__id id, uint32_t from) {
  uint32_t region = ccn__verify_node_at(v, id)->region;
  while (!ccn__verify_encloses(v, region, from)) {
    if (ccn__verify_node_at(v, v->g->regions.at[region].owner)->op != CCN__OP_ON) return false;
    region = ccn__verify_region_around(v, region);
  }
  return true;
}

/* Where node `id` stands: nodes are numbered in the order of the text, so that the region of a node is the
 * one that is open (*region), or one around that. */
static bool standing(ccn__verifier *v, uint32_t *region) {
  const ccn__graph *g = v->g;
  const ccn__node *n = ccn__verify_node_at(v, v->id);
  if (n->op >= CCN__OP_COUNT) return ccn__verify_fault(v, "there is no op %u", (unsigned)n->op);
  if (ccn__op_table[n->op].kind == CCN__KIND_COMPOSED)
    return ccn__verify_fault(v, "%s must be expanded", ccn__op_table[n->op].name);
  if (n->region >= g->regions.n || !ccn__verify_encloses(v, n->region, *region))
    return ccn__verify_fault(v, "it stands in a region that is not open");
  *region = n->region;
  if (ccn__verify_has_block(n->op) != (n->body != 0))
    return ccn__verify_fault(v, n->body ? "it has a block" : "it has no block");
  if (!n->body) return true;
  if (n->body >= g->regions.n || g->regions.at[n->body].owner != v->id)
    return ccn__verify_fault(v, "its block is not its own");
  *region = n->body;
  return true;
}

/* ---- operands ------------------------------------------------------------------------------------------ */

static bool arity(ccn__verifier *v) {
  const ccn__node *n = ccn__verify_node_at(v, v->id);
  const ccn__op_info *info = &ccn__op_table[n->op];
  if (info->nin >= 0 && n->nin != info->nin)
    return ccn__verify_fault(v, "%s has %d operands, not %u", info->name, info->nin, (unsigned)n->nin);
  if (n->op == CCN__OP_CONCAT && n->nin == 0) return ccn__verify_fault(v, "concat has at least one operand");
  return true;
}

static bool operands(ccn__verifier *v) {
  const ccn__node *n = ccn__verify_node_at(v, v->id);
  if (!arity(v)) return false;
  for (uint32_t i = 0; i < n->nin; i++) {
    ccn__id x = n->in[i];
    if (x >= v->id) return ccn__verify_fault(v, "operand %%%u is not made before it", (unsigned)x);
    if (!ccn__verify_visible(v, x, n->region))
      return ccn__verify_fault(v, "operand %%%u is not visible outside its repeat", (unsigned)x);
    uint32_t op = ccn__verify_node_at(v, x)->op;
    if (ccn__verify_has_block(op) && !(n->op == CCN__OP_RESULT && op == CCN__OP_REPEAT))
      return ccn__verify_fault(v, "operand %%%u is no value", (unsigned)x);
  }
  return true;
}

/* ---- each node ----------------------------------------------------------------------------------------- */

static bool meaning(ccn__verifier *v) {
  const ccn__node *n = ccn__verify_node_at(v, v->id);
  switch (n->op) {
  case CCN__OP_PARAM:
    return n->region ? ccn__verify_fault(v, "a parameter stands inside a block") : ccn__verify_inferred(v);
  case CCN__OP_CARRY: return ccn__verify_carry(v);
  case CCN__OP_RESULT: return ccn__verify_result(v);
  case CCN__OP_ENTER: return ccn__verify_enter(v);
  case CCN__OP_ON: return ccn__verify_on(v);
  case CCN__OP_REPEAT: return true; /* see yields */
  default: return ccn__verify_inferred(v);
  }
}

static bool nodes(ccn__verifier *v) {
  uint32_t region = 0;
  for (v->id = 0; v->id < v->g->nodes.n; v->id++) {
    const ccn__node *n = ccn__verify_node_at(v, v->id);
    if (!standing(v, &region) || !operands(v) || !ccn__verify_attributes(v) || !ccn__verify_well_formed(v))
      return false;
    if (!meaning(v) || !ccn__verify_inside_on(v)) return false;
    for (uint32_t i = 0; i < n->nin; i++)
      if (!ccn__verify_has_block(ccn__verify_node_at(v, n->in[i])->op) &&
          !ccn__verify_leaves_on(v, n->in[i], n->region))
        return false;
  }
  for (uint32_t i = 1; i < v->g->regions.n; i++)
    if (!ccn__verify_yields(v, &v->g->regions.at[i])) return false;
  return true;
}

/* ---- parameters and updates ---------------------------------------------------------------------------- */

static bool parameters(ccn__verifier *v) {
  const ccn__graph *g = v->g;
  uint32_t count = 0;
  for (uint32_t i = 0; i < g->params.n; i++) {
    ccn__id id = g->params.at[i].node, u = g->params.at[i].update;
    if (id >= g->nodes.n || g->nodes.at[id].op != CCN__OP_PARAM ||
        ccn__verify_number_of(ccn__verify_node_at(v, id))->i != i)
      return ccn__verify_fail(v, "parameter %u is no param node of that number", (unsigned)i);
    if (u != CCN__NO_ID &&
        (u >= g->nodes.n || g->nodes.at[u].op != CCN__OP_UPDATE || g->nodes.at[u].in[0] != id))
      return ccn__verify_fail(v, "the update of parameter %u is none of it", (unsigned)i);
  }
  for (v->id = 0; v->id < g->nodes.n; v->id++) {
    const ccn__node *n = ccn__verify_node_at(v, v->id);
    count += n->op == CCN__OP_PARAM;
  }
  return count == g->params.n ? true
                              : ccn__verify_fail(v, "there are %u param nodes, but %u parameters",
                                                 (unsigned)count, (unsigned)g->params.n);
}

static bool updates(ccn__verifier *v) {
  for (v->id = 0; v->id < v->g->nodes.n; v->id++) {
    const ccn__node *n = ccn__verify_node_at(v, v->id);
    if (n->op != CCN__OP_UPDATE) continue;
    const ccn__node *t = ccn__verify_node_at(v, n->in[0]);
    if (t->op != CCN__OP_PARAM) return ccn__verify_fault(v, "its target is no parameter");
    const ccn__param *p = &v->g->params.at[ccn__verify_number_of(t)->i];
    if (p->update == CCN__NO_ID) return ccn__verify_fault(v, "its parameter's list does not name it");
    if (p->update != v->id)
      return ccn__verify_fault(v, "CCN0223: parameter %%%u is updated twice", (unsigned)n->in[0]);
    if (ccn__verify_inside_repeat(v, n->region))
      return ccn__verify_fault(v, "an update inside a repeat would store more than once");
  }
  return true;
}

/* Whether node i depends on what is marked, as far as that is known: what a loop yields comes behind its
 * carries, so loops take another round. */
static bool depends(const ccn__verifier *v, const uint8_t *marked, ccn__id i) {
  const ccn__node *n = ccn__verify_node_at(v, i);
  if (n->op == CCN__OP_CARRY || n->op == CCN__OP_RESULT) {
    const ccn__node *loop =
      ccn__verify_node_at(v, n->op == CCN__OP_RESULT ? n->in[0] : v->g->regions.at[n->region].owner);
    int64_t k = ccn__verify_number_of(n)->i;
    return marked[loop->in[k]] || marked[v->g->regions.at[loop->body].yield[k]];
  }
  for (uint32_t k = 0; k < n->nin; k++)
    if (marked[n->in[k]]) return true;
  return false;
}

/* CCN0224 for one update: an op that reads the target's value at entry runs before the store, so it may
 * not depend on what is stored. */
static bool old_and_new(ccn__verifier *v, ccn__id update, uint8_t *marked) {
  const ccn__graph *g = v->g;
  ccn__id target = ccn__verify_node_at(v, update)->in[0];
  memset(marked, 0, g->nodes.n);
  marked[update] = 1;
  for (bool again = true; again;) {
    again = false;
    for (v->id = target; v->id < g->nodes.n; v->id++) {
      if (marked[v->id] || !depends(v, marked, v->id)) continue;
      marked[v->id] = 1;
      again = g->regions.n > 1;
      const ccn__node *n = ccn__verify_node_at(v, v->id);
      for (uint32_t k = 0; k < n->nin; k++)
        if (n->in[k] == target)
          return ccn__verify_fault(
            v, "CCN0224: it depends on the update of %%%u and reads its value at entry", (unsigned)target);
    }
  }
  return true;
}

/* Only parameters that are read behind their update need the walk. */
static bool effects(ccn__verifier *v) {
  const ccn__graph *g = v->g;
  uint8_t *marked = ccn__arena_alloc(g->arena, g->nodes.n);
  ccn__id *last_reader = ccn__arena_alloc(g->arena, g->nodes.n * sizeof *last_reader);
  memset(last_reader, 0, g->nodes.n * sizeof *last_reader);
  for (ccn__id i = 0; i < g->nodes.n; i++)
    for (uint32_t k = 0; k < g->nodes.at[i].nin; k++) last_reader[g->nodes.at[i].in[k]] = i;
  for (uint32_t i = 0; i < g->params.n; i++) {
    ccn__id u = g->params.at[i].update;
    if (u != CCN__NO_ID && last_reader[g->params.at[i].node] > u && !old_and_new(v, u, marked)) return false;
  }
  return true;
}

/* ---- outputs and constraints --------------------------------------------------------------------------- */

static bool outputs(ccn__verifier *v) {
  const ccn__graph *g = v->g;
  if (g->returns_none ? g->noutputs || g->returns_tuple : !g->returns_tuple && g->noutputs != 1)
    return ccn__verify_fail(v, "it returns %u values, which is neither nothing, nor one, nor a tuple",
                            (unsigned)g->noutputs);
  for (uint32_t i = 0; i < g->noutputs; i++) {
    ccn__id x = g->outputs[i];
    if (x >= g->nodes.n || ccn__verify_has_block(g->nodes.at[x].op) || !ccn__verify_visible(v, x, 0))
      return ccn__verify_fail(v, "output %u is no value of the graph's body", (unsigned)i);
    if (!ccn__verify_leaves_on(v, x, 0)) return false;
  }
  return true;
}

static bool constraints(ccn__verifier *v) {
  for (uint32_t i = 0; i < v->g->constraints.n; i++) {
    const ccn__constraint *c = &v->g->constraints.at[i];
    bool fine = ccn__verify_dim_known(v, c->x);
    if (c->kind == CCN__NEED_BUNDLES) fine = c->bx < v->g->nbundles && c->by < v->g->nbundles;
    else if (c->kind > CCN__NEED_BUNDLES) fine = false;
    else if (c->kind != CCN__NEED_WHOLE) fine = fine && ccn__verify_dim_known(v, c->y);
    if (!fine) return ccn__verify_fail(v, "constraint %u is about what is not there", (unsigned)i);
  }
  return true;
}

const char *ccn__graph_verify(ccn__graph *g) {
  ccn__verifier v = {.g = g};
  bool fine = mesh_and_symbols(&v) && regions(&v) && nodes(&v) && parameters(&v) && updates(&v) &&
              effects(&v) && outputs(&v) && constraints(&v);
  return fine ? NULL : v.text;
}

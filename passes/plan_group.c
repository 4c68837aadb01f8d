/* plan_group.c: which nodes make a step, and in which order the steps stand.
 *
 * What a schedule put in one kernel, chain or loop stays together: a *unit*. Units are placed behind what they need,
 * in text order otherwise. A single elementwise op, random number, reduction or update joins the latest kernel over
 * the same elements that stands behind all it reads; so a program without a schedule has one kernel for each run of
 * such ops, and results do not change, since every op rounds by itself.
 * SPDX-License-Identifier: Apache-2.0 */
#include "plan_impl.h"

enum {
  LOOK_BACK = 64, /* groups that are tried for a single op */
  MOST_OPS = 256  /* of a kernel that no schedule made: more would not fit in registers anyway */
};

bool ccn__plan_kernel_op(ccn__op op) {
  switch (ccn__op_table[op].kind) {
  case CCN__KIND_ELEM: return op != CCN__OP_ONE_HOT;
  case CCN__KIND_REDUCE:
  case CCN__KIND_MAKER:
  case CCN__KIND_RANDOM:
  case CCN__KIND_EFFECT: return true;
  default: return false;
  }
}

static bool is_library(ccn__op op) { return op == CCN__OP_MATMUL || op == CCN__OP_CONV2D; }

/* Never a step of its own: arguments, literals, blocks (their nodes are placed), other names of the same bytes. */
static bool is_silent(const ccn__planner *s, ccn__id i) {
  const ccn__op op = (ccn__op)ccn__plan_node(s, i)->op;
  return s->root[i] != i || op == CCN__OP_PARAM || op == CCN__OP_CONST || op == CCN__OP_ON ||
         op == CCN__OP_CARRY || op == CCN__OP_RESULT;
}

static bool reports(const ccn__node *n) {
  bool ints = !ccn__dtype_is_float((ccn__dtype)n->type->dtype);
  return n->op == CCN__OP_TAKE || n->op == CCN__OP_SCATTER_ADD || n->op == CCN__OP_MAX ||
         n->op == CCN__OP_MIN ||
         (ints && (n->op == CCN__OP_FLOORDIV || n->op == CCN__OP_MOD || n->op == CCN__OP_CAST));
}

/* ---- units ---------------------------------------------------------------------------------------------------- */

/* The REPEAT in which a region stands, directly; CCN__NO_ID: none. */
static ccn__id loop_of(const ccn__graph *g, uint32_t region) {
  while (region) {
    ccn__id owner = g->regions.at[region].owner;
    if (g->nodes.at[owner].op == CCN__OP_REPEAT) return owner;
    region = g->nodes.at[owner].region;
  }
  return CCN__NO_ID;
}

/* What stands for node i in the body of `loop`: itself, or the REPEAT that holds it; CCN__NO_ID: it is not there. */
static ccn__id at_level(const ccn__graph *g, ccn__id i, ccn__id loop) {
  for (;;) {
    ccn__id l = loop_of(g, g->nodes.at[i].region);
    if (l == loop) return i;
    if (l == CCN__NO_ID) return CCN__NO_ID;
    i = l;
  }
}

static void add_to_unit(ccn__planner *s, ccn__id first, ccn__id i) {
  s->unit[i] = first;
  if (first != i) s->unit_next[s->unit_last[first]] = i;
  s->unit_next[i] = CCN__NO_ID;
  s->unit_last[first] = i;
}

static void make_units(ccn__planner *s) {
  const ccn__graph *g = s->g;
  int64_t top = 0;
  for (ccn__id i = 0; i < g->nodes.n; i++) {
    int64_t f = ccn__attr_int(g->nodes.at[i].attrs, CCN__A_FUSE, 0),
            c = ccn__attr_int(g->nodes.at[i].attrs, CCN__A_OVERLAP, 0);
    top = f > top ? f : top;
    top = c > top ? c : top;
  }
  ccn__id *first = CCN__NEWN(s->arena, ccn__id, 2 * (top + 1)); /* + 1 */
  for (ccn__id i = 0; i < g->nodes.n; i++) {
    int64_t f = ccn__attr_int(g->nodes.at[i].attrs, CCN__A_FUSE, 0),
            c = ccn__attr_int(g->nodes.at[i].attrs, CCN__A_OVERLAP, 0);
    ccn__id *slot = c ? &first[top + 1 + c] : f ? &first[f] : NULL;
    if (slot && !*slot) *slot = i + 1;
    add_to_unit(s, slot ? *slot - 1 : i, i);
  }
}

/* ---- groups --------------------------------------------------------------------------------------------------- */

static ccn__group *new_group(ccn__planner *s, uint8_t kind, ccn__id first) {
  const ccn__node *n = ccn__plan_node(s, first);
  ccn__group *p = CCN__PUSH(s->arena, &s->groups);
  *p = (ccn__group){.kind = kind, .region = n->region, .space = &s->shape[first], .repeat = CCN__NO_ID};
  p->fuse = (uint32_t)ccn__attr_int(n->attrs, CCN__A_FUSE, 0);
  p->chain = (uint32_t)ccn__attr_int(n->attrs, CCN__A_OVERLAP, 0);
  p->stage = (uint32_t)ccn__attr_int(n->attrs, CCN__A_STAGE, 0);
  return p;
}

/* Of a step that is this op alone. */
static uint8_t kind_alone(ccn__op op) {
  if (is_library(op)) return CCN__STEP_MATMUL;
  if (ccn__plan_kernel_op(op)) return CCN__STEP_KERNEL;
  return ccn__op_table[op].kind == CCN__KIND_COLLECTIVE && op != CCN__OP_SLICE ? CCN__STEP_COLLECTIVE
                                                                               : CCN__STEP_OP;
}

static void join(ccn__planner *s, ccn__group *p, ccn__id i) {
  *CCN__PUSH(s->arena, &p->nodes) = i;
  s->group_of[i] = (uint32_t)(p - s->groups.at) + 1;
}

static bool same_space(const ccn__planner *s, const ccn__shape *x, const ccn__shape *y) {
  if (x->rank != y->rank || x->bundle != y->bundle || (x->bundle && x->bundle_id != y->bundle_id))
    return false;
  for (uint32_t d = 0; d < x->rank; d++)
    if (x->dim[d] != y->dim[d]) return false;
  for (uint32_t a = 0; a < s->g->mesh.naxes; a++) {
    const ccn__cplace *p = &x->place[a], *q = &y->place[a];
    bool cut = p->kind == CCN__SLICED || p->kind == CCN__AT || q->kind == CCN__SLICED || q->kind == CCN__AT;
    if (cut && (p->kind != q->kind || p->dim != q->dim || p->unit != q->unit || p->coord != q->coord))
      return false;
  }
  return true;
}

/* The first group in which node i could stand: behind what makes its operands, or in it. */
static uint32_t earliest(const ccn__planner *s, ccn__id i) {
  const ccn__node *n = ccn__plan_node(s, i);
  uint32_t at = 0;
  for (uint32_t k = 0; k < n->nin; k++) {
    const ccn__id x = s->root[n->in[k]];
    const uint32_t made = s->group_of[x];
    if (!made) continue;
    const bool inside = s->groups.at[made - 1].open &&
                        ccn__op_table[s->g->nodes.at[x].op].kind != CCN__KIND_REDUCE &&
                        same_space(s, &s->shape[x], &s->shape[n->in[k]]);
    const uint32_t first = inside ? made - 1 : made;
    if (first > at) at = first;
  }
  return at;
}

static void place_single(ccn__planner *s, ccn__id i) {
  const ccn__node *n = ccn__plan_node(s, i);
  const ccn__op op = (ccn__op)n->op;
  if (is_silent(s, i) || s->group_of[i]) return;
  if (!ccn__plan_kernel_op(op)) {
    join(s, new_group(s, kind_alone(op), i), i);
    return;
  }
  const ccn__shape *space = &s->shape[ccn__op_table[op].kind == CCN__KIND_REDUCE ? n->in[0] : i];
  const uint32_t from = earliest(s, i);
  for (uint32_t k = s->groups.n; k-- > from && s->groups.n - k <= LOOK_BACK;) {
    ccn__group *p = &s->groups.at[k];
    if (!p->open || p->nodes.n >= MOST_OPS || p->region != n->region || !same_space(s, p->space, space))
      continue;
    join(s, p, i);
    return;
  }
  ccn__group *p = new_group(s, CCN__STEP_KERNEL, i);
  p->open = true;
  p->space = space;
  join(s, p, i);
}

static bool reads_one_of(const ccn__planner *s, ccn__id i, const ccn__nodes *set) {
  const ccn__node *n = ccn__plan_node(s, i);
  for (uint32_t k = 0; k < n->nin; k++)
    for (uint32_t j = 0; j < set->n; j++)
      if (s->root[n->in[k]] == set->at[j]) return true;
  return false;
}

/* Whether the nodes of a set, but for matmuls that feed them, are one kernel; else each is a step of its own. */
static bool is_kernel(const ccn__planner *s, const ccn__nodes *set) {
  uint32_t exchanges = 0, rest = 0;
  for (uint32_t k = 0; k < set->n; k++) {
    const ccn__op op = (ccn__op)ccn__plan_node(s, set->at[k])->op;
    const bool exchange = ccn__op_table[op].kind == CCN__KIND_COLLECTIVE;
    if (is_library(op) && reads_one_of(s, set->at[k], set)) return false;
    if (is_library(op) || is_silent(s, set->at[k])) continue;
    if (!exchange && !ccn__plan_kernel_op(op)) return false;
    rest++;
    exchanges += exchange;
  }
  return rest > 1 || !exchanges;
}

/* ---- feeders --------------------------------------------------------------------------------------------------- */

static bool alone(const ccn__planner *s, ccn__id i) {
  return s->unit[i] == i && s->unit_next[i] == CCN__NO_ID;
}

/* Made of arguments and literals by elementwise ops that no schedule names: so it depends on no kernel. */
static bool *find_feeders(const ccn__planner *s) {
  bool *pure = CCN__NEWN(s->arena, bool, s->g->nodes.n + 1),
       *out = CCN__NEWN(s->arena, bool, s->g->nodes.n + 1);
  for (ccn__id i = 0; i < s->g->nodes.n; i++) {
    const ccn__node *n = ccn__plan_node(s, i);
    pure[i] = n->op == CCN__OP_PARAM || n->op == CCN__OP_CONST;
    if (ccn__op_table[n->op].kind != CCN__KIND_ELEM || !ccn__plan_kernel_op((ccn__op)n->op) || reports(n))
      continue;
    if (!alone(s, i) || is_silent(s, i) || ccn__attr_find(n->attrs, CCN__A_FUSE) ||
        ccn__attr_find(n->attrs, CCN__A_OVERLAP))
      continue;
    pure[i] = true;
    for (uint32_t k = 0; k < n->nin; k++) pure[i] = pure[i] && pure[n->in[k]];
    out[i] = pure[i];
  }
  return out;
}

static ccn__nodes nodes_of(const ccn__planner *s, ccn__id unit) {
  ccn__nodes set = {0};
  for (ccn__id i = unit; i != CCN__NO_ID; i = s->unit_next[i]) *CCN__PUSH(s->arena, &set) = i;
  return set;
}

/* Units that become one kernel because a schedule says so, and are in no chain. */
static bool *find_kernels(const ccn__planner *s) {
  bool *yes = CCN__NEWN(s->arena, bool, s->g->nodes.n + 1);
  for (ccn__id i = 0; i < s->g->nodes.n; i++) {
    const ccn__attrs a = ccn__plan_node(s, i)->attrs;
    if (s->unit[i] != i || !ccn__attr_find(a, CCN__A_FUSE) || ccn__attr_find(a, CCN__A_OVERLAP)) continue;
    const ccn__nodes set = nodes_of(s, i);
    yes[i] = is_kernel(s, &set);
  }
  return yes;
}

/* What only one scheduled kernel reads, and what depends on no kernel, as 0.9 * m of `m1 = 0.9 * m + s`, is computed in
 * it: a kernel of its own would write it to memory for the other one to read. */
static void place_feeders(ccn__planner *s, const bool *feeder) {
  const ccn__graph *g = s->g;
  const bool *kernel = find_kernels(s);
  ccn__id *reader =
    CCN__NEWN(s->arena, ccn__id, g->nodes.n + 1); /* + 1: the unit of all readers; 0: none yet */
  bool *several = CCN__NEWN(s->arena, bool, g->nodes.n + 1);
  for (uint32_t k = 0; k < g->noutputs; k++) several[g->outputs[k]] = true;
  for (uint32_t r = 0; r < g->regions.n; r++)
    for (uint32_t k = 0; k < g->regions.at[r].nyield; k++) several[g->regions.at[r].yield[k]] = true;
  for (ccn__id i = g->nodes.n; i-- > 0;) {
    const ccn__node *n = ccn__plan_node(s, i);
    const ccn__id to = reader[i] ? reader[i] - 1 : CCN__NO_ID;
    if (feeder[i] && !several[i] && to != CCN__NO_ID && n->region == ccn__plan_node(s, to)->region &&
        (same_space(s, &s->shape[i], &s->shape[to]) || (!s->shape[i].rank && !s->shape[i].bundle)))
      add_to_unit(s, to, i);
    const ccn__id u = kernel[s->unit[i]] && ccn__plan_kernel_op((ccn__op)n->op) ? s->unit[i] : CCN__NO_ID;
    for (uint32_t k = 0; k < n->nin; k++) {
      const ccn__id x = n->in[k];
      if (u == CCN__NO_ID || (reader[x] && reader[x] - 1 != u)) several[x] = true;
      reader[x] = u + 1;
    }
  }
}

/* ---- steps of units -------------------------------------------------------------------------------------------- */

/* Nodes of one kernel, or of one stage of a chain. Matmuls are a library's: steps before it. */
static void place_set(ccn__planner *s, const ccn__nodes *set) {
  const bool kernel = is_kernel(s, set);
  ccn__group *p = NULL;
  for (uint32_t k = 0; k < set->n && kernel; k++)
    if (is_library((ccn__op)ccn__plan_node(s, set->at[k])->op))
      join(s, new_group(s, CCN__STEP_MATMUL, set->at[k]), set->at[k]);
  for (uint32_t k = 0; k < set->n; k++) {
    const ccn__op op = (ccn__op)ccn__plan_node(s, set->at[k])->op;
    if ((kernel && is_library(op)) || is_silent(s, set->at[k])) continue;
    if (!p || !kernel) p = new_group(s, kernel ? CCN__STEP_KERNEL : kind_alone(op), set->at[k]);
    join(s, p, set->at[k]);
  }
}

static void place_chain(ccn__planner *s, ccn__id first) {
  uint32_t nstages = 0;
  for (ccn__id i = first; i != CCN__NO_ID; i = s->unit_next[i]) {
    uint32_t k = (uint32_t)ccn__attr_int(ccn__plan_node(s, i)->attrs, CCN__A_STAGE, 0) + 1;
    if (k > nstages) nstages = k;
  }
  for (uint32_t k = 0; k < nstages; k++) {
    ccn__nodes set = {0};
    for (ccn__id i = first; i != CCN__NO_ID; i = s->unit_next[i])
      if (ccn__attr_int(ccn__plan_node(s, i)->attrs, CCN__A_STAGE, 0) == k) *CCN__PUSH(s->arena, &set) = i;
    place_set(s, &set);
  }
}

static void place_level(ccn__planner *s, ccn__id loop);

/* Carried values are set before the loop and at the end of each pass, all at once. */
static void place_carry(ccn__planner *s, ccn__id repeat, uint32_t region) {
  ccn__group *p = new_group(s, CCN__STEP_COPY, repeat);
  p->region = region;
  p->fuse = p->chain = 0;
  for (ccn__id i = 0; i < s->g->nodes.n; i++)
    if (ccn__plan_node(s, i)->op == CCN__OP_CARRY &&
        s->g->regions.at[ccn__plan_node(s, i)->region].owner == repeat)
      *CCN__PUSH(s->arena, &p->nodes) = i;
}

static void place_repeat(ccn__planner *s, ccn__id repeat) {
  const uint32_t outer = ccn__plan_node(s, repeat)->region;
  place_carry(s, repeat, outer);
  const uint32_t at = s->groups.n;
  ccn__group *p = new_group(s, CCN__STEP_REPEAT, repeat);
  p->repeat = repeat;
  join(s, p, repeat);
  place_level(s, repeat);
  place_carry(s, repeat, ccn__plan_node(s, repeat)->body);
  s->groups.at[at].end = s->groups.n;
  for (ccn__id i = repeat; i < s->g->nodes.n; i++) /* what comes out of the loop is there behind it */
    if (ccn__plan_node(s, i)->op == CCN__OP_RESULT && ccn__plan_node(s, i)->in[0] == repeat)
      s->group_of[i] = s->groups.n;
}

static void place_unit(ccn__planner *s, ccn__id first) {
  const ccn__node *n = ccn__plan_node(s, first);
  if (n->op == CCN__OP_REPEAT) {
    place_repeat(s, first);
  } else if (ccn__attr_int(n->attrs, CCN__A_OVERLAP, 0)) {
    place_chain(s, first);
  } else if (ccn__attr_int(n->attrs, CCN__A_FUSE, 0)) {
    const ccn__nodes set = nodes_of(s, first);
    place_set(s, &set);
  } else {
    place_single(s, first);
  }
}

/* ---- order ---------------------------------------------------------------------------------------------------- */

/* What each unit of a level needs: unit u's needs are at[start[u]] .. at[start[u + 1]]. */
typedef struct needs {
  uint32_t *start;
  ccn__id *at;
} needs;

static ccn__id unit_at(const ccn__planner *s, ccn__id i, ccn__id loop) {
  ccn__id x = at_level(s->g, i, loop);
  return x == CCN__NO_ID ? CCN__NO_ID : s->unit[x];
}

static void find_needs(ccn__planner *s, ccn__id loop, needs *out) {
  const ccn__graph *g = s->g;
  ccn__id *of = CCN__NEWN(s->arena, ccn__id, g->nodes.n + 1);
  out->start = CCN__NEWN(s->arena, uint32_t, g->nodes.n + 2);
  for (ccn__id i = 0; i < g->nodes.n; i++) of[i] = unit_at(s, i, loop);
  for (uint32_t pass = 0; pass < 2; pass++) {
    for (ccn__id i = 0; i < g->nodes.n; i++)
      for (uint32_t k = 0; of[i] != CCN__NO_ID && k < g->nodes.at[i].nin; k++) {
        const ccn__id u = of[g->nodes.at[i].in[k]];
        if (u == CCN__NO_ID || u == of[i]) continue;
        if (pass == 0) out->start[of[i] + 1]++;
        else out->at[out->start[of[i]]++] = u;
      }
    if (pass == 0) {
      for (uint32_t u = 0; u < g->nodes.n; u++) out->start[u + 1] += out->start[u];
      out->at = CCN__NEWN(s->arena, ccn__id, out->start[g->nodes.n] + 1);
    }
  }
  for (uint32_t u = g->nodes.n; u > 0; u--) out->start[u] = out->start[u - 1];
  out->start[0] = 0;
}

/* Depth first, without recursion: a unit stands behind all it needs. */
static void place_behind(ccn__planner *s, const needs *d, uint32_t *next, bool *done, ccn__nodes *stack,
                         ccn__id u) {
  stack->n = 0;
  *CCN__PUSH(s->arena, stack) = u;
  while (stack->n) {
    const ccn__id top = stack->at[stack->n - 1];
    if (done[top]) {
      stack->n--;
    } else if (next[top] < d->start[top + 1]) {
      const ccn__id x = d->at[next[top]++];
      if (!done[x]) *CCN__PUSH(s->arena, stack) = x;
    } else {
      done[top] = true;
      stack->n--;
      place_unit(s, top);
    }
  }
}

static void place_level(ccn__planner *s, ccn__id loop) {
  const ccn__graph *g = s->g;
  needs d;
  ccn__nodes stack = {0};
  find_needs(s, loop, &d);
  uint32_t *next = CCN__NEWN(s->arena, uint32_t, g->nodes.n + 1);
  bool *done = CCN__NEWN(s->arena, bool, g->nodes.n + 1);
  memcpy(next, d.start, sizeof *next * (g->nodes.n + 1));
  for (ccn__id i = 0; i < g->nodes.n; i++)
    if (loop_of(g, g->nodes.at[i].region) == loop && !done[s->unit[i]])
      place_behind(s, &d, next, done, &stack, s->unit[i]);
}

void ccn__plan_groups(ccn__planner *s) {
  make_units(s);
  const bool *feeder = find_feeders(s);
  place_feeders(s, feeder);
  for (ccn__id i = 0; i < s->g->nodes.n;
       i++) /* numbers first, so that they stand between no two ops of a kernel */
    if (feeder[i] && alone(s, i) && !s->shape[i].rank && !s->shape[i].bundle && !ccn__plan_node(s, i)->region)
      place_single(s, i);
  place_level(s, CCN__NO_ID);
  for (uint32_t k = 0; k < s->groups.n; k++) { /* joined in the order of units: text order again */
    ccn__nodes *v = &s->groups.at[k].nodes;
    for (uint32_t i = 1; i < v->n; i++)
      for (uint32_t j = i; j > 0 && v->at[j - 1] > v->at[j]; j--) {
        ccn__id t = v->at[j];
        v->at[j] = v->at[j - 1];
        v->at[j - 1] = t;
      }
  }
}

bool ccn__plan_may_fail(const ccn__planner *s, const ccn__group *p) {
  for (uint32_t k = 0; k < p->nodes.n; k++)
    if (reports(ccn__plan_node(s, p->nodes.at[k]))) return true;
  return false;
}

/* kernel_step.c: what of a kernel is no loop: pointer tables, chunks, and the small steps between loops:
 * parts of a sum tree from the nodes that loops left, their merging across ranks, payments of few elements.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernel.h"

#include "interp_eval.h"

/* ---- tables, chunks ------------------------------------------------------------------------------------ */

void ccn__kern_bind(const ccn__kern *k, uint32_t rank, void *const *const *base, void **out_ptr) {
  for (uint32_t i = 0; i < k->ptrs.n; i++) {
    const ccn__kptr *p = &k->ptrs.at[i];
    if (p->slot == CCN__NO_SLOT) out_ptr[i] = (void *)(uintptr_t)p->table[rank];
    else out_ptr[i] = p->rank[rank] < k->world ? base[p->rank[rank]][p->slot] : NULL;
  }
}

/* The first place from `at` on at which a chunk may end, for a tree whose index there is `index`: a
 * block's end. */
static int64_t block_end(int64_t at, int64_t index) { return at + (-index & (CCN__TREE_BLOCK - 1)); }

static int64_t member_end(const ccn__kern *k, const ccn__kloop *l, uint32_t rank, int64_t at) {
  const int64_t *n = k->numbers + rank * k->nnumbers, *start = k->ptrs.at[l->table].table[rank];
  const int64_t flat = n[l->par + 1] + at;
  for (int64_t m = 0; m < n[l->par]; m++) {
    if (start[m + 1] < flat || start[m] > flat) continue;
    const int64_t end = start[m + 1] - n[l->par + 1], stop = block_end(at, flat - start[m]);
    return stop < end ? stop : end;
  }
  return at;
}

int64_t ccn__kern_chunk(const ccn__kern *k, uint32_t loop, uint32_t rank, int64_t begin, int64_t want) {
  const ccn__kloop *l = &k->loops.at[loop];
  const int64_t count = l->count[rank], least = want < (int64_t)l->lanes ? (int64_t)l->lanes : want;
  if (count - begin <= least) return count;
  int64_t end = begin + least / (int64_t)l->lanes * (int64_t)l->lanes;
  for (uint32_t i = 0; i < l->reds.n; i++) { /* all of one form */
    const ccn__kred *d = &l->reds.at[i];
    if (d->form == CCN__KRED_RUN) end = block_end(end, k->numbers[rank * k->nnumbers + d->par] + end);
    if (d->form == CCN__KRED_MEMBER) end = member_end(k, l, rank, end);
    if (d->form == CCN__KRED_ROW) end = (end + l->row[rank] - 1) / l->row[rank] * l->row[rank];
    break;
  }
  return end < count ? end : count;
}

/* ---- trees --------------------------------------------------------------------------------------------- */

/* A stack of nodes in order of their index, in which complete siblings combine at once (as ccn__counter,
 * for one element, without memory of its own). */
typedef struct pile {
  ccn__redop op;
  ccn__dtype acc;
  size_t item;
  uint32_t n;
  ccn__tree_node node[2 * CCN__TREE_MAX];
  uint64_t value[2 * CCN__TREE_MAX];
} pile;

static void pile_init(pile *p, const ccn__ktree *t) {
  p->op = (ccn__redop)t->op;
  p->acc = ccn__dtype_acc((ccn__dtype)t->t);
  p->item = ccn__dtype_size(p->acc);
  p->n = 0;
}

static void pile_push(pile *p, uint64_t start, uint8_t level, const void *value) {
  uint64_t v = 0;
  memcpy(&v, value, p->item);
  while (p->n) {
    const ccn__tree_node *top = &p->node[p->n - 1];
    if (top->level != level || (top->start >> level & 1) || top->start + ((uint64_t)1 << level) != start)
      break;
    ccn__redop_combine(p->op, p->acc, &v, &p->value[--p->n], &v, 1);
    start = top->start;
    level++;
  }
  p->node[p->n] = (ccn__tree_node){start, level};
  p->value[p->n++] = v;
}

/* Combines the nodes [low, high) in place low: their nearest common ancestor parts them. */
static void pile_fold(pile *p, uint32_t low, uint32_t high) {
  if (high - low < 2) return;
  const uint64_t a = p->node[low].start, b = p->node[high - 1].start;
  uint32_t level = 0;
  while (a >> level != b >> level) level++;
  const uint64_t right = b >> (level - 1) << (level - 1);
  uint32_t mid = low + 1;
  while (p->node[mid].start < right) mid++;
  pile_fold(p, low, mid);
  pile_fold(p, mid, high);
  ccn__redop_combine(p->op, p->acc, &p->value[low], &p->value[low], &p->value[mid], 1);
}

static const int64_t *run_of(const ccn__ktree *t, uint32_t rank, uint32_t member) {
  return &t->run[(rank * t->members + member) * 2];
}

/* One run as the loop left it: nodes below a block at its start, blocks, nodes below a block at its end. */
static void push_run(pile *p, const int64_t *run, const char *nodes) {
  ccn__tree_node node[CCN__TREE_MAX];
  const uint32_t n = ccn__tree_cover((uint64_t)run[0], (uint64_t)run[1], node);
  const int64_t first = run[0] >> CCN__TREE_BLOCK_LEVEL;
  const char *blocks = nodes + CCN__RUN_SLOTS * p->item;
  for (uint32_t i = 0; i < n; i++) {
    const uint64_t start = node[i].start, end = start + ((uint64_t)1 << node[i].level);
    if (node[i].level >= CCN__TREE_BLOCK_LEVEL) {
      for (uint64_t b = start >> CCN__TREE_BLOCK_LEVEL; b < end >> CCN__TREE_BLOCK_LEVEL; b++)
        pile_push(p, b << CCN__TREE_BLOCK_LEVEL, CCN__TREE_BLOCK_LEVEL,
                  blocks + (b - (uint64_t)first) * p->item);
      continue;
    }
    /* a node at the start is the right one of two siblings, one at the end the left one */
    const uint32_t slot = node[i].level + (start >> node[i].level & 1 ? 0 : CCN__TREE_BLOCK_LEVEL);
    pile_push(p, start, node[i].level, nodes + slot * p->item);
  }
}

static void finish(const ccn__kern *k, const ccn__kstep *s, uint32_t rank, void *const *const *base) {
  const ccn__ktree *t = &k->trees.at[s->index];
  pile p;
  pile_init(&p, t);
  const char *nodes = base[rank][s->src];
  char *to = base[rank][s->dst];
  for (uint32_t m = 0; m < t->members; m++) {
    const int64_t *run = run_of(t, rank, m);
    push_run(&p, run, nodes);
    nodes += (CCN__RUN_SLOTS + (run[1] >> CCN__TREE_BLOCK_LEVEL) - (run[0] >> CCN__TREE_BLOCK_LEVEL) + 1) *
             (int64_t)p.item;
    for (uint32_t i = 0; i < p.n; i++, to += p.item) memcpy(to, &p.value[i], p.item);
    p.n = 0;
  }
}

/* ---- payments ------------------------------------------------------------------------------------------ */

/* Rounds a value in the accumulation dtype, divided if it is an average. */
static void round_out(const ccn__kstep *s, ccn__dtype acc, void *value, int64_t ranks, void *to) {
  if (s->average && ranks > 1) ccn__redop_divide(acc, value, 1, ranks);
  ccn__convert((ccn__dtype)s->t, to, acc, value, 1);
}

/* The value of a tree that nobody has elements of: of nothing, or the neutral one of a rank without a
 * part. */
static void empty_value(const ccn__ktree *t, uint32_t member, ccn__dtype acc, uint64_t *out) {
  if (t->extent[member] == 0 && t->op == CCN__RED_SUM) ccn__store_f64(acc, out, 0);
  else ccn__redop_table[t->op].identity(acc, out);
}

static void pay_parts(const ccn__kern *k, const ccn__kstep *s, uint32_t rank, void *const *const *base) {
  const ccn__ktree *t = &k->trees.at[s->index];
  const char *from[CCN__MAX_RANKS];
  ccn__ranks group = {.n = 1, .at = {rank}};
  char *to = base[rank][s->dst];
  pile p;
  if (s->over) ccn__collective_group(&k->mesh, s->over, rank, &group);
  for (uint32_t i = 0; i < group.n; i++) from[i] = base[group.at[i]][s->src];
  pile_init(&p, t);
  for (uint32_t m = 0; m < t->members; m++, to += ccn__dtype_size((ccn__dtype)s->t)) {
    ccn__tree_node node[CCN__TREE_MAX];
    for (uint32_t i = 0; i < group.n; i++) {
      const int64_t *run = run_of(t, group.at[i], m);
      const uint32_t n = ccn__tree_cover((uint64_t)run[0], (uint64_t)run[1], node);
      for (uint32_t j = 0; j < n; j++, from[i] += p.item)
        pile_push(&p, node[j].start, node[j].level, from[i]);
    }
    if (p.n) pile_fold(&p, 0, p.n);
    else empty_value(t, m, p.acc, &p.value[0]);
    round_out(s, p.acc, &p.value[0], group.n, to);
    p.n = 0;
  }
}

/* Over the first declared axis, then those results over the next. */
static void merges_by_axes(const ccn__kern *k, uint32_t over, uint32_t n, ccn__merge *out) {
  for (uint32_t a = 0; a < k->mesh.naxes; a++) {
    if (!(over >> a & 1)) continue;
    const uint32_t rest = n / (uint32_t)k->mesh.size[a];
    for (uint32_t i = 0; i < rest; i++)
      for (uint32_t j = i + rest; j < n; j += rest) *out++ = (ccn__merge){(uint16_t)i, (uint16_t)j};
    n = rest;
  }
}

/* Elements [start, end) in one order. */
static void pay_range(const ccn__kern *k, const ccn__kstep *s, uint32_t rank, void *const *const *base,
                      const ccn__ranks *group, uint32_t anchor, int64_t start, int64_t end) {
  const ccn__dtype t = (ccn__dtype)s->t, acc = ccn__dtype_acc(t);
  const int64_t item = (int64_t)ccn__dtype_size(t);
  ccn__merge merge[CCN__MAX_RANKS];
  uint32_t sum = 0;
  if (ccn__order_of(s->order) == CCN__ORDER_AXIS) merges_by_axes(k, s->over, group->n, merge);
  else sum = ccn__order_merges(ccn__order_of(s->order), ccn__order_group(s->order), group->n, anchor, merge);
  for (int64_t e = start * item; e < end * item; e += item) {
    uint64_t lane[CCN__MAX_RANKS] = {0};
    for (uint32_t i = 0; i < group->n; i++)
      ccn__convert(acc, &lane[i], t, (const char *)base[group->at[i]][s->src] + e, 1);
    for (uint32_t i = 0; i + 1 < group->n; i++)
      ccn__redop_combine((ccn__redop)s->op, acc, &lane[merge[i].to], &lane[merge[i].to], &lane[merge[i].from],
                         1);
    round_out(s, acc, &lane[sum], group->n, (char *)base[rank][s->dst] + e);
  }
}

/* As the interpreter: an order may change from slice to slice of the elements. */
static void pay_values(const ccn__kern *k, const ccn__kstep *s, uint32_t rank, void *const *const *base) {
  const int64_t n = k->slots.at[s->dst].bytes[rank] / (int64_t)ccn__dtype_size((ccn__dtype)s->t);
  ccn__ranks group;
  ccn__collective_group(&k->mesh, s->over, rank, &group);
  const uint32_t slices = ccn__order_slices(ccn__order_of(s->order), group.n);
  for (uint32_t i = 0; i < slices; i++) {
    int64_t start, end;
    ccn__slice_range(n, 1, slices, i, &start, &end);
    pay_range(k, s, rank, base, &group, i, start, end);
  }
}

void ccn__kern_step(const ccn__kern *k, uint32_t step, uint32_t rank, void *const *const *base) {
  const ccn__kstep *s = &k->steps.at[step];
  if (s->kind == CCN__KSTEP_SYNC) return;
  if (s->kind != CCN__KSTEP_FINISH && !k->slots.at[s->dst].bytes[rank])
    return; /* the value is not on this rank */
  if (s->kind == CCN__KSTEP_FINISH) finish(k, s, rank, base);
  if (s->kind == CCN__KSTEP_PAY && s->index != CCN__NO_SLOT) pay_parts(k, s, rank, base);
  if (s->kind == CCN__KSTEP_PAY && s->index == CCN__NO_SLOT) pay_values(k, s, rank, base);
  if (s->kind == CCN__KSTEP_FILL && s->only[rank]) {
    const size_t item = ccn__dtype_size((ccn__dtype)s->t);
    ccn__fill(base[rank][s->dst], &s->fill, item, (size_t)k->slots.at[s->dst].bytes[rank] / item);
  }
}

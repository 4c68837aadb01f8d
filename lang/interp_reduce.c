/* interp_reduce.c: reductions over dims, and what becomes of them where the reduced dims are cut.
 *
 * One tree over the global row-major index of the reduced dims (num.h). A rank combines what its box covers: if that
 * is all, the tree is folded and rounded; if the dims are cut, the result is owed and the rank keeps its maximal
 * complete nodes, the parts, in the accumulation dtype. Parts of several ranks merge into the same tree, so a sum
 * has the same bits for every number of ranks. "Reproducible" here costs nothing but the order (compare Demmel and
 * Nguyen, "Parallel reproducible summation", 2015, who need no fixed tree but more arithmetic).
 * SPDX-License-Identifier: Apache-2.0 */
#include "interp_eval.h"

typedef struct reduction {
  const ccn__value *x;
  ccn__redop op;
  ccn__dtype t, acc;
  bool reduced[CCN__MAX_RANK];
  int64_t weight[CCN__MAX_RANK]; /* of reduced dims, in the global index of the tree */
  int64_t extent;                /* of the tree; 0: a reduction of nothing */
  uint8_t tree;                  /* axes that cut reduced dims */
} reduction;

/* Dims that are stepped through, row-major, and what a step means. */
typedef struct walk {
  uint32_t n;
  int64_t extent[CCN__MAX_RANK], stride[CCN__MAX_RANK], weight[CCN__MAX_RANK], i[CCN__MAX_RANK];
  int64_t offset, index; /* in local memory; in the tree */
  bool empty;
} walk;

static void walk_add(walk *w, int64_t extent, int64_t stride, int64_t weight, int64_t start) {
  w->extent[w->n] = extent;
  w->stride[w->n] = stride;
  w->weight[w->n] = weight;
  w->i[w->n++] = 0;
  w->index += start * weight;
  w->empty |= extent == 0;
}

/* To the next position; false behind the last one, and then back at the first. */
static bool walk_on(walk *w) {
  for (uint32_t d = w->n; d-- > 0;) {
    w->offset += w->stride[d];
    w->index += w->weight[d];
    if (++w->i[d] < w->extent[d]) return true;
    w->offset -= w->stride[d] * w->extent[d];
    w->index -= w->weight[d] * w->extent[d];
    w->i[d] = 0;
  }
  return false;
}

/* ---- reductions of nothing -------------------------------------------------------------------------------------- */

/* sum +0 (not its identity, -0), prod 1, any false, all true. */
static void value_of_nothing(ccn__redop op, ccn__dtype t, void *out) {
  if (op == CCN__RED_SUM) ccn__store_f64(t, out, 0);
  else ccn__redop_table[op].identity(t, out);
}

CCN__NORETURN static void nothing_to_choose(ccn__run *r, const ccn__node *n) {
  ccn__diag *d = ccn__error(r->rt->diags, 604, n->span, "this has no elements", "`%s` is the %s of nothing",
                            ccn__node_name(n), n->op == CCN__OP_MAX ? "maximum" : "minimum");
  ccn__node_raise(r, n, d);
}

/* Whether this rank stands for all when there is nothing to distribute. */
static bool is_first(const ccn__job *j, uint8_t tree) {
  for (uint32_t a = 0; a < j->r->mesh->naxes; a++)
    if ((tree >> a & 1) && ccn__mesh_coord(j->r->mesh, j->rank, a)) return false;
  return true;
}

/* ---- pieces in parts ---------------------------------------------------------------------------------------------- */

/* Room for nparts parts of `width` elements. */
static char *new_parts(ccn__job *j, ccn__dtype acc, uint64_t nparts, int64_t width) {
  const size_t item = ccn__dtype_size(acc);
  if (nparts > UINT32_MAX || (width && nparts > SIZE_MAX / 4 / item / (uint64_t)width))
    ccn__throw(j->r->rt->heap, CCN_OUT_OF_MEMORY);
  j->piece->nparts = (uint32_t)nparts;
  j->piece->nodes = ccn__buf_new(&j->r->pool, (size_t)nparts * sizeof(ccn__part));
  j->piece->buf = ccn__buf_new(&j->r->pool, (size_t)nparts * (size_t)width * item);
  return j->piece->buf->data;
}

static void part_of_nothing(ccn__job *j, const reduction *q) {
  const bool first = is_first(j, q->tree);
  char element[8], *to = new_parts(j, q->acc, first, j->box.elements);
  if (!first) return;
  *(ccn__part *)j->piece->nodes->data = (ccn__part){0, 0, 0};
  value_of_nothing(q->op, q->acc, element);
  ccn__fill(to, element, ccn__dtype_size(q->acc), (size_t)j->box.elements);
}

/* The parts of what a box covers of the tree: dims [last cut one, end) make runs of indices, the others step. */
static uint64_t cover(const reduction *q, const ccn__box *b, ccn__part *out) {
  uint32_t dim[CCN__MAX_RANK], n = 0;
  ccn__tree_node node[CCN__TREE_MAX];
  uint64_t count = 0;
  walk w = {.n = 0};
  for (uint32_t d = 0; d < q->x->rank; d++)
    if (q->reduced[d]) dim[n++] = d;
  uint32_t run = n;
  for (bool whole = true; run > 0 && whole;) {
    const uint32_t d = dim[--run];
    whole = b->extent[d] == q->x->dim[d];
  }
  for (uint32_t i = 0; i < run; i++) walk_add(&w, b->extent[dim[i]], 0, q->weight[dim[i]], b->start[dim[i]]);
  const int64_t first = n ? b->start[dim[run]] * q->weight[dim[run]] : 0;
  const int64_t length = n ? b->extent[dim[run]] * q->weight[dim[run]] : 1;
  if (w.empty || length == 0) return 0;
  do {
    const uint64_t a = (uint64_t)(w.index + first);
    const uint32_t k = ccn__tree_cover(a, a + (uint64_t)length, node);
    for (uint32_t i = 0; out && i < k; i++) out[count + i] = (ccn__part){0, node[i].level, node[i].start};
    count += k;
  } while (walk_on(&w));
  return count;
}

/* ---- one rank's reduction ------------------------------------------------------------------------------------------- */

/* Where the results of a counter go: kept elements from `at`. */
static void emit(ccn__job *j, const reduction *q, ccn__counter *c, int64_t at, size_t width) {
  char *to = j->piece->buf->data;
  if (j->out->tree) {
    if (c->n != j->piece->nparts) ccn__defect(j->r, j->n, "does not cover its piece of the tree");
    for (uint32_t p = 0; p < c->n; p++)
      memcpy(to + ((size_t)p * (size_t)j->box.elements + (size_t)at) * c->item,
             c->data + (size_t)p * c->width * c->item, width * c->item);
    c->n = 0;
    return;
  }
  if (!c->n) ccn__defect(j->r, j->n, "reduces nothing");
  ccn__convert(q->t, to + (size_t)at * ccn__dtype_size(q->t), q->acc, ccn__counter_fold(c), width);
}

/* How the dims of a box are gone through. The dims behind the last reduced one are kept and lie together: `inner`
 * elements are reduced side by side. If there are none, the last reduced dims are runs of the tree in memory. */
typedef struct route {
  walk kept, reduced;
  int64_t inner, run, run_index; /* run: elements that follow each other, from run_index on */
} route;

static void plan_route(const reduction *q, const ccn__box *b, route *p) {
  int64_t stride[CCN__MAX_RANK];
  const uint32_t n = q->x->rank;
  uint32_t last = n; /* behind the last reduced dim */
  memset(p, 0, sizeof *p);
  ccn__strides(n, b->extent, stride);
  p->inner = p->run = 1;
  while (last > 0 && !q->reduced[last - 1]) p->inner *= b->extent[--last];
  uint32_t first = last; /* dims [first, last) are the run */
  if (p->inner == 1)
    for (bool whole = true; first > 0 && q->reduced[first - 1] && whole;) {
      first--;
      p->run *= b->extent[first];
      p->run_index += b->start[first] * q->weight[first];
      whole = b->extent[first] == q->x->dim[first];
    }
  for (uint32_t d = 0; d < first; d++) {
    walk *w = q->reduced[d] ? &p->reduced : &p->kept;
    walk_add(w, b->extent[d], stride[d], q->weight[d], q->reduced[d] ? b->start[d] : 0);
  }
}

static void reduce_runs(ccn__job *j, const reduction *q, const char *x, route *p, ccn__counter *c) {
  const size_t item = ccn__dtype_size(q->t);
  int64_t at = 0;
  do {
    do {
      ccn__counter_run(c, (uint64_t)(p->reduced.index + p->run_index), q->t,
                       x + (size_t)(p->kept.offset + p->reduced.offset) * item, (uint64_t)p->run);
      ccn__tick(j->r, p->run);
    } while (walk_on(&p->reduced));
    emit(j, q, c, at++, 1);
  } while (walk_on(&p->kept));
}

static void reduce_rows(ccn__job *j, const reduction *q, const char *x, route *p, ccn__counter *c,
                        int64_t first, size_t width) {
  _Alignas(64) char wide[CCN__BLOCK_BYTES];
  const size_t item = ccn__dtype_size(q->t);
  int64_t at = first;
  c->width = width;
  do {
    do {
      const void *row = x + (size_t)(p->kept.offset + p->reduced.offset + first) * item;
      if (q->t != q->acc) {
        ccn__convert(q->acc, wide, q->t, row, width);
        row = wide;
      }
      ccn__counter_push(c, (uint64_t)p->reduced.index, 0, row);
      ccn__tick(j->r, (int64_t)width);
    } while (walk_on(&p->reduced));
    emit(j, q, c, at, width);
    at += p->inner;
  } while (walk_on(&p->kept));
}

static void reduce_job(ccn__job *j) {
  const reduction *q = j->user;
  ccn__box b;
  route p;
  ccn__counter c;
  ccn__value_box(j->r, q->x, j->rank, &b);
  if (!q->x->piece[j->rank].buf) ccn__defect(j->r, j->n, "reads a value that does not exist on this rank");
  uint64_t nparts = 0;
  if (q->tree) {
    if (q->extent == 0) {
      part_of_nothing(j, q);
      return;
    }
    nparts = cover(q, &b, NULL);
    (void)new_parts(j, q->acc, nparts, j->box.elements);
    (void)cover(q, &b, j->piece->nodes->data);
  } else {
    char element[8], *to = ccn__job_new(j);
    if (q->extent == 0) {
      value_of_nothing(q->op, q->t, element);
      ccn__fill(to, element, ccn__dtype_size(q->t), (size_t)j->box.elements);
    }
  }
  if (b.elements == 0 || j->box.elements == 0) return;
  plan_route(q, &b, &p);
  const int64_t width = p.inner < CCN__BLOCK ? p.inner : CCN__BLOCK;
  ccn__counter_init(&c, &j->r->pool, q->op, q->acc, (size_t)width, nparts);
  const char *x = q->x->piece[j->rank].buf->data;
  if (p.inner == 1) reduce_runs(j, q, x, &p, &c);
  else
    for (int64_t e = 0; e < p.inner; e += width)
      reduce_rows(j, q, x, &p, &c, e, (size_t)(p.inner - e < width ? p.inner - e : width));
  ccn__counter_done(&c);
}

/* ---- per tensor of a bundle ------------------------------------------------------------------------------------------- */

/* What the flat piece [start, start + extent) has of a member, as indices inside the member. */
static bool inside(const struct ccn__member *m, const ccn__box *b, int64_t *first, int64_t *end) {
  const int64_t stop = b->start[0] + b->extent[0];
  *first = b->start[0] > m->start ? b->start[0] - m->start : 0;
  *end = (stop < m->start + m->elements ? stop : m->start + m->elements) - m->start;
  return *first < *end;
}

/* A member without elements has its value everywhere, or where it is distributed, on the first rank. */
static bool stands_for(const ccn__job *j, const reduction *q, const struct ccn__member *m) {
  return m->elements == 0 && (!q->tree || is_first(j, q->tree));
}

static void member_parts(ccn__job *j, const reduction *q, const ccn__members *ms, const ccn__box *b) {
  ccn__tree_node node[CCN__TREE_MAX];
  int64_t first, end;
  uint64_t n = 0;
  for (int pass = 0; pass < 2; pass++) { /* count, then write */
    ccn__part *part = pass ? j->piece->nodes->data : NULL;
    n = 0;
    for (uint32_t k = 0; k < ms->k; k++) {
      uint32_t m = 0;
      if (inside(&ms->at[k], b, &first, &end)) m = ccn__tree_cover((uint64_t)first, (uint64_t)end, node);
      else if (stands_for(j, q, &ms->at[k])) node[m++] = (ccn__tree_node){0, 0};
      for (uint32_t i = 0; part && i < m; i++) part[n + i] = (ccn__part){k, node[i].level, node[i].start};
      n += m;
    }
    if (!pass) (void)new_parts(j, q->acc, n, 1);
  }
}

static void member_job(ccn__job *j) {
  const reduction *q = j->user;
  const ccn__members *ms = j->r->x->bundle[q->x->bundle_id];
  const size_t item = ccn__dtype_size(q->t);
  ccn__box b;
  ccn__counter c;
  uint32_t at = 0;
  ccn__value_box(j->r, q->x, j->rank, &b);
  if (q->tree) member_parts(j, q, ms, &b);
  else (void)ccn__job_new(j);
  ccn__counter_init(&c, &j->r->pool, q->op, q->acc, 1, 66);
  const char *x = q->x->piece[j->rank].buf->data;
  char *to = j->piece->buf->data;
  for (uint32_t k = 0; k < ms->k; k++) {
    int64_t first, end;
    if (inside(&ms->at[k], &b, &first, &end)) {
      ccn__counter_run(&c, (uint64_t)first, q->t, x + (size_t)(ms->at[k].start + first - b.start[0]) * item,
                       (uint64_t)(end - first));
      ccn__tick(j->r, end - first);
    } else if (stands_for(j, q, &ms->at[k])) {
      char element[8];
      value_of_nothing(q->op, q->acc, element);
      ccn__counter_push(&c, 0, 0, element);
    }
    if (q->tree) {
      memcpy(to + (size_t)at * c.item, c.data, c.n * c.item);
      at += c.n;
      c.n = 0;
    } else if (c.n) {
      ccn__convert(q->t, to + (size_t)k * item, q->acc, ccn__counter_fold(&c), 1);
    }
  }
  ccn__counter_done(&c);
}

/* ---- the evaluator ------------------------------------------------------------------------------------------------------ */

static void find_dims(const ccn__node *n, reduction *q) {
  const ccn__attr *dims = ccn__attr_find(n->attrs, CCN__A_DIMS);
  for (uint32_t d = 0; d < q->x->rank; d++) q->reduced[d] = !dims;
  for (uint32_t i = 0; dims && i < dims->n; i++)
    if (dims->ints[i] >= 0 && dims->ints[i] < q->x->rank) q->reduced[dims->ints[i]] = true;
  q->extent = 1;
  for (uint32_t d = q->x->rank; d-- > 0;) {
    if (!q->reduced[d]) continue;
    q->weight[d] = q->extent;
    q->extent *= q->x->dim[d];
  }
}

static bool some_member_empty(const ccn__members *ms) {
  for (uint32_t k = 0; k < ms->k; k++)
    if (ms->at[k].elements == 0) return true;
  return false;
}

void ccn__eval_reduce(ccn__run *r, const ccn__node *n, ccn__id id) {
  ccn__value *out = r->value[id];
  reduction q = {.x = ccn__operand(r, n, 0), .op = ccn__op_redop((ccn__op)n->op)};
  const bool per = q.x->bundle == CCN__BUNDLE_TENSORS && ccn__attr_int(n->attrs, CCN__A_PER, 0);
  q.t = (ccn__dtype)q.x->dtype;
  q.acc = ccn__dtype_acc(q.t);
  find_dims(n, &q);
  for (uint32_t a = 0; a < r->mesh->naxes; a++)
    if (q.x->place[a].kind == CCN__SLICED && q.reduced[q.x->place[a].dim]) q.tree |= (uint8_t)(1u << a);
  const bool chooses = n->op == CCN__OP_MAX || n->op == CCN__OP_MIN;
  if (chooses && (per ? some_member_empty(r->x->bundle[q.x->bundle_id]) : q.extent == 0))
    nothing_to_choose(r, n);
  out->tree = q.tree;
  out->per = per;
  out->redop = (uint8_t)q.op;
  ccn__each_rank(r, n, out, per ? member_job : reduce_job, &q);
}

/* ---- merging parts -------------------------------------------------------------------------------------------------------- */

/* Goes through the parts of several ranks in order of (member, start); their index sets are disjoint. */
typedef struct merger {
  const ccn__value *x;
  const ccn__ranks *from;
  uint32_t at[CCN__MAX_RANKS];
} merger;

static const ccn__part *next_part(merger *m, uint32_t *out_rank, uint32_t *out_index) {
  const ccn__part *best = NULL;
  uint32_t which = 0;
  for (uint32_t i = 0; i < m->from->n; i++) {
    const ccn__piece *p = &m->x->piece[m->from->at[i]];
    if (m->at[i] >= p->nparts) continue;
    const ccn__part *c = (const ccn__part *)p->nodes->data + m->at[i];
    if (best && (c->member > best->member || (c->member == best->member && c->start >= best->start)))
      continue;
    best = c;
    which = i;
  }
  if (!best) return NULL;
  *out_rank = m->from->at[which];
  *out_index = m->at[which]++;
  return best;
}

static uint64_t count_parts(const ccn__value *x, const ccn__ranks *from) {
  uint64_t n = 0;
  for (uint32_t i = 0; i < from->n; i++) n += x->piece[from->at[i]].nparts;
  return n;
}

/* The folded value of what was pushed, or the neutral one, divided and rounded to the dtype. */
static void fold_out(ccn__counter *c, ccn__dtype t, char *to, size_t width, int64_t average) {
  if (c->n == 0) {
    char element[8];
    ccn__redop_table[c->op].identity(c->acc, element);
    ccn__fill(c->data, element, c->item, width);
    c->n = 1;
    c->node[0] = (ccn__part){0, 0, 0};
  }
  void *x = (void *)(uintptr_t)ccn__counter_fold(c); /* the counter's own memory */
  if (average > 1) ccn__redop_divide(c->acc, x, width, average);
  ccn__convert(t, to, c->acc, x, width);
}

/* The nodes that remain when complete siblings have combined. */
static uint64_t merged_nodes(ccn__job *j, const ccn__value *x, const ccn__ranks *from, ccn__counter *c) {
  merger m = {.x = x, .from = from};
  uint32_t rank, index;
  const ccn__part *p;
  ccn__counter_init(c, &j->r->pool, (ccn__redop)x->redop, ccn__dtype_acc((ccn__dtype)x->dtype), 0,
                    count_parts(x, from));
  while ((p = next_part(&m, &rank, &index))) ccn__counter_push(c, p->start, p->level, c->data);
  return c->n;
}

static void push_block(ccn__job *j, const ccn__value *x, const ccn__ranks *from, ccn__counter *c,
                       int64_t first) {
  _Alignas(64) char raw[CCN__BLOCK_BYTES];
  merger m = {.x = x, .from = from};
  uint32_t rank, index;
  const ccn__part *p;
  while ((p = next_part(&m, &rank, &index))) {
    ccn__box b;
    ccn__view v;
    ccn__value_box(j->r, x, rank, &b);
    const char *base = (const char *)x->piece[rank].buf->data + (size_t)index * (size_t)b.elements * c->item;
    ccn__view_at(j->r, j->n, &v, x, rank, base, c->item, j->out->rank, j->out->dim, &j->box);
    ccn__counter_push(c, p->start, p->level, ccn__view_block(&v, first, c->width, raw));
    ccn__tick(j->r, (int64_t)c->width);
  }
}

static void merge_vectors(ccn__job *j, const ccn__value *x, const ccn__ranks *from, int64_t average) {
  const ccn__dtype t = (ccn__dtype)x->dtype, acc = ccn__dtype_acc(t);
  const int64_t n = j->box.elements;
  ccn__counter c;
  char *to;
  if (j->out->tree) {
    const uint64_t nparts = merged_nodes(j, x, from, &c);
    to = new_parts(j, acc, nparts, n);
    memcpy(j->piece->nodes->data, c.node, (size_t)nparts * sizeof *c.node);
    ccn__counter_done(&c);
  } else {
    to = ccn__job_new(j);
  }
  const int64_t width = n < CCN__BLOCK ? n : CCN__BLOCK;
  ccn__counter_init(&c, &j->r->pool, (ccn__redop)x->redop, acc, (size_t)width, count_parts(x, from));
  for (int64_t e = 0; e < n; e += CCN__BLOCK) {
    c.width = (size_t)(n - e < width ? n - e : width);
    push_block(j, x, from, &c, e);
    if (!j->out->tree) {
      fold_out(&c, t, to + (size_t)e * ccn__dtype_size(t), c.width, average);
      continue;
    }
    for (uint32_t p = 0; p < c.n; p++) {
      char *part = to + ((size_t)p * (size_t)n + (size_t)e) * c.item;
      memcpy(part, c.data + (size_t)p * c.width * c.item, c.width * c.item);
      if (average > 1) ccn__redop_divide(acc, part, c.width, average);
    }
    c.n = 0;
  }
  ccn__counter_done(&c);
}

/* Per tensor: the parts of one member after the other, each one element. */
static void merge_members(ccn__job *j, const ccn__value *x, const ccn__ranks *from, int64_t average) {
  const ccn__dtype t = (ccn__dtype)x->dtype, acc = ccn__dtype_acc(t);
  const uint64_t most = count_parts(x, from);
  const int64_t end = j->box.start[0] + j->box.extent[0];
  ccn__counter c;
  merger m = {.x = x, .from = from};
  uint32_t rank = 0, index = 0, kept = 0;
  char *to = j->out->tree ? new_parts(j, acc, most, 1) : ccn__job_new(j);
  ccn__counter_init(&c, &j->r->pool, (ccn__redop)x->redop, acc, 1, most);
  const ccn__part *p = next_part(&m, &rank, &index);
  for (int64_t k = 0; k < end; k++) {
    for (; p && p->member == (uint64_t)k; p = next_part(&m, &rank, &index))
      ccn__counter_push(&c, p->start, p->level,
                        (const char *)x->piece[rank].buf->data + (size_t)index * c.item);
    if (j->out->tree) {
      for (uint32_t i = 0; i < c.n; i++, kept++) {
        ((ccn__part *)j->piece->nodes->data)[kept] =
          (ccn__part){(uint32_t)k, c.node[i].level, c.node[i].start};
        memcpy(to + (size_t)kept * c.item, c.data + i * c.item, c.item);
        if (average > 1) ccn__redop_divide(acc, to + (size_t)kept * c.item, 1, average);
      }
    } else if (k >= j->box.start[0]) {
      fold_out(&c, t, to + (size_t)(k - j->box.start[0]) * ccn__dtype_size(t), 1, average);
    }
    c.n = 0;
  }
  if (j->out->tree) j->piece->nparts = kept;
  ccn__counter_done(&c);
}

void ccn__merge_parts(ccn__job *j, const ccn__value *x, const ccn__ranks *from, int64_t average) {
  if (x->per) merge_members(j, x, from, average);
  else merge_vectors(j, x, from, average);
}

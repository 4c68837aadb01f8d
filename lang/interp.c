/* interp.c: the driver of the reference interpreter: walks regions, keeps values as long as somebody needs them,
 * shares replicated pieces, and makes an error leave nothing behind.
 *
 * Everything a run makes is in its pool and its arena; both are dropped at the end, whatever happened. What callers
 * keep (results, stores of updates) is moved to the runtime's pool when nothing can fail any more.
 * SPDX-License-Identifier: Apache-2.0 */
#include "interp_eval.h"

static ccn__eval_fn *const evaluators[CCN__OP_COUNT] = {
#define OP(id, name, kind, nin, sig, prule, dtypes, result, build, eval, kernel, params, doc) \
  [CCN__OP_##id] = ccn__eval_##eval,
#include "ops.def"
#undef OP
};

/* ---- messages ------------------------------------------------------------------------------------------------- */

const char *ccn__node_name(const ccn__node *n) {
  return n->name ? n->name : n->autoname ? n->autoname : ccn__op_table[n->op].name;
}

static void note_call(ccn__run *r, const ccn__node *n, ccn__diag *d) {
  if (n->call.source) ccn__note(r->rt->diags, d, n->call, "in the program called here");
}

void ccn__node_raise(ccn__run *r, const ccn__node *n, ccn__diag *d) {
  note_call(r, n, d);
  ccn__rt_raise(r->rt, d);
}

void ccn__defect(ccn__run *r, const ccn__node *n, const char *what) {
  ccn__diag *d = ccn__error(r->rt->diags, 699, n->span, "while this was computed", "internal error: `%s` %s",
                            ccn__node_name(n), what);
  note_call(r, n, d);
  ccn__throw(r->rt->heap, CCN_INTERNAL);
}

const char *ccn__index_text(ccn__run *r, uint32_t ndims, const ccn__box *box, int64_t i) {
  int64_t at[CCN__MAX_RANK];
  ccn__text t;
  ccn__text_init(&t, &r->arena);
  for (uint32_t d = ndims; d-- > 0;) {
    at[d] = box->start[d] + i % box->extent[d];
    i /= box->extent[d];
  }
  ccn__text_putc(&t, '[');
  for (uint32_t d = 0; d < ndims; d++) ccn__text_printf(&t, d ? ", %lld" : "%lld", (long long)at[d]);
  ccn__text_putc(&t, ']');
  return t.at;
}

void ccn__index_raise(ccn__job *j, uint32_t ndims, const ccn__box *box, int64_t i, int64_t index,
                      int64_t extent) {
  ccn__run *r = j->r;
  ccn__diag *d =
    ccn__error(r->rt->diags, 605, j->n->span, "an index is outside",
               "index %lld is outside the extent %lld in `%s`, element %s of the indices", (long long)index,
               (long long)extent, ccn__node_name(j->n), ccn__index_text(r, ndims, box, i));
  ccn__node_raise(r, j->n, d);
}

/* ---- values --------------------------------------------------------------------------------------------------- */

ccn__value *ccn__value_new(ccn__run *r) {
  ccn__value *v = CCN__NEW(&r->arena, ccn__value);
  v->piece = CCN__NEWN(&r->arena, ccn__piece, r->world);
  v->naxes = (uint8_t)r->mesh->naxes;
  v->all = r->all;
  return r->all = v;
}

static void piece_release(ccn__piece *p) {
  ccn__buf_unref(p->buf);
  ccn__buf_unref(p->nodes);
  *p = (ccn__piece){NULL, NULL, 0};
}

void ccn__value_release(ccn__run *r, ccn__value *v) {
  if (!v) return;
  for (uint32_t k = 0; k < r->world; k++) piece_release(&v->piece[k]);
  v->tree = v->nan = 0;
  v->filled = v->per = false;
  if (v->folded) ccn__value_release(r, v->folded);
  for (uint32_t i = 0; i < v->nstate; i++) ccn__value_release(r, v->state[i]);
}

void ccn__piece_share(ccn__piece *to, const ccn__piece *from) {
  *to = *from;
  if (to->buf) ccn__buf_ref(to->buf);
  if (to->nodes) ccn__buf_ref(to->nodes);
}

void ccn__value_share(ccn__run *r, ccn__value *to, const ccn__value *from) {
  to->tree = from->tree;
  to->per = from->per;
  to->redop = from->redop;
  for (uint32_t k = 0; k < r->world; k++)
    if (ccn__rank_has(r->mesh, k, to->place)) ccn__piece_share(&to->piece[k], &from->piece[k]);
}

void ccn__value_box(ccn__run *r, const ccn__value *v, uint32_t rank, ccn__box *out) {
  ccn__box_of(r->mesh, rank, v->rank, v->dim, v->place, out);
}

int64_t ccn__run_dim(ccn__run *r, const ccn__node *n, const ccn__dim *d) {
  int64_t value;
  const char *wrong = ccn__dim_eval(d, r->x->sym, &value);
  if (wrong) ccn__defect(r, n, "has an extent that was not checked");
  return value;
}

ccn__number ccn__run_number(ccn__run *r, const ccn__node *n, ccn__attr_key key) {
  const ccn__attr *a = ccn__attr_find(n->attrs, key);
  ccn__number v;
  if (!a || ccn__lit_eval(a->lit, r->x->sym, &v) || v.unknown)
    ccn__defect(r, n, "has a number that was not checked");
  return v;
}

static ccn__cplace concrete_place(ccn__run *r, const ccn__node *n, uint32_t axis) {
  const ccn__place *p = &n->type->place[axis];
  const int32_t size = r->mesh->size[axis];
  ccn__cplace c = {.kind = p->kind, .op = p->op, .dim = p->dim, .unit = 1};
  if (p->kind == CCN__AT) c.coord = (p->coord % size + size) % size;
  if (p->unit) c.unit = ccn__run_dim(r, n, p->unit);
  return c;
}

/* The node's value with its sizes and placements, without buffers. */
ccn__value *ccn__value_prepare(ccn__run *r, ccn__id id) {
  const ccn__node *n = &r->g->nodes.at[id];
  ccn__value *v = r->value[id];
  if (v) { /* again, in a repeat */
    ccn__value_release(r, v);
    return v;
  }
  const ccn__type *t = n->type;
  v = ccn__value_new(r);
  v->dtype = t->dtype;
  v->rank = t->rank;
  v->bundle = t->bundle;
  v->bundle_id = t->bundle_id;
  for (uint32_t d = 0; d < t->rank; d++) v->dim[d] = ccn__run_dim(r, n, t->dim[d]);
  for (uint32_t a = 0; a < r->mesh->naxes; a++) v->place[a] = concrete_place(r, n, a);
  return r->value[id] = v;
}

ccn__value *ccn__operand_raw(ccn__run *r, const ccn__node *n, uint32_t i) {
  if (i >= n->nin || !r->value[n->in[i]]) ccn__defect(r, n, "has an operand that was not computed");
  return r->value[n->in[i]];
}

ccn__value *ccn__operand(ccn__run *r, const ccn__node *n, uint32_t i) {
  return ccn__fold(r, n, ccn__operand_raw(r, n, i));
}

/* ---- ranks ---------------------------------------------------------------------------------------------------- */

void *ccn__job_new(ccn__job *j) {
  j->piece->buf =
    ccn__buf_new(&j->r->pool, (size_t)j->box.elements * ccn__dtype_size((ccn__dtype)j->out->dtype));
  return j->piece->buf->data;
}

void ccn__each_rank(ccn__run *r, const ccn__node *n, ccn__value *out, ccn__job_fn *f, void *user) {
  ccn__job j = {.r = r, .n = n, .out = out, .user = user};
  for (uint32_t k = 0; k < r->world; k++) {
    if (!ccn__rank_has(r->mesh, k, out->place)) continue;
    const uint32_t twin = ccn__rank_twin(r->mesh, k, out->place);
    if (twin != k && !r->unshared) {
      ccn__piece_share(&out->piece[k], &out->piece[twin]);
      continue;
    }
    j.rank = k;
    atomic_store_explicit(&r->rt->rank, k, memory_order_relaxed);
    j.piece = &out->piece[k];
    ccn__value_box(r, out, k, &j.box);
    f(&j);
    ccn__rt_poll(r->rt);
  }
}

static bool same_bytes(const ccn__buf *x, const ccn__buf *y) {
  if (!x || !y) return x == y;
  return x == y || (x->bytes == y->bytes && memcmp(x->data, y->data, x->bytes) == 0);
}

/* What the placement promises: with `unshared` each rank has computed its piece alone. */
static void check_replicas(ccn__run *r, const ccn__node *n, const ccn__value *v) {
  for (uint32_t k = 0; k < r->world; k++) {
    if (!ccn__rank_has(r->mesh, k, v->place)) continue;
    const ccn__piece *p = &v->piece[k], *q = &v->piece[ccn__rank_twin(r->mesh, k, v->place)];
    if (!same_bytes(p->buf, q->buf) || !same_bytes(p->nodes, q->nodes))
      ccn__defect(r, n, "replicated value differs between ranks");
  }
}

/* ---- owed values: from parts to one value a rank -------------------------------------------------------------- */

static void fold_job(ccn__job *j) {
  const ccn__ranks own = {.n = 1, .at = {j->rank}};
  ccn__merge_parts(j, j->user, &own, 1);
}

ccn__value *ccn__fold(ccn__run *r, const ccn__node *n, ccn__value *v) {
  if (!v->tree) return v;
  ccn__value *f = v->folded;
  if (!f) f = v->folded = ccn__value_new(r);
  if (f->filled) return f;
  f->dtype = v->dtype;
  f->rank = v->rank;
  f->bundle = v->bundle;
  f->bundle_id = v->bundle_id;
  memcpy(f->dim, v->dim, sizeof f->dim);
  memcpy(f->place, v->place, sizeof f->place);
  ccn__each_rank(r, n, f, fold_job, v);
  f->filled = true;
  return f;
}

/* ---- regions -------------------------------------------------------------------------------------------------- */

void ccn__run_node(ccn__run *r, ccn__id id) {
  const ccn__node *n = &r->g->nodes.at[id];
  ccn__rt_poll(r->rt);
  r->rt->nops++;
  ccn__value_prepare(r, id);
  evaluators[n->op](r, n, id);
  ccn__count_traffic(r, n, id);
}

static void run_region(ccn__run *r, uint32_t region) {
  const ccn_options *o = r->rt->options;
  for (ccn__id id = r->first[region]; id != CCN__NO_ID; id = r->next[id]) {
    const ccn__node *n = &r->g->nodes.at[id];
    ccn__run_node(r, id);
    if (r->unshared) check_replicas(r, n, r->value[id]);
    if (o && o->check_nan) ccn__check_nan(r, n, id);
    if (o && o->nwatch) ccn__watch_node(r, n, id);
    for (ccn__id v = r->free_first[id]; v != CCN__NO_ID; v = r->free_next[v])
      ccn__value_release(r, r->value[v]);
  }
}

void ccn__eval_none(ccn__run *r, const ccn__node *n, ccn__id id) {
  (void)id;
  ccn__defect(r, n, "should have been composed of other ops");
}

void ccn__eval_on(ccn__run *r, const ccn__node *n, ccn__id id) {
  (void)id;
  run_region(r, n->body);
}

/* What an iteration left: its values are made anew in the next one. */
static void release_region(ccn__run *r, uint32_t region) {
  for (ccn__id id = r->first[region]; id != CCN__NO_ID; id = r->next[id]) {
    const uint16_t op = r->g->nodes.at[id].op;
    if (op != CCN__OP_UPDATE)
      ccn__value_release(r, r->value[id]); /* what is to be stored is the last iteration's */
    if (op == CCN__OP_ON) release_region(r, r->g->nodes.at[id].body);
  }
}

/* A value of the loop's state. Placements are the CARRY's, which are the operand's. */
static void keep(ccn__run *r, ccn__value *to, const ccn__value *from) {
  memcpy(to->place, from->place, sizeof to->place);
  ccn__value_share(r, to, from);
}

void ccn__eval_repeat(ccn__run *r, const ccn__node *n, ccn__id id) {
  const ccn__region *body = &r->g->regions.at[n->body];
  const uint32_t k = body->nyield;
  const ccn__number times = ccn__run_number(r, n, CCN__A_TIMES);
  ccn__value *v = r->value[id];
  if (!v->state) { /* the state, then room for the next one */
    v->state = CCN__NEWN(&r->arena, ccn__value *, 2 * (size_t)k);
    v->nstate = 0;
    for (; v->nstate < 2 * k; v->nstate++) v->state[v->nstate] = ccn__value_new(r);
  }
  for (uint32_t i = 0; i < k; i++) keep(r, v->state[i], ccn__operand_raw(r, n, i));
  for (int64_t t = 0; t < times.i; t++) {
    run_region(r, n->body);
    for (uint32_t i = 0; i < k; i++) keep(r, v->state[k + i], r->value[body->yield[i]]);
    for (uint32_t i = 0; i < k; i++) {
      ccn__value *old = v->state[i];
      v->state[i] = v->state[k + i];
      ccn__value_release(r, v->state[k + i] = old);
    }
    release_region(r, n->body);
  }
}

static void take_state(ccn__run *r, const ccn__node *n, ccn__id id, ccn__id repeat) {
  const ccn__value *v = repeat == CCN__NO_ID ? NULL : r->value[repeat];
  const int64_t i = ccn__attr_int(n->attrs, CCN__A_NUMBER, 0);
  if (!v || i < 0 || i >= (int64_t)v->nstate / 2) ccn__defect(r, n, "belongs to no repeat");
  ccn__value_share(r, r->value[id], v->state[i]);
}

void ccn__eval_carry(ccn__run *r, const ccn__node *n, ccn__id id) {
  take_state(r, n, id, r->g->regions.at[n->region].owner);
}

void ccn__eval_result(ccn__run *r, const ccn__node *n, ccn__id id) { take_state(r, n, id, n->in[0]); }

/* ---- who needs what how long ---------------------------------------------------------------------------------- */

/* The innermost REPEAT in which a region stands: values made inside live for one iteration. */
static ccn__id loop_of(const ccn__graph *g, uint32_t region) {
  while (region) {
    const ccn__id owner = g->regions.at[region].owner;
    if (g->nodes.at[owner].op == CCN__OP_REPEAT) return owner;
    region = g->nodes.at[owner].region;
  }
  return CCN__NO_ID;
}

/* The node, in v's own loop, during which `user` reads v. */
static ccn__id reader(const ccn__graph *g, ccn__id v, ccn__id user) {
  const ccn__id home = loop_of(g, g->nodes.at[v].region);
  for (ccn__id loop; (loop = loop_of(g, g->nodes.at[user].region)) != home && loop != CCN__NO_ID;)
    user = loop;
  return user;
}

/* Numbers nodes in the order in which they are done; ON and REPEAT are done behind their bodies. */
static void number(const ccn__run *r, uint32_t region, uint32_t *at, uint32_t *count) {
  for (ccn__id id = r->first[region]; id != CCN__NO_ID; id = r->next[id]) {
    if (r->g->nodes.at[id].body) number(r, r->g->nodes.at[id].body, at, count);
    at[id] = (*count)++;
  }
}

static void link_regions(ccn__run *r) {
  const ccn__graph *g = r->g;
  for (uint32_t i = 0; i < g->regions.n; i++) r->first[i] = CCN__NO_ID;
  for (ccn__id id = g->nodes.n; id-- > 0;) {
    r->next[id] = r->first[g->nodes.at[id].region];
    r->first[g->nodes.at[id].region] = id;
  }
}

static void find_last_uses(ccn__run *r) {
  const ccn__graph *g = r->g;
  const uint32_t n = g->nodes.n;
  ccn__id *last = CCN__NEWN(&r->arena, ccn__id, n);
  uint32_t *at = CCN__NEWN(&r->arena, uint32_t, n), count = 0;
  number(r, 0, at, &count);
  for (ccn__id id = 0; id < n; id++) {
    r->free_first[id] = CCN__NO_ID;
    last[id] = id;
  }
  for (ccn__id id = 0; id < n; id++)
    for (uint32_t i = 0; i < g->nodes.at[id].nin; i++) {
      const ccn__id v = g->nodes.at[id].in[i], u = reader(g, v, id);
      if (at[u] > at[last[v]]) last[v] = u;
    }
  /* kept to the end: what is returned or stored; to the end of its iteration: what is yielded */
  for (uint32_t i = 0; i < g->noutputs; i++) last[g->outputs[i]] = CCN__NO_ID;
  for (uint32_t i = 0; i < g->params.n; i++)
    if (g->params.at[i].update != CCN__NO_ID) last[g->params.at[i].update] = CCN__NO_ID;
  for (uint32_t i = 0; i < g->regions.n; i++)
    for (uint32_t k = 0; k < g->regions.at[i].nyield; k++) last[g->regions.at[i].yield[k]] = CCN__NO_ID;
  for (ccn__id id = 0; id < n; id++) {
    if (last[id] == CCN__NO_ID) continue;
    r->free_next[id] = r->free_first[last[id]];
    r->free_first[last[id]] = id;
  }
}

/* ---- a run ---------------------------------------------------------------------------------------------------- */

ccn__tensor *ccn__result_tensor(ccn__run *r, const ccn__value *v) {
  ccn__tensor *t = ccn__tensor_new(r->rt, (ccn__dtype)v->dtype, v->rank);
  memcpy(t->dim, v->dim, sizeof t->dim);
  t->naxes = v->naxes;
  memcpy(t->place, v->place, sizeof v->place);
  t->world = r->world;
  if (!v->bundle) return t;
  const ccn__members *m = r->x->bundle[v->bundle_id];
  const size_t bytes = sizeof *m + m->k * sizeof m->at[0];
  t->members = ccn__heap_alloc(r->rt->heap, bytes);
  memcpy(t->members, m, bytes);
  t->bundle = v->bundle;
  return t;
}

/* A piece for the caller. Cannot fail. */
static ccn__buf *keep_buf(ccn__run *r, ccn__buf *b) {
  if (!b) return NULL;
  ccn__buf_move(b, &r->rt->pool);
  return ccn__buf_ref(b);
}

/* What leaves the run, or is stored, may not stand in memory of the host that this or a later store writes. */
static void own_pieces(ccn__run *r, ccn__value *v) {
  for (uint32_t k = 0; k < r->world; k++) {
    ccn__buf *b = v->piece[k].buf;
    if (!b || !b->outside) continue;
    ccn__buf *own = ccn__buf_new(&r->pool, b->bytes);
    if (b->bytes) memcpy(own->data, b->data, b->bytes);
    for (uint32_t j = k; j < r->world; j++) {
      if (v->piece[j].buf != b) continue;
      v->piece[j].buf = j == k ? own : ccn__buf_ref(own);
      ccn__buf_unref(b); /* the argument's tensor holds it too */
    }
  }
}

/* The new bytes take the place of the old ones; in memory of the host they are written over them. */
static void store_piece(ccn__run *r, ccn__tensor *t, uint32_t k, ccn__buf *b) {
  ccn__buf *old = t->buf[k];
  if (old && old->outside) {
    if (b && old->bytes) memcpy(old->data, b->data, old->bytes);
    return;
  }
  t->buf[k] = keep_buf(r, b);
  ccn__buf_unref(old);
}

void ccn__run_finish(ccn__run *r) {
  const ccn__graph *g = r->g;
  ccn__value **store = CCN__NEWN(&r->arena, ccn__value *, g->params.n);
  ccn__value **out = CCN__NEWN(&r->arena, ccn__value *, g->noutputs);
  for (uint32_t i = 0; i < g->noutputs; i++) {
    out[i] = ccn__fold(r, &g->nodes.at[g->outputs[i]], r->value[g->outputs[i]]);
    own_pieces(r, out[i]);
    r->x->result[i] = ccn__result_tensor(r, out[i]);
  }
  for (uint32_t i = 0; i < g->params.n; i++) {
    const ccn__id u = g->params.at[i].update;
    if (u == CCN__NO_ID || !r->value[u] || r->rt->trial) continue;
    store[i] = ccn__fold(r, &g->nodes.at[u], r->value[u]);
    own_pieces(r, store[i]);
  }
  /* from here on nothing fails */
  for (uint32_t i = 0; i < g->noutputs; i++)
    for (uint32_t k = 0; k < r->world; k++) r->x->result[i]->buf[k] = keep_buf(r, out[i]->piece[k].buf);
  for (uint32_t i = 0; i < g->params.n; i++) {
    if (!store[i]) continue;
    for (uint32_t k = 0; k < r->world; k++) store_piece(r, r->x->arg[i], k, store[i]->piece[k].buf);
  }
}

static void start(ccn__run *r) {
  const ccn__graph *g = r->g;
  r->value = CCN__NEWN(&r->arena, ccn__value *, g->nodes.n);
  r->next = CCN__NEWN(&r->arena, ccn__id, g->nodes.n);
  r->free_first = CCN__NEWN(&r->arena, ccn__id, g->nodes.n);
  r->free_next = CCN__NEWN(&r->arena, ccn__id, g->nodes.n);
  r->first = CCN__NEWN(&r->arena, ccn__id, g->regions.n);
  link_regions(r);
  find_last_uses(r);
}

static void run(ccn__run *r, void *user) {
  (void)user;
  run_region(r, 0);
  ccn__run_finish(r);
}

/* Arguments' buffers, and those given away, are counted; the run's own just go. */
static void drop(ccn__run *r) {
  for (ccn__value *v = r->all; v; v = v->all)
    for (uint32_t k = 0; k < r->world; k++) {
      if (v->piece[k].buf && v->piece[k].buf->pool != &r->pool) ccn__buf_unref(v->piece[k].buf);
      if (v->piece[k].nodes && v->piece[k].nodes->pool != &r->pool) ccn__buf_unref(v->piece[k].nodes);
    }
  ccn__pool_clear(&r->pool);
  ccn__arena_free(&r->arena);
  ccn__heap_free(r->rt->heap, r, sizeof *r);
}

void ccn__interp_with(ccn__exec *x, ccn__run_fn *body, void *user) {
  ccn__heap *h = x->rt->heap;
  ccn__trap trap;
  ccn__run *r =
    ccn__heap_alloc(h, sizeof *r); /* on the heap: what is changed before a throw is read after it */
  r->x = x;
  r->rt = x->rt;
  r->g = x->g;
  r->mesh = &x->g->mesh;
  r->world = ccn__mesh_world(r->mesh);
  r->unshared = x->unshared;
  r->pool.heap = h;
  ccn__arena_init(&r->arena, h);
  CCN__TRY(h, trap)
  {
    start(r);
    body(r, user);
  }
  CCN__CATCH(h, trap)
  {
    drop(r);
    ccn__throw(h, trap.status);
  }
  drop(r);
}

void ccn__interp(ccn__exec *x) { ccn__interp_with(x, run, NULL); }

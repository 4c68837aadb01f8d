/* emit_loop.c: the loops of a kernel as functions: pieces of rows, vectors of elements, and a scalar tail.
 *
 *   for each row in [begin, end): where it begins in every buffer; values of the row
 *     for each piece of it that ends with the row, or with a block of a reduction's tree
 *       vectors, then single elements; then the block's node
 *
 * The vectors are explicit: what LLVM's vectoriser would have to prove about buffers is not its business.
 * SPDX-License-Identifier: Apache-2.0 */
#include "emit.h"

#include <stdio.h>

enum { CACHE_LINE = 64 };

static ccn__v add(ccn__emit *e, ccn__v a, ccn__v b) { return LLVMBuildAdd(e->b, a, b, ""); }
static ccn__v sub(ccn__emit *e, ccn__v a, ccn__v b) { return LLVMBuildSub(e->b, a, b, ""); }
static ccn__v mul(ccn__emit *e, ccn__v a, ccn__v b) { return LLVMBuildMul(e->b, a, b, ""); }
static ccn__v least(ccn__emit *e, ccn__v a, ccn__v b) {
  return LLVMBuildSelect(e->b, LLVMBuildICmp(e->b, LLVMIntSLT, a, b, ""), a, b, "");
}
static ccn__v index_of(ccn__emit *e, uint32_t i) { return ccn__e_i64(e, i); }
static ccn__v lane(const ccn__emit *e, unsigned i) { return LLVMConstInt(e->i32, i, 0); }

/* ---- where elements are -------------------------------------------------------------------------------- */

/* The step along the innermost dim. */
static ccn__v step_of(ccn__emit *e, const ccn__kmap *m) {
  return m->inner == 2 ? ccn__e_number(e, m->par + e->l->depth) : ccn__e_i64(e, m->inner);
}

/* Element offset at which the row of these outer indices begins; j counts from there. */
static ccn__v row_offset(ccn__emit *e, const ccn__kmap *m, ccn__v *outer, ccn__v member) {
  if (m->member) return member;
  ccn__v at = ccn__e_number(e, m->par);
  for (uint32_t d = 0; d + 1 < e->l->depth; d++)
    at = add(e, at, mul(e, outer[d], ccn__e_number(e, m->par + 1 + d)));
  return at;
}

/* Of element j of the row whose base is given. */
static ccn__v element_ptr(ccn__emit *e, const ccn__kmap *m, ccn__v base, ccn__v j, size_t item) {
  if (m->member || m->inner == 0) return base;
  return ccn__e_at(e, base, m->inner == 1 ? j : mul(e, j, step_of(e, m)), item);
}

static bool apart(const ccn__emit *e, const ccn__kmap *m) { /* elements of a vector do not lie together */
  return e->lanes > 1 && (m->member || m->inner != 1);
}

static ccn__v load_through(ccn__emit *e, ccn__dtype t, const ccn__kmap *m, ccn__v base, ccn__v j) {
  const size_t item = ccn__dtype_size(t);
  if (!apart(e, m)) return ccn__e_load(e, t, element_ptr(e, m, base, j, item));
  const unsigned lanes = e->lanes;
  ccn__v r = LLVMGetPoison(ccn__e_type(e, ccn__e_memory(e, t)));
  for (unsigned i = 0; i < lanes; i++) {
    const ccn__v p = element_ptr(e, m, base, add(e, j, ccn__e_i64(e, i)), item);
    const ccn__v x = LLVMBuildLoad2(e->b, ccn__e_memory(e, t), p, "");
    LLVMSetAlignment(x, (unsigned)item);
    r = LLVMBuildInsertElement(e->b, r, x, lane(e, i), "");
  }
  return ccn__e_from_memory(e, t, r);
}

static void store_through(ccn__emit *e, ccn__dtype t, const ccn__kmap *m, ccn__v base, ccn__v j, ccn__v x) {
  const size_t item = ccn__dtype_size(t);
  if (!apart(e, m)) {
    ccn__e_store(e, t, element_ptr(e, m, base, j, item), x);
    return;
  }
  const unsigned lanes = e->lanes;
  for (unsigned i = 0; i < lanes; i++) {
    const ccn__v one = LLVMBuildExtractElement(e->b, x, lane(e, i), "");
    const ccn__v p = element_ptr(e, m, base, add(e, j, ccn__e_i64(e, i)), item);
    e->lanes = 1;
    ccn__e_store(e, t, p, one);
    e->lanes = lanes;
  }
}

/* ---- values -------------------------------------------------------------------------------------------- */

/* Value i as the present number of lanes wants it. */
static ccn__v get(ccn__emit *e, uint32_t i) {
  const ccn__kval *v = &e->l->vals.at[i];
  if (v->rate == CCN__RATE_CALL) return ccn__e_splat(e, e->once[i]);
  if (v->rate == CCN__RATE_ROW && e->lanes == 1) return e->row[i];
  if (v->rate == CCN__RATE_ROW) return ccn__e_splat(e, e->row[i]);
  return e->elem[i];
}

static ccn__v constant(ccn__emit *e, ccn__dtype t, uint64_t bits) {
  double d = ccn__load_f64(t, &bits);
  if (t == CCN__BOOL) return LLVMConstInt(e->i1, bits & 1, 0);
  if (t == CCN__F64 || t == CCN__F32) {
    const LLVMTypeRef i = t == CCN__F64 ? e->i64 : e->i32;
    return LLVMConstBitCast(LLVMConstInt(i, bits, 0), ccn__e_memory(e, t));
  }
  if (ccn__dtype_is_float(t)) return LLVMConstReal(e->f32, d);
  return LLVMConstInt(ccn__e_memory(e, t), bits, 0);
}

static ccn__v number(ccn__emit *e, const ccn__kval *v) {
  const ccn__dtype t = (ccn__dtype)v->dtype;
  const unsigned lanes = e->lanes;
  ccn__v x = ccn__e_number(e, v->par);
  e->lanes = 1;
  if (t == CCN__F64) x = LLVMBuildBitCast(e->b, x, e->f64, "");
  else if (t == CCN__F32) x = LLVMBuildBitCast(e->b, LLVMBuildTrunc(e->b, x, e->i32, ""), e->f32, "");
  else if (t != CCN__I64) x = LLVMBuildTrunc(e->b, x, ccn__e_memory(e, t), "");
  x = ccn__e_from_memory(e, t, x);
  e->lanes = lanes;
  return x;
}

static ccn__v index_value(ccn__emit *e, const ccn__kmap *m, ccn__v base, ccn__v j) {
  const ccn__v step = step_of(e, m);
  ccn__v at = ccn__e_splat(e, add(e, base, mul(e, j, step)));
  if (e->lanes == 1 || m->inner == 0) return at;
  ccn__v count[64];
  for (unsigned i = 0; i < e->lanes; i++) count[i] = ccn__e_i64(e, i);
  const ccn__v ramp = LLVMConstVector(count, e->lanes);
  return add(e, at, m->inner == 1 ? ramp : mul(e, ramp, ccn__e_splat(e, step)));
}

static ccn__v combine(ccn__emit *e, const ccn__kval *v, ccn__v a, ccn__v b) {
  const ccn__dtype acc = ccn__dtype_acc((ccn__dtype)v->dtype);
  return ccn__e_kernel(e, ccn__e_redop((ccn__redop)v->fn), acc, a, b, NULL, NULL);
}

/* Where the row begins in the memory that word p of the pointer table points to. */
static ccn__v peer_row(ccn__emit *e, ccn__dtype t, ccn__v p, ccn__v offset) {
  return ccn__e_at(e, ccn__e_ptr(e, p), offset, ccn__dtype_size(t));
}

/* The contribution of the peer that word p points to; offset is the element offset of the row. */
static ccn__v contribution(ccn__emit *e, const ccn__kval *v, ccn__v p, ccn__v offset, ccn__v j) {
  const ccn__dtype t = (ccn__dtype)v->dtype;
  return load_through(e, t, &v->map, peer_row(e, t, p, offset), j);
}

/* In order of the ranks, by a loop. */
static ccn__v peers_loop(ccn__emit *e, const ccn__kval *v, ccn__v offset, ccn__v j) {
  ccn__v sum = contribution(e, v, index_of(e, v->ptr), offset, j);
  const LLVMBasicBlockRef before = LLVMGetInsertBlock(e->b);
  ccn__eloop o;
  ccn__e_loop(e, &o, ccn__e_i64(e, 1), ccn__e_i64(e, v->npeers), 1);
  const LLVMBasicBlockRef body = LLVMGetInsertBlock(e->b);
  LLVMPositionBuilder(e->b, o.head, LLVMGetFirstInstruction(o.head));
  const ccn__v phi = LLVMBuildPhi(e->b, LLVMTypeOf(sum), "");
  LLVMPositionBuilderAtEnd(e->b, body);
  const ccn__v x = contribution(e, v, add(e, o.x, index_of(e, v->ptr)), offset, j);
  ccn__v pair[2] = {sum, combine(e, v, phi, x)};
  LLVMBasicBlockRef from[2] = {before, LLVMGetInsertBlock(e->b)};
  LLVMAddIncoming(phi, pair, from, 2);
  ccn__e_loop_end(e, &o);
  return phi;
}

static ccn__v peers(ccn__emit *e, uint32_t val, ccn__v j) {
  const ccn__kval *v = &e->l->vals.at[val];
  const ccn__v offset = e->base[val], *base = &e->peer_base[val * CCN__KERN_UNROLL];
  const ccn__dtype t = (ccn__dtype)v->dtype, acc = ccn__dtype_acc(t);
  ccn__v x[CCN__MAX_RANKS], sum;
  if (v->npeers > CCN__KERN_UNROLL && !v->merge) {
    sum = peers_loop(e, v, offset, j);
  } else {
    for (uint32_t i = 0; i < v->npeers; i++)
      x[i] = v->npeers <= CCN__KERN_UNROLL ? load_through(e, t, &v->map, base[i], j)
                                           : contribution(e, v, index_of(e, v->ptr + i), offset, j);
    for (uint32_t i = 0; v->merge && i + 1 < v->npeers; i++)
      x[v->merge[i].to] = combine(e, v, x[v->merge[i].to], x[v->merge[i].from]);
    for (uint32_t i = 1; !v->merge && i < v->npeers; i++) x[0] = combine(e, v, x[0], x[i]);
    sum = x[v->merge ? v->sum : 0];
  }
  if (v->fn == CCN__RED_AVG && v->npeers > 1)
    sum = LLVMBuildFDiv(e->b, sum, ccn__e_float(e, ccn__e_scalar(e, acc), v->npeers), "");
  return ccn__e_round(e, t, sum);
}

/* Results of these are exact in f16 and bf16 where the operands are. */
static bool exact(uint8_t kernel) {
  switch (kernel) {
  case CCN__K_MAXIMUM:
  case CCN__K_MINIMUM:
  case CCN__K_NEG:
  case CCN__K_ABS:
  case CCN__K_SIGN:
  case CCN__K_FLOOR:
  case CCN__K_CEIL:
  case CCN__K_ROUND:
  case CCN__K_RELU:
  case CCN__K_WHERE: return true;
  default: return false;
  }
}

static ccn__v elementwise(ccn__emit *e, const ccn__kval *v) {
  const ccn__dtype t = (ccn__dtype)e->l->vals.at[v->in[v->fn == CCN__K_WHERE]].dtype,
                   out = (ccn__dtype)v->dtype;
  ccn__v in[3] = {NULL, NULL, NULL}, fault = NULL;
  for (uint32_t i = 0; i < v->nin; i++) in[i] = get(e, v->in[i]);
  if (v->fault) fault = ccn__e_at(e, e->fault, index_of(e, v->fault - 1), 8);
  const ccn__v r = ccn__e_kernel(e, (ccn__kernel_id)v->fn, ccn__dtype_acc(t), in[0], in[1], in[2], fault);
  return out == CCN__BOOL || exact(v->fn) ? r : ccn__e_round(e, out, r);
}

/* Value i at element j of the present row. */
static ccn__v compute(ccn__emit *e, uint32_t i, ccn__v j) {
  const ccn__kval *v = &e->l->vals.at[i];
  const ccn__dtype t = (ccn__dtype)v->dtype;
  switch ((ccn__kval_kind)v->kind) {
  case CCN__KV_CONST: return constant(e, t, v->imm);
  case CCN__KV_NUMBER: return number(e, v);
  case CCN__KV_LOAD: return load_through(e, t, &v->map, e->base[i], j);
  case CCN__KV_PEERS: return peers(e, i, j);
  case CCN__KV_ELEM: return elementwise(e, v);
  case CCN__KV_CAST: return ccn__e_cast(e, t, (ccn__dtype)e->l->vals.at[v->in[0]].dtype, get(e, v->in[0]));
  case CCN__KV_INDEX: return ccn__e_cast(e, t, CCN__I64, index_value(e, &v->map, e->base[i], j));
  default: break;
  }
  ccn__v x = v->in[0] == CCN__NO_SLOT ? NULL : get(e, v->in[0]), step = NULL;
  if (v->in[1] != CCN__NO_SLOT)
    step = ccn__e_cast(e, CCN__I64, (ccn__dtype)e->l->vals.at[v->in[1]].dtype, get(e, v->in[1]));
  return ccn__e_random(e, v, index_value(e, &v->map, e->base[i], j), x, step);
}

static void compute_rate(ccn__emit *e, ccn__krate rate, ccn__v *out, ccn__v j) {
  for (uint32_t i = 0; i < e->l->vals.n; i++)
    if (e->l->vals.at[i].rate == rate) out[i] = compute(e, i, j);
}

/* ---- rows ---------------------------------------------------------------------------------------------- */

static void base_of_value(ccn__emit *e, uint32_t i, ccn__v *outer, ccn__v member) {
  const ccn__kval *v = &e->l->vals.at[i];
  const bool placed = v->kind == CCN__KV_LOAD || v->kind == CCN__KV_PEERS || v->kind == CCN__KV_INDEX ||
                      v->kind == CCN__KV_RANDOM;
  if (!placed) return;
  const ccn__v at = row_offset(e, &v->map, outer, member);
  e->base[i] = v->kind == CCN__KV_LOAD
                 ? ccn__e_at(e, ccn__e_ptr(e, index_of(e, v->ptr)), at, ccn__dtype_size((ccn__dtype)v->dtype))
                 : at;
  for (uint32_t p = 0; v->kind == CCN__KV_PEERS && v->npeers <= CCN__KERN_UNROLL && p < v->npeers; p++)
    e->peer_base[i * CCN__KERN_UNROLL + p] = peer_row(e, (ccn__dtype)v->dtype, index_of(e, v->ptr + p), at);
}

static ccn__dtype store_dtype(const ccn__emit *e, const ccn__kstore *s) {
  return (ccn__dtype)e->l->vals.at[s->val].dtype;
}

/* Everything that a row has: bases, then its values. */
static void begin_row(ccn__emit *e, ccn__v *outer, ccn__v member) {
  const ccn__kloop *l = e->l;
  for (uint32_t i = 0; i < l->vals.n; i++)
    if (l->vals.at[i].rate != CCN__RATE_CALL) base_of_value(e, i, outer, member);
  for (uint32_t i = 0; i < l->stores.n; i++) {
    const ccn__kstore *s = &l->stores.at[i];
    e->store_base[i] = row_offset(e, &s->map, outer, member);
    if (!s->maybe && !s->npeers)
      e->store_base[i] = ccn__e_at(e, ccn__e_ptr(e, index_of(e, s->ptr)), e->store_base[i],
                                   ccn__dtype_size(store_dtype(e, s)));
    for (uint32_t p = 0; s->npeers <= CCN__KERN_UNROLL && p < s->npeers; p++)
      e->store_peer[i * CCN__KERN_UNROLL + p] =
        peer_row(e, store_dtype(e, s), index_of(e, s->ptr + p), e->store_base[i]);
  }
  for (uint32_t i = 0; i < l->reds.n; i++)
    if (l->reds.at[i].form == CCN__KRED_ROW)
      e->red_base[i] = row_offset(e, &l->reds.at[i].map, outer, member);
  compute_rate(e, CCN__RATE_ROW, e->row, ccn__e_i64(e, 0));
}

/* ---- stores -------------------------------------------------------------------------------------------- */

static void store_to(ccn__emit *e, const ccn__kstore *s, ccn__v p, ccn__v offset, ccn__v j, ccn__v x) {
  const ccn__dtype t = store_dtype(e, s);
  store_through(e, t, &s->map, ccn__e_at(e, p, offset, ccn__dtype_size(t)), j, x);
}

/* Whether a store may go around the caches: to peers that are unrolled, elements that lie together. */
static bool streams(const ccn__kstore *s) {
  return s->npeers > 1 && s->npeers <= CCN__KERN_UNROLL && s->map.inner == 1;
}

/* The store that was built last: a vector of `bytes`, the first of which began with a cache line. */
static void mark_stream(ccn__emit *e, size_t bytes) {
  const ccn__v s = LLVMGetLastInstruction(LLVMGetInsertBlock(e->b));
  LLVMMetadataRef one = LLVMValueAsMetadata(LLVMConstInt(e->i32, 1, 0));
  const unsigned kind = LLVMGetMDKindIDInContext(e->context, "nontemporal", 11);
  LLVMSetMetadata(s, kind, LLVMMetadataAsValue(e->context, LLVMMDNodeInContext2(e->context, &one, 1)));
  LLVMSetAlignment(s, bytes < CACHE_LINE ? (unsigned)bytes : CACHE_LINE);
}

static void store(ccn__emit *e, uint32_t i, ccn__v j) {
  const ccn__kstore *s = &e->l->stores.at[i];
  const ccn__v x = get(e, s->val), offset = e->store_base[i];
  if (s->maybe) { /* nobody may be there to receive it */
    const ccn__v p = ccn__e_ptr(e, index_of(e, s->ptr));
    const LLVMBasicBlockRef yes = ccn__e_block(e), on = ccn__e_block(e);
    LLVMBuildCondBr(e->b, LLVMBuildIsNotNull(e->b, p, ""), yes, on);
    LLVMPositionBuilderAtEnd(e->b, yes);
    store_to(e, s, p, offset, j, x);
    LLVMBuildBr(e->b, on);
    LLVMPositionBuilderAtEnd(e->b, on);
  } else if (!s->npeers) {
    store_through(e, store_dtype(e, s), &s->map, offset, j, x);
  } else if (s->npeers <= CCN__KERN_UNROLL) {
    for (uint32_t p = 0; p < s->npeers; p++) {
      store_through(e, store_dtype(e, s), &s->map, e->store_peer[i * CCN__KERN_UNROLL + p], j, x);
      if (p && e->streaming && e->lanes > 1 && streams(s))
        mark_stream(e, e->lanes * ccn__dtype_size(store_dtype(e, s)));
    }
  } else {
    ccn__eloop o;
    ccn__e_loop(e, &o, index_of(e, s->ptr), index_of(e, s->ptr + s->npeers), 1);
    store_to(e, s, ccn__e_ptr(e, o.x), offset, j, x);
    ccn__e_loop_end(e, &o);
  }
}

/* ---- pieces -------------------------------------------------------------------------------------------- */

typedef struct
  piece { /* the elements [from, to) of the rank; row_first: the element with j = 0; place: of `from` in
                          the block of the reductions' tree */
  ccn__v from, to, row_first, place;
} piece;

static void body(ccn__emit *e, const piece *p, ccn__v x) {
  const ccn__kloop *l = e->l;
  const ccn__v j = sub(e, x, p->row_first);
  compute_rate(e, CCN__RATE_ELEM, e->elem, j);
  for (uint32_t i = 0; i < l->stores.n; i++) store(e, i, j);
  for (uint32_t i = 0; i < l->reds.n; i++) {
    const ccn__kred *d = &l->reds.at[i];
    const ccn__dtype acc = ccn__dtype_acc((ccn__dtype)d->t);
    const ccn__v at = add(e, p->place, sub(e, x, p->from));
    ccn__v v = get(e, d->val);
    ccn__e_store(e, acc, ccn__e_at(e, e->reds_scratch[i], at, ccn__dtype_size(acc)), v);
  }
}

static void run_elements(ccn__emit *e, const piece *p) {
  ccn__eloop vectors, rest;
  ccn__e_loop(e, &vectors, p->from, p->to, e->l->lanes);
  e->lanes = e->l->lanes;
  body(e, p, vectors.x);
  e->lanes = 1;
  ccn__e_loop_end(e, &vectors);
  ccn__e_loop(e, &rest, vectors.x, p->to, 1);
  body(e, p, rest.x);
  ccn__e_loop_end(e, &rest);
}

/* The address at which a store's element x is on peer p. */
static ccn__v address(ccn__emit *e, uint32_t i, uint32_t p, ccn__v j) {
  const ccn__kstore *s = &e->l->stores.at[i];
  const size_t item = ccn__dtype_size(store_dtype(e, s));
  const ccn__v at = element_ptr(e, &s->map, e->store_peer[i * CCN__KERN_UNROLL + p], j, item);
  return LLVMBuildPtrToInt(e->b, at, e->i64, "");
}

/* Of the loop's stores to peers the first; -1: none streams, or there are several, of which one would not
 * be aligned when the other is. */
static int stream_store(const ccn__emit *e) {
  int found = -1;
  for (uint32_t i = 0; i < e->l->stores.n; i++) {
    if (!streams(&e->l->stores.at[i])) continue;
    if (found >= 0) return -1;
    found = (int)i;
  }
  return found;
}

/* Whether it is asked for, and all peers have the elements at the same place in a cache line. */
static ccn__v may_stream(ccn__emit *e, uint32_t i, ccn__v j) {
  const ccn__kstore *s = &e->l->stores.at[i];
  const ccn__v line = ccn__e_i64(e, CACHE_LINE - 1), zero = ccn__e_i64(e, 0), own = address(e, i, 0, j);
  ccn__v differ = LLVMBuildAnd(e->b, own, ccn__e_i64(e, (int64_t)ccn__dtype_size(store_dtype(e, s)) - 1), "");
  for (uint32_t p = 1; p < s->npeers; p++)
    differ = LLVMBuildOr(e->b, differ,
                         LLVMBuildAnd(e->b, LLVMBuildXor(e->b, own, address(e, i, p, j), ""), line, ""), "");
  const ccn__v asked = LLVMBuildAnd(e->b, e->flags, ccn__e_i64(e, CCN__KERN_STREAM), "");
  return LLVMBuildAnd(e->b, LLVMBuildICmp(e->b, LLVMIntNE, asked, zero, ""),
                      LLVMBuildICmp(e->b, LLVMIntEQ, differ, zero, ""), "");
}

/* Single elements up to a cache line, then vectors around the caches. */
static void run_streaming(ccn__emit *e, const piece *p, uint32_t i, ccn__v j) {
  const size_t item = ccn__dtype_size(store_dtype(e, &e->l->stores.at[i]));
  const ccn__v line = ccn__e_i64(e, CACHE_LINE - 1);
  const ccn__v gap = LLVMBuildAnd(e->b, sub(e, ccn__e_i64(e, 0), address(e, i, 0, j)), line, "");
  const ccn__v head = LLVMBuildUDiv(e->b, gap, ccn__e_i64(e, (int64_t)item), "");
  const ccn__v stop = least(e, p->to, add(e, p->from, head));
  ccn__eloop first;
  ccn__e_loop(e, &first, p->from, stop, 1);
  body(e, p, first.x);
  ccn__e_loop_end(e, &first);
  piece rest = *p;
  rest.from = stop;
  rest.place = add(e, p->place, sub(e, stop, p->from));
  e->streaming = true;
  run_elements(e, &rest);
  e->streaming = false;
  if (strncmp(e->target->triple, "x86", 3) == 0) { /* a barrier does not order such stores there */
    const unsigned id = LLVMLookupIntrinsicID("llvm.x86.sse.sfence", 19);
    const ccn__v f = LLVMGetIntrinsicDeclaration(e->module, id, NULL, 0);
    LLVMBuildCall2(e->b, LLVMIntrinsicGetType(e->context, id, NULL, 0), f, NULL, 0, "");
  }
}

static void run_piece(ccn__emit *e, const piece *p) {
  const int s = stream_store(e);
  if (s < 0 || e->l->form != CCN__KLOOP_FLAT || e->l->reds.n) {
    run_elements(e, p);
    return;
  }
  const ccn__v j = sub(e, p->from, p->row_first);
  const LLVMBasicBlockRef around = ccn__e_block(e), plain = ccn__e_block(e), on = ccn__e_block(e);
  LLVMBuildCondBr(e->b, may_stream(e, (uint32_t)s, j), around, plain);
  LLVMPositionBuilderAtEnd(e->b, around);
  run_streaming(e, p, (uint32_t)s, j);
  LLVMBuildBr(e->b, on);
  LLVMPositionBuilderAtEnd(e->b, plain);
  run_elements(e, p);
  LLVMBuildBr(e->b, on);
  LLVMPositionBuilderAtEnd(e->b, on);
}

/* ---- reductions ---------------------------------------------------------------------------------------- */

typedef struct
  trees { /* where a loop's reductions are: the tree index of element x is origin + x; the first index
                          of the rank's run; whether [.., to) ends it */
  ccn__v origin, first, run_end;
} trees;

/* Blocks' nodes of RUN and MEMBER: behind the slots of the run. */
static void leave_node(ccn__emit *e, uint32_t i, const trees *t, ccn__v member, ccn__v lo, ccn__v hi,
                       ccn__v block) {
  const ccn__kred *d = &e->l->reds.at[i];
  const ccn__dtype acc = ccn__dtype_acc((ccn__dtype)d->t);
  const size_t item = ccn__dtype_size(acc);
  ccn__v base = ccn__e_ptr(e, index_of(e, d->ptr));
  if (d->form == CCN__KRED_MEMBER) {
    const ccn__v p = ccn__e_at(e, ccn__e_ptr(e, index_of(e, d->table)), member, 8);
    base = ccn__e_at(e, base, LLVMBuildLoad2(e->b, e->i64, p, ""), item);
  }
  const ccn__v whole = LLVMBuildICmp(e->b, LLVMIntEQ, sub(e, hi, lo), ccn__e_i64(e, CCN__TREE_BLOCK), "");
  const LLVMBasicBlockRef full = ccn__e_block(e), part = ccn__e_block(e), on = ccn__e_block(e);
  LLVMBuildCondBr(e->b, whole, full, part);
  LLVMPositionBuilderAtEnd(e->b, full);
  const ccn__v level = ccn__e_i64(e, CCN__TREE_BLOCK_LEVEL);
  const ccn__v first = LLVMBuildLShr(e->b, t->first, level, "");
  const ccn__v at = add(e, sub(e, block, first), ccn__e_i64(e, CCN__RUN_SLOTS));
  ccn__e_store(e, acc, ccn__e_at(e, base, at, item), ccn__e_block_node(e, d, e->reds_scratch[i]));
  LLVMBuildBr(e->b, on);
  LLVMPositionBuilderAtEnd(e->b, part);
  ccn__e_partial(e, d, e->reds_scratch[i], lo, hi, base);
  LLVMBuildBr(e->b, on);
  LLVMPositionBuilderAtEnd(e->b, on);
}

/* A row's blocks go on a stack; at its end the stack becomes the result. */
static void leave_row(ccn__emit *e, uint32_t i, ccn__v hi, ccn__v block, ccn__v ends, ccn__v stack) {
  const ccn__kred *d = &e->l->reds.at[i];
  const ccn__v whole = LLVMBuildICmp(e->b, LLVMIntEQ, hi, ccn__e_i64(e, CCN__TREE_BLOCK), "");
  const LLVMBasicBlockRef full = ccn__e_block(e), part = ccn__e_block(e), on = ccn__e_block(e),
                          done = ccn__e_block(e), after = ccn__e_block(e);
  LLVMBuildCondBr(e->b, whole, full, part);
  LLVMPositionBuilderAtEnd(e->b, full);
  ccn__v pair[2];
  LLVMBasicBlockRef from[2];
  pair[0] = ccn__e_block_node(e, d, e->reds_scratch[i]);
  from[0] = LLVMGetInsertBlock(e->b);
  LLVMBuildBr(e->b, on);
  LLVMPositionBuilderAtEnd(e->b, part);
  pair[1] = ccn__e_fold(e, d, e->reds_scratch[i], hi);
  from[1] = LLVMGetInsertBlock(e->b);
  LLVMBuildBr(e->b, on);
  LLVMPositionBuilderAtEnd(e->b, on);
  const ccn__v x = LLVMBuildPhi(e->b, LLVMTypeOf(pair[0]), "");
  LLVMAddIncoming(x, pair, from, 2);
  ccn__e_push(e, d, stack, block, x);
  LLVMBuildCondBr(e->b, ends, done, after);
  LLVMPositionBuilderAtEnd(e->b, done);
  const ccn__v r = ccn__e_top(e, d, stack, add(e, block, ccn__e_i64(e, 1)));
  const ccn__dtype t = (ccn__dtype)d->t;
  const ccn__v base = ccn__e_ptr(e, index_of(e, d->ptr));
  ccn__e_store(e, t, ccn__e_at(e, base, e->red_base[i], ccn__dtype_size(t)), r);
  LLVMBuildBr(e->b, after);
  LLVMPositionBuilderAtEnd(e->b, after);
}

/* The piece [from, to) ended: if its block did too, or the run, the block becomes a node. */
static void leave_block(ccn__emit *e, const piece *p, const trees *t, ccn__v member, ccn__v *stack) {
  const ccn__v level = ccn__e_i64(e, CCN__TREE_BLOCK_LEVEL), zero = ccn__e_i64(e, 0);
  const ccn__v hi = add(e, p->place, sub(e, p->to, p->from));
  const ccn__v ends = LLVMBuildICmp(e->b, LLVMIntEQ, p->to, t->run_end, "");
  const ccn__v full = LLVMBuildICmp(e->b, LLVMIntEQ, hi, ccn__e_i64(e, CCN__TREE_BLOCK), "");
  const LLVMBasicBlockRef leave = ccn__e_block(e), on = ccn__e_block(e);
  LLVMBuildCondBr(e->b, LLVMBuildOr(e->b, ends, full, ""), leave, on);
  LLVMPositionBuilderAtEnd(e->b, leave);
  const ccn__v block = LLVMBuildLShr(e->b, add(e, t->origin, p->from), level, "");
  const ccn__v start = LLVMBuildShl(e->b, block, level, "");
  const ccn__v late = LLVMBuildICmp(e->b, LLVMIntSGT, t->first, start, "");
  const ccn__v lo = LLVMBuildSelect(e->b, late, sub(e, t->first, start), zero, "");
  for (uint32_t i = 0; i < e->l->reds.n; i++) {
    if (e->l->reds.at[i].form == CCN__KRED_ROW) leave_row(e, i, hi, block, ends, stack[i]);
    else leave_node(e, i, t, member, lo, hi, block);
  }
  LLVMBuildBr(e->b, on);
  LLVMPositionBuilderAtEnd(e->b, on);
}

/* [from, to) of a row, in pieces that end where blocks end. */
static void run_row(ccn__emit *e, ccn__v from, ccn__v to, ccn__v row_first, const trees *t, ccn__v member,
                    ccn__v *stack) {
  if (!e->l->reds.n) {
    const piece p = {from, to, row_first, ccn__e_i64(e, 0)};
    run_piece(e, &p);
    return;
  }
  const LLVMBasicBlockRef before = LLVMGetInsertBlock(e->b), head = ccn__e_block(e), inside = ccn__e_block(e),
                          after = ccn__e_block(e);
  LLVMBuildBr(e->b, head);
  LLVMPositionBuilderAtEnd(e->b, head);
  const ccn__v x = LLVMBuildPhi(e->b, e->i64, "");
  LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntSLT, x, to, ""), inside, after);
  LLVMPositionBuilderAtEnd(e->b, inside);
  const ccn__v place = LLVMBuildAnd(e->b, add(e, t->origin, x), ccn__e_i64(e, CCN__TREE_BLOCK - 1), "");
  const ccn__v stop = least(e, to, add(e, x, sub(e, ccn__e_i64(e, CCN__TREE_BLOCK), place)));
  const piece p = {x, stop, row_first, place};
  run_piece(e, &p);
  leave_block(e, &p, t, member, stack);
  ccn__v pair[2] = {from, stop};
  LLVMBasicBlockRef blocks[2] = {before, LLVMGetInsertBlock(e->b)};
  LLVMAddIncoming(x, pair, blocks, 2);
  LLVMBuildBr(e->b, head);
  LLVMPositionBuilderAtEnd(e->b, after);
}

/* ---- the three forms ----------------------------------------------------------------------------------- */

static const ccn__kred *first_red(const ccn__emit *e) { return e->l->reds.n ? &e->l->reds.at[0] : NULL; }

static trees run_trees(ccn__emit *e, ccn__v end) {
  const ccn__kred *d = first_red(e);
  trees t = {NULL, NULL, end};
  if (d && d->form == CCN__KRED_RUN) t.origin = t.first = ccn__e_number(e, d->par);
  return t;
}

static void flat(ccn__emit *e, ccn__v begin, ccn__v end, ccn__v *stack) {
  const trees t = run_trees(e, end);
  begin_row(e, NULL, NULL);
  run_row(e, begin, end, ccn__e_i64(e, 0), &t, NULL, stack);
}

static void rows(ccn__emit *e, ccn__v begin, ccn__v end, ccn__v *stack) {
  const uint32_t depth = e->l->depth;
  ccn__v extent[CCN__MAX_RANK + 2], outer[CCN__MAX_RANK + 2];
  for (uint32_t d = 0; d < depth; d++) extent[d] = ccn__e_number(e, e->l->par + d);
  trees t = run_trees(e, end);
  const LLVMBasicBlockRef before = LLVMGetInsertBlock(e->b), head = ccn__e_block(e), inside = ccn__e_block(e),
                          after = ccn__e_block(e);
  LLVMBuildBr(e->b, head);
  LLVMPositionBuilderAtEnd(e->b, head);
  const ccn__v x = LLVMBuildPhi(e->b, e->i64, "");
  LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntSLT, x, end, ""), inside, after);
  LLVMPositionBuilderAtEnd(e->b, inside);
  ccn__v row = LLVMBuildUDiv(e->b, x, extent[depth - 1], "");
  const ccn__v first = mul(e, row, extent[depth - 1]);
  const ccn__v row_end = add(e, first, extent[depth - 1]), stop = least(e, end, row_end);
  for (uint32_t d = depth - 1; d-- > 0;) {
    const ccn__v q = d ? LLVMBuildUDiv(e->b, row, extent[d], "") : NULL;
    outer[d] = d ? sub(e, row, mul(e, q, extent[d])) : row;
    row = q;
  }
  begin_row(e, outer, NULL);
  const ccn__kred *d = first_red(e);
  if (d && d->form == CCN__KRED_ROW) t = (trees){sub(e, ccn__e_i64(e, 0), first), ccn__e_i64(e, 0), row_end};
  run_row(e, x, stop, first, &t, NULL, stack);
  ccn__v pair[2] = {begin, stop};
  LLVMBasicBlockRef blocks[2] = {before, LLVMGetInsertBlock(e->b)};
  LLVMAddIncoming(x, pair, blocks, 2);
  LLVMBuildBr(e->b, head);
  LLVMPositionBuilderAtEnd(e->b, after);
}

/* table[i] of starts. */
static ccn__v start_of(ccn__emit *e, ccn__v table, ccn__v i) {
  ccn__v at[1] = {i};
  const ccn__v x = LLVMBuildLoad2(e->b, e->i64, LLVMBuildGEP2(e->b, e->i64, table, at, 1, ""), "");
  LLVMSetAlignment(x, 8);
  return x;
}

/* The last member that starts at or before the element. */
static ccn__v find_member(ccn__emit *e, ccn__v table, ccn__v count, ccn__v flat_index) {
  LLVMBuilderRef b = e->b;
  const LLVMBasicBlockRef before = LLVMGetInsertBlock(b), head = ccn__e_block(e), inside = ccn__e_block(e),
                          after = ccn__e_block(e);
  LLVMBuildBr(b, head);
  LLVMPositionBuilderAtEnd(b, head);
  const ccn__v low = LLVMBuildPhi(b, e->i64, ""), high = LLVMBuildPhi(b, e->i64, "");
  const ccn__v one = ccn__e_i64(e, 1);
  LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSGT, sub(e, high, low), one, ""), inside, after);
  LLVMPositionBuilderAtEnd(b, inside);
  const ccn__v mid = LLVMBuildLShr(b, add(e, low, high), one, "");
  const ccn__v up = LLVMBuildICmp(b, LLVMIntSLE, start_of(e, table, mid), flat_index, "");
  ccn__v lows[2] = {ccn__e_i64(e, 0), LLVMBuildSelect(b, up, mid, low, "")};
  ccn__v highs[2] = {count, LLVMBuildSelect(b, up, high, mid, "")};
  LLVMBasicBlockRef blocks[2] = {before, LLVMGetInsertBlock(b)};
  LLVMAddIncoming(low, lows, blocks, 2);
  LLVMAddIncoming(high, highs, blocks, 2);
  LLVMBuildBr(b, head);
  LLVMPositionBuilderAtEnd(b, after);
  return low;
}

static void members(ccn__emit *e, ccn__v begin, ccn__v end, ccn__v *stack) {
  LLVMBuilderRef b = e->b;
  const ccn__v count = ccn__e_number(e, e->l->par), offset = ccn__e_number(e, e->l->par + 1);
  const ccn__v table = ccn__e_ptr(e, index_of(e, e->l->table)), zero = ccn__e_i64(e, 0);
  trees t = run_trees(e, end);
  const ccn__v first_member = find_member(e, table, count, add(e, begin, offset));
  const LLVMBasicBlockRef before = LLVMGetInsertBlock(b), head = ccn__e_block(e), inside = ccn__e_block(e),
                          after = ccn__e_block(e);
  LLVMBuildBr(b, head);
  LLVMPositionBuilderAtEnd(b, head);
  const ccn__v x = LLVMBuildPhi(b, e->i64, ""), m = LLVMBuildPhi(b, e->i64, "");
  LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSLT, x, end, ""), inside, after);
  LLVMPositionBuilderAtEnd(b, inside);
  const ccn__v next = add(e, m, ccn__e_i64(e, 1)), start = start_of(e, table, m);
  const ccn__v stop = least(e, end, sub(e, start_of(e, table, next), offset));
  begin_row(e, NULL, m);
  const ccn__kred *d = first_red(e);
  if (d && d->form == CCN__KRED_MEMBER) {
    const ccn__v origin = sub(e, offset, start);
    const ccn__v late = LLVMBuildICmp(b, LLVMIntSGT, origin, zero, "");
    t = (trees){origin, LLVMBuildSelect(b, late, origin, zero, ""), stop};
  }
  run_row(e, x, stop, zero, &t, m, stack);
  ccn__v xs[2] = {begin, stop}, ms[2] = {first_member, next};
  LLVMBasicBlockRef blocks[2] = {before, LLVMGetInsertBlock(b)};
  LLVMAddIncoming(x, xs, blocks, 2);
  LLVMAddIncoming(m, ms, blocks, 2);
  LLVMBuildBr(b, head);
  LLVMPositionBuilderAtEnd(b, after);
}

/* ---- a function ---------------------------------------------------------------------------------------- */

static void set_attributes(ccn__emit *e) {
  const unsigned nounwind = LLVMGetEnumAttributeKindForName("nounwind", 8);
  LLVMAddAttributeAtIndex(e->fn, LLVMAttributeFunctionIndex,
                          LLVMCreateEnumAttribute(e->context, nounwind, 0));
}

/* Rank's tables out of the argument block. */
static void load_args(ccn__emit *e) {
  ccn__v *to[3] = {&e->ptrs, &e->numbers, &e->fault};
  e->flags = LLVMBuildLoad2(e->b, e->i64, ccn__e_at(e, e->args, ccn__e_i64(e, 3), 8), "");
  LLVMSetAlignment(e->flags, 8);
  for (int64_t i = 0; i < 3; i++) {
    *to[i] = LLVMBuildLoad2(e->b, e->ptr, ccn__e_at(e, e->args, ccn__e_i64(e, i), 8), "");
    LLVMSetAlignment(*to[i], 8);
  }
}

static void once_values(ccn__emit *e) {
  for (uint32_t i = 0; i < e->l->vals.n; i++) {
    const ccn__kval *v = &e->l->vals.at[i];
    if (v->rate != CCN__RATE_CALL) continue;
    if (v->kind == CCN__KV_LOAD || v->kind == CCN__KV_PEERS || v->kind == CCN__KV_INDEX ||
        v->kind == CCN__KV_RANDOM) {
      ccn__v zeros[CCN__MAX_RANK + 2];
      for (uint32_t d = 0; d < CCN__MAX_RANK + 2; d++) zeros[d] = ccn__e_i64(e, 0);
      base_of_value(e, i, zeros, NULL);
    }
    e->once[i] = compute(e, i, ccn__e_i64(e, 0));
  }
}

void ccn__e_function(ccn__emit *e, uint32_t loop) {
  char name[16];
  LLVMTypeRef params[3] = {e->ptr, e->i64, e->i64};
  ccn__v stack[CCN__COUNT(e->reds_scratch)] = {NULL};
  e->l = &e->k->loops.at[loop];
  e->lanes = 1;
  (void)snprintf(name, sizeof name, "k%u", loop);
  e->fn = LLVMAddFunction(e->module, name, LLVMFunctionType(LLVMVoidTypeInContext(e->context), params, 3, 0));
  set_attributes(e);
  LLVMPositionBuilderAtEnd(e->b, ccn__e_block(e));
  e->args = LLVMGetParam(e->fn, 0);
  const ccn__v begin = LLVMGetParam(e->fn, 1), end = LLVMGetParam(e->fn, 2);
  const LLVMBasicBlockRef some = ccn__e_block(e), none = ccn__e_block(e);
  for (uint32_t i = 0; i < e->l->reds.n; i++) {
    const ccn__dtype acc = ccn__dtype_acc((ccn__dtype)e->l->reds.at[i].t);
    e->reds_scratch[i] = LLVMBuildAlloca(e->b, LLVMArrayType2(ccn__e_memory(e, acc), CCN__TREE_BLOCK), "");
    LLVMSetAlignment(e->reds_scratch[i], 64);
    stack[i] = LLVMBuildAlloca(e->b, LLVMArrayType2(e->i64, 64), "");
  }
  LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntSLT, begin, end, ""), some, none);
  LLVMPositionBuilderAtEnd(e->b, some);
  load_args(e);
  once_values(e);
  if (e->l->form == CCN__KLOOP_FLAT) flat(e, begin, end, stack);
  if (e->l->form == CCN__KLOOP_ROWS) rows(e, begin, end, stack);
  if (e->l->form == CCN__KLOOP_MEMBERS) members(e, begin, end, stack);
  LLVMBuildBr(e->b, none);
  LLVMPositionBuilderAtEnd(e->b, none);
  LLVMBuildRetVoid(e->b);
}

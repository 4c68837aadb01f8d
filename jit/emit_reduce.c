/* emit_reduce.c: the sum tree: small functions over a block of elements in the accumulation dtype, as they
 * lie in scratch memory. Each is made once for an operator and dtype.
 * SPDX-License-Identifier: Apache-2.0 */
#include "emit.h"

#include <stdio.h>

enum { LANES = 16 };

typedef struct helper { /* a function being written, and what was being written before */
  ccn__v fn, outer;
  LLVMBasicBlockRef at;
  unsigned lanes;
} helper;

static ccn__dtype acc_of(const ccn__kred *d) { return ccn__dtype_acc((ccn__dtype)d->t); }

static ccn__v combine(ccn__emit *e, const ccn__kred *d, ccn__v a, ccn__v b) {
  return ccn__e_kernel(e, ccn__e_redop((ccn__redop)d->op), acc_of(d), a, b, NULL, NULL);
}

/* The function `what` for d; true if its body is still to be written, with the builder at its start. */
static bool begin(ccn__emit *e, const ccn__kred *d, const char *what, LLVMTypeRef type, helper *h) {
  char name[64];
  (void)snprintf(name, sizeof name, "%s_%s_%s", what, ccn__redop_name((ccn__redop)d->op),
                 ccn__dtype_name(acc_of(d)));
  h->fn = LLVMGetNamedFunction(e->module, name);
  if (h->fn) return false;
  h->fn = LLVMAddFunction(e->module, name, type);
  LLVMSetLinkage(h->fn, LLVMInternalLinkage);
  const unsigned nounwind = LLVMGetEnumAttributeKindForName("nounwind", 8);
  LLVMAddAttributeAtIndex(h->fn, LLVMAttributeFunctionIndex,
                          LLVMCreateEnumAttribute(e->context, nounwind, 0));
  h->outer = e->fn;
  h->at = LLVMGetInsertBlock(e->b);
  h->lanes = e->lanes;
  e->fn = h->fn;
  e->lanes = 1;
  LLVMPositionBuilderAtEnd(e->b, ccn__e_block(e));
  return true;
}

static void end(ccn__emit *e, const helper *h) {
  e->fn = h->outer;
  e->lanes = h->lanes;
  LLVMPositionBuilderAtEnd(e->b, h->at);
}

static ccn__v at(ccn__emit *e, const ccn__kred *d, ccn__v base, ccn__v index) {
  return ccn__e_at(e, base, index, ccn__dtype_size(acc_of(d)));
}

static LLVMTypeRef value_type(ccn__emit *e, const ccn__kred *d) { return ccn__e_memory(e, acc_of(d)); }

static ccn__v load_one(ccn__emit *e, const ccn__kred *d, ccn__v base, ccn__v index) {
  return ccn__e_load(e, acc_of(d), at(e, d, base, index));
}

/* Values pass between functions as they are in memory (bool as a byte). */
static void give(ccn__emit *e, const ccn__kred *d, ccn__v x) {
  LLVMBuildRet(e->b, acc_of(d) == CCN__BOOL ? LLVMBuildZExt(e->b, x, e->i8, "") : x);
}

static ccn__v ask(ccn__emit *e, const ccn__kred *d, const helper *h, LLVMTypeRef type, ccn__v *args,
                  unsigned n) {
  return ccn__e_from_memory(e, acc_of(d), LLVMBuildCall2(e->b, type, h->fn, args, n, ""));
}

/* Elements even and odd of two vectors that follow each other. */
static ccn__v every_other(ccn__emit *e, ccn__v x, ccn__v y, unsigned first, unsigned n) {
  ccn__v mask[LANES];
  for (unsigned i = 0; i < n; i++) mask[i] = LLVMConstInt(e->i32, 2 * i + first, 0);
  return LLVMBuildShuffleVector(e->b, x, y, LLVMConstVector(mask, n), "");
}

/* One level of the tree: scratch[0, half) = the pairs of scratch[0, 2 * half); half is a multiple of
 * LANES. */
static void halve(ccn__emit *e, const ccn__kred *d, ccn__v scratch, ccn__v half) {
  ccn__eloop o;
  ccn__e_loop(e, &o, ccn__e_i64(e, 0), half, LANES);
  e->lanes = LANES;
  const ccn__v from = LLVMBuildMul(e->b, o.x, ccn__e_i64(e, 2), "");
  const ccn__v x = load_one(e, d, scratch, from);
  const ccn__v y = load_one(e, d, scratch, LLVMBuildAdd(e->b, from, ccn__e_i64(e, LANES), ""));
  const ccn__v r = combine(e, d, every_other(e, x, y, 0, LANES), every_other(e, x, y, 1, LANES));
  ccn__e_store(e, acc_of(d), at(e, d, scratch, o.x), r);
  e->lanes = 1;
  ccn__e_loop_end(e, &o);
}

ccn__v ccn__e_block_node(ccn__emit *e, const ccn__kred *d, ccn__v scratch) {
  LLVMTypeRef params[1] = {e->ptr}, type = LLVMFunctionType(value_type(e, d), params, 1, 0);
  helper h;
  if (begin(e, d, "block", type, &h)) {
    const ccn__v s = LLVMGetParam(h.fn, 0);
    ccn__eloop o; /* halves 512, 256, ..., 16 */
    ccn__e_loop(e, &o, ccn__e_i64(e, 0), ccn__e_i64(e, CCN__TREE_BLOCK_LEVEL - 4), 1);
    halve(e, d, s, LLVMBuildLShr(e->b, ccn__e_i64(e, CCN__TREE_BLOCK / 2), o.x, ""));
    ccn__e_loop_end(e, &o);
    e->lanes = LANES;
    ccn__v x = load_one(e, d, s, ccn__e_i64(e, 0));
    for (unsigned n = LANES / 2; n; n /= 2) {
      const ccn__v even = every_other(e, x, x, 0, n), odd = every_other(e, x, x, 1, n);
      if (n > 1) {
        e->lanes = n;
        x = combine(e, d, even, odd);
        continue;
      }
      e->lanes = 1;
      const ccn__v zero = LLVMConstInt(e->i32, 0, 0);
      x = combine(e, d, LLVMBuildExtractElement(e->b, even, zero, ""),
                  LLVMBuildExtractElement(e->b, odd, zero, ""));
    }
    e->lanes = 1;
    give(e, d, x);
    end(e, &h);
  }
  return ask(e, d, &h, type, &scratch, 1);
}

/* The tree over the first n, absent children skipped. */
ccn__v ccn__e_fold(ccn__emit *e, const ccn__kred *d, ccn__v scratch, ccn__v n) {
  LLVMTypeRef params[2] = {e->ptr, e->i64}, type = LLVMFunctionType(value_type(e, d), params, 2, 0);
  helper h;
  if (begin(e, d, "fold", type, &h)) {
    const ccn__v s = LLVMGetParam(h.fn, 0), count = LLVMGetParam(h.fn, 1), one = ccn__e_i64(e, 1);
    ccn__eloop level, o;
    /* 10 levels suffice for 1024; levels that find one element change nothing */
    ccn__e_loop(e, &level, ccn__e_i64(e, 0), ccn__e_i64(e, CCN__TREE_BLOCK_LEVEL), 1);
    /* n of this level: ceil(count / 2^level) */
    const ccn__v up = LLVMBuildSub(e->b, LLVMBuildShl(e->b, one, level.x, ""), one, "");
    const ccn__v m = LLVMBuildLShr(e->b, LLVMBuildAdd(e->b, count, up, ""), level.x, "");
    const ccn__v half = LLVMBuildLShr(e->b, m, one, "");
    ccn__e_loop(e, &o, ccn__e_i64(e, 0), half, 1);
    const ccn__v from = LLVMBuildShl(e->b, o.x, one, "");
    const ccn__v x = load_one(e, d, s, from), y = load_one(e, d, s, LLVMBuildOr(e->b, from, one, ""));
    ccn__e_store(e, acc_of(d), at(e, d, s, o.x), combine(e, d, x, y));
    ccn__e_loop_end(e, &o);
    /* the last of an odd number stays as it is, at the next free place */
    const ccn__v last = load_one(e, d, s, LLVMBuildSub(e->b, m, one, ""));
    const ccn__v odd = LLVMBuildICmp(e->b, LLVMIntNE, LLVMBuildAnd(e->b, m, one, ""), ccn__e_i64(e, 0), "");
    const LLVMBasicBlockRef move = ccn__e_block(e), on = ccn__e_block(e);
    LLVMBuildCondBr(e->b, odd, move, on);
    LLVMPositionBuilderAtEnd(e->b, move);
    ccn__e_store(e, acc_of(d), at(e, d, s, half), last);
    LLVMBuildBr(e->b, on);
    LLVMPositionBuilderAtEnd(e->b, on);
    ccn__e_loop_end(e, &level);
    give(e, d, load_one(e, d, s, ccn__e_i64(e, 0)));
    end(e, &h);
  }
  ccn__v args[2] = {scratch, n};
  return ask(e, d, &h, type, args, 2);
}

/* out[place] = scratch[index] if `on`. */
static void keep(ccn__emit *e, const ccn__kred *d, ccn__v on, ccn__v scratch, ccn__v index, ccn__v out,
                 ccn__v place) {
  const LLVMBasicBlockRef yes = ccn__e_block(e), after = ccn__e_block(e);
  LLVMBuildCondBr(e->b, on, yes, after);
  LLVMPositionBuilderAtEnd(e->b, yes);
  ccn__e_store(e, acc_of(d), at(e, d, out, place), load_one(e, d, scratch, index));
  LLVMBuildBr(e->b, after);
  LLVMPositionBuilderAtEnd(e->b, after);
}

/* The maximal complete nodes of places [lo, hi) of a block, by level: those at the start go to out[level],
 * those at the end to out[CCN__TREE_BLOCK_LEVEL + level]. */
void ccn__e_partial(ccn__emit *e, const ccn__kred *d, ccn__v scratch, ccn__v lo, ccn__v hi, ccn__v out) {
  LLVMTypeRef params[4] = {e->ptr, e->i64, e->i64, e->ptr};
  const LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(e->context), params, 4, 0);
  helper h;
  if (begin(e, d, "partial", type, &h)) {
    LLVMBuilderRef b = e->b;
    const ccn__v s = LLVMGetParam(h.fn, 0), to = LLVMGetParam(h.fn, 3), one = ccn__e_i64(e, 1),
                 zero = ccn__e_i64(e, 0);
    ccn__v low = LLVMGetParam(h.fn, 1), high = LLVMGetParam(h.fn, 2);
    for (unsigned level = 0; level < CCN__TREE_BLOCK_LEVEL; level++) {
      const ccn__v some = LLVMBuildICmp(b, LLVMIntSLT, low, high, "");
      const ccn__v lo_odd = LLVMBuildAnd(b, low, one, "");
      ccn__v on = LLVMBuildAnd(b, some, LLVMBuildICmp(b, LLVMIntNE, lo_odd, zero, ""), "");
      keep(e, d, on, s, low, to, ccn__e_i64(e, level));
      const ccn__v next = LLVMBuildAdd(b, low, LLVMBuildZExt(b, on, e->i64, ""), "");
      const ccn__v rest = LLVMBuildICmp(b, LLVMIntSLT, next, high, "");
      on = LLVMBuildAnd(b, rest, LLVMBuildICmp(b, LLVMIntNE, LLVMBuildAnd(b, high, one, ""), zero, ""), "");
      const ccn__v last = LLVMBuildSub(b, high, LLVMBuildZExt(b, on, e->i64, ""), "");
      keep(e, d, on, s, last, to, ccn__e_i64(e, CCN__TREE_BLOCK_LEVEL + level));
      low = LLVMBuildLShr(b, next, one, "");
      high = LLVMBuildLShr(b, last, one, "");
      ccn__eloop o;
      ccn__e_loop(e, &o, low, high, 1);
      const ccn__v from = LLVMBuildShl(b, o.x, one, "");
      const ccn__v x = load_one(e, d, s, from), y = load_one(e, d, s, LLVMBuildOr(b, from, one, ""));
      ccn__e_store(e, acc_of(d), at(e, d, s, o.x), combine(e, d, x, y));
      ccn__e_loop_end(e, &o);
    }
    LLVMBuildRetVoid(b);
    end(e, &h);
  }
  ccn__v args[4] = {scratch, lo, hi, out};
  LLVMBuildCall2(e->b, type, h.fn, args, 4, "");
}

/* ---- rows of more than a block: a binary counter of nodes, by level ------------------------------------ */

/* While bit `level` of count is set: x = stack[level] combined with x, level++. */
void ccn__e_push(ccn__emit *e, const ccn__kred *d, ccn__v stack, ccn__v count, ccn__v x) {
  LLVMTypeRef params[3] = {e->ptr, e->i64, value_type(e, d)};
  const LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(e->context), params, 3, 0);
  helper h;
  if (begin(e, d, "push", type, &h)) {
    LLVMBuilderRef b = e->b;
    const ccn__v s = LLVMGetParam(h.fn, 0);
    const LLVMBasicBlockRef before = LLVMGetInsertBlock(b), head = ccn__e_block(e), body = ccn__e_block(e),
                            done = ccn__e_block(e);
    ccn__v first[3] = {ccn__e_from_memory(e, acc_of(d), LLVMGetParam(h.fn, 2)), ccn__e_i64(e, 0),
                       LLVMGetParam(h.fn, 1)};
    LLVMBuildBr(b, head);
    LLVMPositionBuilderAtEnd(b, head);
    const ccn__v v = LLVMBuildPhi(b, LLVMTypeOf(first[0]), ""), level = LLVMBuildPhi(b, e->i64, ""),
                 bits = LLVMBuildPhi(b, e->i64, "");
    const ccn__v one = ccn__e_i64(e, 1), zero = ccn__e_i64(e, 0);
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntNE, LLVMBuildAnd(b, bits, one, ""), zero, ""), body, done);
    LLVMPositionBuilderAtEnd(b, body);
    ccn__v next[3] = {combine(e, d, load_one(e, d, s, level), v), LLVMBuildAdd(b, level, one, ""),
                      LLVMBuildLShr(b, bits, one, "")};
    const LLVMBasicBlockRef from[2] = {before, LLVMGetInsertBlock(b)};
    LLVMBuildBr(b, head);
    for (unsigned i = 0; i < 3; i++) {
      ccn__v pair[2] = {first[i], next[i]};
      LLVMAddIncoming(i == 0 ? v : i == 1 ? level : bits, pair, (LLVMBasicBlockRef *)(uintptr_t)from, 2);
    }
    LLVMPositionBuilderAtEnd(b, done);
    ccn__e_store(e, acc_of(d), at(e, d, s, level), v);
    LLVMBuildRetVoid(b);
    end(e, &h);
  }
  ccn__v args[3] = {stack, count, acc_of(d) == CCN__BOOL ? LLVMBuildZExt(e->b, x, e->i8, "") : x};
  LLVMBuildCall2(e->b, type, h.fn, args, 3, "");
}

/* The nodes of the set bits of count, from the lowest up: each combined with what is behind it. */
ccn__v ccn__e_top(ccn__emit *e, const ccn__kred *d, ccn__v stack, ccn__v count) {
  LLVMTypeRef params[2] = {e->ptr, e->i64}, type = LLVMFunctionType(value_type(e, d), params, 2, 0);
  helper h;
  if (begin(e, d, "top", type, &h)) {
    LLVMBuilderRef b = e->b;
    const ccn__v s = LLVMGetParam(h.fn, 0), bits = LLVMGetParam(h.fn, 1), one = ccn__e_i64(e, 1);
    const ccn__v slot = LLVMBuildAlloca(b, e->i64, ""), seen = LLVMBuildAlloca(b, e->i64, "");
    LLVMBuildStore(b, ccn__e_i64(e, 0), seen);
    ccn__eloop o;
    ccn__e_loop(e, &o, ccn__e_i64(e, 0), ccn__e_i64(e, 63), 1);
    const LLVMBasicBlockRef set = ccn__e_block(e), more = ccn__e_block(e), only = ccn__e_block(e),
                            on = ccn__e_block(e);
    const ccn__v bit = LLVMBuildAnd(b, LLVMBuildLShr(b, bits, o.x, ""), one, "");
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntNE, bit, ccn__e_i64(e, 0), ""), set, on);
    LLVMPositionBuilderAtEnd(b, set);
    const ccn__v x = load_one(e, d, s, o.x);
    const ccn__v before = LLVMBuildLoad2(b, e->i64, seen, "");
    LLVMBuildStore(b, one, seen);
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntNE, before, ccn__e_i64(e, 0), ""), more, only);
    LLVMPositionBuilderAtEnd(b, more);
    ccn__e_store(e, acc_of(d), slot, combine(e, d, x, ccn__e_load(e, acc_of(d), slot)));
    LLVMBuildBr(b, on);
    LLVMPositionBuilderAtEnd(b, only);
    ccn__e_store(e, acc_of(d), slot, x);
    LLVMBuildBr(b, on);
    LLVMPositionBuilderAtEnd(b, on);
    ccn__e_loop_end(e, &o);
    give(e, d, ccn__e_load(e, acc_of(d), slot));
    end(e, &h);
  }
  ccn__v args[2] = {stack, count};
  return ask(e, d, &h, type, args, 2);
}

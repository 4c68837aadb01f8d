/* emit.h: what the parts of the host emitter share: the function being written, and builders that work on
 * scalars and on vectors alike.
 *
 * A value of dtype t is computed in: f64 double; f32, f16, bf16 float (already rounded to t); integers
 * themselves; bool i1. With lanes > 1 it is a vector of these.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_JIT_EMIT_H
#define CCN_JIT_EMIT_H

#include "compat.h"
#include "jit.h"
#include "kernel.h"

typedef LLVMValueRef ccn__v;

typedef struct ccn__emit {
  LLVMContextRef context;
  LLVMModuleRef module;
  LLVMBuilderRef b;
  const ccn__jit_target *target;
  const ccn__kern *k;
  const ccn__kloop *l;
  LLVMTypeRef i1, i8, i16, i32, i64, f16, f32, f64, ptr;
  unsigned lanes;                               /* of what is being built; 1: scalars */
  ccn__v fn, args, ptrs, numbers, fault, flags; /* of the function being written */
  bool streaming; /* stores to peers go around the caches in what is being built */
  ccn__v *once, *row,
    *elem;      /* values of the loop by rate; elem: at the present element, lower rates spread */
  ccn__v *base; /* of each value: where the present row begins: a pointer or an index; peers: offset */
  ccn__v *store_base, *red_base;
  ccn__v *peer_base,
    *store_peer; /* of each value or store CCN__KERN_UNROLL: where the row begins on each peer */
  ccn__v reds_scratch[CCN__KERN_REDS];
  ccn__v table[64]; /* constant arrays of math.def, made when first used */
} ccn__emit;

/* Types and constants for the present number of lanes. */
LLVMTypeRef ccn__e_type(const ccn__emit *e, LLVMTypeRef scalar);
LLVMTypeRef ccn__e_scalar(const ccn__emit *e, ccn__dtype t); /* in which t is computed */
LLVMTypeRef ccn__e_memory(const ccn__emit *e, ccn__dtype t); /* of one element in memory: i16 for f16, bf16 */
ccn__v ccn__e_splat(const ccn__emit *e, ccn__v scalar);
ccn__v ccn__e_int(const ccn__emit *e, LLVMTypeRef scalar, uint64_t x);
ccn__v ccn__e_float(const ccn__emit *e, LLVMTypeRef scalar, double x);
ccn__v ccn__e_i64(const ccn__emit *e, int64_t x);                     /* always a scalar */
ccn__v ccn__e_bits(const ccn__emit *e, ccn__v x, LLVMTypeRef scalar); /* bitcast */
ccn__v ccn__e_call(ccn__emit *e, const char *intrinsic, LLVMTypeRef overload, ccn__v *args, unsigned n);
ccn__v ccn__e_number(ccn__emit *e, uint32_t number);                      /* i64 */
ccn__v ccn__e_ptr(ccn__emit *e, ccn__v index);                            /* a word of the pointer table */
ccn__v ccn__e_at(ccn__emit *e, ccn__v base, ccn__v index, uint64_t item); /* base + index * item bytes */
LLVMBasicBlockRef ccn__e_block(ccn__emit *e);

/* A counted loop: for (x = from; x + step <= to; x += step) body. Usage:
 *   ccn__e_loop(e, &o, from, to, step); ...body, using o.x...; ccn__e_loop_end(e, &o); then o.x is where
 * it stopped. */
typedef struct ccn__eloop {
  LLVMBasicBlockRef head, body, exit;
  ccn__v x;
  int64_t step;
} ccn__eloop;
void ccn__e_loop(ccn__emit *e, ccn__eloop *o, ccn__v from, ccn__v to, int64_t step);
void ccn__e_loop_end(ccn__emit *e, ccn__eloop *o);

/* emit_convert.c */
ccn__v ccn__e_load(ccn__emit *e, ccn__dtype t, ccn__v p); /* `lanes` elements that lie together */
void ccn__e_store(ccn__emit *e, ccn__dtype t, ccn__v p, ccn__v x);
ccn__v ccn__e_from_memory(ccn__emit *e, ccn__dtype t, ccn__v raw); /* of elements as they are in memory */
ccn__v ccn__e_round(ccn__emit *e, ccn__dtype t,
                    ccn__v x); /* a float result to f16 or bf16; others as they are */
ccn__v ccn__e_cast(ccn__emit *e, ccn__dtype to, ccn__dtype from, ccn__v x);

/* emit_expr.c: one kernel of kernels.h on operands computed in t's type; result not rounded to f16 or
 * bf16. `fault`: a pointer to a word set to 1 on a division by zero, or NULL. */
ccn__v ccn__e_kernel(ccn__emit *e, ccn__kernel_id k, ccn__dtype t, ccn__v a, ccn__v b, ccn__v c,
                     ccn__v fault);
ccn__kernel_id ccn__e_redop(ccn__redop op);
/* emit_math.c: a function of math.def on float or double. */
ccn__v ccn__e_math(ccn__emit *e, const ccn__math_fn *f, ccn__v a, ccn__v b);
/* emit_random.c */
ccn__v ccn__e_random(ccn__emit *e, const ccn__kval *v, ccn__v index, ccn__v x, ccn__v step);
/* emit_reduce.c: helper functions, one of each for an operator and dtype. */
ccn__v ccn__e_block_node(ccn__emit *e, const ccn__kred *d, ccn__v scratch);     /* of 1024 elements */
ccn__v ccn__e_fold(ccn__emit *e, const ccn__kred *d, ccn__v scratch, ccn__v n); /* of the first n */
void ccn__e_partial(ccn__emit *e, const ccn__kred *d, ccn__v scratch, ccn__v lo, ccn__v hi, ccn__v out);
void ccn__e_push(ccn__emit *e, const ccn__kred *d, ccn__v stack, ccn__v count, ccn__v x);
ccn__v ccn__e_top(ccn__emit *e, const ccn__kred *d, ccn__v stack, ccn__v count);
/* emit_loop.c: function number `loop`, called k0, k1, ... */
void ccn__e_function(ccn__emit *e, uint32_t loop);

#endif

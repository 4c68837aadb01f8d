/* kernel_impl.h: what the parts of the kernel builder share: kernel_build.c (stages, slots, steps) and
 * kernel_loop.c (values and maps of a loop).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_PASSES_KERNEL_IMPL_H
#define CCN_PASSES_KERNEL_IMPL_H

#include "kernel.h"

/* How a node becomes part of a kernel. */
typedef enum ccn__krole {
  CCN__ROLE_OUTSIDE, /* not in the group: read from memory */
  CCN__ROLE_LITERAL, /* const, full, rank: a number, wherever it is wanted */
  CCN__ROLE_ELEM,    /* computed for each element: elementwise ops, casts, random numbers, iota */
  CCN__ROLE_SAME,    /* the operand's elements, of perhaps another piece: slice, local, enter */
  CCN__ROLE_REDUCE,  /* over dims */
  CCN__ROLE_PAY,     /* an all-reduce of few elements: a step between loops */
  CCN__ROLE_PEERS,   /* reduce-scatter, reduce: adds peers' elements */
  CCN__ROLE_MOVE     /* all-gather, gather, broadcast, shift, permute: stored in peers' memory */
} ccn__krole;

/* A value that must be in memory behind the kernel. */
typedef struct ccn__kout {
  ccn__id value; /* what is computed */
  ccn__id node;  /* whose value it is for the outside */
  uint32_t slot;
} ccn__kout;

enum { CCN__RAW_DIMS = CCN__MAX_RANK + 2 }; /* the shape's, and two of extent 1 */

/* A map before dims are merged: for each rank an offset and a stride for each dim of the loop's shape. */
typedef struct ccn__krawmap {
  int64_t *offset, *stride; /* [rank], [rank * CCN__RAW_DIMS + dim] */
  bool member;
} ccn__krawmap;

typedef struct ccn__kbuild {
  ccn__kern_in *in;
  ccn__kern *k;
  ccn__arena *a;
  const ccn__graph *g;
  const ccn__mesh *mesh;
  uint32_t world;
  uint8_t *role;  /* of each node */
  ccn__id *real;  /* what computes the node's value: the operand of an update in the group, else itself */
  int32_t *stage; /* in which loops it is computed; of PAY: behind which stage it is paid (-1: before all) */
  int32_t *avail; /* from which stage on it can be read */
  bool *kept;     /* in memory for a later stage or for peers */
  uint8_t *owed;  /* axes over which its parts lie (interp_eval.h, ccn__value.tree) */
  uint32_t *slot; /* where it is in memory once it is available, or CCN__NO_SLOT */
  uint32_t *parts, *tree; /* of REDUCE (and of what is owed outside): slot of its parts; number of its tree */
  CCN__VEC(ccn__kout) outs;
  CCN__VEC(int64_t) numbers; /* [number * world + rank] */
  int32_t stages;
} ccn__kbuild;

/* A loop being made. */
typedef struct ccn__kloopb {
  ccn__kbuild *b;
  ccn__kloop *l;
  int32_t stage;
  ccn__shape shape;
  ccn__box *box; /* of each rank; elements 0 where it does nothing */
  uint32_t *val; /* of each node, or CCN__NO_SLOT */
  CCN__VEC(ccn__krawmap) maps;
  uint32_t fence; /* dims from here on are one row of a reduction; shape.rank + 1: none */
} ccn__kloopb;

/* Remembers the first reason why the group is no kernel, and returns false. */
bool ccn__kern_refuse(ccn__kbuild *b, ccn__id at, const char *fmt, ...) CCN__PRINTF(3, 4);
static inline bool ccn__kern_fine(const ccn__kbuild *b) { return !b->in->why; }

uint32_t ccn__kern_number(ccn__kbuild *b); /* a new one, 0 on every rank */
static inline int64_t *ccn__kern_number_at(ccn__kbuild *b, uint32_t number, uint32_t rank) {
  return &b->numbers.at[number * b->world + rank];
}
uint32_t ccn__kern_ptr_self(ccn__kbuild *b, uint32_t slot);
uint32_t ccn__kern_ptr_peers(ccn__kbuild *b, uint32_t slot, uint32_t over, uint32_t *out_n);
uint32_t ccn__kern_ptr_table(ccn__kbuild *b, const int64_t *const *table);
uint32_t ccn__kern_slot_in(ccn__kbuild *b, ccn__id node);
bool ccn__kern_literal(ccn__kbuild *b, ccn__id node, ccn__kval *out); /* CONST or NUMBER */

/* kernel_loop.c */
bool ccn__kloop_begin(ccn__kbuild *b, ccn__kloopb *q, int32_t stage, const ccn__shape *shape, ccn__id node);
uint32_t ccn__kloop_value(ccn__kloopb *q, ccn__id node); /* computes it in this loop, or loads it */
/* Stores val to a slot that holds a value of this shape: on the rank itself, on its group over `over`, or
 * where `target` says (a rank for each rank). */
bool ccn__kloop_store(ccn__kloopb *q, uint32_t val, uint32_t slot, const ccn__shape *shape, uint32_t over,
                      uint8_t *target, ccn__id node);
bool ccn__kloop_reduce(ccn__kloopb *q, ccn__id node);
bool ccn__kloop_end(ccn__kloopb *q, ccn__id node); /* merges dims, fixes rates and numbers */

#endif

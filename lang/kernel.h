/* kernel.h: what a fused group of ops becomes: loops over boxes of elements, with the meetings of ranks
 * between them.
 *
 * Place in the pipeline: made by passes/kernel_build.c from nodes of a graph whose sizes are known; read by
 * the emitters (jit/), by whoever steps ranks through it, and by kernel_step.c, which does the small steps in
 * C. Nothing in it depends on a program's name.
 *
 * A kernel is a list of steps. A loop computes a DAG of values for each element of its box on a rank and
 * stores or reduces some of them. What differs between sizes and ranks stands in *numbers* and *pointers*,
 * tables that each rank has; so one piece of machine code serves every size and rank, and the text
 * (kernel_text.c) from which the key in the code cache is made is the same for them.
 *
 * Values are computed as the language says: f16 and bf16 in f32 with a rounding behind every op.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_LANG_KERNEL_H
#define CCN_LANG_KERNEL_H

#include "order.h"
#include "plan.h"

#define CCN__NO_SLOT UINT32_MAX
enum {
  CCN__KERN_NOBODY = CCN__MAX_RANKS, /* no rank */
  CCN__KERN_REDS = 8,                /* reductions in one loop, each with a block of scratch on the stack */
  CCN__KERN_UNROLL = 8,              /* so many peers are unrolled in the code; more are a loop */
  CCN__TREE_BLOCK_LEVEL = 10,        /* reductions go by complete nodes of this level */
  CCN__TREE_BLOCK = 1 << CCN__TREE_BLOCK_LEVEL,
  CCN__RUN_SLOTS = 2 * CCN__TREE_BLOCK_LEVEL /* nodes below a block, at the two ends of a run */
};

/* ---- memory -------------------------------------------------------------------------------------------- */

typedef enum ccn__kslot_kind {
  CCN__KSLOT_IN,     /* a value from outside */
  CCN__KSLOT_OUT,    /* a value that somebody outside wants, or that an update stores */
  CCN__KSLOT_SCRATCH /* for the kernel alone, at the same offset on every rank if `peers` */
} ccn__kslot_kind;

/* Memory that a kernel reads or writes on each rank. */
typedef struct ccn__kslot {
  uint8_t kind, dtype;
  bool peers; /* other ranks read or write it */
  bool parts; /* holds the parts of an owed reduction (interp_eval.h): nodes of its tree in the acc. dtype */
  ccn__id node;   /* IN, OUT: whose value; CCN__NO_ID: none */
  ccn__id update; /* OUT: the UPDATE that it is for, or CCN__NO_ID */
  int64_t *bytes; /* on each rank; 0 where it holds nothing */
} ccn__kslot;

/* A word of each rank's pointer table. */
typedef struct ccn__kptr {
  uint32_t slot;         /* whose memory; CCN__NO_SLOT: `table` */
  uint8_t *rank;         /* for each rank: on which rank, or CCN__KERN_NOBODY: NULL */
  const int64_t **table; /* for each rank */
} ccn__kptr;

/* Where element (i0, i1, ...) of a loop is: number[par] + i0 * number[par + 1] + i1 * number[par + 2] ...,
 * in elements of memory, or as a global index. */
typedef struct ccn__kmap {
  uint8_t inner; /* step along the innermost dim: 0, 1, or 2: its number */
  bool member;   /* of a loop over members of a bundle: the number of the member */
  uint32_t par;
} ccn__kmap;

/* ---- values of a loop ---------------------------------------------------------------------------------- */

typedef enum ccn__kval_kind {
  CCN__KV_CONST,  /* imm, the bytes of the dtype */
  CCN__KV_NUMBER, /* number[par], likewise */
  CCN__KV_LOAD,   /* ptr through map */
  CCN__KV_PEERS,  /* the reduction of `npeers` pointers from ptr on, through map: see ccn__kval.merge; in the
                     accumulation dtype, for avg divided, rounded once */
  CCN__KV_ELEM,   /* fn: ccn__kernel_id of in[] */
  CCN__KV_CAST,   /* in[0] to dtype */
  CCN__KV_INDEX,  /* the index through map, cast to dtype */
  /* fn: ccn__op, DROPOUT of in[0] or a maker; step in[1] or CCN__NO_SLOT; index through map; numbers from par
   * on: key low, key high, hash, then two of the op: p and scale as f64 (DROPOUT), p (BERNOULLI), low and range
   * (RANDINT) */
  CCN__KV_RANDOM
} ccn__kval_kind;

/* How often a value is computed. */
typedef enum ccn__krate { CCN__RATE_CALL, CCN__RATE_ROW, CCN__RATE_ELEM } ccn__krate;

typedef struct ccn__kval {
  uint8_t kind, dtype, rate, fn;
  uint16_t sum;            /* of PEERS with `merge`: which contribution ends up as the sum */
  const ccn__merge *merge; /* of PEERS: npeers - 1 of them */
  uint32_t in[3], nin;
  uint32_t ptr, npeers, par;
  uint32_t fault; /* 1 + the number of the fault that it may report, or 0 */
  ccn__kmap map;
  uint64_t imm;
} ccn__kval;

typedef struct ccn__kstore {
  uint32_t val, ptr, npeers; /* npeers 0: one pointer, which may be NULL on some ranks if `maybe` */
  bool maybe;
  ccn__kmap map;
} ccn__kstore;

typedef enum ccn__kred_form {
  CCN__KRED_RUN,    /* the loop is one run of indices of a tree */
  CCN__KRED_MEMBER, /* each member of a bundle has a tree */
  CCN__KRED_ROW     /* each row has a tree, whole; the result is stored through `map` */
} ccn__kred_form;

/* RUN and MEMBER leave nodes of the tree at `ptr`: for each run CCN__RUN_SLOTS places (the nodes below a
 * block at its start by level, then those at its end), then its complete blocks. MEMBER: run k begins at
 * element table[k] of it, `table` a pointer to the rank's int64_t for each member. Then step FINISH makes
 * parts of them. */
typedef struct ccn__kred {
  uint8_t form, op, t; /* ccn__redop; dtype of the value */
  uint32_t val, ptr, table;
  uint32_t par;  /* RUN: number: the tree's index of the rank's first element */
  ccn__kmap map; /* ROW */
} ccn__kred;

typedef enum ccn__kloop_form {
  CCN__KLOOP_FLAT, /* one dim */
  CCN__KLOOP_ROWS, /* `depth` dims, extents from number `par` on */
  /* one dim in pieces: the members of a bundle. Number par: how many, par + 1: the flat index of the rank's first
   * element; pointer `table`: where each begins, and the end */
  CCN__KLOOP_MEMBERS
} ccn__kloop_form;

typedef struct ccn__kloop {
  uint8_t form, depth;
  uint32_t par, table;
  uint32_t lanes; /* elements a vector */
  CCN__VEC(ccn__kval) vals;
  CCN__VEC(ccn__kstore) stores;
  CCN__VEC(ccn__kred) reds;
  int64_t *count; /* elements on each rank */
  int64_t *row;   /* ROWS: extent of the innermost dim on each rank */
} ccn__kloop;

/* ---- what is done between loops ------------------------------------------------------------------------ */

/* A reduction whose result crosses ranks, or waits for the end of a loop. Member m of rank r covers the
 * indices [a, b) of its tree, a = run[r * 2 * members + 2 * m], b = the next number. */
typedef struct ccn__ktree {
  uint8_t op, t;
  uint32_t members;
  const int64_t *run;
  const int64_t *extent; /* of each member's tree; 0: a reduction of nothing */
} ccn__ktree;

typedef enum ccn__kstep_kind {
  CCN__KSTEP_LOOP,   /* loop `index` */
  CCN__KSTEP_FINISH, /* tree `index`: slot src as a loop left it → its parts in slot dst */
  /* before it goes on, the rank's loops are done, and those of all ranks of its group over `over` */
  CCN__KSTEP_SYNC,
  /* slot dst = the reduction of src over the group `over` (0: the rank alone): of parts if tree `index` is not
   * CCN__NO_SLOT, else of its elements in the order `order` */
  CCN__KSTEP_PAY,
  CCN__KSTEP_FILL /* slot dst = `fill` on the ranks to which nothing is shifted */
} ccn__kstep_kind;

typedef struct ccn__kstep {
  uint8_t kind, over, op, t;
  bool average;
  int64_t order; /* of PAY of values: the attribute (order.h) */
  uint32_t index, src, dst;
  uint64_t fill;
  const uint8_t *only; /* FILL: for each rank whether it does it */
} ccn__kstep;

/* A node whose evaluation may fail: the rank's word for it, 0 before, is 1 if it did. What was wrong, and
 * where, the reference interpreter says when it does the same again. */
typedef struct ccn__kfault {
  ccn__id node;
  uint16_t code; /* 606 */
} ccn__kfault;

typedef struct ccn__kern {
  ccn__arena *arena;
  const ccn__graph *g;
  ccn__mesh mesh;
  uint32_t world;
  /* mesh axes over which ranks read or write each other's memory: all of a group must have arrived before the
   * first step, and all must be done with the last before anyone goes on. 0: none */
  uint8_t over;
  CCN__VEC(ccn__kslot) slots;
  CCN__VEC(ccn__kptr) ptrs;
  CCN__VEC(ccn__kloop) loops;
  CCN__VEC(ccn__ktree) trees;
  CCN__VEC(ccn__kstep) steps;
  CCN__VEC(ccn__kfault) faults;
  uint32_t nnumbers;
  int64_t *numbers; /* rank r's are at numbers + r * nnumbers */
} ccn__kern;

/* ---- making (passes/kernel_build.c) -------------------------------------------------------------------- */

typedef struct ccn__kern_in {
  ccn__arena *arena;
  const ccn__graph *g;
  const ccn__shape *shape; /* of each node */
  const int64_t *sym;
  ccn__members *const *bundle; /* may be NULL if the graph has none */
  const ccn__id *node;         /* the group, ascending */
  uint32_t nnodes;
  /* out, when it is refused: */
  const char *why; /* in words: "`x` is a reduction over dims that are not the last" */
  ccn__id at;      /* the node at fault */
} ccn__kern_in;

/* The group as a kernel, in the arena; NULL if this is something that kernels cannot do yet (in->why,
 * in->at). */
ccn__kern *ccn__kern_build(ccn__kern_in *in);

/* Whether slot `out` may stand in the memory of slot `in`: every element of `in` is read before it is
 * overwritten, on every rank, whatever the order in which ranks and chunks run. */
bool ccn__kern_may_alias(const ccn__kern *k, uint32_t in, uint32_t out);

/* ---- text (kernel_text.c) ------------------------------------------------------------------------------ */

/* All that the machine code depends on; equal texts have equal code. */
void ccn__kern_print_code(const ccn__kern *k, ccn__text *out);
/* For people: that, the slots and the steps. */
void ccn__kern_print(const ccn__kern *k, ccn__text *out);

/* ---- execution (kernel_step.c; loops: jit/) ------------------------------------------------------------ */

/* What the machine code of a loop gets; one a rank. */
typedef struct ccn__kern_args {
  void *const *ptr;
  const int64_t *number;
  uint64_t *fault;
  uint64_t flags;
} ccn__kern_args;
/* Stores to peers go around the caches where addresses allow it: worth it when what is written is larger
 * than they are. The loop ends with a fence, so that the next barrier orders them. */
#define CCN__KERN_STREAM ((uint64_t)1)
/* Elements [begin, end) of the loop's box on the rank: whole, or cut where ccn__kern_chunk says. */
typedef void ccn__kern_fn(const ccn__kern_args *args, int64_t begin, int64_t end);

/* Fills in rank's pointer table (k->ptrs.n words). base[r][s]: slot s on rank r. */
void ccn__kern_bind(const ccn__kern *k, uint32_t rank, void *const *const *base, void **out_ptr);
/* The end of a chunk of about `want` elements from `begin` on; at most the loop's count on the rank. */
int64_t ccn__kern_chunk(const ccn__kern *k, uint32_t loop, uint32_t rank, int64_t begin, int64_t want);
/* Does one rank's part of a FINISH, PAY or FILL step. */
void ccn__kern_step(const ccn__kern *k, uint32_t step, uint32_t rank, void *const *const *base);

#endif

/* tune.h: a search for the schedule that takes a program the least time.
 *
 * Place in the pipeline: beside the schedules: it carries out the same passes, and what it gives is the text of a
 * schedule. Knows no machine: whoever asks prices each graph.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_PASSES_TUNE_H
#define CCN_PASSES_TUNE_H

#include "schedule.h"

enum { CCN__TUNE_MOST = 4096 }; /* graphs; then the search ends */

typedef struct ccn__tuned {
  const char *body;    /* the schedule's statements, a line each; "" is the program alone */
  const ccn__graph *g; /* what they make of it */
  double seconds;      /* its price; negative: it has none */
  bool exact;          /* all of them keep every bit */
} ccn__tuned;

typedef struct ccn__tune_options {
  bool reassociate;                                 /* algorithms too that add in another order */
  double (*price)(void *user, const ccn__graph *g); /* seconds; negative: none */
  void (*progress)(void *user, uint32_t seen);      /* NULL: nobody */
  void *user;
} ccn__tune_options;

typedef struct ccn__tune_result {
  CCN__VEC(ccn__tuned) seen;      /* different graphs; the first is the program alone */
  uint32_t best, second;          /* of them; second: CCN__NO_ID if there is one only */
  uint32_t moves, refused, known; /* tried; refused; that led to a graph seen before */
  bool whole;                     /* false: it ended at CCN__TUNE_MOST */
} ccn__tune_result;

/* The graph's mesh is known. Everything is made in `a`; diagnostics of what is refused go nowhere. */
void ccn__tune(ccn__rt *rt, ccn__arena *a, const ccn__graph *g, const ccn__tune_options *o,
               ccn__tune_result *out);

/* ---- moves (tune_moves.c), for the search (tune.c) ------------------------------------------------------- */

/* What a statement gave a name, as far as schedules may still say that name. */
typedef enum ccn__tune_role {
  CCN__TUNE_X,      /* the all-reduce */
  CCN__TUNE_PARTS,  /* split: the reduce-scatter */
  CCN__TUNE_GATHER, /* split: the all-gather */
  CCN__TUNE_COMP,   /* reorder: what runs on slices */
  CCN__TUNE_LATE,   /* reorder: the gathers behind it */
  CCN__TUNE_KERNEL, /* fuse */
  CCN__TUNE_CHAIN,  /* overlap */
  CCN__TUNE_MATMUL, /* what makes the all-reduce's operand, if that is a matmul */
  CCN__TUNE_ROLES
} ccn__tune_role;

typedef struct ccn__tune_handle {
  const char *name; /* NULL: there is none */
  ccn__ids ids;
  bool consumed;
} ccn__tune_handle;

/* One all-reduce and what became of it. Those of one kind (`alike`) make the same moves. */
typedef struct ccn__tune_chain {
  uint32_t alike;
  const char *block; /* "blk[0]" of an all-reduce blk[0].z; NULL: it stands in no block */
  ccn__tune_handle h[CCN__TUNE_ROLES];
} ccn__tune_chain;

typedef struct ccn__tune_gone {
  const struct ccn__tune_gone *next;
  const char *name;
} ccn__tune_gone;

enum { CCN__TUNE_LONGEST = 12 }; /* moves on one kind */

/* Kinds are done one behind the other, and of a kind one chain behind the other, so that the moves on a kind are a loop
 * over its blocks. To add a move all moves on the kind are made anew from the state before the first of them. */
typedef struct ccn__tune_state {
  ccn__graph *g;
  const char *body;
  ccn__tune_chain *chain;
  uint32_t nchains, nkinds;
  bool exact;
  const ccn__tune_gone *gone;         /* names of the program that statements consumed */
  const struct ccn__tune_state *from; /* before the moves on `kind` */
  uint32_t kind, nmoves;
  uint8_t move[CCN__TUNE_LONGEST], arg[CCN__TUNE_LONGEST];
} ccn__tune_state;

/* A move being carried out on a copy of a state. */
typedef struct ccn__tune_trial {
  ccn__rt *rt;
  ccn__arena *a;
  ccn__tune_state s;
  bool reassociate;
  const char *lines; /* said so far about the chain at hand */
  const char *block; /* of that chain: then only names in it may be said */
} ccn__tune_trial;

/* The chains of a program. */
void ccn__tune_begin(ccn__rt *rt, ccn__arena *a, const ccn__graph *g, ccn__tune_state *out);
/* Adds move number `move` with `arg` on all chains of kind `kind`. False: refused, or it makes no sense in this state; the trial's
 * state is lost then. */
bool ccn__tune_move(ccn__tune_trial *t, uint32_t kind, uint32_t move, uint32_t arg);
uint32_t ccn__tune_moves(void);
uint32_t ccn__tune_args(uint32_t move); /* numbers below it are arguments */

#endif

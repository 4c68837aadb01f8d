/* call.h: what program.c, call_bind.c and op_call.c share: one call in progress.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_LANG_CALL_H
#define CCN_LANG_CALL_H

#include "interp.h"
#include "lower.h"

/* A parameter's tensor: what the graph reads, and where it came from. */
typedef struct ccn__actual {
  ccn__tensor *tensor; /* in the parameter's placement */
  ccn__tensor *given;  /* the script's tensor, NULL for numbers and lists */
  ccn__list *list;     /* the script's list that was made a bundle, or NULL */
  ccn__span span;      /* of the argument */
  ccn__span param;     /* of the declaration */
  ccn__name name;
} ccn__actual;

typedef struct ccn__invoke {
  ccn__rt *rt;
  ccn__arena *arena;       /* dies with the call */
  ccn__program *program;   /* NULL: an op */
  ccn__program *scheduled; /* the program with schedules, or the same */
  const char *name;
  ccn__graph *g;
  ccn__span call;
  ccn__actual *actual; /* one for each of g->params */
  uint32_t nactual;
  int64_t *sym;        /* values of the symbols, -1 = not bound yet */
  ccn__span *sym_span; /* the argument that bound it */
  ccn__name *sym_by;
  ccn__members **bundle;
  ccn__val result;
} ccn__invoke;

/* call_bind.c: sizes, placements, overlap, constraints; raises. */
void ccn__invoke_bind(ccn__invoke *v);
/* The tensor of an argument given as a number, tensor, bundle or list; placements not converted yet. */
void ccn__invoke_actual(ccn__invoke *v, uint32_t i, ccn__val value, ccn__span span, const ccn__ast *param);
/* program.c: runs v->g with the bound arguments, stores updates back, sets v->result. */
void ccn__invoke_run(ccn__invoke *v);
/* Runs body with an arena that dies afterwards, also when body throws. */
void ccn__with_arena(ccn__rt *rt, void (*body)(ccn__rt *rt, ccn__arena *a, void *user), void *user);

/* tensor.c */
ccn__cplace ccn__concrete(const ccn__place *p, int64_t unit);
bool ccn__cplace_equal(const ccn__cplace *x, const ccn__cplace *y);
/* The same value in another placement; axes differ at most between replicated and sliced. */
ccn__tensor *ccn__tensor_convert(ccn__rt *rt, ccn__tensor *t, const ccn__cplace *want);
void ccn__tensor_take(ccn__tensor *to, ccn__tensor *from); /* to gets from's buffers */

/* storage.c */
ccn__tensor *ccn__tensor_member(ccn__rt *rt, const ccn__tensor *flat,
                                uint32_t i); /* of a bundle held uncut */
ccn__tensor *ccn__bundle_uncut(ccn__rt *rt, ccn__tensor *flat);
/* From now on the bytes are in `home`, which has them already. False: they stay, since the host lent the memory. */
bool ccn__tensor_cut(ccn__tensor *t, ccn__tensor *home);
bool ccn__list_cut(ccn__list *l, ccn__tensor *home);
/* The bundle in which all tensors of the list have their bytes, in this order; or NULL. */
ccn__tensor *ccn__list_home(const ccn__list *l);

#endif

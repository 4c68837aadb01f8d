/* handles.h: what names, paths, patterns and selectors of a schedule mean (internal to schedule.c, handles.c).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_PASSES_HANDLES_H
#define CCN_PASSES_HANDLES_H

#include "schedule.h"

typedef enum ccn__hkind {
  CCN__H_ERROR,
  CCN__H_NODES,
  CCN__H_LABELS,
  CCN__H_WORD,
  CCN__H_NUMBER,
  CCN__H_LIST
} ccn__hkind;

typedef struct ccn__item { /* one node of a handle; consumed: where a statement replaced it */
  ccn__id id;              /* CCN__NO_ID once it is gone */
  ccn__span consumed;
} ccn__item;

typedef struct ccn__handle {
  uint8_t kind;
  bool selected; /* by updated(...): members that do not qualify are left out */
  ccn__span span;
  CCN__VEC(ccn__item) items;     /* NODES */
  CCN__VEC(const char *) labels; /* LABELS: "blk[0]" */
  const char *word;              /* WORD */
  int64_t number;                /* NUMBER */
} ccn__handle;

typedef struct ccn__schedule_scope {
  struct ccn__schedule_scope *outer;
  const ccn__ast *schedule;
  CCN__VEC(struct ccn__named_handle {
    ccn__name name;
    ccn__handle value;
  })
  names;
} ccn__schedule_scope;

typedef struct ccn__schedule_run {
  ccn__rt *rt;
  ccn__arena *arena;
  ccn__graph *g;
  const ccn__program *program; /* whose graph it is; the names in front of paths */
  ccn__schedule_scope *scope;
  const ccn__env *env; /* script names: other schedules */
  CCN__VEC(struct ccn__gone {
    const char *name;
    ccn__span where;
  })
  gone; /* names of consumed nodes */
  uint32_t depth;
  uint32_t step; /* states reported */
  bool trying;
} ccn__schedule_run;

/* The value of an argument. ERROR after reporting. Consumed handles are CCN0401. */
ccn__handle ccn__handle_eval(ccn__schedule_run *r, const ccn__ast *e);
ccn__handle *ccn__handle_find(ccn__schedule_run *r, ccn__name name); /* in the scopes of this schedule */
/* The live nodes of a NODES handle. */
ccn__ids ccn__handle_ids(ccn__schedule_run *r, const ccn__handle *h);
/* After a statement: handles follow their nodes; those of `used` are consumed. */
void ccn__handles_follow(ccn__schedule_run *r, const ccn__graph *old, const ccn__id *map,
                         const ccn__ids *used, ccn__span where);

#endif

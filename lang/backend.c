/* backend.c: who executes programs, by name.
 * SPDX-License-Identifier: Apache-2.0 */
#include "call.h"
#include "driver.h"
#include "local.h"
#include "plan.h"
#include "record.h"

typedef struct planned_call {
  ccn__exec *x;
} planned_call;

static void through_plan(ccn__rt *rt, ccn__arena *a, void *user) {
  ccn__exec *x = ((planned_call *)user)->x;
  ccn__plan *p = ccn__plan_make(a, x->g, x->sym, x->bundle);
  const char *wrong = ccn__plan_check(p);
  if (wrong) {
    (void)ccn__error(rt->diags, 699, (ccn__span){0}, "", "internal error: the plan of `%s` is wrong: %s",
                     x->label, wrong);
    ccn__throw(rt->heap, CCN_INTERNAL);
  }
  ccn__interp_plan(x, p, rt->ncalls);
}

static void execute_plan(ccn__exec *x) {
  planned_call c = {.x = x};
  ccn__with_arena(x->rt, through_plan, &c);
}

/* ---- dumps ----------------------------------------------------------------------------------------------------- */

static bool is_new(ccn__plan_dump *d, ccn__rt *rt, const ccn__text *t) {
  uint64_t h = UINT64_C(14695981039346656037); /* FNV-1a */
  for (size_t i = 0; i < t->n; i++) h = (h ^ (unsigned char)t->at[i]) * UINT64_C(1099511628211);
  for (uint32_t i = 0; i < d->seen.n; i++)
    if (d->seen.at[i] == h) return false;
  *CCN__PUSH(rt->arena, &d->seen) = h;
  return true;
}

static void write_plan(ccn__rt *rt, ccn__arena *a, void *user) {
  ccn__exec *x = ((planned_call *)user)->x;
  ccn__plan_dump *d = rt->execute_user;
  ccn__plan *p = ccn__plan_make(a, x->g, x->sym, x->bundle);
  ccn__text t;
  if (x->schedule) p->label = ccn__arena_printf(a, "%s@%s", x->g->name, x->schedule);
  ccn__text_init(&t, a);
  if (d->job->json) ccn__plan_print_json(p, &t);
  else ccn__plan_print(p, &t);
  const char *wrong = d->job->json ? NULL : ccn__plan_check(p);
  if (wrong) ccn__text_printf(&t, "  the plan is wrong: %s\n", wrong);
  if (d->job->write && is_new(d, rt, &t)) d->job->write(t.at, t.n, d->job->user);
}

void ccn__backend_dump(ccn__exec *x) {
  planned_call c = {.x = x};
  if (x->text) ccn__with_arena(x->rt, write_plan, &c);
  ccn__interp(x);
}

/* ---- by name --------------------------------------------------------------------------------------------------- */

static const ccn__backend backends[] = {
  {"reference", NULL}, {"plan", execute_plan}, {"local", ccn__local_execute}, {"sim", ccn__record_execute}};

const ccn__backend *ccn__backend_find(const char *name) {
  if (!name) name = CCN__DEFAULT_BACKEND;
  for (size_t i = 0; i < CCN__COUNT(backends); i++)
    if (strcmp(name, backends[i].name) == 0) return &backends[i];
  return NULL;
}

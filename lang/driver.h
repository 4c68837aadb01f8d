/* driver.h: a context, what a text or a session lives in, and the path of a text through it (internal to
 * driver.c, modules.c and the api files).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_LANG_DRIVER_H
#define CCN_LANG_DRIVER_H

#include "script.h"

/* What one text lives in (ccn_run), or everything that a session was told (ccn_eval, modules, tensors). */
typedef struct ccn__state {
  ccn_context *context;
  ccn__arena arena; /* sources, syntax, names, graphs: until the next text, or as long as the session */
  ccn__arena told;  /* diagnostics of the last call */
  ccn__names names;
  ccn__diags diags;
  ccn__rt rt;
  ccn__env *assigned;         /* session: names that assignments change */
  struct ccn__places *places; /* session: placements that the host has written (api_tensor.c) */
  ccn__journal journal;       /* session: the statements that were carried out, in `arena` */
  uint32_t nholds;            /* in rt.holds; a session that was reset lives until the last one goes */
  struct ccn__state *older;
} ccn__state;

struct ccn_context {
  ccn__heap heap;
  ccn_options options;
  ccn__arena own;      /* what the options point to; lives as long as the context */
  ccn__arena watched;  /* the same of ccn_options_update: until the next one */
  ccn__state *once;    /* of ccn_run, ccn_check, ccn_dump, ccn_graph_read */
  ccn__state *session; /* NULL until it is used */
  ccn__state *running; /* NULL between calls */
  ccn__state *retired; /* sessions that were reset while the host held something of them */
  ccn__state *last;    /* of the last call: whose diagnostics are shown */
  _Atomic int interrupt;
  /* see api.h */
  _Atomic int lock;
  _Atomic uint32_t refs;
  struct ccn__handle *_Atomic dead;
  uint32_t callbacks; /* host functions that are running */
  const struct ccn__host_fn *hosts;
  const struct ccn__host_op *host_ops;
  const char *complaint; /* of the host function that runs; in the running state's `told` */
  uint64_t ncalls, nops; /* of ccn_report_write */
};

typedef enum ccn__stage { CCN__STAGE_PARSE, CCN__STAGE_CHECK, CCN__STAGE_RUN } ccn__stage;
typedef struct ccn__job {
  const char *name, *text;
  size_t size;
  ccn__stage last; /* stages after it are left out */
  bool dump_ast, dump_graph, dump_scheduled, dump_plan, json;
  /* Behind the check, instead of running the script. */
  void (*instead)(struct ccn__state *s, const ccn__ast *ast, const struct ccn__job *job);
  ccn_write_fn write; /* where dumps go */
  void *user;
} ccn__job;

/* backend.c: by its name in ccn_options; NULL: there is none of that name. */
typedef struct ccn__backend {
  const char *name;
  void (*execute)(struct ccn__exec *x); /* NULL: ccn__interp */
} ccn__backend;
const ccn__backend *ccn__backend_find(const char *name);
/* A backend for dumps: writes the plan of each program, once for the same sizes, to `user`, a ccn__plan_dump. */
typedef struct ccn__plan_dump {
  const ccn__job *job;
  CCN__VEC(uint64_t) seen; /* hashes of what was written */
} ccn__plan_dump;
void ccn__backend_dump(struct ccn__exec *x);

/* Forgets everything of the text before; allocates nothing. */
void ccn__state_reset(ccn__state *s, ccn_context *c);
/* Before a call in a session: forgets the diagnostics of the call before. */
void ccn__state_begin(ccn__state *s);
/* Takes a text through the stages. Errors are in s->diags, or thrown. */
void ccn__drive(ccn__state *s, const ccn__job *job);
/* The last stage: executes a script that was checked. */
void ccn__drive_run(ccn__state *s, const ccn__ast *ast);
/* Reads graph text, verifies it, writes it again. */
void ccn__drive_graph(ccn__state *s, const ccn__job *job);

/* A text that adds to a session. What it did before an error stays done. */
typedef struct ccn__entry {
  const char *name, *text;
  size_t size;
  ccn__env *env;      /* where its names are defined */
  ccn__env *assigned; /* see ccn__names_check_entry */
  bool trial;         /* an expression alone, evaluated without a trace */
  bool noted;         /* what is carried out goes to the state's journal */
  bool incomplete;    /* out: nothing is wrong but that the text ends too early; diagnostics say where */
  ccn__val value;     /* out: of an expression that stands last; on temps */
} ccn__entry;
void ccn__drive_entry(ccn__state *s, ccn__entry *e);
/* The session's scope, made at its first use. */
ccn__env *ccn__session_env(ccn__state *s);
/* The names that every main script has, in a scope on temps. */
ccn__module *ccn__main_module(ccn__rt *rt, const char *name);

/* Copies a text to the runtime's arena and makes it known to the diagnostics; its number. */
uint32_t ccn__source_add(ccn__rt *rt, const char *name, const char *text, size_t size);

#endif

/* driver.h: a context, and the path of a text through it (internal to driver.c, modules.c and api.c).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_LANG_DRIVER_H
#define CCN_LANG_DRIVER_H

#include "script.h"

struct ccn_context {
  ccn__heap heap;
  ccn_options options;
  ccn__arena own;   /* what the options point to; lives as long as the context */
  ccn__arena arena; /* sources, syntax, names, graphs: until the next text */
  ccn__arena told;  /* diagnostics */
  ccn__names names;
  ccn__diags diags;
  ccn__rt rt;
};

typedef enum ccn__stage { CCN__STAGE_PARSE, CCN__STAGE_CHECK, CCN__STAGE_RUN } ccn__stage;
typedef struct ccn__job {
  const char *name, *text;
  size_t size;
  ccn__stage last; /* stages after it are left out */
  bool dump_ast, dump_graph, dump_scheduled;
  ccn_write_fn write; /* where dumps go */
  void *user;
} ccn__job;

/* Forgets everything of the text before; nothing is allocated afterwards but the context itself. */
void ccn__context_reset(ccn_context *c);
/* Takes a text through the stages. Errors are in c->diags, or thrown. */
void ccn__drive(ccn_context *c, const ccn__job *job);
/* Reads graph text, verifies it, writes it again. */
void ccn__drive_graph(ccn_context *c, const ccn__job *job);

/* Copies a text to the runtime's arena and makes it known to the diagnostics; its number. */
uint32_t ccn__source_add(ccn__rt *rt, const char *name, const char *text, size_t size);

#endif

/* commands.h: what each command does once its words are read. Each returns the exit status.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_REPL_COMMANDS_H
#define CCN_REPL_COMMANDS_H

#include "ccn.h"
#include "options.h"

int command_run(const arguments *a);
int command_check(const arguments *a);
int command_dump(const arguments *a);
int command_explain(const arguments *a);
int command_algo(const arguments *a);
int command_plan(const arguments *a);    /* plan.c */
int command_machine(const arguments *a); /* plan.c */
int command_tune(const arguments *a);    /* plan.c */
int command_version(const arguments *a);
int command_repl(const arguments *a);
int command_cache(const arguments *a);  /* cache.c */
int command_fmt(const arguments *a);    /* fmt.c */
int command_doctor(const arguments *a); /* doctor.c */

/* What commands share (commands.c). */
typedef ccn_status (*work_fn)(const arguments *a, ccn_context *c, const char *name, const char *text,
                              size_t size);
/* Reads a file, lets `work` have it in a context of its own, reports; gives the exit status. */
int with_file(const arguments *a, const char *path, work_fn work);
int with_text(const arguments *a, const char *name, const char *text, size_t size, work_fn work);
/* A message of the command itself, as text or as one JSON object. */
void say_error(const arguments *a, const char *code, const char *message, const char *hint);

/* run --backend sim (plan.c). */
ccn_status simulate(const arguments *a, ccn_context *c, const char *name, const char *text, size_t size);

/* `s` as a JSON string on stdout. */
void print_json_string(const char *s);

/* dump, of what the statements of schedules do (passes.c). */
bool passes_is_stage(const char *word); /* the name of a statement, or a number */
int passes_dump(const arguments *a);

#endif

/* plan.c: what plans cost (plan), scripts in virtual time (run --backend sim), machines (machine).
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "files.h"
#include "terminal.h"

typedef struct growing {
  char *at;
  size_t n, cap;
  bool failed;
} growing;

static void append(const char *s, size_t n, void *user) {
  growing *t = user;
  if (t->n + n + 1 > t->cap) {
    const size_t cap = 2 * t->cap + n + 4096;
    char *more = realloc(t->at, cap);
    if (!more) {
      t->failed = true;
      return;
    }
    t->at = more;
    t->cap = cap;
  }
  memcpy(t->at + t->n, s, n);
  t->n += n;
  t->at[t->n] = 0;
}

static const char *known_machine(const char *name) {
  const char *text, *known;
  for (size_t i = 0; (known = ccn_machine_list(i, &text)); i++)
    if (strcmp(known, name) == 0) return text;
  return NULL;
}

static ccn_status cannot(const arguments *a, const char *what, const char *path, int error) {
  char message[512];
  snprintf(message, sizeof message, "cannot %s '%.400s': %s", what, path, strerror(error));
  say_error(a, *what == 'r' ? "CCN0701" : "CCN0702", message, "");
  return CCN_NOT_FOUND;
}

static ccn_status read_text(const arguments *a, const char *path, growing *out) {
  void *data = NULL;
  size_t size = 0;
  const int error = files_read(path, &data, &size, NULL);
  if (error) return cannot(a, "read", path, error);
  append(data, size, out);
  files_free(data, size, NULL);
  return out->failed ? CCN_OUT_OF_MEMORY : CCN_OK;
}

/* A word with a dot or a slash, and -, is a file. */
static bool is_file(const char *word) { return strpbrk(word, "./") || strcmp(word, "-") == 0; }

/* The machine's text, unless it is one by name. */
static ccn_status find_machine(const arguments *a, ccn_context *c, ccn_plan_desc *d, growing *text) {
  ccn_status status = CCN_OK;
  d->machine = a->machine;
  if (!a->machine || known_machine(a->machine)) return CCN_OK;
  if (strcmp(a->machine, "this") == 0) status = ccn_machine_measure(c, append, text);
  else if (is_file(a->machine)) status = read_text(a, a->machine, text);
  d->machine_text = text->at;
  return status;
}

static ccn_status write_plan(const arguments *a, ccn_context *c, const char *name, const char *text,
                             size_t size, const char *program, const char *format) {
  ccn_plan_desc d;
  growing machine = {NULL, 0, 0, false}, trace = {NULL, 0, 0, false};
  memset(&d, 0, sizeof d);
  d.size = sizeof d;
  d.program = program;
  d.sizes = a->sizes.at;
  d.nsizes = a->sizes.n;
  d.algorithm = a->algorithm;
  if (a->trace) {
    d.trace = append;
    d.trace_user = &trace;
  }
  ccn_status status = find_machine(a, c, &d, &machine);
  if (status == CCN_OK) status = ccn_plan_write(c, name, text, size, &d, format, terminal_print, NULL);
  if (status == CCN_OK && a->trace && trace.failed) status = CCN_OUT_OF_MEMORY;
  if (status == CCN_OK && a->trace) {
    const int error = strcmp(a->trace, "-") == 0 ? (terminal_print(trace.at, trace.n, NULL), 0)
                                                 : files_write(a->trace, trace.at, trace.n, NULL);
    if (error) status = cannot(a, "write", a->trace, error);
  }
  free(machine.at);
  free(trace.at);
  return status;
}

ccn_status simulate(const arguments *a, ccn_context *c, const char *name, const char *text, size_t size) {
  return write_plan(a, c, name, text, size, NULL, "time");
}

static ccn_status do_plan(const arguments *a, ccn_context *c, const char *name, const char *text,
                          size_t size) {
  const char *program = a->plain.n > 1 ? a->plain.at[1] : NULL;
  char full[512];
  if (a->schedule) {
    snprintf(full, sizeof full, "%.200s@%.200s", program ? program : "", a->schedule);
    program = full;
  }
  return write_plan(a, c, name, text, size, program, a->json ? "json" : "table");
}

int command_plan(const arguments *a) {
  arguments planned = *a;
  if (a->sizes.n && a->plain.n < 2) {
    say_error(a, "CCN0501", "-D needs a program", "ccn plan FILE PROGRAM -D N=1000");
    return EXIT_USAGE;
  }
  if (a->schedule && a->plain.n < 2) {
    say_error(a, "CCN0501", "--schedule needs a program", "ccn plan FILE PROGRAM --schedule NAME");
    return EXIT_USAGE;
  }
  planned.backend = "sim";
  return with_file(&planned, a->plain.at[0], do_plan);
}

/* ---- tune ---------------------------------------------------------------------------------------- */

/* A line on a terminal that counts; it goes when the search ends. */
static void count(size_t seen, void *user) {
  char line[64];
  (void)user;
  if (seen % 16) return;
  const int n = snprintf(line, sizeof line, "%zu graphs seen", seen);
  terminal_progress(line, (size_t)n, NULL);
}

static ccn_status do_tune(const arguments *a, ccn_context *c, const char *name, const char *text,
                          size_t size) {
  ccn_plan_desc plan;
  ccn_tune_desc d;
  growing machine = {NULL, 0, 0, false}, out = {NULL, 0, 0, false};
  memset(&plan, 0, sizeof plan);
  memset(&d, 0, sizeof d);
  plan.size = sizeof plan;
  plan.program = a->plain.n > 1 ? a->plain.at[1] : NULL;
  plan.sizes = a->sizes.at;
  plan.nsizes = a->sizes.n;
  d.size = sizeof d;
  d.plan = &plan;
  d.reassociate = a->reassociate;
  d.cache = a->no_cache ? "" : NULL;
  d.progress = terminal_has_progress() ? count : NULL;
  ccn_status status = find_machine(a, c, &plan, &machine);
  if (status == CCN_OK)
    status = ccn_tune_write(c, name, text, size, &d,
                            a->json      ? "json"
                            : a->explain ? "explain"
                                         : "schedule",
                            append, &out);
  terminal_end_progress();
  if (status == CCN_OK && out.failed) status = CCN_OUT_OF_MEMORY;
  if (status == CCN_OK && out.at && (!a->out || strcmp(a->out, "-") == 0))
    terminal_print(out.at, out.n, NULL);
  else if (status == CCN_OK && out.at) {
    const int error = files_write(a->out, out.at, out.n, NULL);
    if (error) status = cannot(a, "write", a->out, error);
  }
  free(machine.at);
  free(out.at);
  return status;
}

int command_tune(const arguments *a) {
  arguments tuned = *a;
  if (a->sizes.n && a->plain.n < 2) {
    say_error(a, "CCN0501", "-D needs a program", "ccn tune FILE PROGRAM -D N=1000");
    return EXIT_USAGE;
  }
  tuned.backend = "sim";
  return with_file(&tuned, a->plain.at[0], do_tune);
}

/* ---- machines ------------------------------------------------------------------------------------ */

static ccn_status measure(const arguments *a, ccn_context *c, const char *name, const char *text,
                          size_t size) {
  (void)a, (void)name, (void)text, (void)size;
  return ccn_machine_measure(c, terminal_print, NULL);
}

static const char nothing[] = "";

/* A plan of an empty script: the machine is read. */
static ccn_status read_machine(const arguments *a, ccn_context *c, const char *name, const char *text,
                               size_t size) {
  ccn_plan_desc d;
  growing t = {NULL, 0, 0, false}, dropped = {NULL, 0, 0, false};
  (void)a;
  append(text, size, &t);
  memset(&d, 0, sizeof d);
  d.size = sizeof d;
  d.machine_text = t.at;
  ccn_status status = ccn_plan_write(c, name, nothing, 0, &d, "json", append, &dropped);
  if (status == CCN_OK) terminal_print(text, size, NULL);
  free(t.at);
  free(dropped.at);
  return status;
}

int command_machine(const arguments *a) {
  const char *name, *text;
  if (a->measure) return with_text(a, "this", "", 0, measure);
  if (a->plain.n == 0) {
    for (size_t i = 0; (name = ccn_machine_list(i, &text)); i++) {
      const char *about = strstr(text, "\nabout ");
      printf("%-10s %.*s\n", name, about ? (int)strcspn(about + 7, "\n") : 0, about ? about + 7 : "");
    }
    return EXIT_FINE;
  }
  text = known_machine(a->plain.at[0]);
  if (text) {
    terminal_print(text, strlen(text), NULL);
    return EXIT_FINE;
  }
  if (is_file(a->plain.at[0])) return with_file(a, a->plain.at[0], read_machine);
  say_error(a, "CCN0501", "there is no such machine", "`ccn machine` lists them");
  return EXIT_USAGE;
}

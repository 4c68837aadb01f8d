/* commands.c: run, check, dump, explain, version: each makes a context of the public library and shows what it says.
 * SPDX-License-Identifier: Apache-2.0 */
#include "commands.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "ccn.h"
#include "files.h"
#include "shell.h"
#include "terminal.h"

enum { HANG_TIMEOUT = 60 }; /* seconds */

/* The context that Ctrl-C ends; NULL while nothing runs. */
static ccn_context *volatile interruptible;

static void on_interrupt(int signal_number) {
  ccn_context *c = interruptible;
  (void)signal_number;
  if (c) ccn_interrupt(c);
  /* The handler is reset by SA_RESETHAND: a second Ctrl-C ends the process at once. */
}

static void catch_interrupts(ccn_context *c) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  sigemptyset(&action.sa_mask);
  action.sa_handler = on_interrupt;
  action.sa_flags = (int)SA_RESETHAND;
  interruptible = c;
  sigaction(SIGINT, &action, NULL);
}

void say_error(const arguments *a, const char *code, const char *message, const char *hint) {
  terminal_end_progress();
  fflush(stdout);
  if (!a->json) {
    fprintf(stderr, "ccn: %s%s%s\n", message, *hint ? "; " : "", hint);
    return;
  }
  fprintf(stderr, "{\"severity\": \"error\", \"code\": \"%s\", \"message\": ", code);
  terminal_error_json_string(message, strlen(message));
  fputs(", \"hint\": ", stderr);
  terminal_error_json_string(hint, strlen(hint));
  fputs("}\n", stderr);
}

static void show_watched(const char *text, size_t size, void *user) {
  const arguments *a = user;
  if (!a->json) {
    terminal_error(text, size, NULL);
    if (size && text[size - 1] != '\n') terminal_error("\n", 1, NULL);
    return;
  }
  terminal_error("{\"watch\": ", 10, NULL);
  terminal_error_json_string(text, size && text[size - 1] == '\n' ? size - 1 : size);
  terminal_error("}\n", 2, NULL);
}

/* From the library's watchdog: the thread that hangs cannot be asked to end. */
static void give_up(const char *text, size_t n, void *user) {
  (void)n;
  say_error(user, "CCN0610", "nothing has moved for too long", text);
  (void)fflush(NULL);
  _Exit(EXIT_HANG);
}

static ccn_status open_context(const arguments *a, ccn_context **out) {
  ccn_options o;
  ccn_options_init(&o, sizeof o);
  o.ranks = a->ranks;
  o.print = a->stage ? NULL : terminal_print; /* of a dump only what is dumped goes to stdout */
  o.progress = terminal_has_progress() ? terminal_progress : NULL;
  o.read = files_read;
  o.read_free = files_free;
  o.write = files_write;
  o.args = a->script.at;
  o.nargs = a->script.n;
  o.watch = a->watch.at;
  o.nwatch = a->watch.n;
  o.watch_print = show_watched;
  o.watch_user = (void *)a;
  o.check_nan = a->check_nan;
  o.backend = a->backend;
  o.workers = a->workers;
  o.hang_limit_ms = 1000 * (int64_t)(a->hang_timeout ? a->hang_timeout : HANG_TIMEOUT);
  o.hung = give_up;
  o.hung_user = (void *)a;
  ccn_status status = ccn_context_create(&o, out);
  if (status == CCN_INVALID_ARGUMENT && a->backend) {
    say_error(a, "CCN0501", "unknown backend", a->backend);
    return status;
  }
  if (status != CCN_OK) say_error(a, "CCN0701", "no context can be made", ccn_status_name(status));
  return status;
}

/* Errors of the environment (07xx) and nothing else: a file is missing, a disk is full. */
static bool environment_failed(ccn_context *c) {
  size_t errors = 0;
  size_t n = ccn_diagnostic_count(c);
  for (size_t i = 0; i < n; i++) {
    ccn_diagnostic d;
    memset(&d, 0, sizeof d);
    d.size = sizeof d;
    if (ccn_diagnostic_get(c, i, &d) != CCN_OK || d.severity != CCN_SEVERITY_ERROR) continue;
    if (strncmp(d.code, "CCN07", 5) != 0) return false;
    errors++;
  }
  return errors > 0;
}

/* Whether the library could still say where memory ended. */
static bool memory_reported(ccn_context *c) {
  ccn_diagnostic d;
  size_t n = ccn_diagnostic_count(c);
  memset(&d, 0, sizeof d);
  d.size = sizeof d;
  return n && ccn_diagnostic_get(c, n - 1, &d) == CCN_OK && strcmp(d.code, "CCN0608") == 0;
}

/* Shows the diagnostics of the last call and gives the exit status for what it came to. */
static int report(const arguments *a, ccn_context *c, ccn_status status) {
  terminal_end_progress();
  if (a->json) {
    ccn_diagnostics_write_json(c, terminal_error, NULL);
  } else {
    ccn_diagnostics_write(c, terminal_has_colour(), terminal_error, NULL);
  }
  switch (status) {
  case CCN_OK: return EXIT_FINE;
  case CCN_ERROR: return environment_failed(c) ? EXIT_ENVIRONMENT : EXIT_PROGRAM;
  case CCN_OUT_OF_MEMORY:
    if (!memory_reported(c)) say_error(a, "CCN0608", "out of memory", "");
    return EXIT_ENVIRONMENT;
  case CCN_INVALID_ARGUMENT: return EXIT_USAGE;
  case CCN_NOT_FOUND: return EXIT_ENVIRONMENT; /* it was said already */
  case CCN_INTERRUPTED: {
    struct sigaction action;
    say_error(a, "CCN0603", "interrupted by Ctrl-C", "");
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    action.sa_handler = SIG_DFL;
    sigaction(SIGINT, &action, NULL);
    raise(SIGINT); /* so that a shell sees what happened */
    return 128 + SIGINT;
  }
  default: say_error(a, "CCN0699", "a defect of ccn", ccn_status_name(status)); return EXIT_DEFECT;
  }
}

int with_text(const arguments *a, const char *name, const char *text, size_t size, work_fn work) {
  ccn_context *c = NULL;
  int status = EXIT_ENVIRONMENT;
  if (open_context(a, &c) == CCN_OK) {
    catch_interrupts(c);
    ccn_status came_to = work(a, c, name, text, size);
    interruptible = NULL;
    status = report(a, c, came_to);
  }
  ccn_context_free(c);
  return status;
}

int with_file(const arguments *a, const char *path, work_fn work) {
  void *text = NULL;
  size_t size = 0;
  int error = files_read(path, &text, &size, NULL);
  if (error) {
    char message[512];
    snprintf(message, sizeof message, "cannot read '%.400s': %s", path, strerror(error));
    say_error(a, "CCN0701", message, error == EFBIG ? FILES_TOO_LARGE : "");
    return EXIT_ENVIRONMENT;
  }
  const int status = with_text(a, strcmp(path, "-") == 0 ? "<stdin>" : path, text, size, work);
  files_free(text, size, NULL);
  return status;
}

typedef struct growing {
  char *at;
  size_t n;
} growing;

static void append(const char *s, size_t n, void *user) {
  growing *t = user;
  char *more = realloc(t->at, t->n + n);
  if (!more) return;
  memcpy(more + t->n, s, n);
  t->at = more;
  t->n += n;
}

/* What the run has used and sent: to a file, or to stdout. */
static ccn_status write_report(const arguments *a, ccn_context *c) {
  growing t = {NULL, 0};
  int error = 0;
  ccn_status status = ccn_report_write(c, append, &t);
  if (status == CCN_OK && strcmp(a->report, "-") == 0) terminal_print(t.at, t.n, NULL);
  else if (status == CCN_OK) error = files_write(a->report, t.at, t.n, NULL);
  free(t.at);
  if (error) {
    char message[512];
    snprintf(message, sizeof message, "cannot write '%.400s': %s", a->report, strerror(error));
    say_error(a, "CCN0702", message, "");
    return CCN_NOT_FOUND;
  }
  return status;
}

static ccn_status do_run(const arguments *a, ccn_context *c, const char *name, const char *text,
                         size_t size) {
  if (a->backend && strcmp(a->backend, "sim") == 0) return simulate(a, c, name, text, size);
  ccn_status status = ccn_run(c, name, text, size);
  return status == CCN_OK && a->report ? write_report(a, c) : status;
}

static ccn_status do_check(const arguments *a, ccn_context *c, const char *name, const char *text,
                           size_t size) {
  (void)a;
  return ccn_check(c, name, text, size);
}

static ccn_status do_dump(const arguments *a, ccn_context *c, const char *name, const char *text,
                          size_t size) {
  const char *stage = a->json && strcmp(a->stage, "plan") == 0 ? "plan.json" : a->stage;
  return ccn_dump(c, name, text, size, stage, terminal_print, NULL);
}

enum { EXECUTED_RANKS = 64 };

int command_run(const arguments *a) {
  if (a->ranks > EXECUTED_RANKS && !(a->backend && strcmp(a->backend, "sim") == 0)) {
    say_error(a, "CCN0501", "--ranks takes a number from 1 to 64",
              "more only with --backend sim, in virtual time");
    return EXIT_USAGE;
  }
  return with_file(a, a->plain.at[0], do_run);
}

int command_check(const arguments *a) {
  int worst = EXIT_FINE;
  for (size_t i = 0; i < a->plain.n; i++) {
    int status = with_file(a, a->plain.at[i], do_check);
    if (status > worst) worst = status;
  }
  return worst;
}

int command_dump(const arguments *a) {
  static const char *const stages[] = {"ast", "graph", "scheduled", "plan", NULL};
  if (a->diff || a->after.n || a->times) return passes_dump(a);
  if (!a->stage) {
    say_error(a, "CCN0501", "dump needs --stage", "ast, graph, scheduled or plan");
    return EXIT_USAGE;
  }
  if (passes_is_stage(a->stage)) return passes_dump(a);
  for (size_t i = 0; stages[i]; i++) {
    if (strcmp(stages[i], a->stage) == 0) return with_file(a, a->plain.at[0], do_dump);
  }
  const char *near = suggest(a->stage, stages);
  char message[128], hint[64];
  snprintf(message, sizeof message, "unknown stage '%.64s'", a->stage);
  if (near) {
    snprintf(hint, sizeof hint, "did you mean %s?", near);
  } else {
    snprintf(hint, sizeof hint, "there are ast, graph, scheduled and plan");
  }
  say_error(a, "CCN0501", message, hint);
  return EXIT_USAGE;
}

void print_json_string(const char *s) {
  putchar('"');
  for (; *s; s++) {
    unsigned char c = (unsigned char)*s;
    if (c == '"' || c == '\\') {
      printf("\\%c", c);
    } else if (c < 0x20) {
      printf("\\u%04x", c);
    } else {
      putchar(c);
    }
  }
  putchar('"');
}

static void explain_one(const arguments *a, const char *code, const char *title, const char *page) {
  if (!a->json) {
    printf("%s%s", page, page[0] && page[strlen(page) - 1] == '\n' ? "" : "\n");
    return;
  }
  fputs("{\"code\": ", stdout);
  print_json_string(code);
  fputs(", \"title\": ", stdout);
  print_json_string(title);
  fputs(", \"page\": ", stdout);
  print_json_string(page);
  fputs("}\n", stdout);
}

/* The code as listed ("CCN0203") that the user meant by "CCN0203", "ccn203", "0203" or "203"; NULL if none. */
static const char *find_code(const char *word, const char **out_title) {
  const char *digits = word;
  const char *code;
  if (strlen(word) > 3 && toupper((unsigned char)word[0]) == 'C' && toupper((unsigned char)word[1]) == 'C' &&
      toupper((unsigned char)word[2]) == 'N') {
    digits += 3;
  }
  if (strspn(digits, "0123456789") != strlen(digits) || !*digits || strlen(digits) > 8) return NULL;
  long number = strtol(digits, NULL, 10);
  for (size_t i = 0; (code = ccn_explain_list(i, out_title)); i++) {
    if (strtol(code + 3, NULL, 10) == number) return code;
  }
  return NULL;
}

int command_explain(const arguments *a) {
  const char *title = "";
  const char *code;
  if (a->plain.n == 0) {
    for (size_t i = 0; (code = ccn_explain_list(i, &title)); i++) {
      if (a->json) {
        explain_one(a, code, title, ccn_explain(code) ? ccn_explain(code) : "");
      } else {
        printf("%s  %s\n", code, title);
      }
    }
    return EXIT_FINE;
  }
  code = find_code(a->plain.at[0], &title);
  const char *page = code ? ccn_explain(code) : NULL;
  if (!page) {
    char message[128];
    snprintf(message, sizeof message, "there is no code '%.64s'", a->plain.at[0]);
    say_error(a, "CCN0501", message, "`ccn explain` lists all");
    return EXIT_USAGE;
  }
  explain_one(a, code, title, page);
  return EXIT_FINE;
}

int command_repl(const arguments *a) { return shell_run(a->ranks, a->plain.n ? a->plain.at[0] : NULL); }

int command_version(const arguments *a) {
  if (a->json) {
    printf("{\"version\": \"%d.%d.%d\", \"build\": ", CCN_VERSION_MAJOR, CCN_VERSION_MINOR,
           CCN_VERSION_PATCH);
    print_json_string(ccn_build_info());
    puts("}");
  } else {
    printf("ccn %d.%d.%d\n%s\n", CCN_VERSION_MAJOR, CCN_VERSION_MINOR, CCN_VERSION_PATCH, ccn_build_info());
  }
  return EXIT_FINE;
}

/* shell.c: the loop of the interactive shell: entries of one or more lines, Ctrl-C, what went wrong.
 *
 * Plain standard input goes the same way, without prompts and history: `ccn < FILE`.
 * SPDX-License-Identifier: Apache-2.0 */
#include "shell.h"

#include <locale.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "files.h"
#include "options.h"
#include "terminal.h"

/* ---- Ctrl-C -------------------------------------------------------------------------------------------- */

static ccn_context *volatile running;
static volatile sig_atomic_t interrupts;

static void on_interrupt(int signal_number) {
  ccn_context *c = running;
  (void)signal_number;
  interrupts = 1;
  if (c) ccn_interrupt(c);
}

static void catch_interrupts(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  sigemptyset(&action.sa_mask);
  action.sa_handler = on_interrupt; /* without SA_RESTART: it also ends waiting for input */
  sigaction(SIGINT, &action, NULL);
}

void shell_interruptible(ccn_context *c) {
  running = c;
  interrupts = 0; /* one that came too late for what ran is for nothing else */
}

bool shell_interrupted(void) {
  bool was = interrupts != 0;
  interrupts = 0;
  return was;
}

/* ---- contexts ------------------------------------------------------------------------------------------ */

void shell_say(const char *format, ...) {
  va_list args;
  terminal_end_progress();
  fflush(stdout);
  va_start(args, format);
  vfprintf(stderr, format, args);
  va_end(args);
  fputc('\n', stderr);
}

static bool muted;

void shell_mute(bool mute) { muted = mute; }

static void print(const char *line, size_t size, void *user) {
  if (!muted) terminal_print(line, size, user);
}

static int write_file(const char *path, const void *data, size_t size, void *user) {
  return muted ? 0 : files_write(path, data, size, user);
}

static void show_watched(const char *line, size_t size, void *user) {
  if (!muted) terminal_error(line, size, user);
}

bool shell_context(const shell_settings *set, ccn_context **out) {
  ccn_options o;
  ccn_options_init(&o, sizeof o);
  o.ranks = set->ranks;
  o.print = print;
  o.progress = terminal_has_progress() ? terminal_progress : NULL;
  o.read = files_read;
  o.read_free = files_free;
  o.write = write_file;
  o.watch = (const char *const *)set->watch;
  o.nwatch = set->nwatch;
  o.watch_print = show_watched;
  o.check_nan = set->check_nan;
  o.time_limit_ms = (int64_t)(set->time_limit * 1000);
  ccn_status status = ccn_context_create(&o, out);
  if (status != CCN_OK) shell_say("ccn: no session can be made: %s", ccn_status_name(status));
  return status == CCN_OK;
}

/* ---- entries ------------------------------------------------------------------------------------------- */

void shell_report(shell *s, ccn_status status) {
  terminal_end_progress();
  ccn_diagnostics_write(s->c, terminal_has_colour(), terminal_error, NULL);
  if (status == CCN_OK) return;
  s->failed = true;
  switch (status) {
  case CCN_ERROR:
  case CCN_INCOMPLETE: break; /* the diagnostics say it */
  case CCN_INTERRUPTED:
    if (s->interactive) fputc('\n', stderr); /* behind the terminal's ^C */
    shell_say("interrupted: the session is as the statements before this one left it");
    break;
  case CCN_OUT_OF_MEMORY: shell_say("out of memory: the statement was given up, the session goes on"); break;
  default: shell_say("ccn: a defect of ccn: %s", ccn_status_name(status)); break;
  }
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* What to say to words that people type to leave or to be helped; NULL for others. */
static const char *hint_of(const char *entry, size_t size) {
  static const char *const hints[][2] = {
    {"quit", ":quit or Ctrl-D leaves"},          {"exit", ":quit or Ctrl-D leaves"},
    {"quit()", ":quit or Ctrl-D leaves"},        {"exit()", ":quit or Ctrl-D leaves"},
    {"help", ":help shows what can be typed"},   {"?", ":help shows what can be typed"},
    {"help()", ":help shows what can be typed"},
  };
  while (size && (entry[size - 1] == '\n' || entry[size - 1] == ' ')) size--;
  for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++)
    if (strlen(hints[i][0]) == size && memcmp(entry, hints[i][0], size) == 0) return hints[i][1];
  return NULL;
}

static ccn_status show_signature(shell *s, const char *name, const char *entry, size_t size) {
  string t = {0};
  ccn_status status = ccn_session_type(s->c, name, entry, size, text_write, &t);
  if (status == CCN_OK) puts(text_of(&t));
  text_free(&t);
  return status;
}

ccn_status shell_evaluate(shell *s, const char *name, const char *text, size_t size, bool may_go_on) {
  ccn_value *v = NULL;
  double start = now();
  shell_interruptible(s->c);
  ccn_status status = ccn_eval(s->c, name, text, size, &v);
  shell_interruptible(NULL);
  double seconds = now() - start;
  if (status == CCN_INCOMPLETE && may_go_on) return status;
  if (v && status == CCN_OK) {
    terminal_end_progress();
    shell_interruptible(s->c);
    if (ccn_value_kind(v) == CCN_KIND_PROGRAM) status = show_signature(s, name, text, size);
    else show_value(s, v);
    shell_interruptible(NULL);
  }
  ccn_value_release(v);
  const char *hint = status == CCN_ERROR ? hint_of(text, size) : NULL;
  if (hint) shell_say("%s", hint);
  else shell_report(s, status);
  if (s->set.timing && status == CCN_OK) shell_say("%.3f s", seconds);
  return status;
}

static bool blank(const char *line) { return line[strspn(line, " \t\r")] == 0; }

/* Inside of ( or [, or behind an operator, nobody leaves a line empty on purpose; inside of { } many do. */
static bool in_block(shell *s) {
  ccn_diagnostic d = {.size = sizeof d};
  return ccn_diagnostic_get(s->c, 0, &d) == CCN_OK && strstr(d.message, "`{`") != NULL;
}

/* Reads lines until they make an entry; false at the end of the input. */
static bool one_entry(shell *s) {
  string entry = {0};
  char name[32];
  snprintf(name, sizeof name, "<%u>", ++s->entry);
  for (;;) {
    char *line = NULL;
    input_result got = input_read(s, entry.n ? "...> " : "ccn> ", &line);
    if (got == INPUT_INTERRUPT) break; /* and with it what was typed so far */
    if (got == INPUT_END) {
      bool open = entry.n > 0;
      if (s->interactive) putchar('\n');
      if (open) shell_evaluate(s, name, entry.at, entry.n, false);
      text_free(&entry);
      return open && s->interactive;
    }
    if (!entry.n && line[strspn(line, " \t")] == ':') {
      input_remember(line);
      shell_command(s, line + strspn(line, " \t"));
      free(line);
      break;
    }
    bool gives_up = s->interactive && entry.n && blank(line) && !in_block(s);
    text_put(&entry, line);
    text_put(&entry, "\n");
    free(line);
    ccn_status status = shell_evaluate(s, name, entry.at, entry.n, !gives_up);
    if (status == CCN_INCOMPLETE && !gives_up) continue;
    if (entry.n > 1) {
      entry.at[entry.n - 1] = 0;
      input_remember(entry.at);
    }
    break;
  }
  text_free(&entry);
  return !s->leave;
}

/* ---- the shell ----------------------------------------------------------------------------------------- */

static void greet(const shell *s) {
  if (!s->interactive) return;
  printf("ccn %d.%d.%d", CCN_VERSION_MAJOR, CCN_VERSION_MINOR, CCN_VERSION_PATCH);
  if (s->set.ranks) printf(", %d simulated ranks", s->set.ranks);
  puts(". :help shows what can be typed, :quit leaves.");
}

int shell_run(int ranks, const char *file) {
  shell s = {.set = {.ranks = ranks, .excerpt = 8}};
  s.interactive = isatty(STDIN_FILENO) != 0;
  if (!shell_context(&s.set, &s.c)) return EXIT_ENVIRONMENT;
  setlocale(LC_CTYPE, ""); /* for editing; numbers keep their point */
  if (s.interactive) catch_interrupts();
  greet(&s);
  input_start(&s);
  if (file) {
    string line = {0};
    text_put(&line, ":load ");
    text_put(&line, file);
    shell_command(&s, line.at);
    text_free(&line);
  }
  while (one_entry(&s)) {}
  input_finish();
  ccn_context_free(s.c);
  for (size_t i = 0; i < s.set.nwatch; i++) free(s.set.watch[i]);
  return s.failed && !s.interactive ? EXIT_PROGRAM : EXIT_FINE;
}

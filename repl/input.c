/* input.c: lines from standard input: with GNU readline where it was built in and a terminal can do it,
 * else plain.
 *
 * Signals stay blocked but for the time of waiting, so that none is lost between looking and waiting. While
 * readline has the terminal, Ctrl-Z and requests to end give it back first.
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shell.h"
#include "terminal.h"

#ifdef CCN_READLINE
#include <readline/history.h>
#include <readline/readline.h>
#endif

enum { HISTORY_ENTRIES = 10000 };

static struct {
  bool edits; /* readline reads */
  char buffer[4096];
  size_t at, n;   /* of the buffer, in plain mode */
  string history; /* the file; empty: none */
#ifdef CCN_READLINE
  shell *s;
  bool done;
  char *line;
#endif
} input;

const char *input_library(void) {
#ifdef CCN_READLINE
  static char name[64];
  snprintf(name, sizeof name, "readline %s", rl_library_version);
  return name;
#else
  return NULL;
#endif
}

/* ---- waiting ------------------------------------------------------------------------------------------- */

static volatile sig_atomic_t asked; /* SIGTSTP, SIGTERM or SIGHUP, while readline has the terminal */

/* Waits for something to read (INPUT_LINE), Ctrl-C, or a signal to leave or to stop. */
static input_result wait_for_input(void (*stop)(void)) {
  static const int signals[] = {SIGINT, SIGTSTP, SIGTERM, SIGHUP};
  sigset_t block, before;
  input_result result = INPUT_LINE;
  sigemptyset(&block);
  for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) sigaddset(&block, signals[i]);
  sigprocmask(SIG_BLOCK, &block, &before);
  for (;;) {
    fd_set set;
    if (shell_interrupted()) result = INPUT_INTERRUPT;
    else if (asked == SIGTERM || asked == SIGHUP) result = INPUT_END;
    if (result != INPUT_LINE) break;
    if (asked == SIGTSTP && stop) {
      asked = 0;
      sigprocmask(SIG_SETMASK, &before, NULL);
      stop();
      sigprocmask(SIG_BLOCK, &block, NULL);
    }
    FD_ZERO(&set);
    FD_SET(STDIN_FILENO, &set);
    int n = pselect(STDIN_FILENO + 1, &set, NULL, NULL, NULL, &before);
    if (n > 0 || (n < 0 && errno != EINTR)) break;
  }
  sigprocmask(SIG_SETMASK, &before, NULL);
  return result;
}

/* ---- plain --------------------------------------------------------------------------------------------- */

static input_result read_plain(shell *s, const char *prompt, char **out_line) {
  string line = {0};
  if (s->interactive) {
    fputs(prompt, stdout);
    fflush(stdout);
  }
  for (;;) {
    if (input.at == input.n) {
      if (s->interactive && wait_for_input(NULL) == INPUT_INTERRUPT) {
        text_free(&line);
        putchar('\n');
        return INPUT_INTERRUPT;
      }
      ssize_t n = read(STDIN_FILENO, input.buffer, sizeof input.buffer);
      if (n < 0 && errno == EINTR) continue;
      input.at = 0;
      input.n = n > 0 ? (size_t)n : 0;
      if (n > 0) continue;
      if (line.n) break; /* the last line has no newline */
      return INPUT_END;
    }
    const char *from = input.buffer + input.at, *end = memchr(from, '\n', input.n - input.at);
    size_t n = end ? (size_t)(end - from) : input.n - input.at;
    text_add(&line, from, n);
    input.at += n + (end != NULL);
    if (end) break;
  }
  *out_line = line.at;
  return INPUT_LINE;
}

/* ---- readline ------------------------------------------------------------------------------------------ */

#ifdef CCN_READLINE

typedef struct found {
  char **at;
  size_t n;
} found;

static void add_match(const char *candidate, void *user) {
  found *f = user;
  char **more = realloc(f->at, (f->n + 3) * sizeof *more); /* the common part in front, NULL behind */
  if (!more) return;
  f->at = more;
  f->at[++f->n] = text_copy(candidate, strlen(candidate));
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void unique(found *f) {
  size_t n = 1;
  qsort(f->at + 1, f->n, sizeof *f->at, by_name);
  for (size_t i = 2; i <= f->n; i++) {
    if (strcmp(f->at[n], f->at[i]) == 0) free(f->at[i]);
    else f->at[++n] = f->at[i];
  }
  f->n = n;
}

static void common_part(found *f) {
  size_t n = strlen(f->at[1]);
  for (size_t i = 2; i <= f->n; i++) {
    size_t k = 0;
    while (k < n && f->at[i][k] == f->at[1][k]) k++;
    n = k;
  }
  f->at[0] = text_copy(f->at[1], n);
  f->at[f->n + 1] = NULL;
  if (f->n > 1) return;
  free(f->at[1]); /* readline wants one match in place 0 alone */
  f->at[1] = NULL;
}

/* At the beginning of a line a tab indents. */
static bool indents(int start) {
  for (int i = 0; i < start; i++)
    if (rl_line_buffer[i] != ' ') return false;
  return start == rl_point;
}

static char **matches(const char *word, int start, int end) {
  found f = {NULL, 0};
  size_t from = (size_t)start;
  bool file = false;
  rl_attempted_completion_over = 1;
  if (indents(start)) {
    rl_insert_text("  ");
    return NULL;
  }
  char *line = text_copy(rl_line_buffer, (size_t)end);
  complete_line(input.s, line, &from, &file, add_match, &f);
  free(line);
  rl_completion_append_character = 0;
  if (file) {
    rl_filename_completion_desired = 1;
    rl_completion_append_character = 0;
    return rl_completion_matches(word, rl_filename_completion_function);
  }
  if (!f.n || from != (size_t)start) {
    for (size_t i = 1; i <= f.n; i++) free(f.at[i]);
    free(f.at);
    return NULL;
  }
  unique(&f);
  common_part(&f);
  return f.at;
}

/* Words end where names do; a command is one with its colon, and in a string, or behind :load, a file's
 * name is. */
static char *word_break(void) {
  static char names[] = ":. \t\n\"\\'`@$><=;|&{(,+-*/%)[]}!", in_string[] = "\"", blank[] = " ";
  size_t from = 0;
  bool file = false;
  char *line = text_copy(rl_line_buffer, (size_t)rl_point);
  complete_line(input.s, line, &from, &file, NULL, NULL);
  char *breaks = line[from] == ':' ? names + 1 : names;
  if (file) breaks = from && line[from - 1] == '"' ? in_string : blank;
  free(line);
  return breaks;
}

static void take_line(char *line) {
  input.line = line;
  input.done = true;
  rl_callback_handler_remove();
}

static void forget_line(const char *mark) {
  rl_free_line_state();
  fputs(mark, rl_outstream);
  rl_callback_sigcleanup();
  rl_replace_line("", 0);
  rl_crlf();
  rl_callback_handler_remove();
}

static void on_signal(int signal_number) { asked = signal_number; }

static void handle(int signal_number, void (*handler)(int)) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  sigemptyset(&action.sa_mask);
  action.sa_handler = handler;
  sigaction(signal_number, &action, NULL);
}

/* Only while readline reads: what runs is stopped and ended by these as any program is. */
static void handle_signals(void (*handler)(int)) {
  handle(SIGTSTP, handler);
  handle(SIGTERM, handler);
  handle(SIGHUP, handler);
}

static void stop(void) {
  rl_deprep_terminal();
  handle(SIGTSTP, SIG_DFL);
  raise(SIGTSTP);
  handle(SIGTSTP, on_signal);
  rl_prep_terminal(1);
  rl_forced_update_display();
}

static input_result read_edited(const char *prompt, char **out_line) {
  input_result got = INPUT_LINE;
  input.done = false;
  input.line = NULL;
  fflush(stdout);
  rl_callback_handler_install(prompt, take_line);
  handle_signals(on_signal);
  while (!input.done && got == INPUT_LINE) {
    got = wait_for_input(stop);
    if (got == INPUT_LINE) rl_callback_read_char();
    else forget_line(got == INPUT_INTERRUPT ? "^C" : "");
  }
  handle_signals(SIG_DFL);
  if (got != INPUT_LINE) return got;
  *out_line = input.line;
  return input.line ? INPUT_LINE : INPUT_END;
}

static void make_folders(const char *path) {
  char *part = text_copy(path, strlen(path));
  for (char *p = part + 1; *p; p++) {
    if (*p != '/') continue;
    *p = 0;
    mkdir(part, 0700);
    *p = '/';
  }
  mkdir(part, 0700);
  free(part);
}

static void start_readline(shell *s) {
  input.s = s;
  rl_readline_name = "ccn";
  rl_catch_signals = 0;
  rl_attempted_completion_function = matches;
  rl_completion_word_break_hook = word_break;
  rl_completer_quote_characters = "";
  rl_completion_query_items = 200;
  using_history();
  stifle_history(HISTORY_ENTRIES);
  history_comment_char = '#';
  history_write_timestamps = 1; /* they tell entries of several lines apart */
  history_multiline_entries = 1;
  if (!texts_folder(&input.history, "XDG_STATE_HOME", ".local/state")) return;
  make_folders(text_of(&input.history));
  text_put(&input.history, "/history");
  read_history(text_of(&input.history));
}

static void remember(const char *entry) {
  HIST_ENTRY *last = history_length ? history_get(history_base + history_length - 1) : NULL;
  if (*entry == ' ' || !*entry || (last && strcmp(last->line, entry) == 0)) return;
  add_history(entry);
  if (!input.history.n || append_history(1, text_of(&input.history)) == 0) return;
  mode_t mask = umask(0077); /* the file is not there yet */
  if (write_history(text_of(&input.history)) != 0) text_free(&input.history);
  umask(mask);
}

#endif

/* ---- either -------------------------------------------------------------------------------------------- */

void input_start(shell *s) {
#ifdef CCN_READLINE
  const char *term = getenv("TERM");
  input.edits = s->interactive && isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb") != 0;
  if (input.edits) start_readline(s);
#else
  (void)s;
#endif
}

input_result input_read(shell *s, const char *prompt, char **out_line) {
#ifdef CCN_READLINE
  if (input.edits) return read_edited(prompt, out_line);
#endif
  return read_plain(s, prompt, out_line);
}

void input_remember(const char *entry) {
#ifdef CCN_READLINE
  if (input.edits) remember(entry);
#else
  (void)entry;
#endif
}

void input_finish(void) {
#ifdef CCN_READLINE
  if (input.edits && input.history.n) history_truncate_file(text_of(&input.history), HISTORY_ENTRIES);
  clear_history();
#endif
  text_free(&input.history);
  if (asked == SIGTERM || asked == SIGHUP)
    raise(asked); /* it was put off; its effect is the usual one again */
}

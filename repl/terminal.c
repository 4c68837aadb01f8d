/* terminal.c: keeps the progress line out of everything else: it is erased before any other text is shown.
 * SPDX-License-Identifier: Apache-2.0 */
#include "terminal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* The one process-wide state of the command: its terminal. */
static struct {
  bool errors_on_terminal, output_on_terminal;
  bool progress_shown;
  size_t columns;
} terminal;

void terminal_start(void) {
  terminal.errors_on_terminal = isatty(STDERR_FILENO) != 0;
  terminal.output_on_terminal = isatty(STDOUT_FILENO) != 0;
  const char *columns = getenv("COLUMNS");
  long n = columns ? strtol(columns, NULL, 10) : 0;
  terminal.columns = n > 1 && n < 10000 ? (size_t)n : 80;
}

bool terminal_has_progress(void) {
  const char *term = getenv("TERM");
  return terminal.errors_on_terminal && !(term && strcmp(term, "dumb") == 0);
}

bool terminal_has_colour(void) {
  const char *no_colour = getenv("NO_COLOR");
  return terminal_has_progress() && !(no_colour && *no_colour);
}

bool terminal_print_has_colour(void) {
  const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");
  return terminal.output_on_terminal && !(term && strcmp(term, "dumb") == 0) && !(no_colour && *no_colour);
}

size_t terminal_columns(void) {
  struct winsize size;
  if (terminal.output_on_terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1)
    return size.ws_col;
  return terminal.columns;
}

void terminal_end_progress(void) {
  if (!terminal.progress_shown) return;
  fputs("\r\x1b[K", stderr);
  fflush(stderr);
  terminal.progress_shown = false;
}

void terminal_print(const char *text, size_t size, void *user) {
  (void)user;
  if (terminal.output_on_terminal) terminal_end_progress();
  fwrite(text, 1, size, stdout);
}

void terminal_error(const char *text, size_t size, void *user) {
  (void)user;
  terminal_end_progress();
  fflush(stdout);
  fwrite(text, 1, size, stderr);
}

void terminal_progress(const char *text, size_t size, void *user) {
  (void)user;
  size_t room = terminal.columns - 1;
  size_t shown = 0;
  size_t end = 0;
  if (size == 0) {
    terminal_end_progress();
    return;
  }
  while (end < size && text[end] != '\n') { /* count characters of UTF-8, cut before the line would wrap */
    bool starts_character = ((unsigned char)text[end] & 0xc0) != 0x80;
    if (starts_character && shown++ == room) break;
    end++;
  }
  if (terminal.output_on_terminal) fflush(stdout);
  fputs("\r\x1b[K", stderr);
  fwrite(text, 1, end, stderr);
  fflush(stderr);
  terminal.progress_shown = true;
}

bool terminal_finish(void) {
  terminal_end_progress();
  errno = 0;
  if (fflush(stdout) == 0 && !ferror(stdout)) return true;
  fprintf(stderr, "ccn: cannot write to standard output: %s\n", errno ? strerror(errno) : "write error");
  return false;
}

void terminal_error_json_string(const char *s, size_t n) {
  fputc('"', stderr);
  for (size_t i = 0; i < n; i++) {
    unsigned char c = (unsigned char)s[i];
    if (c == '"' || c == '\\') {
      fprintf(stderr, "\\%c", c);
    } else if (c < 0x20) {
      fprintf(stderr, "\\u%04x", c);
    } else {
      fputc(c, stderr);
    }
  }
  fputc('"', stderr);
}

/* texts.c: texts that grow, and names of folders.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "texts.h"

static void *need(void *p) {
  if (p) return p;
  fputs("ccn: out of memory\n", stderr);
  exit(EXIT_ENVIRONMENT);
}

void text_add(string *t, const char *s, size_t n) {
  if (t->n + n + 1 > t->room) {
    t->room = (t->n + n + 1) * 2;
    t->at = need(realloc(t->at, t->room));
  }
  if (n) memcpy(t->at + t->n, s, n);
  t->n += n;
  t->at[t->n] = 0;
}

void text_put(string *t, const char *s) { text_add(t, s, strlen(s)); }

void text_printf(string *t, const char *format, ...) {
  char line[1024];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(line, sizeof line, format, args);
  va_end(args);
  if (n > 0) text_add(t, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

void text_write(const char *s, size_t n, void *t) { text_add(t, s, n); }
const char *text_of(const string *t) { return t->at ? t->at : ""; }

void text_free(string *t) {
  free(t->at);
  *t = (string){0};
}

char *text_copy(const char *s, size_t n) {
  char *copy = need(malloc(n + 1));
  memcpy(copy, s, n);
  copy[n] = 0;
  return copy;
}

bool texts_folder(string *out, const char *variable, const char *fallback) {
  const char *base = getenv(variable), *home = getenv("HOME");
  if (base && *base == '/') { /* a relative one is invalid, says the XDG specification */
    text_put(out, base);
  } else if (home && *home) {
    text_put(out, home);
    text_put(out, "/");
    text_put(out, fallback);
  } else {
    return false;
  }
  text_put(out, "/ccn");
  return true;
}

void texts_bytes(string *out, double bytes) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t u = 0;
  for (; bytes >= 1024 && u + 1 < sizeof units / sizeof units[0]; u++) bytes /= 1024;
  text_printf(out, u ? "%.1f %s" : "%.0f %s", bytes, units[u]);
}

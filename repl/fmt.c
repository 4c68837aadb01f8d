/* fmt.c: `ccn fmt`: lays files out anew, or says which it would change and how.
 *
 * A file is replaced whole or not at all, keeps its mode, and is left alone where nothing changes.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "files.h"
#include "terminal.h"
#include "texts.h"

/* ---- a unified diff --------------------------------------------------------------------------------------
 * The formatter joins and breaks no lines; it only drops empty ones. So what belongs together is found in one
 * walk: lines with the same letters. */

enum { CONTEXT = 3 };

typedef struct line {
  const char *at;
  size_t n;
} line;

typedef struct lines {
  line *at;
  size_t n;
} lines;

static lines split(const char *s, size_t n) {
  lines l = {NULL, 0};
  size_t count = 1;
  for (size_t i = 0; i < n; i++) count += s[i] == '\n';
  l.at = malloc(count * sizeof *l.at);
  for (size_t i = 0; l.at && i < n;) {
    const char *end = memchr(s + i, '\n', n - i);
    size_t size = end ? (size_t)(end - (s + i)) + 1 : n - i;
    l.at[l.n++] = (line){s + i, size};
    i += size;
  }
  return l;
}

static bool empty(line l) {
  for (size_t i = 0; i < l.n; i++)
    if (!strchr(" \t\r\n", l.at[i])) return false;
  return true;
}

static bool same(line a, line b) { return a.n == b.n && memcmp(a.at, b.at, a.n) == 0; }

static void put_line(char mark, line l) {
  printf("%c%.*s", mark, (int)l.n, l.at);
  if (!l.n || l.at[l.n - 1] != '\n') puts("\n\\ No newline at end of file");
}

typedef struct pair { /* of an old line and a new one; one of them may be missing (SIZE_MAX) */
  size_t old, new;
} pair;
#define NONE ((size_t)-1)

static size_t walk(const lines *a, const lines *b, pair *out) {
  size_t i = 0, j = 0, n = 0;
  while (i < a->n || j < b->n) {
    bool drop = i < a->n && empty(a->at[i]) && (j == b->n || !empty(b->at[j]));
    bool add = !drop && (i == a->n || (j < b->n && empty(b->at[j]) && !empty(a->at[i])));
    out[n++] = (pair){add ? NONE : i, drop || j == b->n ? NONE : j};
    i += !add;
    j += out[n - 1].new != NONE;
  }
  return n;
}

static bool differs(const lines *a, const lines *b, pair p) {
  return p.old == NONE || p.new == NONE || !same(a->at[p.old], b->at[p.new]);
}

static void put_hunk(const lines *a, const lines *b, const pair *p, size_t n, size_t old, size_t new) {
  size_t olds = 0, news = 0;
  for (size_t i = 0; i < n; i++) {
    olds += p[i].old != NONE;
    news += p[i].new != NONE;
  }
  printf("@@ -%zu,%zu +%zu,%zu @@\n", old + (olds > 0), olds, new + (news > 0), news);
  for (size_t i = 0; i < n;) {
    size_t end = i;
    while (end < n && differs(a, b, p[end])) end++;
    for (size_t k = i; k < end; k++)
      if (p[k].old != NONE) put_line('-', a->at[p[k].old]);
    for (size_t k = i; k < end; k++)
      if (p[k].new != NONE) put_line('+', b->at[p[k].new]);
    if (end < n) put_line(' ', a->at[p[end].old]);
    i = end + 1;
  }
}

static void put_hunks(const lines *a, const lines *b, const pair *p, size_t n) {
  size_t old = 0, new = 0, at = 0; /* lines before p[at] */
  for (size_t i = 0; i < n; i++) {
    if (!differs(a, b, p[i])) continue;
    size_t from = i > at + CONTEXT ? i - CONTEXT : at, end = i + 1;
    for (size_t k = i; k < n && k < end + 2 * CONTEXT; k++)
      if (differs(a, b, p[k])) end = k + 1;
    end = end + CONTEXT < n ? end + CONTEXT : n;
    for (; at < end; at++) {
      if (at == from) put_hunk(a, b, p + from, end - from, old, new);
      old += p[at].old != NONE;
      new += p[at].new != NONE;
    }
    i = end - 1;
  }
}

static void put_diff(const char *name, const void *before, size_t n, const string *after) {
  lines a = split(before, n), b = split(text_of(after), after->n);
  pair *p = malloc((a.n + b.n + 1) * sizeof *p);
  if (a.at && b.at && p) {
    printf("--- %s\n+++ %s, formatted\n", name, name);
    put_hunks(&a, &b, p, walk(&a, &b, p));
  }
  free(a.at);
  free(b.at);
  free(p);
}

/* ---- files --------------------------------------------------------------------------------------------- */

typedef struct formatting {
  const arguments *a;
  const char *path;
  bool changed;
} formatting;

static formatting current; /* what with_file works on; one at a time */

static ccn_status replace(const char *path, const string *t) {
  int error = files_write(path, text_of(t), t->n, NULL);
  if (!error) return CCN_OK;
  string message = {0};
  text_printf(&message, "cannot write '%.400s': %s", path, strerror(error));
  say_error(current.a, "CCN0702", text_of(&message), "");
  text_free(&message);
  return CCN_NOT_FOUND;
}

static ccn_status do_format(const arguments *a, ccn_context *c, const char *name, const char *source,
                            size_t size) {
  string t = {0};
  bool filter = a->to_stdout || strcmp(current.path, "-") == 0;
  ccn_status status = ccn_format(c, name, source, size, text_write, &t);
  bool changed = status == CCN_OK && (t.n != size || (size && memcmp(t.at, source, size) != 0));
  if (status == CCN_OK && (a->check || a->show_diff)) {
    current.changed |= changed;
    if (changed && a->show_diff) put_diff(name, source, size, &t);
    else if (changed) puts(name);
  } else if (status == CCN_OK && filter) {
    terminal_print(text_of(&t), t.n, NULL);
  } else if (changed) {
    status = replace(current.path, &t);
  }
  text_free(&t);
  return status;
}

int command_fmt(const arguments *a) {
  int worst = EXIT_FINE;
  current = (formatting){.a = a};
  for (size_t i = 0; i < a->plain.n; i++) {
    current.path = a->plain.at[i];
    int status = with_file(a, current.path, do_format);
    if (status > worst) worst = status;
  }
  return worst == EXIT_FINE && current.changed ? EXIT_PROGRAM : worst;
}

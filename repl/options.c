/* options.c: reads a command line by the table of its command; no getopt, so that every system behaves alike.
 * SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CANDIDATES 64
#define MAX_WORD 64

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

/* Edit distance in which a swap of neighbours counts once; words beyond MAX_WORD are far from everything. */
static size_t distance(const char *a, const char *b) {
  size_t na = strlen(a), nb = strlen(b);
  size_t row[3][MAX_WORD + 1];
  if (na > MAX_WORD || nb > MAX_WORD) return MAX_WORD;
  size_t *before = row[0], *last = row[1], *now = row[2];
  for (size_t j = 0; j <= nb; j++) last[j] = j;
  memset(before, 0, sizeof row[0]);
  for (size_t i = 1; i <= na; i++) {
    now[0] = i;
    for (size_t j = 1; j <= nb; j++) {
      size_t best = smaller(smaller(last[j], now[j - 1]) + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        best = smaller(best, before[j - 2] + 1);
      now[j] = best;
    }
    size_t *free_row = before;
    before = last;
    last = now;
    now = free_row;
  }
  return last[nb];
}

const char *suggest(const char *word, const char *const *candidates) {
  const char *best = NULL;
  size_t best_distance = strlen(word) / 3 + 1; /* at most this far */
  for (size_t i = 0; candidates[i]; i++) {
    size_t d = distance(word, candidates[i]);
    if (d < best_distance || (d == best_distance && !best)) {
      best = candidates[i];
      best_distance = d;
    }
  }
  return best_distance < strlen(word) ? best : NULL;
}

static int usage_error(const command *c, const char *what, const char *word, const char *rest) {
  fprintf(stderr, "ccn %s: %s '%s'%s\n", c->name, what, word, rest);
  return EXIT_USAGE;
}

static void words_add(words *w, const char *word) {
  const char **grown = realloc((void *)w->at, (w->n + 1) * sizeof *grown);
  if (!grown) {
    fputs("ccn: out of memory\n", stderr);
    exit(EXIT_ENVIRONMENT);
  }
  w->at = grown;
  w->at[w->n++] = word;
}

static const option *find_long(const command *c, const char *name, size_t n) {
  for (const option *o = c->options; o->name; o++) {
    if (strlen(o->name) == n && memcmp(o->name, name, n) == 0) return o;
  }
  return NULL;
}

static int unknown_option(const command *c, const char *word) {
  const char *candidates[MAX_CANDIDATES];
  char name[MAX_WORD + 1];
  size_t n = 0;
  for (const option *o = c->options; o->name && n + 1 < MAX_CANDIDATES; o++) candidates[n++] = o->name;
  candidates[n] = NULL;
  const char *start = word + strspn(word, "-");
  size_t length = smaller(strcspn(start, "="), MAX_WORD);
  memcpy(name, start, length);
  name[length] = 0;
  const char *near = suggest(name, candidates);
  fprintf(stderr, "ccn %s: unknown option '%s'", c->name, word);
  if (near) {
    fprintf(stderr, "; did you mean --%s?\n", near);
  } else {
    fprintf(stderr, " (ccn %s --help lists them)\n", c->name);
  }
  return EXIT_USAGE;
}

static int set_option(const command *c, const option *o, const char *spelled, const char *value,
                      arguments *out) {
  void *field = (char *)out + o->field;
  switch (o->kind) {
  case OPTION_FLAG: *(bool *)field = true; break;
  case OPTION_TEXT: *(const char **)field = value; break;
  case OPTION_WORDS: words_add(field, value); break;
  case OPTION_NUMBER: {
    char *end;
    errno = 0;
    long n = strtol(value, &end, 10);
    if (errno || end == value || *end || n < o->low || n > o->high) {
      fprintf(stderr, "ccn %s: %s takes a number from %d to %d, not '%s'\n", c->name, spelled, o->low,
              o->high, value);
      return EXIT_USAGE;
    }
    *(int *)field = (int)n;
    break;
  }
  }
  return 0;
}

int options_read(const command *c, int n, char **argv, arguments *out) {
  for (int i = 0; i < n; i++) {
    const char *word = argv[i];
    const char *value = NULL;
    const option *o = NULL;
    if (strcmp(word, "--") == 0) {
      while (++i < n) words_add(c->passes_words ? &out->script : &out->plain, argv[i]);
      break;
    }
    if (word[0] != '-' || word[1] == 0) { /* a lone - is standard input */
      words_add(&out->plain, word);
      continue;
    }
    if (word[1] == '-') {
      size_t length = strcspn(word + 2, "=");
      o = find_long(c, word + 2, length);
      if (word[2 + length] == '=') value = word + 2 + length + 1;
    } else {
      for (o = c->options; o->name && o->letter != word[1]; o++) {}
      if (!o->name) o = NULL;
      if (o && word[2]) value = word + 2;
    }
    if (!o) return unknown_option(c, word);
    if (o->kind == OPTION_FLAG) {
      if (value) return usage_error(c, "no value belongs to the option in", word, "");
    } else if (!value) {
      if (i + 1 == n) return usage_error(c, "a value is missing after", word, "");
      value = argv[++i];
    }
    int status = set_option(c, o, word, value, out);
    if (status) return status;
  }
  if (out->help) return 0;
  if (out->plain.n < c->least) {
    fprintf(stderr, "ccn %s: a word is missing: ccn %s\n", c->name, c->usage);
    return EXIT_USAGE;
  }
  if (out->plain.n > c->most) {
    return usage_error(c, "unexpected", out->plain.at[c->most],
                       c->passes_words ? " (words for the script come after --)" : "");
  }
  return 0;
}

void arguments_free(arguments *a) {
  free((void *)a->watch.at);
  free((void *)a->after.at);
  free((void *)a->sizes.at);
  free((void *)a->plain.at);
  free((void *)a->script.at);
}

void command_help(const command *c, FILE *out) {
  fprintf(out, "ccn %s: %s\n\nusage: ccn %s\n", c->name, c->summary, c->usage);
  if (c->text) fprintf(out, "\n%s\n", c->text);
  fputs("\noptions:\n", out);
  for (const option *o = c->options; o->name; o++) {
    char left[64];
    char letter[8] = "    ";
    if (o->letter) snprintf(letter, sizeof letter, "-%c, ", o->letter);
    snprintf(left, sizeof left, "%s--%s%s%s", letter, o->name, o->value ? " " : "", o->value ? o->value : "");
    fprintf(out, "  %-24s %s\n", left, o->doc);
  }
  if (c->example) fprintf(out, "\nexample:\n  %s\n", c->example);
}

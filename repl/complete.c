/* complete.c: what may stand at the end of a line: commands and their arguments, names, members, words of the
 * language, files in strings.
 * SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "shell.h"

typedef struct request {
  const char *prefix;
  size_t n;
  complete_add_fn add;
  void *user;
} request;

static void offer(const request *r, const char *candidate) {
  if (strncmp(candidate, r->prefix, r->n) == 0) r->add(candidate, r->user);
}

static void offer_name(const char *name, ccn_kind kind, void *user) {
  (void)kind;
  offer(user, name);
}

static void offer_program(const char *name, ccn_kind kind, void *user) {
  if (kind == CCN_KIND_PROGRAM) offer(user, name);
}

/* Words of these kinds; NULL: all. */
static void offer_words(const request *r, const char *kind) {
  ccn_word w = {.size = sizeof w};
  for (size_t i = 0; ccn_word_get(i, &w) == CCN_OK; i++)
    if (!kind || strcmp(w.kind, kind) == 0) offer(r, w.name);
}

/* Nothing can be said when names cannot be had: the list is just shorter. */
static void offer_names(const shell *s, const char *of, ccn_name_fn fn, request *r) {
  if (ccn_session_names(s->c, of, fn, r) != CCN_OK) return;
}

static bool name_char(char c) { return isalnum((unsigned char)c) || c == '_'; }

static size_t word_start(const char *line, size_t end) {
  while (end > 0 && name_char(line[end - 1])) end--;
  return end;
}

/* Whether the end of the line is in a string, and where that begins. Expressions in {} of a string are
 * code. */
static bool in_string(const char *line, size_t *out_start) {
  bool inside = false;
  for (const char *p = line; *p; p++) {
    if (*p == '#' && !inside) return false;
    if (*p == '\\' && inside && p[1]) p++;
    else if (*p == '"') {
      inside = !inside;
      *out_start = (size_t)(p + 1 - line);
    }
  }
  return inside && !strchr(line + *out_start, '{');
}

/* "x.nam" of a name x: its members. */
static bool offer_members(const shell *s, const char *line, size_t start, request *r) {
  if (start == 0 || line[start - 1] != '.') return false;
  size_t from = word_start(line, start - 1);
  char *of = text_copy(line + from, start - 1 - from);
  if (*of) offer_names(s, of, offer_name, r);
  free(of);
  return true;
}

static void offer_expression(const shell *s, const char *line, size_t start, request *r) {
  if (offer_members(s, line, start, r)) return;
  offer_names(s, NULL, offer_name, r);
  offer_words(r, NULL);
}

static void offer_argument(const shell *s, const char *line, size_t start, char kind, request *r) {
  const char *name;
  switch (kind) {
  case 'w': offer_expression(s, line, start, r); break;
  case 'e': offer_expression(s, line, start, r); break;
  case 'p':
  case 'v':
    if (!offer_members(s, line, start, r)) offer_names(s, NULL, offer_program, r);
    break;
  case 's':
    for (size_t i = 0; (name = shell_setting_name(i)); i++) offer(r, name);
    break;
  default: break;
  }
}

void complete_line(shell *s, const char *line, size_t *out_start, bool *out_file, complete_add_fn add,
                   void *user) {
  size_t end = strlen(line), start = word_start(line, end), quote = 0;
  bool command = line[0] == ':';
  size_t word = command ? strcspn(line, " ") : 0;
  char kind = 0;
  *out_file = false;
  if (command && word == end) {
    *out_start = 0;
  } else if (command) {
    char *name = text_copy(line, word);
    kind = shell_command_argument(name);
    free(name);
    *out_file = kind == 'f';
    *out_start = *out_file ? word + 1 : start;
  } else if (in_string(line, &quote)) {
    *out_file = true;
    *out_start = quote;
  } else {
    *out_start = start;
  }
  if (!add || *out_file) return;
  request r = {.prefix = line + *out_start, .n = end - *out_start, .add = add, .user = user};
  if (command && word == end) {
    const char *name;
    for (size_t i = 0; (name = shell_command_name(i)); i++) offer(&r, name);
  } else if (command) {
    offer_argument(s, line, start, kind, &r);
  } else {
    offer_expression(s, line, start, &r);
  }
}

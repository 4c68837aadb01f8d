/* algo.c: collective algorithms: their list, one of them as a table, text or JSON, a file of one validated.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "terminal.h"

static int list(const arguments *a) {
  const char *name, *about;
  if (a->json) {
    say_error(a, "CCN0501", "the list has no JSON form", "name a collective and an --algorithm");
    return EXIT_USAGE;
  }
  for (size_t i = 0; (name = ccn_algorithm_list(i, &about)); i++) printf("%-14s %s\n", name, about);
  return EXIT_FINE;
}

static ccn_status show(const arguments *a, ccn_context *c, const char *name, const char *text, size_t size) {
  ccn_algorithm_desc d;
  (void)text, (void)size;
  memset(&d, 0, sizeof d);
  d.size = sizeof d;
  d.collective = name;
  d.algorithm = a->algorithm;
  d.ranks = a->members ? (uint32_t)a->members : 4;
  d.root = (uint32_t)a->root;
  d.chunks = (uint32_t)a->chunks;
  d.group = (uint32_t)a->group;
  d.by = a->by ? a->by : 1;
  return ccn_algorithm_write(c, &d, a->json ? "json" : a->text ? "text" : "table", terminal_print, NULL);
}

static ccn_status validate(const arguments *a, ccn_context *c, const char *name, const char *text,
                           size_t size) {
  (void)a, (void)name;
  return ccn_algorithm_check(c, text, size);
}

/* A word with a dot or a slash, and -, is a file. */
static bool is_file(const char *word) { return strpbrk(word, "./") || strcmp(word, "-") == 0; }

int command_algo(const arguments *a) {
  if (a->plain.n == 0) return list(a);
  if (is_file(a->plain.at[0])) return with_file(a, a->plain.at[0], validate);
  if (!a->algorithm) {
    say_error(a, "CCN0501", "algo needs --algorithm", "`ccn algo` lists them");
    return EXIT_USAGE;
  }
  const int status = with_text(a, a->plain.at[0], "", 0, show);
  return status == EXIT_PROGRAM ? EXIT_USAGE : status;
}

/* cache.c: `ccn cache ls|clear|verify`: the folder in which compiled kernels are kept.
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "terminal.h"

typedef struct sums {
  const arguments *a;
  bool verify; /* bad entries only */
  uint32_t entries, bad;
  int64_t bytes;
} sums;

static void show(const ccn_cache_entry *e, void *user) {
  sums *s = user;
  s->entries++;
  s->bytes += e->bytes;
  s->bad += !e->good;
  if (s->verify && e->good) return;
  if (s->a->json) {
    printf("{\"name\":");
    print_json_string(e->name);
    printf(",\"bytes\":%" PRId64 ",\"age\":%" PRId64 ",\"good\":%s}\n", e->bytes, e->age,
           e->good ? "true" : "false");
  } else {
    printf("%s %8" PRId64 " bytes, used %" PRId64 " s ago%s\n", e->name, e->bytes, e->age,
           e->good ? "" : ", bad");
  }
}

static int list(const arguments *a, bool verify) {
  sums s = {.a = a, .verify = verify};
  if (ccn_cache_list(NULL, verify, show, &s)) return EXIT_ENVIRONMENT;
  if (!a->json) printf("%" PRIu32 " kernels, %" PRId64 " bytes", s.entries, s.bytes);
  if (!a->json && verify) printf(", %" PRIu32 " bad", s.bad);
  if (!a->json) printf(" in ");
  if (!a->json && ccn_cache_folder(NULL, terminal_print, NULL) == CCN_OK) putchar('\n');
  return s.bad ? EXIT_ENVIRONMENT : EXIT_FINE;
}

static int clear(const arguments *a) {
  size_t removed = 0;
  const ccn_status status = ccn_cache_clear(NULL, 0, &removed);
  if (status == CCN_OK && a->json) printf("{\"removed\":%zu}\n", removed);
  else if (status == CCN_OK) printf("%zu kernels removed\n", removed);
  return status == CCN_OK ? EXIT_FINE : EXIT_ENVIRONMENT;
}

int command_cache(const arguments *a) {
  static const char *const names[] = {"ls", "verify", "clear"};
  size_t which = 0;
  while (which < 3 && strcmp(a->plain.at[0], names[which]) != 0) which++;
  if (which == 3) {
    say_error(a, "CCN0501", "cache takes ls, verify or clear", "`ccn cache ls` lists what is there");
    return EXIT_USAGE;
  }
  const int status = which == 2 ? clear(a) : list(a, which == 1);
  if (status == EXIT_ENVIRONMENT && ccn_cache_folder(NULL, terminal_print, NULL) == CCN_NOT_FOUND)
    say_error(a, "CCN0701", "there is no folder for compiled kernels", "set HOME or XDG_CACHE_HOME");
  return status;
}

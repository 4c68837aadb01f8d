/* fuzz_format.c: libFuzzer target for the formatter: what it makes of a text without errors has the same tree
 * and the same characters but for blanks, and formatting that again changes nothing.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "format.h"
#include "parser.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void *host_alloc(void *p, size_t old_size, size_t new_size, size_t align, void *user) {
  (void)old_size, (void)user;
  if (new_size) return aligned_alloc(align, (new_size + align - 1) / align * align);
  free(p);
  return NULL;
}

static void require(bool condition) {
  if (!condition) abort();
}

/* A text, what it is formatted to, its tree. */
typedef struct formatted {
  ccn__source source, *sources[2];
  ccn__diags ds;
  ccn__text out, tree;
  bool good;
} formatted;

static void format(ccn__arena *a, ccn__names *names, const char *text, size_t size, formatted *f) {
  memset(f, 0, sizeof *f);
  f->source = (ccn__source){.name = "input.ccn", .text = text, .size = (uint32_t)size};
  f->sources[1] = &f->source;
  f->ds = (ccn__diags){.arena = a, .sources = f->sources, .nsources = 2};
  ccn__text_init(&f->out, a);
  ccn__text_init(&f->tree, a);
  f->good = ccn__format_source(a, names, &f->ds, 1, &f->out);
  require(f->good == (f->ds.errors == 0) && (f->good || f->out.n == 0));
  if (f->good) ccn__ast_print(ccn__parse(a, names, &f->ds, 1, NULL), &f->tree);
}

static bool same_text(const ccn__text *a, const ccn__text *b) {
  return a->n == b->n && (a->n == 0 || memcmp(a->at, b->at, a->n) == 0);
}

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

static bool same_but_blanks(const char *a, size_t na, const char *b, size_t nb) {
  size_t i = na >= 3 && memcmp(a, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0, j = 0;
  for (;; i++, j++) {
    while (i < na && is_blank(a[i])) i++;
    while (j < nb && is_blank(b[j])) j++;
    if (i == na || j == nb) return i == na && j == nb;
    if (a[i] != b[j]) return false;
  }
}

static void check(ccn__arena *a, const char *text, size_t size) {
  ccn__names names;
  formatted once, twice;
  ccn__names_init(&names, a);
  format(a, &names, text, size, &once);
  if (!once.good) return;
  format(a, &names, once.out.n ? once.out.at : "", once.out.n, &twice);
  require(twice.good && same_text(&once.out, &twice.out) && same_text(&once.tree, &twice.tree));
  require(same_but_blanks(text, size, once.out.at, once.out.n));
  /* no blanks at the ends of lines, no two empty lines, a newline at the end */
  for (size_t i = 0; i < once.out.n; i++) {
    const char c = once.out.at[i];
    require(i + 1 < once.out.n || c == '\n');
    if (c != '\n') continue;
    require(i > 0 && once.out.at[i - 1] != ' ' && once.out.at[i - 1] != '\t');
    require(i < 2 || once.out.at[i - 1] != '\n' || once.out.at[i - 2] != '\n');
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ccn__heap heap = {.alloc = host_alloc, .limit = (size_t)1 << 30};
  ccn__trap trap;
  ccn__arena arena;
  ccn__arena_init(&arena, &heap);
  CCN__TRY(&heap, trap)
  { check(&arena, size ? (const char *)data : "", size); }
  CCN__CATCH(&heap, trap)
  { require(trap.status == CCN_OUT_OF_MEMORY); }
  ccn__arena_free(&arena);
  require(heap.live == 0);
  return 0;
}

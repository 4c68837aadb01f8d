/* fuzz_parse.c: libFuzzer target for the parser: no text crashes it; every text gives a tree that prints,
 * and either no error or some that render.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

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

static void parse_and_print(ccn__arena *a, const char *text, size_t size) {
  ccn__names names;
  ccn__source source = {.name = "input.ccn", .text = text, .size = (uint32_t)size};
  ccn__source *sources[2] = {NULL, &source};
  ccn__diags ds = {.arena = a, .sources = sources, .nsources = 2};
  bool incomplete = false;
  ccn__text out;
  ccn__names_init(&names, a);
  ccn__ast *tree = ccn__parse(a, &names, &ds, 1, &incomplete);
  require(tree && tree->kind == CCN__AST_BLOCK);
  require(!incomplete || ds.errors > 0);
  ccn__text_init(&out, a);
  ccn__ast_print(tree, &out);
#ifdef CCN_PLANTED_CRASH /* tests/harness/fuzz.py wants to see that crashes are found */
  require(ds.errors < 3 || !out.n || !strstr(out.at, "repeat")); /* no file of the corpus has both */
#endif
  for (const ccn__diag *d = ds.first; d; d = d->next) {
    ccn__diag_render(&ds, d, true, &out);
    ccn__diag_render_json(&ds, d, &out);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ccn__heap heap = {.alloc = host_alloc, .limit = (size_t)256 << 20};
  ccn__trap trap;
  ccn__arena arena;
  ccn__arena_init(&arena, &heap);
  CCN__TRY(&heap, trap)
  { parse_and_print(&arena, size ? (const char *)data : "", size); }
  CCN__CATCH(&heap, trap)
  { require(trap.status == CCN_OUT_OF_MEMORY); }
  ccn__arena_free(&arena);
  require(heap.live == 0);
  return 0;
}

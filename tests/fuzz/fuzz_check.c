/* fuzz_check.c: libFuzzer target for `ccn check` through the public header: no script crashes it; one that
 * is right dumps as graph text, and that reads back and prints the same.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ccn.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct buffer {
  char *at;
  size_t n, cap;
} buffer;

static void drop(const char *text, size_t size, void *user) { (void)text, (void)size, (void)user; }

static void keep(const char *text, size_t size, void *user) {
  buffer *b = user;
  if (size > b->cap - b->n) {
    b->cap = (b->cap + size) * 2;
    b->at = realloc(b->at, b->cap);
    if (!b->at) abort();
  }
  if (size) memcpy(b->at + b->n, text, size);
  b->n += size;
}

static void show(ccn_context *c) {
  char codes[64] = "";
  for (size_t i = 0; i < ccn_diagnostic_count(c); i++) {
    ccn_diagnostic d = {.size = sizeof d};
    if (ccn_diagnostic_get(c, i, &d) == CCN_OK)
      fprintf(stderr, "%s: %s\n", d.code ? d.code : codes, d.message ? d.message : "");
  }
}

static void require(ccn_context *c, int condition) {
  if (condition) return;
  show(c);
  abort();
}

static void graphs_read_back(ccn_context *c, const char *text, size_t size) {
  buffer once = {0}, again = {0};
  ccn_status s = ccn_dump(c, "input.ccn", text, size, "graph", keep, &once);
  require(c, s == CCN_OK || s == CCN_OUT_OF_MEMORY);
  if (s == CCN_OK) {
    s = ccn_graph_read(c, "input.graph", once.at ? once.at : "", once.n, keep, &again);
    require(c, s == CCN_OK || s == CCN_OUT_OF_MEMORY);
    if (s == CCN_OK) require(c, once.n == again.n && (!once.n || memcmp(once.at, again.at, once.n) == 0));
  }
  free(once.at);
  free(again.at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const char *text = size ? (const char *)data : "";
  ccn_options o;
  ccn_options_init(&o, sizeof o);
  o.memory_limit = (size_t)512 << 20;
  ccn_context *c = NULL;
  if (ccn_context_create(&o, &c) != CCN_OK) abort();
  ccn_status s = ccn_check(c, "input.ccn", text, size);
  require(c, s == CCN_OK || s == CCN_ERROR || s == CCN_OUT_OF_MEMORY);
  require(c, s != CCN_ERROR || ccn_diagnostic_count(c) > 0);
  ccn_diagnostics_write(c, 1, drop, NULL);
  ccn_diagnostics_write_json(c, drop, NULL);
  if (s == CCN_OK) graphs_read_back(c, text, size);
  ccn_context_free(c);
  return 0;
}

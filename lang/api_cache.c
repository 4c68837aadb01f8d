/* api_cache.c: the public functions that look at the code cache: its folder, its entries, and making room.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ccn.h"
#include "jit.h"

enum { PATH = 4096 };

ccn_status ccn_cache_folder(const char *folder, ccn_write_fn write, void *user) {
  char path[PATH];
  if (!write) return CCN_INVALID_ARGUMENT;
  if (!ccn__cache_folder(folder, path, sizeof path)) return CCN_NOT_FOUND;
  write(path, strlen(path), user);
  return CCN_OK;
}

typedef struct listing {
  ccn_cache_fn fn;
  void *user;
} listing;

static void tell(const ccn__cache_entry *e, void *user) {
  const listing *l = user;
  const ccn_cache_entry out = {
    .size = sizeof out, .name = e->name, .bytes = e->bytes, .age = e->age, .good = e->good};
  l->fn(&out, l->user);
}

ccn_status ccn_cache_list(const char *folder, int verify, ccn_cache_fn fn, void *user) {
  char path[PATH];
  listing l = {fn, user};
  if (!fn) return CCN_INVALID_ARGUMENT;
  if (!ccn__cache_folder(folder, path, sizeof path)) return CCN_NOT_FOUND;
  (void)ccn__cache_list(path, verify != 0, tell, &l);
  return CCN_OK;
}

ccn_status ccn_cache_clear(const char *folder, int bad_only, size_t *out_removed) {
  char path[PATH];
  if (out_removed) *out_removed = 0;
  if (!ccn__cache_folder(folder, path, sizeof path)) return CCN_NOT_FOUND;
  const uint32_t n = ccn__cache_clear(path, bad_only != 0);
  if (out_removed) *out_removed = n;
  return CCN_OK;
}

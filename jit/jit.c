/* jit.c: machine code of kernels: in memory, else from the cache, else from the plugin.
 *
 * The key of a kernel is a hash of its text, of the processor and of the emitter's number, all known without
 * LLVM. The version of LLVM that made an object is in the entry's name of the maker only: any version's code
 * has the same bits.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "jit.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PLUGIN "libccn-jit.so"

typedef struct entry {
  ccn__jit_key key;
  ccn__jit_code *code;
  ccn__kern_fn **fn;
  struct entry *next;
} entry;

struct ccn__jit {
  ccn__jit_target target;
  ccn__jit_options options;
  char folder[4096];
  bool cached;
  char *plugin_path;
  void *module;
  const ccn__jit_plugin *plugin;
  entry *entries;
  ccn__jit_stats stats;
  char why[512];
};

static uint64_t now(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

bool ccn__jit_built(void) {
#ifdef CCN__HAVE_LLVM
  return true;
#else
  return false;
#endif
}

ccn__jit *ccn__jit_open(const ccn__jit_options *o) {
  ccn__jit *j = calloc(1, sizeof *j);
  if (!j) return NULL;
  if (o) j->options = *o;
  if (!j->options.cache_limit) j->options.cache_limit = (int64_t)256 << 20;
  j->cached = ccn__cache_folder(j->options.cache, j->folder, sizeof j->folder);
  if (j->options.plugin) j->plugin_path = strdup(j->options.plugin);
  if (ccn__jit_host(&j->target) && (j->plugin_path || !j->options.plugin)) return j;
  ccn__jit_close(j);
  return NULL;
}

void ccn__jit_close(ccn__jit *j) {
  if (!j) return;
  for (entry *e = j->entries, *next; e; e = next) {
    next = e->next;
    ccn__jit_unload(e->code);
    free(e->fn);
    free(e);
  }
  /* the module stays: LLVM does not like to be unloaded */
  free(j->plugin_path);
  free(j);
}

ccn__jit_stats ccn__jit_statistics(const ccn__jit *j) {
  ccn__jit_stats s = j->stats;
  s.plugin_open = j->plugin != NULL;
  return s;
}

/* ---- the plugin ---------------------------------------------------------------------------------------- */

static bool refuse(ccn__jit *j, const char *what, const char *text) {
  (void)snprintf(j->why, sizeof j->why, "%s: %s", what, text ? text : "unknown reason");
  return false;
}

static bool open_at(ccn__jit *j, const char *path) {
  ccn__jit_plugin_fn *get = NULL;
  void *m = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!m) return refuse(j, path, dlerror());
  void *symbol = dlsym(m, "ccn__jit_plugin_table");
  memcpy(&get, &symbol, sizeof get);
  const ccn__jit_plugin *p = get ? get(CCN__JIT_ABI) : NULL;
  if (!p || p->abi != CCN__JIT_ABI) {
    (void)dlclose(m);
    return refuse(j, path, "it is of another version of CCN");
  }
  j->module = m;
  j->plugin = p;
  return true;
}

/* Beside the module that this code is in, or where the build folder or an installed prefix has it from there. */
static bool open_beside(ccn__jit *j) {
  static const char here = 0;
  static const char *const folder[] = {"", "jit/", "../jit/", "../lib/"};
  Dl_info info;
  char path[4096];
  if (!dladdr(&here, &info) || !info.dli_fname) return refuse(j, PLUGIN, "not found");
  const char *slash = strrchr(info.dli_fname, '/');
  if (!slash) return refuse(j, PLUGIN, "not found");
  for (size_t i = 0; i < CCN__COUNT(folder); i++) {
    const int n =
      snprintf(path, sizeof path, "%.*s/%s" PLUGIN, (int)(slash - info.dli_fname), info.dli_fname, folder[i]);
    if (n > 0 && (size_t)n < sizeof path && open_at(j, path)) return true;
  }
  return false;
}

static bool open_plugin(ccn__jit *j) {
  if (j->plugin) return true;
  if (j->plugin_path) return open_at(j, j->plugin_path);
  return open_beside(j) || open_at(j, CCN__PLUGIN_FOLDER "/" PLUGIN) || open_at(j, PLUGIN);
}

/* ---- one kernel ---------------------------------------------------------------------------------------- */

static entry *make_entry(ccn__jit *j, const ccn__kern *k, const void *object, size_t size) {
  const char *why = NULL;
  const uint64_t start = now();
  ccn__jit_code *c = ccn__jit_load(object, size, &why);
  if (!c) return (void)refuse(j, "the code cannot be loaded", why), NULL;
  entry *e = calloc(1, sizeof *e);
  ccn__kern_fn **fn = calloc(k->loops.n + 1u, sizeof *fn);
  bool good = e && fn;
  for (uint32_t i = 0; good && i < k->loops.n; i++) {
    char name[16];
    (void)snprintf(name, sizeof name, "k%u", i);
    void *at = ccn__jit_symbol(c, name);
    memcpy(&fn[i], &at, sizeof at);
    good = at != NULL;
  }
  j->stats.load_ns += now() - start;
  if (good) {
    *e = (entry){.code = c, .fn = fn};
    return e;
  }
  free(e);
  free(fn);
  ccn__jit_unload(c);
  (void)refuse(j, "the code cannot be loaded", "a function is missing");
  return NULL;
}

static entry *compile(ccn__jit *j, const ccn__kern *k, ccn__jit_key key, const char *tag) {
  void *object = NULL;
  size_t size = 0;
  const uint64_t start = now();
  if (!open_plugin(j) || j->plugin->compile(k, &j->target, &object, &size, j->why, sizeof j->why))
    return NULL;
  j->stats.compile_ns += now() - start;
  entry *e = make_entry(j, k, object, size);
  if (e && j->cached) (void)ccn__cache_put(j->folder, key, tag, object, size, j->options.cache_limit);
  j->plugin->release(object);
  if (e) j->stats.compiled++;
  return e;
}

static entry *from_cache(ccn__jit *j, const ccn__kern *k, ccn__jit_key key, const char *tag) {
  size_t size = 0;
  void *object = j->cached ? ccn__cache_get(j->folder, key, tag, &size) : NULL;
  entry *e = object ? make_entry(j, k, object, size) : NULL;
  free(object);
  if (e) j->stats.cached++;
  return e;
}

static ccn__jit_key key_of(const ccn__jit *j, const ccn__kern *k, char *tag, size_t ntag) {
  ccn__text t;
  const ccn__jit_key none = {{0, 0}};
  ccn__text_init(&t, k->arena);
  ccn__kern_print_code(k, &t);
  (void)snprintf(tag, ntag, "emitter %d, %s, %s, %s", CCN__JIT_ABI, j->target.triple, j->target.cpu,
                 j->target.features);
  const ccn__jit_key text = ccn__jit_hash(t.at, t.n, none);
  return ccn__jit_hash(tag, strlen(tag), text);
}

ccn__kern_fn *const *ccn__jit_get(ccn__jit *j, const ccn__kern *k, const char **why) {
  char tag[400];
  const ccn__jit_key key = key_of(j, k, tag, sizeof tag);
  *why = NULL;
  for (entry *e = j->entries; e; e = e->next)
    if (memcmp(&e->key, &key, sizeof key) == 0) {
      j->stats.reused++;
      return e->fn;
    }
  entry *e = from_cache(j, k, key, tag);
  if (!e) e = compile(j, k, key, tag);
  if (!e) {
    *why = j->why;
    return NULL;
  }
  e->key = key;
  e->next = j->entries;
  j->entries = e;
  return e->fn;
}

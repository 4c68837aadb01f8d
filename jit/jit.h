/* jit.h: machine code for kernels: from the cache, or from the plugin that holds LLVM.
 *
 * libccn does not link LLVM. What it needs of it is one table of functions of a shared module, opened when a
 * kernel is not in the cache. Cold or cached, the same loader (loader.c) makes the object's code callable.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_JIT_JIT_H
#define CCN_JIT_JIT_H

#include "kernel.h"
#include "math.h"

/* Grows whenever the code for an equal text would not be the same, or the plugin's table changes. */
enum { CCN__JIT_ABI = 1 };

/* For which processor. Equal triples, names and features have equal code. */
typedef struct ccn__jit_target {
  char triple[32], cpu[32];
  char features[200]; /* "+avx2,+f16c": as LLVM wants them, in a fixed order */
  bool native_f16;    /* converts f16 in hardware */
} ccn__jit_target;

/* The machine that this runs on (cpu.c); false if there is no emitter for it. */
bool ccn__jit_host(ccn__jit_target *out);
/* "x86-64", "x86-64-v3", "x86-64-v4", "aarch64"; false if there is none of this name. */
bool ccn__jit_level(const char *name, ccn__jit_target *out);
bool ccn__jit_host_runs(const char *level); /* whether code for the level runs here */

/* ---- the plugin ---------------------------------------------------------------------------------------- */

typedef struct ccn__jit_plugin {
  uint32_t abi;
  const char *version; /* of LLVM */
  /* Object code (ELF, relocatable) of the kernel's loops, functions k0, k1, ...; 0, or a text in `why`.
   * The result is given back with `release`. Any thread; calls do not share anything. */
  int (*compile)(const ccn__kern *k, const ccn__jit_target *t, void **out_object, size_t *out_size, char *why,
                 size_t nwhy);
  /* The same as LLVM's text, for people; `assembly` 1: as assembly. */
  int (*text)(const ccn__kern *k, const ccn__jit_target *t, int assembly, char **out_text, char *why,
              size_t nwhy);
  void (*release)(void *object);
} ccn__jit_plugin;
/* What the module exports, under the name "ccn__jit_plugin_table". */
typedef const ccn__jit_plugin *ccn__jit_plugin_fn(uint32_t abi);

/* ---- the loader (loader.c) ----------------------------------------------------------------------------- */

typedef struct ccn__jit_code ccn__jit_code;
/* Maps an object's code; functions are found by name. Every byte of `object` is distrusted. NULL, with a
 * static text in *why. Symbols that are not defined in it are looked up in a fixed list. */
ccn__jit_code *ccn__jit_load(const void *object, size_t size, const char **why);
void *ccn__jit_symbol(const ccn__jit_code *c, const char *name); /* NULL: none */
void ccn__jit_unload(ccn__jit_code *c);                          /* may be NULL */
/* The object's code for a machine as bytes that run at any address that is a multiple of 4096 (stubs hold
 * this process's addresses): at most `room` bytes, for which 64 KB more than the object's size are enough.
 * Returns how many, or 0 with *why. Where its functions are ccn__jit_place says. */
size_t ccn__jit_link(const void *object, size_t size, uint16_t machine, void *out, size_t room,
                     const char **why);
bool ccn__jit_place(const void *object, size_t size, uint16_t machine, const char *name, uint64_t *out);
/* Checks the object as ccn__jit_load does, for the machine (62: x86-64, 183: AArch64), without making code
 * of it. */
bool ccn__jit_check(const void *object, size_t size, uint16_t machine, const char **why);

/* ---- the cache (cache.c) ------------------------------------------------------------------------------- */

typedef struct ccn__jit_key {
  uint64_t hash[2];
} ccn__jit_key;
ccn__jit_key ccn__jit_hash(const void *data, size_t size, ccn__jit_key seed);

typedef struct ccn__cache_entry {
  char name[48];
  int64_t bytes, age; /* seconds */
  bool good;
} ccn__cache_entry;

/* The folder: `given`, else $XDG_CACHE_HOME/ccn, else $HOME/.cache/ccn; false if there is none. */
bool ccn__cache_folder(const char *given, char *out, size_t n);
/* The object of a key, to be freed; NULL if it is not there or not to be trusted (then it is removed).
 * `tag`: what must equal what it was stored with. */
void *ccn__cache_get(const char *folder, ccn__jit_key key, const char *tag, size_t *out_size);
/* Stores; false (and nothing changed) if that is not possible. Keeps the folder below `limit` bytes. */
bool ccn__cache_put(const char *folder, ccn__jit_key key, const char *tag, const void *object, size_t size,
                    int64_t limit);
/* Calls f for each entry, in no order; returns how many. `check`: reads each whole. */
uint32_t ccn__cache_list(const char *folder, bool check, void (*f)(const ccn__cache_entry *e, void *user),
                         void *user);
/* Removes all entries, or the bad ones only; returns how many. */
uint32_t ccn__cache_clear(const char *folder, bool bad_only);

/* ---- code of a kernel (jit.c) -------------------------------------------------------------------------- */

typedef struct ccn__jit_options {
  const char *plugin;  /* path of the module; NULL: beside libccn, then by name */
  const char *cache;   /* folder; NULL: the user's. "": no cache */
  int64_t cache_limit; /* bytes; 0: 256 MB */
} ccn__jit_options;

/* Whether this build has the plugin. */
bool ccn__jit_built(void);

typedef struct ccn__jit ccn__jit;
/* Memory comes from malloc: code outlives arenas. NULL: out of memory, or no emitter for this machine. */
ccn__jit *ccn__jit_open(const ccn__jit_options *o);
void ccn__jit_close(ccn__jit *j); /* unloads all code */
/* The functions of the kernel's loops, in order; they stay until ccn__jit_close. NULL: *why says why (in
 * j's memory, until the next call). */
ccn__kern_fn *const *ccn__jit_get(ccn__jit *j, const ccn__kern *k, const char **why);
typedef struct ccn__jit_stats {
  uint32_t compiled, cached, reused; /* kernels: by the plugin, from the cache, found in memory */
  uint64_t compile_ns, load_ns;
  bool plugin_open;
} ccn__jit_stats;
ccn__jit_stats ccn__jit_statistics(const ccn__jit *j);

#endif

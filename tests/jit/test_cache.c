/* test_cache.c: the code cache: cold, cached and in memory; entries that are short, damaged, foreign, old or
 * of another processor; the bound on its size; and that LLVM is not loaded when the code is there.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* mkdtemp, AT_FDCWD */
#include "jit_kit.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64];

static void empty_folder(void) {
  DIR *d = opendir(folder);
  struct dirent *x;
  while (d && (x = readdir(d)))
    if (x->d_name[0] != '.') (void)unlinkat(dirfd(d), x->d_name, 0);
  if (d) closedir(d);
}

static void count(const ccn__cache_entry *e, void *user) {
  uint32_t *n = user;
  n[0]++;
  n[1] += e->good;
}

static uint32_t entries(bool good) {
  uint32_t n[2] = {0, 0};
  (void)ccn__cache_list(folder, true, count, n);
  return n[good];
}

static const ccn__jit_key key = {{0x1234, 0xabcd}};

static char *path_of_entry(void) {
  static char path[200];
  snprintf(path, sizeof path, "%s/%016x%016x.kernel", folder, 0x1234, 0xabcd);
  return path;
}

static bool there(const char *tag) {
  size_t n = 0;
  void *object = ccn__cache_get(folder, key, tag, &n);
  const bool good = object && n == 5 && memcmp(object, "hello", 5) == 0;
  free(object);
  return good;
}

static bool gone(void) { return access(path_of_entry(), F_OK) != 0; }
static bool put(void) { return ccn__cache_put(folder, key, "tag", "hello", 5, 1 << 20); }

static void poke(long at, const char *bytes, size_t n) {
  FILE *f = fopen(path_of_entry(), "r+");
  fseek(f, at, at < 0 ? SEEK_END : SEEK_SET);
  fwrite(bytes, 1, n, f);
  fclose(f);
}

static void test_files(void) {
  empty_folder();
  ok(!there("tag"), "nothing is there at first");
  ok(put() && there("tag") && entries(true) == 1, "what is stored is found");
  ok(!there("another tag") && gone(), "an entry for another processor or emitter is removed");
  (void)put();
  ok(truncate(path_of_entry(), 300) == 0 && !there("tag") && gone(), "a short one too");
  (void)put();
  ok(truncate(path_of_entry(), 1 << 16) == 0 && !there("tag") && gone(), "one that is too long");
  (void)put();
  poke(-1, "X", 1);
  ok(entries(true) == 0 && entries(false) == 1 && !there("tag") && gone(), "one with a changed byte");
  (void)put();
  poke(0, "ccnjit0", 7);
  ok(!there("tag") && gone(), "one of an older form");
  (void)put();
  (void)chmod(path_of_entry(), 0666);
  ok(!there("tag") && gone(), "one that others may write");
  (void)put();
  if (geteuid() == 0 && chown(path_of_entry(), 12345, 12345) == 0)
    ok(!there("tag") && gone(), "one of another owner");
  else printf("ok %d - one of another owner # skip: needs root\n", ++tests);
  (void)symlink("/etc/passwd", path_of_entry());
  ok(!there("tag") && gone(), "a link");
  ok(put() && there("tag"), "and then it can be stored again");
  ok(ccn__cache_clear(folder, false) == 1 && entries(false) == 0, "clear removes all");
  (void)put();
  ok(ccn__cache_clear(folder, true) == 0 && entries(true) == 1, "clearing the bad ones leaves good ones");
  poke(-1, "X", 1);
  ok(ccn__cache_clear(folder, true) == 1 && entries(false) == 0, "and removes bad ones");
  ok(!ccn__cache_put("/proc/ccn", key, "tag", "hello", 5, 1 << 20),
     "a folder that cannot be made is no error");
}

static void test_bound(void) {
  static char large[10000];
  empty_folder();
  for (uint64_t i = 0; i < 100; i++) {
    const ccn__jit_key k = {{i, 1}};
    (void)ccn__cache_put(folder, k, "tag", large, sizeof large, 200000);
  }
  const uint32_t n = entries(true);
  size_t size;
  void *last = ccn__cache_get(folder, (ccn__jit_key){{99, 1}}, "tag", &size);
  printf("# %u entries of 10,000 bytes in 200,000\n", n);
  ok(n > 10 && n < 20 && last, "the folder stays below its limit, and keeps the newest");
  free(last);
}

static void test_environment(void) {
  char path[256];
  setenv("XDG_CACHE_HOME", "/x/y", 1);
  ok(ccn__cache_folder(NULL, path, sizeof path) && strcmp(path, "/x/y/ccn") == 0, "$XDG_CACHE_HOME/ccn");
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", "/h", 1);
  ok(ccn__cache_folder(NULL, path, sizeof path) && strcmp(path, "/h/.cache/ccn") == 0, "$HOME/.cache/ccn");
  ok(!ccn__cache_folder("", path, sizeof path), "none is asked for");
}

/* ---- kernels ------------------------------------------------------------------------------------------- */

#ifdef CCN_JIT_PLUGIN
static bool llvm_mapped(void) {
  char line[512];
  bool found = false;
  FILE *f = fopen("/proc/self/maps", "r");
  while (f && fgets(line, sizeof line, f)) found |= strstr(line, "libLLVM") != NULL;
  if (f) fclose(f);
  return found;
}

/* One kernel in a process of its own; the exit status says what happened. */
static int run_alone(const char *plugin_path, int64_t n) {
  const pid_t child = fork();
  if (child == 0) {
    const ccn__jit_options o = {.plugin = plugin_path, .cache = folder};
    const char *why = NULL;
    shaped s;
    ccn__kern_in in;
    shaped_open(&s, "program p(x: f32[N]) { return exp(x) * 2.0 + N }\n", "graph", "", &n, NULL, 0);
    shaped_args(&s, noise);
    shaped_group(&s, 0);
    ccn__jit *j = ccn__jit_open(&o);
    const ccn__kern *k = build(&s, &in);
    ccn__kern_fn *const *fn = ccn__jit_get(j, k, &why);
    if (!fn) {
      printf("# %s\n", why);
      _exit(9);
    }
    const bool good = check_code(&s, k, fn, "cached", NULL) && ccn__jit_get(j, k, &why) == fn;
    const ccn__jit_stats t = ccn__jit_statistics(j);
    printf("# compiled %u, cached %u, reused %u, compile %.2f ms, load %.3f ms\n", t.compiled, t.cached,
           t.reused, (double)t.compile_ns / 1e6, (double)t.load_ns / 1e6);
    fflush(stdout);
    ccn__jit_close(j);
    _exit(!good ? 8 : (int)t.compiled + 2 * (int)t.cached + (llvm_mapped() ? 4 : 0));
  }
  int status = 0;
  (void)waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void damage_all(void) {
  DIR *d = opendir(folder);
  struct dirent *x;
  while (d && (x = readdir(d))) {
    const int fd = x->d_name[0] == '.' ? -1 : openat(dirfd(d), x->d_name, O_WRONLY);
    if (fd < 0) continue;
    if (pwrite(fd, "????", 4, 700) != 4) exit(3);
    close(fd);
  }
  if (d) closedir(d);
}

static void test_kernels(void) {
  empty_folder();
  ok(run_alone(CCN_JIT_PLUGIN, 100) == 1 + 4, "cold: the plugin compiles");
  ok(run_alone(CCN_JIT_PLUGIN, 100) == 2, "cached: LLVM is not even mapped");
  ok(run_alone(CCN_JIT_PLUGIN, 77) == 2, "another size has the same code");
  ok(run_alone("/nowhere/libccn-jit.so", 100) == 2, "cached: nobody asks for the plugin");
  damage_all();
  ok(run_alone(CCN_JIT_PLUGIN, 100) == 1 + 4, "a damaged entry is made again");
  ok(run_alone(CCN_JIT_PLUGIN, 100) == 2, "and then it is good");
  empty_folder();
  ok(run_alone("/nowhere/libccn-jit.so", 100) == 9, "without plugin and cache there is a reason");
}
#endif

int main(void) {
  snprintf(folder, sizeof folder, "/tmp/ccn-cache-XXXXXX");
  if (!mkdtemp(folder)) return 3;
  test_files();
  test_bound();
#ifdef CCN_JIT_PLUGIN
  test_kernels();
#else
  printf("ok %d - kernels in the cache # skip: built without LLVM\n", ++tests);
#endif
  test_environment();
  empty_folder();
  (void)rmdir(folder);
  return finish_tests();
}

/* test_loader.c: the loader: what it makes of a good object, and that no damaged one gets past it or makes it
 * read beyond (run with the address sanitizer); compiling and unloading a thousand times leaves nothing.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* memmem */
#include "jit_kit.h"

#include <elf.h>
#include <unistd.h>

static const char *const sample = "program p(x: f32[N] local, y: f32[N]) { s = allreduce(avg, x % y)\n"
                                  " return sin(s) % 3.0, sum(y), f16(y) }";

static uint8_t *make(uint16_t arch, size_t *size) {
  ccn__jit_target t;
  shaped s;
  ccn__kern_in in;
  void *object = NULL;
  char why[256] = "";
  char script[1024];
  static const int64_t extent[] = {100};
  snprintf(script, sizeof script,
           "mesh (dp)\n%s\nschedule z(x) { (rs, ag) = split(x)\n (c, gs) = reorder(after(ag), ag)\n"
           " fuse(rs, c, gs) }\nlet f = p with z\n",
           sample);
  (void)ccn__jit_level(arch == EM_X86_64 ? "x86-64" : "aarch64", &t);
  shaped_open(&s, script, "scheduled", "2", extent, NULL, 0);
  shaped_group(&s, 0);
  const ccn__kern *k = build(&s, &in);
  if (!k || plugin->compile(k, &t, &object, size, why, sizeof why)) {
    printf("# %s %s\n", k ? "" : in.why, why);
    exit(3);
  }
  shaped_close(&s);
  return object;
}

/* In a block of exactly its size, so that the sanitizer sees every step beyond. */
static bool refused(const uint8_t *object, size_t size, uint16_t arch) {
  const char *why = NULL;
  uint8_t *copy = malloc(size ? size : 1);
  memcpy(copy, object, size);
  const bool good = ccn__jit_check(copy, size, arch, &why);
  free(copy);
  return !good && why;
}

static void test_damage(uint16_t arch, const char *name) {
  size_t size;
  char what[100];
  const char *why = NULL;
  uint8_t *object = make(arch, &size);
  snprintf(what, sizeof what, "%s: a good object passes", name);
  ok(ccn__jit_check(object, size, arch, &why), what);
  bool all = true;
  const size_t headers = ((const Elf64_Ehdr *)(const void *)object)->e_shoff; /* LLVM puts them last */
  for (size_t n = 0; n < size; n += 1 + n / 64) all &= refused(object, n, arch);
  snprintf(what, sizeof what, "%s: an object that ends early does not", name);
  ok(all && headers < size, what);
  uint32_t kept = 0, bad = 0;
  for (size_t i = 0; i < size; i++) /* every byte, three ways: refused, or harmless */
    for (int how = 0; how < 3; how++) {
      const uint8_t was = object[i];
      object[i] = how == 0 ? (uint8_t)~was : how == 1 ? 0xff : (uint8_t)(was + 1);
      if (refused(object, size, arch)) bad++;
      else kept++;
      object[i] = was;
    }
  snprintf(what, sizeof what, "%s: changed bytes are refused or harmless", name);
  printf("# %u refused, %u harmless\n", bad, kept);
  ok(bad > 1000 && kept > 1000, what);
  ok(refused(object, size, arch == EM_X86_64 ? EM_AARCH64 : EM_X86_64),
     "an object for another arch is refused");
  plugin->release(object);
}

/* A writable section and a foreign symbol are refused with those words. */
static void test_words(void) {
  size_t size;
  const char *why = NULL;
  uint8_t *object = make(EM_X86_64, &size);
  Elf64_Ehdr h;
  memcpy(&h, object, sizeof h);
  for (unsigned i = 0; i < h.e_shnum; i++) {
    Elf64_Shdr s;
    memcpy(&s, object + h.e_shoff + i * sizeof s, sizeof s);
    if (!(s.sh_flags & SHF_EXECINSTR)) continue;
    s.sh_flags |= SHF_WRITE;
    memcpy(object + h.e_shoff + i * sizeof s, &s, sizeof s);
  }
  ok(!ccn__jit_check(object, size, EM_X86_64, &why) && strcmp(why, "it has memory to write to") == 0,
     "writable code is refused");
  plugin->release(object);
  object = make(EM_X86_64, &size);
  uint8_t *name = memmem(object, size, "\0fmodf", 7);
  if (name) name[1] = 'q';
  ok(name && !ccn__jit_check(object, size, EM_X86_64, &why) && strcmp(why, "a symbol is not known") == 0,
     "a symbol that is not in the list is refused");
  plugin->release(object);
}

static long resident(void) {
  long pages = 0, skip;
  FILE *f = fopen("/proc/self/statm", "r");
  if (f && fscanf(f, "%ld %ld", &skip, &pages) != 2) pages = 0;
  if (f) fclose(f);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* The first turns fill LLVM's and malloc's own lists. */
static void test_growth(void) {
  const int turns = getenv("CCN_TEST_SLOW") ? 100 : 1000;
  long before = 0, after = 0;
  shaped s;
  ccn__kern_in in;
  ccn__jit_target t;
  static const int64_t extent[] = {100};
  bool good = true;
  (void)ccn__jit_host(&t);
  shaped_open(&s, "program p(x: f32[N]) { return x * 2.0 + 1.0 }\n", "graph", "", extent, NULL, 0);
  shaped_group(&s, 0);
  const ccn__kern *k = build(&s, &in);
  for (int i = 0; i < turns + 100 && good; i++) {
    compiled c;
    if (i == 100) before = resident();
    good = k && compile(k, &t, &c);
    if (good) ccn__jit_unload(c.code);
  }
  after = resident();
  printf("# resident: %ld KB, then %ld KB\n", before, after);
  ok(good && after - before < 1024, "memory is the same after 1,000 kernels compiled and unloaded");
  shaped_close(&s);
}

int main(void) {
  if (!open_plugin()) return skip_without_llvm("the loader");
  test_damage(EM_X86_64, "x86-64");
  test_damage(EM_AARCH64, "AArch64");
  test_words();
  test_growth();
  return finish_tests();
}

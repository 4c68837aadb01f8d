/* cache.c: object files of kernels on disk. The folder's files are code, so they are distrusted: a file
 * counts only if this user owns it and nobody else may write it, its length, tag and hash are right, and then
 * the loader checks it again. What does not is removed, and made anew. Files are written under another name
 * and renamed.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "jit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { TAG = 512, MOST = 64 << 20 };
#define MAGIC "ccnjit1\n"
#define SUFFIX ".kernel"

typedef struct head {
  char magic[8];
  uint64_t size; /* of the object behind it */
  ccn__jit_key key, hash;
  char tag[TAG]; /* what the code was made for, NUL-padded */
} head;

/* Two sums of 64 bits with different multipliers, mixed at the end: against accidents, not against
 * enemies, who would have to own the file. */
ccn__jit_key ccn__jit_hash(const void *data, size_t size, ccn__jit_key seed) {
  const uint8_t *p = data;
  uint64_t a = seed.hash[0] ^ 0xcbf29ce484222325u, b = seed.hash[1] ^ 0x9e3779b97f4a7c15u;
  for (size_t i = 0; i < size; i++) {
    a = (a ^ p[i]) * 0x100000001b3u;
    b = (b + p[i]) * 0xbf58476d1ce4e5b9u;
    b ^= b >> 29;
  }
  a ^= size;
  a = (a ^ a >> 30) * 0xbf58476d1ce4e5b9u;
  b = (b ^ b >> 27) * 0x94d049bb133111ebu;
  return (ccn__jit_key){{a ^ a >> 31, b ^ b >> 31 ^ a}};
}

bool ccn__cache_folder(const char *given, char *out, size_t n) {
  const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  int k = -1;
  if (given) k = *given ? snprintf(out, n, "%s", given) : -1;
  else if (xdg && xdg[0] == '/') k = snprintf(out, n, "%s/ccn", xdg);
  else if (home && home[0] == '/') k = snprintf(out, n, "%s/.cache/ccn", home);
  return k > 0 && (size_t)k < n;
}

/* ---- one file ------------------------------------------------------------------------------------------ */

static bool path_of(const char *folder, ccn__jit_key key, char *out, size_t n) {
  const int k = snprintf(out, n, "%s/%016llx%016llx" SUFFIX, folder, (unsigned long long)key.hash[0],
                         (unsigned long long)key.hash[1]);
  return k > 0 && (size_t)k < n;
}

static bool ours(int fd, struct stat *s) {
  return fstat(fd, s) == 0 && S_ISREG(s->st_mode) && s->st_uid == geteuid() &&
         !(s->st_mode & (S_IWGRP | S_IWOTH));
}

static bool read_all(int fd, void *to, size_t n) {
  for (size_t done = 0; done < n;) {
    const ssize_t k = read(fd, (char *)to + done, n - done);
    if (k < 0 && errno == EINTR) continue;
    if (k <= 0) return false;
    done += (size_t)k;
  }
  return true;
}

static bool write_all(int fd, const void *from, size_t n) {
  for (size_t done = 0; done < n;) {
    const ssize_t k = write(fd, (const char *)from + done, n - done);
    if (k < 0 && errno == EINTR) continue;
    if (k <= 0) return false;
    done += (size_t)k;
  }
  return true;
}

/* The object in an open file; NULL if anything about it is wrong. */
static void *read_entry(int fd, const ccn__jit_key *key, const char *tag, size_t *out_size) {
  struct stat s;
  head h;
  if (!ours(fd, &s) || s.st_size < (off_t)sizeof h || s.st_size > MOST || !read_all(fd, &h, sizeof h))
    return NULL;
  const bool known = memcmp(h.magic, MAGIC, sizeof h.magic) == 0 &&
                     h.size == (uint64_t)s.st_size - sizeof h && memchr(h.tag, 0, TAG) != NULL;
  if (!known || (key && memcmp(&h.key, key, sizeof *key) != 0) || (tag && strcmp(h.tag, tag) != 0))
    return NULL;
  void *object = malloc(h.size + 1);
  if (!object) return NULL;
  if (read_all(fd, object, h.size)) {
    const ccn__jit_key hash = ccn__jit_hash(object, h.size, h.key);
    if (memcmp(&hash, &h.hash, sizeof hash) == 0) {
      *out_size = h.size;
      return object;
    }
  }
  free(object);
  return NULL;
}

void *ccn__cache_get(const char *folder, ccn__jit_key key, const char *tag, size_t *out_size) {
  char path[4096];
  if (!path_of(folder, key, path, sizeof path)) return NULL;
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) {
    if (errno == ELOOP) (void)unlink(path);
    return NULL;
  }
  void *object = read_entry(fd, &key, tag, out_size);
  (void)futimens(fd, NULL); /* when it was last wanted */
  (void)close(fd);
  if (!object) (void)unlink(path);
  return object;
}

/* ---- the folder ---------------------------------------------------------------------------------------- */

static bool is_entry(const char *name) {
  const size_t n = strlen(name);
  return n == 32 + strlen(SUFFIX) && strcmp(name + 32, SUFFIX) == 0;
}

static bool is_left_over(const char *name) { return strncmp(name, "new-", 4) == 0; }

/* With the folders above it; private to the user. */
static bool make_folder(const char *folder) {
  char path[4096];
  struct stat s;
  const size_t n = strlen(folder);
  if (n >= sizeof path) return false;
  memcpy(path, folder, n + 1);
  for (size_t i = 1; i < n; i++) {
    if (path[i] != '/') continue;
    path[i] = 0;
    (void)mkdir(path, 0700);
    path[i] = '/';
  }
  (void)mkdir(path, 0700);
  return stat(path, &s) == 0 && S_ISDIR(s.st_mode) && s.st_uid == geteuid() &&
         !(s.st_mode & (S_IWGRP | S_IWOTH));
}

typedef struct found {
  char name[48];
  int64_t bytes;
  struct timespec used;
} found;

static int by_age(const void *x, const void *y) {
  const found *a = x, *b = y;
  if (a->used.tv_sec != b->used.tv_sec) return a->used.tv_sec < b->used.tv_sec ? -1 : 1;
  return (a->used.tv_nsec > b->used.tv_nsec) - (a->used.tv_nsec < b->used.tv_nsec);
}

/* All entries; free *out. */
static uint32_t scan(const char *folder, found **out) {
  DIR *d = opendir(folder);
  uint32_t n = 0, cap = 0;
  struct dirent *x;
  *out = NULL;
  while (d && (x = readdir(d))) {
    struct stat s;
    if (!is_entry(x->d_name) || fstatat(dirfd(d), x->d_name, &s, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (n == cap) {
      found *more = realloc(*out, (cap = cap ? 2 * cap : 64) * sizeof **out);
      if (!more) break;
      *out = more;
    }
    found *f = &(*out)[n++];
    (void)snprintf(f->name, sizeof f->name, "%s", x->d_name);
    f->bytes = s.st_size;
    f->used = s.st_mtim;
  }
  if (d) (void)closedir(d);
  return n;
}

static void remove_entry(const char *folder, const char *name) {
  char path[4096];
  const int k = snprintf(path, sizeof path, "%s/%s", folder, name);
  if (k > 0 && (size_t)k < sizeof path) (void)unlink(path);
}

/* The longest unused go first. */
static void keep_below(const char *folder, int64_t limit) {
  found *f;
  const uint32_t n = scan(folder, &f);
  int64_t all = 0;
  for (uint32_t i = 0; i < n; i++) all += f[i].bytes;
  if (all > limit) {
    qsort(f, n, sizeof *f, by_age);
    for (uint32_t i = 0; i < n && all > limit - limit / 8;
         i++) { /* some room, so that it is not done each time */
      remove_entry(folder, f[i].name);
      all -= f[i].bytes;
    }
  }
  free(f);
}

bool ccn__cache_put(const char *folder, ccn__jit_key key, const char *tag, const void *object, size_t size,
                    int64_t limit) {
  char path[4096], fresh[4096];
  head h = {.magic = MAGIC, .size = size, .key = key, .hash = ccn__jit_hash(object, size, key)};
  const size_t n = strlen(tag);
  const int k = snprintf(fresh, sizeof fresh, "%s/new-XXXXXX", folder);
  if (n >= TAG || size > MOST - sizeof h || !path_of(folder, key, path, sizeof path)) return false;
  if (k <= 0 || (size_t)k >= sizeof fresh || !make_folder(folder)) return false;
  memcpy(h.tag, tag, n);
  const int fd = mkstemp(fresh); /* mode 0600 */
  if (fd < 0) return false;
  bool good = write_all(fd, &h, sizeof h) && write_all(fd, object, size);
  good = close(fd) == 0 && good && rename(fresh, path) == 0;
  if (!good) (void)unlink(fresh);
  else keep_below(folder, limit);
  return good;
}

/* ---- for people ---------------------------------------------------------------------------------------- */

static bool is_good(const char *folder, const char *name) {
  char path[4096];
  ccn__jit_key key;
  unsigned long long a, b;
  size_t size;
  const int k = snprintf(path, sizeof path, "%s/%s", folder, name);
  if (k <= 0 || (size_t)k >= sizeof path || sscanf(name, "%16llx%16llx", &a, &b) != 2) return false;
  key = (ccn__jit_key){{a, b}};
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return false;
  void *object = read_entry(fd, &key, NULL, &size);
  (void)close(fd);
  free(object);
  return object != NULL;
}

uint32_t ccn__cache_list(const char *folder, bool check, void (*f)(const ccn__cache_entry *e, void *user),
                         void *user) {
  found *all;
  const uint32_t n = scan(folder, &all);
  struct timespec now = {0};
  (void)clock_gettime(CLOCK_REALTIME, &now);
  for (uint32_t i = 0; i < n; i++) {
    ccn__cache_entry e = {.bytes = all[i].bytes, .age = (int64_t)(now.tv_sec - all[i].used.tv_sec)};
    memcpy(e.name, all[i].name, sizeof e.name);
    e.good = !check || is_good(folder, all[i].name);
    f(&e, user);
  }
  free(all);
  return n;
}

/* Files that a writer left when it ended early. */
static void sweep(const char *folder) {
  DIR *d = opendir(folder);
  struct dirent *x;
  while (d && (x = readdir(d)))
    if (is_left_over(x->d_name)) (void)unlinkat(dirfd(d), x->d_name, 0);
  if (d) (void)closedir(d);
}

uint32_t ccn__cache_clear(const char *folder, bool bad_only) {
  found *all;
  uint32_t removed = 0;
  const uint32_t n = scan(folder, &all);
  for (uint32_t i = 0; i < n; i++) {
    if (bad_only && is_good(folder, all[i].name)) continue;
    remove_entry(folder, all[i].name);
    removed++;
  }
  free(all);
  if (!bad_only) sweep(folder);
  return removed;
}

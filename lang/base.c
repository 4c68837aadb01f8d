/* base.c: the heap with its limit, traps, arenas, growing arrays and texts, interned names, nearest names.
 *
 * Contract: base.h. Everything that grows allocates first and changes its owner afterwards, so that a
 * throw in between leaves the owner as it was.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Arena memory is invisible to AddressSanitizer unless we tell it what is handed out and what is not. */
#if defined(__SANITIZE_ADDRESS__)
#define HAVE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAVE_ASAN 1
#endif
#endif
#ifdef HAVE_ASAN
#include <sanitizer/asan_interface.h>
#define POISON(p, n) __asan_poison_memory_region((p), (n))
#define UNPOISON(p, n) __asan_unpoison_memory_region((p), (n))
#define REDZONE 16
#else
#define POISON(p, n) ((void)0)
#define UNPOISON(p, n) ((void)0)
#define REDZONE 0
#endif

/* ---- heap ---------------------------------------------------------------------------------------------- */

static size_t align_of(size_t n) { return n >= 256 ? 64 : 16; }

void *ccn__heap_alloc_raw(ccn__heap *h, size_t n) {
  if (n == 0) n = 1; /* the host's function takes 0 for "free" */
  bool beyond = h->limit && (h->live > h->limit || n > h->limit - h->live);
  void *p = n > SIZE_MAX / 2 || beyond ? NULL : h->alloc(NULL, 0, n, align_of(n), h->user);
  if (!p) {
    h->refused = n;
    ccn__throw(h, CCN_OUT_OF_MEMORY);
  }
  h->live += n;
  if (h->live > h->peak) h->peak = h->live;
  return p;
}

void *ccn__heap_alloc(ccn__heap *h, size_t n) { return memset(ccn__heap_alloc_raw(h, n), 0, n ? n : 1); }

void ccn__heap_free(ccn__heap *h, void *p, size_t n) {
  if (!p) return;
  if (n == 0) n = 1;
  h->live -= n;
  h->alloc(p, n, 0, align_of(n), h->user);
}

void ccn__throw(ccn__heap *h, ccn_status status) {
  ccn__trap *t = h->trap;
  if (t) {
    h->trap = t->outer;
    t->status = status;
    longjmp(t->jump, 1);
  }
  /* No trap is a defect of CCN, and nothing after this point could be trusted: stop here, visibly. */
#if defined(__GNUC__)
  __builtin_trap();
#else
  for (;;) *(volatile char *)NULL = 0;
#endif
}

/* ---- arena --------------------------------------------------------------------------------------------- */

enum { BLOCK_MIN = 4096, BLOCK_MAX = 1 << 20 };

struct ccn__arena_block {
  ccn__arena_block *next;
  size_t size; /* bytes of the whole block, this header included */
  size_t used; /* header included */
  size_t pad;  /* keeps what follows aligned to 16 */
};
_Static_assert(sizeof(ccn__arena_block) % 16 == 0, "what follows a block's header must be aligned to 16");

void ccn__arena_init(ccn__arena *a, ccn__heap *h) { *a = (ccn__arena){.heap = h}; }

void ccn__arena_free(ccn__arena *a) {
  for (ccn__arena_block *b = a->first, *next; b; b = next) {
    next = b->next;
    UNPOISON(b, b->size);
    ccn__heap_free(a->heap, b, b->size);
  }
  a->first = NULL;
  a->bytes = 0;
}

static ccn__arena_block *new_block(ccn__arena *a, size_t size) {
  ccn__arena_block *b = ccn__heap_alloc(a->heap, size);
  b->size = size;
  b->used = sizeof *b;
  POISON(b + 1, size - sizeof *b);
  return b;
}

/* A block that has room for n bytes. Blocks double in size; a request that would waste much of one gets a
 * block of its own behind the first, so that the first stays the one that is being filled. */
static ccn__arena_block *block_for(ccn__arena *a, size_t n) {
  ccn__arena_block *b = a->first;
  if (b && b->size - b->used >= n) return b;
  size_t size = !b ? BLOCK_MIN : b->size < BLOCK_MAX ? b->size * 2 : BLOCK_MAX;
  bool apart = n > size / 4;
  if (!b || !apart) {
    b = new_block(a, size);
    b->next = a->first;
    a->first = b;
    if (!apart || size - b->used >= n) return b;
  }
  b = new_block(a, sizeof *b + n);
  b->next = a->first->next;
  a->first->next = b;
  return b;
}

void *ccn__arena_alloc(ccn__arena *a, size_t bytes) {
  if (bytes > SIZE_MAX / 4) ccn__throw(a->heap, CCN_OUT_OF_MEMORY);
  size_t n = bytes ? (bytes + 15) & ~(size_t)15 : 16;
  ccn__arena_block *b = block_for(a, n + REDZONE);
  char *p = (char *)b + b->used;
  b->used += n + REDZONE;
  a->bytes += n;
  UNPOISON(p, bytes);
  return p;
}

char *ccn__arena_strndup(ccn__arena *a, const char *s, size_t n) {
  char *p = ccn__arena_alloc(a, n + 1);
  if (n) memcpy(p, s, n);
  return p;
}

char *ccn__arena_printf(ccn__arena *a, const char *fmt, ...) {
  char small[256];
  va_list args, again;
  va_start(args, fmt);
  va_copy(again, args);
  int n = vsnprintf(small, sizeof small, fmt, args);
  va_end(args);
  if (n < 0) n = 0, small[0] = 0;
  /* Between here and va_end a throw could only skip va_end, which does nothing on our platforms. */
  char *p = ccn__arena_alloc(a, (size_t)n + 1);
  if ((size_t)n < sizeof small) memcpy(p, small, (size_t)n);
  else vsnprintf(p, (size_t)n + 1, fmt, again);
  va_end(again);
  return p;
}

void *ccn__vec_grow(ccn__arena *a, void *at, uint32_t n, uint32_t *cap, size_t size) {
  if (*cap > UINT32_MAX / 2 || (size_t)*cap * 2 > SIZE_MAX / 8 / size) ccn__throw(a->heap, CCN_OUT_OF_MEMORY);
  uint32_t more = *cap ? *cap * 2 : 8;
  void *p = ccn__arena_alloc(a, (size_t)more * size);
  if (n) memcpy(p, at, (size_t)n * size);
  *cap = more;
  return p;
}

/* ---- text ---------------------------------------------------------------------------------------------- */

void ccn__text_init(ccn__text *t, ccn__arena *a) { *t = (ccn__text){.arena = a}; }

/* Room for n more bytes and the NUL. Abandoned buffers stay in the arena: all of them together are smaller
 * than the last one, and whoever appends a piece of the text to itself reads from memory that is still
 * there. */
static void text_reserve(ccn__text *t, size_t n) {
  if (n > SIZE_MAX / 8) ccn__throw(t->arena->heap, CCN_OUT_OF_MEMORY);
  size_t need = t->n + n + 1;
  if (need <= t->cap) return;
  size_t cap = t->cap ? t->cap * 2 : 64;
  if (cap < need) cap = need;
  char *p = ccn__arena_alloc(t->arena, cap);
  if (t->n) memcpy(p, t->at, t->n);
  t->at = p;
  t->cap = cap;
}

void ccn__text_add(ccn__text *t, const char *s, size_t n) {
  text_reserve(t, n);
  if (n) memmove(t->at + t->n, s, n);
  t->n += n;
  t->at[t->n] = 0;
}

void ccn__text_puts(ccn__text *t, const char *s) { ccn__text_add(t, s, strlen(s)); }

void ccn__text_putc(ccn__text *t, char c) { ccn__text_add(t, &c, 1); }

void ccn__text_printf(ccn__text *t, const char *fmt, ...) {
  va_list args, again;
  va_start(args, fmt);
  va_copy(again, args);
  text_reserve(t, 64);
  size_t room = t->cap - t->n;
  int n = vsnprintf(t->at + t->n, room, fmt, args);
  va_end(args);
  if (n > 0 && (size_t)n >= room) {
    t->at[t->n] = 0; /* as it was, should the next line throw */
    text_reserve(t, (size_t)n);
    vsnprintf(t->at + t->n, (size_t)n + 1, fmt, again);
  }
  va_end(again);
  if (n > 0) t->n += (size_t)n;
  t->at[t->n] = 0;
}

/* The fewest significant digits that read back as x, into digits[] (NUL-terminated) with the exponent of
 * the first. x is finite and not negative. printf and strtod both use the process's decimal separator,
 * whatever it is (a host may have set a locale), so the comparison holds; of the text only digits are
 * taken. */
static int shortest_digits(double x, bool single, char digits[20]) {
  char s[64];
  int most = single ? 9 : 17;
  for (int p = 1; p <= most; p++) {
    snprintf(s, sizeof s, "%.*e", p - 1, x);
    if (single ? strtof(s, NULL) == (float)x : strtod(s, NULL) == x) break;
  }
  char *e = strchr(s, 'e');
  int n = 0;
  for (char *c = s; c < e; c++)
    if (*c >= '0' && *c <= '9' && n < 19) digits[n++] = *c;
  digits[n] = 0;
  return (int)strtol(e + 1, NULL, 10);
}

void ccn__text_float(ccn__text *t, double x, bool single) {
  if (single) x = (double)(float)x;
  if (isnan(x)) {
    ccn__text_puts(t, "nan");
    return;
  }
  if (signbit(x)) ccn__text_putc(t, '-');
  x = fabs(x);
  if (isinf(x)) {
    ccn__text_puts(t, "inf");
    return;
  }
  char digits[20];
  int e = shortest_digits(x, single, digits), n = (int)strlen(digits);
  if (e < -4 || e >= 16) { /* as Python does: 1e-05, 1.5e+16 */
    ccn__text_printf(t, "%c%s%se%c%02d", digits[0], n > 1 ? "." : "", digits + 1, e < 0 ? '-' : '+', abs(e));
  } else if (e < 0) {
    ccn__text_printf(t, "0.%.*s%s", -e - 1, "000", digits);
  } else if (n <= e + 1) {
    ccn__text_printf(t, "%s%.*s.0", digits, e + 1 - n, "0000000000000000");
  } else {
    ccn__text_printf(t, "%.*s.%s", e + 1, digits, digits + e + 1);
  }
}

/* ---- interned names ------------------------------------------------------------------------------------ */

struct ccn__name_slot {
  const char *name; /* NULL: free */
  uint32_t hash;
  uint32_t length;
};

void ccn__names_init(ccn__names *t, ccn__arena *a) { *t = (ccn__names){.arena = a}; }

static uint32_t hash_bytes(const char *s, size_t n) {
  uint32_t h = 2166136261u; /* FNV-1a, finished as in MurmurHash3 so that the low bits are good */
  for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)s[i]) * 16777619u;
  h = (h ^ (h >> 16)) * 0x85ebca6bu;
  h = (h ^ (h >> 13)) * 0xc2b2ae35u;
  return h ^ (h >> 16);
}

static struct ccn__name_slot *find_slot(struct ccn__name_slot *slot, uint32_t cap, const char *s, size_t n,
                                        uint32_t hash) {
  for (uint32_t i = hash & (cap - 1);; i = (i + 1) & (cap - 1)) {
    struct ccn__name_slot *p = &slot[i];
    if (!p->name) return p;
    if (p->hash == hash && p->length == n && memcmp(p->name, s, n) == 0) return p;
  }
}

static void grow_names(ccn__names *t) {
  if (t->cap > UINT32_MAX / 4) ccn__throw(t->arena->heap, CCN_OUT_OF_MEMORY);
  uint32_t cap = t->cap ? t->cap * 2 : 64;
  struct ccn__name_slot *slot = CCN__NEWN(t->arena, struct ccn__name_slot, cap);
  for (uint32_t i = 0; i < t->cap; i++) {
    struct ccn__name_slot *p = &t->slot[i];
    if (p->name) *find_slot(slot, cap, p->name, p->length, p->hash) = *p;
  }
  t->slot = slot;
  t->cap = cap;
}

ccn__name ccn__intern(ccn__names *t, const char *s, size_t n) {
  if (n > UINT32_MAX) ccn__throw(t->arena->heap, CCN_OUT_OF_MEMORY);
  if (t->n >= t->cap / 2) grow_names(t);
  uint32_t hash = hash_bytes(s, n);
  struct ccn__name_slot *p = find_slot(t->slot, t->cap, s, n, hash);
  if (p->name) return p->name;
  const char *name = ccn__arena_strndup(t->arena, s, n);
  *p = (struct ccn__name_slot){.name = name, .hash = hash, .length = (uint32_t)n};
  t->n++;
  return name;
}

ccn__name ccn__internz(ccn__names *t, const char *s) { return ccn__intern(t, s, strlen(s)); }

/* ---- the nearest name ---------------------------------------------------------------------------------- */

enum { NEAREST_MAX = 64 }; /* longer names get no suggestion; rows fit on the stack */

void ccn__nearest_init(ccn__nearest *s, const char *name) {
  *s = (ccn__nearest){.name = name, .distance = UINT32_MAX};
}

static uint32_t min3(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t m = a < b ? a : b;
  return m < c ? m : c;
}

/* Insertions, deletions, replacements and swaps of neighbours that lead from a to b (Damerau-Levenshtein,
 * each place edited once), or something above `bound` as soon as it is certain to be above. */
static uint32_t edit_distance(const char *a, size_t na, const char *b, size_t nb, uint32_t bound) {
  uint32_t rows[3][NEAREST_MAX + 1];
  uint32_t *before = rows[0], *last = rows[1], *row = rows[2];
  for (uint32_t j = 0; j <= nb; j++) last[j] = j;
  for (uint32_t i = 1; i <= na; i++) {
    uint32_t least = row[0] = i;
    for (uint32_t j = 1; j <= nb; j++) {
      uint32_t same = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = min3(last[j] + 1, row[j - 1] + 1, last[j - 1] + same);
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < row[j])
        row[j] = before[j - 2] + 1;
      if (row[j] < least) least = row[j];
    }
    if (least > bound + 1) return least; /* + 1: a swap may still reach back over one row */
    uint32_t *spare = before;
    before = last, last = row, row = spare;
  }
  return last[nb];
}

void ccn__nearest_try(ccn__nearest *s, const char *candidate) {
  size_t n = strlen(s->name), m = strlen(candidate);
  if (n > NEAREST_MAX || m > NEAREST_MAX) return;
  size_t longer = n > m ? n : m, shorter = n > m ? m : n;
  uint32_t bound = n / 3 > 1 ? (uint32_t)(n / 3) : 1;
  /* Something must be left in common: "y" is no suggestion for "x". The name itself is none either. */
  if (bound >= longer) bound = longer ? (uint32_t)longer - 1 : 0;
  if (longer - shorter > bound) return;
  uint32_t d = edit_distance(s->name, n, candidate, m, bound);
  if (d == 0 || d > bound || d >= s->distance) return;
  s->distance = d;
  s->best = candidate;
}

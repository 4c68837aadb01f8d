/* base.h: what everything else stands on: allocation, arenas, interned names, spans, errors as jumps.
 *
 * Place in the pipeline: below everything. Knows nothing of the language.
 *
 * Two rules make the rest of the code short:
 *  1. Compile data lives in arenas that die together; nobody frees single nodes.
 *  2. Out of memory, and errors of a running script, unwind with longjmp to the API boundary, as in Lua
 *     (house rules ask for status codes everywhere; threading them through every constructor would hide the
 *     algorithms). So an allocation never returns NULL, and whatever is not in an arena is linked to an owner that
 *     the boundary can free. No function that allocates may be called without a trap set.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_LANG_BASE_H
#define CCN_LANG_BASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "ccn.h"

#if defined(__GNUC__)
#define CCN__PRINTF(f, a) __attribute__((format(printf, f, a)))
#define CCN__NORETURN __attribute__((noreturn))
#else
#define CCN__PRINTF(f, a)
#define CCN__NORETURN
#endif
#define CCN__COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* ---- heap: the host's allocator with limits, and traps ---------------------------------------------------- */

typedef struct ccn__heap ccn__heap;

typedef struct ccn__trap { /* volatile: it lives in the frame that setjmp returns to */
  jmp_buf jump;
  struct ccn__trap *volatile outer;
  volatile ccn_status status;
} ccn__trap;

struct ccn__heap {
  ccn_alloc_fn alloc; /* the host's function (see ccn.h), never NULL */
  void *user;
  size_t live, peak, limit; /* bytes; limit 0 = none */
  size_t refused;           /* bytes of the last request that failed */
  ccn__trap *volatile trap; /* innermost; a throw goes there */
};

/* Zeroed memory, aligned to 64 bytes when n >= 256 and to 16 otherwise; throws CCN_OUT_OF_MEMORY. */
void *ccn__heap_alloc(ccn__heap *h, size_t n);
void *ccn__heap_alloc_raw(ccn__heap *h, size_t n);    /* likewise, but not zeroed */
void ccn__heap_free(ccn__heap *h, void *p, size_t n); /* p may be NULL */
CCN__NORETURN void ccn__throw(ccn__heap *h, ccn_status status);

/* CCN__TRY(h, trap) { ...may throw... } CCN__CATCH(h, trap) { ...trap.status says what... }
 * Locals changed inside and read after a throw must be volatile. Never `return` or `goto` out of the TRY block. */
#define CCN__TRY(h, t) \
  (t).outer = (h)->trap; \
  (t).status = CCN_OK; \
  (h)->trap = &(t); \
  if (setjmp((t).jump) == 0) {
#define CCN__CATCH(h, t) \
  (h)->trap = (t).outer; \
  } \
  else

/* ---- arena ------------------------------------------------------------------------------------------------ */

typedef struct ccn__arena_block ccn__arena_block;
typedef struct ccn__arena {
  ccn__heap *heap;
  ccn__arena_block *first; /* newest block */
  size_t bytes;            /* handed out */
} ccn__arena;

void ccn__arena_init(ccn__arena *a, ccn__heap *h);
void ccn__arena_free(ccn__arena *a);                 /* all blocks; the arena may be used again */
void *ccn__arena_alloc(ccn__arena *a, size_t bytes); /* zeroed, 16-byte aligned; throws */
char *ccn__arena_strndup(ccn__arena *a, const char *s, size_t n); /* NUL added */
char *ccn__arena_printf(ccn__arena *a, const char *fmt, ...) CCN__PRINTF(2, 3);
#define CCN__NEW(a, T) ((T *)ccn__arena_alloc((a), sizeof(T)))
#define CCN__NEWN(a, T, n) ((T *)ccn__arena_alloc((a), sizeof(T) * (size_t)(n)))

/* A growable array in an arena: CCN__VEC(int) v = {0}; *CCN__PUSH(a, &v) = 3; v.at[i], v.n. */
#define CCN__VEC(T) \
  struct { \
    T *at; \
    uint32_t n, cap; \
  }
void *ccn__vec_grow(ccn__arena *a, void *at, uint32_t n, uint32_t *cap, size_t size);
#define CCN__PUSH(a, v) \
  ((v)->n < (v)->cap ? (void)0 \
                     : (void)((v)->at = ccn__vec_grow((a), (v)->at, (v)->n, &(v)->cap, sizeof(*(v)->at))), \
   &(v)->at[(v)->n++])

/* ---- text buffer (heap; free it or give it an arena) -------------------------------------------------------- */

typedef struct ccn__text {
  ccn__arena *arena;
  char *at; /* NUL-terminated once something was added */
  size_t n, cap;
} ccn__text;

void ccn__text_init(ccn__text *t, ccn__arena *a);
void ccn__text_add(ccn__text *t, const char *s, size_t n);
void ccn__text_puts(ccn__text *t, const char *s);
void ccn__text_putc(ccn__text *t, char c);
void ccn__text_printf(ccn__text *t, const char *fmt, ...) CCN__PRINTF(2, 3);
/* The shortest decimal text that reads back as the same f64 (or f32 if `single`), with ".0" added when it would
 * look like an integer; nan, inf, -inf. */
void ccn__text_float(ccn__text *t, double x, bool single);

/* ---- interned names ------------------------------------------------------------------------------------------ */

typedef const char *ccn__name; /* equal names have equal pointers (within one table); NULL = none */
typedef struct ccn__names {
  ccn__arena *arena;
  struct ccn__name_slot *slot;
  uint32_t n, cap; /* cap is a power of two */
} ccn__names;
void ccn__names_init(ccn__names *t, ccn__arena *a);
ccn__name ccn__intern(ccn__names *t, const char *s, size_t n);
ccn__name ccn__internz(ccn__names *t, const char *s);
/* Of the n candidates the nearest to `name` by edit distance with swaps, if it is near enough to suggest; else NULL. */
typedef struct ccn__nearest {
  const char *name;
  const char *best;
  uint32_t distance;
} ccn__nearest;
void ccn__nearest_init(ccn__nearest *s, const char *name);
void ccn__nearest_try(ccn__nearest *s, const char *candidate);

/* ---- sources and spans ---------------------------------------------------------------------------------------- */

typedef struct ccn__span {
  uint32_t source; /* index in the context's sources; 0 = nowhere */
  uint32_t start;  /* byte offsets, [start, end) */
  uint32_t end;
} ccn__span;

typedef struct ccn__source {
  const char *name; /* as shown to people: a path, "<line 3>", "std/optim" */
  const char *text;
  uint32_t size;
  uint32_t nlines;
  uint32_t *line; /* byte offset of each line's start, filled on first use */
} ccn__source;

static inline ccn__span ccn__span_join(ccn__span a, ccn__span b) {
  if (!a.source) return b;
  if (!b.source || a.source != b.source) return a;
  a.start = a.start < b.start ? a.start : b.start;
  a.end = a.end > b.end ? a.end : b.end;
  return a;
}

#endif

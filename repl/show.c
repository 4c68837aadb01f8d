/* show.c: what the shell shows of a value: of a tensor its type, placement, storage and an excerpt, by rank
 * where ranks differ; of everything else its text, bounded.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shell.h"
#include "terminal.h"

enum { MOST_TEXT = 4000, MOST_RANKS = 64 };

/* ---- numbers ------------------------------------------------------------------------------------------- */

static double from_half(uint16_t h) {
  int e = (h >> 10) & 31, m = h & 1023;
  double x = e == 31 ? (m ? NAN : INFINITY) : e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
  return h & 0x8000 ? -x : x;
}

static double from_bf16(uint16_t h) {
  uint32_t bits = (uint32_t)h << 16;
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* The fewest digits that read back, as print shows it; room for 32 bytes. */
static void float_text(char *out, double x, bool single) {
  if (x != x) {
    strcpy(out, "nan");
    return;
  }
  if (x - x != 0) {
    strcpy(out, x < 0 ? "-inf" : "inf");
    return;
  }
  for (int digits = 1; digits <= 17; digits++) {
    snprintf(out, 32, "%.*g", digits, x);
    if (single ? strtof(out, NULL) == (float)x : strtod(out, NULL) == x) break;
  }
  char *e = strchr(out, 'e');
  if (e && e[1] == '+' && atoi(e + 2) < 16) snprintf(out, 32, "%.0f", x);
  if (out[strspn(out, "-0123456789")] == 0) strcat(out, ".0");
}

static void element_text(char *out, ccn_dtype t, const void *at) {
  long long i = 0;
  switch (t) {
  case CCN_DTYPE_F64: float_text(out, *(const double *)at, false); return;
  case CCN_DTYPE_F32: float_text(out, *(const float *)at, true); return;
  case CCN_DTYPE_F16: float_text(out, from_half(*(const uint16_t *)at), true); return;
  case CCN_DTYPE_BF16: float_text(out, from_bf16(*(const uint16_t *)at), true); return;
  case CCN_DTYPE_BOOL: strcpy(out, *(const uint8_t *)at ? "true" : "false"); return;
  case CCN_DTYPE_I64: i = *(const int64_t *)at; break;
  case CCN_DTYPE_I32: i = *(const int32_t *)at; break;
  case CCN_DTYPE_I16: i = *(const int16_t *)at; break;
  case CCN_DTYPE_I8: i = *(const int8_t *)at; break;
  case CCN_DTYPE_U8: i = *(const uint8_t *)at; break;
  }
  snprintf(out, 32, "%lld", i);
}

/* ---- arrays -------------------------------------------------------------------------------------------- */

typedef struct array {
  ccn_dtype dtype;
  int ndim;
  const char *data;
  const int64_t *extent, *strides;
  long shown;    /* elements of each dim */
  long fits;     /* elements that fit in a row of the terminal */
  size_t width;  /* of the widest element shown */
  size_t indent; /* columns in front of it */
} array;

static long shown_of(long excerpt, int ndim) {
  long n = ndim <= 2 ? excerpt : ndim == 3 ? excerpt / 2 : excerpt / 4;
  return n < 2 ? 2 : n;
}

/* The index behind i among those that are shown; skips the middle of a long dim. */
static int64_t next_shown(int64_t i, int64_t n, long shown) {
  return n > shown && i + 1 == (shown + 1) / 2 ? n - shown / 2 : i + 1;
}

static long shown_in(const array *a, int d) {
  return d + 1 == a->ndim && a->fits < a->shown ? a->fits : a->shown;
}

static void measure(array *a, int d, int64_t offset) {
  char s[40];
  if (d == a->ndim) {
    element_text(s, a->dtype, a->data + (size_t)offset * ccn_dtype_size(a->dtype));
    if (strlen(s) > a->width) a->width = strlen(s);
    return;
  }
  for (int64_t i = 0; i < a->extent[d]; i = next_shown(i, a->extent[d], a->shown))
    measure(a, d + 1, offset + i * a->strides[d]);
}

static void new_line(const array *a, int d) { printf("\n%*s", (int)a->indent + d, ""); }

static void put_array(array *a, int d, int64_t offset);

/* The elements of a dim with `behind` each but the last; `down`: one below the other. */
static void put_members(array *a, int d, int64_t offset, const char *behind, bool down) {
  const int64_t n = a->extent[d];
  const long shown = shown_in(a, d);
  for (int64_t i = 0, before = -1; i < n; before = i, i = next_shown(i, n, shown)) {
    if (i) fputs(behind, stdout);
    if (i && down) new_line(a, d + 1);
    if (i != before + 1) {
      printf("...%s", behind);
      if (down) new_line(a, d + 1);
    }
    put_array(a, d + 1, offset + i * a->strides[d]);
  }
}

static void put_array(array *a, int d, int64_t offset) {
  char s[40];
  if (d == a->ndim) {
    element_text(s, a->dtype, a->data + (size_t)offset * ccn_dtype_size(a->dtype));
    printf("%*s", a->ndim ? (int)a->width : 0, s);
    return;
  }
  putchar('[');
  if (d + 1 == a->ndim) put_members(a, d, offset, ", ", false);
  else put_members(a, d, offset, ",", true);
  putchar(']');
}

/* a.width is what other arrays need that stand below. */
static void show_array(array a) {
  a.fits = a.shown;
  measure(&a, 0, 0);
  const size_t room = terminal_columns(), taken = a.indent + 2 * (size_t)a.ndim + strlen("..., ");
  a.fits = room > taken ? (long)((room - taken) / (a.width + 2)) / 2 * 2 : 2;
  if (a.fits < 2) a.fits = 2;
  put_array(&a, 0, 0);
  putchar('\n');
}

/* ---- tensors ------------------------------------------------------------------------------------------- */

typedef struct pieces {
  ccn_tensor_info info;
  ccn_piece at[MOST_RANKS];
  bool held[MOST_RANKS];
  uint32_t twin[MOST_RANKS]; /* the first rank that holds a copy of the same */
  uint32_t n, groups, holders;
  size_t least, most; /* bytes of those that hold something */
  double bytes;
} pieces;

/* Pieces of one place are copies, unless each rank has its own value there; then those are that share memory. */
static bool same_piece(const pieces *p, const ccn_piece *a, const ccn_piece *b) {
  const char *place = p->info.placement;
  const size_t n = (size_t)a->ndim * sizeof *a->extent;
  if (memcmp(a->extent, b->extent, n) != 0) return false;
  if (a->bytes && (strstr(place, "local") || strstr(place, "partial"))) return a->data == b->data;
  return !a->bytes || memcmp(a->start, b->start, n) == 0;
}

static ccn_status find_pieces(ccn_tensor *t, pieces *p) {
  p->n = p->info.ranks < MOST_RANKS ? p->info.ranks : MOST_RANKS;
  for (uint32_t r = 0; r < p->n; r++) {
    p->at[r].size = sizeof p->at[r];
    ccn_status status = ccn_tensor_piece(t, r, &p->at[r]);
    if (status != CCN_OK && status != CCN_NOT_FOUND) return status;
    p->held[r] = status == CCN_OK;
    if (!p->held[r]) continue;
    p->twin[r] = r;
    for (uint32_t k = 0; k < r && p->twin[r] == r; k++)
      if (p->held[k] && same_piece(p, &p->at[k], &p->at[r])) p->twin[r] = p->twin[k];
    if (p->twin[r] == r) p->groups++;
    if (!p->holders++ || p->at[r].bytes < p->least) p->least = p->at[r].bytes;
    if (p->at[r].bytes > p->most) p->most = p->at[r].bytes;
    p->bytes += (double)p->at[r].bytes;
  }
  return CCN_OK;
}

static void put_type(const ccn_tensor_info *i) {
  fputs(ccn_dtype_name(i->dtype), stdout);
  for (int d = 0; d < i->ndim; d++) printf(d ? ", %lld" : "[%lld", (long long)i->shape[d]);
  if (i->ndim) putchar(']');
  if (*i->placement) printf(" %s", i->placement);
}

static void put_storage(const pieces *p) {
  string t = {0};
  texts_bytes(&t, p->least == p->most ? (double)p->most : p->bytes);
  if (p->info.ranks == 1) text_put(&t, "");
  else if (p->holders < p->n && p->least == p->most)
    text_printf(&t, " on %s%u of %u ranks", p->holders > 1 ? "each of " : "", p->holders, p->n);
  else if (p->least == p->most) text_printf(&t, " on each of %u ranks", p->n);
  else text_printf(&t, " over %u ranks", p->n);
  if (p->info.borrowed) text_put(&t, ", memory of the host");
  printf("  %s\n", text_of(&t));
  text_free(&t);
}

/* "rank 2 [4:6, 0:3]" */
static void put_label(const pieces *p, uint32_t r, string *t) {
  uint32_t twins = 0, last = r;
  for (uint32_t k = r + 1; k < p->n; k++)
    if (p->held[k] && p->twin[k] == r) twins++, last = k;
  if (!twins) text_printf(t, "rank %u", r);
  else if (twins == last - r) text_printf(t, "ranks %u-%u", r, last);
  else {
    text_printf(t, "ranks %u", r);
    uint32_t listed = 1;
    for (uint32_t k = r + 1; k < p->n; k++) {
      if (!p->held[k] || p->twin[k] != r) continue;
      if (listed < 4) text_printf(t, ", %u", k);
      else if (listed == 4) text_put(t, ", ...");
      listed++;
    }
  }
  const ccn_piece *x = &p->at[r];
  bool part = false;
  for (int d = 0; d < x->ndim; d++) part |= x->extent[d] != p->info.shape[d];
  for (int d = 0; d < x->ndim && part; d++) {
    text_put(t, d ? ", " : " [");
    if (x->extent[d] == p->info.shape[d]) text_put(t, ":");
    else text_printf(t, "%lld:%lld", (long long)x->start[d], (long long)(x->start[d] + x->extent[d]));
  }
  if (part) text_put(t, "]");
}

static array piece_array(const shell *s, const pieces *p, uint32_t r, size_t indent) {
  const long shown = shown_of(s->set.excerpt, p->info.ndim);
  return (array){.dtype = p->info.dtype,
                 .ndim = p->info.ndim,
                 .data = p->at[r].data,
                 .extent = p->at[r].extent,
                 .strides = p->at[r].strides,
                 .shown = shown,
                 .fits = shown,
                 .indent = indent};
}

static void show_pieces(shell *s, const pieces *p) {
  long limit = p->info.ndim <= 1 ? s->set.excerpt : shown_of(s->set.excerpt, 3);
  bool labels = p->groups > 1 || p->holders < p->n;
  size_t left = 0, width = 0;
  uint32_t shown[MOST_RANKS], n = 0;
  string label[MOST_RANKS] = {{0}};
  for (uint32_t r = 0; r < p->n && n < limit; r++)
    if (p->held[r] && p->twin[r] == r) shown[n++] = r;
  for (uint32_t i = 0; i < n; i++) {
    array a = piece_array(s, p, shown[i], 0);
    measure(&a, 0, 0);
    if (a.width > width) width = a.width;
    if (labels) put_label(p, shown[i], &label[i]);
    if (label[i].n > left) left = label[i].n;
  }
  for (uint32_t i = 0; i < n; i++) {
    array a = piece_array(s, p, shown[i], labels ? left + 2 : 0);
    a.width = width;
    if (labels) printf("%-*s  ", (int)left, text_of(&label[i]));
    show_array(a);
    text_free(&label[i]);
  }
  if (p->groups > n) printf("... and %u more that differ (:set excerpt N shows more)\n", p->groups - n);
}

/* Looking at a tensor that a schedule keeps in slices must not gather it for good. */
static ccn_status show_whole(shell *s, ccn_tensor *t, const ccn_tensor_info *i) {
  size_t bytes = ccn_dtype_size(i->dtype);
  for (int d = 0; d < i->ndim; d++) bytes *= (size_t)i->shape[d];
  void *data = malloc(bytes ? bytes : 1);
  if (!data) return CCN_OUT_OF_MEMORY;
  ccn_status status = ccn_tensor_read(t, data, bytes);
  if (status == CCN_OK) {
    string size = {0};
    texts_bytes(&size, (double)bytes);
    printf("  %s, kept in slices on %u ranks by a schedule\n", text_of(&size), i->ranks);
    text_free(&size);
    show_array((array){.dtype = i->dtype,
                       .ndim = i->ndim,
                       .data = data,
                       .extent = i->shape,
                       .strides = i->strides,
                       .shown = shown_of(s->set.excerpt, i->ndim)});
  }
  free(data);
  return status;
}

static ccn_status show_tensor(shell *s, ccn_tensor *t) {
  pieces p = {.info = {.size = sizeof p.info}};
  ccn_status status = ccn_tensor_info_get(t, &p.info);
  if (status != CCN_OK) return status;
  if (terminal_print_has_colour()) fputs("\x1b[36m", stdout);
  put_type(&p.info);
  if (terminal_print_has_colour()) fputs("\x1b[0m", stdout);
  if (p.info.in_slices && !*p.info.placement) return show_whole(s, t, &p.info);
  status = find_pieces(t, &p);
  if (status != CCN_OK) return status;
  put_storage(&p);
  show_pieces(s, &p);
  return CCN_OK;
}

/* ---- values -------------------------------------------------------------------------------------------- */

static ccn_status show_text(ccn_value *v) {
  string t = {0};
  bool quoted = ccn_value_kind(v) == CCN_KIND_STRING;
  ccn_status status = ccn_value_write(v, text_write, &t);
  if (status == CCN_OK && t.n > MOST_TEXT) {
    size_t n = MOST_TEXT;
    while (n && ((unsigned char)t.at[n] & 0xc0) == 0x80) n--; /* not within a character */
    t.n = n;
    t.at[n] = 0;
    text_put(&t, " ...");
    if (ccn_value_count(v)) text_printf(&t, " (%zu members)", ccn_value_count(v));
  }
  if (status == CCN_OK) printf(quoted ? "\"%s\"\n" : "%s\n", text_of(&t));
  text_free(&t);
  return status;
}

void show_value(shell *s, ccn_value *v) {
  ccn_tensor *t = NULL;
  ccn_status status = CCN_OK;
  ccn_kind kind = ccn_value_kind(v);
  if (kind == CCN_KIND_NONE) return;
  if (kind == CCN_KIND_TENSOR) status = ccn_value_tensor(v, &t);
  if (status == CCN_OK) status = t ? show_tensor(s, t) : show_text(v);
  ccn_tensor_release(t);
  if (status != CCN_OK) shell_say("the value cannot be shown: %s", ccn_status_name(status));
}

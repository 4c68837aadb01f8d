/* machine.c: the text form of machines.
 *
 *   machine h200
 *   about 8 NVIDIA H200 SXM on one NVSwitch
 *   memory 141e9
 *   bandwidth 4.8e12
 *   launch 4e-6
 *   flops f16 989e12
 *   link nvlink ranks 8 latency 1e-6 bandwidth 450e9 direct
 *   link network latency 5e-6 bandwidth 50e9 shared
 *
 * One item a line; # begins a comment. A dtype without flops has those of f32.
 * SPDX-License-Identifier: Apache-2.0 */
#include "machine.h"

#include <math.h>
#include <stdlib.h>

uint32_t ccn__machine_level(const ccn__machine *m, uint32_t x, uint32_t y) {
  for (uint32_t l = 0; l + 1 < m->nlinks; l++)
    if (m->link[l].ranks && x / m->link[l].ranks == y / m->link[l].ranks) return l;
  return m->nlinks - 1;
}

/* ---- reading ------------------------------------------------------------------------------------- */

enum { MAX_WORDS = 16, MAX_WORD = 64 };

typedef struct reader {
  ccn__arena *a;
  ccn__machine *m;
  const char *word[MAX_WORDS], *rest; /* of a line; rest: behind its first word */
  uint32_t nwords, line;
  const char *error;
} reader;

static bool wrong(reader *r, const char *what) {
  if (!r->error) r->error = ccn__arena_printf(r->a, "line %u: %s", r->line, what);
  return false;
}

/* Decimal, whatever the process's locale: strtod never sees a decimal point. */
static bool number(reader *r, const char *s, double low, double *out) {
  char digits[MAX_WORD + 16];
  size_t n = 0;
  int point = 0, shift = 0;
  bool any = false;
  for (; (*s >= '0' && *s <= '9') || (*s == '.' && !point); s++) {
    if (*s == '.') {
      point = 1;
      continue;
    }
    if (n + 1 >= MAX_WORD) return wrong(r, "a number is too long");
    digits[n++] = *s;
    any = true;
    shift -= point;
  }
  int exponent = 0, sign = 1;
  if (any && (*s == 'e' || *s == 'E')) {
    s++;
    if (*s == '-' || *s == '+') sign = *s++ == '-' ? -1 : 1;
    any = *s >= '0' && *s <= '9';
    for (; *s >= '0' && *s <= '9'; s++)
      if (exponent < 1000) exponent = exponent * 10 + (*s - '0');
  }
  if (!any || *s) return wrong(r, "a number is expected, like 4.8e12");
  shift += sign * exponent;
  digits[n++] = 'e';
  if (shift < 0) digits[n++] = '-', shift = -shift;
  for (int unit = 1000; unit; unit /= 10) digits[n++] = (char)('0' + shift / unit % 10);
  digits[n] = 0;
  *out = strtod(digits, NULL);
  return (isfinite(*out) && *out >= low && *out <= 1e300) || wrong(r, "a number is out of range");
}

static bool link_line(reader *r) {
  ccn__machine *m = r->m;
  if (m->nlinks == CCN__MAX_LINKS) return wrong(r, "there are too many links");
  if (r->nwords < 2) return wrong(r, "a link needs a name");
  ccn__link *l = &m->link[m->nlinks];
  *l = (ccn__link){.name = r->word[1], .latency = -1};
  for (uint32_t i = 2; i < r->nwords; i++) {
    double x = 0;
    if (strcmp(r->word[i], "shared") == 0 || strcmp(r->word[i], "direct") == 0) {
      *(r->word[i][0] == 's' ? &l->shared : &l->direct) = true;
      continue;
    }
    if (i + 1 >= r->nwords) return wrong(r, "a number is missing");
    if (!number(r, r->word[i + 1], 0, &x)) return false;
    if (strcmp(r->word[i], "latency") == 0) l->latency = x;
    else if (strcmp(r->word[i], "bandwidth") == 0) l->bandwidth = x;
    else if (strcmp(r->word[i], "ranks") == 0 && x >= 1 && x <= 65536) l->ranks = (uint32_t)x;
    else return wrong(r, "a link has: ranks, latency, bandwidth, shared, direct");
    i++;
  }
  if (l->latency < 0 || !(l->bandwidth > 0)) return wrong(r, "a link needs a latency and a bandwidth");
  m->nlinks++;
  return true;
}

static bool one_number(reader *r, double low, double *out) {
  if (r->nwords != 2) return wrong(r, "one number is expected");
  return number(r, r->word[1], low, out);
}

static bool flops_line(reader *r) {
  ccn__dtype t;
  if (r->nwords != 3 || !ccn__dtype_find(r->word[1], &t)) return wrong(r, "flops need a dtype and a number");
  return number(r, r->word[2], 1, &r->m->flops[t]);
}

static bool item(reader *r) {
  const char *w = r->word[0];
  if (strcmp(w, "machine") == 0) {
    if (r->nwords != 2) return wrong(r, "a machine has a name of one word");
    r->m->name = r->word[1];
    return true;
  }
  if (strcmp(w, "about") == 0) return r->m->about = r->rest, true;
  if (strcmp(w, "memory") == 0) return one_number(r, 1, &r->m->memory);
  if (strcmp(w, "bandwidth") == 0) return one_number(r, 1, &r->m->bandwidth);
  if (strcmp(w, "launch") == 0) return one_number(r, 0, &r->m->launch);
  if (strcmp(w, "flops") == 0) return flops_line(r);
  if (strcmp(w, "link") == 0) return link_line(r);
  return wrong(r, "a machine has: machine, about, memory, bandwidth, launch, flops, link");
}

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

static bool line(reader *r, const char *s, size_t n) {
  const char *hash = n ? memchr(s, '#', n) : NULL;
  if (hash) n = (size_t)(hash - s);
  while (n && is_space(s[n - 1])) n--;
  r->nwords = 0;
  r->rest = "";
  for (size_t i = 0; i < n;) {
    if (is_space(s[i])) {
      i++;
      continue;
    }
    size_t end = i;
    while (end < n && !is_space(s[end])) end++;
    if (r->nwords == 1) r->rest = ccn__arena_strndup(r->a, s + i, n - i);
    if (r->nwords < MAX_WORDS) {
      if (end - i >= MAX_WORD) return wrong(r, "a word is too long");
      r->word[r->nwords++] = ccn__arena_strndup(r->a, s + i, end - i);
    }
    i = end;
  }
  return !r->nwords || item(r);
}

static bool complete(reader *r) {
  ccn__machine *m = r->m;
  double known = m->flops[CCN__F32];
  if (!m->name) return wrong(r, "the machine has no name");
  if (!(m->memory > 0) || !(m->bandwidth > 0)) return wrong(r, "memory and its bandwidth are missing");
  if (!(known > 0)) return wrong(r, "the flops of f32 are missing");
  if (!m->nlinks) return wrong(r, "the machine has no link");
  for (uint32_t l = 1; l < m->nlinks; l++) {
    const uint32_t inner = m->link[l - 1].ranks, outer = m->link[l].ranks;
    if (!inner || (outer && (outer <= inner || outer % inner)))
      return wrong(r, "each link joins several whole groups of the one before it");
  }
  m->link[m->nlinks - 1].ranks = 0; /* the last one joins everybody */
  for (int t = 0; t < CCN__DTYPE_COUNT; t++)
    if (!(m->flops[t] > 0)) m->flops[t] = known;
  return true;
}

ccn__machine *ccn__machine_read(ccn__arena *a, const char *text, size_t size, const char **out_error) {
  reader r = {.a = a, .m = CCN__NEW(a, ccn__machine)};
  r.m->about = "";
  *out_error = NULL;
  for (size_t at = 0; at < size && !r.error;) {
    const char *end = memchr(text + at, '\n', size - at);
    const size_t n = end ? (size_t)(end - text) - at : size - at;
    r.line++;
    if (!line(&r, text + at, n)) break;
    at += n + 1;
  }
  if (!r.error) complete(&r);
  *out_error = r.error;
  return r.error ? NULL : r.m;
}

/* ---- printing ------------------------------------------------------------------------------------ */

static void put(ccn__text *t, const char *before, double x) {
  ccn__text_puts(t, before);
  ccn__text_float(t, x, false);
}

void ccn__machine_print(const ccn__machine *m, ccn__text *t) {
  ccn__text_printf(t, "machine %s\n", m->name);
  if (*m->about) ccn__text_printf(t, "about %s\n", m->about);
  put(t, "memory ", m->memory);
  put(t, "\nbandwidth ", m->bandwidth);
  put(t, "\nlaunch ", m->launch);
  for (int d = 0; d < CCN__DTYPE_COUNT; d++) {
    if (!ccn__dtype_size((ccn__dtype)d)) continue;
    ccn__text_printf(t, "\nflops %s ", ccn__dtype_name((ccn__dtype)d));
    ccn__text_float(t, m->flops[d], false);
  }
  for (uint32_t l = 0; l < m->nlinks; l++) {
    const ccn__link *k = &m->link[l];
    ccn__text_printf(t, "\nlink %s", k->name);
    if (k->ranks) ccn__text_printf(t, " ranks %u", k->ranks);
    put(t, " latency ", k->latency);
    put(t, " bandwidth ", k->bandwidth);
    if (k->shared) ccn__text_puts(t, " shared");
    if (k->direct) ccn__text_puts(t, " direct");
  }
  ccn__text_putc(t, '\n');
}

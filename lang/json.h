/* json.h: a strict reader of JSON (RFC 8259) for headers of files: a cursor that takes what its caller
 * expects.
 *
 * Input is hostile: lengths are checked, strings must be UTF-8 without lone surrogates, nesting is bounded.
 * Every function returns false after an error; `error` keeps the first one, a static text.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_LANG_JSON_H
#define CCN_LANG_JSON_H

#include "base.h"

#define CCN__JSON_MAX_DEPTH 64

typedef struct ccn__json {
  ccn__arena *arena; /* for strings */
  const char *p, *end;
  const char *error;
} ccn__json;

void ccn__json_init(ccn__json *j, ccn__arena *a, const char *text, size_t size);
bool ccn__json_open(ccn__json *j, char bracket); /* { or [ */
/* Steps to the next member of an object, or element of an array; false at its end (which is then read) or
 * after an error. *first is true before the first call. */
bool ccn__json_member(ccn__json *j, bool *first, const char **out_key, size_t *out_size);
bool ccn__json_element(ccn__json *j, bool *first);
bool ccn__json_read_string(ccn__json *j, const char **out, size_t *out_size); /* decoded; a NUL added */
bool ccn__json_read_natural(ccn__json *j, uint64_t *out); /* digits only, at most INT64_MAX */
bool ccn__json_skip(ccn__json *j);                        /* any one value */
bool ccn__json_at_end(ccn__json *j);                      /* nothing but blanks follows */

/* Whether these bytes are UTF-8. */
bool ccn__is_utf8(const char *s, size_t n);

#endif

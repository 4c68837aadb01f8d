/* diag.h: diagnostics as values: a stable code, a primary span with a label, notes with spans, a hint.
 *
 * Place in the pipeline: used by every stage; rendering is for whoever shows them. Texts of the codes: errors.def.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_LANG_DIAG_H
#define CCN_LANG_DIAG_H

#include "base.h"

typedef struct ccn__label {
  ccn__span span;
  const char *text; /* lower case, no full stop; may be "" */
} ccn__label;

typedef struct ccn__diag {
  ccn_severity severity;
  uint16_t code;       /* 203 for CCN0203 */
  const char *message; /* lower case, no full stop */
  ccn__label primary;
  ccn__label *notes;
  uint32_t nnotes;
  const char *hint; /* the cure, or NULL: then the code's own hint from errors.def is shown */
  struct ccn__diag *next;
} ccn__diag;

typedef struct ccn__diags {
  ccn__arena *arena; /* dies at ccn__diags_clear */
  ccn__source **sources;
  uint32_t nsources;
  ccn__diag *first, *last;
  uint32_t count, errors, warnings;
  uint32_t limit; /* errors after which further ones are only counted (default 100) */
} ccn__diags;

/* Builder style: d = ccn__error(ds, 203, span, "label", "message %s", ...); ccn__note(ds, d, span, ...);
 * ccn__hint(ds, d, ...). Each copies its texts. The returned diagnostic is never NULL. */
ccn__diag *ccn__error(ccn__diags *ds, uint16_t code, ccn__span span, const char *label, const char *fmt, ...)
  CCN__PRINTF(5, 6);
ccn__diag *ccn__warning(ccn__diags *ds, uint16_t code, ccn__span span, const char *label, const char *fmt,
                        ...) CCN__PRINTF(5, 6);
void ccn__note(ccn__diags *ds, ccn__diag *d, ccn__span span, const char *fmt, ...) CCN__PRINTF(4, 5);
void ccn__hint(ccn__diags *ds, ccn__diag *d, const char *fmt, ...) CCN__PRINTF(3, 4);

/* Line and column (both from 1, columns in characters of UTF-8) of an offset. */
void ccn__source_locate(ccn__arena *a, ccn__source *s, uint32_t offset, uint32_t *line, uint32_t *column);

/* Renderings: rustc-like for people; one JSON object a diagnostic (no newline inside) for machines. */
void ccn__diag_render(ccn__diags *ds, const ccn__diag *d, bool colour, ccn__text *out);
void ccn__diag_render_json(ccn__diags *ds, const ccn__diag *d, ccn__text *out);
void ccn__json_string(ccn__text *out, const char *s, size_t n);

/* The table of codes. */
typedef struct ccn__error_info {
  uint16_t code;
  const char *title;   /* "placements cut in different dims" */
  const char *hint;    /* the general cure, one line */
  const char *explain; /* the page of `ccn explain`: what, a wrong program, the cure; Markdown */
} ccn__error_info;
const ccn__error_info *ccn__error_find(uint16_t code); /* NULL if there is no such code */
const ccn__error_info *ccn__error_at(uint32_t i);      /* the table in order; NULL past its end */

#endif

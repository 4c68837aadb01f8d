/* format.h: text → the same text as `ccn fmt` lays it out. Rules: format.c.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_FORMAT_H
#define CCN_FORMAT_H

#include "base.h"
#include "diag.h"

/* Adds the formatted text of ds->sources[source] to *out. A text with syntax errors is refused: false, with
 * the errors in `ds` and nothing added. The result has the same tokens, comments and line breaks (so the same
 * tree), and formatting it again changes nothing. `a` holds what is needed on the way; throws only when
 * memory ends. */
bool ccn__format_source(ccn__arena *a, ccn__names *names, ccn__diags *ds, uint32_t source, ccn__text *out);

#endif

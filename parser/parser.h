/* parser.h: text → AST. Knows lang/base, diag and ast, nothing else. Grammar: docs/grammar.md.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_PARSER_H
#define CCN_PARSER_H

#include "ast.h"

/* Reads a whole file, or one entry of a shell. Always returns a BLOCK; errors are in `ds` (recovery: several in one
 * run, one for each cause). `source` is the index of the text in ds->sources. Throws only when memory ends.
 * *out_incomplete (may be NULL) is set when the text ended inside ( [ { or a string, after a binary operator, and
 * nothing else was wrong: a shell then asks for another line. Linear time in the size of the text; nesting deeper
 * than CCN__MAX_NESTING is CCN0008. */
#define CCN__MAX_NESTING 200
ccn__ast *ccn__parse(ccn__arena *a, ccn__names *names, ccn__diags *ds, uint32_t source, bool *out_incomplete);

/* Parses a single type, as in "f32[N] sliced(0) over tp" (graph text, tests). NULL on error. */
ccn__ast *ccn__parse_type(ccn__arena *a, ccn__names *names, ccn__diags *ds, uint32_t source);

#endif

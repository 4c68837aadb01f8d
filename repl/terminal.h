/* terminal.h: what goes to the two output streams: program output, one progress line, diagnostics.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_REPL_TERMINAL_H
#define CCN_REPL_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

#include "ccn.h"

void terminal_start(void);
bool terminal_has_progress(void);     /* stderr is a terminal */
bool terminal_has_colour(void);       /* ... and NO_COLOR is unset */
bool terminal_print_has_colour(void); /* the same of stdout */

size_t terminal_columns(void);

/* Callbacks of type ccn_write_fn; `user` is not used. */
void terminal_print(const char *text, size_t size, void *user);    /* to stdout */
void terminal_error(const char *text, size_t size, void *user);    /* to stderr, after what was printed */
void terminal_progress(const char *text, size_t size, void *user); /* replaces the progress line */

void terminal_end_progress(void);
/* Flushes stdout; false (after saying so) when something of it could not be written. */
bool terminal_finish(void);
/* `s` as a JSON string on stderr. */
void terminal_error_json_string(const char *s, size_t n);

#endif

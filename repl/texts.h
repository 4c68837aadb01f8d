/* texts.h: texts that grow, and names of folders.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_REPL_TEXTS_H
#define CCN_REPL_TEXTS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct string {
  char *at; /* NUL-terminated; NULL while it is empty; free it */
  size_t n, room;
} string;

/* Memory that ends ends the command: there is nothing to lose. */
void text_add(string *t, const char *s, size_t n);
void text_put(string *t, const char *s);
void text_printf(string *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_write(const char *s, size_t n, void *t); /* a ccn_write_fn */
const char *text_of(const string *t);              /* "" for an empty one */
void text_free(string *t);
char *text_copy(const char *s, size_t n);

/* $VARIABLE/ccn, else ~/FALLBACK/ccn; false if there is neither. */
bool texts_folder(string *out, const char *variable, const char *fallback);
/* "12 B", "3.4 KiB" */
void texts_bytes(string *out, double bytes);

#endif

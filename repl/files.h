/* files.h: real files for scripts: the three callbacks of ccn_options. Paths are relative to the current folder.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_REPL_FILES_H
#define CCN_REPL_FILES_H

#include <stddef.h>

/* What is no regular file (a pipe, a terminal, /dev/zero) is read up to this many MiB: beyond, EFBIG. */
#define FILES_STREAM_MIB 256
#define FILES_TOO_LARGE "what is no regular file is read up to 256 MiB"

/* As ccn_file_read_fn, ccn_file_free_fn and ccn_file_write_fn; `user` is not used. "-" reads standard input. */
int files_read(const char *path, void **out_data, size_t *out_size, void *user);
void files_free(void *data, size_t size, void *user);
/* The file appears whole or not at all: written beside its place, then renamed. */
int files_write(const char *path, const void *data, size_t size, void *user);

#endif

/* files.c: reading and atomic writing of files.
 * SPDX-License-Identifier: Apache-2.0 */
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of what is no regular file nobody knows the end: /dev/zero has none. */
enum { MOST_OF_A_STREAM = FILES_STREAM_MIB << 20 };

static int read_all(int fd, void **out_data, size_t *out_size) {
  struct stat info;
  size_t capacity = 1 << 16;
  size_t size = 0;
  if (fstat(fd, &info) != 0) return errno;
  if (S_ISDIR(info.st_mode)) return EISDIR;
  bool regular = S_ISREG(info.st_mode);
  if (regular && info.st_size > 0) {
    if ((uintmax_t)info.st_size >= SIZE_MAX) return EFBIG;
    capacity = (size_t)info.st_size + 1; /* one more: the read that finds the end needs room */
  }
  char *data = malloc(capacity);
  if (!data) return ENOMEM;
  for (;;) {
    if (size == capacity) {
      char *grown = capacity > SIZE_MAX / 2 ? NULL : realloc(data, capacity * 2);
      if (!grown) {
        free(data);
        return ENOMEM;
      }
      data = grown;
      capacity *= 2;
    }
    ssize_t n = read(fd, data + size, capacity - size);
    if (n == 0) break;
    if (n < 0) {
      int error = errno;
      free(data);
      return error; /* EINTR too: a pipe into which nobody writes can be left with Ctrl-C */
    }
    size += (size_t)n;
    if (regular || size <= MOST_OF_A_STREAM) continue;
    free(data);
    return EFBIG;
  }
  *out_data = data;
  *out_size = size;
  return 0;
}

int files_read(const char *path, void **out_data, size_t *out_size, void *user) {
  (void)user;
  if (strcmp(path, "-") == 0) return read_all(STDIN_FILENO, out_data, out_size);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  int error = read_all(fd, out_data, out_size);
  close(fd);
  return error;
}

void files_free(void *data, size_t size, void *user) {
  (void)size;
  (void)user;
  free(data);
}

static int write_all(int fd, const char *data, size_t size) {
  while (size > 0) {
    ssize_t n = write(fd, data, size < (size_t)1 << 30 ? size : (size_t)1 << 30);
    if (n < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    data += n;
    size -= (size_t)n;
  }
  return 0;
}

/* Pipes, terminals and devices have no "beside". */
static int write_in_place(const char *path, const void *data, size_t size) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  int error = write_all(fd, data, size);
  if (close(fd) != 0 && !error) error = errno;
  return error;
}

static int write_beside(const char *path, const void *data, size_t size, bool keep_mode, mode_t mode) {
  size_t room = strlen(path) + 48;
  char *beside = malloc(room);
  int error = 0;
  int fd = -1;
  if (!beside) return ENOMEM;
  for (int attempt = 0; fd < 0; attempt++) {
    snprintf(beside, room, "%s.%ld.%d.tmp", path, (long)getpid(), attempt);
    fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && (errno != EEXIST || attempt == 100)) {
      error = errno;
      goto done;
    }
  }
  error = write_all(fd, data, size);
  if (!error && keep_mode && fchmod(fd, mode & 07777) != 0) error = errno;
  if (close(fd) != 0 && !error) error = errno;
  if (!error && rename(beside, path) != 0) error = errno;
  if (error) unlink(beside);
done:
  free(beside);
  return error;
}

int files_write(const char *path, const void *data, size_t size, void *user) {
  (void)user;
  struct stat info;
  if (stat(path, &info) != 0) return write_beside(path, data, size, false, 0);
  if (S_ISDIR(info.st_mode)) return EISDIR;
  if (!S_ISREG(info.st_mode)) return write_in_place(path, data, size);
  char *real = realpath(path, NULL); /* a symbolic link stays one: its target is replaced */
  if (!real) return errno;
  int error = write_beside(real, data, size, true, info.st_mode);
  free(real);
  return error;
}

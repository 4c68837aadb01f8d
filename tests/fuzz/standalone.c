/* standalone.c: runs a fuzz harness once on each file it is given: old crashes as tests, coverage of the corpus.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_file(const char *path) {
  uint8_t *data = NULL;
  size_t size = 0, capacity = 0, n;
  FILE *f = fopen(path, "rb");
  if (!f) {
    perror(path);
    return 1;
  }
  do {
    if (size == capacity) {
      capacity = capacity ? capacity * 2 : 4096;
      uint8_t *grown = realloc(data, capacity);
      if (!grown) {
        free(data);
        fclose(f);
        return 1;
      }
      data = grown;
    }
    n = fread(data + size, 1, capacity - size, f);
    size += n;
  } while (n > 0);
  fclose(f);
  /* an exact copy, so that a sanitizer sees every byte read past the end */
  uint8_t *exact = malloc(size ? size : 1);
  if (exact) {
    for (size_t i = 0; i < size; i++) exact[i] = data[i];
    LLVMFuzzerTestOneInput(exact, size);
  }
  free(exact);
  free(data);
  return 0;
}

int main(int argc, char **argv) {
  int status = 0;
  for (int i = 1; i < argc; i++) status |= run_file(argv[i]);
  return status;
}

/* qemu.h: loops of a kernel as an AArch64 program that does them, writes all its memory to stdout and ends:
 * run by qemu-aarch64. One segment holds the start code, the kernel's code, the tables and the slots.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CCN_TESTS_QEMU_H
#define CCN_TESTS_QEMU_H

#include "jit_kit.h"

#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

enum { QEMU_BASE = 0x400000, QEMU_CODE = 0x2000, QEMU_ROOM = 1 << 20 };

static inline bool qemu_there(void) { return system("qemu-aarch64 --version > /dev/null 2>&1") == 0; }

typedef struct image {
  uint8_t *at; /* what will be at QEMU_BASE */
  uint64_t n;
} image;

static inline uint64_t image_add(image *m, const void *data, size_t n) { /* its address */
  m->n = (m->n + 63) & ~(uint64_t)63;
  const uint64_t at = m->n;
  if (at + n > QEMU_ROOM) exit(3);
  if (data && n) memcpy(m->at + at, data, n);
  m->n += n;
  return QEMU_BASE + at;
}

/* Calls each row of a table (function, args, begin, end), writes the memory, ends. */
static inline void start_code(image *m, uint64_t calls, uint64_t ncalls, uint64_t from, uint64_t bytes) {
  const uint64_t literal[4] = {calls, ncalls, from, bytes};
  enum { LIT = 16 };
#define LOAD(reg, word, lit) (0x58000000u | (uint32_t)(LIT + 2 * (lit) - (word)) << 5 | (reg))
  const uint32_t code[LIT] = {
    LOAD(19, 0, 0),
    LOAD(20, 1, 1),
    0xa8c00000u | 2u << 15 | 0u << 10 | 19u << 5 | 9, /* ldp x9, x0, [x19], #16 */
    0xa8c00000u | 2u << 15 | 2u << 10 | 19u << 5 | 1, /* ldp x1, x2, [x19], #16 */
    0xd63f0000u | 9u << 5,                            /* blr x9 */
    0xf1000000u | 1u << 10 | 20u << 5 | 20,           /* subs x20, x20, #1 */
    0x54000000u | 0x7fffcu << 5 | 1,                  /* b.ne to the third */
    0xd2800000u | 1u << 5,                            /* mov x0, #1 */
    LOAD(1, 8, 2),
    LOAD(2, 9, 3),
    0xd2800000u | 64u << 5 | 8, /* mov x8, #write */
    0xd4000001u,                /* svc #0 */
    0xd2800000u,                /* mov x0, #0 */
    0xd2800000u | 93u << 5 | 8, /* mov x8, #exit */
    0xd4000001u,
    0xd503201fu,
  };
#undef LOAD
  memcpy(m->at + 0x1000, code, sizeof code);
  memcpy(m->at + 0x1000 + sizeof code, literal, sizeof literal);
}

static inline void elf_head(image *m) {
  Elf64_Ehdr h = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT}};
  Elf64_Phdr p = {.p_type = PT_LOAD, .p_flags = PF_R | PF_W | PF_X, .p_vaddr = QEMU_BASE, .p_align = 0x1000};
  h.e_type = ET_EXEC;
  h.e_machine = EM_AARCH64;
  h.e_version = EV_CURRENT;
  h.e_entry = QEMU_BASE + 0x1000;
  h.e_phoff = h.e_ehsize = sizeof h;
  h.e_phentsize = sizeof p;
  h.e_phnum = 1;
  p.p_filesz = p.p_memsz = m->n;
  memcpy(m->at, &h, sizeof h);
  memcpy(m->at + sizeof h, &p, sizeof p);
}

/* Runs the program; its memory as it was at the end replaces the image's. */
static inline bool qemu_program(image *m) {
  char path[] = "/tmp/ccn-qemu-XXXXXX", command[100];
  const int fd = mkstemp(path);
  if (fd < 0 || write(fd, m->at, m->n) != (ssize_t)m->n || fchmod(fd, 0700) || close(fd)) return false;
  snprintf(command, sizeof command, "qemu-aarch64 %s", path);
  FILE *f = popen(command, "r");
  const size_t got = f ? fread(m->at, 1, m->n, f) : 0;
  const int status = f ? pclose(f) : -1;
  (void)unlink(path);
  if (status || got != m->n)
    printf("# qemu: status %d, %zu of %llu bytes\n", status, got, (unsigned long long)m->n);
  return status == 0 && got == m->n;
}

/* All loops of a kernel of one rank; slots are read from and written back to the machine's memory. */
static inline bool qemu_loops(const ccn__kern *k, const void *object, size_t size, machine *mc) {
  image m = {calloc(1, QEMU_ROOM), QEMU_CODE};
  const char *why = NULL;
  uint64_t slot[64], ptr[64], call[16][4], at = 0;
  void *code = NULL;
  if (posix_memalign(&code, 4096, size + (1 << 16))) exit(3);
  const size_t bytes = ccn__jit_link(object, size, EM_AARCH64, code, size + (1 << 16), &why);
  if (!bytes) return printf("# not linked: %s\n", why), false;
  m.n = QEMU_CODE; /* code stands on a page */
  const uint64_t code_at = image_add(&m, code, bytes);
  free(code);
  for (uint32_t i = 0; i < k->slots.n; i++)
    slot[i] = image_add(&m, mc->base[0][i], (size_t)k->slots.at[i].bytes[0] + GUARD);
  for (uint32_t i = 0; i < k->ptrs.n; i++)
    ptr[i] = k->ptrs.at[i].slot == CCN__NO_SLOT ? 0 : slot[k->ptrs.at[i].slot];
  uint64_t args[4] = {image_add(&m, ptr, sizeof ptr), 0, 0, 0};
  args[1] = image_add(&m, k->numbers, (k->nnumbers + 1u) * sizeof *k->numbers);
  args[2] = image_add(&m, NULL, 64 * sizeof(uint64_t));
  const uint64_t args_at = image_add(&m, args, sizeof args);
  for (uint32_t i = 0; i < k->loops.n; i++) {
    char name[16];
    snprintf(name, sizeof name, "k%u", i);
    if (!ccn__jit_place(object, size, EM_AARCH64, name, &at)) return printf("# no %s\n", name), false;
    call[i][0] = code_at + at;
    call[i][1] = args_at;
    call[i][2] = 0;
    call[i][3] = (uint64_t)k->loops.at[i].count[0];
  }
  const uint64_t calls = image_add(&m, call, sizeof call);
  start_code(&m, calls, k->loops.n, QEMU_BASE, m.n);
  elf_head(&m);
  const bool good = qemu_program(&m);
  for (uint32_t i = 0; good && i < k->slots.n; i++)
    memcpy(mc->base[0][i], m.at + (slot[i] - QEMU_BASE), (size_t)k->slots.at[i].bytes[0]);
  free(m.at);
  return good;
}

#endif

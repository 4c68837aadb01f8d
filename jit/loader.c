/* loader.c: from an object file in memory to code that can be called: a linker for what LLVM makes of a
 * kernel.
 *
 * ELF64, relocatable, x86-64 or AArch64. The object is input: every offset, index and size in it is checked
 * before it is used, and what is not known is refused. Sections that are to be in memory are copied into one
 * mapping, one behind the other, then relocated and made read-only and executable; none may be writable.
 * Symbols from outside come from one list. Each has a stub, so that it may lie anywhere; the stub's address
 * word is its place in the offset table.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "jit.h"

#include <elf.h>
#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_SECTIONS = 64, STUB = 32, MOST_OUTSIDE = 16, MOST_BYTES = 64 << 20 };

/* What kernels may call: LLVM calls memcpy and memset by itself. */
static const struct {
  const char *name;
  void (*fn)(void);
} outside[] = {
  {"fmod", (void (*)(void))fmod},       {"fmodf", (void (*)(void))fmodf},
  {"memcpy", (void (*)(void))memcpy},   {"memset", (void (*)(void))memset},
  {"memmove", (void (*)(void))memmove},
};
_Static_assert(CCN__COUNT(outside) <= MOST_OUTSIDE, "a stub for each");

struct ccn__jit_code {
  char *base;
  size_t bytes, used; /* mapped; of sections */
  uint32_t nsymbols;
  struct symbol {
    char name[16];
    uint64_t at;
  } symbols[];
};

typedef struct object {
  const uint8_t *at;
  size_t size;
  const char *why;
  Elf64_Ehdr head;
  Elf64_Shdr section[MOST_SECTIONS];
  uint32_t nsections;
  uint64_t place[MOST_SECTIONS]; /* in the mapping; UINT64_MAX: not in memory */
  uint64_t bytes;                /* of all sections */
  uint32_t symtab;               /* 0: none */
  char *base;                    /* the mapping, writable */
} object;

static bool refuse(object *o, const char *why) {
  if (!o->why) o->why = why;
  return false;
}

/* Copies n bytes at an offset out of the object: headers in it need not be aligned. */
static bool take(object *o, uint64_t offset, void *to, size_t n) {
  if (offset > o->size || n > o->size - offset) return refuse(o, "it ends too early");
  memcpy(to, o->at + offset, n);
  return true;
}

/* ---- headers and sections ------------------------------------------------------------------------------ */

static bool read_head(object *o, uint16_t machine) {
  if (!take(o, 0, &o->head, sizeof o->head)) return false;
  const Elf64_Ehdr *h = &o->head;
  if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 || h->e_ident[EI_CLASS] != ELFCLASS64 ||
      h->e_ident[EI_DATA] != ELFDATA2LSB || h->e_type != ET_REL)
    return refuse(o, "it is no object file");
  if (h->e_machine != machine) return refuse(o, "it is for another machine");
  if (h->e_shentsize != sizeof(Elf64_Shdr) || h->e_shnum == 0 || h->e_shnum > MOST_SECTIONS)
    return refuse(o, "its sections are not as expected");
  o->nsections = h->e_shnum;
  return take(o, h->e_shoff, o->section, o->nsections * sizeof(Elf64_Shdr));
}

static bool in_file(object *o, const Elf64_Shdr *s) {
  if (s->sh_type == SHT_NOBITS || (s->sh_offset <= o->size && s->sh_size <= o->size - s->sh_offset))
    return true;
  return refuse(o, "a section lies outside of it");
}

static bool place_sections(object *o) {
  for (uint32_t i = 0; i < o->nsections; i++) {
    const Elf64_Shdr *s = &o->section[i];
    o->place[i] = UINT64_MAX;
    if (!in_file(o, s)) return false;
    if (s->sh_type == SHT_SYMTAB) {
      if (o->symtab || s->sh_entsize != sizeof(Elf64_Sym) || s->sh_link >= o->nsections)
        return refuse(o, "its symbols are not as expected");
      o->symtab = i;
    }
    if (!(s->sh_flags & SHF_ALLOC)) continue;
    if (s->sh_flags & (SHF_WRITE | SHF_TLS)) return refuse(o, "it has memory to write to");
    if (s->sh_type != SHT_PROGBITS && s->sh_type != SHT_NOTE && s->sh_type != SHT_X86_64_UNWIND)
      return refuse(o, "a section is of an unknown type");
    const uint64_t align = s->sh_addralign ? s->sh_addralign : 1;
    if (align > 4096 || (align & (align - 1)) || s->sh_size > MOST_BYTES)
      return refuse(o, "a section is too large");
    o->place[i] = (o->bytes + align - 1) & ~(align - 1);
    o->bytes = o->place[i] + s->sh_size;
    if (o->bytes > MOST_BYTES) return refuse(o, "it is too large");
  }
  return o->symtab || refuse(o, "it has no symbols");
}

/* ---- symbols ------------------------------------------------------------------------------------------- */

static uint64_t stubs_at(const object *o) { return (o->bytes + 63) & ~(uint64_t)63; }
static uint64_t whole_size(const object *o) { return stubs_at(o) + MOST_OUTSIDE * STUB; }

static bool symbol_name(object *o, const Elf64_Sym *s, char out[16]) {
  const Elf64_Shdr *strings = &o->section[o->section[o->symtab].sh_link];
  memset(out, 0, 16);
  if (strings->sh_type != SHT_STRTAB || s->st_name >= strings->sh_size)
    return refuse(o, "a name lies outside");
  const uint8_t *at = o->at + strings->sh_offset + s->st_name;
  const size_t room = strings->sh_size - s->st_name;
  const size_t n = strnlen((const char *)at, room);
  if (n == room) return refuse(o, "a name does not end");
  if (n > 15) return refuse(o, "a symbol is not known");
  memcpy(out, at, n);
  return true;
}

static bool read_symbol(object *o, uint64_t i, Elf64_Sym *out) {
  const Elf64_Shdr *t = &o->section[o->symtab];
  if (i >= t->sh_size / sizeof *out) return refuse(o, "there is no such symbol");
  return take(o, t->sh_offset + i * sizeof *out, out, sizeof *out);
}

/* Where a symbol is in the mapping: its value for one that is defined, its stub for one from outside
 * (*out_stub). */
static bool find_symbol(object *o, uint64_t i, uint64_t *out, bool *out_stub) {
  Elf64_Sym s;
  char name[16];
  if (!read_symbol(o, i, &s)) return false;
  *out_stub = false;
  if (s.st_shndx != SHN_UNDEF) {
    if (s.st_shndx >= o->nsections || o->place[s.st_shndx] == UINT64_MAX ||
        s.st_value > o->section[s.st_shndx].sh_size)
      return refuse(o, "a symbol lies outside");
    *out = o->place[s.st_shndx] + s.st_value;
    return true;
  }
  if (!symbol_name(o, &s, name)) return false;
  for (uint32_t k = 0; k < CCN__COUNT(outside); k++) {
    if (strcmp(outside[k].name, name) != 0) continue;
    *out = stubs_at(o) + k * STUB;
    *out_stub = true;
    return true;
  }
  return refuse(o, "a symbol is not known");
}

/* Jumps to the address in its last word, at STUB - 8. */
static void write_stubs(object *o) {
  static const uint8_t x86[] = {0xff, 0x25, STUB - 8 - 6, 0, 0, 0}; /* jmp *18(%rip) */
  static const uint32_t arm[] = {0x58000050u + ((STUB - 8 - 8) / 4 << 5),
                                 0xd61f0200u}; /* ldr x16, ...; br x16 */
  for (uint32_t k = 0; k < CCN__COUNT(outside); k++) {
    char *stub = o->base + stubs_at(o) + k * STUB;
    const uint64_t to = (uint64_t)(uintptr_t)outside[k].fn;
    if (o->head.e_machine == EM_X86_64) memcpy(stub, x86, sizeof x86);
    else memcpy(stub, arm, sizeof arm);
    memcpy(stub + STUB - 8, &to, sizeof to);
  }
}

/* ---- relocations --------------------------------------------------------------------------------------- */

typedef struct patch { /* one relocation: place p in the mapping, symbol s, addend */
  uint64_t p, s, left; /* left: bytes of the section from p on */
  int64_t a;
  bool stub;
} patch;

static bool fits(int64_t x, unsigned bits) {
  return x >= -((int64_t)1 << (bits - 1)) && x < (int64_t)1 << (bits - 1);
}

static bool put(object *o, const patch *q, const void *bytes, size_t n) {
  if (q->left < n) return refuse(o, "a relocation lies outside");
  if (o->base) memcpy(o->base + q->p, bytes, n);
  return true;
}

static bool patch_x86(object *o, uint32_t type, const patch *q) {
  int64_t x = (int64_t)q->s + q->a - (int64_t)q->p;
  switch (type) {
  case R_X86_64_GOTPCREL:
  case R_X86_64_GOTPCRELX:
  case R_X86_64_REX_GOTPCRELX: /* the offset table's place is the stub's address word */
    if (!q->stub) return refuse(o, "a symbol of its own is asked for by table");
    x += STUB - 8;
    break;
  case R_X86_64_PC32:
  case R_X86_64_PLT32: break;
  case R_X86_64_PC64: return put(o, q, &x, 8);
  default: return refuse(o, "a relocation is of an unknown kind");
  }
  const int32_t word = (int32_t)x;
  return fits(x, 32) ? put(o, q, &word, 4) : refuse(o, "a relocation is too far");
}

/* The instruction word with `value` in `bits` bits from bit `at` on. */
static bool put_field(object *o, const patch *q, uint32_t value, unsigned bits, unsigned at) {
  uint32_t word = 0;
  if (q->left < 4 || q->p % 4) return refuse(o, "a relocation lies outside");
  if (!o->base) return true;
  const uint32_t mask = (bits == 32 ? UINT32_MAX : (1u << bits) - 1) << at;
  memcpy(&word, o->base + q->p, 4);
  word = (word & ~mask) | (value << at & mask);
  memcpy(o->base + q->p, &word, 4);
  return true;
}

static bool patch_page(object *o, const patch *q) { /* ADRP: the page of s + a, relative */
  const int64_t pages = (int64_t)((q->s + (uint64_t)q->a) >> 12) - (int64_t)(q->p >> 12);
  if (!fits(pages, 21)) return refuse(o, "a relocation is too far");
  return put_field(o, q, (uint32_t)pages & 3, 2, 29) &&
         put_field(o, q, (uint32_t)(pages >> 2) & 0x7ffff, 19, 5);
}

static bool patch_arm(object *o, uint32_t type, const patch *q) {
  const int64_t x = (int64_t)q->s + q->a - (int64_t)q->p;
  const uint32_t low = (uint32_t)(q->s + (uint64_t)q->a) & 0xfff;
  unsigned scale = 0;
  switch (type) {
  case R_AARCH64_CALL26:
  case R_AARCH64_JUMP26:
    if (!fits(x, 28) || x & 3) return refuse(o, "a relocation is too far");
    return put_field(o, q, (uint32_t)(x >> 2), 26, 0);
  case R_AARCH64_ADR_PREL_PG_HI21: return patch_page(o, q);
  case R_AARCH64_ADD_ABS_LO12_NC:
  case R_AARCH64_LDST8_ABS_LO12_NC: break;
  case R_AARCH64_LDST16_ABS_LO12_NC: scale = 1; break;
  case R_AARCH64_LDST32_ABS_LO12_NC: scale = 2; break;
  case R_AARCH64_LDST64_ABS_LO12_NC: scale = 3; break;
  case R_AARCH64_LDST128_ABS_LO12_NC: scale = 4; break;
  case R_AARCH64_PREL32: {
    const int32_t word = (int32_t)x;
    return fits(x, 32) ? put(o, q, &word, 4) : refuse(o, "a relocation is too far");
  }
  case R_AARCH64_PREL64: return put(o, q, &x, 8);
  default: return refuse(o, "a relocation is of an unknown kind");
  }
  if (low & ((1u << scale) - 1)) return refuse(o, "a relocation is not aligned");
  return put_field(o, q, low >> scale, 12, 10);
}

static bool relocate_one(object *o, const Elf64_Shdr *rel, uint64_t i) {
  Elf64_Rela r;
  patch q = {.p = 0};
  if (!take(o, rel->sh_offset + i * sizeof r, &r, sizeof r)) return false;
  const Elf64_Shdr *target = &o->section[rel->sh_info];
  if (r.r_offset > target->sh_size) return refuse(o, "a relocation lies outside");
  q.p = o->place[rel->sh_info] + r.r_offset;
  q.left = target->sh_size - r.r_offset;
  q.a = r.r_addend;
  if (q.a < -MOST_BYTES || q.a > MOST_BYTES) return refuse(o, "a relocation is too far");
  const uint32_t type = (uint32_t)ELF64_R_TYPE(r.r_info);
  if (!find_symbol(o, ELF64_R_SYM(r.r_info), &q.s, &q.stub)) return false;
  return o->head.e_machine == EM_X86_64 ? patch_x86(o, type, &q) : patch_arm(o, type, &q);
}

static bool relocate(object *o) {
  for (uint32_t i = 0; i < o->nsections; i++) {
    const Elf64_Shdr *s = &o->section[i];
    if (s->sh_type != SHT_RELA) {
      if (s->sh_type == SHT_REL) return refuse(o, "a relocation is of an unknown kind");
      continue;
    }
    if (s->sh_entsize != sizeof(Elf64_Rela) || s->sh_info >= o->nsections || s->sh_link != o->symtab)
      return refuse(o, "its relocations are not as expected");
    if (o->place[s->sh_info] == UINT64_MAX) continue; /* of what is not in memory */
    for (uint64_t k = 0; k < s->sh_size / sizeof(Elf64_Rela); k++)
      if (!relocate_one(o, s, k)) return false;
  }
  return true;
}

/* ---- code ---------------------------------------------------------------------------------------------- */

static bool open_object(object *o, const void *at, size_t size, uint16_t machine) {
  memset(o, 0, sizeof *o);
  o->at = at;
  o->size = size;
  return read_head(o, machine) && place_sections(o);
}

bool ccn__jit_check(const void *at, size_t size, uint16_t machine, const char **why) {
  object o;
  const bool good = open_object(&o, at, size, machine) && relocate(&o);
  *why = o.why;
  return good;
}

/* Global functions, by name. */
static ccn__jit_code *list_symbols(object *o) {
  const uint64_t n = o->section[o->symtab].sh_size / sizeof(Elf64_Sym);
  uint32_t count = 0;
  Elf64_Sym s;
  for (uint64_t i = 0; i < n; i++)
    if (read_symbol(o, i, &s))
      count += ELF64_ST_TYPE(s.st_info) == STT_FUNC && ELF64_ST_BIND(s.st_info) == STB_GLOBAL;
  ccn__jit_code *c = calloc(1, sizeof *c + count * sizeof c->symbols[0]);
  if (!c) return refuse(o, "out of memory"), NULL;
  for (uint64_t i = 0; i < n && c->nsymbols < count; i++) {
    bool stub;
    struct symbol *to = &c->symbols[c->nsymbols];
    if (!read_symbol(o, i, &s)) continue;
    if (ELF64_ST_TYPE(s.st_info) != STT_FUNC || ELF64_ST_BIND(s.st_info) != STB_GLOBAL) continue;
    if (!symbol_name(o, &s, to->name) || !find_symbol(o, i, &to->at, &stub) || stub) {
      (void)refuse(o, "a symbol is not known");
      free(c);
      return NULL;
    }
    c->nsymbols++;
  }
  return c;
}

static uint16_t this_machine(void) {
#if defined(__aarch64__)
  return EM_AARCH64;
#else
  return EM_X86_64;
#endif
}

static bool fill_mapping(object *o) {
  for (uint32_t i = 0; i < o->nsections; i++)
    if (o->place[i] != UINT64_MAX && o->section[i].sh_size)
      memcpy(o->base + o->place[i], o->at + o->section[i].sh_offset, o->section[i].sh_size);
  write_stubs(o);
  return relocate(o);
}

size_t ccn__jit_link(const void *at, size_t size, uint16_t machine, void *out, size_t room,
                     const char **why) {
  object o;
  *why = NULL;
  if (!open_object(&o, at, size, machine)) return *why = o.why, 0;
  if (whole_size(&o) > room) return *why = "there is no room for it", 0;
  o.base = out;
  if (!fill_mapping(&o)) return *why = o.why, 0;
  return whole_size(&o);
}

ccn__jit_code *ccn__jit_load(const void *at, size_t size, const char **why) {
  object o;
  *why = NULL;
  if (!open_object(&o, at, size, this_machine())) return *why = o.why, NULL;
  ccn__jit_code *c = list_symbols(&o);
  if (!c) return *why = o.why, NULL;
  const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (whole_size(&o) + page - 1) / page * page;
  void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) {
    free(c);
    return *why = "there is no memory for it", NULL;
  }
  o.base = base;
  bool good = fill_mapping(&o);
  if (good && mprotect(base, bytes, PROT_READ | PROT_EXEC) != 0)
    good = refuse(&o, "memory cannot be made executable");
  if (!good) {
    (void)munmap(base, bytes);
    free(c);
    return *why = o.why, NULL;
  }
  __builtin___clear_cache((char *)base, (char *)base + bytes);
  c->base = base;
  c->bytes = bytes;
  return c;
}

bool ccn__jit_place(const void *at, size_t size, uint16_t machine, const char *name, uint64_t *out) {
  object o;
  ccn__jit_code *c = open_object(&o, at, size, machine) ? list_symbols(&o) : NULL;
  bool found = false;
  for (uint32_t i = 0; c && i < c->nsymbols && !found; i++) {
    found = strcmp(c->symbols[i].name, name) == 0;
    *out = c->symbols[i].at;
  }
  free(c);
  return found;
}

void *ccn__jit_symbol(const ccn__jit_code *c, const char *name) {
  for (uint32_t i = 0; i < c->nsymbols; i++)
    if (strcmp(c->symbols[i].name, name) == 0) return c->base + c->symbols[i].at;
  return NULL;
}

void ccn__jit_unload(ccn__jit_code *c) {
  if (!c) return;
  (void)munmap(c->base, c->bytes);
  free(c);
}

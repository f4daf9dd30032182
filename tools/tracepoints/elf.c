/* SPDX-License-Identifier: Apache-2.0 */
/* Searches notes in sections of that type or, if the file has no sections, in its segments. No number of the file is
 * trusted. */
#include "tools/tracepoints/elf.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "traceprobe.h"

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define HOUSE_ORDER ELFDATA2LSB
#else
#define HOUSE_ORDER ELFDATA2MSB
#endif

struct image {
  const unsigned char *bytes;
  size_t n;
  void (*each)(void *self, const struct tk_built *built);
  void *self;
};

bool tk_elf_is(const char *path) {
  char begin[SELFMAG];
  int fd = open(path, O_RDONLY | O_CLOEXEC);

  if (fd < 0) return false;
  bool is = read(fd, begin, SELFMAG) == SELFMAG && memcmp(begin, ELFMAG, SELFMAG) == 0;
  close(fd);
  return is;
}

/* Returns NULL if the part exceeds the file. */
static const void *part(const struct image *elf, uint64_t at, uint64_t n) {
  return at <= elf->n && n <= elf->n - at ? elf->bytes + at : NULL;
}

/* Splits five NUL-terminated texts. */
static bool cut_texts(const char *text, size_t n, struct tk_built *out) {
  const char **fields[] = { &out->module, &out->name, &out->params, &out->signature, &out->at };

  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
    const char *end = memchr(text, '\0', n);
    if (end == NULL) return false;
    *fields[i] = text;
    n -= (size_t)(end + 1 - text);
    text = end + 1;
  }
  return true;
}

static size_t padded(uint32_t n) {
  return ((size_t)n + 3) & ~(size_t)3;
}

static bool read_notes(const struct image *elf, uint64_t at, uint64_t n) {
  const unsigned char *pos = part(elf, at, n);
  Elf64_Nhdr head;

  if (pos == NULL) return false;
  while (n >= sizeof head) {
    memcpy(&head, pos, sizeof head);
    pos += sizeof head, n -= sizeof head;
    size_t name = padded(head.n_namesz), text = padded(head.n_descsz);
    if (name > n || text > n - name) return false;
    bool ours = head.n_type == TA_TRACE_NOTE_TYPE && head.n_namesz == sizeof TA_TRACE_NOTE_NAME &&
                memcmp(pos, TA_TRACE_NOTE_NAME, sizeof TA_TRACE_NOTE_NAME) == 0;
    struct tk_built built;
    if (ours && cut_texts((const char *)pos + name, head.n_descsz, &built))
      elf->each(elf->self, &built);
    pos += name + text, n -= name + text;
  }
  return true;
}

static bool read_sections(const struct image *elf, const Elf64_Ehdr *head) {
  for (unsigned i = 0; i < head->e_shnum; i++) {
    const void *at =
        part(elf, head->e_shoff + i * (uint64_t)sizeof(Elf64_Shdr), sizeof(Elf64_Shdr));
    Elf64_Shdr section;
    if (at == NULL) return false;
    memcpy(&section, at, sizeof section);
    if (section.sh_type != SHT_NOTE || section.sh_addralign > 4)
      continue; /* notes of others may have another padding */
    if (!read_notes(elf, section.sh_offset, section.sh_size)) return false;
  }
  return true;
}

static bool read_segments(const struct image *elf, const Elf64_Ehdr *head) {
  for (unsigned i = 0; i < head->e_phnum; i++) {
    const void *at =
        part(elf, head->e_phoff + i * (uint64_t)sizeof(Elf64_Phdr), sizeof(Elf64_Phdr));
    Elf64_Phdr segment;
    if (at == NULL) return false;
    memcpy(&segment, at, sizeof segment);
    if (segment.p_type != PT_NOTE || segment.p_align > 4) continue;
    if (!read_notes(elf, segment.p_offset, segment.p_filesz)) return false;
  }
  return true;
}

static bool is_house_elf(const struct image *elf, Elf64_Ehdr *head) {
  if (elf->n < sizeof *head) return false;
  memcpy(head, elf->bytes, sizeof *head);
  return memcmp(head->e_ident, ELFMAG, SELFMAG) == 0 && head->e_ident[EI_CLASS] == ELFCLASS64 &&
         head->e_ident[EI_DATA] == HOUSE_ORDER;
}

static tb_rc read_image(const struct image *elf, const char *path, struct tb_diag *diag) {
  Elf64_Ehdr head;

  if (!is_house_elf(elf, &head))
    return tb_fail(diag, TB_BROKEN, "%s: no 64-bit ELF file of this machine's byte order", path);
  bool sections = head.e_shnum > 0 && head.e_shentsize == sizeof(Elf64_Shdr);
  bool segments = !sections && head.e_phnum > 0 && head.e_phentsize == sizeof(Elf64_Phdr);
  if ((sections && !read_sections(elf, &head)) || (segments && !read_segments(elf, &head)))
    return tb_fail(diag, TB_BROKEN, "%s: cut off, or its tables point outside", path);
  return TB_OK;
}

tb_rc tk_elf_points(const char *path, void (*each)(void *self, const struct tk_built *built),
                    void *self, struct tb_diag *diag) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  struct stat st;
  void *bytes = MAP_FAILED;

  if (fd >= 0 && fstat(fd, &st) == 0)
    bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  int error = errno;
  if (fd >= 0) close(fd);
  if (bytes == MAP_FAILED) return tb_fail(diag, TB_IO, "%s: %s", path, strerror(error));
  struct image elf = { bytes, (size_t)st.st_size, each, self };
  tb_rc rc = read_image(&elf, path, diag);
  munmap(bytes, (size_t)st.st_size);
  return rc;
}

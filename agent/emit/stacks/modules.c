/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/emit/stacks/modules.h"

#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

enum { NAME_BYTES = 48 << 10 };

struct list {
  unsigned n;
  uint64_t adds, subs; /* the loader's counters when the list was made */
  size_t names_used;
  struct ta_module module[TA_MODULES_MAX];
  char names[NAME_BYTES];
};

static struct list lists[2];
static struct list *now = &lists[0];

static bool same(const struct ta_module *a, const struct ta_module *b) {
  return a->bias == b->bias && a->begin == b->begin && a->end == b->end &&
         a->build_id_len == b->build_id_len &&
         memcmp(a->build_id, b->build_id, a->build_id_len) == 0 && strcmp(a->path, b->path) == 0;
}

static bool overlap(const struct ta_module *a, const struct ta_module *b) {
  return a->begin < b->end && b->begin < a->end;
}

/* The path belongs to the loader and is read under the loader's lock, which ThreadSanitizer does not see. */
__attribute__((no_sanitize("thread"))) static void add_module(struct list *list,
                                                              const struct ta_module *module) {
  const volatile char *path = module->path;
  char *name = list->names + list->names_used;
  size_t n = 0, room = NAME_BYTES - list->names_used;

  if (list->n == TA_MODULES_MAX) return;
  for (; n < room && path[n] != 0; n++) name[n] = path[n];
  if (n == room) return;
  name[n] = 0;
  struct ta_module *to = &list->module[list->n++];
  *to = *module;
  to->path = name;
  list->names_used += n + 1;
}

/* Asking the loader. */

/* Searches the notes of one segment; name and text of a note are padded to four bytes each. */
static void find_build_id(const char *at, size_t left, struct ta_module *out) {
  ElfW(Nhdr) note;

  while (left >= sizeof note) {
    memcpy(&note, at, sizeof note);
    size_t name = (note.n_namesz + 3u) & ~(size_t)3, text = (note.n_descsz + 3u) & ~(size_t)3;
    if (name > left - sizeof note || text > left - sizeof note - name) return;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof ELF_NOTE_GNU &&
        memcmp(at + sizeof note, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) == 0 &&
        note.n_descsz <= TA_BUILD_ID_MAX) {
      out->build_id_len = (uint8_t)note.n_descsz;
      memcpy(out->build_id, at + sizeof note + name, note.n_descsz);
      return;
    }
    at += sizeof note + name + text;
    left -= sizeof note + name + text;
  }
}

struct counts {
  uint64_t adds, subs;
};

static int count(struct dl_phdr_info *info, size_t size, void *self) {
  (void)size;
  *(struct counts *)self = (struct counts){ info->dlpi_adds, info->dlpi_subs };
  return 1;
}

__attribute__((no_sanitize("thread"))) static int list_one(struct dl_phdr_info *info, size_t size,
                                                           void *self) {
  struct list *list = self;
  struct ta_module m = {
    .bias = info->dlpi_addr, .begin = UINT64_MAX, .low = UINT64_MAX, .path = info->dlpi_name
  };

  (void)size;
  list->adds = info->dlpi_adds;
  list->subs = info->dlpi_subs;
  if (m.path == NULL || *(const volatile char *)m.path == 0)
    m.path = list->n == 0 ? "/proc/self/exe" : "?";
  for (unsigned i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &info->dlpi_phdr[i];
    uint64_t at = info->dlpi_addr + p->p_vaddr;
    if (p->p_type == PT_NOTE && m.build_id_len == 0)
      find_build_id((const char *)(uintptr_t)at, p->p_memsz, &m);
    if (p->p_type != PT_LOAD) continue;
    if (at < m.low) m.low = at;
    if (at + p->p_memsz > m.high) m.high = at + p->p_memsz;
    if ((p->p_flags & PF_X) == 0) continue;
    if (at < m.begin) m.begin = at;
    if (at + p->p_memsz > m.end) m.end = at + p->p_memsz;
  }
  if (m.end != 0) add_module(list, &m);
  return 0;
}

/* Public. */

bool ta_modules_look(void) {
  const struct list *before = now;
  struct list *next = &lists[now == &lists[0]];
  struct counts counts = { 0 };
  bool moved = false;

  dl_iterate_phdr(count, &counts);
  if (counts.adds == before->adds && counts.subs == before->subs) return false;
  next->n = 0;
  next->names_used = 0;
  dl_iterate_phdr(list_one, next);
  unsigned live = next->n;
  for (unsigned i = 0; i < before->n; i++) {
    const struct ta_module *old = &before->module[i];
    bool gone = true, room = true;
    for (unsigned k = 0; k < live && room; k++) {
      room = !overlap(old, &next->module[k]);
      if (!room) gone = !same(old, &next->module[k]);
    }
    if (room) add_module(next, old);
    moved |= gone && !room;
  }
  now = next;
  return moved;
}

const struct ta_module *ta_modules_find(uint64_t pc) {
  for (unsigned i = 0; i < now->n; i++)
    if (pc >= now->module[i].begin && pc < now->module[i].end) return &now->module[i];
  return NULL;
}

const struct ta_module *ta_modules_find_any(uint64_t at) {
  for (unsigned i = 0; i < now->n; i++)
    if (at >= now->module[i].low && at < now->module[i].high) return &now->module[i];
  return NULL;
}

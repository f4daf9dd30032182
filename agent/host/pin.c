/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the object once more, with RTLD_NODELETE, by the name under which it is loaded. That is not necessary for the
 * main program, which has no name, for an object linked with the flag already, and in a static executable. */
#include "agent/host/pin.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>

#include "agent/host/keep.h"

static const char ours; /* an address within the object */

struct object {
  const char *name;
  bool stays;
};

static bool holds_ours(const struct dl_phdr_info *info) {
  for (unsigned i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
    uintptr_t low = info->dlpi_addr + segment->p_vaddr;
    if (segment->p_type == PT_LOAD && (uintptr_t)&ours - low < segment->p_memsz) return true;
  }
  return false;
}

static bool has_the_flag(const struct dl_phdr_info *info) {
  for (unsigned i = 0; i < info->dlpi_phnum; i++) {
    if (info->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    uintptr_t at = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    for (const ElfW(Dyn) *entry = (const void *)at; entry->d_tag != DT_NULL; entry++)
      if (entry->d_tag == DT_FLAGS_1) return (entry->d_un.d_val & DF_1_NODELETE) != 0;
  }
  return false;
}

static int find_object(struct dl_phdr_info *info, size_t size, void *self) {
  struct object *found = self;

  (void)size;
  if (!holds_ours(info)) return 0;
  found->name = info->dlpi_name;
  found->stays = info->dlpi_name == NULL || info->dlpi_name[0] == '\0' || has_the_flag(info);
  return 1;
}

bool ta_pin(void) {
  static atomic_bool pinned;
  struct object found = { NULL, true };
  KEEP_ERRNO;

  if (atomic_load(&pinned)) return true;
  dl_iterate_phdr(find_object, &found);
  if (!found.stays && dlopen(found.name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) == NULL) {
    dlerror(); /* clears the error, so that the host does not see it */
    return false;
  }
  atomic_store(&pinned, true);
  return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/emit/stacks/dwarf.h"

#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/host/process.h"

#define LIBDW(X)                                                                                   \
  X(dwfl_begin)                                                                                    \
  X(dwfl_end)                                                                                      \
  X(dwfl_report_begin_add)                                                                         \
  X(dwfl_report_elf)                                                                               \
  X(dwfl_report_end)                                                                               \
  X(dwfl_addrmodule)                                                                               \
  X(dwfl_module_build_id)                                                                          \
  X(dwfl_module_addrinfo)                                                                          \
  X(dwfl_module_addrdie)                                                                           \
  X(dwfl_module_nextcu)                                                                            \
  X(dwarf_haspc)                                                                                   \
  X(dwarf_getsrc_die)                                                                              \
  X(dwarf_linesrc)                                                                                 \
  X(dwarf_lineno)                                                                                  \
  X(dwarf_getscopes)                                                                               \
  X(dwarf_tag)                                                                                     \
  X(dwarf_attr)                                                                                    \
  X(dwarf_formudata)                                                                               \
  X(dwarf_getsrcfiles)                                                                             \
  X(dwarf_filesrc)                                                                                 \
  X(dwfl_build_id_find_elf)                                                                        \
  X(dwfl_build_id_find_debuginfo)

static struct {
#define FIELD(name) __typeof__(name) *name;
  LIBDW(FIELD)
} libdw;

static Dwfl_Callbacks callbacks;

/* Debug information is found by build id only. libdw's standard search ends with a server on the network: for that it
 * initializes libcurl and OpenSSL, in a program that may be about to exit. */
bool ta_dwarf_load(void) {
  static bool tried, loaded;

  if (tried) return loaded;
  tried = true;
  void *library = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return false;
#define FIND(name)                                                                                 \
  *(void **)&libdw.name = dlsym(library, #name);                                                   \
  if (libdw.name == NULL) return false;
  LIBDW(FIND)
  callbacks.find_elf = libdw.dwfl_build_id_find_elf;
  callbacks.find_debuginfo = libdw.dwfl_build_id_find_debuginfo;
  return loaded = true;
}

/* Reports one module to libdw, when it is first needed. */
static Dwfl_Module *report(Dwfl *dwfl, const struct ta_module *module) {
  int fd = open(module->path, O_RDONLY | O_CLOEXEC);

  if (fd < 0) return NULL;
  libdw.dwfl_report_begin_add(dwfl);
  Dwfl_Module *m = libdw.dwfl_report_elf(dwfl, module->path, module->path, fd, module->bias, true);
  if (m == NULL) close(fd);
  libdw.dwfl_report_end(dwfl, NULL, NULL);
  return m;
}

/* Returns whether the file's build id is that of the module in memory. */
static bool is_in_memory(Dwfl_Module *m, const struct ta_module *module) {
  const unsigned char *id;
  GElf_Addr at;

  if (module->build_id_len == 0) return true;
  return libdw.dwfl_module_build_id(m, &id, &at) == module->build_id_len &&
         memcmp(id, module->build_id, module->build_id_len) == 0;
}

/* Returns a name as in source code. Suffixes that compilers append to the names of a function's parts and copies are cut off.
 * C++ names are demangled by the program's own C++ runtime; if none is loaded, they stay mangled. */
static const char *spell(const char *name, struct ta_found *out) {
  typedef char *demangle_fn(const char *name, char *room, size_t *n, int *status);
  static demangle_fn *demangle;
  size_t n = strcspn(name, ".@");

  if (n == 0 || (name[n] == 0 && strncmp(name, "_Z", 2) != 0)) return name;
  snprintf(out->room, sizeof out->room, "%.*s", n < sizeof out->room ? (int)n : 0, name);
  if (strncmp(name, "_Z", 2) != 0) return out->room;
  if (demangle == NULL) {
    ta_process_work_begin();
    void *runtime = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
    if (runtime == NULL) runtime = dlopen("libc++abi.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (runtime != NULL) *(void **)&demangle = dlsym(runtime, "__cxa_demangle");
    ta_process_work_end();
    if (demangle == NULL) return name;
  }
  int status;
  char *spelled = demangle(out->room, NULL, NULL, &status);
  if (spelled == NULL) return name;
  snprintf(out->room, sizeof out->room, "%s", spelled);
  free(spelled);
  return out->room;
}

/* Files. Functions in headers that tracectl generates (MODULE.trace.h, NAME.experiment.h) are inlined into their caller;
 * for them the line of the call is shown. */

static bool is_generated(const char *file) {
  static const char *const endings[] = { ".trace.h", ".experiment.h" };
  size_t n = strlen(file);

  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
    size_t len = strlen(endings[i]);
    if (n > len && strcmp(file + n - len, endings[i]) == 0) return true;
  }
  return false;
}

static bool number_of(Dwarf_Die *die, unsigned name, Dwarf_Word *out) {
  Dwarf_Attribute attribute;

  return libdw.dwarf_formudata(libdw.dwarf_attr(die, name, &attribute), out) == 0;
}

/* Returns the compilation unit of pc, or NULL. clang writes no table of the units' addresses (.debug_aranges), so where the
 * table has none, each unit is asked. */
static Dwarf_Die *find_unit(Dwfl_Module *m, uint64_t pc, Dwarf_Addr *bias) {
  Dwarf_Die *unit = libdw.dwfl_module_addrdie(m, pc, bias);

  if (unit != NULL) return unit;
  while ((unit = libdw.dwfl_module_nextcu(m, unit, bias)) != NULL)
    if (libdw.dwarf_haspc(unit, pc - *bias) > 0) break;
  return unit;
}

/* Replaces file and line by those of the call of the innermost inlined function at pc, an address of the unit. */
static void go_to_call(Dwarf_Die *unit, uint64_t pc, struct ta_found *out) {
  Dwarf_Word file, line;
  Dwarf_Files *files;
  Dwarf_Die *scopes;
  size_t count;
  int i = 0;

  int n = libdw.dwarf_getscopes(unit, pc, &scopes);
  if (n <= 0) return;
  while (i < n && libdw.dwarf_tag(&scopes[i]) == DW_TAG_lexical_block) i++;
  if (i < n && libdw.dwarf_tag(&scopes[i]) == DW_TAG_inlined_subroutine &&
      number_of(&scopes[i], DW_AT_call_file, &file) &&
      number_of(&scopes[i], DW_AT_call_line, &line) &&
      libdw.dwarf_getsrcfiles(unit, &files, &count) == 0 && file < count) {
    out->file = libdw.dwarf_filesrc(files, file, NULL, NULL);
    out->line = (unsigned)line;
  }
  free(scopes);
}

static void find_line(Dwfl_Module *m, uint64_t pc, struct ta_found *out) {
  Dwarf_Addr bias;
  int number = 0;

  out->file = NULL;
  out->line = 0;
  Dwarf_Die *unit = find_unit(m, pc, &bias);
  Dwarf_Line *line = unit == NULL ? NULL : libdw.dwarf_getsrc_die(unit, pc - bias);
  if (line == NULL) return;
  out->file = libdw.dwarf_linesrc(line, NULL, NULL);
  if (libdw.dwarf_lineno(line, &number) == 0 && number > 0) out->line = (unsigned)number;
  if (out->file != NULL && is_generated(out->file)) go_to_call(unit, pc - bias, out);
}

/* An address inside a structure or array gets the variable's name and an offset. Behind the variable's end it has no name. */
static bool name_variable(const char *name, GElf_Off offset, const GElf_Sym *symbol,
                          struct ta_found *out) {
  if (offset >= symbol->st_size && offset > 0) return false;
  const char *spelled = spell(name, out);
  size_t len = strlen(spelled);
  if (len >= sizeof out->room - 32) return false;
  if (spelled != out->room) memcpy(out->room, spelled, len + 1);
  if (offset > 0) snprintf(out->room + len, 32, "+0x%llx", (unsigned long long)offset);
  out->function = out->room;
  out->file = NULL;
  out->line = 0;
  return true;
}

bool ta_dwarf_find(struct ta_dwarf *d, const struct ta_module *module, uint64_t pc,
                   struct ta_found *out) {
  GElf_Off offset;
  GElf_Sym symbol;

  if (d->dwfl == NULL) d->dwfl = libdw.dwfl_begin(&callbacks);
  if (d->dwfl == NULL) return false;
  Dwfl_Module *m = libdw.dwfl_addrmodule(d->dwfl, pc);
  if (m == NULL) m = report(d->dwfl, module);
  if (m == NULL || !is_in_memory(m, module)) return false;
  const char *name = libdw.dwfl_module_addrinfo(m, pc, &offset, &symbol, NULL, NULL, NULL);
  if (name == NULL || *name == 0) return false;
  if (GELF_ST_TYPE(symbol.st_info) == STT_OBJECT) return name_variable(name, offset, &symbol, out);
  out->function = spell(name, out);
  find_line(m, pc, out);
  return true;
}

void ta_dwarf_close(struct ta_dwarf *d) {
  if (d->dwfl != NULL) libdw.dwfl_end(d->dwfl);
  d->dwfl = NULL;
}

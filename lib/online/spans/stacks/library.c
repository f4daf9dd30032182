/* SPDX-License-Identifier: Apache-2.0 */
#include "online/spans/stacks/library.h"

#include <ctype.h>
#include <string.h>

struct name {
  const char *text;
  uint8_t len, code;
};
#define NAME(name, code) { name, sizeof(name) - 1, TO_CODE_##code },

static const struct name packages[] = {
#define TO_LIBRARY(name)  NAME(name, LIBRARY)
#define TO_PLUMBING(name) NAME(name, PLUMBING)
#include "online/spans/stacks/library.def"
};
static const struct name calls[] = {
#define TO_LIBRARY_CALL(name) NAME(name, PLUMBING)
#include "online/spans/stacks/library.def"
};
static const struct name begins[] = {
#define TO_LIBRARY_CODE(name) NAME(name, PLUMBING)
#define TO_AGENT(name)        NAME(name, AGENT)
#include "online/spans/stacks/library.def"
};
static const struct name sources[] = {
#define TO_LIBRARY_SOURCE(name) NAME(name, PLUMBING)
#include "online/spans/stacks/library.def"
};

static const struct name *find_name(const struct name *names, size_t n, const char *text,
                                    size_t len) {
  for (size_t i = 0; i < n; i++)
    if (names[i].len == len && names[i].text[0] == text[0] && memcmp(names[i].text, text, len) == 0)
      return &names[i];
  return NULL;
}

static const struct name *find_begin(struct to_string function) {
  for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
    if (function.len >= begins[i].len && memcmp(function.data, begins[i].text, begins[i].len) == 0)
      return &begins[i];
  return NULL;
}

/* A package's path ends before the dot of the function. A name without a dot is not Go's. */
static const struct name *find(struct to_string function) {
  size_t len = 0;

  while (len < function.len && function.data[len] != '.' && function.data[len] != '/') len++;
  const struct name *name =
      len < function.len
          ? find_name(packages, sizeof packages / sizeof *packages, function.data, len)
          : find_name(calls, sizeof calls / sizeof *calls, function.data, len);
  return name != NULL ? name : find_begin(function);
}

bool to_library_is_go(struct to_string function) {
  const struct name *name = find(function);

  return name >= packages && name < packages + sizeof packages / sizeof *packages;
}

bool to_library_has(struct to_string function) {
  const struct name *name = find(function);

  return name != NULL && name->code < TO_CODE_AGENT;
}

static bool ends_with(struct to_string text, const char *end, size_t len) {
  return text.len >= len && memcmp(text.data + text.len - len, end, len) == 0;
}
#define ENDS_WITH(text, end) ends_with(text, end, sizeof(end) - 1)

static bool is_library_source(struct to_string file) {
  for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
    if (memmem(file.data, file.len, sources[i].text, sources[i].len) != NULL) return true;
  return false;
}

uint64_t to_library_line(const struct to_frame *frame) {
  static const char ours[] = "agent/preload/";
  struct to_string file = frame->file;

  return memmem(file.data, file.len, ours, sizeof ours - 1) != NULL ? 0 : frame->line;
}

static bool has_version(struct to_string file) {
  const char *at = file.data, *end = file.data + file.len;

  while ((at = memchr(at, '@', (size_t)(end - at))) != NULL) {
    if (end - at > 2 && at[1] == 'v' && isdigit((unsigned char)at[2])) return true;
    at++;
  }
  return false;
}

static enum to_code code_of_go(struct to_string file) {
  static const char vendor[] = "/vendor/";

  /* what cgo writes between a program and C is in the program's package */
  if (ENDS_WITH(file, "_cgo_gotypes.go")) return TO_CODE_PLUMBING;
  bool is_others =
      has_version(file) || memmem(file.data, file.len, vendor, sizeof vendor - 1) != NULL;
  return is_others ? TO_CODE_MODULE : TO_CODE_PROGRAM;
}

enum to_code to_code_of(const struct to_frame *frame) {
  if (frame->function.len == 0) return TO_CODE_PLUMBING;
  const struct name *name = find(frame->function);
  if (name != NULL) return (enum to_code)name->code;
  if (frame->file.len == 0) return TO_CODE_PROGRAM;
  if (ENDS_WITH(frame->file, ".go")) return code_of_go(frame->file);
  return is_library_source(frame->file) ? TO_CODE_PLUMBING : TO_CODE_PROGRAM;
}

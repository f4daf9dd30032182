/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/http/page.h"

#include <string.h>

/* Rows are made by CMake, one per file of collector/http/page (cmake/embed.cmake). */
static const struct tc_page_file files[] = {
#define TC_EMBEDDED(name, type, sha256, ...)                                                       \
  { name, type, "\"" sha256 "\"", (const unsigned char[]){ __VA_ARGS__ },                          \
    sizeof((const unsigned char[]){ __VA_ARGS__ }) },
#include "http_page_files.h"
#undef TC_EMBEDDED
};

const struct tc_page_file *tc_page_find(const char *path) {
  const char *name = strcmp(path, "/") == 0 ? "index.html" : path + 1;

  for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
    if (strcmp(files[i].name, name) == 0) return &files[i];
  return NULL;
}

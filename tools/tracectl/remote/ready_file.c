/* SPDX-License-Identifier: Apache-2.0 */
/* A collector's --ready-file: key=value lines; the file is complete as soon as it exists. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/small_file.h"
#include "tools/tracectl/remote/client.h"

tb_rc tk_ready_file_get(const char *path, const char *key, struct tb_diag *diag, char *out,
                        size_t out_bytes) {
  FILE *file = tb_small_file(path);
  size_t key_len = strlen(key);
  char line[1024];
  bool found = false;

  if (file == NULL) return tb_fail(diag, TB_IO, "%.120s: %s", path, tb_small_file_fault(errno));
  while (!found && fgets(line, sizeof line, file) != NULL) {
    line[strcspn(line, "\r\n")] = '\0';
    found = strncmp(line, key, key_len) == 0 && line[key_len] == '=';
  }
  fclose(file);
  if (!found) return tb_fail(diag, TB_NOTFOUND, "%.100s: has no line %s=", path, key);
  if ((size_t)snprintf(out, out_bytes, "%s", line + key_len + 1) >= out_bytes)
    return tb_fail(diag, TB_BROKEN, "%.100s: %s is too long", path, key);
  return TB_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/cert_path.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct {
  const char *suffix, *other;
} names[TB_CERT_FILES] = {
  [TB_CERT_CA] = { ".pem", "ca.crt" },
  [TB_CERT_CHAIN] = { ".pem", "tls.crt" },
  [TB_CERT_KEY] = { ".key", "tls.key" },
};

tb_rc tb_cert_path(const char *dir, const char *role, enum tb_cert_file file, struct tb_diag *diag,
                   char out[PATH_MAX]) {
  const char *stem = file == TB_CERT_CA ? "ca" : role;
  char other[PATH_MAX];

  if (snprintf(out, PATH_MAX, "%s/%s%s", dir, stem, names[file].suffix) >= PATH_MAX ||
      snprintf(other, sizeof other, "%s/%s", dir, names[file].other) >= PATH_MAX)
    return tb_fail(diag, TB_IO, "folder of certificates %.60s...: the path is too long", dir);
  if (access(other, F_OK) != 0) return TB_OK;
  if (access(out, F_OK) == 0)
    return tb_fail(diag, TB_CORRUPT,
                   "%.100s has both %s%s and %s, two names of the same file: remove one", dir, stem,
                   names[file].suffix, names[file].other);
  strcpy(out, other);
  return TB_OK;
}

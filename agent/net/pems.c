/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/net/pems.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/small_file.h"

const char *const ta_pem_names[TA_PEMS] = { "CA", "certificate", "key", "revocation list" };

void ta_pems_free(struct ta_pems *pems) {
  for (int i = 0; i < TA_PEMS; i++) {
    if (pems->bytes[i] != NULL) explicit_bzero(pems->bytes[i], pems->n[i]);
    free(pems->bytes[i]);
  }
  *pems = (struct ta_pems){ 0 };
}

static tb_rc refuse(int which, const char *path, int error, struct tb_diag *diag) {
  return tb_fail(diag, error == ENOMEM ? TB_NOMEM : TB_NOTFOUND, "%s %.100s: %s",
                 ta_pem_names[which], path, tb_small_file_fault(error));
}

/* 0, or an errno. */
static int fill(int fd, struct ta_pems *out, int which) {
  struct stat st;

  if (fstat(fd, &st) != 0) return errno;
  size_t room = (size_t)st.st_size;
  char *bytes = malloc(room + 1);
  if (bytes == NULL) return ENOMEM;
  out->bytes[which] = bytes;
  while (out->n[which] < room) {
    ssize_t n = read(fd, bytes + out->n[which], room - out->n[which]);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    if (n == 0) break;
    out->n[which] += (size_t)n;
  }
  return 0;
}

tb_rc ta_pems_read(const char *const paths[TA_PEMS], struct tb_diag *diag, struct ta_pems *out) {
  *out = (struct ta_pems){ 0 };
  for (int i = 0; i < TA_PEMS; i++) {
    if (paths[i] == NULL) continue;
    int fd = tb_small_file_open(AT_FDCWD, paths[i]);
    int error = fd < 0 ? errno : fill(fd, out, i);
    if (fd >= 0) close(fd);
    if (error == 0) continue;
    ta_pems_free(out);
    return refuse(i, paths[i], error, diag);
  }
  return TB_OK;
}

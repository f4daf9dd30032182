/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/ready_file.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/small_file.h"

void tc_ready_file_drop_stale(const char *path) {
  FILE *file = tb_small_file(path);
  char line[512];
  int pid = 0;

  if (file == NULL) return;
  while (fgets(line, sizeof line, file) != NULL)
    if (sscanf(line, "pid=%d", &pid) == 1) break;
  fclose(file);
  if (pid > 0 && kill(pid, 0) != 0 && errno == ESRCH) unlink(path);
}

/* Writes feed=, feed.2=, feed.3= and so on. */
static void write_urls(FILE *file, const char *key, const char *const *urls) {
  fprintf(file, "%s=%s\n", key, urls[0]);
  for (unsigned i = 1; urls[i] != NULL; i++) fprintf(file, "%s.%u=%s\n", key, i + 1, urls[i]);
}

static bool write_file(const char *path, const struct tc_addresses *a) {
  FILE *file = fopen(path, "we");

  if (file == NULL) return false;
  fprintf(file, "agents=%s\n", a->agents);
  write_urls(file, "feed", a->feed);
  fprintf(file, "http=%s\nsock=%s\n", a->http, a->sock);
  if (*a->metrics != '\0') fprintf(file, "metrics=%s\n", a->metrics);
  fprintf(file, "pid=%d\n", (int)getpid());
  bool failed = ferror(file) != 0;
  return fclose(file) == 0 && !failed;
}

tb_rc tc_ready_file_publish(const char *path, const struct tc_addresses *addresses,
                            struct tb_diag *diag) {
  char temp[PATH_MAX];

  if (snprintf(temp, sizeof temp, "%s.%d.tmp", path, (int)getpid()) >= (int)sizeof temp)
    return tb_fail(diag, TB_IO, "%.100s...: path too long", path);
  if (write_file(temp, addresses) && rename(temp, path) == 0) return TB_OK;
  int why = errno;
  unlink(temp);
  return tb_fail(diag, TB_IO, "%s: %s", path, strerror(why));
}

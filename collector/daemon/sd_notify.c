/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/daemon/sd_notify.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void tc_notify(const char *fmt, ...) {
  const char *path = getenv("NOTIFY_SOCKET");
  struct sockaddr_un to = { .sun_family = AF_UNIX };
  char text[512];
  va_list ap;

  if (path == NULL || (path[0] != '/' && path[0] != '@')) return;
  size_t len = strlen(path);
  if (len >= sizeof to.sun_path) return;
  memcpy(to.sun_path, path, len);
  if (path[0] == '@') to.sun_path[0] = '\0'; /* abstract */

  va_start(ap, fmt);
  int n = vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  if (n < 0) return;
  if (n >= (int)sizeof text) n = sizeof text - 1;

  int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  (void)sendto(fd, text, (size_t)n, MSG_NOSIGNAL, (struct sockaddr *)&to,
               (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
  close(fd);
}

uint64_t tc_notify_watchdog_ms(void) {
  const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");

  if (usec == NULL || (pid != NULL && strtol(pid, NULL, 10) != getpid())) return 0;
  return strtoull(usec, NULL, 10) / 2000;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "collector/daemon/sd_notify.h"

/* name[0] '@' is the abstract name space, as in NOTIFY_SOCKET. */
static int listen_at(const char *name) {
  struct sockaddr_un at = { .sun_family = AF_UNIX };
  int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
  size_t len = strlen(name);

  memcpy(at.sun_path, name, len);
  if (name[0] == '@') at.sun_path[0] = '\0';
  cr_assert_eq(
      bind(fd, (struct sockaddr *)&at, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)),
      0);
  return fd;
}

static void expect(const char *name) {
  char text[600];
  int fd = listen_at(name);

  setenv("NOTIFY_SOCKET", name, 1);
  tc_notify("READY=1\nSTATUS=%s on %d", "listening", 7070);
  ssize_t n = recv(fd, text, sizeof text - 1, MSG_DONTWAIT);
  cr_assert_gt(n, 0);
  text[n] = '\0';
  cr_assert_str_eq(text, "READY=1\nSTATUS=listening on 7070");
  close(fd);
}

Test(notify, the_manager_hears_it_on_a_path_and_in_the_abstract_name_space) {
  char path[64], abstract[64];

  snprintf(path, sizeof path, "/tmp/tt_notify_%d", (int)getpid());
  snprintf(abstract, sizeof abstract, "@tt_notify_%d", (int)getpid());
  expect(path);
  unlink(path);
  expect(abstract);
}

Test(notify, without_a_manager_nothing_happens) {
  unsetenv("NOTIFY_SOCKET");
  tc_notify("READY=1");
  setenv("NOTIFY_SOCKET", "/nonexistent/socket", 1);
  tc_notify("READY=1");
  setenv("NOTIFY_SOCKET", "relative", 1);
  tc_notify("READY=1");
}

Test(notify, the_watchdog_is_fed_twice_as_often_as_asked_and_only_by_whom_it_is_for) {
  char pid[32];

  unsetenv("WATCHDOG_USEC");
  unsetenv("WATCHDOG_PID");
  cr_assert_eq(tc_notify_watchdog_ms(), 0);
  setenv("WATCHDOG_USEC", "10000000", 1);
  cr_assert_eq(tc_notify_watchdog_ms(), 5000);
  snprintf(pid, sizeof pid, "%d", (int)getpid());
  setenv("WATCHDOG_PID", pid, 1);
  cr_assert_eq(tc_notify_watchdog_ms(), 5000);
  setenv("WATCHDOG_PID", "1", 1);
  cr_assert_eq(tc_notify_watchdog_ms(), 0);
}

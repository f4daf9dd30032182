/* SPDX-License-Identifier: Apache-2.0 */
/* The sleeper sets `asleep`, then checks for work once more; the waker posts work, then reads `asleep`. Both use atomic
 * exchanges on `asleep`, so at least one of the two sees the other. */
#include "collector/base/wakeup.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

tb_rc tc_wakeup_init(struct tc_wakeup *wakeup, struct tb_diag *diag) {
  atomic_init(&wakeup->asleep, false);
  wakeup->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  return wakeup->fd < 0 ? tb_fail(diag, TB_IO, "eventfd: %s", strerror(errno)) : TB_OK;
}

void tc_wakeup_fini(struct tc_wakeup *wakeup) {
  if (wakeup->fd >= 0) close(wakeup->fd);
  wakeup->fd = -1;
}

void tc_wakeup_wake(void *self) {
  struct tc_wakeup *wakeup = self;
  uint64_t one = 1;

  if (!atomic_exchange(&wakeup->asleep, false)) return;
  ssize_t n = write(wakeup->fd, &one, sizeof one);
  (void)n; /* EAGAIN: 2^64 wakes are waiting already */
}

void tc_wakeup_sleep(struct tc_wakeup *wakeup, uint64_t timeout_ns, bool (*work)(void *self),
                     void *self) {
  struct pollfd pfd = { .fd = wakeup->fd, .events = POLLIN };
  struct timespec limit = { .tv_sec = (time_t)(timeout_ns / 1000000000),
                            .tv_nsec = (long)(timeout_ns % 1000000000) };
  uint64_t count;

  atomic_exchange(&wakeup->asleep, true);
  if (work == NULL || !work(self)) ppoll(&pfd, 1, &limit, NULL);
  atomic_store(&wakeup->asleep, false);
  ssize_t n = read(wakeup->fd, &count, sizeof count);
  (void)n; /* EAGAIN: no thread wrote */
}

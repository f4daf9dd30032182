/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/segment/reserve.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/state_dir.h"

static const char name[] = "reserve";

static bool is_whole(const struct tc_reserve *reserve) {
  struct stat st;

  return fstatat(reserve->state_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
         (uint64_t)st.st_size == reserve->bytes && (uint64_t)st.st_blocks * 512 >= reserve->bytes;
}

void tc_reserve_init(struct tc_reserve *reserve, int state_fd, uint64_t bytes) {
  *reserve = (struct tc_reserve){ .state_fd = state_fd, .bytes = bytes };
  reserve->held = bytes > 0 && is_whole(reserve);
  if (!reserve->held) unlinkat(state_fd, name, 0);
}

void tc_reserve_fill(struct tc_reserve *reserve, uint64_t free_bytes, uint64_t least) {
  if (reserve->held || reserve->bytes == 0) return;
  if (free_bytes < reserve->bytes || free_bytes - reserve->bytes < least + least / 8) return;
  int fd = tc_file_create(reserve->state_fd, name, O_WRONLY);
  if (fd < 0) return;
  reserve->held = fallocate(fd, 0, 0, (off_t)reserve->bytes) == 0;
  close(fd);
  if (!reserve->held) unlinkat(reserve->state_fd, name, 0);
}

bool tc_reserve_release(struct tc_reserve *reserve) {
  if (!reserve->held) return false;
  reserve->held = false;
  return unlinkat(reserve->state_fd, name, 0) == 0;
}

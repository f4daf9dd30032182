/* SPDX-License-Identifier: Apache-2.0 */
#include "base/small_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Returns 0 or an errno. /dev/null is accepted as an empty file. */
static int check_small(int fd) {
  struct stat st;

  if (fstat(fd, &st) != 0) return errno;
  if (S_ISDIR(st.st_mode)) return EISDIR;
  if (S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3)) return 0;
  if (!S_ISREG(st.st_mode)) return EINVAL;
  return st.st_size > TB_SMALL_FILE_MAX ? EFBIG : 0;
}

int tb_small_file_open(int dir_fd, const char *path) {
  /* O_NONBLOCK: opening a FIFO does not wait for a writer. */
  int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

  if (fd < 0) return -1;
  int error = check_small(fd);
  if (error == 0) return fd;
  close(fd);
  errno = error;
  return -1;
}

FILE *tb_small_file(const char *path) {
  int fd = tb_small_file_open(AT_FDCWD, path);
  FILE *file = fd < 0 ? NULL : fdopen(fd, "r");

  if (fd >= 0 && file == NULL) close(fd);
  return file;
}

const char *tb_small_file_fault(int error) {
  if (error == EINVAL) return "not a regular file";
  return error == EFBIG ? "larger than 1 MiB" : strerror(error);
}

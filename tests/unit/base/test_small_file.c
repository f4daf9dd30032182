/* SPDX-License-Identifier: Apache-2.0 */
/* Paths that are not small files: none of them blocks the reader. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/small_file.h"

struct folder {
  char path[32];
  int fd;
};

static struct folder folder(void) {
  struct folder f = { .path = "/tmp/tt-small-XXXXXX" };

  cr_assert_not_null(mkdtemp(f.path));
  f.fd = open(f.path, O_RDONLY | O_DIRECTORY);
  return f;
}

static void expect(int dir, const char *path, int error, const char *words) {
  int fd = tb_small_file_open(dir, path);

  cr_assert_eq(fd, -1, "%s", path);
  cr_assert_eq(errno, error, "%s: %s", path, strerror(errno));
  cr_assert_str_eq(tb_small_file_fault(error), words);
}

Test(small_file, of_what_is_no_file_nothing_is_read) {
  struct folder f = folder();
  struct sockaddr_un name = { .sun_family = AF_UNIX };
  int listener = socket(AF_UNIX, SOCK_STREAM, 0);

  snprintf(name.sun_path, sizeof name.sun_path, "%s/socket", f.path);
  cr_assert_eq(bind(listener, (struct sockaddr *)&name, sizeof name), 0);
  cr_assert_eq(mkfifoat(f.fd, "pipe", 0600), 0);
  cr_assert_eq(symlinkat("/dev/zero", f.fd, "link"), 0);
  expect(f.fd, "pipe", EINVAL, "not a regular file");
  expect(f.fd, "link", EINVAL, "not a regular file");
  expect(AT_FDCWD, "/dev/zero", EINVAL, "not a regular file");
  expect(f.fd, ".", EISDIR, "Is a directory");
  expect(f.fd, "none", ENOENT, "No such file or directory");
  expect(f.fd, "socket", ENXIO, "No such device or address");
  close(listener);
  unlinkat(f.fd, "pipe", 0);
  unlinkat(f.fd, "link", 0);
  unlinkat(f.fd, "socket", 0);
  close(f.fd);
  rmdir(f.path);
}

Test(small_file, a_mebibyte_is_small_and_a_byte_more_is_not) {
  struct folder f = folder();
  int fd = openat(f.fd, "file", O_WRONLY | O_CREAT, 0600);
  char path[64], byte;

  cr_assert_eq(ftruncate(fd, TB_SMALL_FILE_MAX), 0);
  snprintf(path, sizeof path, "%s/file", f.path);
  FILE *file = tb_small_file(path);
  cr_assert_not_null(file);
  cr_assert_eq(fread(&byte, 1, 1, file), 1);
  fclose(file);
  cr_assert_eq(ftruncate(fd, TB_SMALL_FILE_MAX + 1), 0);
  expect(f.fd, "file", EFBIG, "larger than 1 MiB");
  cr_assert_null(tb_small_file(path));
  close(fd);
  unlink(path);
  close(f.fd);
  rmdir(f.path);
}

Test(small_file, the_null_device_is_a_file_with_nothing_in_it) {
  FILE *file = tb_small_file("/dev/null");

  cr_assert_not_null(file);
  cr_assert_eq(fgetc(file), EOF);
  fclose(file);
}

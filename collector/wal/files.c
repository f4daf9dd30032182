/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/wal/files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/state_dir.h"
#include "base/grow.h"

static const char spare[] = "spare";

void tc_wal_file_name(uint64_t start_lsn, char out[TC_WAL_NAME_BYTES]) {
  snprintf(out, TC_WAL_NAME_BYTES, "%016" PRIx64 ".wal", start_lsn);
}

void tc_wal_files_init(struct tc_wal_files *files, int wal_fd, bool durable) {
  *files = (struct tc_wal_files){ .wal_fd = wal_fd, .durable = durable };
}

void tc_wal_files_fini(struct tc_wal_files *files) {
  free(files->items);
  *files = (struct tc_wal_files){ .wal_fd = -1 };
}

tb_rc tc_wal_files_add(struct tc_wal_files *files, uint64_t start, uint64_t bytes) {
  TB_TRY(TB_GROW(files->items, files->cap, files->n));
  files->items[files->n++] = (struct tc_wal_file){ .start = start, .bytes = bytes };
  return TB_OK;
}

/* A file system without O_DIRECT fails with EINVAL when the file is opened. */
static int open_unbuffered(const struct tc_wal_files *files, const char *name, int flags) {
  flags |= O_RDWR | O_CLOEXEC | O_NOFOLLOW;
  int fd = openat(files->wal_fd, name, flags | (files->durable ? O_DIRECT : 0), 0640);

  if (fd >= 0 || errno != EINVAL || !files->durable) return fd;
  /* The failed open may have created the file: no O_EXCL. */
  return openat(files->wal_fd, name, flags & ~O_EXCL, 0640);
}

/* Takes the spare file if it has the right size. The caller syncs the new name before it writes, as a power failure could
 * otherwise bring the old name back. */
static int take_spare(const struct tc_wal_files *files, const char *name, uint64_t bytes) {
  struct stat st;
  int fd = open_unbuffered(files, spare, 0);

  if (fd < 0) return -1;
  bool fits = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == bytes &&
              (uint64_t)st.st_blocks * 512 >= bytes;
  if (fits && renameat2(files->wal_fd, spare, files->wal_fd, name, RENAME_NOREPLACE) == 0)
    return fd;
  close(fd);
  unlinkat(files->wal_fd, spare, 0);
  return -1;
}

static int allocate(int fd, uint64_t bytes) {
  int failed;

  do failed = fallocate(fd, 0, 0, (off_t)bytes);
  while (failed != 0 && errno == EINTR);
  if (failed == 0) return 0;
  return errno == EOPNOTSUPP ? ftruncate(fd, (off_t)bytes) : -1;
}

tb_rc tc_wal_files_make(struct tc_wal_files *files, uint64_t start, uint64_t bytes,
                        struct tb_diag *diag, int *out_fd) {
  char name[TC_WAL_NAME_BYTES];

  TB_TRY(tc_wal_files_add(files, start, bytes));
  tc_wal_file_name(start, name);
  int fd = take_spare(files, name, bytes), why = 0;
  if (fd < 0) {
    fd = open_unbuffered(files, name, O_CREAT | O_EXCL);
    if (fd < 0 || allocate(fd, bytes) != 0) why = errno;
  }
  if (why == 0 && fsync(files->wal_fd) != 0) why = errno;
  if (why == 0) {
    files->unsynced = false;
    *out_fd = fd;
    return TB_OK;
  }
  if (fd >= 0) {
    close(fd);
    tc_wal_files_undo(files);
  } else {
    files->n--;
  }
  return tb_fail(diag, tc_errno_rc(why), "wal/%s: %s", name, strerror(why));
}

void tc_wal_files_poison(struct tc_wal_files *files) {
  files->items[files->n - 1].poisoned = true;
}

void tc_wal_files_undo(struct tc_wal_files *files) {
  char name[TC_WAL_NAME_BYTES];

  tc_wal_file_name(files->items[files->n - 1].start, name);
  if (unlinkat(files->wal_fd, name, 0) == 0 || errno == ENOENT)
    files->n--;
  else
    tc_wal_files_poison(files);
}

static bool remove_file(const struct tc_wal_files *files, const struct tc_wal_file *file) {
  char name[TC_WAL_NAME_BYTES];

  tc_wal_file_name(file->start, name);
  if (!file->poisoned &&
      renameat2(files->wal_fd, name, files->wal_fd, spare, RENAME_NOREPLACE) == 0)
    return true;
  return unlinkat(files->wal_fd, name, 0) == 0 || errno == ENOENT;
}

/* Syncs the removal of older files. A power failure may undo any unsynced step. A file that came back without its successor
 * would be read too far: only the successor knows where it ends and which of its records were sent again. So the files
 * disappear from the disk oldest first, too. */
static bool older_are_gone(struct tc_wal_files *files) {
  if (files->unsynced && fsync(files->wal_fd) != 0) return false;
  files->unsynced = false;
  return true;
}

void tc_wal_files_trim(struct tc_wal_files *files, uint64_t lsn) {
  size_t gone = 0;

  while (gone + 1 < files->n && files->items[gone].start + files->items[gone].bytes <= lsn &&
         older_are_gone(files) && remove_file(files, &files->items[gone])) {
    files->unsynced = files->durable;
    gone++;
  }
  if (gone == 0) return;
  files->n -= gone;
  memmove(files->items, files->items + gone, files->n * sizeof *files->items);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* VERSION is checked before anything is created: a program that does not support the log's version must not even leave a
 * lock file. */
#include "archive/state_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { QUESTIONS_MAX = 1000 };

static tb_rc fail_path(struct tb_diag *diag, const char *dir, const char *name) {
  return tb_fail(diag, TB_IO, "%s%s%s: %s", dir, *name == '\0' ? "" : "/", name, strerror(errno));
}

/* mkdir -p: the parents of a state folder are often missing on a first start. */
static tb_rc make_parents(const char *path, struct tb_diag *diag) {
  char part[4096];
  size_t len = strlen(path);

  if (len == 0 || len >= sizeof part)
    return tb_fail(diag, TB_IO, "state folder: the path is empty or too long");
  memcpy(part, path, len + 1);
  for (size_t i = 1; i <= len; i++) {
    if (part[i] != '/' && part[i] != '\0') continue;
    char saved = part[i];
    part[i] = '\0';
    if (mkdir(part, 0750) != 0 && errno != EEXIST) return fail_path(diag, part, "");
    part[i] = saved;
  }
  return TB_OK;
}

static tb_rc check_version(int state_fd, const char *path, struct tb_diag *diag,
                           bool *out_missing) {
  char text[32] = "";
  int fd = openat(state_fd, "VERSION", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

  *out_missing = fd < 0 && errno == ENOENT;
  if (*out_missing) return TB_OK;
  if (fd < 0) return fail_path(diag, path, "VERSION");
  ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  char *end;
  unsigned long version = strtoul(text, &end, 10);
  if (n <= 0 || end == text || *end != '\n')
    return tb_fail(diag, TB_CORRUPT, "%s/VERSION: is not a number and a newline", path);
  if (version > TC_STATE_VERSION)
    return tb_fail(
        diag, TB_UNSUPPORTED,
        "%s/VERSION: the log has version %lu, this program knows up to %d; nothing was touched",
        path, version, TC_STATE_VERSION);
  return TB_OK;
}

static tb_rc write_version(int state_fd, const char *path, struct tb_diag *diag) {
  char text[32];
  int n = snprintf(text, sizeof text, "%d\n", TC_STATE_VERSION);
  struct tb_diag why = { 0 };

  if (tc_file_replace(state_fd, "VERSION", text, (size_t)n, &why) == TB_OK) return TB_OK;
  return tb_fail(diag, TB_IO, "%s/%s", path, why.text);
}

/* ---- locks */

/* Takes an exclusive lock. tc_statedir_is_locked() holds a shared lock for a moment: this waits for it. */
static int take_lock(int fd) {
  const struct timespec moment = { .tv_nsec = 1000000 };

  for (unsigned i = 0; i < QUESTIONS_MAX; i++) {
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) return 0;
    if (errno != EWOULDBLOCK || flock(fd, LOCK_SH | LOCK_NB) != 0) return -1;
    flock(fd, LOCK_UN);
    nanosleep(&moment, NULL);
  }
  errno = EWOULDBLOCK;
  return -1;
}

static tb_rc fail_in_use(int lock_fd, const char *path, struct tb_diag *diag) {
  char holder[32] = "";
  ssize_t n = lock_fd >= 0 ? pread(lock_fd, holder, sizeof holder - 1, 0) : 0;

  holder[n > 0 ? strcspn(holder, "\n") : 0] = '\0';
  return tb_fail(diag, TB_REFUSED, "%s/LOCK: the folder is in use by process %s", path,
                 *holder != '\0' ? holder : "(unknown)");
}

static tb_rc take_file(int fd, const char *path, struct tb_diag *diag) {
  char text[32];

  if (take_lock(fd) != 0)
    return errno == EWOULDBLOCK ? fail_in_use(fd, path, diag) : fail_path(diag, path, "LOCK");
  int n = snprintf(text, sizeof text, "%ld\n", (long)getpid());
  if (ftruncate(fd, 0) != 0 || tc_write_all(fd, text, (size_t)n, 0) != 0)
    return fail_path(diag, path, "LOCK");
  return TB_OK;
}

static tb_rc take_both(int state_fd, const char *path, struct tb_diag *diag,
                       struct tc_statedir_lock *out) {
  out->folder = openat(state_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (out->folder < 0) return fail_path(diag, path, "");
  bool taken = take_lock(out->folder) != 0 && errno == EWOULDBLOCK;
  int flags = taken ? O_RDONLY : O_RDWR | O_CREAT;
  out->file = openat(state_fd, "LOCK", flags | O_CLOEXEC | O_NOFOLLOW, 0640);
  if (taken) return fail_in_use(out->file, path, diag);
  if (out->file < 0) return fail_path(diag, path, "LOCK");
  return take_file(out->file, path, diag);
}

tb_rc tc_statedir_lock(int state_fd, const char *path, struct tb_diag *diag,
                       struct tc_statedir_lock *out) {
  *out = (struct tc_statedir_lock){ -1, -1 };
  tb_rc rc = take_both(state_fd, path, diag, out);
  if (rc != TB_OK) tc_statedir_unlock(out);
  return rc;
}

void tc_statedir_unlock(struct tc_statedir_lock *lock) {
  if (lock->file >= 0) close(lock->file);
  if (lock->folder >= 0) close(lock->folder);
  *lock = (struct tc_statedir_lock){ -1, -1 };
}

static bool is_taken(int state_fd, const char *name) {
  int fd = openat(state_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  bool taken = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;

  if (fd >= 0) close(fd);
  return taken;
}

bool tc_statedir_is_locked(int state_fd) {
  return is_taken(state_fd, ".") || is_taken(state_fd, "LOCK");
}

/* ---- the folder */

static tb_rc open_part(int state_fd, const char *path, const char *name, struct tb_diag *diag,
                       int *out) {
  if (mkdirat(state_fd, name, 0750) != 0 && errno != EEXIST) return fail_path(diag, path, name);
  *out = openat(state_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  return *out < 0 ? fail_path(diag, path, name) : TB_OK;
}

static tb_rc open_parts(struct tc_statedir *dirs, const char *path, struct tb_diag *diag) {
  bool no_version;

  TB_TRY(check_version(dirs->state, path, diag, &no_version));
  TB_TRY(tc_statedir_lock(dirs->state, path, diag, &dirs->lock));
  if (no_version) TB_TRY(write_version(dirs->state, path, diag));
  TB_TRY(open_part(dirs->state, path, "wal", diag, &dirs->wal));
  TB_TRY(open_part(dirs->state, path, "open", diag, &dirs->open));
  TB_TRY(open_part(dirs->state, path, "archive", diag, &dirs->archive));
  TB_TRY(open_part(dirs->state, path, "quarantine", diag, &dirs->quarantine));
  return fsync(dirs->state) == 0 ? TB_OK : fail_path(diag, path, "");
}

tb_rc tc_statedir_open(const char *path, struct tb_diag *diag, struct tc_statedir *out) {
  struct tc_statedir dirs = TC_STATEDIR_NONE;

  *out = dirs;
  TB_TRY(make_parents(path, diag));
  dirs.state = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (dirs.state < 0) return fail_path(diag, path, "");
  tb_rc rc = open_parts(&dirs, path, diag);
  if (rc != TB_OK) tc_statedir_close(&dirs);
  *out = dirs;
  return rc;
}

void tc_statedir_close(struct tc_statedir *dirs) {
  int *fds[] = { &dirs->wal, &dirs->open, &dirs->archive, &dirs->quarantine, &dirs->state };

  for (size_t i = 0; i < sizeof fds / sizeof *fds; i++) {
    if (*fds[i] >= 0) close(*fds[i]);
    *fds[i] = -1;
  }
  tc_statedir_unlock(&dirs->lock);
}

static int open_below(int parent_fd, const char *name, bool make) {
  int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

  if (fd >= 0 || errno != ENOENT || !make) return fd;
  if (mkdirat(parent_fd, name, 0750) != 0 && errno != EEXIST) return -1;
  return openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

int tc_statedir_stream(int archive_fd, const char *day, const char *stream_hex, bool make) {
  int day_fd = open_below(archive_fd, day, make);

  if (day_fd < 0) return -1;
  int fd = open_below(day_fd, stream_hex, make);
  int why = errno;
  close(day_fd);
  errno = why;
  return fd;
}

tb_rc tc_errno_rc(int why) {
  switch (why) {
  case ENOSPC: return TB_NOSPACE;
  case EDQUOT:
  case EFBIG: return TB_QUOTA;
  case ENOMEM: return TB_NOMEM;
  case EMFILE:
  case ENFILE: return TB_NOFILES;
  case EINTR:
  case EAGAIN: return TB_BUSY;
  default: return TB_IO;
  }
}

bool tc_rc_is_full(tb_rc rc) {
  return rc == TB_NOSPACE || rc == TB_QUOTA;
}

bool tc_rc_is_short(tb_rc rc) {
  return rc == TB_NOMEM || rc == TB_NOFILES || rc == TB_BUSY;
}

tb_rc tc_read_rc(int why) {
  return why == EIO ? TB_UNREADABLE : tc_errno_rc(why);
}

void tc_day(uint64_t wall_ns, char out[TC_DAY_BYTES]) {
  time_t seconds = (time_t)(wall_ns / 1000000000);
  struct tm tm;

  if (gmtime_r(&seconds, &tm) == NULL || strftime(out, TC_DAY_BYTES, "%Y-%m-%d", &tm) == 0)
    memcpy(out, "1970-01-01", TC_DAY_BYTES); /* the year has more than four digits */
}

bool tc_day_valid(const char *text) {
  static const char shape[] = "dddd-dd-dd";

  if (strlen(text) != sizeof shape - 1) return false;
  for (size_t i = 0; i < sizeof shape - 1; i++) {
    bool digit = text[i] >= '0' && text[i] <= '9';
    if (shape[i] == 'd' ? !digit : text[i] != '-') return false;
  }
  return true;
}

tb_rc tc_dir_open(int dir_fd, const char *what, struct tb_diag *diag, DIR **out) {
  int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *dir = fd < 0 ? NULL : fdopendir(fd);

  if (dir == NULL) {
    tb_rc rc = tb_fail(diag, tc_errno_rc(errno), "%s: %s", what, strerror(errno));
    if (fd >= 0) close(fd);
    return rc;
  }
  *out = dir;
  return TB_OK;
}

tb_rc tc_dir_next(DIR *dir, const char *what, struct tb_diag *diag, const char **out_name) {
  for (;;) {
    errno = 0;
    const struct dirent *entry = readdir(dir);
    if (entry == NULL && errno != 0)
      return tb_fail(diag, tc_errno_rc(errno), "%s: cannot be listed to its end: %s", what,
                     strerror(errno));
    if (entry != NULL && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0))
      continue;
    *out_name = entry != NULL ? entry->d_name : NULL;
    return TB_OK;
  }
}

int tc_file_create(int dir_fd, const char *name, int flags) {
  return openat(dir_fd, name, O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | flags, 0640);
}

int tc_write_all(int fd, const void *bytes, size_t n, uint64_t offset) {
  const unsigned char *p = bytes;

  while (n > 0) {
    ssize_t done = pwrite(fd, p, n, (off_t)offset);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return -1;
    p += done;
    n -= (size_t)done;
    offset += (uint64_t)done;
  }
  return 0;
}

int tc_read_all(int fd, void *bytes, size_t n, uint64_t offset) {
  unsigned char *p = bytes;
  unsigned failed = 0; /* failures at this offset */

  while (n > 0) {
    ssize_t done = pread(fd, p, n, (off_t)offset);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0 && errno == EIO && ++failed < TC_READ_TRIES) continue;
    if (done == 0) errno = EIO;
    if (done <= 0) return -1;
    failed = 0;
    p += done;
    n -= (size_t)done;
    offset += (uint64_t)done;
  }
  return 0;
}

tb_rc tc_read_exactly(int fd, const char *name, void *bytes, size_t n, uint64_t offset,
                      struct tb_diag *diag) {
  struct stat st;

  if (tc_read_all(fd, bytes, n, offset) == 0) return TB_OK;
  int why = errno;
  if (fstat(fd, &st) == 0 && (uint64_t)st.st_size < offset + n)
    return tb_fail(diag, TB_IO, "%s: has only %" PRIu64 " bytes", name, (uint64_t)st.st_size);
  return tb_fail(diag, tc_read_rc(why),
                 "%s: %zu bytes from offset %" PRIu64 " on cannot be read: %s", name, n, offset,
                 strerror(why));
}

tb_rc tc_file_text(int dir_fd, const char *name, size_t max, struct tb_diag *diag, char **out) {
  int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  struct stat st;
  tb_rc rc = TB_OK;

  *out = NULL;
  if (fd < 0 && errno == ENOENT) return TB_NOTFOUND;
  if (fd < 0) return tb_fail(diag, TB_IO, "%s: %s", name, strerror(errno));
  if (fstat(fd, &st) != 0)
    rc = tb_fail(diag, TB_IO, "%s: %s", name, strerror(errno));
  else if ((uint64_t)st.st_size > max)
    rc = tb_fail(diag, TB_BROKEN, "%s: larger than %zu bytes", name, max);
  else if ((*out = calloc(1, (size_t)st.st_size + 1)) == NULL)
    rc = TB_NOMEM;
  else
    rc = tc_read_exactly(fd, name, *out, (size_t)st.st_size, 0, diag);
  close(fd);
  if (rc != TB_OK) free(TB_MOVE(*out));
  return rc;
}

tb_rc tc_file_replace(int dir_fd, const char *name, const void *bytes, size_t n,
                      struct tb_diag *diag) {
  char fresh[TC_FILE_NAME_BYTES];

  snprintf(fresh, sizeof fresh, "%s.new", name);
  int fd = openat(dir_fd, fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0640);
  bool done = fd >= 0 && tc_write_all(fd, bytes, n, 0) == 0 && fsync(fd) == 0;
  if (fd >= 0) done = close(fd) == 0 && done;
  done = done && renameat(dir_fd, fresh, dir_fd, name) == 0 && fsync(dir_fd) == 0;
  return done ? TB_OK : tb_fail(diag, TB_IO, "%s: %s", name, strerror(errno));
}

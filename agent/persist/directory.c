/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/persist/directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/text/hex.h"

#define MAGIC UINT64_C(0x316c6f6f70736174) /* "taspool1" */

enum { STATE_AT = 4096 /* distance of the second from the first */, RUN_NAME = 17 };

static const char state_name[] = "state";

/* The begin of a run's file, before the frames. */
struct image_on_disk {
  struct ta_run_image run;
  uint32_t unused[5], crc;
};
_Static_assert(sizeof(struct image_on_disk) == TA_SPOOL_DIR_IMAGE_BYTES, "frames begin behind it");
_Static_assert(sizeof(struct ta_spool_dir_state) <= STATE_AT, "two fit in the file");

static tb_rc failed(struct tb_diag *diag, const char *what, const char *name) {
  return tb_fail(diag, TB_IO, "%s %.60s: %s", what, name, strerror(errno));
}

static void name_run(uint64_t id, char out[RUN_NAME]) {
  snprintf(out, RUN_NAME, "%016" PRIx64, id);
}

static tb_rc write_all(int fd, const void *bytes, size_t n, uint64_t at, struct tb_diag *diag) {
  for (const unsigned char *from = bytes; n > 0;) {
    ssize_t here = pwrite(fd, from, n, (off_t)at);
    if (here < 0 && errno == EINTR) continue;
    if (here <= 0) return failed(diag, "writing", "spool");
    from += here;
    at += (uint64_t)here;
    n -= (size_t)here;
  }
  return TB_OK;
}

/* Folders. */

tb_rc ta_spool_dir_root(const char *path, struct tb_diag *diag, int *out_fd) {
  struct stat st;

  if (mkdir(path, 0700) != 0 && errno != EEXIST) return failed(diag, "making", path);
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return failed(diag, "opening", path);
  tb_rc rc = TB_OK;
  if (fstat(fd, &st) != 0)
    rc = failed(diag, "looking at", path);
  else if (st.st_uid != geteuid() && st.st_uid != 0)
    rc = tb_fail(diag, TB_IO, "%.60s belongs to another user", path);
  else if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    rc = tb_fail(diag, TB_IO, "others may write to %.60s", path);
  else if (faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) != 0)
    rc = failed(diag, "writing to", path);
  if (rc == TB_OK)
    *out_fd = fd;
  else
    close(fd);
  return rc;
}

void ta_spool_dir_init(struct ta_spool_dir *s, int root, uint64_t bytes_max) {
  *s = (struct ta_spool_dir){ .root = root, .dir = -1, .run_fd = -1, .bytes_max = bytes_max };
  atomic_store(&s->lock_fd, -1);
}

static void close_fd(int *fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

void ta_spool_dir_leave(struct ta_spool_dir *s) {
  int lock = atomic_exchange(&s->lock_fd, -1);

  close_fd(&s->run_fd);
  close_fd(&s->dir);
  close_fd(&lock);
  s->name[0] = 0;
  s->bytes = 0;
}

void ta_spool_dir_forked(struct ta_spool_dir *s) {
  int lock = atomic_exchange(&s->lock_fd, -1);

  close_fd(&lock); /* the parent's copy keeps the lock */
}

/* Opens the folder, and opens and locks its state file. */
static tb_rc enter(struct ta_spool_dir *s, const char *folder, int flags, struct tb_diag *diag) {
  s->dir = openat(s->root, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (s->dir < 0) return failed(diag, "opening", s->name);
  int fd = openat(s->dir, state_name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | flags, 0600);
  if (fd < 0) return failed(diag, "opening the state of", s->name);
  atomic_store(&s->lock_fd, fd);
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return TB_OK;
  return errno == EWOULDBLOCK ? TB_AGAIN : failed(diag, "locking", s->name);
}

/* Removes files of this stream that could not be removed when they were given up. */
static void remove_rest(const struct ta_spool_dir *s) {
  struct ta_spool_dir rest;
  struct tb_diag diag;

  tb_diag_clear(&diag);
  ta_spool_dir_init(&rest, s->root, 0);
  memcpy(rest.name, s->name, sizeof rest.name);
  if (enter(&rest, rest.name, 0, &diag) == TB_OK) ta_spool_dir_remove(&rest);
  ta_spool_dir_leave(&rest);
}

/* Creates the stream's folder. It is renamed to its final name only after it is locked, so that no other process takes it over. */
tb_rc ta_spool_dir_make(struct ta_spool_dir *s, const unsigned char stream[16],
                        struct tb_diag *diag) {
  char fresh[TA_SPOOL_DIR_NAME + 1];

  tb_hex(stream, 16, s->name);
  snprintf(fresh, sizeof fresh, ".%s", s->name);
  if (mkdirat(s->root, fresh, 0700) != 0 && errno != EEXIST) return failed(diag, "making", fresh);
  s->serial = 0;
  remove_rest(s);
  TB_TRY(enter(s, fresh, O_CREAT, diag));
  /* Reserves space for the state, if the file system supports that: so it can be written even when the disk is full. */
  (void)fallocate(atomic_load(&s->lock_fd), 0, 0, STATE_AT + sizeof(struct ta_spool_dir_state));
  if (renameat(s->root, fresh, s->root, s->name) == 0) return TB_OK;
  tb_rc rc = failed(diag, "naming", fresh);
  unlinkat(s->dir, state_name, 0);
  unlinkat(s->root, fresh, AT_REMOVEDIR);
  return rc;
}

/* TB_CORRUPT: there is no valid state at this place. */
static tb_rc read_state(int fd, uint64_t at, struct ta_spool_dir_state *out) {
  ssize_t n = pread(fd, out, sizeof *out, (off_t)at);

  if (n != sizeof *out) return n < 0 ? TB_IO : TB_CORRUPT;
  out->service[TA_SPOOL_DIR_TEXT - 1] = out->instance[TA_SPOOL_DIR_TEXT - 1] = 0;
  bool whole = out->magic == MAGIC &&
               out->crc == tb_crc32c(0, out, offsetof(struct ta_spool_dir_state, crc));
  return whole ? TB_OK : TB_CORRUPT;
}

tb_rc ta_spool_dir_take(struct ta_spool_dir *s, const char *name, struct tb_diag *diag,
                        struct ta_spool_dir_state *out) {
  struct ta_spool_dir_state one, two;

  snprintf(s->name, sizeof s->name, "%s", name);
  TB_TRY(enter(s, s->name, 0, diag));
  int fd = atomic_load(&s->lock_fd);
  tb_rc rc_one = read_state(fd, 0, &one), rc_two = read_state(fd, STATE_AT, &two);
  if (rc_one == TB_IO || rc_two == TB_IO) return failed(diag, "reading the state of", name);
  bool first = rc_one == TB_OK, second = rc_two == TB_OK;
  if (!first && !second) return tb_fail(diag, TB_CORRUPT, "%s: state cannot be read", name);
  *out = first && (!second || one.serial > two.serial) ? one : two;
  s->serial = out->serial;
  return TB_OK;
}

/* The state of a stream. */

tb_rc ta_spool_dir_state(struct ta_spool_dir *s, struct ta_spool_dir_state *state,
                         struct tb_diag *diag) {
  state->magic = MAGIC;
  state->serial = ++s->serial;
  state->crc = tb_crc32c(0, state, offsetof(struct ta_spool_dir_state, crc));
  return write_all(atomic_load(&s->lock_fd), state, sizeof *state, s->serial % 2 * STATE_AT, diag);
}

/* Runs. */

static tb_rc open_for_writing(struct ta_spool_dir *s, uint64_t id, struct tb_diag *diag) {
  char name[RUN_NAME];

  if (s->run_fd >= 0 && s->run_id == id) return TB_OK;
  close_fd(&s->run_fd);
  name_run(id, name);
  s->run_fd = openat(s->dir, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (s->run_fd < 0) return failed(diag, "opening", name);
  s->run_id = id;
  if (id > s->run_id_max) s->run_id_max = id;
  struct stat st;
  s->run_fresh = fstat(s->run_fd, &st) == 0 && st.st_size == 0;
  return TB_OK;
}

static uint64_t size_of(int fd) {
  struct stat st;

  return fstat(fd, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
}

/* Updates the bytes for the run's file, which took `before` bytes. It measures the file, so the result is right even if a
 * change was only partly done. */
static void account(struct ta_spool_dir *s, uint64_t before) {
  uint64_t now = size_of(s->run_fd), gone = before > now ? before - now : 0;

  s->bytes += now > before ? now - before : 0;
  s->bytes -= gone < s->bytes ? gone : s->bytes;
}

/* Writes the frames first, then the image that makes them valid. An image is within one page, so it is never half written when
 * the process dies. */
static tb_rc write_piece(struct ta_spool_dir *s, uint32_t salt, const struct ta_piece *piece,
                         const void *frames, struct tb_diag *diag) {
  struct image_on_disk image = { .run = piece->run };

  /* An image alone needs no room, and the image of a LOSS frees some. */
  if (piece->n > 0 && s->bytes + piece->n > s->bytes_max)
    return tb_fail(diag, TB_IO, "spool directory: its %" PRIu64 " bytes are in use", s->bytes_max);
  if (piece->n > 0)
    TB_TRY(write_all(s->run_fd, frames, piece->n, TA_SPOOL_DIR_IMAGE_BYTES + piece->at, diag));
  image.crc = tb_crc32c(salt, &image, offsetof(struct image_on_disk, crc));
  TB_TRY(write_all(s->run_fd, &image, sizeof image, 0, diag));
  s->run_fresh = false;
  return TB_OK;
}

tb_rc ta_spool_dir_put(struct ta_spool_dir *s, uint32_t salt, const struct ta_piece *piece,
                       const void *frames, struct tb_diag *diag) {
  TB_TRY(open_for_writing(s, piece->run.id, diag));
  uint64_t before = size_of(s->run_fd);
  tb_rc rc = write_piece(s, salt, piece, frames, diag);
  bool dropped = piece->run.kind == TA_RUN_LOSS || piece->run.lost;
  if (rc == TB_OK && dropped &&
      ftruncate(s->run_fd, (off_t)(TA_SPOOL_DIR_IMAGE_BYTES + piece->run.end_bytes)) != 0)
    rc = failed(diag, "shortening", s->name);
  account(s, before);
  if (rc != TB_OK && s->run_fresh) ta_spool_dir_drop(s, s->run_id, s->run_id);
  return rc;
}

void ta_spool_dir_drop(struct ta_spool_dir *s, uint64_t first_id, uint64_t last_id) {
  char name[RUN_NAME];
  struct stat st;

  if (last_id > s->run_id_max) last_id = s->run_id_max;
  for (uint64_t id = first_id; id <= last_id; id++) {
    name_run(id, name);
    if (s->run_fd >= 0 && s->run_id == id) close_fd(&s->run_fd);
    if (fstatat(s->dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
    uint64_t gone = (uint64_t)st.st_blocks * 512;
    if (unlinkat(s->dir, name, 0) == 0) s->bytes -= gone < s->bytes ? gone : s->bytes;
  }
}

void ta_spool_dir_punch(struct ta_spool_dir *s, uint64_t id, uint64_t from, uint64_t to) {
  if (s->run_fd < 0 || s->run_id != id) return;
  uint64_t before = size_of(s->run_fd);
  /* If the file system cannot do this, the space is freed with the run. */
  if (fallocate(s->run_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                (off_t)(TA_SPOOL_DIR_IMAGE_BYTES + from), (off_t)(to - from)) == 0)
    account(s, before);
}

tb_rc ta_spool_dir_open_run(struct ta_spool_dir *s, uint32_t salt, uint64_t id,
                            struct ta_run_image *out, int *out_fd) {
  struct image_on_disk image;
  char name[RUN_NAME];

  name_run(id, name);
  int fd = openat(s->dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT ? TB_NOTFOUND : TB_IO;
  ssize_t n = pread(fd, &image, sizeof image, 0);
  bool whole = n == sizeof image &&
               image.crc == tb_crc32c(salt, &image, offsetof(struct image_on_disk, crc)) &&
               image.run.id == id && image.run.covers >= id && image.run.covers < UINT64_MAX;
  if (!whole) {
    close(fd);
    return n < 0 ? TB_IO : TB_CORRUPT;
  }
  *out = image.run;
  *out_fd = fd;
  return TB_OK;
}

/* Lists. */

bool ta_spool_dir_list(int dir, void (*each)(void *self, const char *name), void *self) {
  int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *list = fd < 0 ? NULL : fdopendir(fd);
  const struct dirent *entry;

  if (list == NULL) {
    if (fd >= 0) close(fd);
    return false;
  }
  while (errno = 0, (entry = readdir(list)) != NULL)
    if (entry->d_name[0] != '.') each(self, entry->d_name);
  bool whole = errno == 0;
  closedir(list);
  return whole;
}

bool ta_spool_dir_is_stream(const char *name) {
  return strlen(name) == TA_SPOOL_DIR_NAME - 1 &&
         strspn(name, "0123456789abcdef") == TA_SPOOL_DIR_NAME - 1;
}

struct sum {
  int dir;
  uint64_t bytes;
};

static void add_size(void *self, const char *name) {
  struct sum *sum = self;
  struct stat st;

  if (fstatat(sum->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
    sum->bytes += (uint64_t)st.st_blocks * 512;
}

uint64_t ta_spool_dir_bytes(int root, const char *name) {
  struct sum sum = { .dir = openat(root, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) };

  if (sum.dir < 0) return 0;
  ta_spool_dir_list(sum.dir, add_size, &sum);
  close(sum.dir);
  return sum.bytes;
}

struct removal {
  int dir;
  bool whole;
};

static void unlink_run(void *self, const char *name) {
  struct removal *removal = self;

  if (strcmp(name, state_name) != 0 && unlinkat(removal->dir, name, 0) != 0) removal->whole = false;
}

/* Removes the state last: without it no process would ever remove the other files. If some files remain, an empty state stays. */
void ta_spool_dir_remove(struct ta_spool_dir *s) {
  struct removal removal = { .dir = s->dir, .whole = true };

  if (s->dir >= 0 && ta_spool_dir_list(s->dir, unlink_run, &removal) && removal.whole) {
    unlinkat(s->dir, state_name, 0);
    unlinkat(s->root, s->name, AT_REMOVEDIR);
  } else if (s->dir >= 0 && ftruncate(atomic_load(&s->lock_fd), 0) != 0) {
    /* Files that stay for ever are better than files that are sent twice. */
    unlinkat(s->dir, state_name, 0);
  }
  ta_spool_dir_leave(s);
}

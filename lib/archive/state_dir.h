/* SPDX-License-Identifier: Apache-2.0 */
/* The state folder: descriptors of its subfolders, and safe ways to create and name files in them.
 *
 *     LOCK VERSION        this file
 *     wal/                the log of acked records: collector/wal
 *     open/               .part: files that are still written: collector/sealer/seal
 *     archive/DAY/        STREAM/GENERATION.{trace,meta}: segments; ledger: expired ones (day_ledger.h)
 *     quarantine/         bytes of generations that were given up, and damaged files
 *     catalog.sqlite      an index of the archive that can be made again: lib/archive/catalog
 *     reserve             bytes that are freed on a full disk: collector/segment/reserve.c
 *     triggers kept firings   rules, what rules keep, past firings: collector/trigger, collector/keep
 *     findings            what was wrong with services: collector/findings
 *     reports/            reports over time: collector/history
 *     certs/              the private authority, if no certificates are configured: lib/tls
 *     feed.sock http.sock     listening sockets, while a collector runs
 *
 * Names are made of hex numbers and a date; no text of a peer becomes part of a path. Files are opened relative to an
 * open folder, never through a symbolic link.
 *
 * Threads   the open struct is read-only; the functions are safe from any thread.
 * Errors    TB_IO with path and strerror(); TB_UNSUPPORTED: the log is newer than this program;
 *           TB_REFUSED: another daemon uses the folder. The last two change nothing.
 */
#ifndef TC_ARCHIVE_STATE_DIR_H
#define TC_ARCHIVE_STATE_DIR_H

#include <dirent.h>

#include "base/result.h"

enum {
  TC_STATE_VERSION = 1,
  TC_DAY_BYTES = 11, /* YYYY-MM-DD and NUL */
  TC_STREAM_HEX_BYTES = 33,
  TC_FILE_NAME_BYTES = 72,
};

struct tc_statedir_lock {
  int folder, file; /* descriptors; the lock is held until they are closed. -1: none */
};

struct tc_statedir {
  int state, wal, open, archive, quarantine;
  struct tc_statedir_lock lock;
};

#define TC_STATEDIR_NONE                                                                           \
  {                                                                                                \
    -1, -1, -1, -1, -1, {                                                                          \
      -1, -1                                                                                       \
    }                                                                                              \
  }

TB_MUST tb_rc tc_statedir_open(const char *path, struct tb_diag *diag, struct tc_statedir *out);
void tc_statedir_close(struct tc_statedir *dirs); /* accepts one whose open failed */

/* Locks the state folder for the daemon, or for a tool that changes files. Locks the folder itself, because the file LOCK
 * can be deleted and created again; then LOCK, which has the holder's pid, because network file systems cannot lock a
 * folder. TB_REFUSED: another process has one of the locks. */
TB_MUST tb_rc tc_statedir_lock(int state_fd, const char *path, struct tb_diag *diag,
                               struct tc_statedir_lock *out);
void tc_statedir_unlock(struct tc_statedir_lock *lock);
/* Does a process hold one of the locks? Does not disturb the holder. */
bool tc_statedir_is_locked(int state_fd);

/* Opens archive/<day>/<stream>; make: creates missing folders, without syncing their names. Returns -1 with errno. */
int tc_statedir_stream(int archive_fd, const char *day, const char *stream_hex, bool make);

void tc_day(uint64_t wall_ns, char out[TC_DAY_BYTES]); /* UTC */
bool tc_day_valid(const char *text);

/* Maps errno to TB_NOSPACE, TB_QUOTA, TB_NOMEM, TB_NOFILES, TB_BUSY or TB_IO. */
tb_rc tc_errno_rc(int why);
/* Is the disk full? Somebody has to free space. */
bool tc_rc_is_full(tb_rc rc);
/* Is it a temporary shortage of memory or descriptors? Then no file is at fault. */
bool tc_rc_is_short(tb_rc rc);
/* Maps errno of a failed tc_read_all(). TB_UNREADABLE: the disk lost these bytes; do not retry. */
tb_rc tc_read_rc(int why);

/* Walks a folder's entries except "." and "..", in no order. dir_fd is not changed and stays the caller's. `what` is the
 * folder's name in diag; errors: tc_errno_rc(). closedir() ends the walk. A name is lent until the next call. */
TB_MUST tb_rc tc_dir_open(int dir_fd, const char *what, struct tb_diag *diag, DIR **out);
/* *out_name NULL: the end. After an error the list is incomplete. */
TB_MUST tb_rc tc_dir_next(DIR *dir, const char *what, struct tb_diag *diag, const char **out_name);

enum { TC_READ_TRIES = 4 }; /* reads of a place before it counts as lost */

/* Creates a new file (O_EXCL) of mode 0640. Returns a descriptor, or -1 with errno. */
int tc_file_create(int dir_fd, const char *name, int flags);
/* Write or read exactly n bytes. Return 0, or -1 with errno. Read EIO: a place cannot be read after all tries, or the file
 * ends before n bytes. */
int tc_write_all(int fd, const void *bytes, size_t n, uint64_t offset);
int tc_read_all(int fd, void *bytes, size_t n, uint64_t offset);
/* Reads exactly n bytes; diag names file and offset. TB_IO: the file is too short. Other errors: tc_read_rc(). */
TB_MUST tb_rc tc_read_exactly(int fd, const char *name, void *bytes, size_t n, uint64_t offset,
                              struct tb_diag *diag);

/* Reads a file of at most max bytes and appends NUL; the caller frees *out (NULL after an error). TB_NOTFOUND: no such
 * file; diag is not set. TB_BROKEN: larger than max. */
TB_MUST tb_rc tc_file_text(int dir_fd, const char *name, size_t max, struct tb_diag *diag,
                           char **out);
/* Replaces a file atomically, by way of NAME.new, and syncs it to the disk. Mode 0640. */
TB_MUST tb_rc tc_file_replace(int dir_fd, const char *name, const void *bytes, size_t n,
                              struct tb_diag *diag);

#endif

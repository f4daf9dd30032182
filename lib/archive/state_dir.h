/* SPDX-License-Identifier: Apache-2.0 */
/* The state folder: its parts held open, and the few safe ways to make and name files in them.
 *
 *     LOCK VERSION triggers kept firings wal/ open/ archive/<day>/<stream32>/<gen16>.{trace,meta} catalog.sqlite quarantine/
 *
 * Every name below it is made here from hex numbers and a date; nothing a peer says becomes part of a
 * path. Files are opened relative to a held folder, never through a symbolic link.
 *
 * Threads   the open struct is read-only; the functions are safe from any thread.
 * Errors    TB_IO with path and errno's words; TB_UNSUPPORTED: the log is newer than this program;
 *           TB_REFUSED: another daemon has the folder. The last two leave it untouched.
 */
#ifndef TC_ARCHIVE_STATE_DIR_H
#define TC_ARCHIVE_STATE_DIR_H

#include <dirent.h>

#include "base/result.h"

enum {
  TC_LOG_VERSION = 1,
  TC_DAY_BYTES = 11, /* YYYY-MM-DD and NUL */
  TC_STREAM_HEX_BYTES = 33,
  TC_FILE_NAME_BYTES = 72,
};

struct tc_statedir_lock {
  int folder, file; /* held as long as they are open; -1: not */
};

struct tc_statedir {
  int state, wal, open, archive, quarantine;
  struct tc_statedir_lock lock;
};

#define TC_STATEDIR_NONE                                                                           \
  { -1, -1, -1, -1, -1, { -1, -1 } }

TB_MUST tb_rc tc_statedir_open(const char *path, struct tb_diag *diag, struct tc_statedir *out);
void tc_statedir_close(struct tc_statedir *dirs); /* accepts one whose open failed */

/* For the daemon and for tools that change what is in the folder: the lock of the folder itself, which no one can remove
 * for a second one to come in, and then that of the file LOCK, which says whose they are. A network's file system locks no
 * folder, and versions before the folder's lock know LOCK alone: that is why all take both. TB_REFUSED: another has one of them. */
TB_MUST tb_rc tc_statedir_lock(int state_fd, const char *path, struct tb_diag *diag,
                               struct tc_statedir_lock *out);
void tc_statedir_unlock(struct tc_statedir_lock *lock);
/* Has another them now? It is not held up by the question. */
bool tc_statedir_is_locked(int state_fd);

/* archive/<day>/<stream>; made if make, its name not synced. -1: errno. */
int tc_statedir_stream(int archive_fd, const char *day, const char *stream_hex, bool make);

void tc_day(uint64_t wall_ns, char out[TC_DAY_BYTES]); /* UTC */
bool tc_day_valid(const char *text);

/* The meaning of a failed call: TB_NOSPACE, TB_QUOTA, TB_NOMEM, TB_NOFILES, TB_BUSY; else TB_IO. */
tb_rc tc_errno_rc(int why);
/* The disk has no room: one has to make some. */
bool tc_rc_is_full(tb_rc rc);
/* The system is short of something that it may have again in a moment; no file is to blame. */
bool tc_rc_is_short(tb_rc rc);
/* The same of a failed tc_read_all(). TB_UNREADABLE: the disk has lost these bytes, and no later try finds them. */
tb_rc tc_read_rc(int why);

/* A folder's entries but for "." and "..", in no order; dir_fd stays the caller's and where it was. `what` is the
 * folder's name in diag; errors are those of tc_errno_rc(). closedir() ends it. A name is lent until the next one. */
TB_MUST tb_rc tc_dir_open(int dir_fd, const char *what, struct tb_diag *diag, DIR **out);
/* NULL: there are no more. An error: there may be, and their number is not known. */
TB_MUST tb_rc tc_dir_next(DIR *dir, const char *what, struct tb_diag *diag, const char **out_name);

enum { TC_READ_TRIES = 4 }; /* of a place, before it counts as lost */

/* A new file: O_EXCL, mode 0640; the whole of bytes; pread of exactly n. Answer 0 or -1 with errno. */
int tc_file_create(int dir_fd, const char *name, int flags);
int tc_write_all(int fd, const void *bytes, size_t n, uint64_t offset);
/* EIO: a place cannot be read, however often it is tried, or the file ends before. */
int tc_read_all(int fd, void *bytes, size_t n, uint64_t offset);
/* The same; diag names the file and the place. TB_IO: it ends before. Other errors are those of tc_read_rc(). */
TB_MUST tb_rc tc_read_exactly(int fd, const char *name, void *bytes, size_t n, uint64_t offset,
                              struct tb_diag *diag);

/* All of a file that has at most max bytes, with NUL behind it; the caller frees *out, NULL after an error. TB_NOTFOUND: there
 * is none, and diag says nothing; TB_BROKEN: it is larger. */
TB_MUST tb_rc tc_file_text(int dir_fd, const char *name, size_t max, struct tb_diag *diag,
                           char **out);
/* The whole of a file, in place of what was there, or not at all; on the disk when it answers. Mode 0640. NAME.new beside it is
 * its own. */
TB_MUST tb_rc tc_file_replace(int dir_fd, const char *name, const void *bytes, size_t n,
                              struct tb_diag *diag);

#endif

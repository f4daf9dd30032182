/* SPDX-License-Identifier: Apache-2.0 */
/* The spool's files: a folder for each stream, in it a file for each run and a state file with the accounting.
 *
 *   DIR/<stream32>/state      two places for struct ta_spool_dir_state, written in turn; locked while its owner lives
 *   DIR/<stream32>/<id16>     struct ta_run_image with its checksum, then frames (agent/persist/serializer.h)
 *
 * Numbers are in the machine's byte order: files are for the same machine. Nothing is synced: files survive their
 * process, but not a power failure. Folders are 0700, files 0600, no link is followed. The lock is released when its
 * process ends, however that happens.
 *
 * Threads   one at a time; ta_spool_dir_forked() in a forked child.
 * Errors    TB_IO with text in diag. TB_AGAIN from take: another process holds the lock. TB_CORRUPT: unreadable.
 */
#ifndef TA_PERSIST_DIRECTORY_H
#define TA_PERSIST_DIRECTORY_H

#include "agent/persist/serializer.h"

enum { TA_SPOOL_DIR_NAME = 33, TA_SPOOL_DIR_TEXT = 72 };

struct ta_spool_dir_state {
  uint64_t magic, serial, started_wall_ns;
  unsigned char stream[16];
  char service[TA_SPOOL_DIR_TEXT], instance[TA_SPOOL_DIR_TEXT];
  struct ta_accounting accounting;
  uint32_t salt; /* initial value of the checksums of the folder's other files */
  uint32_t crc;
};

struct ta_spool_dir {
  int root, dir;      /* -1: none */
  atomic_int lock_fd; /* the file state, open and locked */
  int run_fd;
  uint64_t run_id;     /* of run_fd */
  uint64_t run_id_max; /* no later run has a file */
  bool run_fresh;      /* run_fd has no image yet */
  char name[TA_SPOOL_DIR_NAME];
  uint64_t serial;
  uint64_t bytes, bytes_max; /* size of all files, and its limit: TB_IO */
};

/* Opens DIR; creates it if missing. DIR must belong to this user or root, and be writable by no other user. */
TB_MUST tb_rc ta_spool_dir_root(const char *path, struct tb_diag *diag, int *out_fd);

void ta_spool_dir_init(struct ta_spool_dir *s, int root, uint64_t bytes_max);
TB_MUST tb_rc ta_spool_dir_make(struct ta_spool_dir *s, const unsigned char stream[16],
                                struct tb_diag *diag);
TB_MUST tb_rc ta_spool_dir_take(struct ta_spool_dir *s, const char *name, struct tb_diag *diag,
                                struct ta_spool_dir_state *out);
void ta_spool_dir_leave(struct ta_spool_dir *s); /* unlocks; the files stay */
/* Removes the folder and leaves. If a file cannot be removed now, the folder is invalid (ta_spool_dir_take() returns
 * TB_CORRUPT), and the next ta_spool_dir_remove() of it tries again. */
void ta_spool_dir_remove(struct ta_spool_dir *s);
void ta_spool_dir_forked(struct ta_spool_dir *s);

/* Writes the next state over the older of the two. */
TB_MUST tb_rc ta_spool_dir_state(struct ta_spool_dir *s, struct ta_spool_dir_state *state,
                                 struct tb_diag *diag);
/* After an error the run is unchanged, and the call may be repeated with the same piece. */
TB_MUST tb_rc ta_spool_dir_put(struct ta_spool_dir *s, uint32_t salt, const struct ta_piece *piece,
                               const void *frames, struct tb_diag *diag);
void ta_spool_dir_drop(struct ta_spool_dir *s, uint64_t first_id, uint64_t last_id);
/* Frees the disk space of a run's frames between from and to. */
void ta_spool_dir_punch(struct ta_spool_dir *s, uint64_t id, uint64_t from, uint64_t to);

/* Opens a run's file and reads its image; *out_fd is positioned after it. TB_NOTFOUND: no file. TB_IO: a later try may
 * succeed. */
TB_MUST tb_rc ta_spool_dir_open_run(struct ta_spool_dir *s, uint32_t salt, uint64_t id,
                                    struct ta_run_image *out, int *out_fd);
enum { TA_SPOOL_DIR_IMAGE_BYTES = 128 }; /* before the frames */

/* Calls each(self, name) for every entry of a folder. Returns false if some could not be read. */
bool ta_spool_dir_list(int dir, void (*each)(void *self, const char *name), void *self);
bool ta_spool_dir_is_stream(const char *name);
/* Total size of a stream's files. */
uint64_t ta_spool_dir_bytes(int root, const char *name);

#endif

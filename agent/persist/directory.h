/* SPDX-License-Identifier: Apache-2.0 */
/* The spool's files: a folder for each stream, in it a file for each run and one that says what they are worth.
 *
 *   DIR/<stream32>/state      two places for struct ta_spool_dir_state, written in turn; locked while its owner lives
 *   DIR/<stream32>/<id16>     struct ta_run_image with its checksum, then frames (agent/persist/serializer.h)
 *
 * They are for the same machine: numbers lie as it has them. Nothing is synced: files outlive their process, not
 * the machine's power. Folders are 0700, files 0600, no link is followed. The lock goes with the process that holds
 * it, however it ends.
 *
 * Threads   one at a time; ta_spool_dir_forked() in a forked child.
 * Errors    TB_IO with words in diag. TB_AGAIN from take: it has an owner. TB_CORRUPT: it cannot be read.
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
  uint32_t salt; /* of the checksums of all else in the folder */
  uint32_t crc;
};

struct ta_spool_dir {
  int root, dir;      /* -1: none */
  atomic_int lock_fd; /* of the file state, too */
  int run_fd;
  uint64_t run_id;     /* that run_fd is of */
  uint64_t run_id_max; /* no later run has a file */
  bool run_fresh;  /* it has no image yet */
  char name[TA_SPOOL_DIR_NAME];
  uint64_t serial;
  uint64_t bytes, bytes_max; /* in files; TB_IO rather than more */
};

/* Opens DIR, made if it is missing. It must be ours, or root's, and writable by no other user. */
TB_MUST tb_rc ta_spool_dir_root(const char *path, struct tb_diag *diag, int *out_fd);

void ta_spool_dir_init(struct ta_spool_dir *s, int root, uint64_t bytes_max);
TB_MUST tb_rc ta_spool_dir_make(struct ta_spool_dir *s, const unsigned char stream[16],
                                struct tb_diag *diag);
TB_MUST tb_rc ta_spool_dir_take(struct ta_spool_dir *s, const char *name, struct tb_diag *diag,
                                struct ta_spool_dir_state *out);
void ta_spool_dir_leave(struct ta_spool_dir *s); /* what is there stays */
/* All of it, and leaves. A file that cannot be removed now counts no more, and goes with the next
 * ta_spool_dir_remove() that finds it: ta_spool_dir_take() answers TB_CORRUPT. */
void ta_spool_dir_remove(struct ta_spool_dir *s);
void ta_spool_dir_forked(struct ta_spool_dir *s);

/* The next state, over the last but one. */
TB_MUST tb_rc ta_spool_dir_state(struct ta_spool_dir *s, struct ta_spool_dir_state *state,
                                 struct tb_diag *diag);
/* After an error it may be called again with the same piece; the run is as it was before. */
TB_MUST tb_rc ta_spool_dir_put(struct ta_spool_dir *s, uint32_t salt, const struct ta_piece *piece,
                               const void *frames, struct tb_diag *diag);
void ta_spool_dir_drop(struct ta_spool_dir *s, uint64_t first_id, uint64_t last_id);
/* Gives back the room of a run's frames before at. */
void ta_spool_dir_punch(struct ta_spool_dir *s, uint64_t id, uint64_t from, uint64_t to);

/* A run's file for reading: its image, *out_fd behind it. TB_NOTFOUND: there is none. TB_IO: another time it may be read. */
TB_MUST tb_rc ta_spool_dir_open_run(struct ta_spool_dir *s, uint32_t salt, uint64_t id,
                                    struct ta_run_image *out, int *out_fd);
enum { TA_SPOOL_DIR_IMAGE_BYTES = 128 }; /* in front of the frames */

/* Calls each(self, name) for every entry of a folder. False: there may be more, which could not be read. */
bool ta_spool_dir_list(int dir, void (*each)(void *self, const char *name), void *self);
bool ta_spool_dir_is_stream(const char *name);
/* Of the files of a stream that can be looked at. */
uint64_t ta_spool_dir_bytes(int root, const char *name);

#endif

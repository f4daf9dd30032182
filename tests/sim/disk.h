/* SPDX-License-Identifier: Apache-2.0 */
/* A disk in memory that knows what would remain of it after a power cut.
 *
 * Each file has two states: the one that processes see, and the one on the medium; a sync copies the first to the
 * second. So has each folder; a name that is created, moved or deleted is a pending step until its folder is synced. A
 * sync of the file alone does not store the step (POSIX promises no more, ext4 does more).
 *
 * sim_disk_crash() returns the disk after a power cut. Every sector that was not synced has the old bytes, the new ones
 * or a part of each. The file has its old length, its new one, or one between. Each pending step of a folder is done or
 * not, but none without the earlier steps that it needs.
 *
 * A failed sync has written nothing, and the next one will not write these bytes either: they count as clean, as in a
 * Linux page cache. Until the crash a process reads what it wrote.
 *
 * Memory    a disk's files are freed with the disk. Contents are shared by disks until written to.
 * Threads   one.
 */
#ifndef SIM_DISK_H
#define SIM_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/chance.h"

enum { SIM_PAGE = 4096, SIM_SECTOR = 512, SIM_NAME = 64 };

struct sim_image; /* a file's contents */
struct sim_names; /* a folder's */

struct sim_file {
  struct sim_file *next; /* in the disk's list */
  bool is_folder;
  struct sim_image *live, *medium;        /* of a file; the same if nothing is pending */
  struct sim_image *believed;             /* the medium as the kernel sees it; NULL: as it is */
  struct sim_names *names, *synced_names; /* of a folder */
  struct sim_file *twin;                  /* on the disk after the crash that is being made */
};

struct sim_disk {
  struct sim_file *files;
  struct sim_file *root;
  struct sim_step { /* of folders, not synced, in order */
    struct sim_step *next;
    struct sim_file *from_folder, *to_folder; /* NULL: created; deleted */
    char from[SIM_NAME], to[SIM_NAME];
    struct sim_file *file;
    bool needed, left_out;
  } * steps, **steps_tail;
};

struct sim_disk *sim_disk_new(void);
void sim_disk_free(struct sim_disk *disk);

/* Patterns of what survives a power cut. The first ones are fixed, the others are random: 0 nothing that was not synced
 * · 1 all of it · 2 the names, not the bytes · 3 the bytes, not the names */
enum { SIM_PLAIN_PATTERNS = 4 };
struct sim_disk *sim_disk_crash(struct sim_disk *disk, unsigned pattern, struct sim_chance *chance);

/* Names. Each returns 0 or an errno. */
struct sim_file *sim_find(const struct sim_file *folder, const char *name); /* NULL: none */
const char *sim_name_at(const struct sim_file *folder, size_t i);           /* NULL: no more */
struct sim_file *sim_make(struct sim_disk *disk, struct sim_file *folder, const char *name,
                          bool is_folder);
int sim_unlink(struct sim_disk *disk, struct sim_file *folder, const char *name, bool is_folder);
int sim_rename(struct sim_disk *disk, struct sim_file *from_folder, const char *from,
               struct sim_file *to_folder, const char *to, bool no_replace);
void sim_sync_folder(struct sim_disk *disk, struct sim_file *folder);

/* Bytes. */
uint64_t sim_size(const struct sim_file *file);
size_t sim_read(const struct sim_file *file, void *out, size_t n, uint64_t offset);
void sim_write(struct sim_file *file, const void *bytes, size_t n, uint64_t offset);
void sim_resize(struct sim_file *file, uint64_t bytes);
void sim_sync_file(struct sim_file *file);
void sim_fail_sync(struct sim_file *file);
/* Flips a bit on the medium; the file must have no pending change. */
void sim_rot(struct sim_file *file, uint64_t offset, unsigned bit);
uint64_t sim_data_end(const struct sim_file *file); /* after the last page that was written */
/* Returns a number unique to these contents; changes with every write. */
uint64_t sim_version(const struct sim_file *file);

#endif

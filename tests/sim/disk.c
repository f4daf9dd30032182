/* SPDX-License-Identifier: Apache-2.0 */
/* Folders, and their pending steps. Contents are in image.c, crashes in crash.c. */
#include "sim/disk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/disk_private.h"

static const struct sim_names no_names;

static struct sim_names *names_copy(const struct sim_names *from) {
  struct sim_names *names = sim_calloc(1, sizeof *names);

  names->n = from->n;
  names->cap = from->n + 4;
  names->items = sim_malloc(names->cap * sizeof *names->items);
  if (from->n > 0) memcpy(names->items, from->items, from->n * sizeof *names->items);
  return names;
}

static uint32_t hash_of(const char *name) {
  uint32_t hash = 2166136261u;

  for (; *name != '\0'; name++) hash = (hash ^ (unsigned char)*name) * 16777619u;
  return hash;
}

static struct sim_entry *find_entry(const struct sim_names *names, const char *name) {
  uint32_t hash = hash_of(name);

  for (size_t i = 0; i < names->n; i++)
    if (names->items[i].hash == hash && strcmp(names->items[i].name, name) == 0)
      return &names->items[i];
  return NULL;
}

static void append(struct sim_names *names, const struct sim_entry *entry) {
  if (names->n == names->cap) {
    names->cap = 2 * names->cap + 4;
    names->items = sim_reallocarray(names->items, names->cap, sizeof *names->items);
  }
  names->items[names->n++] = *entry;
}

void sim__names_set(struct sim_names *names, const char *name, struct sim_file *file) {
  struct sim_entry *entry = find_entry(names, name);

  if (entry != NULL) {
    entry->file = file;
    return;
  }
  struct sim_entry fresh = { .hash = hash_of(name), .file = file };
  if (strlen(name) >= sizeof fresh.name) abort();
  strcpy(fresh.name, name);
  append(names, &fresh);
}

void sim__names_fill(struct sim_names *names, const struct sim_names *from,
                     struct sim_file *(*file_of)(void *self, struct sim_file *file), void *self) {
  for (size_t i = 0; i < from->n; i++) {
    struct sim_entry entry = from->items[i];
    entry.file = file_of(self, entry.file);
    append(names, &entry);
  }
}

void sim__names_drop(struct sim_names *names, const char *name) {
  struct sim_entry *entry = find_entry(names, name);

  if (entry == NULL) return;
  size_t behind = (size_t)(names->items + names->n - entry) - 1;
  memmove(entry, entry + 1, behind * sizeof *entry);
  names->n--;
}

void sim__names_free(struct sim_names *names) {
  if (names == NULL) return;
  free(names->items);
  free(names);
}

struct sim_file *sim__file_new(struct sim_disk *disk, bool is_folder) {
  struct sim_file *file = sim_calloc(1, sizeof *file);

  file->next = disk->files;
  disk->files = file;
  file->is_folder = is_folder;
  if (is_folder) {
    file->names = names_copy(&no_names);
    file->synced_names = names_copy(&no_names);
  } else {
    file->live = sim__image_new();
    file->medium = sim__image_share(file->live);
  }
  return file;
}

struct sim_disk *sim_disk_new(void) {
  struct sim_disk *disk = sim_calloc(1, sizeof *disk);

  disk->steps_tail = &disk->steps;
  disk->root = sim__file_new(disk, true);
  return disk;
}

void sim_disk_free(struct sim_disk *disk) {
  if (disk == NULL) return;
  for (struct sim_file *file = disk->files, *next; file != NULL; file = next) {
    next = file->next;
    sim__image_free(file->live);
    sim__image_free(file->medium);
    sim__image_free(file->believed);
    sim__names_free(file->names);
    sim__names_free(file->synced_names);
    free(file);
  }
  for (struct sim_step *step = disk->steps, *next; step != NULL; step = next) {
    next = step->next;
    free(step);
  }
  free(disk);
}

/* ---- the view of processes */

struct sim_file *sim_find(const struct sim_file *folder, const char *name) {
  const struct sim_entry *entry = find_entry(folder->names, name);

  return entry == NULL ? NULL : entry->file;
}

const char *sim_name_at(const struct sim_file *folder, size_t i) {
  return i < folder->names->n ? folder->names->items[i].name : NULL;
}

void sim__step_apply(const struct sim_step *step, struct sim_names *from, struct sim_names *to,
                     struct sim_file *file) {
  if (from != NULL) sim__names_drop(from, step->from);
  if (to != NULL) sim__names_set(to, step->to, file);
}

static void take_step(struct sim_disk *disk, struct sim_file *from_folder, const char *from,
                      struct sim_file *to_folder, const char *to, struct sim_file *file) {
  struct sim_step *step = sim_calloc(1, sizeof *step);

  *step = (struct sim_step){ .from_folder = from_folder, .to_folder = to_folder, .file = file };
  if (from != NULL) strncpy(step->from, from, sizeof step->from - 1);
  if (to != NULL) strncpy(step->to, to, sizeof step->to - 1);
  sim__step_apply(step, from_folder != NULL ? from_folder->names : NULL,
                  to_folder != NULL ? to_folder->names : NULL, file);
  *disk->steps_tail = step;
  disk->steps_tail = &step->next;
}

struct sim_file *sim_make(struct sim_disk *disk, struct sim_file *folder, const char *name,
                          bool is_folder) {
  struct sim_file *file = sim__file_new(disk, is_folder);

  take_step(disk, NULL, NULL, folder, name, file);
  return file;
}

int sim_unlink(struct sim_disk *disk, struct sim_file *folder, const char *name, bool is_folder) {
  struct sim_file *file = sim_find(folder, name);

  if (file == NULL) return ENOENT;
  if (file->is_folder != is_folder) return is_folder ? ENOTDIR : EISDIR;
  if (is_folder && sim_name_at(file, 0) != NULL) return ENOTEMPTY;
  take_step(disk, folder, name, NULL, NULL, file);
  return 0;
}

int sim_rename(struct sim_disk *disk, struct sim_file *from_folder, const char *from,
               struct sim_file *to_folder, const char *to, bool no_replace) {
  struct sim_file *file = sim_find(from_folder, from);

  if (file == NULL) return ENOENT;
  if (no_replace && sim_find(to_folder, to) != NULL) return EEXIST;
  take_step(disk, from_folder, from, to_folder, to, file);
  return 0;
}

/* ---- the medium */

static bool same_place(const struct sim_file *a, const char *a_name, const struct sim_file *b,
                       const char *b_name) {
  return a != NULL && a == b && strcmp(a_name, b_name) == 0;
}

bool sim__step_needs(const struct sim_step *later, const struct sim_step *step) {
  return same_place(later->from_folder, later->from, step->from_folder, step->from) ||
         same_place(later->from_folder, later->from, step->to_folder, step->to) ||
         same_place(later->to_folder, later->to, step->from_folder, step->from) ||
         same_place(later->to_folder, later->to, step->to_folder, step->to);
}

static void mark_needed(struct sim_disk *disk, const struct sim_file *folder) {
  bool more = true;

  for (struct sim_step *step = disk->steps; step != NULL; step = step->next)
    step->needed = step->from_folder == folder || step->to_folder == folder;
  while (more) { /* until none is needed by one that is */
    more = false;
    for (struct sim_step *later = disk->steps; later != NULL; later = later->next)
      for (struct sim_step *step = disk->steps; later->needed && step != later; step = step->next)
        if (!step->needed && sim__step_needs(later, step)) step->needed = more = true;
  }
}

void sim_sync_folder(struct sim_disk *disk, struct sim_file *folder) {
  struct sim_step **at = &disk->steps, *step;

  mark_needed(disk, folder);
  while ((step = *at) != NULL) {
    if (!step->needed) {
      at = &step->next;
      continue;
    }
    sim__step_apply(step, step->from_folder != NULL ? step->from_folder->synced_names : NULL,
                    step->to_folder != NULL ? step->to_folder->synced_names : NULL, step->file);
    *at = step->next;
    free(step);
  }
  disk->steps_tail = at;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the disk after a power cut. */
#include <string.h>

#include "sim/disk_private.h"

enum fate { ALL_OLD, ALL_NEW, FIRST_PART_NEW, EACH_BY_CHANCE };

struct crash {
  struct sim_disk *to;
  enum fate names, bytes;
  struct sim_chance *chance;
};

/* ---- bytes */

static void mix_sector(struct sim_chance *chance, unsigned char *into, const unsigned char *live) {
  switch (sim_below(chance, 4)) {
  case 0: break; /* as it was */
  case 1: /* torn */ memcpy(into, live, (size_t)sim_below(chance, SIM_SECTOR)); break;
  default: memcpy(into, live, SIM_SECTOR);
  }
}

static uint64_t size_after(const struct crash *crash, uint64_t was, uint64_t is) {
  uint64_t least = was < is ? was : is, most = was < is ? is : was;

  if (crash->bytes == ALL_OLD) return was;
  if (crash->bytes == ALL_NEW) return is;
  switch (sim_below(crash->chance, 3)) {
  case 0: return was;
  case 1: return is;
  default: return least + sim_below(crash->chance, most - least + 1);
  }
}

/* Returns the file's bytes after the crash; those not yet on the medium are in `live`. */
static struct sim_image *torn_image(const struct crash *crash, struct sim_image *medium,
                                    struct sim_image *live) {
  if (medium == live || crash->bytes == ALL_OLD) return sim__image_share(medium);
  if (crash->bytes == ALL_NEW) return sim__image_share(live);
  struct sim_image *torn = sim__image_share(medium);
  uint64_t size = size_after(crash, medium->size, live->size);
  size_t npages = live->npages > medium->npages ? live->npages : medium->npages;
  size_t new_pages = (size_t)sim_below(crash->chance, npages + 1);

  sim__image_own(&torn);
  sim__image_resize(torn, npages * SIM_PAGE);
  for (size_t i = 0; i < npages; i++) {
    const unsigned char *bytes = sim__page_bytes(live, i);
    if (bytes == sim__page_bytes(medium, i)) continue;
    if (crash->bytes == FIRST_PART_NEW && i > new_pages) break;
    unsigned char *into = sim__image_page(torn, i);
    if (crash->bytes == FIRST_PART_NEW && i < new_pages) {
      memcpy(into, bytes, SIM_PAGE);
      continue;
    }
    for (size_t at = 0; at < SIM_PAGE; at += SIM_SECTOR)
      mix_sector(crash->chance, into + at, bytes + at);
  }
  sim__image_resize(torn, size);
  return torn;
}

/* ---- names */

static struct sim_file *twin_of(void *self, struct sim_file *file) {
  struct crash *crash = self;

  if (file->twin != NULL) return file->twin;
  struct sim_file *twin = file->twin = sim__file_new(crash->to, file->is_folder);
  if (!file->is_folder) {
    sim__image_free(twin->live);
    sim__image_free(twin->medium);
    /* Bytes that a failed sync dropped exist only in memory. */
    twin->medium = file->believed != NULL ? sim__image_share(file->medium)
                                          : torn_image(crash, file->medium, file->live);
    twin->live = sim__image_share(twin->medium);
    return twin;
  }
  sim__names_fill(twin->names, file->synced_names, twin_of, crash);
  return twin;
}

static bool is_left_out(const struct crash *crash, const struct sim_disk *disk,
                        const struct sim_step *step) {
  for (const struct sim_step *before = disk->steps; before != step; before = before->next)
    if (before->left_out && (crash->names == FIRST_PART_NEW || sim__step_needs(step, before)))
      return true;
  switch (crash->names) {
  case ALL_OLD: return true;
  case ALL_NEW: return false;
  case FIRST_PART_NEW: return sim_once_in(crash->chance, 3);
  default: return sim_once_in(crash->chance, 2);
  }
}

static void take_steps(struct crash *crash, const struct sim_disk *disk) {
  for (struct sim_step *step = disk->steps; step != NULL; step = step->next) {
    step->left_out = is_left_out(crash, disk, step);
    if (step->left_out) continue;
    struct sim_file *from = step->from_folder, *to = step->to_folder;
    sim__step_apply(step, from != NULL ? twin_of(crash, from)->names : NULL,
                    to != NULL ? twin_of(crash, to)->names : NULL,
                    to != NULL ? twin_of(crash, step->file) : NULL);
  }
}

static struct sim_file *same(void *self, struct sim_file *file) {
  (void)self;
  return file;
}

/* Settles the crashed disk: all that it shows is on its medium. */
static void settle(struct sim_disk *disk) {
  for (struct sim_file *file = disk->files; file != NULL; file = file->next)
    if (file->is_folder) sim__names_fill(file->synced_names, file->names, same, NULL);
}

struct sim_disk *sim_disk_crash(struct sim_disk *disk, unsigned pattern,
                                struct sim_chance *chance) {
  static const enum fate plain[SIM_PLAIN_PATTERNS][2] = {
    { ALL_OLD, ALL_OLD }, { ALL_NEW, ALL_NEW }, { ALL_NEW, ALL_OLD }, { ALL_OLD, ALL_NEW }
  };
  struct crash crash = { .to = sim_calloc(1, sizeof *crash.to), .chance = chance };

  if (pattern < SIM_PLAIN_PATTERNS) {
    crash.names = plain[pattern][0];
    crash.bytes = plain[pattern][1];
  } else {
    crash.names = (enum fate)sim_below(chance, 4);
    crash.bytes = (enum fate)(FIRST_PART_NEW + sim_below(chance, 2));
  }
  crash.to->steps_tail = &crash.to->steps;
  crash.to->root = twin_of(&crash, disk->root);
  take_steps(&crash, disk);
  settle(crash.to);
  for (struct sim_file *file = disk->files; file != NULL; file = file->next) file->twin = NULL;
  return crash.to;
}

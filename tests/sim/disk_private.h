/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by disk.c, image.c and crash.c. */
#ifndef SIM_DISK_PRIVATE_H
#define SIM_DISK_PRIVATE_H

#include <stdlib.h>

#include "sim/disk.h"
#include "sim/memory.h"

struct sim_page {
  unsigned refs;
  unsigned char bytes[SIM_PAGE];
};

/* Written to only by its single owner. */
struct sim_image {
  unsigned refs;
  uint64_t version;
  uint64_t size;
  size_t npages;
  struct sim_page **pages; /* NULL: never written, zeros */
};

struct sim_names {
  struct sim_entry {
    uint32_t hash; /* of the name */
    char name[SIM_NAME];
    struct sim_file *file;
  } * items;
  size_t n, cap;
};

struct sim_file *sim__file_new(struct sim_disk *disk, bool is_folder);
void sim__names_set(struct sim_names *names, const char *name, struct sim_file *file);
/* Copies the names of another image into an empty one, for files of its own. */
void sim__names_fill(struct sim_names *names, const struct sim_names *from,
                     struct sim_file *(*file_of)(void *self, struct sim_file *file), void *self);
void sim__names_drop(struct sim_names *names, const char *name);
void sim__names_free(struct sim_names *names);
void sim__step_apply(const struct sim_step *step, struct sim_names *from, struct sim_names *to,
                     struct sim_file *file);
/* Returns whether both steps are about one name, so that the later one is meaningless without the
 * other. */
bool sim__step_needs(const struct sim_step *later, const struct sim_step *step);

struct sim_image *sim__image_new(void);
struct sim_image *sim__image_share(struct sim_image *image);
void sim__image_free(struct sim_image *image);
struct sim_image *sim__image_own(struct sim_image **slot); /* a copy if others have it too */
unsigned char *sim__image_page(struct sim_image *image, size_t i); /* to be written to */
void sim__image_resize(struct sim_image *image, uint64_t bytes);
const unsigned char *sim__page_bytes(const struct sim_image *image, size_t i); /* zeros if none */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Contents of files: pages that are shared until one of their owners writes. */
#include <string.h>

#include "sim/disk_private.h"

static uint64_t versions;

struct sim_image *sim__image_new(void) {
  struct sim_image *image = sim_calloc(1, sizeof *image);

  image->refs = 1;
  image->version = ++versions;
  return image;
}

struct sim_image *sim__image_share(struct sim_image *image) {
  image->refs++;
  return image;
}

static void page_free(struct sim_page *page) {
  if (page != NULL && --page->refs == 0) free(page);
}

void sim__image_free(struct sim_image *image) {
  if (image == NULL || --image->refs > 0) return;
  for (size_t i = 0; i < image->npages; i++) page_free(image->pages[i]);
  free(image->pages);
  free(image);
}

struct sim_image *sim__image_own(struct sim_image **slot) {
  struct sim_image *image = *slot;

  if (image->refs > 1) {
    struct sim_image *copy = sim__image_new();
    copy->size = image->size;
    copy->npages = image->npages;
    copy->pages = sim_calloc(image->npages + 1, sizeof *copy->pages);
    for (size_t i = 0; i < image->npages; i++)
      if ((copy->pages[i] = image->pages[i]) != NULL) copy->pages[i]->refs++;
    image->refs--;
    *slot = image = copy;
  }
  image->version = ++versions;
  return image;
}

unsigned char *sim__image_page(struct sim_image *image, size_t i) {
  struct sim_page *page = image->pages[i];

  if (page == NULL) {
    page = sim_calloc(1, sizeof *page);
  } else if (page->refs > 1) {
    struct sim_page *copy = sim_malloc(sizeof *copy);
    memcpy(copy->bytes, page->bytes, SIM_PAGE);
    page->refs--;
    page = copy;
  } else {
    return page->bytes;
  }
  page->refs = 1;
  image->pages[i] = page;
  return page->bytes;
}

const unsigned char *sim__page_bytes(const struct sim_image *image, size_t i) {
  static const unsigned char zeros[SIM_PAGE];

  return i < image->npages && image->pages[i] != NULL ? image->pages[i]->bytes : zeros;
}

void sim__image_resize(struct sim_image *image, uint64_t bytes) {
  size_t npages = (size_t)((bytes + SIM_PAGE - 1) / SIM_PAGE);

  if (bytes < image->size) {
    for (size_t i = npages; i < image->npages; i++) page_free(image->pages[i]);
    if (npages < image->npages) image->npages = npages;
    size_t rest = (size_t)(bytes % SIM_PAGE);
    if (rest != 0 && image->pages[npages - 1] != NULL)
      memset(sim__image_page(image, npages - 1) + rest, 0, SIM_PAGE - rest);
  }
  if (npages > image->npages) {
    image->pages = sim_reallocarray(image->pages, npages, sizeof *image->pages);
    memset(image->pages + image->npages, 0, (npages - image->npages) * sizeof *image->pages);
    image->npages = npages;
  }
  image->size = bytes;
}

uint64_t sim_size(const struct sim_file *file) {
  return file->live->size;
}

uint64_t sim_version(const struct sim_file *file) {
  return file->live->version;
}

size_t sim_read(const struct sim_file *file, void *out, size_t n, uint64_t offset) {
  const struct sim_image *image = file->live;
  unsigned char *at = out;

  if (offset >= image->size) return 0;
  if (n > image->size - offset) n = (size_t)(image->size - offset);
  for (size_t left = n; left > 0;) {
    size_t in = (size_t)(offset % SIM_PAGE), part = SIM_PAGE - in < left ? SIM_PAGE - in : left;
    memcpy(at, sim__page_bytes(image, (size_t)(offset / SIM_PAGE)) + in, part);
    at += part;
    offset += part;
    left -= part;
  }
  return n;
}

void sim_write(struct sim_file *file, const void *bytes, size_t n, uint64_t offset) {
  struct sim_image *image = sim__image_own(&file->live);
  const unsigned char *at = bytes;

  if (offset + n > image->size) sim__image_resize(image, offset + n);
  while (n > 0) {
    size_t in = (size_t)(offset % SIM_PAGE), part = SIM_PAGE - in < n ? SIM_PAGE - in : n;
    memcpy(sim__image_page(image, (size_t)(offset / SIM_PAGE)) + in, at, part);
    at += part;
    offset += part;
    n -= part;
  }
}

void sim_resize(struct sim_file *file, uint64_t bytes) {
  sim__image_resize(sim__image_own(&file->live), bytes);
}

uint64_t sim_data_end(const struct sim_file *file) {
  size_t n = file->live->npages;

  while (n > 0 && file->live->pages[n - 1] == NULL) n--;
  return n * SIM_PAGE < file->live->size ? n * SIM_PAGE : file->live->size;
}

/* Copies to the medium the pages written since the kernel last thought them clean; the others, which a failed sync
 * dropped, are not copied. */
static void sync_believed(struct sim_file *file) {
  struct sim_image *medium = sim__image_own(&file->medium);

  sim__image_resize(medium, file->live->size);
  for (size_t i = 0; i < medium->npages; i++) {
    if (sim__page_bytes(file->live, i) == sim__page_bytes(file->believed, i)) continue;
    memcpy(sim__image_page(medium, i), sim__page_bytes(file->live, i), SIM_PAGE);
  }
  sim__image_free(file->believed);
  file->believed = sim__image_share(file->live);
}

void sim_sync_file(struct sim_file *file) {
  if (file->believed != NULL) {
    sync_believed(file);
    return;
  }
  if (file->medium == file->live) return;
  sim__image_free(file->medium);
  file->medium = sim__image_share(file->live);
}

void sim_fail_sync(struct sim_file *file) {
  if (file->medium == file->live) return;
  sim__image_free(file->believed);
  file->believed = sim__image_share(file->live);
}

void sim_rot(struct sim_file *file, uint64_t offset, unsigned bit) {
  unsigned char byte;

  if (sim_read(file, &byte, 1, offset) != 1) return;
  byte ^= (unsigned char)(1u << bit);
  sim_write(file, &byte, 1, offset);
  sim_sync_file(file);
}

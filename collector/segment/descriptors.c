/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/segment/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "collector/segment/writer.h"

void tc_descriptors_init(struct tc_descriptors *descriptors, size_t max) {
  TAILQ_INIT(&descriptors->open);
  descriptors->n = 0;
  descriptors->max = max;
}

static void join(struct tc_descriptors *descriptors, struct tc_segment *segment) {
  TAILQ_INSERT_TAIL(&descriptors->open, segment, in_use);
  descriptors->n++;
}

static void leave(struct tc_descriptors *descriptors, struct tc_segment *segment) {
  TAILQ_REMOVE(&descriptors->open, segment, in_use);
  descriptors->n--;
}

static void close_file(struct tc_descriptors *descriptors, struct tc_segment *segment) {
  leave(descriptors, segment);
  close(segment->fd);
  segment->fd = -1;
  if (segment->written != segment->synced) segment->unsure = true;
}

/* Closes the longest unused files, but none with queued bytes, which is about to be written. */
static void make_room(struct tc_descriptors *descriptors, const struct tc_segment *used) {
  struct tc_segment *next;

  for (struct tc_segment *segment = TAILQ_FIRST(&descriptors->open);
       descriptors->n > descriptors->max && segment != used; segment = next) {
    next = TAILQ_NEXT(segment, in_use);
    if (segment->nqueue == 0) close_file(descriptors, segment);
  }
}

void tc_descriptors_add(struct tc_descriptors *descriptors, struct tc_segment *segment) {
  segment->descriptors = descriptors;
  join(descriptors, segment);
  make_room(descriptors, segment);
}

tb_rc tc_descriptors_use(struct tc_segment *segment, struct tb_diag *diag) {
  struct tc_descriptors *descriptors = segment->descriptors;

  if (descriptors == NULL) return TB_OK;
  if (segment->fd >= 0) {
    leave(descriptors, segment);
  } else {
    segment->fd = openat(segment->open_fd, segment->name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (segment->fd < 0)
      return tb_fail(diag, tc_errno_rc(errno), "open/%s: %s", segment->name, strerror(errno));
  }
  join(descriptors, segment);
  make_room(descriptors, segment);
  return TB_OK;
}

void tc_descriptors_remove(struct tc_segment *segment) {
  if (segment->descriptors != NULL && segment->fd >= 0) leave(segment->descriptors, segment);
  segment->descriptors = NULL;
}

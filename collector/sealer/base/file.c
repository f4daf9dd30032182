/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/sealer/base/file.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/grow.h"
#include "collector/segment/proof.h"

const char *tc__end_name(enum tc__end end) {
  static const char *const names[] = { NULL, "clean", "exec", "unclean" };

  return names[end];
}

void tc__archive_path(const char *day, const char *stream_hex, uint64_t first_gen, char out[192]) {
  snprintf(out, 192, "archive/%.10s/%.32s/%016" PRIx64 ".trace", day, stream_hex, first_gen);
}

void tc__verdicts_free(struct tc__verdict *verdicts) {
  while (verdicts != NULL) {
    struct tc__verdict *next = verdicts->next;
    free(verdicts->verdict);
    free(verdicts);
    verdicts = next;
  }
}

struct tc__file *tc__file_new(struct tc__stream *stream) {
  struct tc__file *file = calloc(1, sizeof *file);

  if (file == NULL) return NULL;
  file->stream = stream;
  file->dir_fd = -1;
  return file;
}

void tc__file_free(struct tc__file *file) {
  if (file == NULL) return;
  if (file->dir_fd >= 0) close(file->dir_fd);
  tc_segment_free(file->segment);
  tc_meta_free(file->meta);
  tc__losses_fini(&file->losses);
  tc__verdicts_free(file->late);
  free(file);
}

static const bool may_become[TC__FILE_STATES][TC__FILE_STATES] = {
  [TC__FILE_IS_OPEN] = { [TC__FILE_WAITS] = true },
  [TC__FILE_WAITS] = { [TC__FILE_HAS_META] = true },
  [TC__FILE_HAS_META] = { [TC__FILE_HAS_NAMES] = true },
};

const char *tc__file_check(const struct tc__file *file) {
  bool has_meta = file->state >= TC__FILE_HAS_META, is_open = file->state == TC__FILE_IS_OPEN;
  const struct tc_segment *segment = file->segment;

  if (has_meta != (file->meta != NULL)) return "meta and state do not match";
  if (has_meta && segment == NULL) return "a note with a meta";
  if (has_meta && file->dir_fd < 0) return "a meta without a folder";
  if (!has_meta && file->late != NULL) return "a late verdict without a meta";
  if (is_open && segment == NULL) return "an open file without bytes";
  if (!is_open && file->is_dirty && segment == NULL) return "a dirty note";
  if (!is_open && segment != NULL && (segment->in_gen || segment->ngens == 0))
    return "a run was closed in the middle of a generation";
  if (is_open && file->end != TC__GOES_ON) return "the end of a stream in an open file";
  if (segment != NULL && file->shown.gens > segment->ngens) return "more rows than generations";
  return NULL;
}

bool tc__is_proven(const struct tc__file *file) {
  return file->segment == NULL || tc_segment_is_proven(file->segment);
}

void tc__file_becomes(struct tc__file *file, enum tc__file_state state) {
  assert(may_become[file->state][state]);
  file->state = state;
  assert(tc__file_check(file) == NULL);
}

void tc__queue_init(struct tc__file_queue *queue) {
  *queue = (struct tc__file_queue){ .tail = &queue->first };
}

void tc__queue_fini(struct tc__file_queue *queue) {
  while (queue->n > 0) tc__file_free(tc__queue_take(queue));
}

void tc__queue_put(struct tc__file_queue *queue, struct tc__file *file) {
  tc__file_becomes(file, TC__FILE_WAITS);
  *queue->tail = file;
  queue->tail = &file->next;
  queue->n++;
  if (file->segment != NULL) queue->bytes += file->segment->bytes;
}

struct tc__file *tc__queue_take(struct tc__file_queue *queue) {
  struct tc__file *file = queue->first;

  queue->first = file->next;
  if (--queue->n == 0) tc__queue_init(queue);
  return file;
}

tb_rc tc__dirty_add(struct tc__dirty_files *dirty, struct tc__file *file) {
  if (file->is_dirty) return TB_OK;
  TB_TRY(TB_GROW(dirty->items, dirty->cap, dirty->n));
  dirty->items[dirty->n++] = file;
  file->is_dirty = true;
  return TB_OK;
}

void tc__dirty_remove(struct tc__dirty_files *dirty, struct tc__file *file) {
  if (!file->is_dirty) return;
  file->is_dirty = false;
  for (size_t i = dirty->n; i-- > 0;) { /* usually the last one */
    if (dirty->items[i] != file) continue;
    dirty->items[i] = dirty->items[--dirty->n];
    return;
  }
}

tb_rc tc__dirty_flush(struct tc__dirty_files *dirty, bool to_disk, struct tb_diag *diag) {
  while (dirty->n > 0) {
    struct tc__file *file = dirty->items[dirty->n - 1];
    TB_TRY(tc_segment_flush(file->segment, diag));
    if (to_disk) tc_segment_to_disk(file->segment, false);
    file->is_dirty = false;
    dirty->n--;
  }
  return TB_OK;
}

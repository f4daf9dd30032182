/* SPDX-License-Identifier: Apache-2.0 */
/* What ordering said of a generation joins its meta, whenever that is: before the file is published it
 * waits in memory, afterwards the meta is rewritten by rename. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/archiver_private.h"

static void set_verdict(struct tc_segment_gen *gen, const struct tc_verdict *verdict) {
  free(gen->verdict.reason);
  gen->verdict =
      (struct tc_segment_verdict){ .code = verdict->code,
                                   .events = verdict->events,
                                   .offset = verdict->offset,
                                   .first_ns = verdict->first_ns,
                                   .last_ns = verdict->last_ns,
                                   .thread = verdict->thread,
                                   .reason = verdict->reason[0] != '\0' ? strdup(verdict->reason)
                                                                        : NULL };
}

static struct tc_segment_gen *find_gen(const struct tc__file *file, uint64_t gen) {
  if (file == NULL || file->segment == NULL) return NULL;
  for (size_t i = 0; i < file->segment->ngens; i++)
    if (file->segment->gens[i].gen == gen) return &file->segment->gens[i];
  return NULL;
}

/* False: no file that is not yet published has this generation. Else the verdict is taken. */
static bool set_in_file(struct tc__file *file, struct tc_verdict *verdict) {
  struct tc_segment_gen *gen = find_gen(file, verdict->gen);
  struct tc__verdict *item;

  if (gen == NULL) return false;
  if (file->meta == NULL) {
    set_verdict(gen, verdict);
    free(verdict);
    return true;
  }
  /* The disk failed between its meta and its name. */
  item = calloc(1, sizeof *item);
  if (item == NULL) {
    free(verdict); /* stays pending: ordered again after the next start */
    return true;
  }
  *item = (struct tc__verdict){ .next = file->late, .verdict = verdict };
  file->late = item;
  return true;
}

void tc__verdicts_free(struct tc__verdict *verdicts) {
  while (verdicts != NULL) {
    struct tc__verdict *next = verdicts->next;
    free(verdicts->verdict);
    free(verdicts);
    verdicts = next;
  }
}

void tc__take_late(struct tc_archiver *archiver, struct tc__file *file) {
  for (struct tc__verdict *item = file->late; item != NULL; item = item->next)
    tc__take_verdict(archiver, file->stream, TB_MOVE(item->verdict));
}

void tc__take_verdict(struct tc_archiver *archiver, struct tc__stream *stream,
                      struct tc_verdict *verdict) {
  if (set_in_file(stream->open, verdict)) return;
  for (struct tc__file *file = archiver->queue; file != NULL; file = file->next)
    if (file->stream == stream && set_in_file(file, verdict)) return;
  struct tc__recent *recent = stream->recents;
  while (recent != NULL && (verdict->gen < recent->first_gen || verdict->gen > recent->last_gen))
    recent = recent->next;
  struct tc__verdict *item = recent == NULL ? NULL : calloc(1, sizeof *item);
  if (item == NULL) {
    free(verdict);
    return;
  }
  if (recent->pending > 0) recent->pending--;
  recent->queued++;
  *item = (struct tc__verdict){ .stream = stream, .recent = recent, .verdict = verdict };
  *archiver->verdicts_tail = item;
  archiver->verdicts_tail = &item->next;
}

static void change_verdict(void *self, tc_meta *meta) {
  const struct tc_verdict *verdict = self;

  for (size_t i = 0; i < meta->n_generations; i++) {
    Tracecollect__V1__GenerationMeta *gen = meta->generations[i];
    if (gen->gen != verdict->gen) continue;
    gen->events = verdict->events;
    gen->first_ns = verdict->first_ns;
    gen->last_ns = verdict->last_ns;
    if (gen->verdict == NULL) {
      gen->verdict = malloc(sizeof *gen->verdict);
      if (gen->verdict == NULL) return;
      tracecollect__v1__verdict__init(gen->verdict);
    }
    char *reason = strdup(verdict->reason);
    if (reason != NULL) {
      if (gen->verdict->reason != NULL && *gen->verdict->reason != '\0') free(gen->verdict->reason);
      gen->verdict->reason = reason;
    }
    gen->verdict->code = (Tracecollect__V1__VerdictCode)verdict->code;
    gen->verdict->thread = verdict->thread;
    gen->verdict->offset = verdict->offset;
  }
}

static void drop_recent(struct tc__stream *stream, struct tc__recent *recent) {
  struct tc__recent **at = &stream->recents;

  while (*at != recent) at = &(*at)->next;
  *at = recent->next;
  if (stream->recents_tail == &recent->next) stream->recents_tail = at;
  free(recent);
}

/* Whoever asks for it from here on reads it from the disk. Without this the archive of a busy collector
 * would push everything else of its host out of the page cache, and each new segment would take pages
 * that are new to the machine: in a virtual one the dearest part of writing a file. */
static void leave_page_cache(struct tc_archiver *archiver, const struct tc__verdict *item) {
  char path[192];

  if (!archiver->opt.durable) return; /* then it may not be on the disk yet */
  tc__archive_path(item->recent->day, item->stream->hex, item->recent->first_gen, path);
  int fd = openat(archiver->opt.dirs->state, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return; /* retention took it */
  (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  close(fd);
}

static tb_rc apply_verdicts(struct tc_archiver *archiver, struct tb_diag *diag) {
  while (archiver->verdicts != NULL) {
    struct tc__verdict *item = archiver->verdicts;
    tb_rc rc = tc__amend(archiver, item->stream->hex, item->recent->day, item->recent->first_gen,
                         change_verdict, item->verdict, diag);
    if (rc == TB_BUDGET || rc == TB_IO || rc == TB_NOMEM) return rc;
    tb_diag_clear(diag);
    archiver->verdicts = item->next;
    if (item->next == NULL) archiver->verdicts_tail = &archiver->verdicts;
    item->recent->queued--;
    if (item->recent->pending == 0 && item->recent->queued == 0) {
      leave_page_cache(archiver, item);
      drop_recent(item->stream, item->recent);
    }
    free(item->verdict);
    free(item);
  }
  return TB_OK;
}

tb_rc tc__apply_verdicts(struct tc_archiver *archiver, struct tb_diag *diag) {
  struct tb_diag words = { 0 };

  if (archiver->verdicts == NULL) return TB_OK;
  if (archiver->catalog != NULL && tc_catalog_begin(archiver->catalog, &words) != TB_OK)
    tc__catalog_failed(archiver, &words);
  tb_rc rc = apply_verdicts(archiver, diag);
  if (archiver->catalog != NULL && !archiver->catalog_stale &&
      tc_catalog_commit(archiver->catalog, &words) != TB_OK)
    tc__catalog_failed(archiver, &words);
  return rc;
}

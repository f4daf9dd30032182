/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/sealer/verdicts/verdicts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/sealer/catalog/meta.h"

enum { FOLDERS_AT_ONCE = 64 };

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
  /* Generations are consecutive, so the index is known. */
  const struct tc_segment *segment = file->segment;
  uint64_t i = segment->ngens == 0 ? 0 : gen - segment->gens[0].gen;
  return i < segment->ngens && segment->gens[i].gen == gen ? &segment->gens[i] : NULL;
}

/* Returns false if the file does not have this generation. Otherwise takes ownership of the verdict. */
static bool set_in_file(struct tc__file *file, struct tc_verdict *verdict) {
  struct tc_segment_gen *gen = find_gen(file, verdict->gen);
  struct tc__verdict *item;

  if (gen == NULL) return false;
  if (file->state < TC__FILE_HAS_META) {
    set_verdict(gen, verdict);
    file->shown.verdicts = false;
    /* Go's reader stops after a broken generation: later ones are better off in a file of their own. */
    file->broken |= verdict->code == TRACECOLLECT__V1__VERDICT_CODE__VERDICT_BROKEN;
    free(verdict);
    return true;
  }
  /* The meta is written but not published, as the disk failed in between. */
  item = calloc(1, sizeof *item);
  if (item == NULL) {
    free(verdict); /* the verdict stays pending: the next start offers the generation again */
    return true;
  }
  *item = (struct tc__verdict){ .next = file->late, .verdict = verdict };
  file->late = item;
  return true;
}

void tc__take_late(struct tc__verdict_queue *verdicts, struct tc__file *file) {
  for (struct tc__verdict *item = file->late; item != NULL; item = item->next)
    tc__take_verdict(verdicts, file->stream, TB_MOVE(item->verdict));
}

void tc__take_verdict(struct tc__verdict_queue *verdicts, struct tc__stream *stream,
                      struct tc_verdict *verdict) {
  if (set_in_file(stream->open, verdict)) return;
  for (struct tc__file *file = verdicts->files->first; file != NULL; file = file->next)
    if (file->stream == stream && set_in_file(file, verdict)) return;
  struct tc__recent *recent = tb_map_at(&stream->recent_of_gen, verdict->gen);
  struct tc__verdict *item = recent == NULL ? NULL : calloc(1, sizeof *item);
  if (item == NULL) {
    free(verdict);
    return;
  }
  if (recent->pending > 0) recent->pending--;
  item->verdict = verdict;
  if (recent->verdicts == NULL) {
    recent->to_amend_next = NULL;
    *verdicts->tail = recent;
    verdicts->tail = &recent->to_amend_next;
  }
  *recent->verdicts_tail = item;
  recent->verdicts_tail = &item->next;
}

static tb_rc change_verdict(Tracecollect__V1__GenerationMeta *gen,
                            const struct tc_verdict *verdict) {
  gen->events = verdict->events;
  gen->first_ns = verdict->first_ns;
  gen->last_ns = verdict->last_ns;
  if (gen->verdict == NULL) {
    gen->verdict = malloc(sizeof *gen->verdict);
    if (gen->verdict == NULL) return TB_NOMEM;
    tracecollect__v1__verdict__init(gen->verdict);
  }
  char *reason = strdup(verdict->reason);
  if (reason != NULL) {
    if (gen->verdict->reason != protobuf_c_empty_string) free(gen->verdict->reason);
    gen->verdict->reason = reason;
  }
  gen->verdict->code = (Tracecollect__V1__VerdictCode)verdict->code;
  gen->verdict->thread = verdict->thread;
  gen->verdict->offset = verdict->offset;
  return TB_OK;
}

/* Leaves the meta of an expired segment alone. A start does not compare its row with it again, so after a crash between the two
 * the catalog would lag forever (sim_seeds 705734). */
static tb_rc change_verdicts(void *self, tc_meta *meta) {
  const struct tc__recent *recent = self;

  if (meta->expired) return TB_NOTFOUND; /* deleted by retention */
  for (const struct tc__verdict *item = recent->verdicts; item != NULL; item = item->next) {
    uint64_t i = meta->n_generations == 0 ? 0 : item->verdict->gen - meta->generations[0]->gen;
    if (i < meta->n_generations && meta->generations[i]->gen == item->verdict->gen)
      TB_TRY(change_verdict(meta->generations[i], item->verdict));
  }
  return TB_OK;
}

/* Drops the segment from the page cache; later requests read it from the disk. Otherwise the archive of a busy collector would
 * push everything else on its host out of the page cache, and each new segment would need pages that are new to the machine: in
 * a virtual machine the most expensive part of writing a file. */
static void leave_page_cache(struct tc__verdict_queue *verdicts, const struct tc__recent *recent) {
  char path[192];

  if (!verdicts->env->opt.durable) return; /* the file may not be on the disk yet */
  tc__archive_path(recent->day, recent->stream->hex, recent->first_gen, path);
  int fd = openat(verdicts->env->opt.dirs->state, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return; /* deleted by retention */
  (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  close(fd);
}

/* Folders with metas renamed since the last sync: syncing them together waits for the disk once. */
struct folders {
  int fds[FOLDERS_AT_ONCE];
  size_t n;
  const struct tc__stream *stream; /* stream and day of the last folder */
  char day[TC_DAY_BYTES];
};

static tb_rc sync_folders(const struct tc__verdict_queue *verdicts, struct folders *folders,
                          struct tb_diag *diag) {
  tb_rc rc = TB_OK;

  for (size_t i = 0; i < folders->n; i++) {
    if (verdicts->env->opt.durable && fsync(folders->fds[i]) != 0)
      rc = tb_fail(diag, tc_errno_rc(errno), "archive: verdicts: %s", strerror(errno));
    close(folders->fds[i]);
  }
  *folders = (struct folders){ 0 };
  return rc;
}

/* Takes ownership of fd, the meta's folder; -1: the meta was not changed. */
static tb_rc remember_folder(const struct tc__verdict_queue *verdicts, struct folders *folders,
                             int fd, const struct tc__recent *recent, struct tb_diag *diag) {
  if (fd < 0) return TB_OK;
  if (folders->stream == recent->stream && strcmp(folders->day, recent->day) == 0) {
    close(fd);
    return TB_OK;
  }
  tb_rc rc = folders->n < FOLDERS_AT_ONCE ? TB_OK : sync_folders(verdicts, folders, diag);
  folders->fds[folders->n++] = fd;
  folders->stream = recent->stream;
  memcpy(folders->day, recent->day, TC_DAY_BYTES);
  return rc;
}

/* Removes the segment from the queue after its verdicts are written or cannot be. */
static void release_recent(struct tc__verdict_queue *verdicts, struct tc__recent *recent) {
  verdicts->first = recent->to_amend_next;
  if (verdicts->first == NULL) verdicts->tail = &verdicts->first;
  tc__verdicts_free(recent->verdicts);
  recent->verdicts = NULL;
  recent->verdicts_tail = &recent->verdicts;
  if (recent->pending > 0) return;
  leave_page_cache(verdicts, recent);
  tc__recent_drop(recent->stream, recent);
}

/* If a folder cannot be synced, sets `unsynced` and goes on. */
static tb_rc apply_verdicts(struct tc__verdict_queue *verdicts, size_t most,
                            struct folders *folders, struct tb_diag *unsynced,
                            struct tb_diag *diag) {
  for (; most > 0 && verdicts->first != NULL; most--) {
    struct tc__recent *recent = verdicts->first;
    struct tc__stream *stream = recent->stream;
    int dir_fd;
    tb_rc rc = tc__amend(verdicts->catalog, stream->hex, recent->day, recent->first_gen,
                         change_verdicts, recent, &dir_fd, diag);
    if (tc_rc_is_full(rc) || tc_rc_is_short(rc) || rc == TB_IO) return rc;
    if (rc != TB_OK && rc != TB_NOTFOUND) /* TB_NOTFOUND: deleted by retention */
      tc__note_as(verdicts->env, TC_ERROR, stream->ref,
                  "archive/%s/%s/%s; the verdict on generation %" PRIu64 "%s is not noted",
                  recent->day, stream->hex, diag->text, recent->verdicts->verdict->gen,
                  recent->verdicts->next != NULL ? " and on later ones" : "");
    tb_diag_clear(diag);
    (void)!remember_folder(verdicts, folders, dir_fd, recent, unsynced);
    release_recent(verdicts, recent);
  }
  return TB_OK;
}

/* Syncs the folders before the commit: after a power failure the catalog must not have a verdict that a meta misses, as a
 * generation with a verdict in the catalog is not offered again. */
tb_rc tc__apply_verdicts(struct tc__verdict_queue *verdicts, size_t most, struct tb_diag *diag) {
  struct tb_diag unsynced = { 0 };
  struct folders folders = { 0 };

  if (verdicts->first == NULL || most == 0) return TB_OK;
  TB_TRY(tc__catalog_begin(verdicts->catalog, diag));
  tb_rc rc = apply_verdicts(verdicts, most, &folders, &unsynced, diag), reported = TB_OK;
  if (sync_folders(verdicts, &folders, &unsynced) != TB_OK || unsynced.text[0] != '\0')
    reported = tc__catalog_failed(verdicts->catalog, &unsynced, diag);
  else
    reported = tc__catalog_commit(verdicts->catalog, diag);
  return rc != TB_OK ? rc : reported;
}

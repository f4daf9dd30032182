/* SPDX-License-Identifier: Apache-2.0 */
/* Taking a segment away: its meta is marked first and stays, then the trace is unlinked, and once both are on the disk
 * the catalog says so. Where the disk fails in between the catalog still has the segment, so the next round goes on with
 * it. Killed in between, the next start finds a mark that the catalog does not say what the metas do: it is rebuilt, and
 * what was begun here is finished on the way. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "collector/archiver_private.h"
#include "collector/clock.h"

enum { AT_ONCE = 64, TOLD_MAX = 4 }; /* rows asked for at once; failures that a round tells of */

struct round {
  struct tc_archiver *archiver;
  struct tc_retention_rules rules;
  uint64_t archive_bytes, disk_free,
      service_over; /* service_over: bytes one service is above its share */
  uint64_t taken, failed;
  struct tc_segment_row rows[AT_ONCE];
  size_t nrows;
  char services[AT_ONCE][65];
  uint64_t over[AT_ONCE];
  size_t nservices;
};

uint64_t tc__disk_free(const struct tc_archiver *archiver) {
  struct statvfs fs;

  if (fstatvfs(archiver->opt.dirs->state, &fs) != 0) return UINT64_MAX;
  return (uint64_t)fs.f_bavail * fs.f_frsize;
}

static tb_rc mark_expired(void *self, tc_meta *meta) {
  (void)self;
  meta->expired = true;
  return TB_OK;
}

static tb_rc expire(struct tc_archiver *archiver, int dir_fd, uint64_t first_gen, bool *out_begun,
                    struct tb_diag *diag) {
  char name[32], trace[32];
  tc_meta *meta;

  tc_meta_name(first_gen, name);
  tc_trace_name(first_gen, trace);
  TB_TRY(tc__change_meta(archiver, dir_fd, name, mark_expired, NULL, diag, &meta));
  *out_begun = true;
  tb_rc rc = tc__sync_name(archiver, dir_fd, name, diag);
  if (rc == TB_OK && unlinkat(dir_fd, trace, 0) != 0 && errno != ENOENT)
    rc = tb_fail(diag, tc_errno_rc(errno), "%s: %s", trace, strerror(errno));
  if (rc == TB_OK) rc = tc__sync_name(archiver, dir_fd, trace, diag);
  if (rc == TB_OK) rc = tc__put_row(archiver, meta, diag);
  tc_meta_free(meta);
  return rc;
}

/* As long as one is half gone the mark stays for the next start. */
static void remember_half(struct tc__half_gone *half, uint64_t id, bool is_half) {
  size_t at = 0;

  while (at < half->n && half->ids[at] != id) at++;
  if (at < half->n && !is_half) half->ids[at] = half->ids[--half->n];
  if (at < half->n || !is_half) return;
  if (half->n < TC__HALF_MAX)
    half->ids[half->n++] = id;
  else
    half->more = true;
}

static tb_rc expire_row(struct round *round, const struct tc_segment_row *row, const char *day,
                        struct tb_diag *diag) {
  struct tc_archiver *archiver = round->archiver;
  char hex[TC_STREAM_HEX_BYTES];
  bool begun = false;

  tc_hex(row->stream, sizeof row->stream, hex);
  int dir_fd = tc_statedir_stream(archiver->opt.dirs->archive, day, hex, false);
  tb_rc rc = dir_fd >= 0 ? expire(archiver, dir_fd, row->first_gen, &begun, diag)
                         : tb_fail(diag, errno == ENOENT ? TB_NOTFOUND : tc_errno_rc(errno),
                                   "archive/%s/%s: %s", day, hex, strerror(errno));
  if (dir_fd >= 0) close(dir_fd);
  if (rc == TB_NOTFOUND) archiver->opt.stats->catalog_stale = true; /* there is no such segment */
  if (begun) remember_half(&archiver->half_gone, row->id, rc != TB_OK);
  return rc;
}

/* Before the first is taken away. */
static bool begin(struct tc_archiver *archiver) {
  struct tb_diag diag = { 0 };

  if (archiver->stale_marked) return true;
  archiver->half_gone.marked = tc__mark_stale(archiver, &diag) == TB_OK;
  if (!archiver->half_gone.marked) tc__note_as(archiver, TC_ERROR, 0, "retention: %s", diag.text);
  return archiver->half_gone.marked;
}

/* Nothing is half gone any more. Where the catalog failed meanwhile the mark is for that, too. */
static void end(struct tc_archiver *archiver) {
  struct tc__half_gone *half = &archiver->half_gone;

  if (!half->marked || half->n > 0 || half->more || !tc__catalog_takes_rows(archiver)) return;
  tc__unmark_stale(archiver);
  half->marked = false;
}

static tb_rc take_away(struct round *round, const struct tc_segment_row *row) {
  struct tc_archiver *archiver = round->archiver;
  struct tb_diag diag = { 0 };
  char day[TC_DAY_BYTES];

  /* "archive/YYYY-MM-DD/...": the row was made from a meta of ours. */
  memcpy(day, row->path + strlen("archive/"), TC_DAY_BYTES - 1);
  day[TC_DAY_BYTES - 1] = '\0';
  tb_rc rc = tc_day_valid(day) ? expire_row(round, row, day, &diag)
                               : tb_fail(&diag, TB_CORRUPT, "%s: has no day", row->path);
  if (rc != TB_OK) {
    if (round->failed++ < TOLD_MAX) tc__note_as(archiver, TC_ERROR, 0, "retention: %s", diag.text);
    return rc;
  }
  tc__take_totals(archiver);
  round->archive_bytes = atomic_load(&archiver->opt.stats->archive_bytes);
  round->disk_free += row->bytes;
  round->taken++;
  tc_retention_took(&archiver->retention, row->bytes);
  return TB_OK;
}

static tb_rc collect(void *self, const struct tc_segment_row *row) {
  struct round *round = self;

  if (round->nrows < AT_ONCE) round->rows[round->nrows++] = *row;
  return TB_OK;
}

static tb_rc collect_service(void *self, const char *service, uint64_t service_bytes) {
  struct round *round = self;

  if (round->nservices == AT_ONCE) return TB_OK;
  strncpy(round->services[round->nservices], service, sizeof round->services[0] - 1);
  round->over[round->nservices++] = service_bytes - round->rules.service_bytes;
  return TB_OK;
}

/* Its publication is tried again, with the row it has now. */
static bool is_queued(const struct tc_archiver *archiver, const struct tc_segment_row *row) {
  for (const struct tc__file *file = archiver->queue; file != NULL; file = file->next)
    if (file->segment != NULL && file->segment->first_gen == row->first_gen &&
        memcmp(file->stream->id, row->stream, sizeof row->stream) == 0)
      return true;
  return false;
}

/* Takes from the oldest on, or from what lies behind a row, while the rules say so. False: nothing more to take now. A
 * catalog that fails meanwhile knows neither what there is nor how much: the rebuilt one does. */
static bool take_some(struct round *round, const char *service,
                      const struct tc_segment_row *after) {
  struct tb_diag diag = { 0 };

  round->nrows = 0;
  if (!tc__catalog_takes_rows(round->archiver) ||
      tc_catalog_oldest(round->archiver->catalog, service, after, AT_ONCE, collect, round, &diag) !=
          TB_OK)
    return false;
  for (size_t i = 0; i < round->nrows; i++) {
    const struct tc_segment_row *row = &round->rows[i];
    bool takes = service != NULL ? round->service_over > 0
                                 : tc_retention_takes(&round->archiver->retention, &round->rules,
                                                      round->archive_bytes, round->disk_free,
                                                      row->last_wall_ns);
    if (!takes || !tc_retention_allows(&round->archiver->retention, row->bytes)) return false;
    if (is_queued(round->archiver, row)) continue;
    if (!begin(round->archiver)) return false;
    tb_rc rc = take_away(round, row);
    if (!tc__catalog_takes_rows(round->archiver)) return false;
    /* Told, and left for the next round or tracectl verify: the disk must not fill. */
    if (rc == TB_CORRUPT || rc == TB_IO) continue;
    if (rc != TB_OK) return false;
    round->service_over -= row->bytes < round->service_over ? row->bytes : round->service_over;
  }
  return round->nrows == AT_ONCE;
}

/* What cannot be taken away is gone past: it does not keep the younger ones. */
static void take_oldest(struct round *round, const char *service) {
  bool more = take_some(round, service, NULL);

  while (more) {
    struct tc_segment_row last = round->rows[round->nrows - 1];
    more = take_some(round, service, &last);
  }
}

void tc__retain(struct tc_archiver *archiver) {
  const struct tc_config *config = archiver->opt.config;
  struct tb_diag diag = { 0 };

  tc_retention_round(&archiver->retention, tc_wall_ns(), tc_mono_ns(),
                     atomic_load(&archiver->opt.stats->archive_bytes));
  if (archiver->retention.clock_jumped) {
    atomic_store(&archiver->opt.stats->clock_jumped, true);
    tc__note_as(archiver, TC_WARN, 0,
                "retention: the wall clock jumped by more than an hour; nothing is deleted "
                "by age for an hour");
  }
  tc__retain_quarantine(archiver);
  if (!tc__catalog_takes_rows(archiver)) return;
  struct round *round = calloc(1, sizeof *round);
  if (round == NULL) return;
  round->archiver = archiver;
  round->rules = (struct tc_retention_rules){ .age_ns = config->retention_age,
                                              .bytes = config->retention_bytes,
                                              .free_bytes = config->retention_free_bytes,
                                              .service_bytes = config->retention_service_bytes };
  round->archive_bytes = atomic_load(&archiver->opt.stats->archive_bytes);
  round->disk_free = tc__disk_free(archiver);
  take_oldest(round, NULL);
  if (round->rules.service_bytes != 0 &&
      tc_catalog_heavy(archiver->catalog, round->rules.service_bytes, collect_service, round,
                       &diag) == TB_OK)
    for (size_t i = 0; i < round->nservices; i++) {
      round->service_over = round->over[i];
      take_oldest(round, round->services[i]);
    }
  end(archiver);
  if (round->failed > TOLD_MAX)
    tc__note_as(archiver, TC_ERROR, 0, "retention: %" PRIu64 " more could not be deleted",
                round->failed - TOLD_MAX);
  if (round->taken > 0)
    tc__note(archiver, "retention: %" PRIu64 " segments deleted, their metas stay", round->taken);
  free(round);
}

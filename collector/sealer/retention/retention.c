/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/sealer/retention/retention.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/clock.h"
#include "collector/sealer/retention/expire.h"
#include "collector/sealer/retention/quarantine.h"

enum {
  AT_ONCE = 64,     /* rows asked for at once */
  REPORTED_MAX = 4, /* failures that a round reports */
  SIZE_PART = 32,   /* a round begins if a size exceeds its limit by 1/32 */
  SLICES_MAX = 10,
};

static const uint64_t BATCH_BYTES = 64 << 20; /* unlinked in one slice */

struct tc__round {
  struct tc__retaining *retaining;
  struct tc_retention_rules rules;
  uint64_t old_before_ns, kept_old_before_ns, sample_every_ns;
  uint64_t floor_from_ns; /* segments that arrived later are in the floor */
  uint64_t disk_bytes;
  uint64_t open_bytes;   /* of runs that are not in the archive yet */
  uint64_t service_over; /* bytes by which the current service exceeds its share */
  uint64_t taken, failed;
  bool is_stuck;   /* out of space or memory: nothing more can be deleted now */
  bool has_spared; /* the first walk spared segments that triggers keep */
  bool is_second;  /* the second walk: deletes them if the first one left too much */
  struct tc_segment_row rows[AT_ONCE];
  size_t nrows;
  struct tc_segment_row after; /* the last row that was looked at */
  bool has_after;
  uint64_t slice_end_ns;
  struct tc__expiry *expiry; /* batch in progress, of chosen[]; NULL: none */
  const struct tc_segment_row *chosen[TC__EXPIRE_MAX];
  char services[AT_ONCE][65];
  uint64_t over[AT_ONCE];
  size_t nservices, service; /* service: the next one; the oldest segments of all are before them */
  bool at_services;
  /* Segments kept only by findings: the oldest ones, by which there are too many, are not spared. Rows may be looked at again. */
  uint64_t finding_bytes, finding_over;
  struct tc__walked { /* of the last one that was not spared, or was; id 0: none */
    uint64_t arrival_ns, id;
  } dropped, spared;
};

static uint64_t subtract(uint64_t a, uint64_t b) {
  return a > b ? a - b : 0;
}

/* Without the blocks reserved for root. */
static uint64_t disk_bytes(const struct tc__retaining *retaining) {
  struct statvfs fs;

  if (fstatvfs(retaining->env->opt.dirs->state, &fs) != 0) return 0;
  return subtract(fs.f_blocks, subtract(fs.f_bfree, fs.f_bavail)) * fs.f_frsize;
}

static uint64_t file_bytes(const struct tc__file *file) {
  return file != NULL && file->segment != NULL ? file->segment->bytes : 0;
}

static uint64_t open_bytes(const struct tc__retaining *retaining) {
  uint64_t bytes = 0;

  for (const struct tc__file *f = retaining->files->first; f != NULL; f = f->next)
    bytes += file_bytes(f);
  for (const struct tc__stream *s = retaining->streams->first; s != NULL; s = s->next)
    bytes += file_bytes(s->open);
  return bytes;
}

/* Marks the catalog; called before the first segment is deleted. */
static bool mark_catalog(struct tc__retaining *retaining) {
  struct tb_diag diag = { 0 };

  if (retaining->catalog->is_marked) return true;
  retaining->half_gone.marked = tc__mark_stale(retaining->catalog, &diag) == TB_OK;
  if (!retaining->half_gone.marked)
    tc__note_as(retaining->env, TC_ERROR, 0, "retention: %s", diag.text);
  return retaining->half_gone.marked;
}

/* Removes the mark if nothing is half gone, unless the catalog has failed and needs the mark, too. */
static void unmark_catalog(struct tc__retaining *retaining) {
  struct tc__half_gone *half = &retaining->half_gone;

  if (!half->marked || half->n > 0 || half->more || !tc__catalog_takes_rows(retaining->catalog))
    return;
  tc__unmark_stale(retaining->catalog);
  half->marked = false;
}

static void on_done(void *self, const struct tc_segment_row *row, const struct tb_diag *diag) {
  struct tc__round *round = self;

  if (diag->rc == TB_OK) {
    round->taken++;
    round->service_over -= row->bytes < round->service_over ? row->bytes : round->service_over;
    tc_retention_took(&round->retaining->pace, row->bytes);
    return;
  }
  if (round->failed++ < REPORTED_MAX)
    tc__note_as(round->retaining->env, TC_ERROR, 0, "retention: %s", diag->text);
  /* Leave a corrupt or unreadable file to the next round or tracectl verify and go on: the disk must not fill. */
  if (diag->rc != TB_CORRUPT && diag->rc != TB_UNREADABLE && diag->rc != TB_IO)
    round->is_stuck = true;
}

static tb_rc collect(void *self, const struct tc_segment_row *row) {
  struct tc__round *round = self;

  if (round->nrows < AT_ONCE) round->rows[round->nrows++] = *row;
  return TB_OK;
}

static tb_rc collect_service(void *self, const char *service, uint64_t service_bytes) {
  struct tc__round *round = self;

  if (round->nservices == AT_ONCE) return TB_OK;
  strncpy(round->services[round->nservices], service, sizeof round->services[0] - 1);
  round->over[round->nservices++] = service_bytes - round->rules.service_bytes;
  return TB_OK;
}

/* The segment has a row, but its publication failed afterwards and is tried again. */
static bool is_queued(const struct tc__retaining *retaining, const struct tc_segment_row *row) {
  for (const struct tc__file *file = retaining->files->first; file != NULL; file = file->next)
    if (file->segment != NULL && file->segment->first_gen == row->first_gen &&
        memcmp(file->stream->id, row->stream, sizeof row->stream) == 0)
      return true;
  return false;
}

enum step { STEP_DONE, STEP_MORE, STEP_LATER };

/* The sizes after the segments chosen so far are deleted. */
struct plan {
  struct tc_retention retention;
  uint64_t archive_bytes, disk_free, service_over, bytes;
};

static void choose(struct plan *plan, uint64_t bytes) {
  plan->archive_bytes = subtract(plan->archive_bytes, bytes);
  plan->service_over = subtract(plan->service_over, bytes);
  plan->disk_free += bytes;
  plan->bytes += bytes;
  tc_retention_took(&plan->retention, bytes);
}

static bool is_kept(const struct tc__round *round, const struct tc_segment_row *row) {
  return tc_keeps_meets(round->retaining->env->opt.keeps, row->stream, row->service,
                        row->first_wall_ns, row->last_wall_ns, NULL);
}

/* Returns the size of the parts of the state folder that can be large. */
static uint64_t own_bytes(const struct tc__round *round, const struct plan *plan) {
  const struct tc__retaining *retaining = round->retaining;
  const struct tc_stats *stats = retaining->env->opt.stats;

  return plan->archive_bytes + round->open_bytes + atomic_load(&stats->log_bytes) +
         atomic_load(&stats->quarantine_bytes) +
         (retaining->reserve->held ? retaining->reserve->bytes : 0);
}

/* Returns whether the floor is kept even if the disk is short. */
static bool has_floor(const struct tc__round *round, const struct plan *plan) {
  return tc_retention_has_floor(&round->rules, own_bytes(round, plan), round->disk_bytes);
}

/* Skips a kept segment in the second walk: segments that may be deleted can follow, as kept ones are of any age. */
static bool is_passed_by(const struct tc__round *round, const struct plan *plan,
                         const struct tc_segment_row *row) {
  return round->is_second && !tc_retention_is_over(&round->rules, plan->archive_bytes) &&
         has_floor(round, plan) && is_kept(round, row);
}

static bool takes(const struct tc__round *round, const struct plan *plan, const char *service,
                  const struct tc_segment_row *row) {
  const struct tc_retention_rules *rules = &round->rules;

  if (service == NULL && tc_retention_is_over(rules, plan->archive_bytes)) return true;
  if (service == NULL && tc_retention_is_short(rules, plan->disk_free) &&
      (row->last_arrival_ns <= round->floor_from_ns || !has_floor(round, plan)))
    return true;
  bool is_over = service != NULL ? plan->service_over > 0
                                 : !round->is_second && row->last_arrival_ns < round->old_before_ns;
  return is_over && tc_retention_allows(&plan->retention, row->bytes);
}

/* The segment was being traced when an interval of retention.sample_every began. */
static bool is_sample(const struct tc__round *round, const struct tc_segment_row *row) {
  uint64_t every = round->sample_every_ns;

  return every != 0 && row->first_wall_ns / every != row->last_wall_ns / every;
}

/* Returns true if the row was met before, in the order of a walk. */
static bool is_up_to(const struct tc_segment_row *row, const struct tc__walked *to) {
  if (row->last_arrival_ns != to->arrival_ns) return row->last_arrival_ns < to->arrival_ns;
  return row->id <= to->id;
}

static bool is_finding_spared(struct tc__round *round, const struct tc_segment_row *row) {
  if (is_up_to(row, &round->dropped)) return false;
  if (round->at_services || is_up_to(row, &round->spared)) return true;
  bool spared = round->finding_over == 0;
  round->finding_over = subtract(round->finding_over, row->bytes);
  if (spared) round->finding_bytes += row->bytes;
  *(spared ? &round->spared : &round->dropped) =
      (struct tc__walked){ row->last_arrival_ns, row->id };
  return spared;
}

/* A trigger or a finding keeps the segment. */
static bool is_kept_for(struct tc__round *round, const struct tc_segment_row *row) {
  char rule[TC_KEEP_RULE_MAX + 1];

  if (!tc_keeps_meets(round->retaining->env->opt.keeps, row->stream, row->service,
                      row->first_wall_ns, row->last_wall_ns, rule))
    return false;
  return !tc_keep_is_of_finding(rule) || is_finding_spared(round, row);
}

/* The segment is kept or is a sample, and not too old for that. */
static bool is_spared(struct tc__round *round, const struct tc_segment_row *row) {
  bool spared = !round->is_second && row->last_arrival_ns >= round->kept_old_before_ns &&
                (is_sample(round, row) || is_kept_for(round, row));

  round->has_spared |= spared;
  return spared;
}

/* Chooses the next segments to delete, from rows[*at] on. */
static size_t choose_some(struct tc__round *round, const char *service, size_t *at,
                          const struct tc_segment_row *chosen[]) {
  struct plan plan = { .retention = round->retaining->pace,
                       .archive_bytes =
                           atomic_load(&round->retaining->env->opt.stats->archive_bytes),
                       .disk_free = tc__disk_free(round->retaining->env),
                       .service_over = round->service_over };
  size_t n = 0;

  for (; *at < round->nrows && n < TC__EXPIRE_MAX && plan.bytes < BATCH_BYTES; ++*at) {
    const struct tc_segment_row *row = &round->rows[*at];
    if (is_queued(round->retaining, row) || is_spared(round, row)) continue;
    if (service == NULL && is_passed_by(round, &plan, row)) continue;
    if (!takes(round, &plan, service, row)) break;
    choose(&plan, row->bytes);
    chosen[n++] = row;
  }
  return n;
}

/* Reports a failure of the catalog, which ends the round; the next round has a rebuilt one. */
static void catalog_is_unread(struct tc__retaining *retaining, const struct tb_diag *why) {
  struct tb_diag diag = { 0 };

  if (tc__catalog_failed(retaining->catalog, why, &diag) != TB_OK)
    tc__note_as(retaining->env, TC_ERROR, 0, "retention: %s", diag.text);
}

static void go_past(struct tc__round *round, size_t at) {
  if (at == 0) return;
  round->after = round->rows[at - 1];
  round->has_after = true;
}

/* Returns false if the batch continues in the next slice. Otherwise *out_at is after its last row. */
static bool end_expiry(struct tc__round *round, size_t *out_at) {
  if (!tc__expire_go_on(round->expiry, round->slice_end_ns)) return false;
  size_t done = tc__expire_end(TB_MOVE(round->expiry), on_done, round);
  *out_at = (size_t)(round->chosen[done - 1] - round->rows) + 1;
  go_past(round, *out_at);
  if (tc__catalog_takes_rows(round->retaining->catalog)) tc__take_totals(round->retaining->catalog);
  return true;
}

/* Reads the next rows, oldest first, after the last one that was looked at. Returns false if the catalog has failed: the round ends,
 * as neither rows nor sizes are reliable. */
static bool find_rows(struct tc__round *round, const char *service) {
  struct tc__retaining *retaining = round->retaining;
  struct tb_diag diag = { 0 };

  round->nrows = 0;
  if (!tc__catalog_takes_rows(retaining->catalog)) return false;
  if (tc_catalog_oldest(retaining->catalog->db, service, round->has_after ? &round->after : NULL,
                        AT_ONCE, collect, round, &diag) == TB_OK)
    return true;
  catalog_is_unread(retaining, &diag);
  return false;
}

/* Too little of the slice is left for a batch. */
static bool is_begun(const struct tc__round *round) {
  return tc_mono_ns() + TC__SLICE_NS * 7 / 8 >= round->slice_end_ns;
}

static enum step take_some(struct tc__round *round, const char *service) {
  size_t at = 0, n;

  if (round->expiry != NULL) {
    if (!end_expiry(round, &at)) return STEP_LATER;
  } else if (!find_rows(round, service)) {
    return STEP_DONE;
  }
  for (;;) {
    if (!tc__catalog_takes_rows(round->retaining->catalog) || round->is_stuck) return STEP_DONE;
    n = choose_some(round, service, &at, round->chosen);
    if (n == 0) break;
    if (is_begun(round)) return STEP_LATER;
    if (!mark_catalog(round->retaining)) return STEP_DONE;
    if (is_begun(round)) return STEP_LATER; /* writing the mark took the time */
    round->expiry = tc__expire(round->retaining, round->chosen, n);
    if (round->expiry == NULL) return STEP_DONE;
    if (!end_expiry(round, &at)) return STEP_LATER;
  }
  go_past(round, at);
  return at == AT_ONCE ? STEP_MORE : STEP_DONE;
}

/* Returns false if the slice is over before the last row. */
static bool walk(struct tc__round *round, const char *service) {
  enum step step;

  do step = take_some(round, service);
  while (step == STEP_MORE);
  if (step == STEP_DONE) round->has_after = false;
  return step == STEP_DONE;
}

static bool take_oldest(struct tc__round *round, const char *service) {
  if (!walk(round, service)) return false;
  bool begins_second = !round->is_second && round->has_spared;
  round->is_second = begins_second;
  if (begins_second && !walk(round, service)) return false;
  round->is_second = round->has_spared = false;
  return true;
}

static void find_services(struct tc__round *round) {
  struct tb_diag diag = { 0 };

  round->at_services = true;
  if (round->rules.service_bytes != 0 && tc__catalog_takes_rows(round->retaining->catalog) &&
      tc_catalog_heavy(round->retaining->catalog->db, round->rules.service_bytes, collect_service,
                       round, &diag) != TB_OK)
    catalog_is_unread(round->retaining, &diag);
  if (round->nservices > 0) round->service_over = round->over[0];
}

/* Returns false if the round continues in the next slice. */
static bool continue_round(struct tc__round *round) {
  round->slice_end_ns = tc_mono_ns() + TC__SLICE_NS;
  if (!round->at_services) {
    if (!take_oldest(round, NULL)) return false;
    find_services(round);
  }
  while (round->service < round->nservices) {
    if (!take_oldest(round, round->services[round->service])) return false;
    if (++round->service < round->nservices) round->service_over = round->over[round->service];
  }
  return true;
}

static void free_round(struct tc__round *round) {
  if (round != NULL) tc__expire_free(round->expiry);
  free(round);
}

/* Returns the beginning of the floor: retention.floor before the newest arrival. */
static uint64_t find_floor(struct tc__round *round) {
  struct tb_diag diag = { 0 };
  uint64_t newest_ns = 0;

  if (round->rules.floor_ns != 0 &&
      tc_catalog_newest_arrival(round->retaining->catalog->db, &newest_ns, &diag) != TB_OK)
    catalog_is_unread(round->retaining, &diag);
  if (newest_ns > tc_wall_ns()) newest_ns = tc_wall_ns(); /* it arrived while the clock was wrong */
  return subtract(newest_ns, round->rules.floor_ns);
}

static struct tc__round *begin_round(struct tc__retaining *retaining, bool is_timed) {
  const struct tc_config *config = retaining->env->opt.config;
  const struct tc_retention *pace = &retaining->pace;

  tc_retention_round(&retaining->pace, tc_wall_ns(), tc_mono_ns(),
                     atomic_load(&retaining->env->opt.stats->archive_bytes));
  if (retaining->pace.clock_jumped) {
    atomic_store(&retaining->env->opt.stats->clock_jumped, true);
    tc__note_as(retaining->env, TC_WARN, 0,
                "retention: the wall clock jumped by more than an hour; nothing is deleted "
                "by age for an hour");
  }
  if (is_timed) tc__quarantine_begin(retaining);
  tc_keeps_forget(retaining->env->opt.keeps,
                  tc_retention_old_before(pace, config->retention_kept_age));
  if (!tc__catalog_takes_rows(retaining->catalog)) return NULL;
  struct tc__round *round = calloc(1, sizeof *round);
  if (round == NULL) return NULL;
  round->retaining = retaining;
  round->rules = (struct tc_retention_rules){ .bytes = config->retention_bytes,
                                              .free_bytes = config->retention_free_bytes,
                                              .service_bytes = config->retention_service_bytes,
                                              .floor_ns = config->retention_floor };
  round->disk_bytes = disk_bytes(retaining);
  round->open_bytes = open_bytes(retaining);
  round->floor_from_ns = find_floor(round);
  round->old_before_ns = tc_retention_old_before(pace, config->retention_age);
  round->sample_every_ns = config->retention_sample_every;
  round->kept_old_before_ns = tc_retention_old_before(pace, config->retention_kept_age);
  round->finding_over = subtract(retaining->finding_bytes, config->findings_keep_bytes);
  return round;
}

/* Reports when a round ends without a failure and the disk is still short. The state stays while single segments leave the
 * floor and are deleted. */
static void look_at_floor(const struct tc__round *round) {
  struct tc__retaining *retaining = round->retaining;
  uint64_t disk_free = tc__disk_free(retaining->env);
  bool was = atomic_load(&retaining->env->opt.stats->retention_at_floor),
       is_whole =
           round->failed == 0 && !round->is_stuck && tc__catalog_takes_rows(retaining->catalog),
       is = tc_retention_is_short(&round->rules, disk_free) && (was || is_whole);

  if (is == was) return;
  if (is)
    tc__note_as(retaining->env, TC_ERROR, 0,
                "retention: %" PRIu64 " MiB free on the disk, less than retention.free_bytes, and "
                "retention.floor protects all that is left: make room; below disk.free_min "
                "nothing more is acked",
                disk_free >> 20);
  else
    tc__note(retaining->env,
             "retention: the disk has room again, or retention something to delete");
  /* After the log line: whoever sees the gauge reads the log. */
  atomic_store(&retaining->env->opt.stats->retention_at_floor, is);
}

/* Under load there are many small rounds, which share a log line. */
static void end_round(struct tc__round *round) {
  struct tc__retaining *retaining = round->retaining;
  uint64_t now = tc_mono_ns();

  unmark_catalog(retaining);
  look_at_floor(round);
  retaining->bytes = atomic_load(&retaining->env->opt.stats->archive_bytes);
  retaining->finding_bytes = round->finding_bytes;
  retaining->segments += round->taken;
  if (round->failed > REPORTED_MAX)
    tc__note_as(retaining->env, TC_ERROR, 0, "retention: %" PRIu64 " more could not be deleted",
                round->failed - REPORTED_MAX);
  if (retaining->segments == 0) return;
  if (retaining->noted_ns != 0 &&
      now - retaining->noted_ns < retaining->env->opt.config->retention_every)
    return;
  retaining->noted_ns = now;
  tc__note(retaining->env, "retention: %" PRIu64 " segments deleted, their metas stay",
           retaining->segments);
  retaining->segments = 0;
}

/* A size limit is exceeded, so a round begins before its time. Only growth since the last round counts: files that it could
 * not delete do not start another one. */
static bool is_pressed(const struct tc__retaining *retaining) {
  const struct tc_config *config = retaining->env->opt.config;
  const struct tc_retention_rules rules = {
    .bytes = config->retention_bytes + config->retention_bytes / SIZE_PART,
    .free_bytes = config->retention_free_bytes - config->retention_free_bytes / SIZE_PART
  };
  uint64_t bytes = atomic_load(&retaining->env->opt.stats->archive_bytes),
           free_bytes = atomic_load(&retaining->env->opt.stats->disk_free_bytes);

  if (free_bytes == 0) free_bytes = UINT64_MAX; /* not measured yet */
  return retaining->is_begun && bytes > retaining->bytes &&
         tc_retention_is_pressed(&rules, bytes, free_bytes);
}

static void begin_due(struct tc__retaining *retaining) {
  uint64_t every = retaining->env->opt.config->retention_every;

  if (every == 0) return;
  bool is_timed = tc_retention_is_due(&retaining->pace, every, tc_mono_ns());
  if (!is_timed && !is_pressed(retaining)) return;
  retaining->is_begun = true;
  retaining->round = begin_round(retaining, is_timed);
}

/* A rebuild finishes half-gone segments as far as possible: forget those from before it. */
static void forget_half_gone(struct tc__retaining *retaining) {
  if (retaining->half_gone.makings != retaining->catalog->makings)
    retaining->half_gone = (struct tc__half_gone){ .makings = retaining->catalog->makings };
}

void tc__end_retention(struct tc__retaining *retaining) {
  struct tc__round *round = retaining->round;
  size_t at;

  forget_half_gone(retaining);
  tc__end_folding(&retaining->folding);
  if (round == NULL) return;
  round->slice_end_ns = UINT64_MAX;
  if (round->expiry != NULL) (void)end_expiry(round, &at);
  end_round(round);
  free_round(TB_MOVE(retaining->round));
}

bool tc__retains(const struct tc__retaining *retaining) {
  return retaining->round != NULL || retaining->quarantine.pass != NULL ||
         tc__is_folding(&retaining->folding);
}

/* Returns whether there is more to do. */
static bool do_slice(struct tc__retaining *retaining) {
  uint64_t until_ns = tc_mono_ns() + TC__SLICE_NS;

  tc_count(&retaining->env->opt.stats->sealer_turns, 1);
  tc_count(&retaining->env->opt.stats->retention_slices, 1);
  if (retaining->quarantine.pass != NULL) {
    tc__quarantine_go_on(retaining, until_ns);
  } else if (retaining->round == NULL) {
    tc__fold_some(&retaining->folding, until_ns);
  } else if (continue_round(retaining->round)) {
    end_round(retaining->round);
    free_round(TB_MOVE(retaining->round));
  }
  return tc__retains(retaining);
}

/* Works for one slice, or more if the archive grew by more since the last call than a slice deletes. */
static void do_slices(struct tc__retaining *retaining) {
  const _Atomic uint64_t *bytes = &retaining->env->opt.stats->archive_bytes;

  for (unsigned i = 0; i < SLICES_MAX; i++) {
    uint64_t before = atomic_load(bytes);

    if (!do_slice(retaining) || atomic_load(bytes) <= retaining->slice_bytes) break;
    if (atomic_load(bytes) >= before) break; /* nothing could be deleted */
  }
  retaining->slice_bytes = atomic_load(bytes);
}

void tc__retain(struct tc__retaining *retaining) {
  struct tc_stats *stats = retaining->env->opt.stats;
  uint64_t began_ns = tc_mono_ns(), took_ns;

  forget_half_gone(retaining);
  if (!tc__retains(retaining)) begin_due(retaining);
  if (tc__retains(retaining)) do_slices(retaining);
  if (!tc__retains(retaining) && retaining->env->opt.config->retention_every != 0)
    tc__fold_some(&retaining->folding, began_ns + TC__SLICE_NS);
  took_ns = tc_mono_ns() - began_ns;
  retaining->next_ns = began_ns + 2 * took_ns;
  tc_count(&stats->retention_ns_total, took_ns);
  if (took_ns > atomic_load(&stats->retention_ns_max)) tc_gauge(&stats->retention_ns_max, took_ns);
}

bool tc__takes_segments(const struct tc__retaining *retaining) {
  return retaining->round != NULL || retaining->half_gone.n > 0 || retaining->half_gone.more;
}

void tc__retaining_init(struct tc__retaining *retaining) {
  retaining->aside->changed = true; /* count what earlier starts left */
  tc_retention_init(&retaining->pace, tc_wall_ns(), tc_mono_ns());
  tc__folding_init(&retaining->folding, retaining->catalog, retaining->streams);
}

void tc__retaining_fini(struct tc__retaining *retaining) {
  free_round(retaining->round);
  tc__quarantine_free(&retaining->quarantine);
  tc__folding_fini(&retaining->folding);
}

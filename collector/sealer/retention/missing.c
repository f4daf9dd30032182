/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/sealer/retention/missing.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

enum { ROWS_AT_ONCE = 64, OPEN_EVERY = 10 };

static const uint64_t EVERY_NS = 1000000000;

/* Any error but ENOENT counts as present. */
static bool is_gone(int dir_fd, const char *path) {
  return faccessat(dir_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT;
}

static void look_at(struct tc__gone *gone, int dir_fd, const char *folder, const char *path) {
  if (!is_gone(dir_fd, path)) return;
  if (gone->now++ == 0) snprintf(gone->first, sizeof gone->first, "%s%s", folder, path);
}

/* Called when all were checked or more are gone than before: logs an increase. */
static void report_gone(const struct tc__env *env, struct tc__gone *gone) {
  if (gone->now > gone->known)
    tc__note_as(env, TC_ERROR, 0,
                "%s is gone, and %" PRIu64 " more: removed under the running daemon; tracectl "
                "verify names what is missing",
                gone->first, gone->now - 1);
  gone->known = gone->now;
}

static void look_at_parts(struct tc__missing *missing) {
  static const char *const parts[] = { "LOCK", "VERSION", "wal", "open", "archive", "quarantine" };
  struct tc__gone *gone = &missing->parts;
  int state_fd = missing->env->opt.dirs->state;

  gone->now = 0;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) look_at(gone, state_fd, "", parts[i]);
  if (tc__catalog_takes_rows(missing->catalog)) /* not during a rebuild */
    look_at(gone, state_fd, "", "catalog.sqlite");
  report_gone(missing->env, gone);
}

static void look_at_open_runs(struct tc__missing *missing) {
  struct tc__gone *gone = &missing->open_runs;

  gone->now = 0;
  for (const struct tc__stream *s = missing->streams->first; s != NULL; s = s->next)
    if (s->open != NULL && s->open->segment != NULL)
      look_at(gone, missing->env->opt.dirs->open, "open/", s->open->segment->name);
  report_gone(missing->env, gone);
}

static tb_rc look_at_row(void *self, const struct tc_segment_row *row) {
  struct tc__missing *missing = self;
  int state_fd = missing->env->opt.dirs->state;
  char meta[sizeof row->path];
  size_t stem = strlen(row->path) - strlen(".trace");

  snprintf(meta, sizeof meta, "%.*s.meta", (int)stem, row->path);
  look_at(&missing->segments, state_fd, "", row->path);
  look_at(&missing->segments, state_fd, "", meta);
  missing->after = *row;
  missing->rows++;
  return TB_OK;
}

/* `known` keeps the last pass's number until this pass ends or finds more. */
static void look_at_segments(struct tc__missing *missing, bool is_retaining) {
  struct tb_diag diag = { 0 };

  if (is_retaining || !tc__catalog_takes_rows(missing->catalog)) return;
  if (!missing->has_after) missing->segments.now = 0;
  missing->rows = 0;
  tb_rc rc =
      tc_catalog_oldest(missing->catalog->db, NULL, missing->has_after ? &missing->after : NULL,
                        ROWS_AT_ONCE, look_at_row, missing, &diag);
  missing->has_after = rc == TB_OK && missing->rows == ROWS_AT_ONCE;
  if (!missing->has_after || missing->segments.now > missing->segments.known)
    report_gone(missing->env, &missing->segments);
}

void tc__look_for_missing(struct tc__missing *missing, bool is_retaining) {
  uint64_t now = tc_mono_ns();

  if (missing->looked_ns != 0 && now - missing->looked_ns < EVERY_NS) return;
  missing->looked_ns = now;
  look_at_parts(missing);
  look_at_segments(missing, is_retaining);
  if (missing->turns++ % OPEN_EVERY == 0) look_at_open_runs(missing);
  tc_gauge(&missing->env->opt.stats->files_missing,
           missing->parts.known + missing->segments.known + missing->open_runs.known);
}

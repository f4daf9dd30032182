/* SPDX-License-Identifier: Apache-2.0 */
/* Files that somebody took away while the daemon runs: open ones are written as ever, and nothing says that a restart would not find
 * them. Each second the state folder's own parts are looked at, and some segments in the order of their age, so that all have been
 * looked at after a while; the open runs every ten seconds. What retention is just taking is no reason. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "collector/sealer/private.h"

enum { ROWS_AT_ONCE = 64, OPEN_EVERY = 10 };

static const uint64_t EVERY_NS = 1000000000;

/* Where it cannot be seen, it is there. */
static bool is_gone(int dir_fd, const char *path) {
  return faccessat(dir_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT;
}

static void look_at(struct tc__gone *gone, int dir_fd, const char *folder, const char *path) {
  if (!is_gone(dir_fd, path)) return;
  if (gone->now++ == 0) snprintf(gone->first, sizeof gone->first, "%s%s", folder, path);
}

/* All of them were looked at, or more are gone than before. */
static void settle(struct tc_sealer *sealer, struct tc__gone *gone) {
  if (gone->now > gone->known)
    tc__note_as(sealer, TC_ERROR, 0,
                "%s is gone, and %" PRIu64 " more: removed under the running daemon; tracectl "
                "verify names what is missing",
                gone->first, gone->now - 1);
  gone->known = gone->now;
}

static void look_at_parts(struct tc_sealer *sealer) {
  static const char *const parts[] = { "LOCK", "VERSION", "wal", "open", "archive", "quarantine" };
  struct tc__gone *gone = &sealer->missing.parts;
  int state_fd = sealer->opt.dirs->state;

  gone->now = 0;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) look_at(gone, state_fd, "", parts[i]);
  if (tc__catalog_takes_rows(sealer)) /* else another is being made */
    look_at(gone, state_fd, "", "catalog.sqlite");
  settle(sealer, gone);
}

static void look_at_open_runs(struct tc_sealer *sealer) {
  struct tc__gone *gone = &sealer->missing.open_runs;

  gone->now = 0;
  for (const struct tc__stream *s = sealer->streams; s != NULL; s = s->next)
    if (s->open != NULL && s->open->segment != NULL)
      look_at(gone, sealer->opt.dirs->open, "open/", s->open->segment->name);
  settle(sealer, gone);
}

/* ---- segments ---- */

static tb_rc look_at_row(void *self, const struct tc_segment_row *row) {
  struct tc_sealer *sealer = self;
  struct tc__missing *missing = &sealer->missing;
  int state_fd = sealer->opt.dirs->state;
  char meta[sizeof row->path];
  size_t stem = strlen(row->path) - strlen(".trace");

  snprintf(meta, sizeof meta, "%.*s.meta", (int)stem, row->path);
  look_at(&missing->segments, state_fd, "", row->path);
  look_at(&missing->segments, state_fd, "", meta);
  missing->after = *row;
  missing->rows++;
  return TB_OK;
}

static bool is_retaining(const struct tc_sealer *sealer) {
  return sealer->retaining.round != NULL || sealer->retaining.half_gone.n > 0 ||
         sealer->retaining.half_gone.more;
}

/* The number of the last whole pass stands until the next one ends, or has found more. */
static void look_at_segments(struct tc_sealer *sealer) {
  struct tc__missing *missing = &sealer->missing;
  struct tb_diag diag = { 0 };

  if (is_retaining(sealer) || !tc__catalog_takes_rows(sealer)) return;
  if (!missing->has_after) missing->segments.now = 0;
  missing->rows = 0;
  tb_rc rc = tc_catalog_oldest(sealer->catalog.db, NULL,
                               missing->has_after ? &missing->after : NULL, ROWS_AT_ONCE,
                               look_at_row, sealer, &diag);
  missing->has_after = rc == TB_OK && missing->rows == ROWS_AT_ONCE;
  if (!missing->has_after || missing->segments.now > missing->segments.known)
    settle(sealer, &missing->segments);
}

void tc__look_for_missing(struct tc_sealer *sealer) {
  struct tc__missing *missing = &sealer->missing;
  uint64_t now = tc_mono_ns();

  if (missing->looked_ns != 0 && now - missing->looked_ns < EVERY_NS) return;
  missing->looked_ns = now;
  look_at_parts(sealer);
  look_at_segments(sealer);
  if (missing->turns++ % OPEN_EVERY == 0) look_at_open_runs(sealer);
  tc_gauge(&sealer->opt.stats->files_missing,
           missing->parts.known + missing->segments.known + missing->open_runs.known);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/audit/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "archive/audit/ledger.h"
#include "archive/audit/open.h"
#include "archive/audit/private.h"
#include "archive/audit/trace.h"
#include "archive/catalog/write.h"
#include "archive/day_ledger.h"
#include "archive/walk.h"
#include "base/grow.h"
#include "base/text/hex.h"

enum { YOUNG_SECONDS = 5 };

struct segment {
  unsigned char stream[16];
  struct tc_content_hash hash, previous;
  bool expired, listed, young;
  bool folded; /* this is a record of a day's ledger */
  unsigned verdict;
  uint64_t first_gen, last_gen, first_seq, bytes, events;
  char day[TC_DAY_BYTES];
};

struct verify {
  struct tc__look look;
  bool running; /* a daemon has the folder */
  time_t begun;
  bool counting; /* first walk: only sums up the bytes to read, for progress() */
  struct segment *segments;
  size_t nsegments, cap;
  size_t at;                   /* compare_folded(): next segment */
  struct tc_day_ledger folded; /* ledger of the day that is being walked; empty if there is none */
  struct tc_ledger ledger;
};

void tc__audit_problem(const struct tc_audit_sink *sink, struct tc_audited *out, const char *fmt,
                       ...) {
  char text[600];
  va_list args;

  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  out->problems++;
  sink->problem(sink->self, text);
}

#define problem(verify, ...) tc__audit_problem((verify)->look.sink, (verify)->look.out, __VA_ARGS__)

static void path_of(const struct segment *segment, const char *ending, char out[192]) {
  char hex[TC_STREAM_HEX_BYTES];

  tb_hex(segment->stream, sizeof segment->stream, hex);
  snprintf(out, 192, "archive/%s/%s/%016" PRIx64 "%s", segment->day, hex, segment->first_gen,
           ending);
}

/* A file with its final name is complete. But a meta is renamed before its trace, the catalog is updated last, and a walk
 * may see a segment and miss the one published just before. So a file created or changed since shortly before the walk
 * may lack its counterpart. */
static bool is_young(const struct verify *verify, const struct tc_archive_file *file) {
  struct stat st;

  return verify->running && fstatat(file->dir_fd, file->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
         st.st_ctime >= verify->begun - YOUNG_SECONDS;
}

/* ---- one segment */

/* Generations must follow the header without a gap and fill the file. */
static void check_index(struct verify *verify, const struct tc_archive_file *file,
                        const tc_meta *meta) {
  uint64_t at = meta->trace_header.len;

  for (size_t i = 0; i < meta->n_generations; i++) {
    const Tracecollect__V1__GenerationMeta *gen = meta->generations[i];
    if (gen->offset != at || (i > 0 && gen->gen != meta->generations[i - 1]->gen + 1)) {
      problem(verify, "%.150s: generation %" PRIu64 " does not follow the one before it",
              file->path, gen->gen);
      return;
    }
    at += gen->bytes;
  }
  if (at != meta->bytes)
    problem(verify, "%.150s: the generations end at byte %" PRIu64 ", the trace at %" PRIu64,
            file->path, at, meta->bytes);
}

static tb_rc add_segment(struct verify *verify, const tc_meta *meta, bool young) {
  if (TB_GROW(verify->segments, verify->cap, verify->nsegments) != TB_OK)
    return tb_fail(verify->look.diag, TB_NOMEM, "no memory for %zu segments",
                   verify->nsegments + 1);
  struct segment *segment = &verify->segments[verify->nsegments++];
  const char *reason;
  *segment = (struct segment){ .expired = meta->expired,
                               .young = young,
                               .verdict = tc_meta_verdict(meta, &reason),
                               .first_gen = meta->generations[0]->gen,
                               .bytes = meta->bytes,
                               .last_gen = meta->generations[meta->n_generations - 1]->gen,
                               .folded = meta->folded != NULL,
                               .first_seq = meta->generations[0]->first_seq,
                               .hash = tc_meta_hash(meta),
                               .previous = tc_meta_previous(meta) };
  for (size_t i = 0; i < meta->n_generations; i++) segment->events += meta->generations[i]->events;
  if (segment->folded) segment->last_gen = meta->folded->last_gen;
  memcpy(segment->stream, meta->stream.data, sizeof segment->stream);
  memcpy(segment->day, meta->day, sizeof segment->day);
  return TB_OK;
}

static void check_place(struct verify *verify, const struct tc_archive_file *file,
                        const tc_meta *meta) {
  char hex[TC_STREAM_HEX_BYTES], name[32];

  tb_hex(meta->stream.data, 16, hex);
  tc_meta_name(meta->generations[0]->gen, name);
  if (strcmp(file->day, meta->day) != 0 || strcmp(file->stream_hex, hex) != 0 ||
      strcmp(file->name, name) != 0)
    problem(verify, "%.150s: belongs to archive/%s/%s/%s", file->path, meta->day, hex, name);
}

/* One of the stream's metas is unknown: its accounting cannot be checked. */
static tb_rc skip_accounting(struct verify *verify, const struct tc_archive_file *file) {
  unsigned char stream[16];

  for (size_t i = 0; i < sizeof stream; i++) {
    char digits[3] = { file->stream_hex[2 * i], file->stream_hex[2 * i + 1], '\0' };
    stream[i] = (unsigned char)strtoul(digits, NULL, 16);
  }
  return tc_ledger_skip(&verify->ledger, stream);
}

static tb_rc check_segment(struct verify *verify, const struct tc_archive_file *file,
                           const tc_meta *meta, bool young) {
  verify->look.out->segments++;
  check_place(verify, file, meta);
  check_index(verify, file, meta);
  TB_TRY(add_segment(verify, meta, young));
  if (!meta->expired) return tc__audit_trace(&verify->look, file, meta);
  verify->look.out->expired++;
  return tc__audit_hashes(&verify->look, file, meta);
}

/* Retention marks a meta before it removes the trace; that may have happened since the meta was read. */
static bool is_expired_now(const struct tc_archive_file *file) {
  tc_meta *meta;

  if (tc_meta_read(file->dir_fd, file->name, NULL, &meta) != TB_OK) return false;
  bool expired = meta->expired;
  tc_meta_free(meta);
  return expired;
}

/* The segment added last has no trace. *out_whole: the segment counts (expired, or reported as a problem);
 * false: it is being published and is skipped. */
static void judge_missing(struct verify *verify, const struct tc_archive_file *file,
                          bool *out_whole) {
  struct segment *segment = &verify->segments[verify->nsegments - 1];

  *out_whole = true;
  if (verify->running && is_expired_now(file)) {
    segment->expired = true;
    verify->look.out->expired++;
  } else if (segment->young) {
    *out_whole = false;
    verify->look.out->fresh++;
    verify->look.out->segments--;
    verify->nsegments--;
  } else {
    problem(verify, "%.150s: its trace: %s", file->path, strerror(ENOENT));
  }
}

static void check_signature(struct verify *verify, const char *path, const tc_meta *meta,
                            enum tc_signed by) {
  char id[2 * TC_KEY_ID_BYTES + 1];

  switch (by) {
  case TC_SIGNED_RIGHT: verify->look.out->signed_metas++; break;
  case TC_SIGNED_NOT: problem(verify, "%.150s: has no signature", path); break;
  case TC_SIGNED_WRONG: problem(verify, "%.150s: its signature is wrong", path); break;
  case TC_SIGNED_OTHER:
    problem(verify, "%.150s: is signed with another key, %s", path,
            tb_hex(meta->signature->key.data, TC_KEY_ID_BYTES, id));
    break;
  }
}

static tb_rc check_meta(struct verify *verify, const struct tc_archive_file *file) {
  struct tb_diag why = { 0 };
  bool young = is_young(verify, file), whole = true;
  tc_meta *meta;

  const struct tc_keys *keys = verify->look.sink->keys;
  enum tc_signed by = TC_SIGNED_NOT;
  tb_rc rc = tc_meta_read_signed(file->dir_fd, file->name, keys, &why, &meta, &by);
  if (tc_rc_is_short(rc)) return tb_fail(verify->look.diag, rc, "%s", why.text);
  if (rc != TB_OK) {
    problem(verify, "archive/%.10s/%.32s/%s", file->day, file->stream_hex, why.text);
    return skip_accounting(verify, file);
  }
  if (tc_day_ledger_covers(&verify->folded, meta)) {
    tc_meta_free(meta);
    return TB_OK;
  }
  if (keys != NULL) check_signature(verify, file->path, meta, by);
  if (meta->n_generations > 0) /* a note of losses has no trace */
    rc = check_segment(verify, file, meta, young);
  if (rc == TB_NOTFOUND) {
    judge_missing(verify, file, &whole);
    rc = whole ? TB_OK : skip_accounting(verify, file);
  }
  if (rc == TB_OK && whole) rc = tc_ledger_add(&verify->ledger, meta);
  tc_meta_free(meta);
  return rc;
}

/* ---- the ledger of a day */

static void report_damage(void *self, const char *text) {
  struct verify *verify = self;

  problem(verify, "%s", text);
}

static tb_rc check_record(struct verify *verify, const struct tc_archive_file *file,
                          const struct tc_day_record *record) {
  const tc_meta *meta = record->meta;
  char path[80];

  snprintf(path, sizeof path, "%.48s: byte %" PRIu64, file->path, record->offset);
  if (verify->look.sink->keys != NULL) check_signature(verify, path, meta, record->by);
  verify->look.out->segments += meta->folded->segments;
  verify->look.out->expired += meta->folded->segments;
  TB_TRY(add_segment(verify, meta, false));
  return tc_ledger_add(&verify->ledger, meta);
}

static tb_rc check_ledger(struct verify *verify, const struct tc_archive_file *file) {
  struct tc_day_ledger_options options = { .keys = verify->look.sink->keys,
                                           .damaged = report_damage,
                                           .self = verify };
  struct tb_diag why = { 0 };
  tb_rc rc = tc_day_ledger_read(file->dir_fd, file->day, &options, &why, &verify->folded);

  if (tc_rc_is_short(rc)) return tb_fail(verify->look.diag, rc, "%s", why.text);
  if (rc != TB_OK) problem(verify, "%s", why.text);
  for (size_t i = 0; i < verify->folded.n; i++)
    TB_TRY(check_record(verify, file, &verify->folded.records[i]));
  return TB_OK;
}

static void check_lonely_trace(struct verify *verify, const struct tc_archive_file *file) {
  char meta[160];
  size_t stem = strlen(file->name) - strlen(".trace");

  snprintf(meta, sizeof meta, "%.*s.meta", (int)(stem < 128 ? stem : 128), file->name);
  if (faccessat(file->dir_fd, meta, F_OK, AT_SYMLINK_NOFOLLOW) != 0)
    problem(verify, "%.150s: has no meta", file->path);
}

static tb_rc visit(void *self, const struct tc_archive_file *file) {
  struct verify *verify = self;
  struct stat st;
  bool trace = tc_name_ends(file->name, ".trace"), meta = tc_name_ends(file->name, ".meta");

  if (verify->counting) {
    if (trace && fstatat(file->dir_fd, file->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
      verify->look.total += (uint64_t)st.st_size;
    return TB_OK;
  }
  if (file->stream_hex[0] == '\0') return check_ledger(verify, file);
  if (!trace && !meta) return TB_OK;
  if (meta) return check_meta(verify, file);
  check_lonely_trace(verify, file);
  return TB_OK;
}

static void report_folder(void *self, const char *text) {
  struct verify *verify = self;

  if (!verify->counting) problem(verify, "%s", text);
}

/* ---- all of them together */

static int by_seq(const void *a, const void *b) {
  const struct segment *x = a, *y = b;
  int stream = memcmp(x->stream, y->stream, sizeof x->stream);

  return stream != 0 ? stream : (x->first_seq > y->first_seq) - (x->first_seq < y->first_seq);
}

static int by_gen(const void *a, const void *b) {
  const struct segment *x = a, *y = b;
  int stream = memcmp(x->stream, y->stream, sizeof x->stream);

  return stream != 0 ? stream : (x->first_gen > y->first_gen) - (x->first_gen < y->first_gen);
}

/* A segment that cannot be read breaks the chain; the message names the segment after it. */
static void check_chain(struct verify *verify) {
  char path[192];

  if (verify->nsegments > 0)
    qsort(verify->segments, verify->nsegments, sizeof *verify->segments, by_seq);
  for (size_t i = 0; i < verify->nsegments; i++) {
    const struct segment *segment = &verify->segments[i];
    bool first = i == 0 || memcmp(segment[-1].stream, segment->stream, sizeof segment->stream) != 0;
    bool good = first ? segment->previous.kind == TC_HASH_NONE
                      : segment->previous.kind != TC_HASH_NONE &&
                            tc_hash_equal(&segment->previous, &segment[-1].hash);
    if (good || segment->young) continue;
    path_of(segment, ".meta", path);
    problem(verify, "%s: the chain is broken: %s", path,
            first ? "the segment before it is missing"
                  : "the segment before it is missing or another one");
  }
}

static tb_rc compare_row(void *self, const struct tc_segment_row *row) {
  struct verify *verify = self;
  struct segment key = { .first_gen = row->first_gen };

  if (row->open) return TB_OK; /* has no meta yet */
  memcpy(key.stream, row->stream, sizeof key.stream);
  struct segment *segment = verify->nsegments == 0 ? NULL
                                                   : bsearch(&key, verify->segments,
                                                             verify->nsegments, sizeof key, by_gen);
  if (segment == NULL) {
    if (!verify->running)
      problem(verify, "catalog.sqlite: segment %" PRIu64 ": %s has no valid meta", row->id,
              row->path);
    return TB_OK;
  }
  segment->listed = true;
  bool same = row->bytes == segment->bytes && row->last_gen == segment->last_gen &&
              row->expired == segment->expired && row->verdict == segment->verdict &&
              row->events == segment->events && tc_hash_equal(&row->hash, &segment->hash);
  /* While a daemon runs, a verdict may be stored between reading the meta and the row. */
  if (!same && !verify->running)
    problem(verify, "catalog.sqlite: segment %" PRIu64 ": %s differs from its meta", row->id,
            row->path);
  return TB_OK;
}

/* Records of ledgers have no rows: by their bytes a stream's sum exceeds the sum of its rows. */
static tb_rc compare_folded(void *self, const unsigned char stream[16], int64_t bytes) {
  struct verify *verify = self;
  int64_t found = 0;
  char hex[TC_STREAM_HEX_BYTES];

  for (; verify->at < verify->nsegments; verify->at++) {
    struct segment *segment = &verify->segments[verify->at];
    int order = memcmp(segment->stream, stream, sizeof segment->stream);
    if (order > 0) break;
    if (order < 0 || !segment->folded) continue;
    segment->listed = true;
    found += (int64_t)segment->bytes;
  }
  if (found != bytes)
    problem(verify,
            "catalog.sqlite: stream %s: %" PRIi64 " bytes of it should be in archive/*/ledger,"
            " %" PRIi64 " are: restore the damaged or missing ledger from a copy, or accept"
            " the loss with --rebuild",
            tb_hex(stream, 16, hex), bytes, found);
  return TB_OK;
}

/* The sums of a catalog that is being written, or that may be incomplete, cannot be compared. */
static tb_rc check_sums(struct verify *verify, int state_fd, struct tc_catalog *catalog,
                        struct tb_diag *why) {
  if (verify->running || tc_catalog_is_stale(state_fd)) return TB_OK;
  TB_TRY(tc_catalog_folded(catalog, compare_folded, verify, why));
  for (size_t i = 0; i < verify->nsegments; i++) {
    const struct segment *segment = &verify->segments[i];
    char hex[TC_STREAM_HEX_BYTES];
    if (segment->folded && !segment->listed)
      problem(verify,
              "archive/%s/" TC_DAY_LEDGER_NAME ": stream %s is not in the catalog; repair it with"
              " --rebuild",
              segment->day, tb_hex(segment->stream, sizeof segment->stream, hex));
  }
  return TB_OK;
}

static tb_rc check_catalog(struct verify *verify, int state_fd, bool needs_catalog) {
  struct tc_catalog *catalog;
  struct tb_diag why = { 0 };
  struct tc_select all = { .limit = UINT32_MAX };
  char path[192];

  if (faccessat(state_fd, "catalog.sqlite", F_OK, AT_SYMLINK_NOFOLLOW) != 0) {
    if (needs_catalog) problem(verify, "catalog.sqlite: is missing; --rebuild creates it");
    return TB_OK;
  }
  if (verify->nsegments > 0)
    qsort(verify->segments, verify->nsegments, sizeof *verify->segments, by_gen);
  tb_rc rc = tc_catalog_open(state_fd, false, &why, &catalog);
  if (rc == TB_OK) {
    rc = tc_catalog_segments(catalog, &all, compare_row, verify, &why);
    if (rc == TB_OK) rc = check_sums(verify, state_fd, catalog, &why);
    tc_catalog_close(catalog);
  }
  if (tc_rc_is_short(rc)) return tb_fail(verify->look.diag, rc, "%s", why.text);
  if (rc != TB_OK) {
    problem(verify, "%s; --rebuild creates a new one", why.text);
    return TB_OK;
  }
  for (size_t i = 0; i < verify->nsegments; i++) {
    const struct segment *segment = &verify->segments[i];
    if (segment->listed || segment->young || segment->folded) continue;
    path_of(segment, ".meta", path);
    problem(verify, "%s: is not in the catalog", path);
  }
  return TB_OK;
}

static tb_rc add_living(void *self, const struct tc_stream_row *row) {
  struct verify *verify = self;
  bool living = strcmp(row->state, "live") == 0 || strcmp(row->state, "waiting") == 0;

  return living ? tc_ledger_live(&verify->ledger, row->stream, &row->cut) : TB_OK;
}

/* Called before the metas are read, so that they contain all that a stream's accounting calls settled. A catalog that
 * cannot be read is reported later, when its rows are compared. */
static tb_rc read_living(struct verify *verify, int state_fd) {
  struct tc_catalog *catalog;
  struct tb_diag why = { 0 };

  if (!verify->running || tc_catalog_open(state_fd, false, &why, &catalog) != TB_OK) return TB_OK;
  tb_rc rc = tc_catalog_streams(catalog, &(struct tc_select){ 0 }, add_living, verify, &why);
  tc_catalog_close(catalog);
  return rc == TB_NOMEM ? tb_fail(verify->look.diag, rc, "no memory for the living streams")
                        : TB_OK;
}

tb_rc tc__open_archive(int state_fd, struct tb_diag *diag, int *out) {
  *out = openat(state_fd, "archive", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  return *out < 0 ? tb_fail(diag, TB_IO, "archive: %s", strerror(errno)) : TB_OK;
}

tb_rc tc_audit(int state_fd, bool needs_catalog, const struct tc_audit_sink *sink,
               struct tb_diag *diag, struct tc_audited *out) {
  struct verify verify = { .look = { .sink = sink, .out = out, .diag = diag },
                           .running = tc_statedir_is_locked(state_fd),
                           .begun = time(NULL),
                           .counting = true };
  int archive_fd;

  *out = (struct tc_audited){ 0 };
  TB_TRY(tc__open_archive(state_fd, diag, &archive_fd));
  int lock = tc_day_ledger_lock(archive_fd, false); /* nothing is folded meanwhile */
  verify.look.buf = malloc(TC__LOOK_BYTES);
  tb_rc rc = verify.look.buf == NULL ? tb_fail(diag, TB_NOMEM, "no memory") : TB_OK;
  if (rc == TB_OK) rc = read_living(&verify, state_fd);
  if (rc == TB_OK && sink->progress != NULL)
    rc = tc_archive_walk(archive_fd, visit, report_folder, &verify, diag);
  verify.counting = false;
  if (rc == TB_OK) rc = tc_archive_walk(archive_fd, visit, report_folder, &verify, diag);
  if (rc == TB_OK) check_chain(&verify);
  if (rc == TB_OK) rc = check_catalog(&verify, state_fd, needs_catalog);
  if (rc == TB_OK && verify.running)
    rc = tc_audit_open_runs(state_fd, sink, verify.look.buf, TC__LOOK_BYTES, diag, out);
  if (rc == TB_OK) tc_ledger_close(&verify.ledger, sink->problem, sink->self, out);
  if (lock >= 0) close(lock);
  close(archive_fd);
  tc_day_ledger_fini(&verify.folded);
  tc_ledger_fini(&verify.ledger);
  free(verify.segments);
  free(verify.look.buf);
  return rc;
}

tb_rc tc__take_lock(int state_fd, struct tb_diag *diag, struct tc_statedir_lock *out) {
  struct tb_diag why = { 0 };
  tb_rc rc = tc_statedir_lock(state_fd, "STATE", &why, out);

  if (rc == TB_OK) return TB_OK;
  return tb_fail(diag, rc, "%s",
                 rc == TB_REFUSED ? "a running collector has this folder; stop it first"
                                  : why.text);
}

tb_rc tc__rebuild_locked(int state_fd, int archive_fd, const struct tc_audit_sink *sink,
                         struct tb_diag *diag, uint64_t *out_segments) {
  struct tc_rebuilt done = { 0 };

  TB_TRY(tc_catalog_mark_stale(state_fd, true, diag)); /* in case this is interrupted */
  TB_TRY(tc_catalog_rebuild(state_fd, archive_fd, diag, sink->problem, sink->self, &done));
  if (done.unread == 0) tc_catalog_unmark_stale(state_fd);
  *out_segments = done.segments;
  return TB_OK;
}

tb_rc tc_audit_rebuild(int state_fd, const struct tc_audit_sink *sink, struct tb_diag *diag,
                       uint64_t *out_segments) {
  struct tc_statedir_lock lock;
  int archive_fd;

  *out_segments = 0;
  TB_TRY(tc__take_lock(state_fd, diag, &lock));
  tb_rc rc = tc__open_archive(state_fd, diag, &archive_fd);
  if (rc == TB_OK) {
    rc = tc__rebuild_locked(state_fd, archive_fd, sink, diag, out_segments);
    close(archive_fd);
  }
  tc_statedir_unlock(&lock);
  return rc;
}

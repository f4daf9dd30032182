/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/store/store.h"
#include "base/text/hex.h"
#include "collector/base/logger.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "collector/commit/thread.h"
#include "collector/model/store_counters.h"
#include "collector/sealer/sealer.h"
#include "collector/store/recovery.h"
#include "collector/wal/files.h"

struct tc_store {
  struct tc_statedir dirs;
  struct tc_stats stats;
  struct tc_commit *commit;
  struct tc_sealer *sealer;
  struct tc_keeps *keeps;
  char run[33]; /* id of this run */
};

static tb_rc make_run_id(struct tc_store *store, struct tb_diag *diag) {
  unsigned char id[16];

  if (getrandom(id, sizeof id, 0) != (ssize_t)sizeof id)
    return tb_fail(diag, TB_IO, "getrandom: %s", strerror(errno));
  tb_hex(id, sizeof id, store->run);
  return TB_OK;
}

static void note_unreadable(struct tc_store_sink sink, const struct tc_recovered *recovered) {
  static struct tc_log_site site;
  char text[300], name[TC_WAL_NAME_BYTES];

  if (sink.note == NULL || recovered->unreadable == 0) return;
  tc_wal_file_name(recovered->unreadable_file, name);
  snprintf(text, sizeof text,
           "recovery: wal/%s: the block at offset %" PRIu64
           " cannot be read: %s; records in this block and in others like it are lost",
           name, recovered->unreadable_at, strerror(EIO));
  sink.note(sink.self, &(struct tc_note){ &site, TC_ERROR, 0, "unreadable", text });
}

static void note_recovery(struct tc_store *store, struct tc_store_sink sink,
                          const struct tc_recovered *recovered) {
  char text[300];

  note_unreadable(sink, recovered);
  if (recovered->had_log) tc_count(&store->stats.recoveries, 1);
  tc_count(&store->stats.recovered_records, recovered->records);
  if (sink.note == NULL || recovered->records + recovered->corrupt + recovered->torn_bytes == 0)
    return;
  snprintf(text, sizeof text,
           "recovery: %" PRIu64 " records replayed, %" PRIu64
           " bytes of a torn tail left out, %" PRIu64 " damaged places skipped",
           recovered->records, recovered->torn_bytes, recovered->corrupt);
  static struct tc_log_site site;
  enum tc_level level = recovered->corrupt > 0 ? TC_ERROR : TC_NOTICE;
  sink.note(sink.self, &(struct tc_note){ &site, level, 0, "recovery", text });
}

static tb_rc open_keeps(struct tc_store *store, struct tc_store_sink sink, struct tb_diag *diag) {
  static struct tc_log_site site;
  struct tb_diag wrong;

  TB_TRY(tc_keeps_open(store->dirs.state, diag, &wrong, &store->keeps));
  if (wrong.rc != TB_OK && sink.note != NULL)
    sink.note(sink.self, &(struct tc_note){ &site, TC_ERROR, 0, "kept", wrong.text });
  return TB_OK;
}

static tb_rc open_parts(struct tc_store *store, const struct tc_config *config, unsigned loops,
                        struct tc_store_sink sink, struct tb_diag *diag) {
  bool durable = strcmp(config->top_sync, "process") != 0;
  struct tc_recovered recovered;

  TB_TRY(tc_statedir_open(config->top_state, diag, &store->dirs));
  TB_TRY(make_run_id(store, diag));
  TB_TRY(open_keeps(store, sink, diag));
  struct tc_commit_options commit = { .config = config,
                                      .dirs = &store->dirs,
                                      .loops = loops,
                                      .durable = durable,
                                      .sink = sink,
                                      .stats = &store->stats };
  TB_TRY(tc_commit_new(&commit, diag, &store->commit));
  struct tc_sealer_options sealer = { .config = config,
                                      .dirs = &store->dirs,
                                      .loops = loops,
                                      .durable = durable,
                                      .sink = sink,
                                      .stats = &store->stats,
                                      .keeps = store->keeps,
                                      .run = store->run,
                                      .wake_commit = tc_commit_wake,
                                      .wake_self = store->commit };
  TB_TRY(tc_sealer_new(&sealer, diag, &store->sealer));
  TB_TRY(tc_recover(store->commit, store->sealer, &store->dirs, loops, diag, &recovered));
  note_recovery(store, sink, &recovered);
  TB_TRY(tc_sealer_start(store->sealer, diag));
  return tc_commit_start(store->commit, store->sealer, diag);
}

tb_rc tc_store_open(const struct tc_config *config, unsigned loops, struct tc_store_sink sink,
                    struct tb_diag *diag, struct tc_store **out) {
  struct tc_store *store = calloc(1, sizeof *store);

  if (store == NULL) return tb_fail(diag, TB_NOMEM, "store: no memory");
  store->dirs = (struct tc_statedir)TC_STATEDIR_NONE;
  tb_rc rc = open_parts(store, config, loops, sink, diag);
  if (rc != TB_OK) {
    tc_store_close(store);
    return rc;
  }
  *out = store;
  return TB_OK;
}

void tc_store_close(struct tc_store *store) {
  tc_store_close_by(store, 0);
}

void tc_store_close_by(struct tc_store *store, uint64_t deadline_mono_ns) {
  if (store == NULL) return;
  if (store->sealer != NULL) tc_sealer_set_deadline(store->sealer, deadline_mono_ns);
  if (store->commit != NULL) tc_commit_stop(store->commit, deadline_mono_ns);
  if (store->sealer != NULL) tc_sealer_stop(store->sealer, deadline_mono_ns);
  if (store->commit != NULL) tc_commit_finish(store->commit);
  tc_sealer_free(store->sealer);
  tc_commit_free(store->commit);
  tc_keeps_free(store->keeps);
  tc_statedir_close(&store->dirs);
  free(store);
}

bool tc_store_submit(struct tc_store *store, unsigned sender, struct tc_submit *msg) {
  return tc_commit_submit(store->commit, sender, msg);
}

int tc_store_dirfd(const struct tc_store *store) {
  return store->dirs.state;
}

struct tc_keeps *tc_store_keeps(const struct tc_store *store) {
  return store->keeps;
}

bool tc_store_catalog_is_stale(const struct tc_store *store) {
  return atomic_load(&store->stats.catalog_stale);
}

void tc_store_show_runs(struct tc_store *store) {
  tc_sealer_show_runs(store->sealer);
}

void tc_store_rebuild_catalog(struct tc_store *store) {
  atomic_store(&store->stats.catalog_stale, true);
}

int tc_store_open_file(const struct tc_store *store, const struct tc_reply *stored) {
  int fd = openat(store->dirs.state, stored->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

  if (fd >= 0 || errno != ENOENT) return fd;
  return openat(store->dirs.state, stored->final_path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
}

static const char *health_of(const struct tc_stats *stats) {
  if (atomic_load(&stats->failed)) return "disk: the log cannot be written";
  enum tc_shortage archive = atomic_load(&stats->archive_waits);
  if (archive != TC_SHORT_NONE) return tc_shortage_of_archive(archive);
  return tc_shortage_of_log(atomic_load(&stats->log_waits));
}

static const char *finding_of(const struct tc_stats *stats) {
  const char *health = health_of(stats);

  if (strcmp(health, "ok") == 0 && atomic_load(&stats->retention_at_floor))
    return "retention: the disk is short, and nothing is left to delete (retention.floor)";
  if (strcmp(health, "ok") == 0 &&
      atomic_load(&stats->files_missing) + atomic_load(&stats->log_files_missing) > 0)
    return "files of the state folder were removed under the running daemon";
  return health;
}

enum tc_shortage tc_store_shortage(const struct tc_store *store, bool of_log) {
  const atomic_uint *waits = of_log ? &store->stats.log_waits : &store->stats.archive_waits;

  return (enum tc_shortage)atomic_load_explicit(waits, memory_order_relaxed);
}

void tc_store_stats(const struct tc_store *store, struct tc_store_stats *out) {
  const struct tc_stats *stats = &store->stats;

#define GET(field) .field = atomic_load_explicit(&stats->field, memory_order_relaxed)
  *out = (struct tc_store_stats){
    GET(commits),
    GET(commit_ns_total),
    GET(commit_ns_max),
    GET(log_bytes),
    GET(records),
    GET(record_bytes),
    GET(segments_sealed),
    GET(segment_bytes),
    GET(generations_broken),
    GET(recovered_records),
    GET(recoveries),
    GET(archive_bytes),
    GET(archive_segments),
    GET(expired_segments),
    GET(disk_free_bytes),
    GET(disk_free_inodes),
    GET(quarantine_bytes),
    GET(quarantine_files),
    GET(quarantine_expired),
    GET(retention_slices),
    GET(retention_ns_total),
    GET(retention_ns_max),
    GET(streams),
    GET(streams_live),
    GET(commit_turns),
    GET(sealer_turns),
    GET(retention_at_floor),
    GET(failed),
    GET(log_waits),
    GET(archive_waits),
    .files_missing = atomic_load(&stats->files_missing) + atomic_load(&stats->log_files_missing),
    .kept_stretches = tc_keeps_count(store->keeps),
    .health = health_of(stats),
    .finding = finding_of(stats),
  };
#undef GET
}

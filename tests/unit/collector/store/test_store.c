/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/audit/audit.h"
#include "archive/meta.h"
#include "proto/frame.pb-c.h"
#include "support/patience.h"
#include "support/store_fixture.h"

static void open_store(void) {
  tt_fixture_open(NULL);
}

TestSuite(store, .init = open_store, .fini = tt_fixture_remove);

/* Expects the archived file to be the header and the generation's batches, byte for byte. */
static void expect_generation(const struct tc_reply *stored, uint64_t gen, unsigned n, size_t len) {
  size_t got_len;

  tt_barrier(&tt);
  char *got = tt_read_file(&tt, stored->final_path, &got_len);
  unsigned char *want = malloc(len + 1);

  cr_assert_not_null(got, "%s", stored->final_path);
  cr_assert_eq(memcmp(got, "go 1.26 trace\0\0\0", 16), 0);
  cr_assert_eq(stored->len, n * len);
  cr_assert_leq(stored->offset + stored->len, got_len);
  for (unsigned i = 0; i < n; i++) {
    tt_fill(want, len, gen, i);
    cr_assert_eq(memcmp(got + stored->offset + i * len, want, len), 0,
                 "generation %lu batch %u differs", gen, i);
  }
  free(want);
  free(got);
}

Test(store, a_generation_is_acked_and_becomes_a_file_of_its_own) {
  struct tt_writer w = tt_attach_as(&tt, 1, 7);

  cr_assert_eq(w.seq, 0);
  tt_header(&w);
  tt_generation(&w, 1, 5, 1000);
  tt_generation(&w, 2, 100, 4000);
  cr_assert(tt_wait_acked(&tt, w.stream, w.seq));
  struct tc_reply *first = tt_wait(&tt, TC_REPLY_STORED, 0),
                  *second = tt_wait(&tt, TC_REPLY_STORED, 1);
  cr_assert_not_null(second);
  cr_assert_eq(first->gen, 1);
  cr_assert(first->new_run);
  cr_assert_eq(second->gen, 2);
  cr_assert_not(second->new_run);
  cr_assert_str_eq(first->service, "shop");
  expect_generation(first, 1, 5, 1000);
  expect_generation(second, 2, 100, 4000);
  cr_assert_eq(tt_count_files(&tt, "archive", ".trace"), 2);
  cr_assert_eq(tt_count_files(&tt, "archive", ".meta"), 2);
  cr_assert_eq(tt_count_files(&tt, "open", ".part"), 0);
}

Test(store, released_bytes_are_all_that_was_sent) {
  struct tt_writer w = tt_attach_as(&tt, 1, 7);
  uint64_t released = 0, sent = 0;

  tt_header(&w);
  tt_generation(&w, 1, 50, 3000);
  tt_barrier(&tt);
  sent = 16 + 50 * 3000 + (uint64_t)w.seq * TP_HEADER_BYTES;
  for (unsigned i = 0; i < tt.nreplies; i++)
    if (tt.replies[i]->kind == TC_REPLY_RELEASED) released += tt.replies[i]->released;
  cr_assert_gt(released, sent); /* includes the payload of GENEND */
  cr_assert_lt(released, sent + 64);
}

static tb_rc count_stream(void *self, const struct tc_stream_row *row) {
  struct tc_stream_row *last = self;
  uint64_t seen = last->spool_bytes + 1;

  *last = *row;
  last->spool_bytes = seen; /* number of rows so far */
  return TB_OK;
}

static struct tc_stream_row listed(void) {
  struct tc_stream_row row = { 0 };
  struct tb_diag diag = { 0 };
  struct tc_catalog *catalog;

  cr_assert_eq(tc_catalog_open(tc_store_dirfd(tt.store), false, &diag, &catalog), TB_OK, "%s",
               diag.text);
  cr_assert_eq(tc_catalog_streams(catalog, &(struct tc_select){ 0 }, count_stream, &row, &diag),
               TB_OK, "%s", diag.text);
  tc_catalog_close(catalog);
  cr_assert_eq(row.spool_bytes, 1);
  return row;
}

Test(store, after_a_barrier_a_closed_stream_is_listed_whole) {
  struct tt_writer w = tt_attach_as(&tt, 1, 7);

  tt_barrier(&tt);
  cr_assert_str_eq(listed().state, "live");
  cr_assert_str_eq(listed().peer, "127.0.0.1:1007");
  tt_header(&w);
  for (uint64_t gen = 1; gen <= 20; gen++) tt_generation(&w, gen, 3, 500);
  tt_close(&w);
  tt_detach(&tt, 1);
  tt_barrier(&tt);
  struct tc_stream_row row = listed();
  cr_assert_str_eq(row.state, "closed");
  cr_assert_eq(row.generations, 20);
  cr_assert_eq(row.batches, 60);
  cr_assert_eq(row.acked_seq, w.seq);
  cr_assert_eq(tt_count(&tt, TC_REPLY_STORED), 21);
  cr_assert(tt_wait(&tt, TC_REPLY_STORED, 20)->stream_closed);
}

Test(store, a_stream_belongs_to_the_identity_that_first_used_it) {
  tt_attach_as(&tt, 1, 7);
  tt_attach(&tt, 2, 7, "tracecollect:agent/mallory");
  cr_assert_eq(tt_attached(&tt, 2, NULL), 0);
  cr_assert_eq(tt_wait(&tt, TC_REPLY_REFUSED, 0)->code,
               TRACECOLLECT__V1__REFUSE_CODE__REFUSE_IDENTITY);
}

Test(store, a_newer_connection_supersedes_and_goes_on_where_the_old_one_was) {
  struct tt_writer old = tt_attach_as(&tt, 1, 7);

  tt_header(&old);
  tt_generation(&old, 1, 3, 100);
  struct tt_writer fresh = tt_attach_as(&tt, 2, 7);
  cr_assert_eq(fresh.seq, old.seq);
  cr_assert_eq(tt_wait(&tt, TC_REPLY_SUPERSEDED, 0)->conn, 1);
  tt_record(&old, TP_BATCH, 2, "late", 4); /* of the old connection, so it is not taken */
  tt_generation(&fresh, 2, 3, 100);
  cr_assert(tt_wait_acked(&tt, fresh.stream, fresh.seq));
  struct tc_reply *stored = tt_wait(&tt, TC_REPLY_STORED, 1);
  cr_assert_not_null(stored);
  expect_generation(stored, 2, 3, 100);
}

Test(store, what_was_acked_is_acked_again_and_not_stored_again) {
  struct tt_writer w = tt_attach_as(&tt, 1, 7);

  tt_header(&w);
  tt_generation(&w, 1, 3, 100);
  cr_assert(tt_wait_acked(&tt, w.stream, w.seq));
  unsigned acks = tt_count(&tt, TC_REPLY_ACKED);
  struct tt_writer again = { .t = &tt, .conn = 1, .stream = w.stream };
  tt_header(&again);
  cr_assert_not_null(tt_wait(&tt, TC_REPLY_ACKED, acks));
  tt_generation(&w, 2, 3, 100);
  tt_barrier(&tt);
  cr_assert_eq(tt_count(&tt, TC_REPLY_STORED), 2);
}

Test(store, a_number_left_out_ends_the_connection) {
  struct tt_writer w = tt_attach_as(&tt, 1, 7);

  tt_header(&w);
  w.seq++;
  tt_batch(&w, 1, "x", 1);
  struct tc_reply *refused = tt_wait(&tt, TC_REPLY_REFUSED, 0);
  cr_assert_not_null(refused);
  cr_assert_eq(refused->code, TRACECOLLECT__V1__REFUSE_CODE__REFUSE_PROTOCOL);
}

Test(store, a_loss_begins_a_new_run) {
  struct tt_writer w = tt_attach_as(&tt, 1, 7);

  tt_header(&w);
  tt_generation(&w, 1, 3, 100);
  tt_loss(&w, 2, 4, 30, 3000);
  tt_generation(&w, 5, 3, 100);
  tt_generation(&w, 6, 3, 100);
  tt_barrier(&tt);
  cr_assert(tt_wait(&tt, TC_REPLY_STORED, 1)->new_run);
  cr_assert_eq(tt_wait(&tt, TC_REPLY_STORED, 1)->gen, 5);
  cr_assert_not(tt_wait(&tt, TC_REPLY_STORED, 2)->new_run);
}

Test(store, a_loop_is_told_what_was_archived_and_what_was_lost) {
  struct tt_writer w = tt_attach_as(&tt, 1, 7);

  tt_header(&w);
  tt_generation(&w, 1, 3, 100);
  tt_loss(&w, 2, 4, 30, 3000);
  tt_batch(&w, 5, "abc", 3);
  w.bytes++; /* the agent miscounts */
  tt_end(&w, 5);
  tt_close(&w);
  tt_barrier(&tt);
  const struct tc_reply *archived = tt_wait(&tt, TC_REPLY_ARCHIVED, 0);
  cr_assert_eq(archived->gen, 1);
  cr_assert_eq(archived->last_gen, 1);
  cr_assert_eq(archived->bytes, 16 + 3 * 100);
  cr_assert_str_eq(archived->service, "shop");
  cr_assert_str_eq(archived->path, tt_wait(&tt, TC_REPLY_STORED, 0)->final_path);
  const struct tc_reply *lost = tt_wait(&tt, TC_REPLY_LOST, 0);
  cr_assert_eq(lost->gen, 2);
  cr_assert_eq(lost->last_gen, 4);
  cr_assert_eq(lost->batches, 30);
  cr_assert_eq(lost->bytes, 3000);
  cr_assert_str_empty(lost->loss_text);
  cr_assert_eq(tt_wait(&tt, TC_REPLY_LOST, 1)->gen, 5);
  cr_assert_str_not_empty(tt_wait(&tt, TC_REPLY_LOST, 1)->loss_text,
                          "why the collector gave it up");
  cr_assert_eq(tt_count(&tt, TC_REPLY_LOST), 2);
  cr_assert_eq(tt_count(&tt, TC_REPLY_ARCHIVED), 1);
}

Test(store, an_abandoned_generation_goes_to_quarantine) {
  struct tt_writer w = tt_attach_as(&tt, 1, 7);

  tt_header(&w);
  tt_generation(&w, 1, 3, 100);
  tt_batch(&w, 2, "partly", 6);
  tt_loss(&w, 2, 2, 9, 900);
  tt_generation(&w, 3, 3, 100);
  tt_barrier(&tt);
  cr_assert_eq(tt_count(&tt, TC_REPLY_STORED), 2);
  cr_assert_eq(tt_count_files(&tt, "quarantine", ".part"), 1);
  cr_assert_eq(tt_count_files(&tt, "archive", ".trace"), 2);
}

Test(store, an_end_that_does_not_fit_puts_the_generation_into_quarantine) {
  struct tt_writer w = tt_attach_as(&tt, 1, 7);

  tt_header(&w);
  tt_batch(&w, 1, "abc", 3);
  w.bytes++; /* the agent miscounts */
  tt_end(&w, 1);
  tt_generation(&w, 2, 3, 100);
  tt_barrier(&tt);
  cr_assert_eq(tt_count(&tt, TC_REPLY_STORED), 1);
  cr_assert_eq(tt_count_files(&tt, "quarantine", ".part"), 1);
  cr_assert(tt_wait(&tt, TC_REPLY_STORED, 0)->new_run);
}

/* All generations wait to be sealed at the same time. The first one stays, and the store continues. */
Test(store, a_generation_that_comes_again_at_once_is_refused) {
  struct tt_writer w = tt_attach_as(&tt, 1, 7);

  tt_header(&w);
  for (int i = 0; i < 40; i++) tt_generation(&w, 1 + i % 2, 3, 100);
  tt_generation(&w, 3, 3, 100);
  tt_barrier(&tt);
  cr_assert_eq(tt_count(&tt, TC_REPLY_FAILED), 0, "%s", tt.notes);
  cr_assert_eq(tt_count_files(&tt, "archive", ".trace"), 3);
  tt_store_stop(&tt);
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
}

/* A meta has the loss and the stream's end, but the log does not. The agent reconnects and continues. */
Test(store, a_generation_that_was_refused_unsaid_is_lost_once) {
  uint64_t patience = tt.config.agents_abandon_after;

  tt_store_stop(&tt);
  tt.config.agents_abandon_after = 1000000;
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  struct tt_writer w = tt_attach_as(&tt, 1, 7);
  tt_header(&w);
  for (unsigned i = 0; i < 2; i++) {
    tt_generation(&w, 1, 3, 1000);
    tt_barrier(&tt);
  }
  cr_assert_eq(tt_count_files(&tt, "quarantine", ".part"), 1, "%s", tt.notes);
  cr_assert_eq(tt_stream_row(&tt, 7).lost_batches, 0, "no meta tells of it yet");
  tt_copy_log(&tt, "unsaid");
  tt_detach(&tt, w.conn);
  TT_WAIT_UNTIL(tt_stream_row(&tt, 7).lost_batches != 0);
  tt_store_stop(&tt);
  cr_assert_eq(tt_stream_row(&tt, 7).lost_batches, 3, "%s", tt.notes);
  tt_shell(&tt, "rm -r wal && mv unsaid wal");
  tt.config.agents_abandon_after = patience;
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  struct tt_writer again = tt_attach_as(&tt, 2, 7);
  cr_assert_eq(again.seq, w.seq, "%s", tt.notes);
  tt_generation(&again, 2, 3, 1000);
  tt_close_with(&again, 9, 9000);
  tt_barrier(&tt);
  struct tc_stream_row row = tt_stream_row(&tt, 7);
  cr_assert_eq(row.lost_batches, 3, "%s", tt.notes);
  cr_assert_eq(row.generations, 2);
  tt_expect_proven(&tt);
}

static tb_rc keep_row(void *self, const struct tc_segment_row *row) {
  *(struct tc_segment_row *)self = *row;
  return TB_OK;
}

/* An agent may report any number of losses: before a segment, and again at the stream's end. */
Test(store, losses_without_end_are_summed_up) {
  struct tt_writer w = tt_attach_as(&tt, 1, 7);
  const uint64_t reported = TT_LESS(10000, 4500), again = 10;
  struct tc_catalog *catalog;
  struct tc_segment_row row = { 0 };
  struct tc_select all = { .limit = 1 };
  struct tb_diag diag = { 0 };
  tc_meta *meta;
  char path[256];

  tt_header(&w);
  for (uint64_t gen = 1; gen <= reported; gen++) tt_loss(&w, gen, gen, 2, 100);
  tt_generation(&w, reported + 1, 3, 100);
  for (uint64_t gen = reported + 2; gen < reported + 2 + again; gen++)
    tt_loss(&w, gen, gen, 2, 100);
  tt_close(&w);
  tt_barrier(&tt);
  int state = open(tt.dir, O_RDONLY | O_DIRECTORY);
  cr_assert_eq(tc_catalog_open(state, false, &diag, &catalog), TB_OK);
  cr_assert_eq(tc_catalog_segments(catalog, &all, keep_row, &row, &diag), TB_OK);
  snprintf(path, sizeof path, "%.*s.meta", (int)(strrchr(row.path, '.') - row.path), row.path);
  cr_assert_eq(tc_meta_read(state, path, &diag, &meta), TB_OK, "%s", diag.text);
  uint64_t batches = 0;
  for (size_t i = 0; i < meta->n_losses; i++) batches += meta->losses[i]->batches;
  cr_assert_eq(batches, 2 * (reported + again), "none is forgotten");
  cr_assert_leq(meta->n_losses, 4096);
  cr_assert_eq(meta->losses[meta->n_losses - 1]->last_gen, reported + 1 + again);
  tc_meta_free(meta);
  tc_catalog_close(catalog);
  close(state);
}

Test(store, a_second_store_on_the_folder_is_refused_by_name) {
  struct tb_diag diag = { 0 };
  struct tc_store *second;
  struct tc_store_sink sink = { 0 };
  char pid[32];

  cr_assert_eq(tc_store_open(&tt.config, 1, sink, &diag, &second), TB_REFUSED);
  snprintf(pid, sizeof pid, "process %d", (int)getpid());
  cr_assert_not_null(strstr(diag.text, pid), "%s", diag.text);
  cr_assert_not_null(strstr(diag.text, "LOCK"));
}

/* The tools cannot either, because the lock is on the folder. */
Test(store, a_second_one_does_not_come_in_where_LOCK_was_removed) {
  struct tc_audit_sink audit = { 0 };
  struct tc_store_sink sink = { 0 };
  struct tb_diag diag = { 0 };
  struct tc_store *second;
  uint64_t segments;
  int state = open(tt.dir, O_RDONLY | O_DIRECTORY);

  cr_assert_eq(unlinkat(state, "LOCK", 0), 0);
  cr_assert_eq(tc_store_open(&tt.config, 1, sink, &diag, &second), TB_REFUSED, "%s", diag.text);
  tb_diag_clear(&diag);
  cr_assert_eq(tc_audit_rebuild(state, &audit, &diag, &segments), TB_REFUSED, "%s", diag.text);
  close(state);
}

Test(store, a_log_of_a_newer_version_is_not_touched) {
  struct tb_diag diag = { 0 };
  struct tc_store *second;
  struct tc_store_sink sink = { 0 };
  char path[128];

  tt_store_stop(&tt);
  snprintf(path, sizeof path, "%s/VERSION", tt.dir);
  FILE *f = fopen(path, "w");
  fputs("2\n", f);
  fclose(f);
  snprintf(path, sizeof path, "%s/LOCK", tt.dir);
  unlink(path);
  cr_assert_eq(tc_store_open(&tt.config, 1, sink, &diag, &second), TB_UNSUPPORTED);
  cr_assert_not_null(strstr(diag.text, "version 2"), "%s", diag.text);
  cr_assert_neq(access(path, F_OK), 0);
}

Test(store, replies_wait_while_the_loop_takes_none_and_acks_are_joined) {
  struct tt_writer w = tt_attach_as(&tt, 1, 7);

  tt.refuse_replies = true;
  tt_header(&w);
  for (uint64_t gen = 1; gen <= 50; gen++) tt_generation(&w, gen, 2, 100);
  struct tc_store_stats stats;
  do tc_store_stats(tt.store, &stats);
  while (stats.segments_sealed < 50);
  cr_assert_eq(tt_count(&tt, TC_REPLY_ACKED), 0);
  pthread_mutex_lock(&tt.lock);
  tt.refuse_replies = false;
  pthread_mutex_unlock(&tt.lock);
  cr_assert(tt_wait_acked(&tt, w.stream, w.seq));
  cr_assert_leq(tt_count(&tt, TC_REPLY_ACKED), 2);
  cr_assert_not_null(tt_wait(&tt, TC_REPLY_STORED, 49));
  for (unsigned i = 0; i < 50; i++) cr_assert_eq(tt_wait(&tt, TC_REPLY_STORED, i)->gen, i + 1);
}

Test(store, a_restart_goes_on_where_it_was) {
  struct tt_writer w = tt_attach_as(&tt, 1, 7);

  tt_header(&w);
  tt_generation(&w, 1, 3, 1000);
  tt_batch(&w, 2, "first half", 10);
  cr_assert(tt_wait_acked(&tt, w.stream, w.seq));
  uint64_t seq = w.seq;
  tt_store_stop(&tt);
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  struct tt_writer again = tt_attach_as(&tt, 2, 7);
  cr_assert_eq(again.seq, seq);
  again.batches = w.batches, again.bytes = w.bytes, again.crc = w.crc;
  tt_batch(&again, 2, "second half", 11);
  tt_end(&again, 2);
  tt_barrier(&tt);
  /* Generation 1 has no verdict yet, so it is offered again. Then generation 2 continues the same run. */
  struct tc_reply *one = tt_wait(&tt, TC_REPLY_STORED, 0), *two = tt_wait(&tt, TC_REPLY_STORED, 1);
  cr_assert_not_null(two, "%s", tt.notes);
  cr_assert_eq(one->gen, 1);
  cr_assert(one->new_run);
  cr_assert_eq(two->gen, 2);
  cr_assert_not(two->new_run);
  size_t len;
  char *bytes = tt_read_file(&tt, two->final_path, &len);
  cr_assert_eq(len, 16 + 21);
  cr_assert_eq(memcmp(bytes + 16, "first halfsecond half", 21), 0);
  free(bytes);
}

Test(store, the_log_is_deleted_as_generations_are_sealed) {
  struct tt_writer w = tt_attach_as(&tt, 1, 7);

  tt_header(&w);
  for (uint64_t gen = 1; gen <= 40; gen++) {
    tt_generation(&w, gen, 10, 60000);
    tt_barrier(&tt);
  }
  /* A barrier waits for the sealer. The log is trimmed only after that: on a slow disk, some generations later. */
  struct tc_store_stats stats;
  TT_WAIT_UNTIL((tc_store_stats(tt.store, &stats), stats.log_bytes < stats.record_bytes));
  cr_assert_geq(stats.log_bytes, 1, "what was deleted does not count");
  tt_store_stop(&tt);
  cr_assert_leq(tt_count_files(&tt, "wal", ".wal"), 2);
  cr_assert_eq(tt_count_files(&tt, "archive", ".trace"), 40);
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  tc_store_stats(tt.store, &stats);
  cr_assert_gt(stats.log_bytes, 0, "what was found counts");
}

Test(store, retention_goes_past_a_meta_that_cannot_be_read) {
  struct tt_writer w = tt_attach_as(&tt, 1, 7);
  char path[256];

  tt_header(&w);
  for (uint64_t gen = 1; gen <= 6; gen++) tt_generation(&w, gen, 1, 1000);
  tt_barrier(&tt);
  const char *trace = tt_wait(&tt, TC_REPLY_STORED, 0)->final_path;
  snprintf(path, sizeof path, "%.*s.meta", (int)(strrchr(trace, '.') - trace), trace);
  tt_store_stop(&tt);
  tt_flip(&tt, path, 40);
  tt.config.retention_bytes = 3500;
  tt.config.retention_every = 10000000;
  cr_assert_eq(tt_store_start(&tt), TB_OK);
  TT_WAIT_UNTIL(tt_count_files(&tt, "archive", ".trace") <= 3);
  tt_barrier(&tt);
  cr_assert_eq(tt_count_files(&tt, "archive", ".trace"), 3, "%s", tt.notes);
  cr_assert_eq(tt_count_files(&tt, "archive", ".meta"), 6, "metas stay");
}

Test(store, several_generations_share_a_file_where_configured) {
  tt_store_stop(&tt);
  tt.config.segment_generations_max = 4;
  cr_assert_eq(tt_store_start(&tt), TB_OK);
  struct tt_writer w = tt_attach_as(&tt, 1, 7);
  tt_header(&w);
  for (uint64_t gen = 1; gen <= 10; gen++) tt_generation(&w, gen, 3, 1000);
  cr_assert_not_null(tt_wait(&tt, TC_REPLY_STORED, 9));
  for (unsigned i = 0; i < 10; i++) {
    struct tc_reply *stored = tt_wait(&tt, TC_REPLY_STORED, i);
    cr_assert_eq(stored->gen, i + 1);
    cr_assert_eq(stored->new_run, i == 0);
    int fd = tc_store_open_file(tt.store, stored);
    unsigned char got[1000], want[1000];
    cr_assert_geq(fd, 0);
    tt_fill(want, sizeof want, i + 1, 0);
    cr_assert_eq(pread(fd, got, sizeof got, (off_t)stored->offset), 1000);
    cr_assert_eq(memcmp(got, want, sizeof got), 0);
    close(fd);
  }
  /* A barrier in the middle of a generation cuts nothing. */
  tt_batch(&w, 11, "begun", 5);
  tt_barrier(&tt);
  cr_assert_eq(tt_count_files(&tt, "archive", ".trace"), 2);
  tt_batch(&w, 11, "ended", 5);
  tt_end(&w, 11);
  tt_close(&w);
  tt_barrier(&tt);
  cr_assert_eq(tt_count_files(&tt, "archive", ".trace"), 3);
}

Test(store, of_a_name_that_has_all_its_streams_the_oldest_that_was_cut_off_gives_way) {
  struct tt_store t;

  tt_store_make(&t);
  t.config.agents_identity_streams_max = 2;
  t.config.agents_abandon_after = 1000000;
  cr_assert_eq(tt_store_start(&t), TB_OK);
  tt_attach(&t, 1, 1, "tracecollect:agent/a");
  tt_attach(&t, 2, 2, "tracecollect:agent/a");
  cr_assert_neq(tt_attached(&t, 1, NULL), 0);
  cr_assert_neq(tt_attached(&t, 2, NULL), 0);
  tt_detach(&t, 1);
  uint64_t conn = 3;
  tt_attach(&t, conn, 3, "tracecollect:agent/a");
  for (int ms = 0; tt_attached(&t, conn, NULL) == 0 && ms < TT_PATIENCE_MS; ms += 10) {
    usleep(10000); /* until the first connection is abandoned */
    tt_attach(&t, ++conn, 3, "tracecollect:agent/a");
  }
  cr_assert_neq(tt_attached(&t, conn, NULL), 0);
  tt_attach(&t, ++conn, 4, "tracecollect:agent/a");
  cr_assert_eq(tt_attached(&t, conn, NULL), 0, "the two others are connected");
  tt_store_remove(&t);
}

Test(store, one_identity_has_its_share_of_streams_and_known_ones_come_back) {
  struct tt_store t;

  tt_store_make(&t);
  t.config.agents_identity_streams_max = 2;
  cr_assert_eq(tt_store_start(&t), TB_OK);
  tt_attach(&t, 1, 1, "tracecollect:agent/a");
  tt_attach(&t, 2, 2, "tracecollect:agent/a");
  cr_assert_neq(tt_attached(&t, 1, NULL), 0);
  cr_assert_neq(tt_attached(&t, 2, NULL), 0);
  tt_attach(&t, 3, 3, "tracecollect:agent/a");
  struct tc_reply *refused = tt_wait(&t, TC_REPLY_REFUSED, 0);
  cr_assert_not_null(refused);
  cr_expect_eq(refused->code, TRACECOLLECT__V1__REFUSE_CODE__REFUSE_BUDGET);
  cr_expect_str_eq(refused->text, "agents.identity_streams_max is 2 for one certificate name");
  tt_attach(&t, 4, 4, "tracecollect:agent/b");
  cr_expect_neq(tt_attached(&t, 4, NULL), 0);
  tt_detach(&t, 1);
  tt_attach(&t, 5, 1, "tracecollect:agent/a");
  cr_expect_neq(tt_attached(&t, 5, NULL), 0, "its own stream");
  tt_store_remove(&t);
}

/* ---- files that a person deletes */

static uint64_t missing_files(void) {
  struct tc_store_stats stats;

  tc_store_stats(tt.store, &stats);
  return stats.files_missing;
}

static void remove_all(const char *folder, const char *suffix) {
  char command[256];

  snprintf(command, sizeof command, "find %s/%s -name '*%s' -delete", tt.dir, folder, suffix);
  cr_assert_eq(system(command), 0);
}

Test(store, files_that_are_removed_under_it_are_noticed) {
  enum { SEGMENTS = 3, GONE = SEGMENTS + 1 + 1 };
  struct tt_writer w = tt_attach_as(&tt, 1, 7);
  struct tc_store_stats stats;

  tt_header(&w);
  for (uint64_t gen = 1; gen <= SEGMENTS; gen++) tt_generation(&w, gen, 3, 1000);
  tt_barrier(&tt);
  cr_assert_eq(missing_files(), 0, "%s", tt.notes);
  remove_all("archive", ".trace");
  remove_all("wal", ".wal");
  remove_all(".", "LOCK");
  TT_WAIT_UNTIL(missing_files() >= GONE);
  cr_assert_eq(missing_files(), GONE);
  tc_store_stats(tt.store, &stats);
  cr_assert_str_eq(stats.health, "ok");
  cr_assert_not_null(strstr(stats.finding, "were removed"));
  cr_assert(tt_noted(&tt, "LOCK is gone"));
}

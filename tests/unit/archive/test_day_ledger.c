/* SPDX-License-Identifier: Apache-2.0 */
/* Folding of metas, and the ledger of a day that they are folded into: every figure of a record,
 * and the effect of damage to a file. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/catalog/write.h"
#include "archive/day_ledger.h"
#include "archive/fold.h"
#include "archive/generation_time.h"

static char folder[] = "/tmp/tc-ledger-XXXXXX";
static int day_fd;

static void make_folder(void) {
  strcpy(folder + strlen(folder) - 6, "XXXXXX");
  cr_assert_not_null(mkdtemp(folder));
  day_fd = open(folder, O_RDONLY | O_DIRECTORY);
  cr_assert_geq(day_fd, 0);
}

static void remove_folder(void) {
  char command[64];

  close(day_fd);
  snprintf(command, sizeof command, "rm -r %s", folder);
  cr_assert_eq(system(command), 0);
}

TestSuite(day_ledger, .init = make_folder, .fini = remove_folder);

/* ---- metas by hand */

static unsigned char stream_id[16] = "sixteen bytes id";

struct made { /* a segment of `gens` generations of 2 batches and 100 bytes each */
  uint64_t gen, gens, seq;
  unsigned char hash, previous;
  bool broken;
};

static void *copy_of(const void *from, size_t n) {
  return memcpy(malloc(n), from, n);
}

static tc_meta *new_meta(void) {
  tc_meta *meta = malloc(sizeof *meta);

  tracecollect__v1__segment_meta__init(meta);
  meta->format = 1;
  meta->stream = (ProtobufCBinaryData){ 16, copy_of(stream_id, 16) };
  meta->service = strdup("shop");
  meta->day = strdup("2026-11-26");
  meta->losses = malloc(4 * sizeof(void *));
  return meta;
}

static Tracecollect__V1__ContentHash *new_hash(unsigned char byte) {
  Tracecollect__V1__ContentHash *hash = malloc(sizeof *hash);

  tracecollect__v1__content_hash__init(hash);
  hash->kind = TRACECOLLECT__V1__HASH_KIND__HASH_XXH3_128;
  hash->value = (ProtobufCBinaryData){ 16, memset(malloc(16), byte, 16) };
  return hash;
}

static tc_meta *segment(struct made made) {
  tc_meta *meta = new_meta();

  meta->expired = true;
  meta->bytes = 16 + 100 * made.gens;
  meta->first_wall_ns = 1000 * made.gen;
  meta->last_wall_ns = 1000 * (made.gen + made.gens);
  meta->hash = new_hash(made.hash);
  if (made.previous != 0) meta->previous = new_hash(made.previous);
  meta->generations = malloc(made.gens * sizeof(void *));
  for (uint64_t i = 0; i < made.gens; i++) {
    Tracecollect__V1__GenerationMeta *gen = malloc(sizeof *gen);
    tracecollect__v1__generation_meta__init(gen);
    gen->gen = made.gen + i;
    gen->batches = 2;
    gen->bytes = 100;
    gen->events = 50;
    gen->first_seq = made.seq + 3 * i;
    gen->last_seq = made.seq + 3 * i + 2;
    gen->clock_wall_ns = 5000 * gen->gen;
    gen->last_ns = 5000;
    gen->verdict = malloc(sizeof *gen->verdict);
    tracecollect__v1__verdict__init(gen->verdict);
    gen->verdict->code = made.broken && i == 0 ? TRACECOLLECT__V1__VERDICT_CODE__VERDICT_BROKEN
                                               : TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK;
    meta->generations[meta->n_generations++] = gen;
  }
  return meta;
}

static void add_loss(tc_meta *meta, uint64_t seq, uint64_t batches) {
  Tracecollect__V1__LossMeta *loss = malloc(sizeof *loss);

  tracecollect__v1__loss_meta__init(loss);
  loss->first_gen = loss->last_gen = 99;
  loss->seq = seq;
  loss->batches = batches;
  loss->bytes = 10 * batches;
  meta->losses[meta->n_losses++] = loss;
}

static void end_it(tc_meta *meta) {
  meta->ended = strdup("clean");
  meta->stream_closed = true;
  meta->produced_batches = 17;
  meta->produced_bytes = 1234;
}

/* ---- folding */

/* Two runs and a note, in no order. */
static void fold_a_day(struct tc_fold *fold, const tc_meta **out) {
  struct tb_diag diag = { 0 };
  tc_meta *note = new_meta(), *last = segment((struct made){ 8, 3, 40, 0xb, 0xa, false });

  add_loss(note, 60, 5);
  end_it(note);
  add_loss(last, 39, 4);
  cr_assert_eq(tc_fold_add(fold, last), TB_OK);
  cr_assert_eq(tc_fold_add(fold, note), TB_OK);
  cr_assert_eq(tc_fold_add(fold, segment((struct made){ 5, 2, 20, 0xa, 0x9, true })), TB_OK);
  cr_assert_eq(tc_fold_end(fold, &diag, out), TB_OK, "%s", diag.text);
}

static void expect_the_day(const tc_meta *meta) {
  const Tracecollect__V1__GenerationMeta *sum = meta->generations[0];
  struct tc_wall wall = tc_meta_wall(meta);

  cr_assert_eq(meta->n_generations, 1);
  cr_assert(meta->expired);
  cr_assert_str_eq(meta->service, "shop");
  cr_assert_eq(meta->folded->segments, 2);
  cr_assert_eq(meta->folded->generations, 5);
  cr_assert_eq(meta->folded->last_gen, 10);
  cr_assert_eq(meta->folded->broken, 1);
  cr_assert_eq(meta->bytes, 2 * 16 + 5 * 100);
  cr_assert_eq(sum->gen, 5);
  cr_assert_eq(sum->batches, 10);
  cr_assert_eq(sum->bytes, 500);
  cr_assert_eq(sum->events, 250);
  cr_assert_eq(sum->first_seq, 20);
  cr_assert_eq(sum->last_seq, 48);
  cr_assert_eq(meta->first_wall_ns, 5000);
  cr_assert_eq(meta->last_wall_ns, 11000);
  cr_assert_eq(wall.first_ns, 25000);
  cr_assert_eq(wall.last_ns, 55000);
  cr_assert_not(wall.estimated);
  cr_assert_eq(tc_meta_hash(meta).bytes[0], 0xb);
  cr_assert_eq(tc_meta_previous(meta).bytes[0], 0x9);
  cr_assert_eq(meta->n_losses, 2);
  cr_assert_eq(meta->losses[0]->seq, 39);
  cr_assert_eq(meta->losses[1]->batches, 5);
  cr_assert_eq(tc_meta_last_seq(meta), 60);
  cr_assert_str_eq(meta->ended, "clean");
  cr_assert(meta->stream_closed);
  cr_assert_eq(meta->produced_batches, 17);
}

static const char day[] = "2026-11-26";

static void append(const tc_meta *record) {
  struct tb_diag diag = { 0 };
  bool unsure;

  cr_assert_eq(tc_day_ledger_append(day_fd, record, NULL, true, &diag, &unsure), TB_OK, "%s",
               diag.text);
  cr_assert_not(unsure);
}

Test(day_ledger, a_day_is_folded_and_read_back_with_every_figure) {
  struct tc_day_ledger_options options = { 0 };
  struct tc_day_ledger ledger = { 0 };
  struct tb_diag diag = { 0 };
  struct tc_fold fold = { 0 };
  const tc_meta *meta;

  fold_a_day(&fold, &meta);
  expect_the_day(meta);
  append(meta);
  tc_fold_fini(&fold);
  cr_assert_eq(tc_day_ledger_read(day_fd, day, &options, &diag, &ledger), TB_OK);
  cr_assert_eq(ledger.n, 1);
  cr_assert_eq(ledger.records[0].offset, 0);
  expect_the_day(ledger.records[0].meta);
  tc_day_ledger_fini(&ledger);
}

Test(day_ledger, what_makes_no_chain_is_refused) {
  const struct {
    struct made second;
    const char *reason;
  } cases[] = {
    { { 8, 3, 40, 0xb, 0x7, false }, "generation 8 does not follow the segment before it" },
    { { 8, 3, 22, 0xb, 0xa, false }, "generation 8 does not follow the segment before it" },
  };

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct tb_diag diag = { 0 };
    struct tc_fold fold = { 0 };
    const tc_meta *meta;
    cr_assert_eq(tc_fold_add(&fold, segment((struct made){ 5, 2, 20, 0xa, 0x9, false })), TB_OK);
    cr_assert_eq(tc_fold_add(&fold, segment(cases[i].second)), TB_OK);
    cr_assert_eq(tc_fold_end(&fold, &diag, &meta), TB_REFUSED);
    cr_assert_str_eq(diag.text, cases[i].reason);
    tc_fold_fini(&fold);
  }
}

/* ---- files */

enum { RECORDS = 3 };

/* Appends records, each of the stream with its number. */
static void append_streams(unsigned from, unsigned n) {
  for (unsigned i = from; i < from + n; i++) {
    struct tc_fold fold = { 0 };
    struct tb_diag diag = { 0 };
    const tc_meta *meta;
    tc_meta *one = segment((struct made){ 10 * i, 1, 100 * i, 1, 0, false });
    one->stream.data[0] = (unsigned char)('0' + i);
    cr_assert_eq(tc_fold_add(&fold, one), TB_OK);
    cr_assert_eq(tc_fold_end(&fold, &diag, &meta), TB_OK);
    append(meta);
    tc_fold_fini(&fold);
  }
}

static char problems[256];

static void note_problem(void *self, const char *text) {
  (void)self;
  strcpy(problems, text);
}

/* Returns the streams of the records that can be read, a digit each. */
static const char *streams_read(bool settle) {
  static char streams[16];
  struct tc_day_ledger_options options = { .settle = settle,
                                           .damaged = note_problem,
                                           .cut = note_problem };
  struct tc_day_ledger ledger = { 0 };
  struct tb_diag diag = { 0 };

  problems[0] = '\0';
  cr_assert_eq(tc_day_ledger_read(day_fd, day, &options, &diag, &ledger), TB_OK);
  for (size_t i = 0; i < ledger.n; i++) streams[i] = (char)ledger.records[i].meta->stream.data[0];
  streams[ledger.n] = '\0';
  tc_day_ledger_fini(&ledger);
  return streams;
}

static off_t size(void) {
  struct stat st;

  cr_assert_eq(fstatat(day_fd, "ledger", &st, 0), 0);
  return st.st_size;
}

static int truncate_by(off_t bytes) {
  int fd = openat(day_fd, "ledger", O_WRONLY);
  int rc = ftruncate(fd, size() - bytes);

  close(fd);
  return rc;
}

Test(day_ledger, a_record_that_was_cut_off_does_not_count_and_is_taken_away_by_a_start) {
  append_streams(1, RECORDS - 1);
  off_t last = size();
  append_streams(RECORDS, 1);
  off_t whole = size();
  for (off_t cut = whole - 1; cut > last; cut -= 7) {
    int fd = openat(day_fd, "ledger", O_WRONLY);
    cr_assert_eq(ftruncate(fd, cut), 0);
    close(fd);
    cr_assert_str_eq(streams_read(false), "12");
    cr_assert_str_empty(problems);
    cr_assert_eq(size(), cut);
    cr_assert_str_eq(streams_read(true), "12");
    cr_assert_eq(size(), last);
    char expected[128];
    snprintf(expected, sizeof expected,
             "archive/2026-11-26/ledger: %jd bytes from byte %jd on are an incomplete"
             " record and were cut off",
             (intmax_t)(cut - last), (intmax_t)last);
    cr_assert_str_eq(problems, expected);
    append_streams(RECORDS, 1);
    cr_assert_str_eq(streams_read(false), "123");
    cr_assert_eq(size(), whole);
  }
}

Test(day_ledger, damage_in_the_middle_costs_its_record_alone_and_is_reported) {
  append_streams(1, 1);
  off_t first = size();
  append_streams(2, 1);
  off_t second = size();
  append_streams(3, 1);
  int fd = openat(day_fd, "ledger", O_WRONLY);
  cr_assert_eq(pwrite(fd, "\xff", 1, first + 40), 1);
  close(fd);
  cr_assert_str_eq(streams_read(true), "13");
  char expected[128];
  snprintf(expected, sizeof expected, "archive/2026-11-26/ledger: damaged from byte %jd to %jd",
           (intmax_t)first, (intmax_t)second);
  cr_assert_str_eq(problems, expected);
  append_streams(4, 1);
  cr_assert_str_eq(streams_read(false), "134");
}

/* A flipped bit in the last record looks like a record that was cut off: the record does not
 * count. */
Test(day_ledger, each_flipped_bit_costs_its_record) {
  static const char *const left[RECORDS] = { "23", "13", "12" };
  off_t ends[RECORDS];

  for (unsigned i = 0; i < RECORDS; i++) {
    append_streams(i + 1, 1);
    ends[i] = size();
  }
  int fd = openat(day_fd, "ledger", O_RDWR);
  for (off_t at = 0; at < ends[RECORDS - 1]; at++) {
    unsigned char byte, flipped;
    cr_assert_eq(pread(fd, &byte, 1, at), 1);
    flipped = (unsigned char)(byte ^ 1 << at % 8);
    cr_assert_eq(pwrite(fd, &flipped, 1, at), 1);
    size_t hit = at >= ends[1] ? 2 : at >= ends[0];
    cr_assert_str_eq(streams_read(false), left[hit]);
    cr_assert_eq(problems[0] != '\0', hit < RECORDS - 1);
    cr_assert_eq(pwrite(fd, &byte, 1, at), 1);
  }
  close(fd);
}

static void append_meta(void) {
  tc_meta *meta = segment((struct made){ 5, 2, 20, 0xa, 0, false });

  append(meta);
  tc_meta_free(meta);
}

static void append_with_a_new_kind_of_hash(void) {
  tc_meta *one = segment((struct made){ 5, 2, 20, 0xa, 0, false });
  struct tc_fold fold = { 0 };
  struct tb_diag diag = { 0 };
  const tc_meta *record;

  cr_assert_eq(tc_fold_add(&fold, one), TB_OK);
  cr_assert_eq(tc_fold_end(&fold, &diag, &record), TB_OK);
  record->hash->kind = (Tracecollect__V1__HashKind)99;
  append(record);
  tc_fold_fini(&fold);
}

/* A newer program may have written the record: a whole record was not torn by a crash. */
Test(day_ledger, a_whole_record_that_is_not_understood_stays_where_it_is) {
  const struct {
    void (*append)(void);
    const char *reason;
  } cases[] = {
    { append_meta, "stands for no expired segments; the record is kept" },
    { append_with_a_new_kind_of_hash,
      "is of kind 99, which this program does not know; the record" },
  };

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    unlinkat(day_fd, "ledger", 0);
    append_streams(1, 1);
    cases[i].append();
    off_t both = size();
    cr_assert_str_eq(streams_read(true), "1");
    cr_assert_not_null(strstr(problems, cases[i].reason), "%s", problems);
    cr_assert_eq(size(), both);
    append_streams(2, 1);
    cr_assert_eq(truncate_by(5), 0);
    cr_assert_str_eq(streams_read(true), "1");
    cr_assert_eq(size(), both, "what is torn behind it goes");
    append_streams(2, 1);
    cr_assert_str_eq(streams_read(true), "12");
  }
}

Test(day_ledger, a_record_of_another_day_is_left_out_and_stays) {
  tc_meta *one = segment((struct made){ 5, 2, 20, 0xa, 0, false });
  struct tc_day_ledger_options options = { .settle = true, .damaged = note_problem };
  struct tc_day_ledger ledger = { 0 };
  struct tc_fold fold = { 0 };
  struct tb_diag diag = { 0 };
  const tc_meta *record;

  one->day[9] = '5';
  cr_assert_eq(tc_fold_add(&fold, one), TB_OK);
  cr_assert_eq(tc_fold_end(&fold, &diag, &record), TB_OK);
  append(record);
  tc_fold_fini(&fold);
  off_t whole = size();
  cr_assert_eq(tc_day_ledger_read(day_fd, day, &options, &diag, &ledger), TB_OK);
  cr_assert_eq(ledger.n, 0);
  cr_assert_eq(ledger.foreign, 0, "it is understood: nothing is to be read again");
  cr_assert_eq(size(), whole);
  cr_assert_str_eq(problems, "archive/2026-11-26/ledger: byte 0: belongs to archive/2026-11-25;"
                             " the record is kept, but ignored");
  tc_day_ledger_fini(&ledger);
}

Test(day_ledger, a_writer_waits_for_no_reader) {
  int reader = tc_day_ledger_lock(day_fd, false), other = tc_day_ledger_lock(day_fd, false);

  cr_assert_geq(reader, 0);
  cr_assert_geq(other, 0);
  cr_assert_eq(tc_day_ledger_lock(day_fd, true), -1);
  close(reader);
  close(other);
  int writer = tc_day_ledger_lock(day_fd, true);
  cr_assert_geq(writer, 0);
  close(writer);
}

/* ---- what a record stands for */

Test(day_ledger, a_record_stands_for_metas_of_its_stream_and_day_up_to_its_last_record) {
  struct tc_day_ledger_options options = { 0 };
  struct tc_day_ledger ledger = { 0 };
  struct tb_diag diag = { 0 };
  struct tc_fold fold = { 0 };
  const tc_meta *record;

  append_streams(1, RECORDS);
  fold_a_day(&fold, &record);
  append(record);
  tc_fold_fini(&fold);
  cr_assert_eq(tc_day_ledger_read(day_fd, day, &options, &diag, &ledger), TB_OK);
  tc_meta *inside = segment((struct made){ 8, 3, 40, 0xb, 0xa, false });
  tc_meta *behind = segment((struct made){ 11, 1, 61, 0xc, 0xb, false });
  cr_assert(tc_day_ledger_covers(&ledger, inside));
  cr_assert_not(tc_day_ledger_covers(&ledger, behind));
  inside->expired = false; /* a trace exists beside the meta */
  cr_assert_not(tc_day_ledger_covers(&ledger, inside));
  inside->expired = true;
  inside->stream.data[0] ^= 1;
  cr_assert_not(tc_day_ledger_covers(&ledger, inside));
  inside->stream.data[0] ^= 1;
  inside->day[9] = '5';
  cr_assert_not(tc_day_ledger_covers(&ledger, inside));
  tc_meta_free(inside);
  tc_meta_free(behind);
  tc_day_ledger_fini(&ledger);
}

/* ---- a catalog that is made again */

Test(day_ledger, a_rebuild_looks_at_the_clock_after_each_record) {
  struct tc_catalog_totals totals;
  struct tc_rebuilt done = { 0 };
  struct tc_rebuild *rebuild;
  struct tc_catalog *catalog;
  struct tb_diag diag = { 0 };
  unsigned steps = 0;
  int state_fd = day_fd;

  cr_assert_eq(mkdirat(state_fd, "archive", 0700), 0);
  cr_assert_eq(mkdirat(state_fd, "archive/2026-11-26", 0700), 0);
  int archive_fd = openat(state_fd, "archive", O_RDONLY | O_DIRECTORY);
  day_fd = openat(archive_fd, day, O_RDONLY | O_DIRECTORY);
  append_streams(1, RECORDS);
  cr_assert_eq(tc_catalog_rebuild_begin(state_fd, archive_fd, &diag, NULL, NULL, &rebuild), TB_OK);
  while (tc_catalog_rebuild_go_on(rebuild, 0, &diag, &done) == TB_AGAIN) steps++;
  tc_catalog_rebuild_free(rebuild);
  cr_assert_eq(steps, RECORDS);
  cr_assert_eq(done.segments, RECORDS);
  cr_assert_eq(tc_catalog_open(state_fd, false, &diag, &catalog), TB_OK, "%s", diag.text);
  cr_assert_eq(tc_catalog_totals(catalog, &diag, &totals), TB_OK);
  cr_assert_eq(totals.expired, RECORDS);
  tc_catalog_close(catalog);
  close(archive_fd);
  close(state_fd);
}

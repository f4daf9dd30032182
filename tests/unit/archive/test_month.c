/* SPDX-License-Identifier: Apache-2.0 */
/* Folding metas, and the ledgers in which the folded ones lie: every figure of a record, and what damage does to a file. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/fold.h"
#include "archive/generation_time.h"
#include "archive/month.h"

static char folder[] = "/tmp/tc-month-XXXXXX";
static int archive_fd;

static void make_folder(void) {
  strcpy(folder + strlen(folder) - 6, "XXXXXX");
  cr_assert_not_null(mkdtemp(folder));
  archive_fd = open(folder, O_RDONLY | O_DIRECTORY);
  cr_assert_geq(archive_fd, 0);
}

static void remove_folder(void) {
  char command[64];

  close(archive_fd);
  snprintf(command, sizeof command, "rm -r %s", folder);
  cr_assert_eq(system(command), 0);
}

TestSuite(month, .init = make_folder, .fini = remove_folder);

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

/* Two runs and a note, in an order that is none. */
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

Test(month, a_day_is_folded_and_read_back_with_every_figure) {
  struct tc_month_options options = { 0 };
  struct tc_month_reader *reader;
  struct tc_month_record record;
  struct tb_diag diag = { 0 };
  struct tc_fold fold = { 0 };
  struct tc_month month;
  const tc_meta *meta;

  fold_a_day(&fold, &meta);
  expect_the_day(meta);
  tc_month_init(&month);
  cr_assert_eq(tc_month_append(&month, archive_fd, meta, NULL, true, &diag), TB_OK, "%s",
               diag.text);
  tc_month_close(&month);
  tc_fold_fini(&fold);
  cr_assert_eq(tc_month_reader_new(archive_fd, &options, &diag, &reader), TB_OK);
  cr_assert_eq(tc_month_reader_next(reader, &diag, &record), TB_OK);
  cr_assert_not_null(record.meta);
  cr_assert_str_eq(record.path, "archive/2026-11.ledger");
  expect_the_day(record.meta);
  cr_assert_eq(tc_month_reader_next(reader, &diag, &record), TB_OK);
  cr_assert_null(record.meta);
  tc_month_reader_free(reader);
}

Test(month, what_makes_no_chain_is_refused) {
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

static void append_days(unsigned from, unsigned n) {
  struct tc_month month;

  tc_month_init(&month);
  for (unsigned day = from; day < from + n; day++) {
    struct tc_fold fold = { 0 };
    struct tb_diag diag = { 0 };
    const tc_meta *meta;
    tc_meta *one = segment((struct made){ 10 * day, 1, 100 * day, 1, 0, false });
    one->day[8] = '0';
    one->day[9] = (char)('0' + day);
    cr_assert_eq(tc_fold_add(&fold, one), TB_OK);
    cr_assert_eq(tc_fold_end(&fold, &diag, &meta), TB_OK);
    cr_assert_eq(tc_month_append(&month, archive_fd, meta, NULL, true, &diag), TB_OK, "%s",
                 diag.text);
    tc_fold_fini(&fold);
  }
  tc_month_close(&month);
}

static char problems[256];

static void note_problem(void *self, const char *text) {
  (void)self;
  strcpy(problems, text);
}

/* The days that can be read, a digit each. */
static const char *days_read(void) {
  static char days[16];
  struct tc_month_options options = { .problem = note_problem };
  struct tc_month_reader *reader;
  struct tc_month_record record;
  struct tb_diag diag = { 0 };
  size_t n = 0;

  problems[0] = '\0';
  cr_assert_eq(tc_month_reader_new(archive_fd, &options, &diag, &reader), TB_OK);
  while (tc_month_reader_next(reader, &diag, &record) == TB_OK && record.meta != NULL)
    days[n++] = record.meta->day[9];
  days[n] = '\0';
  tc_month_reader_free(reader);
  return days;
}

static off_t size(void) {
  struct stat st;

  cr_assert_eq(fstatat(archive_fd, "2026-11.ledger", &st, 0), 0);
  return st.st_size;
}

Test(month, a_record_that_was_cut_off_does_not_count_and_the_next_one_takes_its_place) {
  append_days(1, RECORDS);
  off_t whole = size();
  for (off_t cut = whole - 1; cut > whole - whole / RECORDS + 4; cut -= 7) {
    int fd = openat(archive_fd, "2026-11.ledger", O_WRONLY);
    cr_assert_eq(ftruncate(fd, cut), 0);
    close(fd);
    cr_assert_str_eq(days_read(), "12");
    cr_assert_str_empty(problems);
    append_days(RECORDS, 1);
    cr_assert_str_eq(days_read(), "123");
    cr_assert_eq(size(), whole);
  }
}

Test(month, damage_in_the_middle_costs_its_record_alone_and_is_reported) {
  append_days(1, 1);
  off_t first = size();
  append_days(2, 1);
  off_t second = size();
  append_days(3, 1);
  int fd = openat(archive_fd, "2026-11.ledger", O_WRONLY);
  cr_assert_eq(pwrite(fd, "\xff", 1, first + 40), 1);
  close(fd);
  cr_assert_str_eq(days_read(), "13");
  char expected[128];
  snprintf(expected, sizeof expected, "archive/2026-11.ledger: damaged from byte %jd to %jd",
           (intmax_t)first, (intmax_t)second);
  cr_assert_str_eq(problems, expected);
  append_days(4, 1);
  cr_assert_str_eq(days_read(), "134");
}

Test(month, a_writer_waits_for_no_reader) {
  int reader = tc_month_lock(archive_fd, false), other = tc_month_lock(archive_fd, false);

  cr_assert_geq(reader, 0);
  cr_assert_geq(other, 0);
  cr_assert_eq(tc_month_lock(archive_fd, true), -1);
  close(reader);
  close(other);
  int writer = tc_month_lock(archive_fd, true);
  cr_assert_geq(writer, 0);
  close(writer);
}

/* ---- what a record stands for */

Test(month, a_record_stands_for_metas_of_its_stream_and_day_up_to_its_last_record) {
  struct tc_month_covers covers = { 0 };
  struct tc_fold fold = { 0 };
  const tc_meta *record;

  fold_a_day(&fold, &record);
  cr_assert_eq(tc_month_covers_add(&covers, record), TB_OK);
  tc_meta *inside = segment((struct made){ 8, 3, 40, 0xb, 0xa, false });
  tc_meta *behind = segment((struct made){ 11, 1, 61, 0xc, 0xb, false });
  cr_assert(tc_month_covers_it(&covers, inside));
  cr_assert_not(tc_month_covers_it(&covers, behind));
  inside->expired = false; /* a trace lies beside it */
  cr_assert_not(tc_month_covers_it(&covers, inside));
  inside->expired = true;
  inside->stream.data[0] ^= 1;
  cr_assert_not(tc_month_covers_it(&covers, inside));
  inside->stream.data[0] ^= 1;
  inside->day[9] = '5';
  cr_assert_not(tc_month_covers_it(&covers, inside));
  tc_meta_free(inside);
  tc_meta_free(behind);
  tc_month_covers_fini(&covers);
  tc_fold_fini(&fold);
}

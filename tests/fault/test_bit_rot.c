/* SPDX-License-Identifier: Apache-2.0 */
/* Flips one bit anywhere in the log or the archive (reliability.md, row 11): the damage is always noticed, and costs no
 * more than the record or the segment that it hit.
 *
 * Each flip is made in the files themselves and undone. TC_FULL=1 tries 20,000 flips. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/audit/audit.h"
#include "archive/walk.h"
#include "collector/wal/scanner.h"
#include "proto/frame.pb-c.h"
#include "support/patience.h"
#include "support/store_fixture.h"

enum { FLIPS_SHORT = TT_LESS(400, 100), FLIPS_FULL = 10000, GENERATIONS = 6 };

static unsigned flips_wanted(void) {
  return tt_full() ? FLIPS_FULL : FLIPS_SHORT;
}

/* Two streams; the log is split among several files. */
static void fill_store(struct tc_config *config) {
  config->log_file_bytes = 64 << 10;
  config->log_group_bytes = 16 << 10;
}

static void write_streams(bool close) {
  struct tt_writer w[2];

  for (unsigned i = 0; i < 2; i++) {
    w[i] = tt_attach_as(&tt, i + 1, i + 1);
    tt_header(&w[i]);
  }
  for (uint64_t gen = 1; gen <= GENERATIONS; gen++)
    for (unsigned i = 0; i < 2; i++) {
      if (gen == 3) tt_loss(&w[i], 3, 3, 4, 4000);
      if (gen != 3) tt_generation(&w[i], gen, 3, 700 + 100 * i);
      cr_assert(tt_wait_acked(&tt, w[i].stream, w[i].seq)); /* a group of its own */
    }
  for (unsigned i = 0; close && i < 2; i++)
    tt_close_with(&w[i], 3 * (GENERATIONS - 1) + 4,
                  3 * (GENERATIONS - 1) * (700 + 100 * (uint64_t)i) + 4000);
  tt_barrier(&tt);
}

static char crashed
    [64]; /* a copy of the state folder, as a crash leaves it: nobody writes there any more */

static void open_store(void) {
  tt_fixture_open(fill_store);
  snprintf(crashed, sizeof crashed, "%.56s-crash", tt.dir);
}

static void remove_store(void) {
  char command[100];

  snprintf(command, sizeof command, "rm -rf %s", crashed);
  cr_assert_eq(system(command), 0);
  tt_fixture_remove();
}

TestSuite(bit_rot, .init = open_store, .fini = remove_store);

static uint64_t random_state = 11;

static uint64_t draw(uint64_t below) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state % below;
}

static void flip(int fd, uint64_t bit) {
  unsigned char byte;

  cr_assert_eq(pread(fd, &byte, 1, (off_t)(bit / 8)), 1);
  byte = (unsigned char)(byte ^ 1u << (bit % 8));
  cr_assert_eq(pwrite(fd, &byte, 1, (off_t)(bit / 8)), 1);
}

/* ---- the log */

static int open_wal(void) {
  char path[300];

  snprintf(path, sizeof path, "%s/wal", crashed);
  return open(path, O_RDONLY | O_DIRECTORY);
}

struct place {
  uint64_t lsn;
  uint32_t file;
  uint64_t at, bytes; /* in the file, without padding */
};

/* Holds every record in the log, before any damage. */
struct image {
  struct tc_wal_scan scan;
  struct place *places;
};

static void remember(int wal, struct image *image) {
  struct tb_diag diag = { 0 };

  cr_assert_eq(tc_wal_scan(wal, &diag, &image->scan), TB_OK, "%s", diag.text);
  cr_assert_eq(image->scan.corrupt, 0);
  image->places = calloc(image->scan.nentries, sizeof *image->places);
  for (size_t i = 0; i < image->scan.nentries; i++) {
    const struct tc_wal_head *head = &image->scan.entries[i].head;
    for (uint32_t f = 0; f < image->scan.nfiles; f++)
      if (head->lsn >= image->scan.files[f].start &&
          head->lsn < image->scan.files[f].start + image->scan.files[f].bytes)
        image->places[i] = (struct place){ .lsn = head->lsn,
                                           .file = f,
                                           .at = head->lsn - image->scan.files[f].start,
                                           .bytes = TC_WAL_HEAD_BYTES + (uint64_t)head->len + 4 };
  }
}

/* Compares the payload by its checksum, which the scan has just computed. */
static bool same(const struct tc_wal_entry *a, const struct tc_wal_entry *b) {
  const struct tc_wal_head *x = &a->head, *y = &b->head;

  return x->lsn == y->lsn && x->seq == y->seq && x->gen == y->gen && x->ref == y->ref &&
         x->len == y->len && x->kind == y->kind && x->flags == y->flags &&
         a->payload_crc == b->payload_crc;
}

/* Expects what was written to be read back, without the damaged record. If that record was in the last group, nothing
 * after it counts. A file whose first record is damaged has no salt: the whole file is lost. */
static void expect_log(int wal, const struct image *image, size_t hit) {
  const struct place *place = &image->places[hit];
  struct tc_wal_scan scan;
  struct tb_diag diag = { 0 };
  size_t missing = 0, at = 0;
  bool found = false;

  cr_assert_eq(tc_wal_scan(wal, &diag, &scan), TB_OK, "%s", diag.text);
  for (size_t i = 0; i < image->scan.nentries; i++) {
    if (at < scan.nentries && same(&image->scan.entries[i], &scan.entries[at])) {
      found |= i == hit;
      at++;
    } else {
      missing++;
    }
  }
  cr_assert_eq(at, scan.nentries, "a record that nobody wrote was read");
  cr_assert(!found, "the damaged record was believed");
  bool first_of_file = place->at == 0, torn = scan.corrupt == 0;
  if (torn)
    cr_assert_geq(scan.torn_bytes + (image->scan.previous_end - scan.previous_end), 1,
                  "nothing was noticed");
  else if (!first_of_file)
    cr_assert_eq(missing, 1, "one flip cost %zu records", missing);
  tc_wal_scan_free(&scan);
}

Test(bit_rot, of_the_log_is_noticed_and_costs_the_record_it_hit) {
  static struct image image;
  unsigned flips = flips_wanted(), in_tail = 0;
  int fds[64];

  /* A generation that does not end keeps the whole log, however much of it is settled. */
  struct tt_writer holder = tt_attach_as(&tt, 9, 9);
  tt_header(&holder);
  tt_batch(&holder, 1, "more to come", 12);
  cr_assert(tt_wait_acked(&tt, holder.stream, holder.seq));
  write_streams(false);
  tt_crash_into(&tt, crashed);
  int wal = open_wal();
  remember(wal, &image);
  cr_assert_lt(image.scan.nfiles, 64);
  for (size_t f = 0; f < image.scan.nfiles; f++) {
    char name[32];
    snprintf(name, sizeof name, "%016lx.wal", image.scan.files[f].start);
    fds[f] = openat(wal, name, O_RDWR);
  }
  for (unsigned i = 0; i < flips; i++) {
    size_t hit = (size_t)draw(image.scan.nentries);
    const struct place *place = &image.places[hit];
    uint64_t bit = 8 * place->at + draw(8 * place->bytes);
    flip(fds[place->file], bit);
    expect_log(wal, &image, hit);
    flip(fds[place->file], bit);
    in_tail += hit + 1 == image.scan.nentries;
  }
  fprintf(stderr, "%u flips in a log of %zu records in %zu files, %u of them in its last\n", flips,
          image.scan.nentries, image.scan.nfiles, in_tail);
  for (size_t f = 0; f < image.scan.nfiles; f++) close(fds[f]);
  tc_wal_scan_free(&image.scan);
  free(image.places);
  close(wal);
}

/* ---- the archive */

struct files {
  char path[64][300];
  uint64_t bytes[64];
  size_t n;
};

static tb_rc keep_file(void *self, const struct tc_archive_file *file) {
  struct files *files = self;
  off_t bytes;

  int fd = openat(file->dir_fd, file->name, O_RDONLY);
  bytes = lseek(fd, 0, SEEK_END);
  close(fd);
  cr_assert_lt(files->n, 64);
  snprintf(files->path[files->n], sizeof files->path[0], "%s/%s", tt.dir, file->path);
  files->bytes[files->n++] = (uint64_t)bytes;
  return TB_OK;
}

static void count_problem(void *self, const char *text) {
  snprintf(self, 600, "%s", text);
}

static struct tc_audited verify(char last[600]) {
  struct tc_audit_sink sink = { .self = last, .problem = count_problem };
  struct tb_diag diag = { 0 };
  struct tc_audited seen;
  int fd = open(tt.dir, O_RDONLY | O_DIRECTORY);

  last[0] = '\0';
  cr_assert_eq(tc_audit(fd, false, &sink, &diag, &seen), TB_OK, "%s", diag.text);
  close(fd);
  return seen;
}

Test(bit_rot, of_the_archive_is_noticed_and_names_what_it_hit) {
  static struct files files;
  struct tb_diag diag = { 0 };
  unsigned flips = flips_wanted();
  char path[300], last[600];

  write_streams(true);
  tt_store_stop(&tt);
  snprintf(path, sizeof path, "%s/archive", tt.dir);
  int archive = open(path, O_RDONLY | O_DIRECTORY);
  cr_assert_eq(tc_archive_walk(archive, keep_file, NULL, &files, &diag), TB_OK, "%s", diag.text);
  close(archive);
  cr_assert_eq(files.n, 2 * 2 * (GENERATIONS - 1));
  cr_assert_eq(verify(last).problems, 0, "%s", last);
  /* Without the catalog only the files themselves can show the damage. */
  snprintf(path, sizeof path, "%s/catalog.sqlite", tt.dir);
  unlink(path);
  for (unsigned i = 0; i < flips; i++) {
    size_t hit = (size_t)draw(files.n);
    uint64_t bit = draw(8 * files.bytes[hit]);
    int fd = open(files.path[hit], O_RDWR);
    flip(fd, bit);
    struct tc_audited seen = verify(last);
    cr_assert_geq(seen.problems, 1, "%s, bit %lu: not noticed", files.path[hit], bit);
    flip(fd, bit);
    close(fd);
  }
  cr_assert_eq(verify(last).problems, 0, "%s", last);
  fprintf(stderr, "%u flips in %zu files of an archive\n", flips, files.n);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/report_file.h"

#define FILE_NAME "a.reports"

static char dir[] = "/tmp/tc-reports-XXXXXX";
static int folder = -1;

static void make_folder(void) {
  cr_assert_not_null(mkdtemp(dir));
  folder = open(dir, O_RDONLY | O_DIRECTORY);
  cr_assert_geq(folder, 0);
}

static void remove_folder(void) {
  unlinkat(folder, FILE_NAME, 0);
  close(folder);
  rmdir(dir);
}

TestSuite(report_file, .init = make_folder, .fini = remove_folder);

enum { RECORD_BYTES = 3000 };

/* Fills the record with noise that all records share, and n in its midst. */
static void fill(unsigned n, unsigned char out[RECORD_BYTES]) {
  uint64_t seed = 1;

  for (size_t i = 0; i < RECORD_BYTES; i++) {
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    out[i] = (unsigned char)(seed >> 56);
  }
  snprintf((char *)out + RECORD_BYTES / 2, 20, "%u", n);
}

/* Appends a report of 10 ns that begins at 10 n. */
static void append(unsigned n) {
  unsigned char bytes[RECORD_BYTES];
  struct tb_diag diag = { 0 };

  fill(n, bytes);
  const struct tc_report_record record = { 10 * n, 10 * n + 9, bytes, sizeof bytes };
  cr_assert_eq(tc_report_file_append(folder, FILE_NAME, &record, &diag), TB_OK, "%s", diag.text);
}

struct seen {
  unsigned n, first, last;
  uint64_t damaged;
};

static tb_rc see(void *self, const struct tc_report_record *record) {
  unsigned char expected[RECORD_BYTES];
  struct seen *seen = self;
  unsigned n = (unsigned)(record->from_ns / 10);

  cr_assert_eq(record->until_ns, record->from_ns + 9);
  fill(n, expected);
  cr_assert_eq(record->len, sizeof expected);
  cr_assert_arr_eq(record->reply, expected, sizeof expected);
  if (seen->n++ == 0) seen->first = n;
  cr_assert(seen->n == 1 || n > seen->last);
  seen->last = n;
  return TB_OK;
}

static struct seen read_file(uint64_t from, uint64_t until) {
  struct seen seen = { 0 };
  struct tb_diag diag = { 0 };

  cr_assert_eq(
      tc_report_file_read(folder, FILE_NAME, from, until, &seen, see, &seen.damaged, &diag), TB_OK,
      "%s", diag.text);
  return seen;
}

static uint64_t file_bytes(void) {
  struct stat st;

  cr_assert_eq(fstatat(folder, FILE_NAME, &st, 0), 0);
  return (uint64_t)st.st_size;
}

static void cut_off(uint64_t bytes) {
  int fd = openat(folder, FILE_NAME, O_RDWR);

  cr_assert_eq(ftruncate(fd, (off_t)bytes), 0);
  close(fd);
}

Test(report_file, gives_the_records_of_a_stretch) {
  uint64_t damaged;
  struct tb_diag diag = { 0 };
  struct seen none = { 0 };

  cr_assert_eq(tc_report_file_read(folder, FILE_NAME, 0, 1, &none, see, &damaged, &diag),
               TB_NOTFOUND);
  for (unsigned n = 0; n < 50; n++) append(n);
  cr_assert_lt(file_bytes(), 2 * RECORD_BYTES + 50 * 100); /* the shared noise is stored twice */
  struct seen all = read_file(0, UINT64_MAX);
  cr_assert_eq(all.n, 50);
  struct seen some = read_file(109, 140); /* both ends are included */
  cr_assert_eq(some.first, 10);
  cr_assert_eq(some.last, 14);
  cr_assert_eq(read_file(500, 600).n, 0);
}

Test(report_file, goes_on_behind_what_is_whole) {
  append(1);
  uint64_t first = file_bytes();
  append(2);
  uint64_t end = file_bytes();
  for (uint64_t torn = end - 1; torn >= first; torn--) {
    cut_off(torn);
    cr_assert_eq(read_file(0, UINT64_MAX).n, 1);
    append(2);
    cr_assert_eq(file_bytes(), end);
    cr_assert_eq(read_file(0, UINT64_MAX).n, 2);
  }
}

static void damage(uint64_t at) {
  int fd = openat(folder, FILE_NAME, O_RDWR);
  char byte;

  cr_assert_eq(pread(fd, &byte, 1, (off_t)at), 1);
  byte = (char)~byte;
  cr_assert_eq(pwrite(fd, &byte, 1, (off_t)at), 1);
  close(fd);
}

Test(report_file, a_damaged_record_costs_itself) {
  append(1);
  uint64_t second = file_bytes();
  append(2);
  append(3);
  damage(second + 50);
  struct seen seen = read_file(0, UINT64_MAX);
  cr_assert_eq(seen.n, 2);
  cr_assert_eq(seen.damaged, 1);
  cr_assert_eq(seen.last, 3);
}

Test(report_file, a_damaged_base_costs_its_records_and_no_later_ones) {
  append(1);
  append(2);
  damage(50);
  append(3);
  append(4);
  struct seen seen = read_file(0, UINT64_MAX);
  cr_assert_eq(seen.damaged, 2);
  cr_assert_eq(seen.n, 2);
  cr_assert_eq(seen.first, 3);
}

Test(report_file, what_follows_a_damaged_head_is_written_again) {
  append(1);
  uint64_t second = file_bytes();
  append(2);
  damage(second + 5);
  cr_assert_eq(read_file(0, UINT64_MAX).n, 1);
  append(3);
  struct seen seen = read_file(0, UINT64_MAX);
  cr_assert_eq(seen.n, 2);
  cr_assert_eq(seen.last, 3);
}

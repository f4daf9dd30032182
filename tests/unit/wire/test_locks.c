/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "wire/locks.h"
#include "wire/substream.h"

static unsigned char room[TW_WRITE_ROOM];

static struct tw_write open_batch(unsigned version, uint8_t experiment) {
  struct tw_write w;

  tw_write_open(&w, room, sizeof room, version,
                &(struct tw_batch){ .gen = 1, .thread = 7, .experiment = experiment });
  return w;
}

static struct tw_batch close_batch(struct tw_write *w) {
  struct tw_batch batch;
  struct tb_diag diag = { 0 };
  size_t n = tw_write_close(w), used;

  cr_assert_eq(tw_batch_read(room, n, &diag, &batch, &used), TB_OK, "%s", diag.text);
  return batch;
}

static const struct tw_lock one = { 4096, 0x55d0c8e011a0, 71, 12 },
                            other = { UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX };

static struct tw_batch two_locks(void) {
  struct tw_write w = open_batch(26, TW_EXPERIMENT_ALLOC_FREE);

  cr_assert_eq(tw_write_locks(&w, 5), TB_OK);
  cr_assert_eq(tw_write_lock(&w, &one), TB_OK);
  cr_assert_eq(tw_write_lock(&w, &other), TB_OK);
  return close_batch(&w);
}

static void expect(const struct tw_lock *lock, const struct tw_lock *wanted) {
  cr_assert_eq(lock->string, wanted->string);
  cr_assert_eq(lock->object, wanted->object);
  cr_assert_eq(lock->holder, wanted->holder);
  cr_assert_eq(lock->name, wanted->name);
}

Test(locks, what_was_written_is_read) {
  struct tw_batch batch = two_locks();
  struct tw_locks_reading r;
  struct tw_lock lock;

  cr_assert_eq(batch.experiment, TW_EXPERIMENT_ALLOC_FREE);
  cr_assert(tw_locks_read(batch.data, batch.len, &r));
  cr_assert_eq(r.missed, 5);
  cr_assert(tw_lock_next(&r, &lock));
  expect(&lock, &one);
  cr_assert(tw_lock_next(&r, &lock));
  expect(&lock, &other);
  cr_assert_not(tw_lock_next(&r, &lock));
}

Test(locks, a_batch_that_is_cut_off_has_the_locks_before_the_cut) {
  struct tw_batch batch = two_locks();
  enum { HEAD = 9 + 5 + 1, FIRST = 2 + 7 + 1 + 1 };

  for (size_t len = 0; len < batch.len; len++) {
    struct tw_locks_reading r;
    struct tw_lock lock;
    bool is_one = tw_locks_read(batch.data, len, &r);
    cr_assert_eq(is_one, len >= HEAD, "%zu bytes", len);
    if (!is_one) continue;
    cr_assert_eq(tw_lock_next(&r, &lock), len >= HEAD + FIRST, "%zu bytes", len);
    if (len < HEAD + FIRST) continue;
    expect(&lock, &one);
    cr_assert_not(tw_lock_next(&r, &lock));
  }
}

Test(locks, other_batches_are_none) {
  struct tw_locks_reading r;
  struct tw_write w = open_batch(26, TW_EXPERIMENT_ALLOC_FREE);

  cr_assert_eq(tw_write_substream(&w, TW_SUBSTREAM_BYTES, "lock", 4), TB_OK);
  struct tw_batch batch = close_batch(&w);
  cr_assert_not(tw_locks_read(batch.data, batch.len, &r));
  w = open_batch(26, TW_EXPERIMENT_ALLOC_FREE);
  cr_assert_eq(tw_write_substream(&w, TW_SUBSTREAM_BLOBS, "locks", 5), TB_OK);
  batch = close_batch(&w);
  cr_assert_not(tw_locks_read(batch.data, batch.len, &r));
  cr_assert_not(tw_locks_read((const unsigned char *)"\0\1\2", 3, &r), "Go's own");
  cr_assert_not(tw_locks_read(NULL, 0, &r));
}

Test(locks, a_full_batch_takes_no_more_and_version_22_none) {
  struct tw_write w = open_batch(26, TW_EXPERIMENT_ALLOC_FREE);
  size_t n = 0;

  cr_assert_eq(tw_write_locks(&w, 0), TB_OK);
  while (tw_write_lock(&w, &other) == TB_OK) n++;
  cr_assert_eq(tw_write_lock(&w, &other), TB_AGAIN);
  cr_assert_eq(n, (TW_BATCH_BYTES_MAX - 15) / 40);
  w = open_batch(22, TW_EXPERIMENT_ALLOC_FREE);
  cr_assert_eq(tw_write_locks(&w, 0), TB_UNSUPPORTED);
}

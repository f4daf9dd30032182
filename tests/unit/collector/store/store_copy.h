/* SPDX-License-Identifier: Apache-2.0 */
/* A store, and a copy of its files as a crash leaves them. A test can start the copy. */
#ifndef TT_UNIT_STORE_STORE_COPY_H
#define TT_UNIT_STORE_STORE_COPY_H

#include <criterion/criterion.h>

#include "support/store_calls.h"
#include "support/store_fixture.h"

enum { LOG_FILE_BYTES = 1 << 20, CHECKPOINT_BYTES = 1 << 18, STREAM = 7, OTHER = 8 };

static struct tt_store copy;

static void configure(struct tc_config *config) {
  config->log_file_bytes = LOG_FILE_BYTES;
  config->log_group_bytes = 64 << 10;
  config->log_checkpoint_bytes = CHECKPOINT_BYTES;
}

static void open_store(void) {
  tt_fixture_open(configure);
  tt_store_make(&copy);
  configure(&copy.config);
}

static void remove_store(void) {
  tt_calls_watch(NULL);
  tt_fixture_remove();
  tt_store_remove(&copy);
}

/* Makes the copy. After that the store itself does not matter. */
static inline void crash(void) {
  tt_crash_into(&tt, copy.dir);
  tt_calls_watch(&copy);
}

static inline void start_copy(void) {
  cr_assert_eq(tt_store_start(&copy), TB_OK, "%s", copy.notes);
}

/* Expects that a happened, b happened, and a came first. */
static inline void expect_order(const char *a, const char *b) {
  int first = tt_call(a, 0), second = tt_call(b, 0);

  cr_assert_geq(first, 0, "no \"%s\"", a);
  cr_assert_geq(second, 0, "no \"%s\"", b);
  cr_assert_lt(first, second, "\"%s\" comes before \"%s\"", b, a);
}

#endif

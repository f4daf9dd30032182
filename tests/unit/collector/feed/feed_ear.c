/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/collector/feed/feed_ear.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/patience.h"

static void on_wake(void *self) {
  struct tt_ear *ear = self;

  sem_post(&ear->woken);
}

void tt_ear_open(struct tt_ear *ear, const char *const *sets) {
  char set[128];
  struct tb_diag diag;

  memset(ear, 0, sizeof *ear);
  tb_diag_clear(&diag);
  strcpy(ear->dir, "/tmp/tt_ear_XXXXXX");
  cr_assert_not_null(mkdtemp(ear->dir));
  tc_config_init(&ear->config);
  snprintf(set, sizeof set, "state=%s", ear->dir);
  cr_assert_eq(tc_config_set(&ear->config, set, &diag), TB_OK);
  for (; sets != NULL && *sets != NULL; sets++)
    cr_assert_eq(tc_config_set(&ear->config, *sets, &diag), TB_OK, "%s", diag.text);
  cr_assert_eq(tc_config_finish(&ear->config, &diag), TB_OK, "%s", diag.text);
  cr_assert_eq(sem_init(&ear->woken, 0, 0), 0);
  cr_assert_eq(tc_feed_new(&ear->config, 2, &ear->feed), TB_OK);
  cr_assert_eq(tc_feed_reader_new(on_wake, ear, &ear->reader), TB_OK);
  tc_feed_reader_listen(ear->reader, true);
  cr_assert_eq(tc_feed_attach(ear->feed, ear->reader), TB_OK);
  cr_assert_eq(tc_feed_start(ear->feed, NULL, &diag), TB_OK, "%s", diag.text);
}

void tt_ear_close(struct tt_ear *ear) {
  char path[96];

  tc_feed_free(ear->feed);
  tc_feed_reader_free(ear->reader);
  for (size_t i = 0; i < ear->count; i++)
    tracecollect__v1__feed_message__free_unpacked(ear->heard[i].message, NULL);
  snprintf(path, sizeof path, "%s/feed.sock", ear->dir);
  unlink(path);
  rmdir(ear->dir);
  tc_config_fini(&ear->config);
  sem_destroy(&ear->woken);
}

static void take_all(struct tt_ear *ear) {
  struct tc_feed_message *wire;

  while ((wire = tc_feed_reader_take(ear->reader)) != NULL) {
    struct tt_heard *heard = &ear->heard[ear->count++];

    cr_assert_leq(ear->count, TT_HEARD_MAX);
    cr_assert_eq(strlen(wire->bytes), wire->topic_len);
    strcpy(heard->topic, wire->bytes);
    heard->message = tracecollect__v1__feed_message__unpack(
        NULL, wire->len - wire->topic_len - 1, (const uint8_t *)wire->bytes + wire->topic_len + 1);
    cr_assert_not_null(heard->message);
    tc_feed_message_release(wire);
  }
}

const Tracecollect__V1__FeedMessage *tt_ear_wait(struct tt_ear *ear, const char *topic, size_t n) {
  struct timespec until;
  size_t seen = 0;

  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += TT_PATIENCE_S;
  for (size_t i = 0;; i++) {
    while (i == ear->count) {
      take_all(ear);
      if (i == ear->count)
        cr_assert_eq(sem_timedwait(&ear->woken, &until), 0, "no message %zu of %s", n, topic);
    }
    if (strcmp(ear->heard[i].topic, topic) == 0 && seen++ == n) return ear->heard[i].message;
  }
}

size_t tt_ear_count(const struct tt_ear *ear, const char *topic) {
  size_t n = 0;

  for (size_t i = 0; i < ear->count; i++) n += strcmp(ear->heard[i].topic, topic) == 0;
  return n;
}

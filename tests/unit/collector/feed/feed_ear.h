/* SPDX-License-Identifier: Apache-2.0 */
/* A feed on an ipc:// socket of its own and a reader in this process that keeps what it hears. */
#ifndef TT_UNIT_FEED_FEED_EAR_H
#define TT_UNIT_FEED_FEED_EAR_H

#include <semaphore.h>

#include "collector/feed/publisher.h"
#include "proto/feed.pb-c.h"

enum { TT_HEARD_MAX = 8192 };

struct tt_heard {
  char topic[TC_FEED_TOPIC_BYTES];
  Tracecollect__V1__FeedMessage *message;
};

struct tt_ear {
  char dir[64];
  struct tc_config config;
  struct tc_feed *feed;
  struct tc_feed_reader *reader;
  sem_t woken;
  struct tt_heard heard[TT_HEARD_MAX];
  size_t count;
};

/* sets: KEY=VALUE of the configuration, NULL ends them. It listens from the start. */
void tt_ear_open(struct tt_ear *ear, const char *const *sets);
void tt_ear_close(struct tt_ear *ear);

/* Waits for the n-th message (from 0) on this topic. If none comes, the test fails. */
const Tracecollect__V1__FeedMessage *tt_ear_wait(struct tt_ear *ear, const char *topic, size_t n);
/* Returns the number of messages heard so far on the topic. */
size_t tt_ear_count(const struct tt_ear *ear, const char *topic);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Senders whose inbox is never empty, beside other senders. */
#include <criterion/criterion.h>
#include <semaphore.h>
#include <string.h>

#include "support/store_fixture.h"

enum { GROUP_BYTES = 64 << 10, BATCH_BYTES = 2000, BATCHES = 3000 };

static sem_t held, go_on;

static void configure(struct tc_config *config) {
  config->log_group_bytes = GROUP_BYTES;
}

/* Blocks the commit thread, which takes no records meanwhile. */
static void hold(void *self, struct tc_reply *reply) {
  (void)self;
  tc_reply_free(reply);
  sem_post(&held);
  sem_wait(&go_on);
}

static void hold_commit_thread(void) {
  struct tc_submit *msg = tc_submit_new(TC_SUBMIT_ATTACH);

  tt.elsewhere = hold;
  msg->conn = 9;
  msg->attach.loop = 1;
  memset(msg->attach.stream, 9, TC_STREAM_BYTES);
  strcpy(msg->attach.identity, "tracecollect:agent/a");
  tt_submit(&tt, msg);
  sem_wait(&held);
}

/* Counts the first stream's acks that arrived before the second stream's. */
static uint64_t acked_before(uint32_t first, uint32_t second) {
  uint64_t seq = 0;

  pthread_mutex_lock(&tt.lock);
  for (unsigned i = 0; i < tt.nreplies; i++) {
    const struct tc_reply *reply = tt.replies[i];

    if (reply->kind != TC_REPLY_ACKED) continue;
    if (reply->stream == second) break;
    if (reply->stream == first) seq = reply->seq;
  }
  pthread_mutex_unlock(&tt.lock);
  return seq;
}

/* Once each pass began with sender 0 and stopped after four groups: the second sender's record
 * was acked when the first one's inbox was empty. */
Test(store_senders, a_full_inbox_does_not_keep_the_others_waiting) {
  static unsigned char batch[BATCH_BYTES];

  sem_init(&held, 0, 0);
  sem_init(&go_on, 0, 0);
  tt_fixture_open(configure);
  struct tt_writer first = tt_attach_as(&tt, 1, 7), second = tt_attach_as(&tt, 2, 8);
  hold_commit_thread();
  tt_header(&first);
  for (unsigned i = 0; i < BATCHES; i++) tt_batch(&first, 1, batch, sizeof batch);
  tt.sender = 1;
  tt_header(&second);
  sem_post(&go_on);
  cr_assert(tt_wait_acked(&tt, second.stream, second.seq));
  cr_assert(tt_wait_acked(&tt, first.stream, first.seq));
  cr_expect_lt(acked_before(first.stream, second.stream), 4 * GROUP_BYTES / BATCH_BYTES + 1);
  tt_fixture_remove();
}

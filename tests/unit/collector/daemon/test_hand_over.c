/* SPDX-License-Identifier: Apache-2.0 */
/* Objects that threads hand to each other, used after their release: the process aborts at once,
 * in every build. */
#include <criterion/criterion.h>

#include "collector/daemon/worker.h"
#include "collector/ingest/record_pool.h"
#include "collector/lease/broker.h"
#include "collector/lease/window.h"
#include "collector/sealer/sealer.h"
#include "support/death.h"

enum { LARGE = 60000 }; /* a record this large is kept for the next one: its memory is not freed */

static void small_record(void) {
  struct tc_record *record = tc_record_new(100, NULL);

  tc_record_free(record);
  tc_record_free(record);
}

static void large_record(void) {
  struct tc_record *record = tc_record_new(LARGE, NULL);

  tc_record_free(record);
  tc_record_free(record);
}

static void submit(void) {
  struct tc_submit *msg = tc_submit_new(TC_SUBMIT_DETACH);

  tc_submit_free(msg);
  tc_submit_free(msg);
}

static void ack(void) {
  struct tc_reply *reply = tc_reply_new(TC_REPLY_ACKED, 1, 1, 0);

  tc_reply_free(reply);
  tc_reply_free(reply);
}

static void stored(void) {
  struct tc_reply *reply = tc_reply_new(TC_REPLY_STORED, 0, 1, 0);

  tc_reply_free(reply);
  tc_reply_free(reply);
}

static void work(void) {
  struct tc_work *work = tc_work_new(TC_WORK_BARRIER, 0);

  tc_work_free(work);
  tc_work_free(work);
}

static void order(void) {
  struct tc_order *order = tc_order_new(&(struct tc_order){ .kind = TC_ORDER_RECHECK });

  tc_order_free(order);
  tc_order_free(order);
}

static void tap_order(void) {
  struct tc_event_tap_order *order = calloc(1, sizeof *order);

  order->magic = TC_TAP_ORDER_MAGIC;
  tc_event_tap_order_free(order);
  tc_event_tap_order_free(order);
}

static void bundle(void) {
  struct tc_bundle *bundle = tc_bundle_new(1, 0);

  tc_bundle_free(bundle);
  tc_bundle_free(bundle);
}

static void another_kind(void) {
  tc_reply_free((struct tc_reply *)(void *)tc_submit_new(TC_SUBMIT_DETACH));
}

static const struct {
  const char *name;
  void (*use)(void);
} uses[] = {
  { "small record", small_record },
  { "large record", large_record },
  { "submit", submit },
  { "ack", ack },
  { "stored", stored },
  { "work", work },
  { "order", order },
  { "tap order", tap_order },
  { "bundle", bundle },
  { "another kind", another_kind },
};

Test(hand_over, what_was_released_cannot_be_used) {
  for (size_t i = 0; i < sizeof uses / sizeof *uses; i++)
    tt_expect_death(uses[i].name, uses[i].use, "this object was released, or is of another kind",
                    "heap-use-after-free");
}

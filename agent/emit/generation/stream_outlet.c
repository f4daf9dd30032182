/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/emit/generation/stream_outlet.h"

#include "agent/api/forward.h"
#include "proto/frame.pb-c.h"

static void header_on(void *self, const void *bytes, size_t n) {
  ta_forward_put_header(self, bytes, n);
}

static void put_on(void *self, uint64_t gen, const void *bytes, size_t n) {
  ta_forward_put_batch(self, gen, bytes, n);
}

static void lose_on(void *self, uint64_t gen, enum ta_loss why) {
  static const Tracecollect__V1__LossReason reasons[] = {
    [TA_LOST_NO_BATCH] = TRACECOLLECT__V1__LOSS_REASON__LOSS_NO_BATCH,
    [TA_LOST_PAUSE] = TRACECOLLECT__V1__LOSS_REASON__LOSS_PAUSE,
    [TA_LOST_STUCK] = TRACECOLLECT__V1__LOSS_REASON__LOSS_STUCK_THREAD,
    [TA_LOST_FENCE] = TRACECOLLECT__V1__LOSS_REASON__LOSS_DISABLED,
  };

  ta_forward_lose_generation(self, gen, reasons[why]);
}

static void end_on(void *self, uint64_t gen) {
  (void)gen;
  ta_forward_end_generation(self);
}

static void snap_on(void *self, uint64_t last_ms) {
  ta_forward_snap(self, last_ms);
  ta_forward_take_snap(self);
}

static void log_on(void *self, int level, const char *text) {
  ta_forward_log(self, level, text);
}

struct ta_outlet ta_stream_outlet(ta_forward *forward, bool records) {
  return (struct ta_outlet){ .self = forward,
                             .header = header_on,
                             .put = put_on,
                             .lose = lose_on,
                             .end = end_on,
                             .snap = records ? snap_on : NULL,
                             .log = log_on };
}

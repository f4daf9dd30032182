/* SPDX-License-Identifier: Apache-2.0 */
/* Reason for which the collector delays this agent; ACKs contain it while it lasts.
 *
 * A reason is valid for five seconds: the collector repeats it every two.
 *
 * Memory    the texts are constants.
 * Threads   the sender's.
 */
#ifndef TA_NET_HOLD_H
#define TA_NET_HOLD_H

#include "proto/frame.pb-c.h"

struct ta_hold {
  const char *text; /* NULL: no delay */
  uint64_t at_ns;   /* when the reason was last received */
};

/* Returns the text of a warning, or NULL: no reason, or one of a later version. */
const char *ta_hold_note(struct ta_hold *hold, Tracecollect__V1__Hold reason, uint64_t now_ns);
/* When acks arrive: returns the text of a reason that is over by now, or NULL. */
const char *ta_hold_over(struct ta_hold *hold, uint64_t now_ns);

#endif

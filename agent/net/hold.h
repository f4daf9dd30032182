/* SPDX-License-Identifier: Apache-2.0 */
/* Why the collector holds this agent back: an ACK names a reason while it lasts.
 *
 * The reason stays for five seconds: the collector repeats it every two.
 *
 * Memory    the texts are constants.
 * Threads   the sender's.
 */
#ifndef TA_NET_HOLD_H
#define TA_NET_HOLD_H

#include "proto/frame.pb-c.h"

struct ta_hold {
  const char *text; /* NULL: it does not */
  uint64_t at_ns;   /* when it last said so */
};

/* The words to warn with. NULL: no reason, or one of a later version. */
const char *ta_hold_note(struct ta_hold *hold, Tracecollect__V1__Hold reason, uint64_t now_ns);
/* Acks come: the words of a reason that is over by now, NULL: there is none. */
const char *ta_hold_over(struct ta_hold *hold, uint64_t now_ns);

#endif

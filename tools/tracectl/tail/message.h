/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of the feed (proto/feed.proto), one line for each report, generation, alert and event in them:
 * for people, or as JSON with the topic and whose it is in front of the message's own fields. */
#ifndef TK_TAIL_MESSAGE_H
#define TK_TAIL_MESSAGE_H

#include "proto/feed.pb-c.h"
#include "tools/tracectl/tail/tail.h"

/* TB_END: that was the last line. */
TB_MUST tb_rc tk_message_print(struct tk_lines *lines, const char *topic,
                               const Tracecollect__V1__FeedMessage *message);

#endif

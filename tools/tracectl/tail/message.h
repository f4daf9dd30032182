/* SPDX-License-Identifier: Apache-2.0 */
/* Prints messages of the feed (proto/feed.proto), a line for each report, generation, alert and event:
 * for people, or as JSON with topic and stream before the message's own fields. */
#ifndef TK_TAIL_MESSAGE_H
#define TK_TAIL_MESSAGE_H

#include "proto/feed.pb-c.h"
#include "tools/tracectl/tail/tail.h"

/* Returns TB_END after the last line. */
TB_MUST tb_rc tk_message_print(struct tk_lines *lines, const char *topic,
                               const Tracecollect__V1__FeedMessage *message);

#endif

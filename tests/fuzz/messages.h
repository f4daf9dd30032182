/* SPDX-License-Identifier: Apache-2.0 */
/* Every protobuf message that comes from outside or from the disk. */
#ifndef TT_MESSAGES_H
#define TT_MESSAGES_H

#include "proto/archive.pb-c.h"
#include "proto/feed.pb-c.h"
#include "proto/frame.pb-c.h"
#include "proto/log.pb-c.h"
#include "proto/meta.pb-c.h"

static const ProtobufCMessageDescriptor *const tt_messages[] = {
  &tracecollect__v1__hello__descriptor,
  &tracecollect__v1__welcome__descriptor,
  &tracecollect__v1__ack__descriptor,
  &tracecollect__v1__heartbeat__descriptor,
  &tracecollect__v1__generation_end__descriptor,
  &tracecollect__v1__loss__descriptor,
  &tracecollect__v1__close__descriptor,
  &tracecollect__v1__goaway__descriptor,
  &tracecollect__v1__refuse__descriptor,
  &tracecollect__v1__lease_request__descriptor,
  &tracecollect__v1__next_reply__descriptor,
  &tracecollect__v1__feed_message__descriptor,
  &tracecollect__v1__segment_meta__descriptor,
  &tracecollect__v1__log_snapshot__descriptor,
  &tracecollect__v1__snap__descriptor,
  &tracecollect__v1__snapped__descriptor,
  &tracecollect__v1__log_stream__descriptor,
  &tracecollect__v1__log_settled__descriptor,
  &tracecollect__v1__log_checkpoint__descriptor,
  &tracecollect__v1__trigger_request__descriptor,
  &tracecollect__v1__snap_request__descriptor,
  &tracecollect__v1__verify_request__descriptor,
  &tracecollect__v1__status_reply__descriptor,
  &tracecollect__v1__list_reply__descriptor,
  &tracecollect__v1__report_reply__descriptor,
  &tracecollect__v1__history_reply__descriptor,
  &tracecollect__v1__firings_reply__descriptor,
  &tracecollect__v1__findings_reply__descriptor,
  &tracecollect__v1__mute_request__descriptor,
  &tracecollect__v1__trigger_reply__descriptor,
  &tracecollect__v1__snap_reply__descriptor,
  &tracecollect__v1__lease_reply__descriptor,
  &tracecollect__v1__job__descriptor,
};

enum { TT_MESSAGES = sizeof tt_messages / sizeof tt_messages[0] };

#endif

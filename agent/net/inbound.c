/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/net/inbound.h"

#include <string.h>

#include "proto/unpack.h"

enum { UNPACK_BYTES = 8 << 10 };

void ta_inbound_init(struct ta_inbound *in) {
  ta_inbound_clear(in);
  tb_mem_init(&in->mem, tb_mem_libc, NULL, 4 * UNPACK_BYTES);
  tb_arena_init(&in->arena, &in->mem, UNPACK_BYTES);
}

void ta_inbound_fini(struct ta_inbound *in) {
  tb_arena_fini(&in->arena);
}

void ta_inbound_clear(struct ta_inbound *in) {
  in->at = in->n = 0;
}

unsigned char *ta_inbound_room(struct ta_inbound *in, size_t *out_n) {
  memmove(in->bytes, in->bytes + in->at, in->n - in->at);
  in->n -= in->at;
  in->at = 0;
  *out_n = sizeof in->bytes - in->n;
  return in->bytes + in->n;
}

void ta_inbound_add(struct ta_inbound *in, size_t n) {
  in->n += n;
}

static const ProtobufCMessageDescriptor *type_of(enum tp_kind kind) {
  switch (kind) {
  case TP_WELCOME: return &tracecollect__v1__welcome__descriptor;
  case TP_ACK: return &tracecollect__v1__ack__descriptor;
  case TP_GOAWAY: return &tracecollect__v1__goaway__descriptor;
  case TP_REFUSE: return &tracecollect__v1__refuse__descriptor;
  case TP_SNAP: return &tracecollect__v1__snap__descriptor;
  default: return NULL;
  }
}

/* Unpacks a message, in no more memory than the arena's budget. */
static tb_rc unpack(struct ta_inbound *in, const struct tp_frame *frame, struct tb_diag *diag,
                    struct ta_message *out) {
  const ProtobufCMessageDescriptor *type = type_of(frame->kind);

  if (type == NULL)
    return tb_fail(diag, TB_PROTOCOL, "collector sends %s", tp_kind_name(frame->kind));
  tb_arena_reset(&in->arena);
  ProtobufCAllocator allocator = tp_arena_allocator(&in->arena);
  const void *message = protobuf_c_message_unpack(type, &allocator, frame->len, frame->payload);
  if (message == NULL)
    return tb_fail(diag, TB_PROTOCOL, "collector's %s cannot be read", tp_kind_name(frame->kind));
  *out = (struct ta_message){ .kind = frame->kind };
  memcpy(&out->welcome, &message, sizeof message); /* all members are pointers to a message */
  return TB_OK;
}

static bool is_empty(const struct tp_frame *frame) {
  bool of_a_later_minor = frame->seq == 0 && frame->kind >= TP_KIND_LIMIT;

  return frame->kind == TP_HEARTBEAT || of_a_later_minor;
}

tb_rc ta_inbound_next(struct ta_inbound *in, struct tb_diag *diag, struct ta_message *out) {
  struct tp_frame frame;
  size_t used, need;

  for (;;) {
    tb_rc rc = tp_frame_take(in->bytes + in->at, in->n - in->at, diag, &frame, &used, &need);
    if (rc == TB_AGAIN && need > sizeof in->bytes)
      return tb_fail(diag, TB_PROTOCOL, "collector's frame of %zu bytes, limit %d",
                     need - TP_HEADER_BYTES, TA_INBOUND_BYTES);
    TB_TRY(rc);
    in->at += used;
    if (!is_empty(&frame)) return unpack(in, &frame, diag, out);
  }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/net/sending.h"

#include <errno.h>
#include <sys/socket.h>

#include "agent/host/clock.h"

enum { REST_MS = 40 };

tb_rc ta__client_say(struct ta_client *c, enum tp_kind kind, const ProtobufCMessage *message) {
  unsigned char bytes[TP_HEADER_BYTES + 1024];

  size_t packed = protobuf_c_message_get_packed_size(message);
  if (!TB_CHECK(packed <= sizeof bytes - TP_HEADER_BYTES)) return TB_PROTOCOL;
  size_t n = protobuf_c_message_pack(message, bytes + TP_HEADER_BYTES);
  struct tp_frame frame = { .kind = kind, .payload = bytes + TP_HEADER_BYTES, .len = (uint32_t)n };
  tp_frame_head(&frame, bytes);
  return ta_tls_write(c->tls, bytes, TP_HEADER_BYTES + n);
}

/* With a rate cap, grants one frame at a time, so that the rate is exceeded by one frame at most. */
static size_t grant(struct ta_client *c, uint64_t room, uint64_t *out_need) {
  if (c->rate.bytes_s > 0) {
    ta_spool_grant(c->spool, 0, out_need);
    if (*out_need == 0 || *out_need > room) return 0;
    c->spool->capped = !ta_rate_allows(&c->rate, ta_mono_ns());
    if (c->spool->capped) return 0;
    room = *out_need;
  }
  return ta_spool_grant(c->spool, room, out_need);
}

void ta__client_flush(struct ta_client *c) {
  const unsigned char *bytes;
  size_t n;

  c->fd_full = false;
  while ((n = ta_tls_pending(c->tls, &bytes)) > 0) {
    ssize_t sent = send(c->fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) { /* full; or lost: receive() reports that, after the last received bytes */
      c->fd_full = true;
      return;
    }
    ta_tls_sent(c->tls, (size_t)sent);
  }
}

/* Grants more records. Returns false if there are none, or if they may not be sent now. */
static bool grant_more(struct ta_client *c) {
  uint64_t need;

  if (c->state != TA_AT_STREAMING) return false;
  if (c->disk != NULL) ta_spool_writer_flush(c->disk);
  size_t granted = grant(c, c->credit_bytes - c->sent_bytes, &need);
  if (c->disk != NULL && granted > 0) ta_spool_writer_note(c->disk);
  c->held = granted == 0 && need > 0;
  c->sent_bytes += granted;
  ta_rate_charge(&c->rate, granted);
  return granted > 0;
}

/* All granted bytes are sent before more are granted, and before any control frame: while some are left, the socket counts as
 * full. TLS gets no more bytes until the socket has accepted the previous ones. */
tb_rc ta__client_send_records(struct ta_client *c) {
  const unsigned char *bytes;

  ta__client_flush(c);
  while (c->flows && !c->fd_full && !c->stop) {
    size_t n = ta_spool_span(c->spool, &bytes);
    if (n == 0) {
      if (!grant_more(c)) break;
      continue;
    }
    if (n > TA_TLS_WRITE_BYTES) n = TA_TLS_WRITE_BYTES;
    TB_TRY(ta_tls_write(c->tls, bytes, n));
    ta_spool_sent(c->spool, n);
    ta__client_flush(c);
    c->rest_ns = ta_mono_ns() + REST_MS * UINT64_C(1000000);
  }
  return TB_OK;
}

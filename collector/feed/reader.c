/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/feed/reader.h"

#include <stdlib.h>

#include "collector/base/spsc_queue.h"

struct tc_feed_reader {
  struct tc_spsc_queue inbox;
  atomic_size_t bytes; /* in inbox */
  atomic_bool listens, wants_reports;
};

void tc_feed_message_release(struct tc_feed_message *message) {
  if (atomic_fetch_sub_explicit(&message->holders, 1, memory_order_acq_rel) == 1) free(message);
}

tb_rc tc_feed_reader_new(void (*wake)(void *self), void *self, struct tc_feed_reader **out) {
  struct tc_feed_reader *reader = aligned_alloc(_Alignof(struct tc_feed_reader), sizeof *reader);

  if (reader == NULL) return TB_NOMEM;
  tc_spsc_queue_init(&reader->inbox, wake, self);
  atomic_init(&reader->bytes, 0);
  atomic_init(&reader->listens, false);
  atomic_init(&reader->wants_reports, true);
  *out = reader;
  return TB_OK;
}

void tc_feed_reader_free(struct tc_feed_reader *reader) {
  struct tc_feed_message *message;

  if (reader == NULL) return;
  while ((message = tc_feed_reader_take(reader)) != NULL) tc_feed_message_release(message);
  free(reader);
}

void tc_feed_reader_listen(struct tc_feed_reader *reader, bool listens) {
  atomic_store(&reader->listens, listens);
}

bool tc_feed_reader_listens(const struct tc_feed_reader *reader) {
  return atomic_load(&reader->listens);
}

void tc_feed_reader_want_reports(struct tc_feed_reader *reader, bool wants) {
  atomic_store(&reader->wants_reports, wants);
}

bool tc_feed_reader_wants_reports(const struct tc_feed_reader *reader) {
  return atomic_load(&reader->wants_reports);
}

struct tc_feed_message *tc_feed_reader_take(struct tc_feed_reader *reader) {
  struct tc_feed_message *message = tc_spsc_queue_take(&reader->inbox);

  if (message != NULL) atomic_fetch_sub(&reader->bytes, message->len);
  return message;
}

bool tc_feed_reader_return(struct tc_feed_reader *reader, struct tc_feed_message *message) {
  if (!atomic_load(&reader->listens)) return true;
  if (atomic_load(&reader->bytes) + message->len > TC_FEED_READER_BYTES) return false;
  atomic_fetch_add(&reader->bytes, message->len);
  atomic_fetch_add_explicit(&message->holders, 1, memory_order_relaxed);
  if (tc_spsc_queue_post(&reader->inbox, message)) return true;
  atomic_fetch_sub(&reader->bytes, message->len);
  tc_feed_message_release(message);
  return false;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/fetch/strip.h"

#include <string.h>

#include "wire/raw.h"

void tk_strip_begin(struct tk_strip *s, unsigned version) {
  tw_experiments_init(&s->experiments);
  s->gen = 0;
  s->version = version;
}

static void learn(struct tk_strip *s, const struct tw_batch *batch) {
  struct tb_diag diag;
  const char *text;
  size_t len;

  tb_diag_clear(&diag);
  if (tw_experiments_text(batch->experiment, batch->data, batch->len, &text, &len) &&
      tw_experiments_read(&s->experiments, text, len, true, &diag) != TB_OK)
    tw_experiments_init(&s->experiments);
}

/* Removes the experiments' own events. The new time differences never take more room than the old ones. Returns the
 * remaining length, SIZE_MAX if the bytes cannot be read. */
static size_t take_out(struct tk_strip *s, const unsigned char *data, size_t len,
                       unsigned char *out) {
  unsigned char *to = out;
  uint64_t events = 0, passed = 0;
  struct tb_diag diag;
  struct tw_raw ev;
  size_t used;

  tb_diag_clear(&diag);
  for (size_t at = 0; at < len; at += used) {
    if (tw_raw_read_own(data + at, len - at, &s->experiments, &diag, &ev, &used) != TB_OK)
      return SIZE_MAX;
    const unsigned char *args = ev.args;
    uint64_t dt = ev.nargs > 0 && tw_spec_has_dt(ev.spec) ? tw_raw_number(&args) : 0;
    if (ev.type >= TW_OWN_EVENT_FIRST) {
      events++;
      passed += dt;
      continue;
    }
    *to++ = ev.type;
    if (args != ev.args) to += tw_varint_write(to, dt + passed);
    size_t rest = (size_t)(data + at + used - args);
    memcpy(to, args, rest);
    to += rest;
    passed = 0;
  }
  s->events += events;
  return (size_t)(to - out);
}

size_t tk_strip_batch(struct tk_strip *s, const struct tw_item *item,
                      const unsigned char **out_bytes) {
  struct tw_batch batch = item->batch;
  size_t left, n;

  if (batch.gen != s->gen) tw_experiments_init(&s->experiments);
  s->gen = batch.gen;
  *out_bytes = item->bytes;
  if (batch.experiment > TW_EXPERIMENT_ALLOC_FREE) {
    learn(s, &batch);
    s->batches++;
    s->bytes += item->len;
    return 0;
  }
  if (s->experiments.events == 0 || tw_batch_kind(&batch, s->version) != TW_BATCH_EVENTS)
    return item->len;
  left = take_out(s, batch.data, batch.len, s->out + TW_BATCH_HEADER_BYTES_MAX);
  if (left == SIZE_MAX || left == batch.len) return item->len;
  batch.len = left;
  n = left == 0 ? 0 : tw_batch_write_header(s->out, &batch);
  memmove(s->out + n, s->out + TW_BATCH_HEADER_BYTES_MAX, left);
  s->bytes += item->len - (n + left);
  *out_bytes = s->out;
  return n + left;
}

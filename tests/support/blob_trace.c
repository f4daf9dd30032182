/* SPDX-License-Identifier: Apache-2.0 */
#include "support/blob_trace.h"

#include <criterion/criterion.h>
#include <string.h>

#include "wire/varint.h"

enum { GOROUTINE = 1, PROC = 0, TICKS_A_SECOND = 1000000000 };

static void must(tb_rc rc) {
  cr_assert_eq(rc, TB_OK, "%s", tb_rc_name(rc));
}

void tt_blobs_open(struct tt_blobs *t) {
  unsigned char header[TW_HEADER_BYTES];

  *t = (struct tt_blobs){ .gen = 1, .time = 1000, .experiment = TW_EXPERIMENT_ALLOC_FREE };
  t->batch_bytes = sizeof t->room;
  tb_mem_init(&t->mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_buf_init(&t->bytes, &t->mem);
  tb_buf_init(&t->names, &t->mem);
  tw_header_write(header, 26);
  tb_buf_add(&t->bytes, header, sizeof header);
}

void tt_blobs_close(struct tt_blobs *t) {
  tb_buf_fini(&t->bytes);
  tb_buf_fini(&t->names);
  cr_assert_eq(t->mem.bytes, 0);
}

static void close_batch(struct tt_blobs *t) {
  if (t->batch.room != NULL) tb_buf_add(&t->bytes, t->room, tw_write_close(&t->batch));
  t->batch.room = NULL;
  cr_assert_eq(t->bytes.rc, TB_OK);
}

static void open_batch(struct tt_blobs *t, int64_t thread, uint8_t experiment) {
  struct tw_batch head = {
    .gen = t->gen, .thread = thread, .time = t->time, .experiment = experiment
  };

  close_batch(t);
  tw_write_open(&t->batch, t->room, experiment == 0 ? sizeof t->room : t->batch_bytes, 26, &head);
}

void tt_blobs_batch(struct tt_blobs *t, enum tw_substream_kind kind, const char *name) {
  open_batch(t, TT_BLOBS_THREAD, t->experiment);
  must(tw_write_substream(&t->batch, kind, name, strlen(name)));
}

void tt_blobs_raw(struct tt_blobs *t, const void *bytes, size_t n) {
  open_batch(t, TT_BLOBS_THREAD, t->experiment);
  must(tw_write_bytes(&t->batch, bytes, n));
}

void tt_blobs_add(struct tt_blobs *t, const char *name, uint64_t id, const void *bytes, size_t n) {
  struct tw_blob blob = { .id = id, .bytes = bytes, .len = n };
  tb_rc rc;

  while ((rc = tw_write_blob(&t->batch, &blob)) == TB_AGAIN)
    tt_blobs_batch(t, TW_SUBSTREAM_BLOBS, name);
  must(rc);
}

void tt_blobs_piece(struct tt_blobs *t, uint64_t id, uint64_t blob_bytes, uint64_t at,
                    const void *bytes, size_t n) {
  const uint64_t numbers[] = { id, blob_bytes, at, n };
  unsigned char head[4 * TW_VARINT_BYTES_MAX];
  size_t len = 0;

  for (int i = 0; i < 4; i++) len += tw_varint_write(head + len, numbers[i]);
  must(tw_write_bytes(&t->batch, head, len));
  must(tw_write_bytes(&t->batch, bytes, n));
}

void tt_blobs_log(struct tt_blobs *t, const char *name, uint64_t id) {
  char word[TW_BLOB_WORD_BYTES];

  tb_buf_add(&t->names, name, strlen(name) + 1);
  tb_buf_add(&t->names, word, tw_blob_word(id, word) + 1);
  t->logs++;
}

void tt_blobs_put(struct tt_blobs *t, const char *name, uint64_t id, const void *bytes, size_t n) {
  tt_blobs_batch(t, TW_SUBSTREAM_BLOBS, name);
  tt_blobs_add(t, name, id, bytes, n);
  tt_blobs_log(t, name, id);
}

static void write_sync(struct tt_blobs *t) {
  const struct tw_clocks clocks = {
    .frequency = TICKS_A_SECOND, .time = t->time, .mono_ns = t->time, .wall_sec = 1700000000
  };

  open_batch(t, TB_NO_THREAD, 0);
  must(tw_write_sync(&t->batch, &clocks));
}

static void write_strings(struct tt_blobs *t) {
  const char *text = (const char *)t->names.data;

  if (t->logs == 0) return;
  open_batch(t, TB_NO_THREAD, 0);
  for (uint64_t id = 1; id <= 2 * t->logs; id++, text += strlen(text) + 1)
    must(tw_write_string(&t->batch, id, text, strlen(text)));
}

static void write_events(struct tt_blobs *t) {
  const uint64_t proc[] = { PROC, TW_PROC_RUNNING };
  const uint64_t goroutine[] = { GOROUTINE, TT_BLOBS_THREAD, TW_GO_RUNNING };

  open_batch(t, TT_BLOBS_THREAD, 0);
  must(tw_write_event(&t->batch, TW_EV_PROC_STATUS, ++t->time, proc));
  must(tw_write_event(&t->batch, TW_EV_GO_STATUS, ++t->time, goroutine));
  for (uint64_t i = 0; i < t->logs; i++)
    must(tw_write_event(&t->batch, TW_EV_USER_LOG, ++t->time,
                        (uint64_t[]){ 0, 2 * i + 1, 2 * i + 2, 0 }));
}

void tt_blobs_end(struct tt_blobs *t) {
  write_sync(t);
  write_strings(t);
  write_events(t);
  close_batch(t);
  tb_buf_byte(&t->bytes, TW_EV_END_OF_GENERATION);
  tb_buf_clear(&t->names);
  t->logs = 0;
  t->gen++;
  t->time++;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Sub-streams and blobs: an input is experimental batches, each after a byte that chooses experiment, header and
 * thread, and two of its length. Delivered data lies in the input, each blob's bytes occur exactly once, all the rest
 * is reported, and a blob that was read can be written and read again. */
#include <string.h>

#include "fuzz/fuzz.h"
#include "fuzz/trace_budget.h"
#include "online/event/tables.h"
#include "online/trace/substreams.h"

enum { MEMORY_MAX = 16 << 20, BATCHES_MAX = 64 };

struct batches {
  struct to_generation gen;
  struct to_experimental at[BATCHES_MAX];
  size_t n;
  size_t bytes;
};

/* Chance does not find the header: half of the batches get one, with a name of one letter. */
static void cut(struct batches *b, const uint8_t *data, size_t size, unsigned char *copy) {
  static const unsigned char header[] = { 0xd5, 't', 'c', 's', 'u', 'b', 1, 2, 1, 'a' };

  while (size >= 3 && b->n < BATCHES_MAX) {
    unsigned how = data[0];
    size_t len = (size_t)data[1] | (size_t)(data[2] & 0x0f) << 8, at = 0;
    data += 3, size -= 3;
    if (len > size) len = size;
    if (how & 1) {
      memcpy(copy, header, sizeof header);
      copy[sizeof header - 1] = (unsigned char)('a' + (how >> 1 & 1));
      at = sizeof header;
    }
    if (len > 0) memcpy(copy + at, data, len);
    b->at[b->n] = (struct to_experimental){ .experiment = (uint8_t)(1 + (how >> 2 & 1)),
                                            .thread = how >> 3,
                                            .data = copy,
                                            .len = at + len,
                                            .offset = b->bytes };
    b->n++;
    b->bytes += at + len;
    copy += at + len;
    data += len, size -= len;
  }
  b->gen.number = 1;
  b->gen.experimental.items = b->at;
  b->gen.experimental.count = b->n;
}

struct reported {
  uint64_t count, end;
};

static void hear(void *self, const struct tb_diag *fault) {
  struct reported *reported = self;

  FUZZ_CHECK(fault->rc != TB_OK && fault->text[0] != '\0' && fault->gen == 1);
  FUZZ_CHECK(fault->offset <= reported->end);
  reported->count++;
}

/* Writes the blob in the smallest batches possible, reads it back, and expects it to be equal. */
static void write_again(const struct to_blob *blob, struct to_bytes bytes) {
  struct tw_blob out = { .id = blob->id, .bytes = bytes.data, .len = bytes.len };
  struct tw_batch head = { .gen = 1, .thread = 1, .experiment = 1 };
  unsigned char room[TW_SUBSTREAM_ROOM_MIN];
  size_t back = 0;
  tb_rc rc;

  do {
    struct tw_substream stream;
    struct tw_batch batch;
    struct tw_piece piece;
    struct tw_write w;
    size_t used;
    tw_write_open(&w, room, sizeof room, 26, &head);
    FUZZ_CHECK(tw_write_substream(&w, TW_SUBSTREAM_BLOBS, blob->substream->name.data,
                                  blob->substream->name.len) == TB_OK);
    rc = tw_write_blob(&w, &out);
    FUZZ_CHECK(rc == TB_OK || rc == TB_AGAIN);
    FUZZ_CHECK(tw_batch_read(room, tw_write_close(&w), NULL, &batch, &used) == TB_OK);
    FUZZ_CHECK(tw_substream_read(batch.data, batch.len, NULL, &stream) == TB_OK);
    const unsigned char *pos = stream.data, *end = stream.data + stream.len;
    FUZZ_CHECK(tw_piece_read(&pos, end, NULL, &piece) == TB_OK && pos == end);
    FUZZ_CHECK(piece.id == blob->id && piece.blob_bytes == bytes.len && piece.at == back);
    FUZZ_CHECK(piece.len == 0 || memcmp(piece.data, bytes.data + back, piece.len) == 0);
    back += piece.len;
  } while (rc == TB_AGAIN);
  FUZZ_CHECK(back == bytes.len);
}

static uint64_t look_at_blobs(struct to_substreams *s, const struct to_substream *stream) {
  uint64_t broken = 0, come = 0, n = 0;

  for (const struct to_blob *b = stream->blob; b != NULL; b = b->next, n++) {
    struct tb_diag diag;
    struct to_bytes bytes;
    FUZZ_CHECK(b->substream == stream && b->id != 0 && to_blob_find(s, b->id) == b);
    tb_diag_clear(&diag);
    tb_rc rc = to_blob_read(s, b->id, &diag, &bytes);
    FUZZ_CHECK(rc == (b->whole ? TB_OK : TB_BROKEN) || rc == TB_BUDGET);
    FUZZ_CHECK(rc != TB_BROKEN || diag.text[0] != '\0');
    broken += !b->whole;
    if (rc != TB_OK) continue;
    FUZZ_CHECK(bytes.len == b->bytes);
    come += bytes.len;
    write_again(b, bytes);
  }
  FUZZ_CHECK(n == stream->blobs && come <= stream->bytes);
  return broken;
}

static void look_at(struct to_substreams *s, const struct batches *b, uint64_t faults) {
  const struct to_substream *stream;
  uint64_t broken = 0, bytes = 0;

  for (size_t i = 0; (stream = to_substreams_at(s, i)) != NULL; i++) {
    FUZZ_CHECK(stream->batches > 0 && stream->name.len > 0);
    for (const struct to_content *c = stream->content; c != NULL; c = c->next)
      FUZZ_CHECK(c->offset + c->len <= b->bytes);
    broken += look_at_blobs(s, stream);
    bytes += stream->bytes;
  }
  FUZZ_CHECK(broken <= faults && bytes <= b->bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct batches batches = { .n = 0 };
  struct reported reported = { 0 };
  struct to_substreams *s;
  struct tb_mem mem;

  unsigned char *copy = malloc(size + 10 * BATCHES_MAX);
  if (copy == NULL) return 0;
  cut(&batches, data, size, copy);
  reported.end = batches.bytes;
  tb_mem_init(&mem, tb_mem_libc, NULL, MEMORY_MAX);
  FUZZ_CHECK(to_substreams_new(&mem, (struct to_fault_sink){ &reported, hear }, &s) == TB_OK);
  tt_tighten(&mem, size);
  if (to_substreams_generation(s, &batches.gen) == TB_OK) {
    FUZZ_CHECK(to_substreams_faults(s) == reported.count);
    look_at(s, &batches, reported.count);
  } else {
    FUZZ_CHECK(to_substreams_at(s, 0) == NULL);
  }
  to_substreams_free(s);
  FUZZ_CHECK(mem.bytes == 0);
  free(copy);
  return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/fetch/read.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "tools/tracectl/fetch/strip.h"
#include "tools/tracectl/term/tracectl.h"
#include "wire/split.h"

enum { CHUNK_BYTES = 1 << 20, TRIES = 3 };

/* Where a piece's bytes go: digest, perhaps the splitter, file. */
struct sink {
  struct tk_fetch *fetch;
  const struct tk_piece *piece;
  FILE *file;
  EVP_MD_CTX *digest; /* NULL: not all of the file is read */
  struct tw_split split;
  struct tk_strip *strip; /* NULL: everything stays */
};

static tb_rc write_bytes(struct sink *s, const void *bytes, size_t n) {
  s->fetch->written += n;
  if (fwrite(bytes, 1, n, s->file) == n) return TB_OK;
  return tb_fail(s->fetch->diag, TB_IO, "writing: %s", strerror(errno));
}

/* --- leaving out experiments ------------------------------------------------------------------- */

static tb_rc write_item(struct sink *s, const struct tw_item *item) {
  const unsigned char *bytes;

  if (item->kind == TW_ITEM_HEADER) { /* written apart */
    tk_strip_begin(s->strip, s->split.version);
    return TB_OK;
  }
  if (item->kind != TW_ITEM_BATCH) return write_bytes(s, item->bytes, item->len);
  size_t left = tk_strip_batch(s->strip, item, &bytes);
  return left == 0 ? TB_OK : write_bytes(s, bytes, left);
}

static tb_rc split_bytes(struct sink *s, const unsigned char *bytes, size_t n) {
  struct tw_item item;
  size_t used;
  tb_rc rc;

  while ((rc = tw_split_feed(&s->split, bytes, n, &used, &item)) == TB_OK) {
    bytes += used;
    n -= used;
    TB_TRY(write_item(s, &item));
  }
  return rc == TB_AGAIN ? TB_OK : tb_fail(s->fetch->diag, rc, "%s", tb_rc_text(rc));
}

static tb_rc end_split(struct sink *s) {
  struct tw_item item;

  while (tw_split_finish(&s->split, &item) == TB_OK) TB_TRY(write_item(s, &item));
  return TB_OK;
}

/* --- chunks ------------------------------------------------------------------------------------ */

/* One chunk that fits its checksum; lent until the next question. */
static tb_rc ask_chunk(struct tk_fetch *f, uint64_t segment, uint64_t offset, uint64_t left,
                       const Tracecollect__V1__ReadReply **out) {
  Tracecollect__V1__Request request = TRACECOLLECT__V1__REQUEST__INIT;
  Tracecollect__V1__ReadRequest read = TRACECOLLECT__V1__READ_REQUEST__INIT;
  const Tracecollect__V1__Reply *reply;

  read.segment = segment;
  read.offset = offset;
  read.bytes = left < CHUNK_BYTES ? (uint32_t)left : CHUNK_BYTES;
  request.ask_case = TRACECOLLECT__V1__REQUEST__ASK_READ;
  request.read = &read;
  for (int i = 0; i < TRIES; i++) {
    TB_TRY(tk_client_ask(f->client, &request, f->diag, &reply));
    const Tracecollect__V1__ReadReply *chunk = reply->read;
    if (chunk->data.len == 0 || chunk->data.len > read.bytes)
      return tb_fail(f->diag, TB_CORRUPT, "segment %" PRIu64 " ends at byte %" PRIu64, segment,
                     chunk->total);
    if (tb_crc32c(0, chunk->data.data, chunk->data.len) == chunk->crc) {
      *out = chunk;
      return TB_OK;
    }
  }
  return tb_fail(f->diag, TB_CORRUPT,
                 "segment %" PRIu64 ", offset %" PRIu64 ": a chunk does not fit its checksum",
                 segment, offset);
}

static tb_rc take_body(struct sink *s, const unsigned char *bytes, size_t n) {
  if (s->digest != NULL) EVP_DigestUpdate(s->digest, bytes, n);
  s->fetch->done += n;
  tk_progress_at(&s->fetch->progress, s->fetch->done);
  return s->strip != NULL ? split_bytes(s, bytes, n) : write_bytes(s, bytes, n);
}

static tb_rc read_header(struct sink *s, bool write_it) {
  const Tracecollect__V1__ReadReply *chunk;

  TB_TRY(ask_chunk(s->fetch, s->piece->segment, 0, TK_TRACE_HEADER_BYTES, &chunk));
  if (chunk->data.len != TK_TRACE_HEADER_BYTES)
    return tb_fail(s->fetch->diag, TB_CORRUPT, "segment %" PRIu64 " has no whole header",
                   s->piece->segment);
  if (s->digest != NULL) EVP_DigestUpdate(s->digest, chunk->data.data, chunk->data.len);
  if (s->strip != NULL) TB_TRY(split_bytes(s, chunk->data.data, chunk->data.len));
  return write_it ? write_bytes(s, chunk->data.data, chunk->data.len) : TB_OK;
}

static tb_rc read_body(struct sink *s) {
  const Tracecollect__V1__ReadReply *chunk;

  for (uint64_t done = 0; done < s->piece->len; done += chunk->data.len) {
    TB_TRY(ask_chunk(s->fetch, s->piece->segment, s->piece->offset + done, s->piece->len - done,
                     &chunk));
    TB_TRY(take_body(s, chunk->data.data, chunk->data.len));
  }
  return s->strip != NULL ? end_split(s) : TB_OK;
}

static tb_rc check_digest(struct sink *s) {
  static const unsigned char none[sizeof s->piece->sha256];
  unsigned char got[EVP_MAX_MD_SIZE];

  if (s->digest == NULL || memcmp(s->piece->sha256, none, sizeof none) == 0) return TB_OK;
  if (EVP_DigestFinal_ex(s->digest, got, NULL) == 1 &&
      memcmp(got, s->piece->sha256, sizeof s->piece->sha256) == 0)
    return TB_OK;
  return tb_fail(s->fetch->diag, TB_CORRUPT,
                 "segment %" PRIu64
                 ": its bytes no longer match their SHA-256; `tracectl verify` says more",
                 s->piece->segment);
}

static tb_rc read_piece(struct sink *s, bool with_header) {
  if (s->piece->whole) {
    s->digest = EVP_MD_CTX_new();
    if (s->digest == NULL || EVP_DigestInit_ex(s->digest, EVP_sha256(), NULL) != 1)
      return tb_fail(s->fetch->diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  }
  if (with_header || s->strip != NULL || s->digest != NULL) TB_TRY(read_header(s, with_header));
  TB_TRY(read_body(s));
  return check_digest(s);
}

tb_rc tk_fetch_piece(struct tk_fetch *f, const struct tk_piece *piece, bool with_header,
                     FILE *file) {
  struct sink sink = { .fetch = f, .piece = piece, .file = file };
  bool filter = piece->unsafe && !f->full;

  if (filter && (sink.strip = calloc(1, sizeof *sink.strip)) == NULL)
    return tb_fail(f->diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  if (filter) tw_split_init(&sink.split, &tk_mem);
  tb_rc rc = read_piece(&sink, with_header);
  if (filter) {
    f->left_out_batches += sink.strip->batches;
    f->left_out_events += sink.strip->events;
    f->left_out_bytes += sink.strip->bytes;
    tw_split_fini(&sink.split);
    free(sink.strip);
  }
  EVP_MD_CTX_free(sink.digest);
  return rc;
}

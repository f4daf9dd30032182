/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/fetch_read.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <string.h>

#include "base/crc32c.h"
#include "tools/tracectl/tracectl.h"
#include "wire/split.h"

enum { CHUNK_BYTES = 1 << 20, TRIES = 3 };

/* Where a piece's bytes go: digest, perhaps the splitter, file. */
struct sink {
  struct tk_fetch *fetch;
  const struct tk_piece *piece;
  FILE *file;
  EVP_MD_CTX *digest; /* NULL: not all of the file is read */
  bool filter;
  struct tw_split split;
};

static tb_rc write_bytes(struct sink *s, const void *bytes, size_t n) {
  s->fetch->written += n;
  if (fwrite(bytes, 1, n, s->file) == n) return TB_OK;
  return tb_fail(s->fetch->diag, TB_IO, "writing: %s", strerror(errno));
}

/* --- leaving out experiments ------------------------------------------------------------------- */

static tb_rc write_item(struct sink *s, const struct tw_item *item) {
  bool alien = item->kind == TW_ITEM_BATCH && item->batch.experiment > TW_EXPERIMENT_ALLOC_FREE;

  if (item->kind == TW_ITEM_HEADER) return TB_OK; /* written apart */
  if (!alien) return write_bytes(s, item->bytes, item->len);
  s->fetch->left_out_batches++;
  s->fetch->left_out_bytes += item->len;
  return TB_OK;
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
  return s->filter ? split_bytes(s, bytes, n) : write_bytes(s, bytes, n);
}

static tb_rc read_header(struct sink *s, bool write_it) {
  const Tracecollect__V1__ReadReply *chunk;

  TB_TRY(ask_chunk(s->fetch, s->piece->segment, 0, TK_TRACE_HEADER_BYTES, &chunk));
  if (chunk->data.len != TK_TRACE_HEADER_BYTES)
    return tb_fail(s->fetch->diag, TB_CORRUPT, "segment %" PRIu64 " has no whole header",
                   s->piece->segment);
  if (s->digest != NULL) EVP_DigestUpdate(s->digest, chunk->data.data, chunk->data.len);
  if (s->filter) TB_TRY(split_bytes(s, chunk->data.data, chunk->data.len));
  return write_it ? write_bytes(s, chunk->data.data, chunk->data.len) : TB_OK;
}

static tb_rc read_body(struct sink *s) {
  const Tracecollect__V1__ReadReply *chunk;

  for (uint64_t done = 0; done < s->piece->len; done += chunk->data.len) {
    TB_TRY(ask_chunk(s->fetch, s->piece->segment, s->piece->offset + done, s->piece->len - done,
                     &chunk));
    TB_TRY(take_body(s, chunk->data.data, chunk->data.len));
  }
  return s->filter ? end_split(s) : TB_OK;
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

tb_rc tk_fetch_piece(struct tk_fetch *f, const struct tk_piece *piece, bool with_header,
                     FILE *file) {
  struct sink sink = {
    .fetch = f, .piece = piece, .file = file, .filter = piece->unsafe && !f->full
  };

  if (piece->whole) {
    sink.digest = EVP_MD_CTX_new();
    if (sink.digest == NULL || EVP_DigestInit_ex(sink.digest, EVP_sha256(), NULL) != 1) {
      EVP_MD_CTX_free(sink.digest);
      return tb_fail(f->diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
    }
  }
  if (sink.filter) tw_split_init(&sink.split, &tk_mem);
  tb_rc rc = TB_OK;
  if (with_header || sink.filter || sink.digest != NULL) rc = read_header(&sink, with_header);
  if (rc == TB_OK) rc = read_body(&sink);
  if (rc == TB_OK) rc = check_digest(&sink);
  if (sink.filter) tw_split_fini(&sink.split);
  EVP_MD_CTX_free(sink.digest);
  return rc;
}

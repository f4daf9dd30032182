/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/fetch/read.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tracectl/fetch/strip.h"
#include "tools/tracectl/term/tracectl.h"
#include "wire/split.h"

/* Processes a piece's bytes: hash, optionally strip experiments, write. */
struct sink {
  struct tk_fetch *fetch;
  const struct tk_piece *piece;
  FILE *file;
  struct tc_hasher *hasher; /* NULL: no hash is known to compare with */
  size_t part;              /* generation of the next bytes */
  uint64_t part_left;       /* its remaining bytes */
  struct tw_split split;
  struct tk_strip *strip; /* NULL: keep all experiments */
  unsigned char header[TK_TRACE_HEADER_BYTES];
  size_t header_len; /* bytes received of the header; complete if it is not needed */
  bool writes_header, in_body;
};

static tb_rc write_bytes(struct sink *s, const void *bytes, size_t n) {
  s->fetch->written += n;
  if (fwrite(bytes, 1, n, s->file) == n) return TB_OK;
  return tb_fail(s->fetch->diag, TB_IO, "writing: %s", strerror(errno));
}

static tb_rc write_item(struct sink *s, const struct tw_item *item) {
  const unsigned char *bytes;

  if (item->kind == TW_ITEM_HEADER) { /* written separately */
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

static tb_rc add_hash(struct sink *s, const unsigned char *bytes, size_t n) {
  return tc_hasher_add(s->hasher, bytes, n) == TB_OK
             ? TB_OK
             : tb_fail(s->fetch->diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
}

static tb_rc is_damaged(struct sink *s, const char *part) {
  const struct tk_piece *piece = s->piece;

  return tb_fail(s->fetch->diag, TB_CORRUPT,
                 "segment %" PRIu64
                 ": %s bytes no longer match their %s; `tracectl verify` says more",
                 piece->segment, part, tc_hash_title(tc_hasher_kind(s->hasher)));
}

static tb_rc end_part(struct sink *s) {
  const struct tk_piece_generation *part = &s->piece->parts[s->part];
  unsigned char hash[TC_GENERATION_HASH_BYTES];
  char name[60];

  tc_hasher_end(s->hasher, hash);
  s->part++;
  if (memcmp(hash, part->hash, sizeof hash) == 0) return TB_OK;
  snprintf(name, sizeof name, "generation %" PRIu64 "'s", part->gen);
  return is_damaged(s, name);
}

/* Hashes each generation separately if their hashes are known. */
static tb_rc hash_body(struct sink *s, const unsigned char *bytes, size_t n) {
  while (n > 0 && s->part < s->piece->n_parts) {
    if (s->part_left == 0) {
      s->part_left = s->piece->parts[s->part].bytes;
      tc_hasher_begin(s->hasher);
    }
    size_t take = s->part_left < n ? (size_t)s->part_left : n;
    TB_TRY(add_hash(s, bytes, take));
    bytes += take;
    n -= take;
    s->part_left -= take;
    if (s->part_left == 0) TB_TRY(end_part(s));
  }
  return n > 0 ? add_hash(s, bytes, n) : TB_OK;
}

/* Chooses the hash that the piece is compared with. If a file has a single generation, the file's hash covers it. */
static tb_rc begin_hash(struct sink *s) {
  const struct tk_piece *piece = s->piece;
  bool by_file = piece->whole && piece->hash.kind != TC_HASH_NONE;

  if (!by_file && piece->n_parts == 0) return TB_OK;
  if (by_file && piece->hash.kind == TC_HASH_XXH3 && piece->n_parts == 0 &&
      piece->first_gen != piece->last_gen)
    return TB_OK;
  if (tc_hasher_new(by_file ? piece->hash.kind : TC_HASH_XXH3, &s->hasher) != TB_OK)
    return tb_fail(s->fetch->diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  return TB_OK;
}

static tb_rc check_file_hash(struct sink *s) {
  struct tc_content_hash got;
  unsigned char ignored[TC_GENERATION_HASH_BYTES];

  if (s->hasher == NULL || !s->piece->whole || s->piece->hash.kind == TC_HASH_NONE) return TB_OK;
  if (s->piece->n_parts == 0) tc_hasher_end(s->hasher, ignored);
  if (tc_hasher_result(s->hasher, &got) != TB_OK)
    return tb_fail(s->fetch->diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  return tc_hash_equal(&got, &s->piece->hash) ? TB_OK : is_damaged(s, "its");
}

static tb_rc take_body(struct sink *s, const unsigned char *bytes, size_t n) {
  if (s->hasher != NULL) TB_TRY(hash_body(s, bytes, n));
  s->fetch->done += n;
  tk_progress_at(&s->fetch->progress, s->fetch->done);
  return s->strip != NULL ? split_bytes(s, bytes, n) : write_bytes(s, bytes, n);
}

static tb_rc end_header(struct sink *s) {
  if (s->hasher != NULL) TB_TRY(add_hash(s, s->header, sizeof s->header));
  if (s->strip != NULL) TB_TRY(split_bytes(s, s->header, sizeof s->header));
  if (s->writes_header) TB_TRY(write_bytes(s, s->header, sizeof s->header));
  return TB_OK;
}

/* Takes the header, if required, and then the body. */
static tb_rc take_bytes(void *self, const unsigned char *bytes, size_t n) {
  struct sink *s = self;
  size_t room = sizeof s->header - s->header_len, part = n < room ? n : room;

  if (part > 0) {
    memcpy(s->header + s->header_len, bytes, part);
    s->header_len += part;
    if (part == room) TB_TRY(end_header(s));
  }
  if (s->header_len == sizeof s->header && !s->in_body) {
    s->in_body = true;
    if (s->hasher != NULL && s->piece->n_parts == 0) tc_hasher_begin(s->hasher);
  }
  return n > part ? take_body(s, bytes + part, n - part) : TB_OK;
}

static tb_rc read_range(struct sink *s, uint64_t offset, uint64_t bytes) {
  const struct tk_range range = {
    .segment = s->piece->segment, .offset = offset, .bytes = bytes, .sum = s->hasher == NULL
  };

  return tk_client_read(s->fetch->client, &range, take_bytes, s, s->fetch->diag);
}

/* For a whole file, or a piece at its begin, header and body are one request. */
static tb_rc read_piece(struct sink *s, bool with_header) {
  const struct tk_piece *piece = s->piece;
  bool wants_header = with_header || s->strip != NULL || piece->whole;
  bool joined = wants_header && piece->offset == TK_TRACE_HEADER_BYTES;
  uint64_t before = joined ? TK_TRACE_HEADER_BYTES : 0;

  s->writes_header = with_header;
  s->header_len = wants_header ? 0 : sizeof s->header;
  TB_TRY(begin_hash(s));
  if (wants_header && !joined) TB_TRY(read_range(s, 0, TK_TRACE_HEADER_BYTES));
  TB_TRY(read_range(s, piece->offset - before, piece->len + before));
  if (s->strip != NULL) TB_TRY(end_split(s));
  return check_file_hash(s);
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
  tc_hasher_free(sink.hasher);
  return rc;
}

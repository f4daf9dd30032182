/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces are appended to their blob. If they arrive in order, counting bytes shows whether the blob is whole;
 * otherwise they are sorted at the end. A blob is joined when it is first read, so unread blobs are not copied. */
#include "online/trace/substreams.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "online/event/heap.h"

enum { PARTS_CHUNK = 16 << 10, JOINED_CHUNK = 64 << 10 };

struct piece {
  struct piece *next;
  const struct to_experimental *batch;
  const unsigned char *data;
  uint64_t at;
  size_t len;
};

enum fault { WHOLE, MISSING, TWICE, TWO_SIZES, TWO_SUBSTREAMS };

struct blob {
  struct to_blob is;
  struct piece *first, *last;
  uint64_t come;  /* bytes of all pieces */
  uint32_t count; /* pieces */
  bool in_order;
  uint8_t fault;     /* enum fault */
  uint64_t from, to; /* bytes with the fault; for TWO_SIZES both sizes */
  int64_t thread;    /* place of the fault */
  uint64_t offset;
  const unsigned char *joined; /* NULL: not read yet */
};

struct stream {
  struct to_substream is;
  struct to_content *content_last;
  struct blob *blob_last;
};

struct to_substreams {
  struct tb_mem *mem;
  struct to_fault_sink sink;
  uint64_t gen, faults;
  struct tb_diag diag; /* the fault being reported */
  struct tb_arena parts, joined;
  struct tb_map by_id; /* struct blob */
  struct stream stream[TO_SUBSTREAMS_MAX];
  size_t count;
};

tb_rc to_substreams_new(struct tb_mem *mem, struct to_fault_sink sink, struct to_substreams **out) {
  struct to_substreams *s;

  TB_TRY(tb_mem_alloc(mem, sizeof *s, &s));
  s->mem = mem;
  s->sink = sink;
  tb_diag_clear(&s->diag);
  tb_arena_init(&s->parts, mem, PARTS_CHUNK);
  tb_arena_init(&s->joined, mem, JOINED_CHUNK);
  tb_map_init(&s->by_id, mem, tb_seed());
  *out = s;
  return TB_OK;
}

void to_substreams_free(struct to_substreams *s) {
  if (s == NULL) return;
  tb_arena_fini(&s->parts);
  tb_arena_fini(&s->joined);
  tb_map_fini(&s->by_id);
  tb_mem_free(s->mem, s, sizeof *s);
}

static void clear_all(struct to_substreams *s) {
  tb_arena_reset(&s->parts);
  tb_arena_reset(&s->joined);
  tb_map_clear(&s->by_id);
  s->count = 0;
}

/* --- faults ------------------------------------------------------------------------------------- */

static void set_place(struct to_substreams *s, const struct to_experimental *batch,
                      const unsigned char *pos) {
  tb_diag_place(&s->diag, s->gen, batch->thread, batch->offset + (uint64_t)(pos - batch->data));
}

static void report_fault(struct to_substreams *s) {
  s->faults++;
  if (s->sink.fault != NULL) s->sink.fault(s->sink.self, &s->diag);
  tb_diag_clear(&s->diag);
}

static tb_rc describe_fault(const struct to_substreams *s, const struct blob *b,
                            struct tb_diag *diag) {
  uint64_t id = b->is.id;

  tb_diag_place(diag, s->gen, b->thread, b->offset);
  switch ((enum fault)b->fault) {
  case WHOLE: break;
  case MISSING:
    return tb_fail(diag, TB_BROKEN,
                   "blob %" PRIu64 ": bytes %" PRIu64 " to %" PRIu64 " of %" PRIu64 " are missing",
                   id, b->from, b->to, b->is.bytes);
  case TWICE:
    return tb_fail(diag, TB_BROKEN,
                   "blob %" PRIu64 ": bytes %" PRIu64 " to %" PRIu64 " are there twice", id,
                   b->from, b->to);
  case TWO_SIZES:
    return tb_fail(diag, TB_BROKEN,
                   "blob %" PRIu64 " is said to have %" PRIu64 " bytes, and %" PRIu64, id, b->from,
                   b->to);
  case TWO_SUBSTREAMS:
    return tb_fail(diag, TB_BROKEN, "blob %" PRIu64 " is in two sub-streams", id);
  }
  return TB_OK;
}

/* Only the first fault of a blob is reported. */
static void set_fault(struct to_substreams *s, struct blob *b, enum fault fault, uint64_t from,
                      uint64_t to, const struct to_experimental *batch, const unsigned char *pos) {
  if (b->fault != WHOLE) return;
  b->fault = (uint8_t)fault;
  b->from = from;
  b->to = to;
  b->thread = batch->thread;
  b->offset = batch->offset + (uint64_t)(pos - batch->data);
  if (describe_fault(s, b, &s->diag) != TB_OK) report_fault(s);
}

/* --- taking a generation apart ------------------------------------------------------------------ */

static bool is_named(const struct to_substream *stream, uint8_t experiment, const char *name,
                     size_t len) {
  return stream->experiment == experiment && stream->name.len == len &&
         memcmp(stream->name.data, name, len) == 0;
}

/* Returns NULL if there are too many sub-streams. */
static struct stream *find_or_add(struct to_substreams *s, const struct to_experimental *batch,
                                  const struct tw_substream *head) {
  struct stream *stream = s->stream, *end = s->stream + s->count;

  while (stream < end && !is_named(&stream->is, batch->experiment, head->name, head->name_len))
    stream++;
  if (stream < end) return stream;
  if (s->count == TO_SUBSTREAMS_MAX) {
    (void)tb_fail(&s->diag, TB_BROKEN, "a generation with more than %d sub-streams",
                  TO_SUBSTREAMS_MAX);
    report_fault(s);
    return NULL;
  }
  s->count++;
  *stream = (struct stream){ .is = { .experiment = batch->experiment,
                                     .name = { head->name, head->name_len } } };
  return stream;
}

static tb_rc add_content(struct to_substreams *s, struct stream *stream,
                         const struct to_experimental *batch, const struct tw_substream *head) {
  struct to_content *content;

  TB_TRY(tb_arena_alloc(&s->parts, sizeof(struct to_content), &content));
  *content = (struct to_content){ .thread = batch->thread,
                                  .offset = batch->offset + (uint64_t)(head->data - batch->data),
                                  .data = head->data,
                                  .len = head->len };
  if (stream->content_last == NULL)
    stream->is.content = content;
  else
    stream->content_last->next = content;
  stream->content_last = content;
  return TB_OK;
}

static tb_rc find_or_add_blob(struct to_substreams *s, struct stream *stream,
                              const struct tw_piece *p, struct blob **out) {
  uint64_t *place;
  bool fresh;
  struct blob *b;

  TB_TRY(tb_map_put(&s->by_id, p->id, &place, &fresh));
  if (!fresh) {
    *out = (struct blob *)(uintptr_t)*place;
    return TB_OK;
  }
  TB_TRY(tb_arena_alloc(&s->parts, sizeof(struct blob), &b));
  *b = (struct blob){ .is = { .substream = &stream->is, .id = p->id, .bytes = p->blob_bytes },
                      .in_order = true };
  *place = (uintptr_t)b;
  if (stream->blob_last == NULL)
    stream->is.blob = &b->is;
  else
    stream->blob_last->is.next = &b->is;
  stream->blob_last = b;
  stream->is.blobs++;
  *out = b;
  return TB_OK;
}

static tb_rc add_piece(struct to_substreams *s, struct stream *stream,
                       const struct to_experimental *batch, const struct tw_piece *p) {
  struct blob *b;
  struct piece *piece;

  TB_TRY(find_or_add_blob(s, stream, p, &b));
  if (b->is.substream != &stream->is) set_fault(s, b, TWO_SUBSTREAMS, 0, 0, batch, p->data);
  if (b->is.bytes != p->blob_bytes)
    set_fault(s, b, TWO_SIZES, b->is.bytes, p->blob_bytes, batch, p->data);
  if (p->len == 0 && b->count > 0) set_fault(s, b, TWICE, 0, 0, batch, p->data);
  if (b->fault != WHOLE) return TB_OK;
  TB_TRY(tb_arena_alloc(&s->parts, sizeof(struct piece), &piece));
  *piece = (struct piece){ .batch = batch, .data = p->data, .at = p->at, .len = p->len };
  if (b->first == NULL)
    b->first = piece;
  else
    b->last->next = piece;
  b->last = piece;
  b->in_order &= p->at == b->come;
  b->come += p->len;
  b->count++;
  return TB_OK;
}

static tb_rc add_pieces(struct to_substreams *s, struct stream *stream,
                        const struct to_experimental *batch, const struct tw_substream *head) {
  const unsigned char *pos = head->data, *end = head->data + head->len;

  for (;;) {
    struct tw_piece piece;
    set_place(s, batch, pos);
    tb_rc rc = tw_piece_read(&pos, end, &s->diag, &piece);
    if (rc == TB_END) return TB_OK;
    if (rc != TB_OK) break;
    TB_TRY(add_piece(s, stream, batch, &piece));
  }
  report_fault(s); /* later pieces of this batch cannot be found */
  return TB_OK;
}

static tb_rc add_batch(struct to_substreams *s, const struct to_experimental *batch) {
  struct tw_substream head;

  set_place(s, batch, batch->data);
  tb_rc rc = tw_substream_read(batch->data, batch->len, &s->diag, &head);
  if (rc == TB_NOTFOUND) return TB_OK;
  if (rc != TB_OK) {
    report_fault(s);
    return TB_OK;
  }
  struct stream *stream = find_or_add(s, batch, &head);
  if (stream == NULL) return TB_OK;
  stream->is.batches++;
  stream->is.bytes += head.len;
  if (head.kind == TW_SUBSTREAM_BYTES) return add_content(s, stream, batch, &head);
  return add_pieces(s, stream, batch, &head);
}

/* --- is it whole? ------------------------------------------------------------------------------- */

static tb_rc sort_pieces(struct to_substreams *s, struct blob *b) {
  struct to_heap_entry *sorted;
  size_t n = 0;

  TB_TRY(tb_arena_alloc(&s->parts, b->count * sizeof *sorted, &sorted));
  for (struct piece *p = b->first; p != NULL; p = p->next)
    sorted[n++] = (struct to_heap_entry){ .time = (to_ns)p->at, .value = p };
  to__sort(sorted, n);
  b->first = sorted[0].value;
  b->last = sorted[n - 1].value;
  for (size_t i = 0; i < n; i++)
    ((struct piece *)sorted[i].value)->next = i + 1 < n ? sorted[i + 1].value : NULL;
  return TB_OK;
}

/* Checks that each piece begins where the previous one ended; the pieces are sorted. */
static void check_seams(struct to_substreams *s, struct blob *b) {
  uint64_t end = 0;

  for (const struct piece *p = b->first; p != NULL; p = p->next) {
    if (p->at > end) set_fault(s, b, MISSING, end, p->at, p->batch, p->data);
    if (p->at < end)
      set_fault(s, b, TWICE, p->at, p->at + p->len < end ? p->at + p->len : end, p->batch, p->data);
    end = p->at + p->len;
    if (b->fault != WHOLE) return;
  }
  if (end < b->is.bytes) set_fault(s, b, MISSING, end, b->is.bytes, b->last->batch, b->last->data);
}

static tb_rc check_blob(struct to_substreams *s, struct blob *b) {
  if (b->fault == WHOLE && !(b->in_order && b->come == b->is.bytes)) {
    if (!b->in_order) TB_TRY(sort_pieces(s, b));
    check_seams(s, b);
  }
  b->is.whole = b->fault == WHOLE;
  return TB_OK;
}

static tb_rc take_apart(struct to_substreams *s, const struct to_generation *gen) {
  const struct to_experimental *batch;
  size_t n = to_generation_experimental(gen, &batch);

  for (; n > 0; n--, batch++) TB_TRY(add_batch(s, batch));
  for (size_t i = 0; i < s->count; i++)
    for (const struct to_blob *b = s->stream[i].is.blob; b != NULL; b = b->next)
      TB_TRY(check_blob(s, (struct blob *)(uintptr_t)b));
  return TB_OK;
}

tb_rc to_substreams_generation(struct to_substreams *s, const struct to_generation *gen) {
  clear_all(s);
  s->faults = 0;
  s->gen = to_generation_number(gen);
  tb_rc rc = take_apart(s, gen);
  if (rc != TB_OK) clear_all(s);
  return rc;
}

uint64_t to_substreams_faults(const struct to_substreams *s) {
  return s->faults;
}

/* --- asking ------------------------------------------------------------------------------------- */

const struct to_substream *to_substreams_at(const struct to_substreams *s, size_t i) {
  return i < s->count ? &s->stream[i].is : NULL;
}

const struct to_substream *to_substreams_find(const struct to_substreams *s, uint8_t experiment,
                                              const char *name) {
  size_t len = strlen(name);

  for (size_t i = 0; i < s->count; i++)
    if (is_named(&s->stream[i].is, experiment, name, len)) return &s->stream[i].is;
  return NULL;
}

uint64_t to_event_blob(const struct to_generation *gen, const struct to_event *ev) {
  struct to_string word;

  if (gen == NULL || ev->type != TW_EV_USER_LOG) return 0;
  return to_generation_string(gen, ev->args[2], &word) ? tw_blob_word_read(word.data, word.len) : 0;
}

static struct blob *find_blob(const struct to_substreams *s, uint64_t id) {
  return tb_map_at(&s->by_id, id);
}

const struct to_blob *to_blob_find(const struct to_substreams *s, uint64_t id) {
  const struct blob *b = find_blob(s, id);

  return b == NULL ? NULL : &b->is;
}

static tb_rc join(struct to_substreams *s, struct blob *b) {
  unsigned char *joined;

  TB_TRY(tb_arena_alloc(&s->joined, b->is.bytes, &joined));
  unsigned char *end = joined;
  for (const struct piece *p = b->first; p != NULL; p = p->next) {
    memcpy(end, p->data, p->len);
    end += p->len;
  }
  b->joined = joined;
  return TB_OK;
}

tb_rc to_blob_read(struct to_substreams *s, uint64_t id, struct tb_diag *diag,
                   struct to_bytes *out) {
  struct blob *b = find_blob(s, id);

  if (b == NULL) {
    tb_diag_place(diag, s->gen, TB_NO_THREAD, TB_NO_OFFSET);
    return tb_fail(diag, TB_NOTFOUND, "blob %" PRIu64 " does not exist", id);
  }
  if (b->fault != WHOLE) return describe_fault(s, b, diag);
  if (b->first == b->last) b->joined = b->first->data;
  if (b->joined == NULL) TB_TRY(join(s, b));
  *out = (struct to_bytes){ b->joined, b->is.bytes };
  return TB_OK;
}

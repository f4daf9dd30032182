/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/persist/serializer.h"

#include <string.h>

#include "agent/spool/losses.h"
#include "agent/spool/restart.h"
#include "base/check.h"
#include "base/crc32c.h"

/* The head of a frame on disk. */
struct kept_head {
  uint64_t gen;
  uint32_t kind, len, payload_crc;
  uint32_t unused[2];
  uint32_t crc; /* of the fields above, with the salt as initial value */
};
_Static_assert(sizeof(struct kept_head) == TA_KEPT_HEAD_BYTES, "as on disk");
_Static_assert((int)TA_KEPT_HEAD_BYTES == (int)TP_HEADER_BYTES, "a place in a run is one on disk");

static uint32_t head_crc(uint32_t salt, const struct kept_head *head) {
  return tb_crc32c(salt, head, offsetof(struct kept_head, crc));
}

/* Out. */

void ta_spool_keep(struct ta_spool *s) {
  pthread_mutex_lock(&s->lock);
  struct ta_runs *r = &s->runs;
  const struct ta_place *acked = &r->place[TA_ACKED];
  s->keeping = true;
  s->kept_records = 0;
  r->place[TA_KEPT].run = TA_NONE;
  for (uint32_t at = acked->run; at != TA_NONE; at = r->run[at].next) {
    struct ta_run *run = &r->run[at];
    run->id = run->covers = run->kept_covers = ++r->last_id;
    run->kept_from = at == acked->run ? acked->at : 0;
    run->kept_bytes = run->kept_from;
    ta_run_touch(r, run);
  }
  pthread_mutex_unlock(&s->lock);
}

void ta_spool_keep_not(struct ta_spool *s) {
  pthread_mutex_lock(&s->lock);
  s->keeping = false;
  pthread_mutex_unlock(&s->lock);
}

static void copy_out(struct ta_runs *r, struct ta_place *p, unsigned char *out, size_t n) {
  while (n > 0) {
    size_t here;
    const unsigned char *bytes = ta_runs_bytes(r, p, &here);
    if (here > n) here = n;
    memcpy(out, bytes, here);
    ta_runs_step(r, p, here);
    out += here;
    n -= here;
  }
}

/* Reads the head of a frame. A numbered frame has its final head, which does not contain the payload's own checksum. */
static bool read_head(struct ta_spool *s, const struct ta_run *run, const struct ta_place *p,
                      struct tp_frame *out) {
  unsigned char bytes[TP_HEADER_BYTES];

  ta_runs_load_head(&s->runs, *p, bytes);
  if (p->at < run->sealed_bytes) return tp_frame_open(bytes, NULL, out) == TB_OK;
  ta_run_read_unsealed(bytes, out);
  return true;
}

/* Copies as many whole frames as fit into room. */
static size_t copy_frames(struct ta_spool *s, struct ta_run *run, struct ta_place *p, uint32_t salt,
                          unsigned char *room) {
  struct tp_frame frame;
  size_t n = 0;

  while (p->at < run->bytes && read_head(s, run, p, &frame)) {
    bool sealed = p->at < run->sealed_bytes;
    if (!TB_CHECK(frame.len <= TA_PIECE_BYTES - TA_KEPT_HEAD_BYTES)) break;
    if (frame.len > TA_PIECE_BYTES - TA_KEPT_HEAD_BYTES - n) break;
    unsigned char *payload = room + n + TA_KEPT_HEAD_BYTES;
    ta_runs_step(&s->runs, p, TP_HEADER_BYTES);
    copy_out(&s->runs, p, payload, frame.len);
    struct kept_head head = { .gen = frame.gen,
                              .kind = frame.kind,
                              .len = frame.len,
                              .payload_crc =
                                  sealed ? tb_crc32c(0, payload, frame.len) : frame.payload_crc };
    head.crc = head_crc(salt, &head);
    memcpy(room + n, &head, sizeof head);
    n += TA_KEPT_HEAD_BYTES + frame.len;
    if (n > TA_PIECE_BYTES - TA_KEPT_HEAD_BYTES) break;
  }
  return n;
}

static struct ta_place *cursor(struct ta_spool *s, uint32_t at) {
  struct ta_place *p = &s->runs.place[TA_KEPT], *acked = &s->runs.place[TA_ACKED];
  struct ta_run *run = &s->runs.run[at];

  if (p->run == at) return p;
  *p = acked->run == at ? *acked : (struct ta_place){ .run = at, .page = TA_NONE };
  if (acked->run == at && run->kept_bytes < acked->at) { /* acked while there were no files */
    run->kept_from = run->kept_bytes = acked->at;
  }
  if (p->at < run->kept_bytes) ta_runs_step(&s->runs, p, (size_t)(run->kept_bytes - p->at));
  return p;
}

static void take_frames(struct ta_spool *s, uint32_t at, uint32_t salt, unsigned char *room,
                        struct ta_piece *out) {
  struct ta_run *run = &s->runs.run[at];

  if (run->kind == TA_RUN_LOSS) return; /* it has no frames, only an image */
  if (run->kind == TA_RUN_GENERATION) {
    if (run->kept_bytes >= run->bytes) return;
    struct ta_place *p = cursor(s, at);
    out->at = run->kept_bytes - run->kept_from;
    out->n = copy_frames(s, run, p, salt, room);
    run->kept_bytes = p->at;
    return;
  }
  struct ta_place p = { .run = at, .page = TA_NONE };
  out->n = copy_frames(s, run, &p, salt, room);
}

static void take_image(const struct ta_run *run, struct ta_run_image *out) {
  *out = (struct ta_run_image){ .id = run->id,
                                .covers = run->covers,
                                .kind = run->kind,
                                .reason = run->reason,
                                .open = run->open,
                                .lost = run->lost,
                                .gen = run->gen,
                                .last_gen = run->last_gen,
                                .end_bytes = run->kept_bytes - run->kept_from,
                                .all = run->all,
                                .sealed = run->sealed,
                                .first_wall_ns = run->first_wall_ns,
                                .last_wall_ns = run->last_wall_ns };
}

bool ta_spool_unsaved(struct ta_spool *s, uint32_t salt, unsigned char room[TA_PIECE_BYTES],
                      struct ta_piece *out) {
  struct ta_runs *r = &s->runs;

  pthread_mutex_lock(&s->lock);
  uint32_t at = r->unsaved > 0 ? r->place[TA_ACKED].run : TA_NONE;
  while (at != TA_NONE && !r->run[at].unsaved) at = r->run[at].next;
  bool any = at != TA_NONE;
  if (any) {
    struct ta_run *run = &r->run[at];
    *out = (struct ta_piece){ 0 };
    take_frames(s, at, salt, room, out);
    take_image(run, &out->run);
    out->kept_covers = run->kept_covers;
    run->kept_covers = run->covers;
    if (run->kind != TA_RUN_GENERATION) out->run.end_bytes = out->n;
    if (run->kind != TA_RUN_GENERATION || run->kept_bytes == run->bytes) ta_run_untouch(r, run);
  } else {
    s->kept_records = s->records;
  }
  pthread_mutex_unlock(&s->lock);
  return any;
}

/* Since ta_spool_unsaved() returned the piece, its run may have been replaced by a LOSS, or merged into the LOSS before it. Then
 * nothing is left to do: that LOSS is unsaved anyway. */
void ta_spool_unsaved_again(struct ta_spool *s, const struct ta_piece *piece) {
  struct ta_runs *r = &s->runs;

  pthread_mutex_lock(&s->lock);
  uint32_t at = r->place[TA_ACKED].run;
  while (at != TA_NONE && r->run[at].id != piece->run.id) at = r->run[at].next;
  if (at != TA_NONE) {
    struct ta_run *run = &r->run[at];
    uint64_t before = run->kept_from + piece->at;
    if (run->kind == TA_RUN_GENERATION && piece->n > 0 && run->kept_bytes > before) {
      run->kept_bytes = before;
      r->place[TA_KEPT].run = TA_NONE;
    }
    run->kept_covers = piece->kept_covers;
    ta_run_touch(r, run);
  }
  pthread_mutex_unlock(&s->lock);
}

static bool has_kept(const struct ta_run *run, uint64_t acked_bytes) {
  if (run->kind != TA_RUN_GENERATION) return !run->unsaved && run->acked_records == 0;
  return run->kept_bytes > (run->kept_from > acked_bytes ? run->kept_from : acked_bytes);
}

bool ta_spool_has_kept(struct ta_spool *s) {
  const struct ta_runs *r = &s->runs;
  bool any = false;

  pthread_mutex_lock(&s->lock);
  const struct ta_place *acked = &r->place[TA_ACKED];
  for (uint32_t at = acked->run; s->keeping && !any && at != TA_NONE; at = r->run[at].next)
    any = has_kept(&r->run[at], at == acked->run ? acked->at : 0);
  pthread_mutex_unlock(&s->lock);
  return any;
}

bool ta_spool_given_kept(struct ta_spool *s) {
  const struct ta_runs *r = &s->runs;

  pthread_mutex_lock(&s->lock);
  const struct ta_place *sealed = &r->place[TA_SEALED];
  uint32_t at = r->place[TA_ACKED].run;
  while (at != TA_NONE && at != sealed->run && !r->run[at].unsaved) at = r->run[at].next;
  bool all = at == sealed->run;
  if (all && at != TA_NONE && sealed->at > 0)
    all = r->run[at].kind == TA_RUN_GENERATION ? r->run[at].kept_bytes >= sealed->at
                                               : !r->run[at].unsaved;
  pthread_mutex_unlock(&s->lock);
  return s->keeping && all;
}

void ta_spool_accounting(struct ta_spool *s, struct ta_accounting *out) {
  *out = (struct ta_accounting){ 0 };
  pthread_mutex_lock(&s->lock);
  const struct ta_place *acked = &s->runs.place[TA_ACKED];
  out->front_id = s->runs.last_id + 1;
  if (acked->run != TA_NONE) {
    const struct ta_run *run = &s->runs.run[acked->run];
    out->front_id = run->id;
    out->front_done = run->kind != TA_RUN_GENERATION && run->acked_records > 0;
    out->front_bytes = acked->at > run->kept_from ? acked->at - run->kept_from : 0;
  }
  out->acked_seq = s->acked_seq;
  out->given_seq = s->seq;
  out->acked_generations = s->counters.acked_generations;
  out->lost_generations = s->counters.lost_generations;
  out->settled = s->settled;
  out->settled_lost = s->settled_lost;
  out->gone = s->gone;
  out->header_n = s->header.n;
  memcpy(out->header, s->header.bytes, s->header.n);
  pthread_mutex_unlock(&s->lock);
}

/* In. */

tb_rc ta_kept_frame(uint32_t salt, const unsigned char *bytes, size_t n, struct tp_frame *out) {
  struct kept_head head;

  if (n < sizeof head) return TB_AGAIN;
  memcpy(&head, bytes, sizeof head);
  if (head.crc != head_crc(salt, &head) || head.len > TA_PIECE_BYTES - TA_KEPT_HEAD_BYTES)
    return TB_CORRUPT;
  if (n - sizeof head < head.len) return TB_AGAIN;
  *out = (struct tp_frame){ .kind = head.kind,
                            .gen = head.gen,
                            .payload = bytes + sizeof head,
                            .len = head.len,
                            .payload_crc = head.payload_crc };
  return tb_crc32c(0, out->payload, head.len) == head.payload_crc ? TB_OK : TB_CORRUPT;
}

void ta_spool_inherit(struct ta_spool *s, const struct ta_accounting *accounting) {
  s->inherited = true;
  s->inherited_seq = accounting->given_seq;
  s->seq = s->acked_seq = accounting->acked_seq;
  s->settled = accounting->settled;
  s->settled_lost = accounting->settled_lost;
  s->gone = accounting->gone;
  s->header.n =
      accounting->header_n < sizeof s->header.bytes ? accounting->header_n : sizeof s->header.bytes;
  memcpy(s->header.bytes, accounting->header, s->header.n);
  s->counters.reported = s->counters.produced = accounting->settled;
  s->counters.reported_seq = accounting->acked_seq;
  s->counters.lost = accounting->settled_lost;
  s->counters.acked_generations = accounting->acked_generations;
  s->counters.lost_generations = accounting->lost_generations;
}

/* Marks the generation before this LOSS as lost, if a part of it was sent before it was abandoned. */
static void lose_last(struct ta_spool *s, const struct ta_run_image *loss) {
  struct ta_run *last = s->runs.last == TA_NONE ? NULL : &s->runs.run[s->runs.last];

  if (loss->sealed.batches == 0 || last == NULL || last->kind != TA_RUN_GENERATION) return;
  last->lost = true;
  ta_count_sub(&s->counters.spooled, last->all);
}

tb_rc ta_spool_inherit_run(struct ta_spool *s, const struct ta_run_image *image) {
  if (s->runs.free <= TA_RUNS_SPARE) return TB_NOMEM;
  if (image->kind == TA_RUN_LOSS) lose_last(s, image);
  struct ta_run *run =
      ta_runs_append(&s->runs, (enum ta_run_kind)image->kind, image->gen, s->records);
  run->last_gen = image->last_gen;
  run->reason = image->reason;
  run->first_wall_ns = image->first_wall_ns;
  run->last_wall_ns = image->last_wall_ns;
  if (image->kind != TA_RUN_LOSS) return TB_OK;
  run->all = image->all;
  run->sealed = image->sealed;
  s->records++;
  ta_count_add(&s->counters.lost, image->all);
  ta_count_add(&s->counters.produced, image->all);
  ta_count_sub(&s->counters.produced, image->sealed); /* sent batches are counted as frames */
  return TB_OK;
}

static tb_rc append(struct ta_spool *s, struct ta_run *run, const struct tp_frame *frame) {
  unsigned char head[TP_HEADER_BYTES];
  struct ta_count one = { 1, frame->len };

  if (ta_run_pages_wanted(run, TP_HEADER_BYTES + frame->len) > s->runs.pages.free) return TB_NOMEM;
  uint32_t off = (uint32_t)(run->bytes % TA_PAGE_BYTES);
  struct ta_place p = { .run = s->runs.last, .off = off, .at = run->bytes };
  p.page = ta_runs_extend(&s->runs, run, TP_HEADER_BYTES + frame->len);
  ta_run_unsealed_head(head, frame);
  run->bytes += TP_HEADER_BYTES + frame->len;
  ta_runs_store_head(&s->runs, p, head);
  ta_runs_step(&s->runs, &p, TP_HEADER_BYTES);
  const unsigned char *from = frame->payload;
  for (size_t n = frame->len, here; n > 0; from += here, n -= here) {
    unsigned char *bytes = ta_runs_bytes(&s->runs, &p, &here);
    if (here > n) here = n;
    memcpy(bytes, from, here);
    ta_runs_step(&s->runs, &p, here);
  }
  if (frame->kind != TP_BATCH) return TB_OK;
  ta_count_add(&run->all, one);
  ta_count_add(&s->counters.spooled, one);
  ta_count_add(&s->counters.produced, one);
  return TB_OK;
}

tb_rc ta_spool_inherit_frame(struct ta_spool *s, const struct tp_frame *frame) {
  struct ta_run *run = &s->runs.run[s->runs.last];

  if (run->kind == TA_RUN_GENERATION) {
    TB_TRY(append(s, run, frame));
  } else {
    if (frame->len > TA_SLOT_BYTES - TP_HEADER_BYTES || run->bytes > 0) return TB_CORRUPT;
    ta_run_slot(run, frame->kind, frame->payload, frame->len);
    if (frame->kind == TP_CLOSE) s->finished = true;
  }
  s->records++;
  return TB_OK;
}

/* Completes the spool. Records that may have been sent get their numbers again, so that they can be acked. */
void ta_spool_inherited(struct ta_spool *s) {
  uint64_t need;

  s->counters.acked = s->counters.produced;
  ta_count_sub(&s->counters.acked, s->counters.lost);
  ta_count_sub(&s->counters.acked, s->counters.spooled);
  s->counters.spooled_peak = s->counters.spooled;
  while (s->seq < s->inherited_seq && ta_spool_grant(s, UINT64_MAX, &need) > 0) continue;
}

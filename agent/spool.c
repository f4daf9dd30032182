/* SPDX-License-Identifier: Apache-2.0 */
/* Runs form a list from the oldest unacked one to the newest; four places walk it, each at the
 * border of two frames (TA_SENT may stand inside one). A frame lies in its pages as it will go out,
 * only its header is a struct unsealed until the frame gets its number.
 *
 * The writer takes pages under the lock, copies into them without it, and publishes them under it
 * again: nobody else looks past run->bytes. Only the writer drops, only the sender frees what was
 * sent, and what the writer drops was never granted, so neither pulls memory from under the other.
 */
#include "agent/spool.h"

#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

#include "agent/clock.h"
#include "base/check.h"
#include "base/crc32c.h"
#include "proto/frame.pb-c.h"

#define TA_NONE UINT32_MAX

enum {
  RUNS_MIN = 256,
  RUNS_SPARE = 4, /* always left for LOSS and CLOSE */
  GENEND_BYTES_MAX = TP_HEADER_BYTES + 64,
  TRIM_SLACK_PAGES = 64,
  WAIT_STEP_NS = 100000000,
};

/* A frame's header in its pages before the frame has a number. */
struct unsealed {
  uint64_t gen;
  uint32_t kind, len, payload_crc;
  uint32_t unused[3];
};
_Static_assert(sizeof(struct unsealed) == TP_HEADER_BYTES, "takes the place of the header");

/* Pages: lowest first, so that a quiet stream keeps using the same few and neighbours go out
 * together. */

/* The caller has seen to it that one is free. */
static uint32_t page_take(struct ta_spool *s) {
  while (s->page_used[s->page_hint] == UINT64_MAX) s->page_hint++;

  uint32_t page = s->page_hint * 64 + (uint32_t)__builtin_ctzll(~s->page_used[s->page_hint]);
  s->page_used[page / 64] |= UINT64_C(1) << page % 64;
  s->page_next[page] = TA_NONE;
  s->pages_free--;
  if (page >= s->page_peak) s->page_peak = page + 1;
  return page;
}

static void page_give(struct ta_spool *s, uint32_t page) {
  s->page_used[page / 64] &= ~(UINT64_C(1) << page % 64);
  s->pages_free++;
  if (page / 64 < s->page_hint) s->page_hint = page / 64;
}

static void pages_give_from(struct ta_spool *s, uint32_t page) {
  while (page != TA_NONE) {
    uint32_t next = s->page_next[page];
    page_give(s, page);
    page = next;
  }
}

static unsigned char *page_bytes(struct ta_spool *s, uint32_t page) {
  return s->pages + (size_t)page * TA_PAGE_BYTES;
}

/* Runs. */

static struct ta_run *run_at(struct ta_spool *s, uint32_t run) {
  return &s->runs[run];
}

/* The caller has seen to it that one is free. */
static struct ta_run *run_append(struct ta_spool *s, enum ta_run_kind kind, uint64_t gen) {
  uint32_t at = s->run_hint;

  while (s->runs[at].kind != TA_RUN_FREE) at = (at + 1) % s->runs_max;
  s->run_hint = (at + 1) % s->runs_max;
  s->runs_free--;

  struct ta_run *run = &s->runs[at];
  *run = (struct ta_run){ .kind = kind,
                          .next = TA_NONE,
                          .first_page = TA_NONE,
                          .last_page = TA_NONE,
                          .gen = gen,
                          .last_gen = gen,
                          .order = s->records,
                          .first_wall_ns = ta_wall_ns() };
  run->last_wall_ns = run->first_wall_ns;
  if (s->run_last != TA_NONE) s->runs[s->run_last].next = at;
  s->run_last = at;
  for (int p = 0; p < TA_PLACES; p++)
    if (s->place[p].run == TA_NONE) s->place[p] = (struct ta_place){ .run = at, .page = TA_NONE };
  return run;
}

static struct ta_run *run_writing(struct ta_spool *s) {
  if (s->run_last == TA_NONE) return NULL;
  struct ta_run *run = run_at(s, s->run_last);
  return run->open ? run : NULL;
}

/* Places. */

/* Nothing more comes into it: not the writer's next batch, not the words of a LOSS still to be
 * said. */
static bool run_complete(const struct ta_run *run) {
  return !run->open && (run->kind != TA_RUN_LOSS || run->bytes > 0);
}

/* Leaves a run that is complete and walked through, if another follows. */
static bool settle_once(struct ta_spool *s, struct ta_place *p) {
  if (p->run == TA_NONE) return false;
  struct ta_run *run = run_at(s, p->run);
  if (!run_complete(run) || p->at < run->bytes || run->next == TA_NONE) return false;
  *p = (struct ta_place){ .run = run->next, .page = TA_NONE };
  return true;
}

/* For every place but TA_ACKED, which frees what it leaves: release_runs(). */
static void settle(struct ta_spool *s, struct ta_place *p) {
  while (settle_once(s, p)) continue;
}

/* The bytes at p up to the end of its page or slot. */
static unsigned char *bytes_at(struct ta_spool *s, struct ta_place *p, size_t *out_n) {
  struct ta_run *run = run_at(s, p->run);

  if (run->kind != TA_RUN_GENERATION) {
    *out_n = (size_t)(run->bytes - p->at);
    return run->slot + p->at;
  }
  if (p->page == TA_NONE) {
    p->page = run->first_page;
  } else if (p->off == TA_PAGE_BYTES) {
    p->page = s->page_next[p->page];
    p->off = 0;
  }
  uint64_t left = run->bytes - p->at, in_page = TA_PAGE_BYTES - p->off;
  *out_n = (size_t)(left < in_page ? left : in_page);
  return page_bytes(s, p->page) + p->off;
}

static void step(struct ta_spool *s, struct ta_place *p, size_t n) {
  while (n > 0) {
    size_t here;
    bytes_at(s, p, &here);
    if (here > n) here = n;
    p->off += (uint32_t)here;
    p->at += here;
    n -= here;
  }
}

static void copy_head(struct ta_spool *s, struct ta_place p, unsigned char *out) {
  for (size_t n = TP_HEADER_BYTES; n > 0;) {
    size_t here;
    const unsigned char *bytes = bytes_at(s, &p, &here);
    if (here > n) here = n;
    memcpy(out, bytes, here);
    out += here;
    n -= here;
    step(s, &p, here);
  }
}

static void store_head(struct ta_spool *s, struct ta_place p, const unsigned char *head) {
  for (size_t n = TP_HEADER_BYTES; n > 0;) {
    size_t here;
    unsigned char *bytes = bytes_at(s, &p, &here);
    if (here > n) here = n;
    memcpy(bytes, head, here);
    head += here;
    n -= here;
    step(s, &p, here);
  }
}

static bool place_equal(const struct ta_place *a, const struct ta_place *b) {
  return a->run == b->run && a->at == b->at;
}

/* Opening and closing. */

tb_rc ta_spool_init(struct ta_spool *s, uint64_t bytes) {
  *s = (struct ta_spool){ .run_last = TA_NONE };
  for (int p = 0; p < TA_PLACES; p++) s->place[p].run = TA_NONE;
  if (bytes < TA_SPOOL_BYTES_MIN) bytes = TA_SPOOL_BYTES_MIN;
  if (bytes / TA_PAGE_BYTES > INT32_MAX) return TB_NOMEM;

  s->pages_max = s->pages_free = (uint32_t)(bytes / TA_PAGE_BYTES / 64 * 64);
  s->runs_max = s->runs_free = s->pages_max / 4 < RUNS_MIN ? RUNS_MIN : s->pages_max / 4;
  size_t pages = (size_t)s->pages_max * TA_PAGE_BYTES;
  size_t next = s->pages_max * sizeof *s->page_next, used = s->pages_max / 8;
  s->mapped_bytes = pages + next + used + s->runs_max * sizeof *s->runs;

  void *map = mmap(NULL, s->mapped_bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) return TB_NOMEM;
  s->pages = map;
  s->page_used = (uint64_t *)(void *)(s->pages + pages);
  s->runs = (struct ta_run *)(void *)(s->pages + pages + used);
  s->page_next = (uint32_t *)(void *)(s->runs + s->runs_max);

  pthread_condattr_t attr;
  pthread_condattr_init(&attr);
  pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  pthread_cond_init(&s->moved, &attr);
  pthread_condattr_destroy(&attr);
  pthread_mutex_init(&s->lock, NULL);
  return TB_OK;
}

void ta_spool_fini(struct ta_spool *s) {
  if (s->pages == NULL) return;
  munmap(s->pages, s->mapped_bytes);
  pthread_cond_destroy(&s->moved);
  pthread_mutex_destroy(&s->lock);
  *s = (struct ta_spool){ 0 };
}

/* Dropping. */

static void count_add(struct ta_count *sum, struct ta_count n) {
  sum->batches += n.batches;
  sum->bytes += n.bytes;
}

static void count_sub(struct ta_count *sum, struct ta_count n) {
  sum->batches -= n.batches;
  sum->bytes -= n.bytes;
}

static void set_reason(struct ta_spool *s, struct ta_run *loss) {
  loss->reason = s->capped ? TRACECOLLECT__V1__LOSS_REASON__LOSS_RATE_CAP
                           : TRACECOLLECT__V1__LOSS_REASON__LOSS_SPOOL_FULL;
}

/* Nothing of it was sealed: its run becomes the LOSS, or joins the one before it that is not said
 * yet. Answers that run; an open one swallows what is still to come. */
static struct ta_run *drop_whole(struct ta_spool *s, uint32_t at, uint32_t before) {
  struct ta_run *run = run_at(s, at);

  pages_give_from(s, run->first_page);
  count_add(&s->counters.lost, run->all);
  count_sub(&s->counters.spooled, run->all);
  s->counters.lost_generations++;
  run->kind = TA_RUN_LOSS;
  run->first_page = run->last_page = TA_NONE;
  run->bytes = 0;
  set_reason(s, run);
  for (int p = 0; p < TA_PLACES; p++)
    if (s->place[p].run == at) s->place[p] = (struct ta_place){ .run = at, .page = TA_NONE };

  struct ta_run *prev = before == TA_NONE ? NULL : run_at(s, before);
  if (prev == NULL || prev->kind != TA_RUN_LOSS || prev->bytes > 0) return run;
  count_add(&prev->all, run->all);
  prev->last_gen = run->gen;
  prev->last_wall_ns = run->last_wall_ns;
  prev->open = run->open;
  prev->next = run->next;
  if (s->run_last == at) s->run_last = before;
  run->kind = TA_RUN_FREE;
  s->runs_free++;
  return prev;
}

/* The one being written, and some of it was sealed: what is not goes, the LOSS comes behind it. */
static void abandon(struct ta_spool *s) {
  struct ta_run *run = run_at(s, s->run_last);
  struct ta_place *end = &s->place[TA_SEALED];

  pages_give_from(s, s->page_next[end->page]);
  s->page_next[end->page] = TA_NONE;
  run->last_page = end->page;
  run->bytes = run->sealed_bytes;
  run->open = false;
  run->lost = true;
  count_add(&s->counters.lost, run->all);
  count_sub(&s->counters.spooled, run->all);
  count_add(&s->counters.spooled, run->acked);
  count_sub(&s->counters.acked, run->acked);
  s->counters.lost_generations++;

  struct ta_run *loss = run_append(s, TA_RUN_LOSS, run->gen);
  loss->order = run->order + run->sealed_records;
  loss->open = true;
  loss->all = run->all;
  loss->sealed = run->sealed;
  loss->first_wall_ns = run->first_wall_ns;
  set_reason(s, loss);
}

/* The oldest generation of which nothing was sealed; the complete ones come before the one being
 * written. */
static uint32_t oldest_unsent(struct ta_spool *s, uint32_t *out_before) {
  *out_before = TA_NONE;
  for (uint32_t at = s->place[TA_SEALED].run; at != TA_NONE; at = run_at(s, at)->next) {
    struct ta_run *run = run_at(s, at);
    if (run->kind == TA_RUN_GENERATION && run->sealed_records == 0) return at;
    *out_before = at;
  }
  return TA_NONE;
}

/* Waits for acks where the writer may; false: it may not, or has waited enough. */
static bool waited(struct ta_spool *s) {
  if (s->impatient == NULL || s->over) return false;
  if (s->impatient(s->impatient_self)) {
    s->over = true;
    return false;
  }
  struct timespec until = ta_timespec(ta_mono_ns() + WAIT_STEP_NS);
  pthread_cond_timedwait(&s->moved, &s->lock, &until);
  return true;
}

static uint64_t pages_wanted(const struct ta_run *run, size_t bytes) {
  uint64_t have = (run->bytes + TA_PAGE_BYTES - 1) / TA_PAGE_BYTES;

  return (run->bytes + bytes + TA_PAGE_BYTES - 1) / TA_PAGE_BYTES - have;
}

/* Room for bytes more in the generation being written; NULL: it had to go itself. */
static struct ta_run *make_room(struct ta_spool *s, size_t bytes) {
  struct ta_run *run = run_writing(s);
  uint32_t victim, before;

  if (run->kind != TA_RUN_GENERATION) return NULL;
  while (pages_wanted(run, bytes) > s->pages_free) {
    if (waited(s)) continue;
    victim = oldest_unsent(s, &before);
    if (victim == TA_NONE) {
      abandon(s);
      return NULL;
    }
    if (drop_whole(s, victim, before)->open) return NULL;
  }
  return run;
}

/* A run for the generation. Where none is to be had it is lost from its first batch on. */
static void begin_generation(struct ta_spool *s, uint64_t gen) {
  uint32_t victim, before;

  while (s->runs_free <= RUNS_SPARE) {
    if (waited(s)) continue;
    victim = oldest_unsent(s, &before);
    if (victim == TA_NONE) break;
    drop_whole(s, victim, before);
  }
  if (s->runs_free > RUNS_SPARE) {
    run_append(s, TA_RUN_GENERATION, gen)->open = true;
    return;
  }
  struct ta_run *last = run_at(s, s->run_last);
  if (last->kind != TA_RUN_LOSS || last->bytes > 0) last = run_append(s, TA_RUN_LOSS, gen);
  last->open = true;
  last->last_gen = gen;
  set_reason(s, last);
  s->counters.lost_generations++;
}

/* Writing. */

static void unsealed_head(unsigned char *out, const struct tp_frame *frame) {
  struct unsealed head = {
    .gen = frame->gen, .kind = frame->kind, .len = frame->len, .payload_crc = frame->payload_crc
  };

  memcpy(out, &head, sizeof head);
}

/* Takes the pages for a frame of n bytes and answers the page its first byte goes to. */
static uint32_t extend(struct ta_spool *s, struct ta_run *run, size_t n) {
  uint32_t first = run->bytes % TA_PAGE_BYTES == 0 ? TA_NONE : run->last_page;

  for (uint64_t more = pages_wanted(run, n); more > 0; more--) {
    uint32_t page = page_take(s);
    if (run->last_page == TA_NONE)
      run->first_page = page;
    else
      s->page_next[run->last_page] = page;
    run->last_page = page;
    if (first == TA_NONE) first = page;
  }
  return first;
}

static void fill(struct ta_spool *s, struct ta_place *p, const void *bytes, size_t n) {
  for (const unsigned char *from = bytes; n > 0;) {
    if (p->off == TA_PAGE_BYTES) {
      p->page = s->page_next[p->page];
      p->off = 0;
    }
    size_t here = TA_PAGE_BYTES - p->off;
    if (here > n) here = n;
    memcpy(page_bytes(s, p->page) + p->off, from, here);
    p->off += (uint32_t)here;
    from += here;
    n -= here;
  }
}

/* Appends a frame to the generation being written; the lock is let go while its bytes are copied.
 */
static void append_frame(struct ta_spool *s, struct ta_run *run, const struct tp_frame *frame) {
  unsigned char head[TP_HEADER_BYTES];
  size_t n = TP_HEADER_BYTES + frame->len;
  struct ta_place p = { .off = (uint32_t)(run->bytes % TA_PAGE_BYTES) };

  if (!TB_CHECK(pages_wanted(run, n) <= s->pages_free)) return;
  p.page = extend(s, run, n);
  unsealed_head(head, frame);
  pthread_mutex_unlock(&s->lock);
  fill(s, &p, head, sizeof head);
  fill(s, &p, frame->payload, frame->len);
  pthread_mutex_lock(&s->lock);
  run->bytes += n;
}

/* Whether n bytes more are what a sleeping sender waits for. */
static bool wake_sender(struct ta_spool *s, size_t n) {
  if (s->wake_bytes > n) {
    s->wake_bytes -= n;
    return false;
  }
  bool wake = s->wake_bytes > 0;
  s->wake_bytes = 0;
  return wake;
}

static void slot_frame(struct ta_run *run, const struct tp_frame *frame) {
  unsealed_head(run->slot, frame);
  memcpy(run->slot + TP_HEADER_BYTES, frame->payload, frame->len);
  run->bytes = TP_HEADER_BYTES + frame->len;
}

static void slot_bytes(struct ta_run *run, enum tp_kind kind, const void *bytes, size_t n) {
  slot_frame(run, &(struct tp_frame){ .kind = kind,
                                      .payload = bytes,
                                      .len = (uint32_t)n,
                                      .payload_crc = tb_crc32c(0, bytes, n) });
}

bool ta_spool_header(struct ta_spool *s, const void *bytes, size_t n) {
  if (!TB_CHECK(n <= TA_SLOT_BYTES - TP_HEADER_BYTES)) return false;
  pthread_mutex_lock(&s->lock);
  slot_bytes(run_append(s, TA_RUN_HEADER, 0), TP_HEADER, bytes, n);
  s->records++;
  bool wake = wake_sender(s, 1);
  pthread_mutex_unlock(&s->lock);
  return wake;
}

bool ta_spool_put(struct ta_spool *s, uint64_t gen, const void *batch, size_t n) {
  struct tp_frame frame = { .kind = TP_BATCH,
                            .gen = gen,
                            .payload = batch,
                            .len = (uint32_t)n,
                            .payload_crc = tb_crc32c(0, batch, n) };
  struct ta_count one = { 1, n };
  bool wake = false;

  pthread_mutex_lock(&s->lock);
  if (run_writing(s) == NULL) begin_generation(s, gen);
  struct ta_run *run = make_room(s, TP_HEADER_BYTES + n);
  if (run != NULL) {
    append_frame(s, run, &frame);
    unsigned char crc[4];
    for (int i = 0; i < 4; i++) crc[i] = (unsigned char)(frame.payload_crc >> 8 * i);
    run->crc = tb_crc32c(run->crc, crc, sizeof crc);
    count_add(&s->counters.spooled, one);
    if (s->counters.spooled.bytes > s->counters.spooled_peak.bytes)
      s->counters.spooled_peak = s->counters.spooled;
    wake = wake_sender(s, n);
  } else {
    run = run_writing(s);
    count_add(&s->counters.lost, one);
  }
  count_add(&run->all, one);
  run->last_wall_ns = ta_wall_ns();
  count_add(&s->counters.produced, one);
  s->records++;
  pthread_mutex_unlock(&s->lock);
  return wake;
}

bool ta_spool_end(struct ta_spool *s) {
  unsigned char packed[GENEND_BYTES_MAX - TP_HEADER_BYTES];
  Tracecollect__V1__GenerationEnd end = TRACECOLLECT__V1__GENERATION_END__INIT;
  bool wake = false;

  pthread_mutex_lock(&s->lock);
  struct ta_run *run = run_writing(s);
  if (run != NULL && (run = make_room(s, GENEND_BYTES_MAX)) != NULL) {
    end.batches = run->all.batches;
    end.bytes = run->all.bytes;
    end.crc = run->crc;
    end.wall_ns = ta_wall_ns();
    end.mono_ns = ta_mono_ns();
    size_t n = tracecollect__v1__generation_end__pack(&end, packed);
    append_frame(s, run,
                 &(struct tp_frame){ .kind = TP_GENEND,
                                     .gen = run->gen,
                                     .payload = packed,
                                     .len = (uint32_t)n,
                                     .payload_crc = tb_crc32c(0, packed, n) });
    s->records++;
  }
  if ((run = run_writing(s)) != NULL) {
    run->open = false;
    wake = wake_sender(s, 1);
  }
  pthread_mutex_unlock(&s->lock);
  return wake;
}

bool ta_spool_finish(struct ta_spool *s) {
  unsigned char packed[TA_SLOT_BYTES - TP_HEADER_BYTES];
  Tracecollect__V1__Close done = TRACECOLLECT__V1__CLOSE__INIT;
  Tracecollect__V1__Counters counters;

  pthread_mutex_lock(&s->lock);
  ta_counters_message(&s->counters, &counters);
  done.counters = &counters;
  done.reason = (char[]){ "closed" };
  slot_bytes(run_append(s, TA_RUN_CLOSE, 0), TP_CLOSE, packed,
             tracecollect__v1__close__pack(&done, packed));
  s->records++;
  s->finished = true;
  bool wake = wake_sender(s, 1);
  pthread_mutex_unlock(&s->lock);
  return wake;
}

/* Sending. */

/* A LOSS finds its words when it is its turn. It waits while its generation may lose more, and
 * while runs are short: then it is better that it takes in what follows. */
static bool say_loss(struct ta_spool *s, struct ta_run *run) {
  unsigned char packed[TA_SLOT_BYTES - TP_HEADER_BYTES];
  Tracecollect__V1__Loss loss = TRACECOLLECT__V1__LOSS__INIT;

  if (run->open || s->runs_free < RUNS_SPARE / 2) return false;
  loss.first_gen = run->gen;
  loss.last_gen = run->last_gen;
  loss.batches = run->all.batches;
  loss.bytes = run->all.bytes;
  loss.reason = (Tracecollect__V1__LossReason)run->reason;
  loss.first_wall_ns = run->first_wall_ns;
  loss.last_wall_ns = run->last_wall_ns;
  loss.sent_batches = run->sealed.batches;
  loss.sent_bytes = run->sealed.bytes;
  slot_bytes(run, TP_LOSS, packed, tracecollect__v1__loss__pack(&loss, packed));
  return true;
}

/* Gives the frame at the granted place its number and its header as it goes out. */
static void seal(struct ta_spool *s, struct tp_frame *frame) {
  unsigned char head[TP_HEADER_BYTES];
  struct ta_place at = s->place[TA_GRANTED];
  struct ta_run *run = run_at(s, at.run);

  frame->seq = ++s->seq;
  tp_frame_head_summed(frame, head);
  store_head(s, at, head);
  run->sealed_bytes += TP_HEADER_BYTES + frame->len;
  run->sealed_records++;
  if (frame->kind == TP_BATCH) count_add(&run->sealed, (struct ta_count){ 1, frame->len });
}

/* The next frame that may go out; false: there is none. */
static bool next_frame(struct ta_spool *s, bool *out_fresh, struct tp_frame *out) {
  struct ta_place *p = &s->place[TA_GRANTED], *sealed = &s->place[TA_SEALED];
  unsigned char bytes[TP_HEADER_BYTES];
  struct unsealed head;

  settle(s, p);
  settle(s, sealed);
  if (p->run == TA_NONE) return false;
  struct ta_run *run = run_at(s, p->run);
  if (run->kind == TA_RUN_LOSS && run->bytes == 0 && !say_loss(s, run)) return false;
  if (p->at == run->bytes) return false;
  *out_fresh = place_equal(p, sealed);
  copy_head(s, *p, bytes);
  if (!*out_fresh) {
    return tp_frame_open(bytes, NULL, out) == TB_OK;
  }
  memcpy(&head, bytes, sizeof head);
  *out = (struct tp_frame){
    .kind = head.kind, .gen = head.gen, .len = head.len, .payload_crc = head.payload_crc
  };
  return true;
}

size_t ta_spool_grant(struct ta_spool *s, uint64_t room, uint64_t *out_need) {
  struct tp_frame frame;
  size_t total = 0;
  bool fresh;

  *out_need = 0;
  pthread_mutex_lock(&s->lock);
  while (next_frame(s, &fresh, &frame)) {
    size_t bytes = TP_HEADER_BYTES + frame.len;
    if (total > 0 && total + bytes > TA_GRANT_BYTES) break;
    if (bytes > room - total) {
      *out_need = bytes;
      break;
    }
    if (fresh)
      seal(s, &frame);
    else if (frame.kind == TP_BATCH)
      s->counters.resent_batches++;
    step(s, &s->place[TA_GRANTED], bytes);
    if (fresh) s->place[TA_SEALED] = s->place[TA_GRANTED];
    total += bytes;
  }
  pthread_mutex_unlock(&s->lock);
  return total;
}

size_t ta_spool_span(struct ta_spool *s, const unsigned char **out_bytes) {
  struct ta_place *p = &s->place[TA_SENT], *granted = &s->place[TA_GRANTED];
  size_t n = 0;

  pthread_mutex_lock(&s->lock);
  settle(s, p);
  settle(s, granted);
  if (!place_equal(p, granted)) {
    struct ta_run *run = run_at(s, p->run);
    uint64_t left = (p->run == granted->run ? granted->at : run->bytes) - p->at;
    *out_bytes = bytes_at(s, p, &n);
    if (run->kind == TA_RUN_GENERATION)
      for (uint32_t page = p->page; n < left && s->page_next[page] == page + 1; page++)
        n += TA_PAGE_BYTES;
    if (n > left) n = (size_t)left;
    if (n > TA_GRANT_BYTES) n = TA_GRANT_BYTES;
  }
  pthread_mutex_unlock(&s->lock);
  return n;
}

void ta_spool_sent(struct ta_spool *s, size_t n) {
  pthread_mutex_lock(&s->lock);
  step(s, &s->place[TA_SENT], n);
  pthread_mutex_unlock(&s->lock);
}

/* Acks. */

/* The page at the front is behind every place; those that stand at its very end step over. */
static void release_page(struct ta_spool *s, struct ta_run *run, uint32_t page) {
  run->first_page = s->page_next[page];
  for (int p = 0; p < TA_PLACES; p++)
    if (s->place[p].page == page) {
      s->place[p].page = s->page_next[page];
      s->place[p].off = 0;
    }
  page_give(s, page);
}

static void release_runs(struct ta_spool *s) {
  struct ta_place *acked = &s->place[TA_ACKED];

  for (uint32_t at = acked->run; settle_once(s, acked); at = acked->run) {
    for (int p = TA_ACKED + 1; p < TA_PLACES; p++) settle(s, &s->place[p]);
    pages_give_from(s, run_at(s, at)->first_page);
    run_at(s, at)->kind = TA_RUN_FREE;
    s->runs_free++;
  }
}

static void ack_frame(struct ta_spool *s, const struct tp_frame *frame) {
  struct ta_place *p = &s->place[TA_ACKED];
  struct ta_run *run = run_at(s, p->run);
  struct ta_count one = { 1, frame->len };

  s->acked_seq = frame->seq;
  run->acked_records++;
  if (frame->kind == TP_GENEND) s->counters.acked_generations++;
  if (frame->kind == TP_BATCH) {
    count_add(&run->acked, one);
    if (!run->lost) {
      count_add(&s->counters.acked, one);
      count_sub(&s->counters.spooled, one);
    }
  }
  for (size_t n = TP_HEADER_BYTES + frame->len; n > 0;) {
    uint32_t page = p->page;
    size_t here;
    bytes_at(s, p, &here);
    if (page != TA_NONE && page != p->page) release_page(s, run, page);
    if (here > n) here = n;
    step(s, p, here);
    n -= here;
  }
}

/* Nothing may be acked that did not go out whole on this connection or an earlier one. */
static tb_rc ack_up_to(struct ta_spool *s, uint64_t seq, struct tb_diag *diag) {
  struct ta_place *acked = &s->place[TA_ACKED], *sent = &s->place[TA_SENT];
  unsigned char head[TP_HEADER_BYTES];
  struct tp_frame frame;

  while (s->acked_seq < seq) {
    release_runs(s);
    settle(s, sent);
    bool whole = !place_equal(acked, sent);
    if (whole) {
      copy_head(s, *acked, head);
      TB_TRY(tp_frame_open(head, diag, &frame));
      whole = acked->run != sent->run || acked->at + TP_HEADER_BYTES + frame.len <= sent->at;
    }
    if (!whole)
      return tb_fail(diag, TB_PROTOCOL, "collector acks record %" PRIu64 ", sent are %" PRIu64, seq,
                     s->acked_seq);
    ack_frame(s, &frame);
  }
  release_runs(s);
  return TB_OK;
}

tb_rc ta_spool_ack(struct ta_spool *s, uint64_t seq, struct tb_diag *diag) {
  pthread_mutex_lock(&s->lock);
  tb_rc rc = ack_up_to(s, seq, diag);
  pthread_cond_broadcast(&s->moved);
  pthread_mutex_unlock(&s->lock);
  return rc;
}

tb_rc ta_spool_resume(struct ta_spool *s, uint64_t durable_seq, struct tb_diag *diag) {
  tb_rc rc;

  pthread_mutex_lock(&s->lock);
  if (durable_seq < s->acked_seq) {
    rc = tb_fail(diag, TB_PROTOCOL,
                 "collector has records up to %" PRIu64 " of this stream, but acked %" PRIu64,
                 durable_seq, s->acked_seq);
  } else {
    s->place[TA_SENT] = s->place[TA_GRANTED] = s->place[TA_SEALED];
    rc = ack_up_to(s, durable_seq, diag);
    s->place[TA_SENT] = s->place[TA_GRANTED] = s->place[TA_ACKED];
    pthread_cond_broadcast(&s->moved);
  }
  pthread_mutex_unlock(&s->lock);
  return rc;
}

/* Sleep, memory, waiting. */

bool ta_spool_sleep(struct ta_spool *s) {
  struct tp_frame frame;
  bool fresh;

  pthread_mutex_lock(&s->lock);
  bool idle = !next_frame(s, &fresh, &frame);
  s->wake_bytes = idle ? 1 : 0;
  pthread_mutex_unlock(&s->lock);
  return idle;
}

bool ta_spool_rest(struct ta_spool *s, uint64_t bytes) {
  pthread_mutex_lock(&s->lock);
  bool rest = s->pages_free > s->pages_max / 2;
  s->wake_bytes = rest ? bytes : 0;
  pthread_mutex_unlock(&s->lock);
  return rest;
}

static uint32_t highest_page(const struct ta_spool *s) {
  for (uint32_t word = s->pages_max / 64; word-- > 0;)
    if (s->page_used[word] != 0)
      return word * 64 + 63 - (uint32_t)__builtin_clzll(s->page_used[word]);
  return 0;
}

/* Called about once a second: what lay above the last interval's peak is not wanted soon. */
void ta_spool_trim(struct ta_spool *s) {
  pthread_mutex_lock(&s->lock);
  uint32_t keep = s->page_peak + TRIM_SLACK_PAGES;

  if (s->page_top < s->page_peak) s->page_top = s->page_peak;
  if (keep < s->page_top) {
    madvise(page_bytes(s, keep), (size_t)(s->page_top - keep) * TA_PAGE_BYTES, MADV_DONTNEED);
    s->page_top = keep;
  }
  s->page_peak = highest_page(s) + 1;
  pthread_mutex_unlock(&s->lock);
}

void ta_spool_over(struct ta_spool *s) {
  pthread_mutex_lock(&s->lock);
  s->over = true;
  pthread_cond_broadcast(&s->moved);
  pthread_mutex_unlock(&s->lock);
}

void ta_spool_counters(struct ta_spool *s, struct ta_counters *out) {
  pthread_mutex_lock(&s->lock);
  *out = s->counters;
  pthread_mutex_unlock(&s->lock);
}

void ta_counters_message(const struct ta_counters *c, struct Tracecollect__V1__Counters *out) {
  tracecollect__v1__counters__init(out);
  out->produced_batches = c->produced.batches;
  out->produced_bytes = c->produced.bytes;
  out->lost_batches = c->lost.batches;
  out->lost_bytes = c->lost.bytes;
  out->lost_generations = c->lost_generations;
  out->spool_bytes = c->spooled.bytes;
  out->spool_batches = c->spooled.batches;
}

/* How many of the records put, in their order, are settled: acked, or counted as lost. */
static uint64_t records_settled(struct ta_spool *s) {
  struct ta_place *acked = &s->place[TA_ACKED];

  release_runs(s);
  if (acked->run == TA_NONE) return s->records;
  const struct ta_run *run = run_at(s, acked->run);
  if (acked->run == s->run_last && acked->at == run->bytes && (run->bytes > 0 || run->open))
    return s->records;
  return run->order + run->acked_records;
}

bool ta_spool_done(struct ta_spool *s) {
  pthread_mutex_lock(&s->lock);
  bool done = s->finished && records_settled(s) == s->records;
  pthread_mutex_unlock(&s->lock);
  return done;
}

tb_rc ta_spool_wait(struct ta_spool *s, uint64_t deadline_ns) {
  struct timespec until = ta_timespec(deadline_ns);
  tb_rc rc = TB_OK;

  pthread_mutex_lock(&s->lock);
  for (uint64_t target = s->records; records_settled(s) < target;) {
    if (s->over) {
      rc = TB_END;
      break;
    }
    if (deadline_ns == UINT64_MAX)
      pthread_cond_wait(&s->moved, &s->lock);
    else if (pthread_cond_timedwait(&s->moved, &s->lock, &until) != 0 &&
             records_settled(s) < target) {
      rc = TB_AGAIN;
      break;
    }
  }
  pthread_mutex_unlock(&s->lock);
  return rc;
}

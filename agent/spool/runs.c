/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/spool/runs.h"

#include <string.h>
#include <sys/mman.h>

#include "agent/host/clock.h"
#include "base/crc32c.h"

enum { RUNS_MIN = 256 };

/* Header of a frame that has no number yet, stored in the place of the final header. */
struct unsealed {
  uint64_t gen;
  uint32_t kind, len, payload_crc;
  uint32_t unused[3];
};
_Static_assert(sizeof(struct unsealed) == TP_HEADER_BYTES, "takes the place of the header");

tb_rc ta_runs_init(struct ta_runs *r, uint64_t bytes) {
  *r = (struct ta_runs){ .last = TA_NONE };
  for (int p = 0; p < TA_PLACES; p++) r->place[p].run = TA_NONE;
  TB_TRY(ta_pages_init(&r->pages, bytes));

  uint32_t max = r->pages.max / 4 < RUNS_MIN ? RUNS_MIN : r->pages.max / 4;
  void *map = mmap(NULL, max * sizeof *r->run, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) {
    ta_pages_fini(&r->pages);
    return TB_NOMEM;
  }
  r->run = map;
  r->mapped_bytes = max * sizeof *r->run;
  r->max = r->free = max;
  return TB_OK;
}

void ta_runs_fini(struct ta_runs *r) {
  if (r->run != NULL) munmap(r->run, r->mapped_bytes);
  ta_pages_fini(&r->pages);
  *r = (struct ta_runs){ 0 };
}

/* The list. */

static uint32_t take_run(struct ta_runs *r, enum ta_run_kind kind, uint64_t gen, uint64_t order) {
  uint32_t at = r->hint;

  while (r->run[at].kind != TA_RUN_FREE) at = (at + 1) % r->max;
  r->hint = (at + 1) % r->max;
  r->free--;
  r->run[at] = (struct ta_run){ .kind = kind,
                                .next = TA_NONE,
                                .first_page = TA_NONE,
                                .last_page = TA_NONE,
                                .gen = gen,
                                .last_gen = gen,
                                .order = order,
                                .id = ++r->last_id,
                                .covers = r->last_id,
                                .kept_covers = r->last_id,
                                .first_wall_ns = ta_wall_ns() };
  r->run[at].last_wall_ns = r->run[at].first_wall_ns;
  ta_run_touch(r, &r->run[at]);
  return at;
}

struct ta_run *ta_runs_append(struct ta_runs *r, enum ta_run_kind kind, uint64_t gen,
                              uint64_t order) {
  uint32_t at = take_run(r, kind, gen, order);

  if (r->last != TA_NONE) r->run[r->last].next = at;
  r->last = at;
  for (int p = 0; p < TA_KEPT; p++)
    if (r->place[p].run == TA_NONE) r->place[p] = (struct ta_place){ .run = at, .page = TA_NONE };
  return &r->run[at];
}

struct ta_run *ta_runs_prepend(struct ta_runs *r, enum ta_run_kind kind, uint64_t gen,
                               uint64_t order) {
  uint32_t at = take_run(r, kind, gen, order);

  r->run[at].next = r->place[TA_ACKED].run;
  if (r->last == TA_NONE) r->last = at;
  r->place[TA_ACKED] = (struct ta_place){ .run = at, .page = TA_NONE };
  return &r->run[at];
}

void ta_runs_release(struct ta_runs *r, uint32_t run) {
  ta_pages_release_chain(&r->pages, r->run[run].first_page);
  ta_run_untouch(r, &r->run[run]);
  if (r->place[TA_KEPT].run == run) r->place[TA_KEPT].run = TA_NONE;
  r->run[run].kind = TA_RUN_FREE;
  r->free++;
}

struct ta_run *ta_runs_writing(struct ta_runs *r) {
  if (r->last == TA_NONE) return NULL;
  struct ta_run *run = &r->run[r->last];
  return run->open ? run : NULL;
}

/* Frames in a run. */

void ta_run_unsealed_head(unsigned char out[TP_HEADER_BYTES], const struct tp_frame *frame) {
  struct unsealed head = {
    .gen = frame->gen, .kind = frame->kind, .len = frame->len, .payload_crc = frame->payload_crc
  };

  memcpy(out, &head, sizeof head);
}

void ta_run_read_unsealed(const unsigned char bytes[TP_HEADER_BYTES], struct tp_frame *out) {
  struct unsealed head;

  memcpy(&head, bytes, sizeof head);
  *out = (struct tp_frame){
    .kind = head.kind, .gen = head.gen, .len = head.len, .payload_crc = head.payload_crc
  };
}

void ta_run_slot(struct ta_run *run, enum tp_kind kind, const void *payload, size_t n) {
  struct tp_frame frame = { .kind = kind,
                            .len = (uint32_t)n,
                            .payload_crc = tb_crc32c(0, payload, n) };

  ta_run_unsealed_head(run->slot, &frame);
  memcpy(run->slot + TP_HEADER_BYTES, payload, n);
  run->bytes = TP_HEADER_BYTES + n;
}

uint64_t ta_run_pages_wanted(const struct ta_run *run, size_t bytes) {
  uint64_t have = (run->bytes + TA_PAGE_BYTES - 1) / TA_PAGE_BYTES;

  return (run->bytes + bytes + TA_PAGE_BYTES - 1) / TA_PAGE_BYTES - have;
}

uint32_t ta_runs_extend(struct ta_runs *r, struct ta_run *run, size_t bytes) {
  uint32_t first = run->bytes % TA_PAGE_BYTES == 0 ? TA_NONE : run->last_page;

  for (uint64_t more = ta_run_pages_wanted(run, bytes); more > 0; more--) {
    uint32_t page = ta_pages_acquire(&r->pages);
    if (run->last_page == TA_NONE)
      run->first_page = page;
    else
      r->pages.next[run->last_page] = page;
    run->last_page = page;
    if (first == TA_NONE) first = page;
  }
  return first;
}

/* Places. */

/* Returns whether no bytes will be added to the run: neither a batch nor the record of a LOSS. */
static bool is_complete(const struct ta_run *run) {
  return !run->open && (run->kind != TA_RUN_LOSS || run->bytes > 0);
}

bool ta_runs_settle_once(struct ta_runs *r, struct ta_place *p) {
  if (p->run == TA_NONE) return false;
  struct ta_run *run = &r->run[p->run];
  if (!is_complete(run) || p->at < run->bytes || run->next == TA_NONE) return false;
  *p = (struct ta_place){ .run = run->next, .page = TA_NONE };
  return true;
}

void ta_runs_settle(struct ta_runs *r, struct ta_place *p) {
  while (ta_runs_settle_once(r, p)) continue;
}

unsigned char *ta_runs_bytes(struct ta_runs *r, struct ta_place *p, size_t *out_n) {
  struct ta_run *run = &r->run[p->run];

  if (run->kind != TA_RUN_GENERATION) {
    *out_n = (size_t)(run->bytes - p->at);
    return run->slot + p->at;
  }
  if (p->page == TA_NONE) {
    p->page = run->first_page;
  } else if (p->off == TA_PAGE_BYTES) {
    p->page = r->pages.next[p->page];
    p->off = 0;
  }
  uint64_t left = run->bytes - p->at, in_page = TA_PAGE_BYTES - p->off;
  *out_n = (size_t)(left < in_page ? left : in_page);
  return ta_page(&r->pages, p->page) + p->off;
}

void ta_runs_step(struct ta_runs *r, struct ta_place *p, size_t n) {
  while (n > 0) {
    size_t here;
    ta_runs_bytes(r, p, &here);
    if (here > n) here = n;
    p->off += (uint32_t)here;
    p->at += here;
    n -= here;
  }
}

void ta_runs_load_head(struct ta_runs *r, struct ta_place p, unsigned char out[TP_HEADER_BYTES]) {
  for (size_t n = TP_HEADER_BYTES; n > 0;) {
    size_t here;
    const unsigned char *bytes = ta_runs_bytes(r, &p, &here);
    if (here > n) here = n;
    memcpy(out, bytes, here);
    out += here;
    n -= here;
    ta_runs_step(r, &p, here);
  }
}

void ta_runs_store_head(struct ta_runs *r, struct ta_place p,
                        const unsigned char head[TP_HEADER_BYTES]) {
  for (size_t n = TP_HEADER_BYTES; n > 0;) {
    size_t here;
    unsigned char *bytes = ta_runs_bytes(r, &p, &here);
    if (here > n) here = n;
    memcpy(bytes, head, here);
    head += here;
    n -= here;
    ta_runs_step(r, &p, here);
  }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What was written and is not acked yet, in bounded memory.
 *
 * One writer puts records in, one sender takes them out as ready frames, keeps them until they are
 * acked and can begin again at the first unacked one. Memory is a pool of pages; each generation is
 * a chain of them holding its frames back to back, so that any generation can be dropped at once. A
 * generation may be any multiple of the pool: it flows through.
 *
 * When the pool is full, the oldest generation of which nothing was sent is dropped, else the one
 * being written is abandoned: its unsent rest goes, and so does what is still to come of it. Each
 * drop leaves a LOSS record in the place of what it dropped. HEADER, LOSS and CLOSE live in their
 * run's own slot, so they never want for memory. Sequence numbers are given when a record is first
 * granted.
 *
 *   acked <= sent <= granted <= sealed <= written          (places in the order of records)
 *
 * Memory    one mapping made at open, used from its low end; the kernel gets back what is not in
 *           use.
 * Threads   the writer's calls (header, put, end, finish) from one thread at a time, the sender's
 *           (grant ... trim) from one; the lock is never held while payload is copied.
 * Errors    TB_NOMEM from init. TB_PROTOCOL from ack and resume: the collector claims to have what
 *           was never sent, or no longer has what it acked. What cannot be kept is no error but a
 *           loss.
 */
#ifndef TA_SPOOL_H
#define TA_SPOOL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/result.h"
#include "proto/frame.h"

enum {
  TA_PAGE_BYTES = 4096,
  TA_SLOT_BYTES = 160,        /* the largest LOSS or CLOSE with its frame header */
  TA_GRANT_BYTES = 256 << 10, /* sealed at one time under the lock, or one frame that is larger */
  TA_SPOOL_BYTES_MIN = 1 << 20,
};

enum ta_run_kind { TA_RUN_FREE, TA_RUN_HEADER, TA_RUN_GENERATION, TA_RUN_LOSS, TA_RUN_CLOSE };

struct ta_count {
  uint64_t batches, bytes; /* BATCH records and their payloads */
};

/* Records that stand or fall together: a generation, or one record in its slot. */
struct ta_run {
  enum ta_run_kind kind;
  bool open;     /* more may come */
  bool lost;     /* an abandoned generation: what was sent of it is not counted as kept */
  uint32_t next; /* run, or TA_NONE */
  uint32_t first_page, last_page;
  uint64_t gen, last_gen;
  uint64_t bytes, sealed_bytes; /* of frames */
  uint64_t order;               /* place of its first record among all records put */
  uint64_t acked_records, sealed_records;
  struct ta_count all, sealed, acked;
  uint32_t crc;    /* over the batches' checksums */
  uint32_t reason; /* of the loss */
  uint64_t first_wall_ns, last_wall_ns;
  unsigned char slot[TA_SLOT_BYTES];
};

/* A place in the order of frames. off may equal TA_PAGE_BYTES: step to the next page before use. */
struct ta_place {
  uint32_t run, page, off;
  uint64_t at; /* bytes into the run */
};

enum { TA_ACKED, TA_SENT, TA_GRANTED, TA_SEALED, TA_PLACES };

struct ta_counters {
  struct ta_count produced, acked, lost, spooled, spooled_peak;
  uint64_t acked_generations, lost_generations, resent_batches;
};

struct ta_spool {
  pthread_mutex_t lock;
  pthread_cond_t moved; /* acks came, or waiting is over */
  unsigned char *pages;
  uint32_t *page_next;
  uint64_t *page_used; /* bit set */
  struct ta_run *runs;
  size_t mapped_bytes;
  uint32_t pages_max, pages_free, page_hint;
  uint32_t page_top,
      page_peak; /* pages below top may be backed by memory; peak: of this interval */
  uint32_t runs_max, runs_free, run_hint;
  uint32_t run_last; /* the newest */
  struct ta_place place[TA_PLACES];
  uint64_t records; /* put so far, lost ones included */
  uint64_t seq, acked_seq;
  bool finished;                 /* CLOSE is in */
  bool (*impatient)(void *self); /* if set, the writer waits for room until it says so
                                    (asked every 100 ms), instead of dropping (tracectl send) */
  void *impatient_self;
  atomic_bool over;    /* nothing will be sent any more: nobody waits */
  uint64_t wake_bytes; /* the sender sleeps until so many are put; 0: it is awake */
  atomic_bool capped;  /* the rate cap holds the sender back: the reason of a loss */
  struct ta_counters counters;
};

TB_MUST tb_rc ta_spool_init(struct ta_spool *s, uint64_t bytes);
void ta_spool_fini(struct ta_spool *s); /* accepts zeroed memory */

/* Writer. The answer is true when the sender sleeps and must be woken. */
bool ta_spool_header(struct ta_spool *s, const void *bytes, size_t n);
bool ta_spool_put(struct ta_spool *s, uint64_t gen, const void *batch, size_t n);
bool ta_spool_end(struct ta_spool *s); /* the generation being written is complete */
bool ta_spool_finish(struct ta_spool *s);

/* Sender. grant() lets whole frames of at most room bytes through to span() and answers how many
 * bytes; 0: nothing to send (then *out_need is 0) or the next frame needs more room (*out_need). */
size_t ta_spool_grant(struct ta_spool *s, uint64_t room, uint64_t *out_need);
/* The next granted bytes not passed to sent() yet; they stay put until acked. */
size_t ta_spool_span(struct ta_spool *s, const unsigned char **out_bytes);
void ta_spool_sent(struct ta_spool *s, size_t n);
TB_MUST tb_rc ta_spool_ack(struct ta_spool *s, uint64_t seq, struct tb_diag *diag);
/* On a new connection: frees up to what the collector has and begins again behind it. */
TB_MUST tb_rc ta_spool_resume(struct ta_spool *s, uint64_t durable_seq, struct tb_diag *diag);
/* Says that the sender goes to sleep; false if there is something to send after all. */
bool ta_spool_sleep(struct ta_spool *s);
/* The same for a rest: until so many bytes more are put. False if half of the pool is taken: memory
 * that acks would free must not wait. */
bool ta_spool_rest(struct ta_spool *s, uint64_t bytes);
void ta_spool_trim(struct ta_spool *s);
void ta_spool_over(struct ta_spool *s);

/* Anyone. */
void ta_spool_counters(struct ta_spool *s, struct ta_counters *out);
struct Tracecollect__V1__Counters;
void ta_counters_message(const struct ta_counters *c, struct Tracecollect__V1__Counters *out);
bool ta_spool_done(struct ta_spool *s); /* finished and all acked */
/* Waits until every record put before the call is acked or told as lost. deadline_ns on the
 * monotonic clock; UINT64_MAX: for ever. TB_AGAIN: the deadline passed; TB_END: over. */
TB_MUST tb_rc ta_spool_wait(struct ta_spool *s, uint64_t deadline_ns);

#endif

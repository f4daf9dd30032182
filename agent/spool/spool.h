/* SPDX-License-Identifier: Apache-2.0 */
/* Unacked records in bounded memory.
 *
 * One writer puts records in; one sender takes them out as ready frames, keeps them until they are acked and can
 * start again at the first unacked one. agent/spool/runs.h describes the layout in memory, agent/spool/losses.h what is
 * dropped when the spool is full: whole generations, each replaced by a LOSS record. A generation may be larger than the
 * pool and flows through. Sequence numbers are assigned when a record is first granted.
 *
 *   acked <= sent <= granted <= sealed <= written          (places in the order of records)
 *
 * Memory    two mappings made at open, one used from its low end; unused memory is returned to the kernel.
 * Threads   the writer's calls (header, put, end, finish) from one thread at a time, the sender's
 *           (grant ... trim) from one; the lock is never held while payload is copied.
 * Errors    TB_NOMEM from init. TB_PROTOCOL from ack and resume: the collector claims records that were never sent.
 *           TB_NOTFOUND from resume: it no longer has records that it acked. TB_REFUSED from resume: it has more of an
 *           inherited stream than this process knows. Records without room are not an error but a loss.
 */
#ifndef TA_SPOOL_SPOOL_H
#define TA_SPOOL_SPOOL_H

#include <pthread.h>
#include <stdatomic.h>

#include "agent/spool/recorder.h"

enum {
  TA_GRANT_BYTES = 256 << 10, /* sealed at one time under the lock, or one frame that is larger */
  TA_SPOOL_BYTES_MIN = 1 << 20,
};

struct ta_counters {
  struct ta_count produced, acked, lost, spooled, spooled_peak;
  uint64_t acked_generations, lost_generations, resent_batches;
  /* The part of produced that the numbered records, up to reported_seq, report: each batch once, lost or not. */
  struct ta_count reported;
  uint64_t reported_seq;
  uint32_t last_loss; /* LossReason of the newest of lost_generations */
};

/* Generations, and when they were written. */
struct ta_span {
  uint64_t first_gen, last_gen, first_wall_ns, last_wall_ns; /* first_gen 0: none */
};

/* Outlook that records will be acked. */
enum ta_outlook {
  TA_OUTLOOK_TRYING,   /* the collector has not answered yet */
  TA_OUTLOOK_HEARD,    /* the collector has sent something */
  TA_OUTLOOK_WELCOMED, /* a connection was established once; never changes again */
  TA_OUTLOOK_NONE,     /* the last try failed, and no connection was ever established */
};

struct ta_spool {
  pthread_mutex_t lock;
  pthread_cond_t moved; /* acks came, or waiting is over */
  struct ta_runs runs;
  uint64_t records; /* put so far, lost ones included */
  uint64_t seq, acked_seq;
  struct ta_span gone;                   /* generations freed since the spool was made */
  struct ta_count settled, settled_lost; /* acked part of counters.produced, and of counters.lost */
  bool keeping;          /* there is a spool on disk; only records on it are sent (agent/persist) */
  uint64_t kept_records; /* value of records when the disk last had all of them */
  bool inherited;        /* the records are an earlier process's (agent/api/recovery.h) */
  uint64_t inherited_seq; /* the last number that the earlier process may have sent */
  bool agreed;            /* on the first resume the collector had no later number than that */
  bool superseded;        /* it had: that process went on without its disk, or a file is damaged */
  struct ta_recorder recorder;
  struct { /* HEADER's payload */
    unsigned char bytes[TA_SLOT_BYTES - TP_HEADER_BYTES];
    size_t n;
  } header;
  bool filling;  /* the writer copies a frame, without the lock */
  bool finished; /* the CLOSE record was put */
  /* If set (tracectl send), the writer waits for room until this returns true; called every 100 ms. */
  bool (*impatient)(void *self);
  void *impatient_self;
  enum ta_outlook outlook;
  uint64_t tried_ns;   /* when the first try began; 0: none did */
  atomic_bool over;    /* nothing will be sent any more, and no call waits */
  uint64_t wake_bytes; /* the sender sleeps until this many bytes are put; 0: it is awake */
  atomic_bool capped;  /* the rate cap delays the sender; becomes the reason of a loss */
  struct ta_counters counters;
};

TB_MUST tb_rc ta_spool_init(struct ta_spool *s, uint64_t bytes);
void ta_spool_fini(struct ta_spool *s); /* accepts zeroed memory */

/* Writer. Return true if the sender sleeps and must be woken. */
bool ta_spool_header(struct ta_spool *s, const void *bytes, size_t n);
bool ta_spool_put(struct ta_spool *s, uint64_t gen, const void *batch, size_t n);
bool ta_spool_end(struct ta_spool *s); /* the generation being written is complete */
/* Drops gen, the generation being written or the next, until its end, because the writer lost a part of it. */
bool ta_spool_lose(struct ta_spool *s, uint64_t gen, uint32_t reason); /* LossReason */
bool ta_spool_finish(struct ta_spool *s);
/* Sets the reason that CLOSE records of this process contain from now on. NULL: finished by their writers. */
void ta_spool_closes_by(const char *reason);

/* Sender. grant() makes whole frames of at most room bytes available to span() and returns their bytes;
 * 0: nothing to send (then *out_need is 0) or the next frame needs more room (*out_need). */
size_t ta_spool_grant(struct ta_spool *s, uint64_t room, uint64_t *out_need);
/* Returns the next granted bytes not passed to sent() yet; they stay in place until acked. */
size_t ta_spool_span(struct ta_spool *s, const unsigned char **out_bytes);
void ta_spool_sent(struct ta_spool *s, size_t n);
TB_MUST tb_rc ta_spool_ack(struct ta_spool *s, uint64_t seq, struct tb_diag *diag);
/* On a new connection: frees the records that the collector has and continues after them. */
TB_MUST tb_rc ta_spool_resume(struct ta_spool *s, uint64_t durable_seq, struct tb_diag *diag);
/* Restarts the stream after resume() returned TB_NOTFOUND, before a connection under a new stream id. Numbers begin at 1
 * again, with the HEADER and one LOSS record for all acked records, which count as lost from now on. The rest of a
 * generation that was partly acked is dropped, too; the next one is sent whole. TB_AGAIN: the writer is copying,
 * nothing was changed. */
TB_MUST tb_rc ta_spool_restart(struct ta_spool *s);
/* Notes that the sender goes to sleep; returns false if there is something to send after all. */
bool ta_spool_sleep(struct ta_spool *s);
/* As sleep(), until `bytes` more are put or a generation ends. Returns false if one has ended already, or if half of the
 * pool is in use: then acks should free memory soon. */
bool ta_spool_rest(struct ta_spool *s, uint64_t bytes);
void ta_spool_trim(struct ta_spool *s);
void ta_spool_over(struct ta_spool *s);
void ta_spool_set_outlook(struct ta_spool *s, enum ta_outlook outlook);

/* Any thread. */
void ta_spool_counters(struct ta_spool *s, struct ta_counters *out);
struct Tracecollect__V1__Counters;
void ta_counters_message(const struct ta_counters *c, struct Tracecollect__V1__Counters *out);
bool ta_spool_done(struct ta_spool *s); /* finished and all acked */
/* Waits until every record put before the call is acked or reported as lost. deadline_ns on the
 * monotonic clock; UINT64_MAX: none. TB_AGAIN: the deadline passed; TB_END: over. *out_kept: all of them are
 * on disk, or were acked. */
TB_MUST tb_rc ta_spool_wait(struct ta_spool *s, uint64_t deadline_ns, bool *out_kept);
/* As wait(), but returns TB_AGAIN as soon as acks are unlikely: the last try failed and none ever succeeded, or the
 * collector has not answered patience_ns after the first try began. */
TB_MUST tb_rc ta_spool_wait_by_outlook(struct ta_spool *s, uint64_t deadline_ns,
                                       uint64_t patience_ns, bool *out_kept);

#endif

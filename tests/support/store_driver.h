/* SPDX-License-Identifier: Apache-2.0 */
/* A store in a throw-away folder, driven as the loops would drive it: one loop, one sender. Replies are collected under
 * a lock; waits poll with a deadline. */
#ifndef TT_STORE_DRIVER_H
#define TT_STORE_DRIVER_H

#include <pthread.h>

#include "collector/store/store.h"

enum { TT_REPLIES_MAX = 1 << 16 };

struct tt_store {
  char dir[64]; /* the state folder */
  struct tc_config config;
  struct tc_store *store;
  pthread_mutex_t lock;
  struct tc_reply *replies[TT_REPLIES_MAX];
  unsigned nreplies;
  unsigned sender;     /* submits: 0, the loop; 1, the query room */
  bool refuse_replies; /* as a loop with a full queue does */
  void (*elsewhere)(void *self, struct tc_reply *reply); /* takes replies to other loops than 0 */
  void *elsewhere_self;
  char notes[4096];
};

/* Has a log line contained this text? May be called while the threads run. */
bool tt_noted(struct tt_store *t, const char *text);

void tt_store_make(struct tt_store *t); /* folder and configuration, not yet open */
tb_rc tt_store_start(struct tt_store *t);
void tt_store_stop(struct tt_store *t);                               /* forgets replies too */
void tt_store_stop_by(struct tt_store *t, uint64_t deadline_mono_ns); /* as tc_store_close_by() */
void tt_store_remove(struct tt_store *t);                             /* stop, and rm -r */

/* Waits for a reply, the n-th (from 0) of that kind, as long as replies of any kind arrive. Returns NULL if none
 * came. */
struct tc_reply *tt_wait(struct tt_store *t, enum tc_reply_kind kind, unsigned n);
unsigned tt_count(struct tt_store *t, enum tc_reply_kind kind);
bool tt_wait_acked(struct tt_store *t, uint32_t stream, uint64_t seq);

void tt_submit(struct tt_store *t, struct tc_submit *msg);
void tt_attach(struct tt_store *t, uint64_t conn, unsigned id, const char *identity);
uint32_t tt_attached(struct tt_store *t, uint64_t conn, uint64_t *out_seq); /* waits; 0: refused */
void tt_detach(struct tt_store *t, uint64_t conn);
/* Waits until the sealer has published what was submitted before; aborts if it does not. Use TT_WAIT_UNTIL() for later
 * effects: the log is trimmed, verdicts are written and retention deletes after a barrier has passed. */
void tt_barrier(struct tt_store *t);

/* Writes a stream as an agent does: keeps seq and the generation's sums. */
struct tt_writer {
  struct tt_store *t;
  uint64_t conn, seq, gen;
  uint32_t stream;
  uint64_t batches, bytes;
  uint32_t crc;
};
void tt_record(struct tt_writer *w, unsigned kind, uint64_t gen, const void *payload, size_t len);
void tt_header(struct tt_writer *w); /* go 1.26 */
void tt_batch(struct tt_writer *w, uint64_t gen, const void *payload, size_t len);
void tt_end(struct tt_writer *w, uint64_t gen);
/* Reports the open generation as lost with all its batches, sent or not. */
void tt_loss(struct tt_writer *w, uint64_t first_gen, uint64_t last_gen, uint64_t batches,
             uint64_t bytes);
void tt_close(struct tt_writer *w); /* without the counters of what was produced */
void tt_close_with(struct tt_writer *w, uint64_t produced_batches, uint64_t produced_bytes);
/* Sends a heartbeat: the batches produced, and how many of them the records up to reported_seq report; 1000 bytes
 * each. */
/* Sends a verdict as the analysis does: 10 events, no reason. code: enum VerdictCode of
 * meta.proto. */
void tt_verdict(struct tt_writer *w, uint64_t gen, uint32_t code);
void tt_heartbeat(struct tt_writer *w, uint64_t produced, uint64_t reported_seq, uint64_t reported);
/* Writes a generation of n batches of len bytes each; stream, gen and position alone determine the
 * bytes. */
void tt_generation(struct tt_writer *w, uint64_t gen, unsigned n, size_t len);
void tt_fill(unsigned char *out, size_t len, uint64_t gen, unsigned position);

/* Files below the state folder. */
char *tt_read_file(struct tt_store *t, const char *path, size_t *out_len); /* free(); NULL: none */
unsigned tt_count_files(struct tt_store *t, const char *folder, const char *ending); /* any depth */
void tt_flip(struct tt_store *t, const char *path, uint64_t offset);

#endif

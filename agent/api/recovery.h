/* SPDX-License-Identifier: Apache-2.0 */
/* Streams that earlier processes left in the spool directory: taken over stream by stream, oldest first, and sent.
 *
 * A stream is taken if no process holds its lock and it belongs to the same service. It is sent as itself, with its own
 * id, names, numbers and bytes, from the first record that the collector does not have; then its files go. If it was
 * finished its CLOSE comes last, else the collector finds that it ended unclean. Older streams that do not
 * fit into half of the directory's bytes go unsent. A stream that the collector refuses stays, for a process with
 * another certificate.
 *
 * Memory    while a stream is sent, as much as its spool held of it.
 * Threads   one of its own, from start() until all is sent; the other calls from any.
 */
#ifndef TA_API_RECOVERY_H
#define TA_API_RECOVERY_H

#include "agent/net/client.h"
#include "agent/persist/directory.h"

struct ta_recovery {
  int root; /* lent */
  uint64_t bytes_max;
  struct ta_client_config client_config; /* of the process that is; names are the stream's own */
  struct ta_spool_dir dir;
  struct ta_spool_dir_state state;
  struct ta_spool spool;
  struct ta_client client;
  struct tb_keeper keeper; /* of checks outside client's life */

  pthread_mutex_t lock; /* of the rest, and of client's life */
  bool sending, stop;
  uint64_t left, sent; /* streams; left is 1 until the folder was looked through */
};

void ta_recovery_init(struct ta_recovery *h, int root, uint64_t bytes_max,
                      const struct ta_client_config *config);
void ta_recovery_fini(struct ta_recovery *h); /* accepts zeroed memory; run() has returned */
/* A spool of what a folder that was taken holds, for ta_spool_fini(). TB_CORRUPT, TB_NOMEM: not of all, or of
 * nothing (then it is zeroed). TB_IO: the same, and another time all may be read. */
TB_MUST tb_rc ta_recovery_load(struct ta_spool_dir *dir, const struct ta_spool_dir_state *state,
                               struct ta_spool *out);
/* Before any of it goes out: from here on all of its records may have, under the numbers that they have here and have
 * again for the next who takes over. */
TB_MUST tb_rc ta_recovery_announce(struct ta_spool_dir *dir, struct ta_spool_dir_state *state,
                                   const struct ta_spool *loaded);
/* The thread's body. */
void ta_recovery_run(struct ta_recovery *h);
void ta_recovery_wake(struct ta_recovery *h);
void ta_recovery_stop(struct ta_recovery *h);
void ta_recovery_reported(struct ta_recovery *h, uint64_t *out_left, uint64_t *out_sent);
void ta_recovery_forked(struct ta_recovery *h);

#endif

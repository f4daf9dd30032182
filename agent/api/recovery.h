/* SPDX-License-Identifier: Apache-2.0 */
/* Sends the streams that earlier processes left in the spool directory, one by one, oldest first.
 *
 * A stream is taken over if no process holds its lock and it belongs to the same service. It is sent under its own id,
 * names and numbers, from the first record that the collector does not have; then its files are deleted. If it was
 * finished, a CLOSE record follows; otherwise the collector finds that it ended unclean. Older streams that do not fit
 * into half of the directory's bytes are deleted unsent. A stream that the collector refuses stays, for a process with
 * another certificate.
 *
 * Memory    while a stream is sent, as much as its former spool used for it.
 * Threads   one of its own, from start() until all is sent; the other calls from any.
 */
#ifndef TA_API_RECOVERY_H
#define TA_API_RECOVERY_H

#include "agent/net/client.h"
#include "agent/persist/directory.h"

struct ta_recovery {
  int root; /* borrowed */
  uint64_t bytes_max;
  struct ta_client_config
      client_config; /* this process's; service and instance are taken from each stream */
  struct ta_spool_dir dir;
  struct ta_spool_dir_state state;
  struct ta_spool spool;
  struct ta_client client;
  struct tb_keeper keeper; /* for checks while there is no client */

  pthread_mutex_t lock; /* protects the fields below, and client's init and fini */
  bool sending, stop;
  uint64_t left, sent; /* streams; left is 1 until the folder was searched */
};

void ta_recovery_init(struct ta_recovery *h, int root, uint64_t bytes_max,
                      const struct ta_client_config *config);
void ta_recovery_fini(struct ta_recovery *h); /* accepts zeroed memory; run() has returned */
/* Reads a locked folder into a spool; free it with ta_spool_fini(). TB_CORRUPT, TB_NOMEM: the spool holds only a part,
 * or is zeroed. TB_IO: likewise, but a later try may read all. */
TB_MUST tb_rc ta_recovery_load(struct ta_spool_dir *dir, const struct ta_spool_dir_state *state,
                               struct ta_spool *out);
/* Call before sending any record: notes in the folder that all its records may have been sent, so that the next process
 * that takes over sends them under the same numbers. */
TB_MUST tb_rc ta_recovery_announce(struct ta_spool_dir *dir, struct ta_spool_dir_state *state,
                                   const struct ta_spool *loaded);
void ta_recovery_run(struct ta_recovery *h); /* the thread's body */
void ta_recovery_wake(struct ta_recovery *h);
void ta_recovery_stop(struct ta_recovery *h);
void ta_recovery_reported(struct ta_recovery *h, uint64_t *out_left, uint64_t *out_sent);
void ta_recovery_forked(struct ta_recovery *h);

#endif

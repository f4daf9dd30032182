/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of other threads that wait until the catalog has what the open runs have by now. */
#ifndef TC_SEALER_READERS_H
#define TC_SEALER_READERS_H

#include <pthread.h>
#include <stdatomic.h>

#include "collector/base/wakeup.h"
#include "collector/sealer/seal/seal.h"

struct tc__readers {
  pthread_mutex_t lock;
  pthread_cond_t is_done;
  atomic_ullong asked; /* this many readers asked for open runs to be shown */
  uint64_t served;     /* this many of them the pass that goes on is for */
  uint64_t done;       /* this many have what they asked for */
};

void tc__readers_init(struct tc__readers *readers);
void tc__readers_fini(struct tc__readers *readers);
/* Any thread: asks, and waits for a second at most. */
void tc__readers_wait(struct tc__readers *readers, struct tc_wakeup *wakeup);

/* The sealer's thread. */
bool tc__readers_ask(struct tc__readers *readers);
void tc__readers_serve(struct tc__readers *readers, struct tc__seal *seal);
void tc__readers_end(struct tc__readers *readers); /* of all, and of all to come */

#endif

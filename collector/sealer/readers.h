/* SPDX-License-Identifier: Apache-2.0 */
/* Lets readers on other threads wait until the catalog shows the current state of the open runs. */
#ifndef TC_SEALER_READERS_H
#define TC_SEALER_READERS_H

#include <pthread.h>
#include <stdatomic.h>

#include "collector/base/wakeup.h"
#include "collector/sealer/seal/seal.h"

struct tc__readers {
  pthread_mutex_t lock;
  pthread_cond_t is_done;
  atomic_ullong asked; /* number of readers that have asked so far */
  uint64_t served;     /* number of readers that the current pass will have served */
  uint64_t done;       /* number of readers that are served */
};

void tc__readers_init(struct tc__readers *readers);
void tc__readers_fini(struct tc__readers *readers);
/* Any thread: asks, and waits for at most a second. */
void tc__readers_wait(struct tc__readers *readers, struct tc_wakeup *wakeup);

/* The sealer's thread only. */
bool tc__readers_ask(struct tc__readers *readers);
void tc__readers_serve(struct tc__readers *readers, struct tc__seal *seal);
void tc__readers_end(struct tc__readers *readers); /* no reader waits from now on */

#endif

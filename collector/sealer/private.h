/* SPDX-License-Identifier: Apache-2.0 */
/* The sealer, all of it. Only the files of its thread know it; each room below takes what it needs. */
#ifndef TC_SEALER_PRIVATE_H
#define TC_SEALER_PRIVATE_H

#include <pthread.h>

#include "collector/base/wakeup.h"
#include "collector/model/shortage.h"
#include "collector/sealer/checkpoint/published.h"
#include "collector/sealer/readers.h"
#include "collector/sealer/retention/missing.h"
#include "collector/sealer/retention/retention.h"
#include "collector/sealer/sealer.h"

struct tc_sealer {
  struct tc__env env;
  struct tc__catalog_sync catalog;
  struct tc__seal seal;
  struct tc__retaining retaining;
  struct tc__missing missing;
  struct tc__recovery recovery;
  struct tc__readers readers;

  struct tc_spsc_queue inbox;
  struct { /* taken from the inbox, in order */
    struct tc_work *first, **tail;
    struct tc_record *at; /* the first record of the first work that is not yet handled */
    bool is_begun;        /* `at` counts */
    struct tc_work *barriers, **barriers_tail; /* answered after the next sealing */
  } work;
  struct {            /* rows of live streams */
    bool soon;        /* a stream came or went */
    uint64_t mono_ns; /* of the last time that they were written */
  } live;
  struct {
    struct tc_wait wait;
    uint64_t retry_mono_ns; /* 0: nothing waits to be tried again */
    uint64_t short_mono_ns; /* what others may give back is short since then; 0: it is not */
    bool is_reported;       /* as a failure */
  } trouble;
  struct tc_reserve reserve;
  uint64_t reserve_mono_ns, aged_mono_ns; /* when it was filled, and old runs were looked for */

  struct tc_wakeup wakeup;
  pthread_t thread;
  bool started;
  atomic_bool stop;
};

#endif

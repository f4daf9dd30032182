/* SPDX-License-Identifier: Apache-2.0 */
/* The sealer as a whole. Only the files of its thread include this; each room takes only the parts it needs. */
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
    struct tc_record *at;                      /* the next record of the first work */
    bool is_begun;                             /* the first work is in progress; `at` is valid */
    struct tc_work *barriers, **barriers_tail; /* answered after the next tc__publish_queue() */
  } work;
  struct {            /* rows of live streams */
    bool soon;        /* an agent attached or detached */
    uint64_t mono_ns; /* time of the last write */
  } live;
  struct {
    struct tc_wait wait;
    uint64_t retry_mono_ns; /* time of the next attempt; 0: nothing failed */
    uint64_t short_mono_ns; /* start of a shortage that others may end; 0: none */
    bool is_reported;       /* logged as a failure */
  } trouble;
  struct tc_reserve reserve;
  uint64_t reserve_mono_ns, aged_mono_ns; /* when last filled; when old runs were last closed */

  struct tc_wakeup wakeup;
  pthread_t thread;
  bool started;
  atomic_bool stop;
};

#endif

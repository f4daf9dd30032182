/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by every room of the sealer: options, keys, log lines, the deadline of a stop. */
#ifndef TC_SEALER_BASE_ENV_H
#define TC_SEALER_BASE_ENV_H

#include <stdatomic.h>

#include "archive/content_hash.h"
#include "archive/meta.h"
#include "archive/state_dir.h"
#include "collector/base/logger.h"
#include "collector/keep/keeps.h"
#include "collector/model/messages.h"
#include "collector/model/store_counters.h"
#include "config/table.h"

struct tc_sealer_options {
  const struct tc_config *config;
  const struct tc_statedir *dirs;
  unsigned loops;
  bool durable;
  struct tc_store_sink sink;
  struct tc_stats *stats;
  struct tc_keeps *keeps;          /* segments that retention keeps */
  const char *run;                 /* id of this run, for metas */
  void (*wake_commit)(void *self); /* called when reports of settled records are queued */
  void *wake_self;
};

struct tc__env {
  struct tc_sealer_options opt;
  enum tc_hash_kind hash_kind;    /* archive.hash */
  struct tc_keys *signer;         /* archive.sign; NULL: metas are not signed */
  atomic_ullong deadline_mono_ns; /* a stop leaves work after this to the next start; 0: none */
};

bool tc__is_late(const struct tc__env *env); /* the deadline of a stop has passed */
uint64_t tc__disk_free(const struct tc__env *env);

#define tc__note(env, ...)                tc__note_as(env, TC_NOTICE, 0, __VA_ARGS__)
#define tc__note_as(env, level, ref, ...) tc_store_note(&(env)->opt.sink, level, ref, __VA_ARGS__)

#endif

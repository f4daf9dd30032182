/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of a forwarded stream, shared by the files of this room.
 *
 * Threads   the fields before `client` belong to the writer's thread, unless their own headers say otherwise.
 */
#ifndef TA_API_PRIVATE_H
#define TA_API_PRIVATE_H

#include "agent/api/forward.h"
#include "agent/api/recovery.h"
#include "agent/host/process.h"
#include "agent/net/client.h"
#include "wire/split.h"

enum { RECORD_MS_MAX = 3600000 }; /* an hour */

enum { TEXT_SERVER, TEXT_CA, TEXT_CERT, TEXT_KEY, TEXT_SERVICE, TEXT_INSTANCE, TEXT_CRL, TEXTS };

struct ta_forward {
  struct ta_member member; /* first: wake() casts it to the ta_forward */
  atomic_uint holders;
  atomic_bool closed;
  struct ta_spool spool;
  struct ta_client client;
  struct tb_mem mem;
  struct tw_split split;
  uint64_t gen;      /* being written, 0: none */
  uint64_t gen_last; /* newest one written */
  bool header_put;
  bool runs; /* the client's thread was started */
  char *text[TEXTS];
  struct ta_spool_writer disk;      /* zeroed: there is no spool on disk */
  struct ta_recovery recovery;      /* streams of earlier programs */
  struct ta_member recovery_member; /* recovery's thread */
};

static inline bool ta__forward_is_mistaken(const struct ta_forward *f) {
  return atomic_load(&f->client.keeper.where) != NULL;
}

/* Sets the text of the thread's last error; returns error. */
int ta__fault(int error, const char *fmt, ...) TB_PRINTF(2, 3);

/* --- settings --- */

/* Returns value, or the environment variable name if value is NULL and use_env is set. */
const char *ta__or_env(const char *value, const char *name, bool use_env);
int ta__forward_take_config(struct ta_forward *f, const struct ta_forward_config *config,
                            bool use_env);
int ta__forward_take_record(const struct ta_forward_config *config, bool use_env, uint64_t *out_ms);
int ta__forward_check_limits(uint64_t spool_bytes, bool is_guest);
int ta__forward_check_files(const struct ta_client_config *client);
int ta__forward_keep_files(struct ta_client_config *client);

#endif

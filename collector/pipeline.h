/* SPDX-License-Identifier: Apache-2.0 */
/* The whole pipeline, from sockets to answers; the one file that knows every stage:
 *
 *   listener > worker { tls > ingest > connection } > store > worker { analysis } > reports
 *                                                        └──> catalog > query
 *
 * Threads   all calls on the main loop's thread.
 * Errors    open: TB_IO, TB_CORRUPT, TB_UNSUPPORTED, TB_NOMEM with place and reason in diag; nothing is left open then.
 */
#ifndef TC_PIPELINE_H
#define TC_PIPELINE_H

#include <uv.h>

#include "collector/daemon/socket_activation.h"
#include "config/table.h"
#include "config/url_list.h"

struct tc_pipeline;

struct tc_pipeline_sink {
  void *self;
  void (*ended)(void *self);                   /* the drain is over, nothing runs any more */
  void (*failed)(void *self, const char *why); /* nothing can be stored: the daemon should end */
};

/* sockets: inherited for listen.agents and listen.http, with their addresses in config; owned. */
TB_MUST tb_rc tc_pipeline_open(uv_loop_t *uv, const struct tc_config *config,
                               const struct tc_activation *sockets, const char *version,
                               struct tc_pipeline_sink sink, struct tb_diag *diag,
                               struct tc_pipeline **out);
/* In certificates.c. Reads the certificates again; if they do not fit together all old ones stay. The configuration
 * itself is changed by its owner, with tc_config_reload(); most keys are read at each use. */
TB_MUST tb_rc tc_pipeline_reload(struct tc_pipeline *p, struct tb_diag *diag);
/* Call after a change of a key that is not read at each use: passes the new value on. */
void tc_pipeline_config_changed(struct tc_pipeline *p, const char *key);
/* Counts a reload of configuration and certificates for /metrics. */
void tc_pipeline_count_reload(struct tc_pipeline *p, bool done);
/* Begins to end within the configured deadline; sink.ended() follows. */
void tc_pipeline_drain(struct tc_pipeline *p);
void tc_pipeline_free(struct tc_pipeline *p); /* after ended() and the main loop's last turn */

struct tc_addresses {
  const char *agents, *http, *sock, *metrics; /* http, metrics: "" if off */
  const char *feed[TC_URLS_MAX + 1];          /* ends with NULL */
};
void tc_pipeline_addresses(const struct tc_pipeline *p, struct tc_addresses *out);

/* Returns true if every thread (loops, store, feed, leases, listeners) has turned since the last call; if not, stores the
 * name of one that has not. */
enum { TC_THREAD_NAME_MAX = 15 };
bool tc_pipeline_turns(struct tc_pipeline *p, char out_stuck[TC_THREAD_NAME_MAX + 1]);

struct tc_totals {
  uint64_t connections, records, record_bytes, segments, generations, events;
  uint64_t streams_live; /* now */
  const char *health;    /* "ok", or what is wrong */
};
void tc_pipeline_totals(const struct tc_pipeline *p, struct tc_totals *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The whole line, from sockets to answers. The one file that knows every stage:
 *
 *   listener > worker { tls > ingest > connection } > store > worker { understand } > reports
 *                                                        └──> catalog > query
 *
 * Threads   all calls on the main loop's thread.
 * Errors    open: TB_IO, TB_CORRUPT, TB_UNSUPPORTED, TB_NOMEM with place and reason in diag; nothing is
 *           left behind then.
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

/* sockets: the sockets that the service manager opened for listen.agents and listen.http, whose addresses
 * config holds; owned. */
TB_MUST tb_rc tc_pipeline_open(uv_loop_t *uv, const struct tc_config *config,
                               const struct tc_activation *sockets, const char *version,
                               struct tc_pipeline_sink sink, struct tb_diag *diag,
                               struct tc_pipeline **out);
/* In certificates.c. Certificates are read again; if they do not fit together all the old ones stay. The configuration is
 * read at each use: its owner changes it with tc_config_reload(). */
TB_MUST tb_rc tc_pipeline_reload(struct tc_pipeline *p, struct tb_diag *diag);
/* A key was changed that is not read at each use: all that have a copy get the new one. */
void tc_pipeline_config_changed(struct tc_pipeline *p, const char *key);
/* For /metrics: how a reload of configuration and certificates went. */
void tc_pipeline_count_reload(struct tc_pipeline *p, bool done);
/* Ends within the configured deadline; sink.ended() follows. */
void tc_pipeline_drain(struct tc_pipeline *p);
void tc_pipeline_free(struct tc_pipeline *p); /* after ended() and the main loop's last turn */

struct tc_addresses {
  const char *agents, *http, *sock, *metrics; /* http, metrics: "" where it is off */
  const char *feed[TC_URLS_MAX + 1]; /* up to a NULL */
};
void tc_pipeline_addresses(const struct tc_pipeline *p, struct tc_addresses *out);

/* True: every thread of ours has turned since the last question (loops, store, feed, leases, listeners); else the name
 * of one that has not. */
enum { TC_THREAD_NAME_MAX = 15 };
bool tc_pipeline_turns(struct tc_pipeline *p, char out_stuck[TC_THREAD_NAME_MAX + 1]);

struct tc_totals {
  uint64_t connections, records, record_bytes, segments, generations, events;
  uint64_t streams_live; /* at this moment */
  const char *health;    /* "ok", or what is wrong */
};
void tc_pipeline_totals(const struct tc_pipeline *p, struct tc_totals *out);

#endif

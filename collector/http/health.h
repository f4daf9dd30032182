/* SPDX-License-Identifier: Apache-2.0 */
/* Does the daemon take in what agents send, and if not, what is wrong and since when: /readyz.
 *
 * A finding that does not stop it from that is a warning, and it is ready all the same: who routes agents by its answer would
 * take away the one place that they have.
 *
 * Threads   one.
 * Time      wall clock, given by the caller.
 */
#ifndef TC_HTTP_HEALTH_H
#define TC_HTTP_HEALTH_H

#include "base/buf.h"
#include "collector/store/store.h"

enum tc_check { TC_CHECK_DISK, TC_CHECK_FILES, TC_CHECK_RETENTION, TC_CHECK_TLS, TC_CHECK_MEMORY, TC_CHECK_RUNNING, TC_CHECKS };

struct tc_readiness {
  struct {
    bool ok;
    bool stops;             /* where not ok: it is not ready; else it is a warning */
    char state[120];        /* for people */
    uint64_t since_wall_ns; /* when ok or stops last changed */
  } check[TC_CHECKS];
};

struct tc_readiness_facts {
  uint64_t now_wall_ns;
  struct tc_store_stats store;
  const char *certs; /* folder of server.pem */
  bool running;      /* not on the way to its end */
};

void tc_readiness_update(struct tc_readiness *readiness, const struct tc_readiness_facts *facts);
bool tc_readiness_is_ready(const struct tc_readiness *readiness);
void tc_readiness_write(const struct tc_readiness *readiness, struct tb_buf *out); /* JSON */

#endif

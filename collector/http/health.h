/* SPDX-License-Identifier: Apache-2.0 */
/* /readyz: does the daemon accept records of agents? If not, what is wrong, and since when.
 *
 * A problem that does not stop the daemon from accepting records is only a warning: a router of agents that saw "not
 * ready" would cut them off from the only collector they have.
 *
 * Threads   one.
 * Time      wall clock, given by the caller.
 */
#ifndef TC_HTTP_HEALTH_H
#define TC_HTTP_HEALTH_H

#include "base/buf.h"
#include "collector/store/store.h"

enum tc_check {
  TC_CHECK_DISK,
  TC_CHECK_FILES,
  TC_CHECK_RETENTION,
  TC_CHECK_TLS,
  TC_CHECK_MEMORY,
  TC_CHECK_RUNNING,
  TC_CHECKS
};

struct tc_readiness {
  struct {
    bool ok;
    bool stops;             /* if not ok: true: not ready; false: a warning */
    char state[120];        /* for people */
    uint64_t since_wall_ns; /* last change of ok or stops */
  } check[TC_CHECKS];
};

struct tc_readiness_facts {
  uint64_t now_wall_ns;
  struct tc_store_stats store;
  const char *certs; /* folder of server.pem */
  bool running;      /* not shutting down */
};

void tc_readiness_update(struct tc_readiness *readiness, const struct tc_readiness_facts *facts);
bool tc_readiness_is_ready(const struct tc_readiness *readiness);
void tc_readiness_write(const struct tc_readiness *readiness, struct tb_buf *out); /* JSON */

#endif

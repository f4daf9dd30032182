/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a log line for each request that would change something. Successful requests are always logged; refused ones
 * within the usual rate limit for lines about one peer. */
#include <string.h>

#include "base/hash.h"
#include "collector/base/logger.h"
#include "collector/http/private.h"

void tc__audit(const struct tc__http_conn *c, const struct tc__http_answer *a) {
  static const char *const doors[TC__DOORS] = { "http", "socket", "metrics" };
  const struct tp_route *route = c->route;
  char path[TC_ESCAPE_MAX + 1], what[TC_ESCAPE_MAX + 1], who[TC_ESCAPE_MAX + 1];

  if (route == NULL || route->method == TP_GET) return;
  const char *name = c->identity[0] != '\0' ? c->identity : c->peer;
  tc_escape(path, c->head.request.path, strlen(c->head.request.path));
  tc_escape(what, a->what, strlen(a->what));
  tc_escape(who, name, strlen(name));
#define LINE "act=%s method=%s path=\"%s\" who=\"%s\" from=%s status=%d what=\"%s\""
#define VALUES                                                                                     \
  tc_act_name(tc__route_act(route)), tp_method_name(route->method), path, who,                     \
      doors[c->door->kind], a->status, what
  if (a->status < 400)
    tc_log_each(TC_NOTICE, "audit", LINE, VALUES);
  else
    tc_log_about(c->owner, TC_WARN, "audit", LINE, VALUES);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/route.h"

#include <string.h>

#include "proto/archive.pb-c.h"

#define M(message) &tracecollect__v1__##message##__descriptor
#define NONE       NULL
#define TP_ROUTE(ID, METHOD, PATH, BELOW, ACT, KIND, ASK, ANSWER, ABOUT)                           \
  [TP_ROUTE_##ID] = { TP_ROUTE_##ID, TP_##METHOD, PATH, BELOW, TP_##KIND, ASK, ANSWER, ABOUT },
const struct tp_route tp_routes[TP_ROUTES] = {
#include "proto/routes.def"
};
#undef TP_ROUTE
#undef NONE
#undef M

#define NEEDED        .is_needed = true,
#define TEXT          .type = TP_PARAM_TEXT
#define FLAG          .type = TP_PARAM_FLAG, .max = 1
#define TIME          .type = TP_PARAM_TIME
#define STREAM        .type = TP_PARAM_STREAM
#define SPAN(longest) .type = TP_PARAM_SPAN, .max = longest
#define NUMBER(byself_, low, up)                                                                   \
  .type = TP_PARAM_NUMBER, .byself = (uint64_t)(byself_), .min = low, .max = up
#define WORD(words_) .type = TP_PARAM_WORD, .words = words_
#define TP_PARAM(ROUTE, NAME, TYPE, FIELD, ABOUT)                                                  \
  { .route = TP_ROUTE_##ROUTE, .name = NAME, TYPE, .field = FIELD, .about = ABOUT },
const struct tp_param tp_params[] = {
#include "proto/params.def"
};
const size_t tp_params_count = sizeof tp_params / sizeof tp_params[0];
_Static_assert(sizeof tp_params / sizeof tp_params[0] <= TP_PARAMS_MAX, "each has a bit");

const char *tp_method_name(enum tp_method method) {
  static const char *const names[TP_METHODS] = {
    [TP_GET] = "GET", [TP_POST] = "POST", [TP_PUT] = "PUT", [TP_DELETE] = "DELETE"
  };

  return names[method];
}

static bool fits(const struct tp_route *route, const char *path) {
  return route->below != NULL ? strncmp(route->path, path, strlen(route->path)) == 0
                              : strcmp(route->path, path) == 0;
}

/* Rows of the same path differ in their methods: the first row that fits decides the path. */
const struct tp_route *tp_route_find(enum tp_method method, const char *path,
                                     unsigned *out_allowed) {
  const struct tp_route *first = NULL;

  *out_allowed = 0;
  for (size_t i = 0; i < TP_ROUTES; i++) {
    const struct tp_route *route = &tp_routes[i];

    if (first == NULL ? !fits(route, path) : strcmp(route->path, first->path) != 0) continue;
    if (route->method == method) return route;
    first = route;
    *out_allowed |= 1u << route->method;
  }
  return NULL;
}

const char *tp_route_rest(const struct tp_route *route, const char *path) {
  return route->below != NULL ? path + strlen(route->path) : "";
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP routes: one table (routes.def, params.def) for the collector's router, for clients, and for the reference. This room does
 * not know the column of who may use a route: include routes.def for it (lib/tls/role.h has the acts). */
#ifndef TP_ROUTE_H
#define TP_ROUTE_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tp_method { TP_GET, TP_POST, TP_PUT, TP_DELETE, TP_METHODS };
enum tp_answer { TP_MESSAGE, TP_LINES, TP_JSON, TP_TEXT, TP_BYTES, TP_EVENTS, TP_PAGE, TP_EMPTY };

enum tp_route_id {
#define TP_ROUTE(ID, ...) TP_ROUTE_##ID,
#include "proto/routes.def"
#undef TP_ROUTE
  TP_ROUTES
};

struct tp_route {
  enum tp_route_id id;
  enum tp_method method;
  const char *path;
  const char *below; /* name of the rest of the path; NULL: the path is complete */
  enum tp_answer kind;
  const ProtobufCMessageDescriptor *ask;    /* NULL: none; parameters are ignored */
  const ProtobufCMessageDescriptor *answer; /* NULL: not a message */
  const char *about;
};

extern const struct tp_route tp_routes[TP_ROUTES];

/* A parameter of a GET route. */
enum tp_param_type {
  TP_PARAM_TEXT,
  TP_PARAM_FLAG,
  TP_PARAM_NUMBER,
  TP_PARAM_TIME,
  TP_PARAM_SPAN,
  TP_PARAM_STREAM,
  TP_PARAM_WORD
};

struct tp_param {
  enum tp_route_id route;
  const char *name;
  enum tp_param_type type;
  bool is_needed;
  uint64_t byself, min,
      max;           /* limits of a number; byself: the default. max: for a time span, too */
  const char *words; /* separated by spaces; the first is the default */
  const char *field; /* field of the request; in a message of it: "message.field" */
  const char *about;
};

enum { TP_PARAMS_MAX = 256 };
extern const struct tp_param tp_params[];
extern const size_t tp_params_count;

const char *tp_method_name(enum tp_method method); /* "GET" */

/* Finds the route of a path. If it returns NULL, *out_allowed has a bit for each method of the path; 0: no such path. */
const struct tp_route *tp_route_find(enum tp_method method, const char *path,
                                     unsigned *out_allowed);
/* Returns the part after a route's path; "" if there is none. */
const char *tp_route_rest(const struct tp_route *route, const char *path);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/help/openapi.h"

#include <ctype.h>
#include <jansson.h>
#include <string.h>

#include "proto/route.h"
#include "tls/role.h"

static const enum tc_act acts[TP_ROUTES] = {
#define TP_ROUTE(ID, METHOD, PATH, BELOW, ACT, ...) [TP_ROUTE_##ID] = TC_ACT_##ACT,
#include "proto/routes.def"
#undef TP_ROUTE
};

static const char about[] =
    "What tracecollectd answers; docs/HTTP.md explains it. HEAD is answered where GET is, but for jobs and leases. Messages are JSON, or "
    "protobuf for who asks with Accept: application/protobuf; bodies are either. x-roles says who may: loopback is a user of the collector's "
    "host over plain TCP, socket one who may write to its Unix socket, reader and agent are the roles of certificates, nobody is a peer over TLS "
    "without one.";

/* --- schemas ----------------------------------------------------------------------------------- */

static const char *short_name(const ProtobufCMessageDescriptor *of) {
  return strrchr(of->name, '.') + 1;
}

static json_t *reference(const char *name) {
  return json_pack("{s:s+}", "$ref", "#/components/schemas/", name);
}

static json_t *schema_of_value(const ProtobufCFieldDescriptor *f) {
  switch (f->type) {
  case PROTOBUF_C_TYPE_STRING: return json_pack("{s:s}", "type", "string");
  case PROTOBUF_C_TYPE_BYTES:
    return json_pack("{s:s, s:s}", "type", "string", "pattern", "^([0-9a-f]{2})*$");
  case PROTOBUF_C_TYPE_BOOL: return json_pack("{s:s}", "type", "boolean");
  case PROTOBUF_C_TYPE_FLOAT:
  case PROTOBUF_C_TYPE_DOUBLE: return json_pack("{s:[s,s]}", "type", "number", "null");
  case PROTOBUF_C_TYPE_MESSAGE: return reference(short_name(f->descriptor));
  default: return json_pack("{s:s}", "type", "integer");
  }
}

/* As proto/json.h writes it: all but messages that are absent is there. */
static void add_schema(json_t *schemas, const ProtobufCMessageDescriptor *of) {
  json_t *properties = json_object(), *required = json_array();

  if (json_object_get(schemas, short_name(of)) != NULL) return;
  json_t *schema = json_pack("{s:s, s:o, s:o}", "type", "object", "required", required,
                             "properties", properties);
  json_object_set_new(schemas, short_name(of), schema);
  for (unsigned i = 0; i < of->n_fields; i++) {
    const ProtobufCFieldDescriptor *f = &of->fields[i];
    json_t *value = schema_of_value(f);

    if (f->label == PROTOBUF_C_LABEL_REPEATED)
      value = json_pack("{s:s, s:o}", "type", "array", "items", value);
    else if (f->type != PROTOBUF_C_TYPE_MESSAGE && (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) == 0)
      json_array_append_new(required, json_string(f->name));
    json_object_set_new(properties, f->name, value);
    if (f->type == PROTOBUF_C_TYPE_MESSAGE) add_schema(schemas, f->descriptor);
  }
}

static json_t *error_schema(void) {
  return json_pack("{s:s, s:[s,s,s], s:{s:{s:s}, s:{s:s,s:s}, s:{s:s}}}", "type", "object",
                   "required", "status", "code", "error", "properties", "status", "type", "integer",
                   "code", "type", "string", "description", "A name of `tracectl tables results`.",
                   "error", "type", "string");
}

/* --- parameters -------------------------------------------------------------------------------- */

static json_t *words_of(const char *words) {
  json_t *list = json_array();

  for (size_t n; *words != '\0'; words += n + strspn(words + n, " ")) {
    n = strcspn(words, " ");
    json_array_append_new(list, json_stringn(words, n));
  }
  return list;
}

static json_t *schema_of_number(const struct tp_param *p) {
  json_t *schema = json_pack("{s:s, s:I}", "type", "integer", "minimum", (json_int_t)p->min);

  if (p->max <= INT64_MAX) /* jansson writes no more */
    json_object_set_new(schema, "maximum", json_integer((json_int_t)p->max));
  if (p->byself >= p->min && p->byself <= p->max)
    json_object_set_new(schema, "default", json_integer((json_int_t)p->byself));
  return schema;
}

static json_t *schema_of_param(const struct tp_param *p) {
  json_t *words;

  switch (p->type) {
  case TP_PARAM_NUMBER: return schema_of_number(p);
  case TP_PARAM_FLAG:
    return json_pack("{s:s, s:[i,i], s:i}", "type", "integer", "enum", 0, 1, "default", 0);
  case TP_PARAM_TIME:
    return json_pack("{s:s, s:[s,s,s]}", "type", "string", "examples", "2026-03-01T12:00:00Z",
                     "-5m", "@1772366400.5");
  case TP_PARAM_SPAN: return json_pack("{s:s, s:[s,s]}", "type", "string", "examples", "20s", "5m");
  case TP_PARAM_STREAM:
    return json_pack("{s:s, s:s}", "type", "string", "pattern", "^[0-9a-f]{32}$");
  case TP_PARAM_WORD:
    words = words_of(p->words);
    return json_pack("{s:s, s:o, s:O}", "type", "string", "enum", words, "default",
                     json_array_get(words, 0));
  case TP_PARAM_TEXT: break;
  }
  return json_pack("{s:s}", "type", "string");
}

static json_t *parameter(const char *name, const char *in, bool is_needed, const char *says,
                         json_t *schema) {
  json_t *p = json_pack("{s:s, s:s, s:o}", "name", name, "in", in, "schema", schema);

  if (is_needed) json_object_set_new(p, "required", json_true());
  if (says != NULL) json_object_set_new(p, "description", json_string(says));
  return p;
}

static json_t *parameters_of(const struct tp_route *route) {
  json_t *list = json_array();

  if (route->below != NULL)
    json_array_append_new(list, parameter(route->below, "path", true, NULL,
                                          json_pack("{s:s}", "type", "string")));
  for (const struct tp_param *p = tp_params; p < tp_params + tp_params_count; p++)
    if (p->route == route->id)
      json_array_append_new(list,
                            parameter(p->name, "query", p->is_needed, p->about, schema_of_param(p)));
  return list;
}

/* --- operations -------------------------------------------------------------------------------- */

static json_t *roles_of(enum tc_act act) {
  json_t *roles = json_array();

  for (enum tc_role role = TC_ROLE_SERVER; role < TC_ROLES_ALL; role++)
    if (tc_role_may(role, act)) json_array_append_new(roles, json_string(tc_role_name(role)));
  return roles;
}

static json_t *message(const ProtobufCMessageDescriptor *of, const char *json_type, bool is_whole,
                       json_t *schemas) {
  if (is_whole) add_schema(schemas, of);
  return json_pack("{s:{s:o}, s:{s:{s:s}}}", json_type, "schema",
                   is_whole ? reference(short_name(of)) : json_pack("{s:s}", "type", "object"),
                   "application/protobuf", "schema", "description", of->name);
}

/* NULL: no body. */
static json_t *content_of(const struct tp_route *route, json_t *schemas) {
  static const char *const types[] = {
    [TP_MESSAGE] = "application/json", [TP_LINES] = "application/x-ndjson",
    [TP_JSON] = "application/json",    [TP_TEXT] = "text/plain",
    [TP_BYTES] = "application/octet-stream", [TP_EVENTS] = "text/event-stream",
    [TP_PAGE] = "text/html",           [TP_EMPTY] = NULL,
  };
  const char *type = types[route->kind];

  if (type == NULL) return NULL;
  if (route->answer != NULL)
    return message(route->answer, type, route->kind == TP_MESSAGE, schemas);
  return json_pack("{s:{}}", type);
}

static const char *status_of(const struct tp_route *route) {
  switch (route->id) {
  case TP_ROUTE_TRIGGER_ADD:
  case TP_ROUTE_LEASE_OPEN: return "201";
  case TP_ROUTE_VERIFY: return "202";
  default: return route->kind == TP_EMPTY ? "204" : "200";
  }
}

static json_t *responses_of(const struct tp_route *route, json_t *schemas) {
  json_t *good = json_pack("{s:s}", "description", route->about), *all = json_object(),
         *content = content_of(route, schemas);

  if (content != NULL) json_object_set_new(good, "content", content);
  json_object_set_new(all, status_of(route), good);
  if (route->kind == TP_BYTES) {
    json_object_set(all, "206", good);
    json_object_set_new(all, "304", json_pack("{s:s}", "description", "If-None-Match names it."));
  }
  json_object_set_new(all, "default",
                      json_pack("{s:s, s:{s:{s:o}}}", "description", "Why not.", "content",
                                "application/json", "schema", reference("Error")));
  return all;
}

static json_t *operation_of(const struct tp_route *route, const char *id, json_t *schemas) {
  json_t *operation =
      json_pack("{s:s, s:s, s:o, s:o}", "operationId", id, "summary", route->about, "x-roles",
                roles_of(acts[route->id]), "parameters", parameters_of(route));

  if (route->method == TP_POST)
    json_object_set_new(operation, "requestBody",
                        json_pack("{s:b, s:o}", "required", true, "content",
                                  message(route->ask, "application/json", true, schemas)));
  json_object_set_new(operation, "responses", responses_of(route, schemas));
  return operation;
}

static void lower(const char *from, char out[32]) {
  size_t n = 0;

  for (; from[n] != '\0' && n < 31; n++) out[n] = (char)tolower((unsigned char)from[n]);
  out[n] = '\0';
}

static json_t *paths_of(json_t *schemas) {
  static const char *const ids[TP_ROUTES] = {
#define TP_ROUTE(ID, ...) [TP_ROUTE_##ID] = #ID,
#include "proto/routes.def"
#undef TP_ROUTE
  };
  json_t *paths = json_object();

  for (const struct tp_route *r = tp_routes; r < tp_routes + TP_ROUTES; r++) {
    char path[80], method[32], id[32];

    if (r->kind == TP_PAGE) continue;
    snprintf(path, sizeof path, r->below != NULL ? "%s{%s}" : "%s", r->path, r->below);
    lower(tp_method_name(r->method), method);
    lower(ids[r->id], id);
    if (json_object_get(paths, path) == NULL) json_object_set_new(paths, path, json_object());
    json_object_set_new(json_object_get(paths, path), method, operation_of(r, id, schemas));
  }
  return paths;
}

bool tk_openapi_print(FILE *out) {
  json_t *schemas = json_pack("{s:o}", "Error", error_schema());
  json_t *paths = paths_of(schemas);
  json_t *document = json_pack("{s:s, s:{s:s, s:s, s:s}, s:o, s:{s:o}}", "openapi", "3.1.0", "info",
                               "title", "tracecollectd", "version", TC_VERSION, "description",
                               about, "paths", paths, "components", "schemas", schemas);

  if (document == NULL) return false;
  (void)json_dumpf(document, out, JSON_INDENT(1)); /* what out thinks of it is the caller's to see */
  fputc('\n', out);
  json_decref(document);
  return true;
}

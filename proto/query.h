/* SPDX-License-Identifier: Apache-2.0 */
/* Converts the parameters of a URL, after '?', to a message and back; params.def names the fields.
 *
 * An unknown, repeated or badly encoded parameter is an error: if a misspelt filter were ignored, the answer would be to another question.
 * A parameter without a value counts as not given.
 *
 * Memory    results point into the query's bytes and the arena.
 * Errors    TB_PROTOCOL with the parameter's name in diag. The writer: those of the buffer. */
#ifndef TP_QUERY_H
#define TP_QUERY_H

#include "base/arena.h"
#include "base/buf.h"
#include "proto/route.h"

/* Decodes %XX in place; plus: decodes '+' as a space. Returns false for a broken or NUL escape. */
bool tp_percent_undo(char *text, bool plus);
/* Reads a plain decimal number from min to max. */
TB_MUST tb_rc tp_query_number(const char *name, const char *text, uint64_t min, uint64_t max,
                              struct tb_diag *diag, uint64_t *out);
enum { TP_STREAM_BYTES = 16 }; /* bytes of a stream's id; twice as many hexadecimal digits */

/* Parsers of moments and time spans, passed in because this room may not see lib/config/times.h. */
struct tp_times {
  tb_rc (*moment)(const char *text, struct tb_diag *diag, uint64_t *out_wall_ns);
  tb_rc (*span)(const char *text, struct tb_diag *diag, uint64_t *out_ns);
};

/* out: the route's request, initialised by its init(). Modifies query. */
TB_MUST tb_rc tp_query_read(const struct tp_route *route, char *query, const struct tp_times *times,
                            struct tb_arena *arena, struct tb_diag *diag, ProtobufCMessage *out);
/* Writes without the '?'. Leaves out defaults, and values that are empty or 0 if they must not be. */
void tp_query_write(const struct tp_route *route, const ProtobufCMessage *ask, struct tb_buf *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters behind a URL's '?' as a message, both ways; params.def says which field is which.
 *
 * A parameter that the route does not know, one given twice or one badly encoded is an error, since a misspelt filter that is
 * passed over answers another question than was asked. One without a value is as if it were not given.
 *
 * Memory    what is read lies in the query's bytes and in the arena.
 * Errors    TB_PROTOCOL with the parameter's name in diag. Of the writer: the buffer's. */
#ifndef TP_QUERY_H
#define TP_QUERY_H

#include "base/arena.h"
#include "base/buf.h"
#include "proto/route.h"

/* Undoes %XX in place; plus: '+' is a space. False: a broken or NUL escape. */
bool tp_percent_undo(char *text, bool plus);
/* A plain decimal number from min to max. */
TB_MUST tb_rc tp_query_number(const char *name, const char *text, uint64_t min, uint64_t max,
                              struct tb_diag *diag, uint64_t *out);
enum { TP_STREAM_BYTES = 16 }; /* of a stream's id, twice as many hexadecimal digits */

/* How a moment and a span of time are written is for another room to say (lib/config/times.h). */
struct tp_times {
  tb_rc (*moment)(const char *text, struct tb_diag *diag, uint64_t *out_wall_ns);
  tb_rc (*span)(const char *text, struct tb_diag *diag, uint64_t *out_ns);
};

/* out: the route's question, as its init() leaves it. Takes query apart in place. */
TB_MUST tb_rc tp_query_read(const struct tp_route *route, char *query, const struct tp_times *times,
                            struct tb_arena *arena, struct tb_diag *diag, ProtobufCMessage *out);
/* Without the '?'; what has its default, and what is empty or 0 where it must not be, is left out. */
void tp_query_write(const struct tp_route *route, const ProtobufCMessage *ask, struct tb_buf *out);

#endif

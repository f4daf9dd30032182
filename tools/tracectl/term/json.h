/* SPDX-License-Identifier: Apache-2.0 */
/* Messages on stdout, one JSON object a line (proto/json.h).
 */
#ifndef TK_TERM_JSON_H
#define TK_TERM_JSON_H

#include <stdbool.h>

#include "proto/json.h"

/* type: an additional first field "type"; NULL: none. Returns false if memory cannot be
 * allocated. */
bool tk_json_print(const char *type, const ProtobufCMessage *message);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A client at a server's unix socket: sends one request after the other over one connection. */
#ifndef TT_HTTP_READER_H
#define TT_HTTP_READER_H

#include "support/http_server.h"

struct tt_reader {
  int fd;
  size_t body_len;
  char answer[TT_HTTP_ANSWER_BYTES]; /* the head as text, then the rest of the body */
  char body[TT_HTTP_ANSWER_BYTES];
};

void tt_reader_open(struct tt_reader *reader, const struct tt_http *server);
void tt_reader_close(struct tt_reader *reader);

/* Sends a request. request: "METHOD /path"; fields: further lines of the head, each with its CR LF; text: a body in
 * JSON, or NULL. */
void tt_say(const struct tt_reader *reader, const char *request, const char *fields,
            const char *text);
/* Returns the status of the next answer; 0 if the connection has ended. */
int tt_hear(struct tt_reader *reader);
int tt_ask(struct tt_reader *reader, const char *request, const char *fields, const char *text);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "support/http_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void tt_reader_open(struct tt_reader *r, const struct tt_http *server) {
  r->fd = tt_http_dial_path(server);
}

void tt_reader_close(struct tt_reader *r) {
  close(r->fd);
}

void tt_say(const struct tt_reader *r, const char *request, const char *fields, const char *text) {
  char bytes[4096];
  size_t n = (size_t)snprintf(bytes, sizeof bytes, "%s HTTP/1.1\r\nHost: localhost\r\n%s", request,
                              fields);

  if (text == NULL)
    n += (size_t)snprintf(bytes + n, sizeof bytes - n, "\r\n");
  else
    n += (size_t)snprintf(bytes + n, sizeof bytes - n,
                          "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                          strlen(text), text);
  tt_http_say(r->fd, bytes, n);
}

static bool is_whole(struct tt_reader *r, size_t len) {
  char *end = memmem(r->answer, len, "\r\n\r\n", 4), *length;

  if (end == NULL) return false;
  *end = '\0';
  length = strstr(r->answer, "\r\nContent-Length: ");
  r->body_len = length != NULL ? strtoul(length + 18, NULL, 10) : 0;
  *end = '\r';
  size_t head = (size_t)(end - r->answer) + 4;
  if (len < head + r->body_len) return false;
  memcpy(r->body, r->answer + head, r->body_len);
  r->body[r->body_len] = '\0';
  return true;
}

int tt_hear(struct tt_reader *r) {
  size_t len = 0;
  int status;

  r->answer[0] = '\0';
  while (!is_whole(r, len)) {
    ssize_t n = recv(r->fd, r->answer + len, sizeof r->answer - 1 - len, 0);

    if (n <= 0) return 0;
    len += (size_t)n;
    r->answer[len] = '\0';
  }
  return sscanf(r->answer, "HTTP/1.1 %d", &status) == 1 ? status : 0;
}

int tt_ask(struct tt_reader *r, const char *request, const char *fields, const char *text) {
  tt_say(r, request, fields, text);
  return tt_hear(r);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* remote/http.c against a server of the test's own, which answers from a script and notes each
 * request. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/patience.h"
#include "tools/tracectl/remote/http.h"

enum { HEARD_MAX = 256, HEARD_BYTES = 1024, SEGMENT = 16000, PLACES = 16 };

#define OK_HEAD "HTTP/1.1 200 OK\r\nContent-Type: application/protobuf\r\n"

/* A row for each connection: the answer to each request on it, then its end. NULL ends the
 * script. */
struct turn {
  const char *text;
  size_t len;
  unsigned questions;
};

#define SAID(text, questions)                                                                      \
  { text, sizeof(text) - 1, questions }

static struct tk_http *http;
static struct tb_diag diag;
static struct tk_http_answer answer;
static struct {
  char folder[64];
  int fd;
  pthread_t thread;
  const struct turn *script;
  unsigned connections;
  atomic_uint n;
  char heard[HEARD_MAX][HEARD_BYTES];
} server;

/* ---- the server ---- */

/* Receives a head, and the body that it announces. */
static bool hear(int fd, char out[HEARD_BYTES]) {
  size_t n = 0, whole = HEARD_BYTES;

  for (ssize_t got; n < whole; n += (size_t)got) {
    if ((got = recv(fd, out + n, HEARD_BYTES - 1 - n, 0)) <= 0) return false;
    out[n + (size_t)got] = '\0';
    const char *end = strstr(out, "\r\n\r\n"), *length = strstr(out, "Content-Length: ");
    size_t body = length != NULL ? strtoul(length + 16, NULL, 10) : 0;
    if (end != NULL) whole = (size_t)(end + 4 - out) + body;
  }
  return true;
}

static void *serve(void *self) {
  (void)self;
  for (const struct turn *t = server.script; t->text != NULL; t++) {
    int fd = accept(server.fd, NULL, NULL);
    if (fd < 0) return NULL;
    server.connections++;
    for (unsigned i = 0; i < t->questions; i++) {
      if (!hear(fd, server.heard[server.n])) break;
      server.n++;
      send(fd, t->text, t->len, MSG_NOSIGNAL);
    }
    close(fd);
  }
  return NULL;
}

static void open_where(const struct tk_endpoint *where) {
  tb_diag_clear(&diag);
  cr_assert_eq(tk_http_open(where, &diag, &http), TB_OK, "%s", diag.text);
}

static void open_server(const struct turn *script) {
  struct sockaddr_un at = { .sun_family = AF_UNIX };
  struct tk_endpoint where;
  char name[128];

  strcpy(server.folder, "/tmp/tk_http_XXXXXX");
  cr_assert_not_null(mkdtemp(server.folder));
  snprintf(at.sun_path, sizeof at.sun_path, "%s/s", server.folder);
  server.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  cr_assert_eq(bind(server.fd, (struct sockaddr *)&at, sizeof at), 0);
  cr_assert_eq(listen(server.fd, 8), 0);
  server.script = script;
  cr_assert_eq(pthread_create(&server.thread, NULL, serve, NULL), 0);
  snprintf(name, sizeof name, "unix:%s", at.sun_path);
  const struct tk_client_args args = { .server = name };
  setenv("TRACECTL_CONFIG", "/dev/null", 1);
  tb_diag_clear(&diag);
  cr_assert_eq(tk_endpoint_find(&args, &diag, &where), TB_OK, "%s", diag.text);
  open_where(&where);
}

static void close_server(void) {
  char command[96];

  tk_http_close(http);
  shutdown(server.fd, SHUT_RDWR);
  pthread_join(server.thread, NULL);
  close(server.fd);
  snprintf(command, sizeof command, "rm -r %s", server.folder);
  cr_assert_eq(system(command), 0);
}

static tb_rc get(const char *path) {
  const struct tk_http_ask ask = { .path = path, .accept = "application/protobuf" };

  tb_diag_clear(&diag);
  return tk_http_ask(http, &ask, &diag, &answer);
}

static bool has_said(const char *words) {
  return strstr(diag.text, words) != NULL;
}

/* ---- answers ---- */

Test(http_client, questions_go_over_one_connection) {
  static const struct turn script[] = { SAID(OK_HEAD "Content-Length: 5\r\n\r\nhello", 2), { 0 } };

  open_server(script);
  for (int i = 0; i < 2; i++) {
    cr_assert_eq(get("/api/v1/streams?x=1"), TB_OK, "%s", diag.text);
    cr_assert_eq(answer.status, 200);
    cr_assert_str_eq(answer.type, "application/protobuf");
    cr_assert_eq(answer.len, 5);
    cr_assert_eq(memcmp(answer.body, "hello", 5), 0);
  }
  close_server();
  cr_assert_eq(server.connections, 1);
  cr_assert_eq(strncmp(server.heard[0], "GET /api/v1/streams?x=1 HTTP/1.1\r\n", 34), 0);
  cr_assert_not_null(strstr(server.heard[0], "\r\nHost: localhost\r\n"));
  cr_assert_not_null(strstr(server.heard[0], "\r\nAccept: application/protobuf\r\n"));
}

Test(http_client, a_body_is_posted_and_a_thing_deleted) {
  static const struct turn script[] = {
    SAID("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n", 1),
    SAID("HTTP/1.1 204 No Content\r\n\r\n", 1),
    { 0 },
  };
  const struct tk_http_ask post = { .path = "/p", .accept = "*/*", .body = "abc", .len = 3 };
  const struct tk_http_ask gone = { .path = "/d", .accept = "*/*", .method = "DELETE" };

  open_server(script);
  cr_assert_eq(tk_http_ask(http, &post, &diag, &answer), TB_OK, "%s", diag.text);
  cr_assert_eq(answer.status, 201);
  cr_assert_eq(tk_http_ask(http, &gone, &diag, &answer), TB_OK, "%s", diag.text);
  cr_assert_eq(answer.status, 204);
  close_server();
  cr_assert_eq(strncmp(server.heard[0], "POST /p HTTP/1.1\r\n", 18), 0);
  cr_assert_not_null(strstr(server.heard[0], "\r\nContent-Type: application/protobuf\r\n"));
  cr_assert_null(strstr(server.heard[0], "Expect"));
  cr_assert_str_eq(server.heard[0] + strlen(server.heard[0]) - 7, "\r\n\r\nabc");
  cr_assert_eq(strncmp(server.heard[1], "DELETE /d HTTP/1.1\r\n", 20), 0);
}

/* ---- errors ---- */

Test(http_client, a_collectors_error_is_its_code_and_words) {
  static const struct turn script[] = {
    SAID("HTTP/1.1 404 Not Found\r\nContent-Length: 56\r\n\r\n"
         "{\"status\":404,\"code\":\"NOTFOUND\",\"error\":\"no segment 99\"}",
         1),
    SAID("HTTP/1.1 503 Busy\r\nContent-Length: 53\r\n\r\n"
         "{\"status\":503,\"code\":\"AGAIN\",\"error\":\"wait a little\"}",
         1),
    { 0 },
  };

  open_server(script);
  cr_assert_eq(get("/a"), TB_NOTFOUND);
  cr_assert_str_eq(diag.text, "no segment 99");
  cr_assert_eq(get("/b"), TB_BUSY, "%s", diag.text); /* the request is not repeated */
  cr_assert_str_eq(diag.text, "wait a little");
  close_server();
  cr_assert_eq(server.n, 2);
}

Test(http_client, a_proxys_error_is_told_from_a_collectors) {
  static const struct turn script[] = {
    SAID("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 16\r\n\r\n<html>bad</html>", 1),
    SAID("HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\n{}", 1),
    { 0 },
  };

  open_server(script);
  cr_assert_eq(get("/a"), TB_IO);
  cr_assert(has_said("HTTP 502 from"), "%s", diag.text);
  cr_assert(has_said("proxy"), "%s", diag.text);
  cr_assert_eq(get("/b"), TB_REFUSED);
  cr_assert(has_said("HTTP 401 from"), "%s", diag.text);
  close_server();
}

Test(http_client, what_is_no_http_is_said) {
  static const struct turn script[] = { SAID("\0SP\0\0\x30\0\0", 1), { 0 } };

  open_server(script);
  cr_assert_eq(get("/"), TB_IO);
  cr_assert(has_said("does not speak HTTP; is it the feed's port"), "%s", diag.text);
  close_server();
}

Test(http_client, nobody_there_is_said_in_the_systems_words) {
  struct tk_endpoint where = { .url = "http://localhost", .path = "/nowhere/x", .shown = "it" };

  open_where(&where);
  cr_assert_eq(get("/"), TB_IO);
  cr_assert_str_eq(diag.text, "no collector answers on it: No such file or directory");
  tk_http_close(http);
}

/* ---- cuts ---- */

Test(http_client, a_get_that_is_cut_is_asked_again_and_a_post_is_not) {
  static const struct turn script[] = { SAID(OK_HEAD "Content-Length: 9\r\n\r\nhel", 1),
                                        SAID(OK_HEAD "Content-Length: 5\r\n\r\nhello", 1),
                                        SAID("HTTP/1.1 2", 1),
                                        { 0 } };
  const struct tk_http_ask post = { .path = "/p", .accept = "*/*", .body = "", .len = 0 };

  open_server(script);
  cr_assert_eq(get("/"), TB_OK, "%s", diag.text);
  cr_assert_eq(answer.len, 5);
  cr_assert_eq(tk_http_ask(http, &post, &diag, &answer), TB_IO);
  cr_assert(has_said("the connection was lost"), "%s", diag.text);
  close_server();
  cr_assert_eq(server.n, 3);
}

Test(http_client, an_answer_cut_at_any_byte_is_asked_for_again) {
  static const char whole[] = OK_HEAD "Content-Length: 5\r\n\r\nhello";
  enum { BYTES = sizeof whole - 1 };
  static struct turn script[2 * BYTES + 1];

  for (size_t i = 0; i < BYTES; i++) {
    script[2 * i] = (struct turn){ whole, i, 1 };
    script[2 * i + 1] = (struct turn){ whole, BYTES, 1 };
  }
  open_server(script);
  for (size_t i = 0; i < BYTES; i++) {
    cr_assert_eq(get("/"), TB_OK, "%zu: %s", i, diag.text);
    cr_assert_eq(answer.len, 5, "%zu", i);
    cr_assert_str_eq(answer.type, "application/protobuf", "%zu", i);
  }
  close_server();
  cr_assert_eq(server.connections, 2 * BYTES);
}

Test(http_client, who_ends_each_connection_is_given_up) {
  static const struct turn script[] = { SAID("H", 1), SAID("H", 1), SAID("H", 1),
                                        SAID("H", 1), SAID("H", 1), { 0 } };

  open_server(script);
  cr_assert_eq(get("/"), TB_IO);
  cr_assert(has_said("the connection was lost"), "%s", diag.text);
  close_server();
}

struct bytes {
  size_t n;
  bool wrong;
};

static unsigned char byte_at(size_t at) {
  return (unsigned char)(at * 7 + at / 256);
}

static tb_rc take(void *self, const unsigned char *bytes, size_t n) {
  struct bytes *got = self;

  for (size_t i = 0; i < n; i++, got->n++)
    got->wrong = got->wrong || bytes[i] != byte_at(100 + got->n);
  return TB_OK;
}

/* Each connection delivers a sixteenth more than the one before. */
Test(http_client, a_range_goes_on_where_it_was_cut) {
  static struct turn script[PLACES + 1];
  static char text[PLACES][SEGMENT + 200];
  const size_t piece = SEGMENT / PLACES;
  struct bytes got = { 0 };
  const struct tk_http_ask ask = {
    .path = "/s", .accept = "*/*", .first = 100, .bytes = SEGMENT, .take = take, .self = &got
  };

  for (size_t i = 0; i < PLACES; i++) {
    size_t first = 100 + i * piece, last = 100 + SEGMENT - 1;
    size_t n = (size_t)sprintf(text[i],
                               "HTTP/1.1 206 Partial Content\r\nContent-Length: %zu\r\n"
                               "Content-Range: bytes %zu-%zu/99999\r\n\r\n",
                               last + 1 - first, first, last);
    for (size_t k = 0; k < piece; k++) text[i][n + k] = (char)byte_at(first + k);
    script[i] = (struct turn){ text[i], n + piece, 1 };
  }
  open_server(script);
  tb_diag_clear(&diag);
  cr_assert_eq(tk_http_ask(http, &ask, &diag, &answer), TB_OK, "%s", diag.text);
  close_server();
  cr_assert_eq(got.n, SEGMENT);
  cr_assert_not(got.wrong);
  cr_assert_eq(server.n, PLACES);
  for (size_t i = 0; i < PLACES; i++) {
    char range[64];
    sprintf(range, "\r\nRange: bytes=%zu-%d\r\n", 100 + i * piece, 100 + SEGMENT - 1);
    cr_assert_not_null(strstr(server.heard[i], range), "%zu: %s", i, server.heard[i]);
  }
}

Test(http_client, another_range_than_was_asked_for_is_not_taken) {
  static const struct turn script[] = {
    SAID(OK_HEAD "Content-Length: 3\r\n\r\nabc", 1),
    SAID("HTTP/1.1 206 OK\r\nContent-Length: 3\r\nContent-Range: bytes 0-2/9\r\n\r\nabc", 1),
    SAID("HTTP/1.1 206 OK\r\nContent-Length: 4\r\nContent-Range: bytes 1-4/9\r\n\r\nbcde", 1),
    { 0 },
  };
  struct bytes got = { 0 };
  const struct tk_http_ask ask = {
    .path = "/s", .accept = "*/*", .first = 1, .bytes = 3, .take = take, .self = &got
  };

  open_server(script);
  for (int i = 0; i < 3; i++) {
    tb_diag_clear(&diag);
    cr_assert_eq(tk_http_ask(http, &ask, &diag, &answer), TB_PROTOCOL, "%d: %s", i, diag.text);
    cr_assert_eq(got.n, 0);
  }
  close_server();
}

/* ---- stop ---- */

static void *stop_it(void *self) {
  while (atomic_load(&server.n) == 0) usleep(1000);
  tk_http_stop(http);
  return self;
}

Test(http_client, a_question_is_stopped_from_another_thread) {
  static const struct turn script[] = { SAID("HTTP/1.1 200 OK\r\n", 2), { 0 } };
  pthread_t thread;

  open_server(script);
  cr_assert_eq(pthread_create(&thread, NULL, stop_it, NULL), 0);
  cr_assert_eq(get("/"), TB_END);
  pthread_join(thread, NULL);
  close_server();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* uv_server SERVER CERTS [PORT]: a libuv server whose requests are tasks, live.
 *
 *   cc uv_server.c $(pkg-config --cflags --libs libuv traceagent) -o uv_server
 *   uv_server @tracecollect-data/ready certs 9000 &
 *   printf '20\n30\n' | nc -q1 127.0.0.1 9000
 *   tracectl fetch --service uv-server -o t.trace && go tool trace t.trace
 *
 * A request is a line with a number n; the answer is how many primes there are up to it. The loop's thread reads
 * lines and writes answers, libuv's pool counts. Each request is a task from its line to its written answer, so that
 * Go's tools show how long each took, and what was done for it where. While the loop has nothing to do it waits for
 * the network: the one trick is awake() at the start of every callback, for libuv calls them before it says that the
 * wait is over. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include <traceagent.h>

enum { LINE = 64, NUMBER_MAX = 100000 };

struct client {
  uv_tcp_t tcp;
  char line[LINE];
  size_t length;
  unsigned requests; /* that still need the client */
  bool closed;
};

struct request {
  uv_work_t work;
  uv_write_t write;
  struct client *client;
  ta_task task;
  unsigned long number, primes;
  char answer[LINE];
};

static struct { ta_name request, parse, count, reply, loop, pool; } names;
static uv_loop_t loop;
static uv_tcp_t listener;
static uv_prepare_t before_wait;
static uv_check_t after_wait;
static uv_signal_t on_term;
static bool waits;
static unsigned long answered;

/* The loop's wait. */

static void awake(void) {
  if (waits) ta_wait_end();
  waits = false;
}

static void begin_wait(uv_prepare_t *handle) {
  (void)handle;
  ta_wait_begin(TA_WAIT_POLL);
  waits = true;
}

static void end_wait(uv_check_t *handle) {
  (void)handle;
  awake();
}

/* Clients. */

static void free_if_done(struct client *c) {
  if (c->closed && c->requests == 0) free(c);
}

static void note_closed(uv_handle_t *handle) {
  struct client *c = handle->data;

  awake();
  c->closed = true;
  free_if_done(c);
}

static void hang_up(struct client *c) {
  if (!uv_is_closing((uv_handle_t *)&c->tcp)) uv_close((uv_handle_t *)&c->tcp, note_closed);
}

/* Requests. */

static void end_request(struct request *r) {
  struct client *c = r->client;

  ta_task_end(r->task);
  answered++;
  free(r);
  c->requests--;
  free_if_done(c);
}

static void note_written(uv_write_t *write, int status) {
  struct request *r = write->data;

  awake();
  if (status != 0) hang_up(r->client);
  end_request(r);
}

static void reply(uv_work_t *work, int status) {
  struct request *r = work->data;

  awake();
  (void)status; /* work is not cancelled here */
  ta_region_begin(names.reply, r->task);
  int n = snprintf(r->answer, sizeof r->answer, "%lu\n", r->primes);
  uv_buf_t buffer = uv_buf_init(r->answer, (unsigned)n);
  r->write.data = r;
  bool gone = uv_is_closing((uv_handle_t *)&r->client->tcp) ||
              uv_write(&r->write, (uv_stream_t *)&r->client->tcp, &buffer, 1, note_written) != 0;
  ta_region_end();
  if (gone) end_request(r);
}

static void count_primes(uv_work_t *work) {
  static _Thread_local bool named;
  struct request *r = work->data;

  if (!named) ta_thread_attach(names.pool);
  named = true;
  ta_region_begin(names.count, r->task);
  for (unsigned long n = 2; n <= r->number; n++) {
    bool prime = true;
    for (unsigned long d = 2; d * d <= n && prime; d++) prime = n % d != 0;
    r->primes += prime;
  }
  ta_region_end();
}

/* A line that is no number up to NUMBER_MAX ends the connection. */
static void begin_request(struct client *c) {
  ta_task task = ta_task_begin(names.request, 0);
  struct request *r;
  char *end;

  ta_region_begin(names.parse, task);
  unsigned long number = strtoul(c->line, &end, 10);
  bool good = end != c->line && *end == 0 && number <= NUMBER_MAX;
  ta_region_end();
  if (!good || (r = calloc(1, sizeof *r)) == NULL) {
    ta_task_end(task);
    hang_up(c);
    return;
  }
  r->client = c;
  r->task = task;
  r->number = number;
  r->work.data = r;
  c->requests++;
  uv_queue_work(&loop, &r->work, count_primes, reply);
}

static void give_room(uv_handle_t *handle, size_t suggested, uv_buf_t *out) {
  static char room[4096]; /* bytes are used as soon as they are read */

  awake();
  (void)handle, (void)suggested;
  *out = uv_buf_init(room, sizeof room);
}

static void take_bytes(uv_stream_t *stream, ssize_t n, const uv_buf_t *bytes) {
  struct client *c = stream->data;

  awake();
  if (n < 0) hang_up(c);
  for (ssize_t i = 0; i < n && !uv_is_closing((uv_handle_t *)stream); i++) {
    bool whole = bytes->base[i] == '\n';
    c->line[c->length++] = whole ? 0 : bytes->base[i];
    if (whole) begin_request(c);
    if (whole) c->length = 0;
    if (c->length == LINE) hang_up(c);
  }
}

static void take_client(uv_stream_t *server, int status) {
  struct client *c;

  awake();
  if (status != 0 || (c = calloc(1, sizeof *c)) == NULL) return;
  uv_tcp_init(&loop, &c->tcp);
  c->tcp.data = c;
  if (uv_accept(server, (uv_stream_t *)&c->tcp) != 0 ||
      uv_read_start((uv_stream_t *)&c->tcp, give_room, take_bytes) != 0)
    hang_up(c);
}

/* The server. */

static void close_any(uv_handle_t *handle, void *arg) {
  (void)arg;
  if (handle->data != NULL)
    hang_up(handle->data);
  else if (!uv_is_closing(handle))
    uv_close(handle, NULL);
}

static void stop(uv_signal_t *handle, int number) {
  awake();
  (void)handle, (void)number;
  uv_walk(&loop, close_any, NULL);
}

static int serve(int port) {
  struct sockaddr_in at;
  int n = sizeof at, error;

  uv_loop_init(&loop);
  uv_tcp_init(&loop, &listener);
  uv_prepare_init(&loop, &before_wait);
  uv_check_init(&loop, &after_wait);
  uv_signal_init(&loop, &on_term);
  uv_prepare_start(&before_wait, begin_wait);
  uv_check_start(&after_wait, end_wait);
  uv_signal_start(&on_term, stop, SIGTERM);
  uv_ip4_addr("127.0.0.1", port, &at);
  if ((error = uv_tcp_bind(&listener, (struct sockaddr *)&at, 0)) != 0 ||
      (error = uv_listen((uv_stream_t *)&listener, 128, take_client)) != 0 ||
      (error = uv_tcp_getsockname(&listener, (struct sockaddr *)&at, &n)) != 0)
    return error;
  printf("127.0.0.1:%d\n", ntohs(at.sin_port));
  fflush(stdout);
  uv_run(&loop, UV_RUN_DEFAULT);
  return uv_loop_close(&loop);
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: uv_server SERVER CERTS [PORT]\n");
    return 2;
  }
  struct ta_forward_config where = { .server = argv[1], .certs = argv[2], .service = "uv-server" };
  int traced = ta_emit_start(&where, NULL);
  if (traced != TA_OK) fprintf(stderr, "uv_server: untraced: %s\n", ta_strerror(traced));
  names.request = ta_name_of("request"), names.parse = ta_name_of("parse");
  names.count = ta_name_of("count"), names.reply = ta_name_of("reply");
  names.loop = ta_name_of("loop"), names.pool = ta_name_of("pool");
  ta_thread_attach(names.loop);
  int error = serve(argc > 3 ? atoi(argv[3]) : 0);
  if (error != 0) fprintf(stderr, "uv_server: %s\n", uv_strerror(error));
  fprintf(stderr, "%lu requests\n", answered);
  if (traced == TA_OK && (traced = ta_emit_stop(10000)) != TA_OK)
    fprintf(stderr, "uv_server: %s\n", ta_strerror(traced));
  return error != 0;
}

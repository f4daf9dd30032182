/* SPDX-License-Identifier: Apache-2.0 */
/* A TCP proxy that injects faults.
 *
 *     fault_proxy UPSTREAM SEED [KIND:MIN-MAX[:ARG]]...        UPSTREAM is HOST:PORT with a numeric host
 *
 * Listens on 127.0.0.1 and prints "listening HOST:PORT". Each direction of each connection draws, for each fault
 * named, how many bytes it carries until that fault strikes, between MIN and MAX, anew after each strike; seed,
 * number of the connection and direction decide, so a run can be had again.
 *
 *     cut       both sides see the connection end (FIN)
 *     reset     both sides see it reset (RST)
 *     stall     the direction rests ARG milliseconds
 *     drip      the next ARG bytes go in segments of one byte
 *     swallow   from here on the connection takes everything and delivers nothing, either way
 *     delay     every byte comes ARG milliseconds late (MIN and MAX mean nothing)
 *
 * Commands on stdin, one a line: "cut", "reset" and "swallow" strike every open connection, "refuse" and "accept"
 * say what new ones find, "count" prints "connections N cuts N bytes N". The end of stdin ends the proxy. */
#include <assert.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

enum kind { CUT, RESET, STALL, DRIP, SWALLOW, DELAY, KINDS };

static const char *const kind_names[KINDS] = {
  "cut", "reset", "stall", "drip", "swallow", "delay"
};

enum { QUEUED_MAX = 256 << 10 };

struct fault {
  bool set;
  uint64_t min, max, arg;
};

struct chunk {
  struct chunk *next;
  uint64_t due_ms;
  size_t n;
  char bytes[];
};

struct pump {
  struct link *link;
  uv_tcp_t *from, *to;
  uint64_t random;
  uint64_t left[KINDS]; /* bytes until the fault strikes */
  uint64_t dripping, resting_until_ms;
  struct chunk *head, **tail;
  size_t queued;
  unsigned writing;
  uv_timer_t timer;
  bool ended; /* `from` has ended its side */
};

struct link {
  struct link *next, **at;
  uv_tcp_t client, server;
  struct pump up, down;
  unsigned handles; /* to be closed */
  bool closing, swallowing;
};

static struct {
  uv_loop_t *loop;
  uv_tcp_t listener;
  uv_pipe_t control;
  struct sockaddr_in upstream;
  uint64_t seed;
  struct fault faults[KINDS];
  struct link *links;
  uint64_t connections, cuts, bytes;
  bool refusing;
  char line[256];
  size_t nline;
} proxy;

static uint64_t draw(struct pump *p, enum kind kind) {
  const struct fault *fault = &proxy.faults[kind];

  p->random ^= p->random << 13;
  p->random ^= p->random >> 7;
  p->random ^= p->random << 17;
  return fault->min + p->random % (fault->max - fault->min + 1);
}

/* ---- ending a connection */

static void on_closed(uv_handle_t *handle) {
  struct link *link = handle->data;

  if (--link->handles > 0) return;
  for (int i = 0; i < 2; i++) {
    struct pump *p = i == 0 ? &link->up : &link->down;
    for (struct chunk *chunk = p->head, *next; chunk != NULL; chunk = next) {
      next = chunk->next;
      free(chunk);
    }
  }
  *link->at = link->next;
  if (link->next != NULL) link->next->at = link->at;
  free(link);
}

static void close_socket(uv_tcp_t *socket, bool reset) {
  uv_read_stop((uv_stream_t *)socket);
  /* A socket that was shut down, or is not connected yet, cannot be reset. */
  if (!reset || uv_tcp_close_reset(socket, on_closed) != 0)
    uv_close((uv_handle_t *)socket, on_closed);
}

static void end_link(struct link *link, bool reset) {
  if (link->closing) return;
  link->closing = true;
  close_socket(&link->client, reset);
  close_socket(&link->server, reset);
  uv_close((uv_handle_t *)&link->up.timer, on_closed);
  uv_close((uv_handle_t *)&link->down.timer, on_closed);
}

/* ---- carrying bytes */

static void drain(struct pump *p);
static void on_bytes(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf);

static void on_room(uv_handle_t *handle, size_t wanted, uv_buf_t *buf) {
  static char room[64 << 10]; /* one reader at a time: the loop's */

  (void)handle;
  (void)wanted;
  *buf = uv_buf_init(room, sizeof room);
}

struct writing {
  uv_write_t req;
  struct pump *pump;
  struct chunk *chunk;
};

static void on_written(uv_write_t *req, int status) {
  struct writing *writing = (struct writing *)req;
  struct pump *p = writing->pump;

  p->queued -= writing->chunk->n;
  p->writing--;
  free(writing->chunk);
  free(writing);
  if (p->link->closing) return;
  if (status != 0) {
    end_link(p->link, true);
    return;
  }
  if (p->queued < QUEUED_MAX && !p->ended) uv_read_start((uv_stream_t *)p->from, on_room, on_bytes);
  drain(p);
}

static void on_due(uv_timer_t *timer) {
  drain((struct pump *)((char *)timer - offsetof(struct pump, timer)));
}

static void deliver(struct pump *p, struct chunk *chunk) {
  struct writing *writing = malloc(sizeof *writing);
  uv_buf_t buf = uv_buf_init(chunk->bytes, (unsigned)chunk->n);

  if (writing == NULL) abort();
  *writing = (struct writing){ .pump = p, .chunk = chunk };
  p->writing++;
  if (uv_write(&writing->req, (uv_stream_t *)p->to, &buf, 1, on_written) == 0) return;
  p->writing--;
  p->queued -= chunk->n;
  free(chunk);
  free(writing);
  end_link(p->link, true);
}

static void on_shut(uv_shutdown_t *req, int status) {
  (void)status; /* ignored: the link ends when the other side has ended */
  free(req);
}

/* Passes the end on, once all bytes were delivered. */
static void pass_end(struct pump *p) {
  struct pump *other = p == &p->link->up ? &p->link->down : &p->link->up;
  uv_shutdown_t *req = malloc(sizeof *req);

  if (req != NULL && uv_shutdown(req, (uv_stream_t *)p->to, on_shut) != 0) free(req);
  if (other->ended && other->queued == 0) end_link(p->link, false);
}

static void drain(struct pump *p) {
  uint64_t now = uv_now(proxy.loop);

  while (p->head != NULL && p->head->due_ms <= now && !p->link->closing) {
    struct chunk *chunk = p->head;
    p->head = chunk->next;
    if (p->head == NULL) p->tail = &p->head;
    deliver(p, chunk);
  }
  if (p->link->closing) return;
  if (p->head != NULL) uv_timer_start(&p->timer, on_due, p->head->due_ms - now, 0);
  if (p->ended && p->queued == 0) pass_end(p);
}

static void queue(struct pump *p, const char *bytes, size_t n) {
  uint64_t due = uv_now(proxy.loop) + (proxy.faults[DELAY].set ? proxy.faults[DELAY].arg : 0);
  struct chunk *chunk = malloc(sizeof *chunk + n);

  if (chunk == NULL) abort();
  *chunk =
      (struct chunk){ .due_ms = due > p->resting_until_ms ? due : p->resting_until_ms, .n = n };
  memcpy(chunk->bytes, bytes, n);
  *p->tail = chunk;
  p->tail = &chunk->next;
  p->queued += n;
  proxy.bytes += n;
}

/* Returns how many of n bytes pass before the next fault; *out is its kind, KINDS if no fault
 * strikes. */
static size_t until_fault(const struct pump *p, size_t n, enum kind *out) {
  size_t best = n;

  *out = KINDS;
  for (enum kind kind = 0; kind < DELAY; kind++)
    if (proxy.faults[kind].set && p->left[kind] < best) {
      best = (size_t)p->left[kind];
      *out = kind;
    }
  return best;
}

static void strike(struct pump *p, enum kind kind) {
  p->left[kind] = draw(p, kind);
  switch (kind) {
  case CUT:
  case RESET:
    proxy.cuts++;
    end_link(p->link, kind == RESET);
    break;
  case STALL: p->resting_until_ms = uv_now(proxy.loop) + proxy.faults[STALL].arg; break;
  case DRIP: p->dripping = proxy.faults[DRIP].arg; break;
  case SWALLOW: p->link->swallowing = true; break;
  default: break;
  }
}

static void carry(struct pump *p, const char *bytes, size_t n) {
  while (n > 0 && !p->link->closing && !p->link->swallowing) {
    enum kind kind;
    size_t here = until_fault(p, n, &kind);
    for (size_t at = 0, step; at < here; at += step) {
      step = p->dripping > 0 ? 1 : here - at;
      if (p->dripping > 0) p->dripping--;
      queue(p, bytes + at, step);
    }
    for (int i = 0; i < KINDS; i++) p->left[i] -= p->left[i] < here ? p->left[i] : here;
    bytes += here;
    n -= here;
    if (kind != KINDS) {
      drain(p); /* send the bytes before the fault */
      if (!p->link->closing) strike(p, kind);
    }
  }
  if (!p->link->closing && !p->link->swallowing) drain(p);
}

static void on_bytes(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
  struct link *link = stream->data;
  struct pump *p = stream == (uv_stream_t *)&link->client ? &link->up : &link->down;

  if (link->swallowing && n != UV_EOF && n >= 0) return;
  if (n == UV_EOF) {
    p->ended = true;
    uv_read_stop(stream);
    if (link->swallowing)
      end_link(link, false);
    else
      drain(p);
  } else if (n < 0) {
    end_link(link, true);
  } else if (n > 0) {
    carry(p, buf->base, (size_t)n);
    if (p->queued >= QUEUED_MAX && !link->closing) uv_read_stop(stream);
  }
}

/* ---- connections */

static void on_connected(uv_connect_t *req, int status) {
  struct link *link = req->data;

  free(req);
  if (link->closing) return;
  if (status != 0) {
    end_link(link, true);
    return;
  }
  uv_read_start((uv_stream_t *)&link->client, on_room, on_bytes);
  uv_read_start((uv_stream_t *)&link->server, on_room, on_bytes);
}

static void init_pump(struct link *link, struct pump *p, uv_tcp_t *from, uv_tcp_t *to,
                      uint64_t salt) {
  *p = (struct pump){ .link = link, .from = from, .to = to, .tail = &p->head };
  p->random =
      (proxy.seed + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ (salt * UINT64_C(0xbf58476d1ce4e5b9) + 1);
  for (enum kind kind = 0; kind < KINDS; kind++)
    if (proxy.faults[kind].set) p->left[kind] = draw(p, kind);
  uv_timer_init(proxy.loop, &p->timer);
  p->timer.data = link;
}

static void on_connection(uv_stream_t *listener, int status) {
  struct link *link = calloc(1, sizeof *link);
  uv_connect_t *connect = malloc(sizeof *connect);

  if (status != 0 || link == NULL || connect == NULL) abort();
  link->handles = 4;
  link->next = proxy.links;
  if (link->next != NULL) link->next->at = &link->next;
  link->at = &proxy.links;
  proxy.links = link;
  uv_tcp_init(proxy.loop, &link->client);
  uv_tcp_init(proxy.loop, &link->server);
  link->client.data = link->server.data = connect->data = link;
  proxy.connections++;
  init_pump(link, &link->up, &link->client, &link->server, 2 * proxy.connections);
  init_pump(link, &link->down, &link->server, &link->client, 2 * proxy.connections + 1);
  if (uv_accept(listener, (uv_stream_t *)&link->client) != 0) abort();
  uv_tcp_nodelay(&link->client, 1);
  uv_tcp_nodelay(&link->server, 1);
  if (proxy.refusing ||
      uv_tcp_connect(connect, &link->server, (const struct sockaddr *)&proxy.upstream,
                     on_connected) != 0) {
    free(connect);
    end_link(link, true);
  }
}

/* ---- commands */

static void obey(const char *line) {
  if (strcmp(line, "refuse") == 0 || strcmp(line, "accept") == 0) {
    proxy.refusing = *line == 'r';
  } else if (strcmp(line, "count") == 0) {
    printf("connections %" PRIu64 " cuts %" PRIu64 " bytes %" PRIu64 "\n", proxy.connections,
           proxy.cuts, proxy.bytes);
    fflush(stdout);
  } else {
    for (enum kind kind = 0; kind < KINDS; kind++)
      for (struct link *link = proxy.links; strcmp(line, kind_names[kind]) == 0 && link != NULL;
           link = link->next)
        if (!link->closing) strike(&link->up, kind);
  }
}

static void on_command(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
  (void)stream;
  if (n < 0) exit(0);
  for (ssize_t i = 0; i < n; i++) {
    if (buf->base[i] != '\n') {
      if (proxy.nline + 1 < sizeof proxy.line) proxy.line[proxy.nline++] = buf->base[i];
      continue;
    }
    proxy.line[proxy.nline] = '\0';
    proxy.nline = 0;
    obey(proxy.line);
  }
}

/* "stall:1000-90000:250" */
static bool parse_fault(const char *text) {
  for (enum kind kind = 0; kind < KINDS; kind++) {
    struct fault *fault = &proxy.faults[kind];
    size_t n = strlen(kind_names[kind]);
    if (strncmp(text, kind_names[kind], n) != 0 || text[n] != ':') continue;
    int got = sscanf(text + n, ":%" SCNu64 "-%" SCNu64 ":%" SCNu64, &fault->min, &fault->max,
                     &fault->arg);
    fault->set = got >= 2 && fault->min <= fault->max && fault->max < UINT64_MAX;
    return fault->set;
  }
  return false;
}

static bool parse(int argc, char **argv) {
  char host[64];
  int port;

  if (argc < 3 || sscanf(argv[1], "%63[^:]:%d", host, &port) != 2 ||
      uv_ip4_addr(host, port, &proxy.upstream) != 0)
    return false;
  proxy.seed = strtoull(argv[2], NULL, 10);
  for (int i = 3; i < argc; i++)
    if (!parse_fault(argv[i])) return false;
  return true;
}

int main(int argc, char **argv) {
  struct sockaddr_in address;
  int len = sizeof address;

  if (!parse(argc, argv)) {
    fprintf(stderr, "usage: fault_proxy HOST:PORT SEED [KIND:MIN-MAX[:ARG]]...\n");
    return 2;
  }
  signal(SIGPIPE, SIG_IGN); /* libuv does not ignore it; peers reset their ends here */
  proxy.loop = uv_default_loop();
  uv_ip4_addr("127.0.0.1", 0, &address);
  uv_tcp_init(proxy.loop, &proxy.listener);
  if (uv_tcp_bind(&proxy.listener, (const struct sockaddr *)&address, 0) != 0 ||
      uv_listen((uv_stream_t *)&proxy.listener, 64, on_connection) != 0 ||
      uv_tcp_getsockname(&proxy.listener, (struct sockaddr *)&address, &len) != 0)
    return 1;
  uv_pipe_init(proxy.loop, &proxy.control, 0);
  if (uv_pipe_open(&proxy.control, 0) == 0)
    uv_read_start((uv_stream_t *)&proxy.control, on_room, on_command);
  printf("listening 127.0.0.1:%d\n", ntohs(address.sin_port));
  fflush(stdout);
  return uv_run(proxy.loop, UV_RUN_DEFAULT);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/scripted_collector.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "proto/frame.h"
#include "proto/frame.pb-c.h"
#include "tests/support/patience.h"

enum { DEFAULT_CREDIT = 4 << 20, DEFAULT_HEARTBEAT_MS = 5000, TURN_MS = 10, DRAIN_MS = 1000 };

struct bytes {
  unsigned char *data;
  size_t n, cap;
};

struct tt_collector {
  char certs[1024], address[32];
  int port, listen_fd, wake_fd;
  int hold_fd; /* bound only: while nobody listens the port is nobody else's */
  pthread_t thread;
  atomic_bool stop, down, is_down;

  pthread_mutex_t lock; /* of what follows */
  pthread_cond_t changed;
  struct tt_collector_rules rules;
  struct tt_collector_seen seen;
  struct bytes trace, open; /* open: of the generation that has not ended */
  uint64_t seq;             /* durable */

  /* the connection, the thread's own */
  SSL *ssl;
  int fd;
  struct bytes in;
  bool greeted;
  uint64_t on_connection, received_bytes, credit_mark, acked_bytes;
  uint64_t gen, gen_batches, gen_bytes;
  uint32_t gen_crc;
  uint64_t beat_ms;
};

static uint64_t now_ms(void) {
  struct timespec t;

  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void bytes_add(struct bytes *b, const void *data, size_t n) {
  if (b->n + n > b->cap) {
    b->cap = (b->n + n) * 2;
    b->data = realloc(b->data, b->cap);
  }
  if (n > 0) memcpy(b->data + b->n, data, n);
  b->n += n;
}

/* Call with the lock held. Ends the connection. */
static bool breach(struct tt_collector *p, const char *fmt, ...) {
  va_list args;

  va_start(args, fmt);
  if (p->seen.breach[0] == 0) vsnprintf(p->seen.breach, sizeof p->seen.breach, fmt, args);
  va_end(args);
  return false;
}

/* Sending. */

static bool say(struct tt_collector *p, enum tp_kind kind, const ProtobufCMessage *message) {
  unsigned char bytes[TP_HEADER_BYTES + 4096];
  size_t n = protobuf_c_message_pack(message, bytes + TP_HEADER_BYTES);
  struct tp_frame frame = { .kind = kind, .payload = bytes + TP_HEADER_BYTES, .len = (uint32_t)n };

  tp_frame_head(&frame, bytes);
  return SSL_write(p->ssl, bytes, (int)(TP_HEADER_BYTES + n)) > 0;
}

static uint64_t window(const struct tt_collector *p) {
  return p->rules.credit_bytes != 0 ? p->rules.credit_bytes : DEFAULT_CREDIT;
}

static unsigned heartbeat_ms(const struct tt_collector *p) {
  return p->rules.heartbeat_ms != 0 ? p->rules.heartbeat_ms : DEFAULT_HEARTBEAT_MS;
}

static bool say_ack(struct tt_collector *p) {
  Tracecollect__V1__Ack ack = TRACECOLLECT__V1__ACK__INIT;

  if (p->rules.no_acks || p->rules.mute) return true;
  p->acked_bytes = p->received_bytes;
  p->credit_mark = p->received_bytes + window(p);
  ack.durable_seq = p->seq + p->rules.ack_ahead;
  ack.credit_bytes = p->credit_mark;
  return say(p, TP_ACK, &ack.base);
}

static bool say_refuse(struct tt_collector *p) {
  Tracecollect__V1__Refuse refuse = TRACECOLLECT__V1__REFUSE__INIT;

  refuse.code = (Tracecollect__V1__RefuseCode)p->rules.refuse_code;
  refuse.permanent = p->rules.refuse_permanent;
  refuse.reason = (char[]){ "the test wants it" };
  say(p, TP_REFUSE, &refuse.base);
  return false;
}

/* Receiving. */

/* A different stream than before starts with empty state. */
static void begin_stream(struct tt_collector *p, const unsigned char *id) {
  char text[33];

  for (size_t i = 0; i < 16; i++) snprintf(text + 2 * i, 3, "%02x", id[i]);
  if (strcmp(text, p->seen.stream) == 0) return;
  p->seen = (struct tt_collector_seen){ .connections = p->seen.connections };
  memcpy(p->seen.stream, text, sizeof text);
  p->trace.n = p->open.n = 0;
  p->seq = p->gen = 0;
}

static bool on_hello(struct tt_collector *p, const struct tp_frame *frame) {
  Tracecollect__V1__Welcome welcome = TRACECOLLECT__V1__WELCOME__INIT;
  Tracecollect__V1__Hello *hello =
      tracecollect__v1__hello__unpack(NULL, frame->len, frame->payload);

  if (hello == NULL || hello->stream.len != 16 || hello->major != 1)
    return breach(p, "HELLO cannot be read");
  begin_stream(p, hello->stream.data);
  snprintf(p->seen.service, sizeof p->seen.service, "%s", hello->service);
  snprintf(p->seen.instance, sizeof p->seen.instance, "%s", hello->instance);
  tracecollect__v1__hello__free_unpacked(hello, NULL);
  if (p->rules.refuse_code != 0) return say_refuse(p);
  p->greeted = true;
  p->seen.connections++;
  p->credit_mark = window(p);
  welcome.major = 1;
  welcome.durable_seq = p->rules.forget ? 0 : p->seq;
  welcome.credit_bytes = p->credit_mark;
  welcome.heartbeat_ms = heartbeat_ms(p);
  welcome.level = (char[]){ "durable" };
  return say(p, TP_WELCOME, &welcome.base);
}

static bool on_batch(struct tt_collector *p, const struct tp_frame *frame) {
  unsigned char crc[4];

  if (p->gen == 0) {
    p->gen = frame->gen;
    p->gen_batches = p->gen_bytes = p->gen_crc = 0;
  }
  if (frame->gen != p->gen || frame->gen == 0)
    return breach(p, "BATCH of generation %" PRIu64 " inside %" PRIu64, frame->gen, p->gen);
  for (int i = 0; i < 4; i++) crc[i] = (unsigned char)(frame->payload_crc >> 8 * i);
  p->gen_crc = tb_crc32c(p->gen_crc, crc, sizeof crc);
  p->gen_batches++;
  p->gen_bytes += frame->len;
  p->seen.batches++;
  p->seen.batch_bytes += frame->len;
  bytes_add(&p->open, frame->payload, frame->len);
  return true;
}

static bool on_genend(struct tt_collector *p, const struct tp_frame *frame) {
  Tracecollect__V1__GenerationEnd *end =
      tracecollect__v1__generation_end__unpack(NULL, frame->len, frame->payload);

  if (end == NULL) return breach(p, "GENEND cannot be read");
  bool fits = frame->gen == p->gen && end->batches == p->gen_batches &&
              end->bytes == p->gen_bytes && end->crc == p->gen_crc;
  tracecollect__v1__generation_end__free_unpacked(end, NULL);
  if (!fits) return breach(p, "GENEND of generation %" PRIu64 " does not fit", frame->gen);
  bytes_add(&p->trace, p->open.data, p->open.n);
  p->open.n = 0;
  p->gen = 0;
  p->seen.generations++;
  return true;
}

static bool on_loss(struct tt_collector *p, const struct tp_frame *frame) {
  Tracecollect__V1__Loss *loss = tracecollect__v1__loss__unpack(NULL, frame->len, frame->payload);

  if (loss == NULL) return breach(p, "LOSS cannot be read");
  if (loss->sent_batches != (p->gen == 0 ? 0 : p->gen_batches))
    breach(p, "LOSS says %" PRIu64 " batches of generation %" PRIu64 " were sent, %" PRIu64 " came",
           loss->sent_batches, loss->first_gen, p->gen_batches);
  if (p->seen.n_losses < TT_COLLECTOR_LOSSES)
    p->seen.losses[p->seen.n_losses++] = (struct tt_collector_loss){
      frame->seq,  loss->first_gen,    loss->last_gen,   loss->batches,
      loss->bytes, loss->sent_batches, loss->sent_bytes, (int)loss->reason,
    };
  tracecollect__v1__loss__free_unpacked(loss, NULL);
  p->open.n = 0;
  p->gen = 0;
  return true;
}

static bool on_close(struct tt_collector *p, const struct tp_frame *frame) {
  Tracecollect__V1__Close *done = tracecollect__v1__close__unpack(NULL, frame->len, frame->payload);

  if (done == NULL || done->counters == NULL) return breach(p, "CLOSE cannot be read");
  p->seen.closed = true;
  p->seen.closed_produced_batches = done->counters->produced_batches;
  p->seen.closed_lost_batches = done->counters->lost_batches;
  tracecollect__v1__close__free_unpacked(done, NULL);
  return true;
}

static bool store(struct tt_collector *p, const struct tp_frame *frame) {
  switch (frame->kind) {
  case TP_HEADER: bytes_add(&p->trace, frame->payload, frame->len); return true;
  case TP_BATCH: return on_batch(p, frame);
  case TP_GENEND: return on_genend(p, frame);
  case TP_LOSS: return on_loss(p, frame);
  case TP_CLOSE: return on_close(p, frame);
  default: return breach(p, "record of kind %u", (unsigned)frame->kind);
  }
}

static bool on_record(struct tt_collector *p, const struct tp_frame *frame) {
  Tracecollect__V1__Goaway goaway = TRACECOLLECT__V1__GOAWAY__INIT;

  p->received_bytes += TP_HEADER_BYTES + frame->len;
  if (p->received_bytes > p->credit_mark)
    return breach(p, "%" PRIu64 " record bytes came, credit was %" PRIu64, p->received_bytes,
                  p->credit_mark);
  if (p->received_bytes - p->acked_bytes > p->seen.max_on_the_way)
    p->seen.max_on_the_way = p->received_bytes - p->acked_bytes;
  p->on_connection++;
  if (p->rules.hang_up_after != 0 && p->on_connection >= p->rules.hang_up_after) return false;
  if (frame->seq > p->seq + 1)
    return breach(p, "record %" PRIu64 " after %" PRIu64, frame->seq, p->seq);
  if (frame->seq <= p->seq) {
    p->seen.resent++;
  } else {
    if (!store(p, frame)) return false;
    p->seq = frame->seq;
    p->seen.records++;
  }
  if (p->rules.goaway_wait_ms != 0) {
    goaway.reason = (char[]){ "shutdown" };
    goaway.wait_ms = p->rules.goaway_wait_ms;
    p->rules.goaway_wait_ms = 0;
    say(p, TP_GOAWAY, &goaway.base);
    say_ack(p);
    return false;
  }
  return true;
}

static bool on_frame(struct tt_collector *p, const struct tp_frame *frame) {
  if (!p->greeted)
    return frame->kind == TP_HELLO ? on_hello(p, frame) : breach(p, "no HELLO first");
  if (tp_kind_is_record(frame->kind)) return on_record(p, frame);
  return frame->kind == TP_HEARTBEAT || breach(p, "frame of kind %u", (unsigned)frame->kind);
}

static bool take_frames(struct tt_collector *p) {
  struct tb_diag diag;
  struct tp_frame frame;
  size_t at = 0, used, need;
  bool records = false;
  tb_rc rc;

  tb_diag_clear(&diag);
  while ((rc = tp_frame_take(p->in.data + at, p->in.n - at, &diag, &frame, &used, &need)) ==
         TB_OK) {
    if (!on_frame(p, &frame)) return false;
    records |= tp_kind_is_record(frame.kind);
    at += used;
  }
  if (rc != TB_AGAIN) return breach(p, "%s", diag.text);
  memmove(p->in.data, p->in.data + at, p->in.n - at);
  p->in.n -= at;
  return !records || say_ack(p);
}

/* The connection. */

static int pick_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                     const unsigned char *in, unsigned in_len, void *self) {
  static const unsigned char ours[] = "\x0e" TP_ALPN;

  (void)ssl;
  (void)self;
  int picked = SSL_select_next_proto((unsigned char **)(uintptr_t)out, out_len, ours,
                                     sizeof ours - 1, in, in_len);
  return picked == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

static SSL *secure(struct tt_collector *p, const struct tt_collector_rules *rules) {
  const char *dir = rules->certs != NULL ? rules->certs : p->certs;
  SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
  char path[1100];

  SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION);
  SSL_CTX_set_num_tickets(ctx, 0);
  SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_AUTO_RETRY);
  SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
  if (!rules->no_alpn) SSL_CTX_set_alpn_select_cb(ctx, pick_alpn, NULL);
  snprintf(path, sizeof path, "%s/ca.pem", dir);
  bool ok = SSL_CTX_load_verify_file(ctx, path) == 1;
  snprintf(path, sizeof path, "%s/server.pem", dir);
  ok = ok && SSL_CTX_use_certificate_chain_file(ctx, path) == 1;
  snprintf(path, sizeof path, "%s/server.key", dir);
  ok = ok && SSL_CTX_use_PrivateKey_file(ctx, path, SSL_FILETYPE_PEM) == 1;
  SSL *ssl = ok ? SSL_new(ctx) : NULL;
  SSL_CTX_free(ctx);
  return ssl;
}

static bool readable(struct tt_collector *p, int fd) {
  struct pollfd fds[2] = { { .fd = fd, .events = POLLIN }, { .fd = p->wake_fd, .events = POLLIN } };

  return poll(fds, 2, TURN_MS) > 0 && fds[0].revents != 0;
}

static struct tt_collector_rules rules_now(struct tt_collector *p) {
  pthread_mutex_lock(&p->lock);
  struct tt_collector_rules rules = p->rules;
  pthread_mutex_unlock(&p->lock);
  return rules;
}

/* Judges and answers the bytes that were read, under the lock. */
static bool hear(struct tt_collector *p, const unsigned char *bytes, int n) {
  Tracecollect__V1__Heartbeat beat = TRACECOLLECT__V1__HEARTBEAT__INIT;
  bool go_on = true;

  pthread_mutex_lock(&p->lock);
  if (n > 0) {
    bytes_add(&p->in, bytes, (size_t)n);
    go_on = take_frames(p);
  }
  if (p->greeted && p->credit_mark < p->received_bytes + window(p) && n <= 0) go_on = say_ack(p);
  if (go_on && p->greeted && !p->rules.mute && now_ms() >= p->beat_ms) {
    p->beat_ms = now_ms() + heartbeat_ms(p) / 2;
    go_on = say(p, TP_HEARTBEAT, &beat.base);
  }
  pthread_cond_broadcast(&p->changed);
  pthread_mutex_unlock(&p->lock);
  return go_on;
}

static void converse(struct tt_collector *p) {
  unsigned char bytes[64 << 10];

  while (!p->stop && !p->down) {
    bool deaf = p->greeted && rules_now(p).deaf;
    int n = 0;
    if (deaf || (SSL_pending(p->ssl) == 0 && !readable(p, p->fd))) {
      if (deaf) poll(NULL, 0, TURN_MS);
    } else {
      n = SSL_read(p->ssl, bytes, sizeof bytes);
      if (n <= 0 && SSL_get_error(p->ssl, n) != SSL_ERROR_WANT_READ) return;
    }
    if (!deaf && !hear(p, bytes, n)) return;
  }
}

/* Closing with unread bytes would reset the connection, and lose the last frames sent. */
static void drain(struct tt_collector *p) {
  char bytes[4096];

  shutdown(p->fd, SHUT_WR);
  for (uint64_t began = now_ms();
       now_ms() - began < (uint64_t)(p->stop ? DRAIN_MS : TT_PATIENCE_MS);) {
    struct pollfd one = { .fd = p->fd, .events = POLLIN };
    if (poll(&one, 1, TURN_MS) > 0 && read(p->fd, bytes, sizeof bytes) <= 0) return;
  }
}

static void serve(struct tt_collector *p) {
  struct tt_collector_rules rules = rules_now(p);

  p->in.n = 0;
  p->greeted = false;
  p->on_connection = p->received_bytes = p->acked_bytes = p->credit_mark = 0;
  p->beat_ms = now_ms();
  p->ssl = secure(p, &rules);
  if (p->ssl == NULL) return;
  struct timeval patience = { .tv_sec = TT_PATIENCE_S };
  setsockopt(p->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(p->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  SSL_set_fd(p->ssl, p->fd);
  if (SSL_accept(p->ssl) == 1) {
    converse(p);
    SSL_shutdown(p->ssl);
  }
  drain(p);
  ERR_clear_error();
  SSL_free(p->ssl);
  p->ssl = NULL;
}

static int bind_to(int port) {
  struct sockaddr_in at = { .sin_family = AF_INET,
                            .sin_port = htons((uint16_t)port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd, (struct sockaddr *)&at, sizeof at) == 0) return fd;
  fprintf(stderr, "test peer: cannot bind to port %d: %s\n", port, strerror(errno));
  exit(1);
}

static int listen_on(int port) {
  int fd = bind_to(port);

  if (listen(fd, 16) == 0) return fd;
  fprintf(stderr, "test peer: cannot listen on port %d: %s\n", port, strerror(errno));
  exit(1);
}

static void *thread_main(void *self) {
  struct tt_collector *p = self;
  sigset_t pipe;

  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE); /* for this thread only: the agent's must show */
  pthread_sigmask(SIG_BLOCK, &pipe, NULL);
  while (!p->stop) {
    if (p->down && p->listen_fd >= 0) {
      close(p->listen_fd);
      p->listen_fd = -1;
    }
    if (!p->down && p->listen_fd < 0) p->listen_fd = listen_on(p->port);
    p->is_down =
        p->listen_fd < 0; /* before a connection is served, which may last until the next down */
    if (!readable(p, p->listen_fd)) continue;
    p->fd = accept4(p->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    if (p->fd < 0) continue;
    serve(p);
    close(p->fd);
  }
  if (p->listen_fd >= 0) close(p->listen_fd);
  return NULL;
}

/* The test's side. */

struct tt_collector *tt_collector_new(const char *certs, int port) {
  struct tt_collector *p = calloc(1, sizeof *p);
  struct sockaddr_in at;
  socklen_t len = sizeof at;

  snprintf(p->certs, sizeof p->certs, "%s", certs);
  p->hold_fd = bind_to(port);
  getsockname(p->hold_fd, (struct sockaddr *)&at, &len);
  p->port = ntohs(at.sin_port);
  p->listen_fd = listen_on(p->port);
  snprintf(p->address, sizeof p->address, "127.0.0.1:%d", p->port);
  p->wake_fd = eventfd(0, EFD_CLOEXEC);
  pthread_mutex_init(&p->lock, NULL);
  pthread_condattr_t attr;
  pthread_condattr_init(&attr);
  pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  pthread_cond_init(&p->changed, &attr);
  pthread_condattr_destroy(&attr);
  pthread_create(&p->thread, NULL, thread_main, p);
  return p;
}

void tt_collector_free(struct tt_collector *p) {
  if (p == NULL) return;
  p->stop = true;
  ssize_t n = write(p->wake_fd, &(uint64_t){ 1 }, sizeof(uint64_t));
  (void)n;
  pthread_join(p->thread, NULL);
  close(p->wake_fd);
  close(p->hold_fd);
  free(p->trace.data);
  free(p->open.data);
  free(p->in.data);
  pthread_cond_destroy(&p->changed);
  pthread_mutex_destroy(&p->lock);
  free(p);
}

int tt_collector_port(const struct tt_collector *p) {
  return p->port;
}
const char *tt_collector_address(const struct tt_collector *p) {
  return p->address;
}

void tt_collector_rule(struct tt_collector *p, struct tt_collector_rules rules) {
  pthread_mutex_lock(&p->lock);
  p->rules = rules;
  pthread_mutex_unlock(&p->lock);
}

void tt_collector_down(struct tt_collector *p) {
  p->down = true;
  while (!p->is_down) poll(NULL, 0, 1);
}
void tt_collector_up(struct tt_collector *p) {
  p->down = false;
}

void tt_collector_seen(struct tt_collector *p, struct tt_collector_seen *out) {
  pthread_mutex_lock(&p->lock);
  *out = p->seen;
  pthread_mutex_unlock(&p->lock);
}

size_t tt_collector_trace(struct tt_collector *p, unsigned char **out) {
  pthread_mutex_lock(&p->lock);
  size_t n = p->trace.n;
  *out = malloc(n + 1);
  if (n > 0) memcpy(*out, p->trace.data, n);
  pthread_mutex_unlock(&p->lock);
  return n;
}

bool tt_collector_wait(struct tt_collector *p,
                       bool (*cond)(const struct tt_collector_seen *seen, uint64_t arg),
                       uint64_t arg) {
  struct timespec until;
  bool met;

  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += TT_PATIENCE_S;
  pthread_mutex_lock(&p->lock);
  while (!(met = cond(&p->seen, arg)))
    if (pthread_cond_timedwait(&p->changed, &p->lock, &until) != 0) break;
  met = met || cond(&p->seen, arg);
  pthread_mutex_unlock(&p->lock);
  return met;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The states of a connection are in the table below. Inside a state, pump() does the work: it receives, reads frames, sends as
 * many records as credit and rate allow, and flushes. If a function finds that the connection was lost, its tb_rc is returned
 * up to turn(), the only function that passes LOST or REFUSED to the table.
 *
 *          START           CONNECTED          SECURED           WELCOME            GOAWAY
 *   IDLE ────────> CONNECTING ───> SECURING ───────> GREETING ─────────> STREAMING ──────> LEAVING
 *                    ↑   │            │                 │  └── GOAWAY ───────┼──────────────>│
 *              TIMER │   └────────────┴──── LOST ───────┴────────────────────┴───────────────┤
 *                    │                                                                       │
 *                 WAITING <──────────────────────────────────────────────────────────────────┘
 *
 * A state that takes too long ends by its TIMER, in the same way as by LOST; STREAMING has no timer. REFUSED in any state with
 * a connection, and DONE (all is acked) in STREAMING and LEAVING, lead to ENDED, the last state.
 */
#include "agent/net/client.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <syslog.h>
#include <unistd.h>

#include "agent/host/clock.h"
#include "agent/host/keep.h"
#include "agent/host/process.h"
#include "agent/net/answers.h"
#include "agent/net/sending.h"
#include "agent/net/snaps.h"
#include "proto/frame.pb-c.h"
#include "proto/loss.h"

#define MS UINT64_C(1000000)

enum {
  CONNECT_MS = 10000,
  GREET_MS = 10000,
  LEAVE_MS = 5000,
  BACK_OFF_MIN_MS = 100,
  BACK_OFF_MAX_MS = 30000,
  TRIM_MS = 1000,
  LOSS_EVERY_MS = 10000, /* between two lines about lost generations */
  REST_BYTES = 1 << 20,
  RECEIVE_BYTES = 64 << 10, /* received before they are read as frames */
};

typedef tb_rc action(struct ta_client *c);
static action act_dial, act_secure, act_greet, act_stream, act_leave, act_back_off, act_end;

struct move {
  enum ta_client_state to;
  action *act;
};

static const struct move moves[TA_CLIENT_STATE_COUNT][TA_CLIENT_INPUT_COUNT] = {
  [TA_AT_IDLE] = { [TA_IN_START] = { TA_AT_CONNECTING, act_dial } },
  [TA_AT_CONNECTING] = { [TA_IN_CONNECTED] = { TA_AT_SECURING, act_secure },
                         [TA_IN_REFUSED] = { TA_AT_ENDED, act_end },
                         [TA_IN_LOST] = { TA_AT_WAITING, act_back_off },
                         [TA_IN_TIMER] = { TA_AT_WAITING, act_back_off } },
  [TA_AT_SECURING] = { [TA_IN_SECURED] = { TA_AT_GREETING, act_greet },
                       [TA_IN_REFUSED] = { TA_AT_ENDED, act_end },
                       [TA_IN_LOST] = { TA_AT_WAITING, act_back_off },
                       [TA_IN_TIMER] = { TA_AT_WAITING, act_back_off } },
  [TA_AT_GREETING] = { [TA_IN_WELCOME] = { TA_AT_STREAMING, act_stream },
                       [TA_IN_GOAWAY] = { TA_AT_LEAVING, act_leave },
                       [TA_IN_REFUSED] = { TA_AT_ENDED, act_end },
                       [TA_IN_LOST] = { TA_AT_WAITING, act_back_off },
                       [TA_IN_TIMER] = { TA_AT_WAITING, act_back_off } },
  [TA_AT_STREAMING] = { [TA_IN_GOAWAY] = { TA_AT_LEAVING, act_leave },
                        [TA_IN_REFUSED] = { TA_AT_ENDED, act_end },
                        [TA_IN_DONE] = { TA_AT_ENDED, act_end },
                        [TA_IN_LOST] = { TA_AT_WAITING, act_back_off } },
  [TA_AT_LEAVING] = { [TA_IN_REFUSED] = { TA_AT_ENDED, act_end },
                      [TA_IN_DONE] = { TA_AT_ENDED, act_end },
                      [TA_IN_LOST] = { TA_AT_WAITING, act_back_off },
                      [TA_IN_TIMER] = { TA_AT_WAITING, act_back_off } },
  [TA_AT_WAITING] = { [TA_IN_TIMER] = { TA_AT_CONNECTING, act_dial } },
};

#define NAME(name) #name,
static const char *const state_names[] = { TA_CLIENT_STATES(NAME) };
static const char *const input_names[] = { TA_CLIENT_INPUTS(NAME) };
#undef NAME

static void report_error(struct ta_client *c) {
  if (c->diag.rc != TB_OK) ta_report_error(&c->report, c->diag.text);
}

static tb_rc send_heartbeat(struct ta_client *c) {
  Tracecollect__V1__Heartbeat beat = TRACECOLLECT__V1__HEARTBEAT__INIT;
  Tracecollect__V1__Counters message;
  struct ta_counters counters;

  ta_spool_counters(c->spool, &counters);
  ta_counters_message(&counters, &message);
  beat.wall_ns = ta_wall_ns();
  beat.mono_ns = ta_mono_ns();
  beat.counters = &message;
  c->beat_ns = beat.mono_ns + c->heartbeat_ns;
  return ta__client_say(c, TP_HEARTBEAT, &beat.base);
}

/* Actions: each is done when its state is entered. */

static void limit(struct ta_client *c, uint64_t ms) {
  c->until_ns = ta_mono_ns() + ms * MS;
}

static void hang_up(struct ta_client *c) {
  ta_lookup_give_up(&c->lookup);
  ta_tls_free(c->tls);
  c->tls = NULL;
  if (c->fd >= 0) {
    shutdown(c->fd, SHUT_RDWR); /* a forked child may hold the socket, too */
    close(c->fd);
  }
  c->fd = -1;
  c->fd_full = c->flows = false;
  ta_inbound_clear(&c->inbound);
  c->spool->capped = false;
  ta_spool_unask(c->spool); /* the requester is no longer there */
  c->snaps.refused_id = 0;
}

static tb_rc call(struct ta_client *c) {
  TB_TRY(ta_tls_new(&c->config.files, c->addresses.host, &c->diag, &c->tls));
  return ta_dial_next(&c->addresses, &c->diag, &c->fd);
}

static tb_rc act_dial(struct ta_client *c) {
  tb_diag_clear(&c->diag);
  limit(c, CONNECT_MS);
  ta_report_connect(&c->report);
  ta_spool_set_outlook(c->spool, TA_OUTLOOK_TRYING);
  tb_rc rc = ta_lookup_begin(c->config.server, &c->diag, &c->addresses, &c->lookup);
  if (rc == TB_AGAIN) return TB_OK;
  return rc == TB_OK ? call(c) : rc;
}

/* Checks whether the look-up has returned the addresses. */
static tb_rc looked_up(struct ta_client *c) {
  tb_rc rc = ta_lookup_poll(&c->lookup, &c->diag, &c->addresses);

  if (rc == TB_AGAIN) return TB_OK;
  if (rc == TB_OK) limit(c, CONNECT_MS);
  return rc == TB_OK ? call(c) : rc;
}

static tb_rc act_secure(struct ta_client *c) {
  limit(c, GREET_MS);
  return TB_OK;
}

static tb_rc act_greet(struct ta_client *c) {
  Tracecollect__V1__Hello hello = TRACECOLLECT__V1__HELLO__INIT;
  Tracecollect__V1__Counters message;
  struct ta_counters counters;
  char version[] = TA_VERSION;

  limit(c, GREET_MS);
  ta_spool_counters(c->spool, &counters);
  ta_counters_message(&counters, &message);
  hello.major = TP_MAJOR;
  hello.minor = TP_MINOR;
  hello.stream = (ProtobufCBinaryData){ sizeof c->report.status.stream, c->report.status.stream };
  hello.service = (char *)(uintptr_t)c->config.service;
  hello.instance = (char *)(uintptr_t)c->config.instance;
  hello.agent_version = version;
  hello.wall_ns = ta_wall_ns();
  hello.mono_ns = ta_mono_ns();
  hello.started_wall_ns = c->started_wall_ns;
  hello.record_ns = c->spool->recorder.keep_ns;
  hello.counters = &message;
  return ta__client_say(c, TP_HELLO, &hello.base);
}

static tb_rc act_stream(struct ta_client *c) {
  c->until_ns = UINT64_MAX;
  c->beat_ns = ta_mono_ns() + c->heartbeat_ns;
  c->tries = 0;
  c->sent_bytes = 0;
  c->flows = true;
  ta_spool_set_outlook(c->spool, TA_OUTLOOK_WELCOMED);
  ta_report_log(&c->report, LOG_INFO, "connected");
  return TB_OK;
}

static tb_rc act_leave(struct ta_client *c) {
  limit(c, LEAVE_MS);
  return TB_OK;
}

static uint64_t random_below(struct ta_client *c, uint64_t end) {
  c->random ^= c->random << 13;
  c->random ^= c->random >> 7;
  c->random ^= c->random << 17;
  return c->random % end;
}

static tb_rc act_back_off(struct ta_client *c) {
  uint64_t ms = BACK_OFF_MAX_MS, now = ta_mono_ns();

  if (c->tries < 9 && (uint64_t)BACK_OFF_MIN_MS << c->tries < ms)
    ms = (uint64_t)BACK_OFF_MIN_MS << c->tries;
  c->tries++;
  hang_up(c);
  ta_spool_set_outlook(c->spool, TA_OUTLOOK_NONE);
  report_error(c);
  if (c->away_ns < now) c->away_ns = now;
  c->until_ns = c->away_ns + random_below(c, ms * MS);
  c->away_ns = 0;
  return TB_OK;
}

static tb_rc act_end(struct ta_client *c) {
  c->until_ns = UINT64_MAX;
  if (c->tls != NULL) {
    ta_tls_goodbye(c->tls);
    ta__client_flush(c);
  }
  hang_up(c);
  report_error(c);
  ta_spool_over(
      c->spool); /* before the state changes: after "ended" is read, no write may succeed */
  return TB_OK;
}

static void input(struct ta_client *c, enum ta_client_input in) {
  for (;;) {
    const struct move *move = &moves[c->state][in];
    if (move->act == NULL) { /* internal error: stop the agent, keep the host running */
      tb_diag_clear(&c->diag);
      tb_fail(&c->diag, TB_PROTOCOL, "agent: %s while %s", input_names[in], state_names[c->state]);
      move = &(struct move){ TA_AT_ENDED, act_end };
    }
    c->state = move->to;
    tb_rc rc = move->act(c);
    ta_report_state(&c->report, c->state);
    if (rc == TB_OK) return;
    in = TA_IN_LOST;
  }
}

/* Receives at most RECEIVE_BYTES before frames are read. Otherwise a peer that sends faster than we read, for which it needs no
 * certificate, could fill our memory or keep this loop busy. The remaining bytes wake the thread again. */
static tb_rc receive(struct ta_client *c, struct tb_diag *diag) {
  unsigned char *bytes = c->received; /* not on the stack, which would be zeroed each time */

  for (size_t all = 0; all < RECEIVE_BYTES;) {
    ssize_t n = recv(c->fd, bytes, sizeof c->received, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return TB_OK;
    if (n < 0) return tb_fail(diag, TB_IO, "receiving: %s", strerror(errno));
    if (n == 0) return tb_fail(diag, TB_IO, "collector hung up without good-bye");
    if (c->state != TA_AT_STREAMING) ta_spool_set_outlook(c->spool, TA_OUTLOOK_HEARD);
    TB_TRY(ta_tls_feed(c->tls, bytes, (size_t)n));
    if ((size_t)n < sizeof c->received) return TB_OK;
    all += (size_t)n;
  }
  return TB_OK;
}

static tb_rc shake(struct ta_client *c) {
  tb_rc rc = ta_tls_shake(c->tls);

  if (rc == TB_OK) input(c, TA_IN_SECURED);
  return rc == TB_AGAIN ? TB_OK : rc;
}

static tb_rc read_bytes(struct ta_client *c) {
  size_t n, room;
  unsigned char *at = ta_inbound_room(&c->inbound, &room);

  TB_TRY(ta_tls_read(c->tls, at, room, &n));
  ta_inbound_add(&c->inbound, n);
  c->heard_ns = ta_mono_ns();
  return TB_OK;
}

/* Handles all received messages, until TLS needs more bytes from the socket or the connection has ended. */
static tb_rc read_messages(struct ta_client *c) {
  struct ta_message message;
  enum ta_client_input in;

  while (c->tls != NULL) {
    tb_rc rc = ta_inbound_next(&c->inbound, &c->diag, &message);
    if (rc == TB_OK) {
      TB_TRY(ta__client_act_on(c, &message, &in));
      if (in != TA_CLIENT_INPUT_COUNT) input(c, in);
      continue;
    }
    if (rc == TB_AGAIN) rc = read_bytes(c);
    if (rc == TB_AGAIN) return TB_OK;
    TB_TRY(rc);
  }
  return TB_OK;
}

static tb_rc beat(struct ta_client *c) {
  uint64_t now = ta_mono_ns();

  if (c->state != TA_AT_STREAMING) return TB_OK;
  if (now >= c->heard_ns + tp_silence(c->heartbeat_ns))
    return tb_fail(&c->diag, TB_IO, "collector silent for %" PRIu64 " ms",
                   (now - c->heard_ns) / MS);
  if (now < c->beat_ns) return TB_OK;
  if (!c->fd_full) return send_heartbeat(c);
  c->beat_ns = now + c->heartbeat_ns; /* the unread bytes show that this side is alive */
  return TB_OK;
}

/* Does one pass over an open connection. If the socket was lost, the received bytes are still read first: they may contain the
 * reason. */
static tb_rc pump(struct ta_client *c) {
  struct tb_diag lost;

  tb_diag_clear(&lost);
  tb_rc rc = receive(c, &lost);
  if (c->state == TA_AT_SECURING) TB_TRY(shake(c));
  if (c->state != TA_AT_SECURING) TB_TRY(read_messages(c));
  if (c->tls == NULL) return TB_OK; /* the connection ended, and the table has its input already */
  if (rc != TB_OK) return tb_fail(&c->diag, rc, "%s", lost.text);
  TB_TRY(beat(c));
  TB_TRY(ta__snaps_answer(c));
  TB_TRY(ta__client_send_records(c));
  bool live = c->state == TA_AT_STREAMING || c->state == TA_AT_LEAVING;
  if (live && ta_spool_done(c->spool)) input(c, TA_IN_DONE);
  return TB_OK;
}

/* Chooses the input for a lost connection. If an alert refused it, a program tries again, because certificates are renewed; a
 * tool ends. */
static enum ta_client_input lost_input(struct ta_client *c, tb_rc rc) {
  if (c->tls != NULL && c->fd >= 0) ta__client_flush(c); /* our alert, if any */
  if (rc != TB_REFUSED || (!c->refused && !c->config.refusal_ends)) return TA_IN_LOST;
  report_error(c); /* before the state: a caller that sees the refusal finds its reason */
  ta_report_refused(&c->report);
  return TA_IN_REFUSED;
}

static tb_rc next_address(struct ta_client *c) {
  tb_diag_clear(&c->diag);
  close(c->fd);
  c->fd = -1;
  limit(c, CONNECT_MS);
  return ta_dial_next(&c->addresses, &c->diag, &c->fd);
}

static tb_rc connected(struct ta_client *c) {
  tb_rc rc = ta_dial_result(&c->addresses, c->fd, &c->diag);

  if (rc == TB_OK) {
    c->heard_ns = ta_mono_ns();
    input(c, TA_IN_CONNECTED);
    return TB_OK;
  }
  return c->addresses.tried == c->addresses.n ? rc : next_address(c);
}

/* The thread. */

static uint64_t earlier(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

/* Returns when to continue even if nothing happens. */
static uint64_t next_ns(struct ta_client *c) {
  uint64_t next = earlier(c->until_ns, c->trim_ns);

  if (c->disk != NULL) next = earlier(next, c->disk->due_ns);
  if (c->lookup != NULL) next = earlier(next, ta_mono_ns() + TA_LOOKUP_POLL_MS * MS);
  if (c->state != TA_AT_STREAMING) return next;
  next = earlier(next, earlier(c->beat_ns, c->heard_ns + tp_silence(c->heartbeat_ns)));
  return c->held && c->spool->capped ? earlier(next, c->rate.due_ns) : next;
}

/* After it has sent records, the sender rests for a moment. Otherwise a program that writes one batch after the other would
 * wake the sender for each batch, and the sender would wake the collector. New records and acks wait until the rest is over,
 * unless there are many or a thread waits for acks. */
static bool rests(struct ta_client *c, uint64_t now) {
  return now < c->rest_ns && atomic_load(&c->hurried) == 0 && ta_spool_rest(c->spool, REST_BYTES);
}

/* Sleeps until the socket, the writer or a timer needs this thread. A put wakes it only if the spool was told that it sleeps
 * for lack of records: not while it waits for credit, the socket or the rate cap. */
static short sleep_until_change(struct ta_client *c) {
  struct pollfd fds[2] = { { .fd = c->wake_fd, .events = POLLIN }, { .fd = c->fd } };
  uint64_t next = next_ns(c), now = ta_mono_ns(), wakes;

  fds[1].events = c->state == TA_AT_CONNECTING ? POLLOUT : c->fd_full ? POLLIN | POLLOUT : POLLIN;
  bool wants = c->state == TA_AT_STREAMING && !c->held && !c->fd_full;
  if (wants && rests(c, now)) {
    fds[1].fd = -1;
    next = earlier(next, c->rest_ns);
  } else if (wants && !ta_spool_sleep(c->spool)) {
    next = now;
  }
  struct timespec timeout = ta_timespec(next > now ? next - now : 0);
  ta_process_work_end();
  int ready = ppoll(fds, 2, next == UINT64_MAX ? NULL : &timeout, NULL);
  ta_process_work_begin();
  if (ready <= 0) return 0;
  if (fds[0].revents != 0 && read(c->wake_fd, &wakes, sizeof wakes) < 0) return 0;
  return fds[1].revents;
}

static void time_is_up(struct ta_client *c) {
  /* Try the next address: otherwise one that never answers would be tried first in each connection, and hide the others. */
  if (c->state == TA_AT_CONNECTING && c->lookup == NULL && c->addresses.tried < c->addresses.n) {
    if (next_address(c) != TB_OK) input(c, TA_IN_LOST);
    return;
  }
  if (c->lookup != NULL)
    tb_fail(&c->diag, TB_IO, "%.100s: no answer from the resolver", c->config.server);
  else if (c->state != TA_AT_WAITING)
    tb_fail(&c->diag, TB_IO, "%.100s: no answer while %s", c->addresses.host,
            state_names[c->state]);
  input(c, TA_IN_TIMER);
}

static void turn(struct ta_client *c) {
  short events = sleep_until_change(c);
  uint64_t now = ta_mono_ns();
  tb_rc rc = TB_OK;

  if (ta_process_exiting() || c->stop) return;
  ta_client_take_snap(c);
  if (now >= c->trim_ns) {
    ta_spool_trim(c->spool);
    c->trim_ns = now + TRIM_MS * MS;
  }
  if (c->disk != NULL && (now >= c->disk->due_ns || atomic_load(&c->hurried) > 0))
    ta_spool_writer_flush(c->disk);
  if (now >= c->until_ns) {
    time_is_up(c);
    return;
  }
  if (c->lookup != NULL)
    rc = looked_up(c);
  else if (c->state == TA_AT_CONNECTING && events != 0)
    rc = connected(c);
  if (rc == TB_OK && c->tls != NULL && c->state != TA_AT_CONNECTING) rc = pump(c);
  if (rc != TB_OK) input(c, lost_input(c, rc));
}

/* Returns true if an internal check failed: then ends the stream, with the check's text as reason. */
static bool end_by_mistake(struct ta_client *c) {
  const char *where = atomic_load(&c->keeper.where);

  if (where == NULL) return false;
  tb_diag_clear(&c->diag);
  tb_fail(&c->diag, TB_PROTOCOL, "agent: check failed: %s", where);
  c->state = TA_AT_ENDED;
  act_end(c);
  ta_report_state(&c->report, c->state);
  return true;
}

/* Logs the first loss at once, further ones at most every LOSS_EVERY_MS. */
static void say_losses(struct ta_client *c) {
  struct ta_counters counters;
  uint64_t now = ta_mono_ns();
  char line[200];

  if (c->report.log == NULL || now < c->say_losses_ns) return;
  ta_spool_counters(c->spool, &counters);
  if (counters.lost_generations <= c->said_losses) return;
  snprintf(line, sizeof line, "%" PRIu64 " generations lost, %" PRIu64 " in all: %s",
           counters.lost_generations - c->said_losses, counters.lost_generations,
           tp_loss_text(counters.last_loss));
  c->said_losses = counters.lost_generations;
  c->say_losses_ns = now + LOSS_EVERY_MS * MS;
  ta_report_log(&c->report, LOG_WARNING, line);
}

static void run_client(struct ta_client *c) {
  tb_check_keep(&c->keeper);
  c->trim_ns = ta_mono_ns() + TRIM_MS * MS;
  if (c->disk != NULL) ta_spool_writer_begin(c->disk, c->report.status.stream, c->started_wall_ns);
  if (ta_mono_ns() >= c->config.first_try_ns) {
    input(c, TA_IN_START);
  } else {
    c->state = TA_AT_WAITING;
    c->until_ns = c->config.first_try_ns;
    ta_report_state(&c->report, c->state);
  }
  while (c->state != TA_AT_ENDED && !c->stop && !ta_process_exiting())
    if (!end_by_mistake(c)) {
      turn(c);
      say_losses(c);
    }
  if (c->disk != NULL) ta_spool_writer_end(c->disk);
  if (ta_process_exiting()) return;
  if (c->state != TA_AT_ENDED) act_end(c);
  ta_tls_thread_end();
}

void ta_client_run(struct ta_client *c) {
  ta_process_work_begin();
  run_client(c);
  ta_process_work_end();
}

void ta_client_keep_only(struct ta_client *c) {
  KEEP_FROM_FILE_LIMIT;
  if (c->disk == NULL) return;
  ta_spool_writer_begin(c->disk, c->report.status.stream, c->started_wall_ns);
  ta_spool_writer_end(c->disk);
}

/* Outside the thread. */

tb_rc ta_client_init(struct ta_client *c, const struct ta_client_config *config,
                     struct ta_spool *spool) {
  *c = (struct ta_client){ .config = *config,
                           .spool = spool,
                           .report = { .log = config->log, .log_self = config->log_self },
                           .started_wall_ns = ta_wall_ns(),
                           .fd = -1,
                           .wake_fd = -1,
                           .until_ns = UINT64_MAX,
                           .heartbeat_ns = TA_HEARTBEAT_MS * MS };
  c->rate = ta_rate_of(config->rate_bytes_s);
  ta_report_init(&c->report);
  if (getrandom(c->report.status.stream, sizeof c->report.status.stream, 0) !=
          sizeof c->report.status.stream ||
      getrandom(&c->random, sizeof c->random, 0) != sizeof c->random)
    return TB_IO;
  c->random |= 1; /* xorshift must not start at 0 */
  ta_inbound_init(&c->inbound);
  return TB_OK;
}

tb_rc ta_client_open(struct ta_client *c) {
  c->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  return c->wake_fd >= 0 ? TB_OK : TB_IO;
}

void ta_client_is(struct ta_client *c, const unsigned char stream[16], uint64_t started_wall_ns) {
  memcpy(c->report.status.stream, stream, sizeof c->report.status.stream);
  c->started_wall_ns = started_wall_ns;
}

void ta_client_keep(struct ta_client *c, struct ta_spool_writer *disk) {
  c->disk = disk;
}

void ta_client_fini(struct ta_client *c) {
  if (c->spool == NULL) return;
  ta_inbound_fini(&c->inbound);
  if (c->wake_fd >= 0) close(c->wake_fd);
  ta_report_fini(&c->report);
  *c = (struct ta_client){ .fd = -1, .wake_fd = -1 };
}

void ta_client_wake(struct ta_client *c) {
  if (c->wake_fd < 0) return;
  ssize_t n = write(c->wake_fd, &(uint64_t){ 1 }, sizeof(uint64_t));
  (void)n; /* it fails only if wakes are pending already */
}

void ta_client_hurry(struct ta_client *c, bool yes) {
  if (yes)
    atomic_fetch_add(&c->hurried, 1);
  else
    atomic_fetch_sub(&c->hurried, 1);
  ta_client_wake(c);
}

void ta_client_status(struct ta_client *c, struct ta_client_status *out) {
  ta_report_status(&c->report, out);
}

void ta_client_stop(struct ta_client *c) {
  c->stop = true;
  ta_client_wake(c);
}

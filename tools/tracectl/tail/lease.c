/* SPDX-License-Identifier: Apache-2.0 */
/* Follows a lease, across restarts of the collector.
 *
 * A lease has every generation whose ordering begins after it was opened. Events before that, or ordered while there was
 * no lease, are in the archive. So the lease is opened first, then the archive is replayed up to its end, then the lease is
 * read; duplicates are recognised by generation and position. A long replay is done once without the lease before that, so
 * that the lease's window does not overflow meanwhile. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "config/times.h"
#include "tools/tracectl/tail/tail.h"

enum {
  LEASE_ID_BYTES = 32,
  WAIT_MS = 10000,
  RETRY_MS = 250,
  CAUGHT_UP_MS = 2000, /* a shorter replay has left little behind */
};

/* How far the collector's ordering may have lagged when it last answered. */
static const uint64_t behind_ns = UINT64_C(600) * 1000000000;

struct follower {
  struct tk_tail tail;
  struct tk_client *client;
  char lease[LEASE_ID_BYTES];
  uint64_t after;
  bool began;    /* everything was set up once */
  bool answered; /* since the message that the collector is away */
  uint64_t heard_wall_ns;
  struct tb_diag *diag;
};

static void fill_filter(const struct tk_tail_ask *ask, Tracecollect__V1__EventFilter *filter) {
  /* protobuf-c's strings are not const; packing only reads them */
  char *service = (char *)(uintptr_t)ask->service, *instance = (char *)(uintptr_t)ask->instance;

  tracecollect__v1__event_filter__init(filter);
  *(ask->service_is_prefix ? &filter->service_prefix : &filter->service) = service;
  *(ask->instance_is_prefix ? &filter->instance_prefix : &filter->instance) = instance;
  if (ask->selector.has_stream)
    filter->stream = (ProtobufCBinaryData){ sizeof ask->selector.stream,
                                            (uint8_t *)(uintptr_t)ask->selector.stream };
  filter->n_kinds = ask->n_kinds;
  filter->kinds = (char **)(uintptr_t)ask->kinds;
  filter->goroutine = ask->goroutine;
  filter->min_duration_ns = ask->duration_ns;
}

static tb_rc open_lease(struct follower *f) {
  Tracecollect__V1__LeaseRequest ask = TRACECOLLECT__V1__LEASE_REQUEST__INIT;
  const Tracecollect__V1__LeaseReply *reply;
  Tracecollect__V1__EventFilter filter;

  fill_filter(f->tail.ask, &filter);
  ask.filter = &filter;
  TB_TRY(tk_client_ask(f->client, TP_ROUTE_LEASE_OPEN, "", &ask.base, f->diag, &reply));
  snprintf(f->lease, sizeof f->lease, "%s", reply->id);
  f->after = 0;
  return TB_OK;
}

static void release_lease(struct follower *f) {
  struct tb_diag diag;

  tb_diag_clear(&diag);
  /* if this fails, the lease expires */
  (void)!tk_client_ask(f->client, TP_ROUTE_LEASE_END, f->lease, NULL, &diag, NULL);
}

static tb_rc replay(struct follower *f, uint64_t since_wall_ns, uint64_t since_arrival_ns) {
  struct timespec soon;
  tb_rc rc;

  do {
    soon = tc_from_now(CAUGHT_UP_MS);
    rc = tk_tail_replay(&f->tail, f->client, since_wall_ns, since_arrival_ns, f->diag);
  } while (rc == TB_OK && tc_is_past(soon));
  return rc;
}

/* Opens the lease and shows everything before it. */
static tb_rc begin(struct follower *f) {
  uint64_t since_ns = f->tail.ask->selector.since_wall_ns;
  /* events that arrived while there was no lease: agents may have held them for long */
  uint64_t arrival_ns = since_ns == 0 ? f->heard_wall_ns - behind_ns : 0;
  bool from_archive = since_ns != 0 || f->began;

  if (from_archive) TB_TRY(replay(f, since_ns, arrival_ns));
  TB_TRY(open_lease(f));
  if (from_archive)
    TB_TRY(tk_tail_replay(&f->tail, f->client, since_ns, arrival_ns, f->diag));
  else
    TB_TRY(tk_tail_baseline(&f->tail, f->client, f->diag));
  f->began = true;
  return TB_OK;
}

static tb_rc show(struct follower *f, const Tracecollect__V1__NextReply *next) {
  for (size_t i = 0; i < next->n_bundles; i++) {
    const Tracecollect__V1__EventBundle *b = next->bundles[i];

    tk_lines_lost(f->tail.lines, b->lost, "event");
    TB_TRY(tk_tail_bundle(&f->tail, b));
    f->after = b->number;
  }
  tk_lines_flush(f->tail.lines);
  return TB_OK;
}

static tb_rc poll_lease(struct follower *f) {
  Tracecollect__V1__NextRequest ask = TRACECOLLECT__V1__NEXT_REQUEST__INIT;
  const Tracecollect__V1__NextReply *next;

  ask.wait_ms = WAIT_MS;
  for (;;) {
    ask.after = f->after;
    TB_TRY(tk_client_ask(f->client, TP_ROUTE_LEASE, f->lease, &ask.base, f->diag, &next));
    f->heard_wall_ns = tc_wall_ns();
    f->answered = true;
    TB_TRY(show(f, next));
  }
}

static tb_rc follow(struct follower *f) {
  const struct tk_tail_ask *ask = f->tail.ask;

  TB_TRY(tk_client_open(&ask->client, f->diag, &f->client));
  tb_rc rc = begin(f);
  /* an expired lease needs a new lease, not a new connection */
  while (rc == TB_OK) {
    rc = poll_lease(f);
    if (rc != TB_NOTFOUND) break;
    tb_diag_clear(f->diag);
    rc = begin(f);
  }
  if (rc == TB_END) release_lease(f);
  tk_client_close(f->client);
  return rc;
}

tb_rc tk_tail_lease(const struct tk_tail_ask *ask, struct tk_lines *lines, struct tb_diag *diag) {
  struct follower f = { .tail = { .ask = ask, .lines = lines },
                        .heard_wall_ns = tc_wall_ns(),
                        .diag = diag };
  const struct timespec pause = { .tv_nsec = RETRY_MS * 1000000L };
  tb_rc rc;

  for (;;) {
    tb_diag_clear(diag);
    rc = follow(&f);
    if (!f.began || (rc != TB_IO && rc != TB_NOTFOUND)) break;
    if (f.answered) tk_lines_note(lines, false, "%s; waiting for the collector", diag->text);
    f.answered = false;
    nanosleep(&pause, NULL);
  }
  tk_cursors_fini(&f.tail.cursors);
  return rc;
}

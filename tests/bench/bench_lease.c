/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a lease, and only counts the events.
 *
 *   bench_lease --server @READYFILE --certs DIR [-n EVENTS] [-k KIND]
 *
 * Without -n it never ends, without -k the lease has every kind of event. Prints "leased" on stdout once it has the
 * lease, and at the end, tab-separated: events, lost, nanoseconds from the first bundle to the last, CPU nanoseconds of
 * this process, bytes as they were sent. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tools/tracectl/remote/client.h"

struct count {
  uint64_t events, lost, bytes;
  int64_t first_ns, last_ns;
};

static int64_t now_ns(clockid_t clock) {
  struct timespec ts;

  clock_gettime(clock, &ts);
  return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

enum { LEASE_ID_BYTES = 32 };

static tb_rc open_lease(struct tk_client *client, char *kind, struct tb_diag *diag,
                        char out[LEASE_ID_BYTES]) {
  Tracecollect__V1__LeaseRequest ask = TRACECOLLECT__V1__LEASE_REQUEST__INIT;
  Tracecollect__V1__EventFilter filter = TRACECOLLECT__V1__EVENT_FILTER__INIT;
  const Tracecollect__V1__LeaseReply *reply;

  filter.kinds = &kind;
  filter.n_kinds = kind != NULL;
  ask.filter = &filter;
  TB_TRY(tk_client_ask(client, TP_ROUTE_LEASE_OPEN, "", &ask.base, diag, &reply));
  snprintf(out, LEASE_ID_BYTES, "%s", reply->id);
  return TB_OK;
}

static tb_rc read_some(struct tk_client *client, const char *lease,
                       Tracecollect__V1__NextRequest *ask, struct count *count,
                       struct tb_diag *diag) {
  const Tracecollect__V1__NextReply *next;

  TB_TRY(tk_client_ask(client, TP_ROUTE_LEASE, lease, &ask->base, diag, &next));
  for (size_t i = 0; i < next->n_bundles; i++) {
    const Tracecollect__V1__EventBundle *b = next->bundles[i];

    count->events += b->n_events;
    count->lost += b->lost;
    ask->after = b->number;
    count->last_ns = now_ns(CLOCK_MONOTONIC);
    if (count->first_ns == 0) count->first_ns = count->last_ns;
  }
  count->bytes += tracecollect__v1__next_reply__get_packed_size(next);
  return TB_OK;
}

static tb_rc run(const struct tk_client_args *args, uint64_t events, char *kind,
                 struct tb_diag *diag) {
  Tracecollect__V1__NextRequest ask = TRACECOLLECT__V1__NEXT_REQUEST__INIT;
  struct count count = { 0 };
  char lease[LEASE_ID_BYTES];
  struct tk_client *client;

  TB_TRY(tk_client_open(args, diag, &client));
  tb_rc rc = open_lease(client, kind, diag, lease);
  if (rc == TB_OK) {
    puts("leased");
    fflush(stdout);
  }
  ask.wait_ms = 20000;
  ask.bytes = 4 << 20;
  while (rc == TB_OK && count.events + count.lost < events)
    rc = read_some(client, lease, &ask, &count, diag);
  tk_client_close(client);
  printf("%" PRIu64 "\t%" PRIu64 "\t%" PRId64 "\t%" PRId64 "\t%" PRIu64 "\n", count.events,
         count.lost, count.last_ns - count.first_ns, now_ns(CLOCK_PROCESS_CPUTIME_ID), count.bytes);
  return rc;
}

struct options {
  struct tk_client_args client;
  uint64_t events;
  char *kind;
};

int main(int argc, char **argv) {
  static const struct tk_option options[] = {
    TK_OPTION('n', NULL, "N", tk_read_count, offsetof(struct options, events),
              "end after N events"),
    TK_OPTION('k', NULL, "KIND", tk_read_text, offsetof(struct options, kind), "of this kind"),
    TK_GROUP(tk_client_options, offsetof(struct options, client)),
    { 0 },
  };
  struct options o = { .events = UINT64_MAX };
  struct tb_diag diag;

  if (tk_options_read_all(argc, argv, options, &o) != 0) return 2;
  tb_diag_clear(&diag);
  tb_rc rc = run(&o.client, o.events, o.kind, &diag);
  if (rc != TB_OK) fprintf(stderr, "bench_lease: %s\n", diag.text);
  return rc == TB_OK ? 0 : 1;
}

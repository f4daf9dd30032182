/* SPDX-License-Identifier: Apache-2.0 */
/* The thread sleeps until a port has a note or a bundle is due. nng's PUB never blocks: a send either queues
 * the message for each subscriber or drops that subscriber's oldest. */
#include "collector/feed/publisher.h"

#include <assert.h>
#include <nng/protocol/pubsub0/pub.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"
#include "collector/base/spsc_queue.h"
#include "collector/base/wakeup.h"
#include "collector/feed/batcher.h"
#include "collector/net/nng_listener.h"
#include "nng/close.h"

enum {
  RECEIVE_BYTES_MAX = 4 << 10, /* subscribers send nothing; nng's default is no limit */
  QUEUE_MIN = 16,
  QUEUE_MAX = 8192, /* nng's limit */
  TOPICS_MAX = 1 << 17,
  TAKE_AT_ONCE = 256, /* items from one port before the next port's turn */
};
static const uint64_t idle_ns = UINT64_C(1000000000);
static const uint64_t nap_ns_max = 10000000; /* too short for a queue to fill up */

/* One socket for TLS and one for the rest, because nng reports in two ways that a subscriber left. */
enum { PLAIN, OVER_TLS, OUTLETS };

struct outlet {
  struct tc_feed *feed;
  nng_socket socket;
  bool is_open;
  bool over_tls;
  bool is_left; /* nng failed to close it */
  atomic_uint subscribers;
};

struct tc_feed {
  const struct tc_config *config;
  struct tc_spsc_queue *inbox; /* one for each port */
  unsigned ports;
  atomic_size_t backlog; /* bytes of items that are not sent yet */
  struct tc_feed_bundles *bundles;
  struct tc_metrics metrics; /* feed_dropped_total and feed_subscribers are atomic */
  _Atomic(struct tc_feed_reader *) readers[4];
  _Atomic(char *) page;

  struct outlet outlets[OUTLETS];
  char urls[TC_URLS_MAX][TC_URL_BYTES]; /* where nng listens; ends with an empty one */
  atomic_ullong turns;
  struct tc_wakeup wakeup;
  pthread_t thread;
  bool runs;
  atomic_bool stop;
};

static void count_dropped(struct tc_feed *feed, uint64_t messages) {
  atomic_fetch_add_explicit(&feed->metrics.feed_dropped_total, messages, memory_order_relaxed);
}

/* --- publishing -------------------------------------------------------------------------------- */

static bool reader_listens(const struct tc_feed *feed, bool to_reports) {
  for (size_t i = 0; i < sizeof feed->readers / sizeof feed->readers[0]; i++) {
    const struct tc_feed_reader *reader = atomic_load(&feed->readers[i]);

    if (reader != NULL && tc_feed_reader_listens(reader) &&
        (!to_reports || tc_feed_reader_wants_reports(reader)))
      return true;
  }
  return false;
}

/* nng filters for its subscribers; what they selected is not known here. */
static bool has_subscribers(const struct tc_feed *feed) {
  return atomic_load(&feed->outlets[PLAIN].subscribers) > 0 ||
         atomic_load(&feed->outlets[OVER_TLS].subscribers) > 0;
}

bool tc_feed_wanted(const struct tc_feed *feed) {
  return has_subscribers(feed) || reader_listens(feed, false);
}

bool tc_feed_reports_wanted(const struct tc_feed *feed) {
  return has_subscribers(feed) || reader_listens(feed, true);
}

size_t tc_feed_note_bytes_max(const struct tc_feed *feed) {
  return feed->config->feed_message_bytes_max;
}

void tc_feed_miss(struct tc_feed *feed, struct tc_feed_origin *origin, enum tc_feed_slot slot,
                  uint32_t count) {
  origin->missed[slot] += count;
  count_dropped(feed, count);
}

static struct tc_feed_item *make_item(struct tc_feed *feed, const struct tc_feed_origin *origin,
                                      const struct tc_feed_note *note) {
  size_t bytes = sizeof(struct tc_feed_item) + note->len;
  struct tc_feed_item *item;

  if (note->len > feed->config->feed_message_bytes_max || atomic_load(&feed->stop)) return NULL;
  if (atomic_fetch_add(&feed->backlog, note->len) + note->len > feed->config->feed_backlog_bytes ||
      (item = malloc(bytes)) == NULL) {
    atomic_fetch_sub(&feed->backlog, note->len);
    return NULL;
  }
  memcpy(item->stream, origin->stream, sizeof item->stream);
  memcpy(item->service, origin->service, sizeof item->service);
  memcpy(item->instance, origin->instance, sizeof item->instance);
  item->go_version = origin->go_version;
  item->slot = note->slot;
  item->count = note->count;
  item->missed = origin->missed[note->slot];
  item->gen = note->gen;
  item->from_wall_ns = note->from_wall_ns;
  item->until_wall_ns = note->until_wall_ns;
  item->posted_mono_ns = tc_mono_ns();
  item->len = note->len;
  memcpy(item->bytes, note->bytes, note->len);
  return item;
}

void tc_feed_publish(struct tc_feed *feed, unsigned port, struct tc_feed_origin *origin,
                     const struct tc_feed_note *note) {
  struct tc_feed_item *item = make_item(feed, origin, note);

  assert(port < feed->ports);
  if (item != NULL && tc_spsc_queue_post(&feed->inbox[port], item)) {
    origin->missed[note->slot] = 0;
    return;
  }
  if (item != NULL) atomic_fetch_sub(&feed->backlog, note->len);
  free(item);
  tc_feed_miss(feed, origin, note->slot, note->count);
}

/* --- sending ----------------------------------------------------------------------------------- */

static void send_to_readers(struct tc_feed *feed, const struct tc_feed_bundle *bundle) {
  struct tc_feed_message *message = malloc(sizeof *message + bundle->len);

  if (message == NULL) {
    count_dropped(feed, bundle->messages);
    return;
  }
  atomic_init(&message->holders, 1);
  message->topic_len = bundle->topic_len;
  message->len = bundle->len;
  tc_feed_bundle_write(bundle, message->bytes);
  for (size_t i = 0; i < sizeof feed->readers / sizeof feed->readers[0]; i++) {
    struct tc_feed_reader *reader = atomic_load(&feed->readers[i]);

    if (reader != NULL && !tc_feed_reader_return(reader, message))
      count_dropped(feed, bundle->messages);
  }
  tc_feed_message_release(message);
}

static bool send_to_subscribers(const struct outlet *outlet, const struct tc_feed_bundle *bundle) {
  nng_msg *msg;

  if (nng_msg_alloc(&msg, bundle->len) != 0) return false;
  tc_feed_bundle_write(bundle, nng_msg_body(msg));
  if (nng_sendmsg(outlet->socket, msg, NNG_FLAG_NONBLOCK) == 0) return true;
  nng_msg_free(msg);
  return false;
}

static void on_bundle(void *self, const struct tc_feed_bundle *bundle) {
  struct tc_feed *feed = self;

  atomic_fetch_sub(&feed->backlog, bundle->body_bytes);
  tc_metric_add(&feed->metrics.feed_messages_total, bundle->messages);
  tc_metric_add(&feed->metrics.feed_bundles_total, 1);
  tc_metric_add(&feed->metrics.feed_bytes_total, bundle->len);
  if (reader_listens(feed, false)) send_to_readers(feed, bundle);
  for (struct outlet *o = feed->outlets; o < feed->outlets + OUTLETS; o++)
    if (atomic_load(&o->subscribers) > 0 && !send_to_subscribers(o, bundle))
      count_dropped(feed, bundle->messages);
}

/* --- the thread -------------------------------------------------------------------------------- */

static void add_item(struct tc_feed *feed, struct tc_feed_item *item) {
  size_t len = item->len;
  uint32_t count = item->count;

  if (tc_feed_bundles_add(feed->bundles, item, item->posted_mono_ns) == TB_OK) return;
  atomic_fetch_sub(&feed->backlog, len);
  count_dropped(feed, count);
}

/* Returns true if there may be more. */
static bool take_items(struct tc_feed *feed) {
  bool more = false;

  for (unsigned port = 0; port < feed->ports; port++) {
    struct tc_feed_item *item;
    unsigned taken = 0;

    while (taken < TAKE_AT_ONCE && (item = tc_spsc_queue_take(&feed->inbox[port])) != NULL) {
      add_item(feed, item);
      taken++;
    }
    more |= taken == TAKE_AT_ONCE;
  }
  return more;
}

static bool has_work(void *self) {
  struct tc_feed *feed = self;

  if (atomic_load(&feed->stop)) return true;
  for (unsigned port = 0; port < feed->ports; port++)
    if (atomic_load(&feed->inbox[port].head) != atomic_load(&feed->inbox[port].tail)) return true;
  return false;
}

/* While a bundle is open, new items can wait until it is due: a nap that no post interrupts saves a wake for
 * each. */
static void sleep_until_due(struct tc_feed *feed, uint64_t ns) {
  struct timespec nap = { .tv_nsec = (long)ns };

  if (ns <= nap_ns_max)
    nanosleep(&nap, NULL);
  else
    tc_wakeup_sleep(&feed->wakeup, ns < idle_ns ? ns : idle_ns, has_work, feed);
}

static void *run_feed(void *self) {
  struct tc_feed *feed = self;

  for (;;) {
    bool stop = atomic_load(&feed->stop), more = take_items(feed);
    uint64_t now = tc_mono_ns();
    atomic_fetch_add_explicit(&feed->turns, 1, memory_order_relaxed);
    uint64_t due = tc_feed_bundles_flush(feed->bundles, now);

    if (more) continue;
    if (stop) break;
    sleep_until_due(feed, due == UINT64_MAX ? idle_ns : due - now);
  }
  tc_feed_bundles_flush_all(feed->bundles);
  return NULL;
}

static tb_rc start_thread(struct tc_feed *feed, struct tb_diag *diag) {
  int failed = tc_thread_start(&feed->thread, NULL, run_feed, feed);

  if (failed != 0) return tb_fail(diag, TB_IO, "feed thread: %s", strerror(failed));
  pthread_setname_np(feed->thread, "tc-feed");
  feed->runs = true;
  return TB_OK;
}

/* --- subscribers ------------------------------------------------------------------------------- */

/* Called on nng's threads, down to on_pipe(). */
static void subscriber_left(void *self) {
  struct outlet *outlet = self;

  atomic_fetch_sub(&outlet->subscribers, 1);
  atomic_fetch_sub(&outlet->feed->metrics.feed_subscribers, 1);
}

static void subscriber_came(struct outlet *outlet, nng_pipe pipe) {
  struct tc_metrics *metrics = &outlet->feed->metrics;

  atomic_fetch_add(&outlet->subscribers, 1);
  atomic_fetch_add(&metrics->feed_subscribers, 1);
  atomic_fetch_add(&metrics->feed_subscriptions_total, 1);
  if (!tc_nng_tls_pipe_came(pipe, subscriber_left, outlet) && outlet->over_tls)
    subscriber_left(outlet);
}

/* nng reports ADD_PRE and REM_POST in pairs, even for a pipe that ends early. For TLS the engine reports the
 * end, at once. */
static void on_pipe(nng_pipe pipe, nng_pipe_ev event, void *self) {
  struct outlet *outlet = self;

  if (event == NNG_PIPE_EV_ADD_PRE)
    subscriber_came(outlet, pipe);
  else if (!outlet->over_tls)
    subscriber_left(outlet);
}

static int set_queue(const struct tc_config *config, nng_socket socket) {
  uint64_t most = config->feed_queue_bytes / config->feed_message_bytes_max;
  int messages = most < QUEUE_MIN ? QUEUE_MIN : most > QUEUE_MAX ? QUEUE_MAX : (int)most;

  return nng_socket_set_int(socket, NNG_OPT_SENDBUF, messages);
}

static tb_rc open_outlet(struct tc_feed *feed, unsigned kind, struct tb_diag *diag) {
  struct outlet *o = &feed->outlets[kind];

  if (o->is_open) return TB_OK;
  o->feed = feed;
  o->over_tls = kind == OVER_TLS;
  int rv = nng_pub0_open(&o->socket);
  o->is_open = rv == 0;
  if (rv == 0) rv = nng_socket_set_size(o->socket, NNG_OPT_RECVMAXSZ, RECEIVE_BYTES_MAX);
  if (rv == 0) rv = set_queue(feed->config, o->socket);
  if (rv == 0) rv = nng_pipe_notify(o->socket, NNG_PIPE_EV_ADD_PRE, on_pipe, o);
  if (rv == 0) rv = nng_pipe_notify(o->socket, NNG_PIPE_EV_REM_POST, on_pipe, o);
  return rv == 0 ? TB_OK : tb_fail(diag, TB_IO, "feed socket: %s", nng_strerror(rv));
}

static tb_rc listen_on_all(struct tc_feed *feed, struct tc_nng_tls *tls, struct tb_diag *diag) {
  const char *urls = feed->config->listen_feed;
  char url[TC_URL_BYTES];

  for (unsigned n = 0; n < TC_URLS_MAX && tc_urls_next(&urls, url); n++) {
    unsigned kind = tc_url_is_tls(url) ? OVER_TLS : PLAIN;
    TB_TRY(open_outlet(feed, kind, diag));
    TB_TRY(tc_nng_listen(feed->outlets[kind].socket, url, tls, diag, feed->urls[n]));
  }
  return TB_OK;
}

tb_rc tc_feed_new(const struct tc_config *config, unsigned ports, struct tc_feed **out) {
  struct tc_feed *feed = calloc(1, sizeof *feed);
  struct tc_feed_bundle_limits limits = { .topics_max = TOPICS_MAX,
                                          .body_bytes_max = config->feed_message_bytes_max,
                                          .wait_ns = config->feed_bundle_wait,
                                          .wall_ns = tc_wall_ns };
  struct tc_feed_bundle_sink sink = { feed, on_bundle };

  if (feed == NULL) return TB_NOMEM;
  feed->config = config;
  feed->ports = ports;
  feed->wakeup.fd = -1;
  feed->inbox = aligned_alloc(_Alignof(struct tc_spsc_queue), (ports + 1) * sizeof *feed->inbox);
  tb_rc rc = feed->inbox != NULL ? tc_feed_bundles_new(&limits, sink, &feed->bundles) : TB_NOMEM;
  for (unsigned i = 0; feed->inbox != NULL && i < ports; i++)
    tc_spsc_queue_init(&feed->inbox[i], tc_wakeup_wake, &feed->wakeup);
  if (rc == TB_OK) rc = tc_wakeup_init(&feed->wakeup, NULL);
  if (rc != TB_OK) {
    tc_feed_free(feed);
    return rc;
  }
  *out = feed;
  return TB_OK;
}

tb_rc tc_feed_start(struct tc_feed *feed, struct tc_nng_tls *tls, struct tb_diag *diag) {
  TB_TRY(listen_on_all(feed, tls, diag));
  return start_thread(feed, diag);
}

void tc_feed_stop(struct tc_feed *feed) {
  if (feed == NULL) return;
  atomic_store(&feed->stop, true);
  if (feed->runs) {
    tc_wakeup_wake(&feed->wakeup);
    pthread_join(feed->thread, NULL);
    feed->runs = false;
  }
  for (struct outlet *o = feed->outlets; o < feed->outlets + OUTLETS; o++) {
    if (o->is_open) o->is_left = !tc_nng_close(o->socket);
    o->is_open = false;
  }
}

void tc_feed_free(struct tc_feed *feed) {
  struct tc_feed_item *item;

  if (feed == NULL) return;
  tc_feed_stop(feed);
  if (feed->outlets[PLAIN].is_left || feed->outlets[OVER_TLS].is_left)
    return; /* nng may still call on_pipe() */
  for (unsigned i = 0; feed->inbox != NULL && i < feed->ports; i++)
    while ((item = tc_spsc_queue_take(&feed->inbox[i])) != NULL) free(item);
  tc_feed_bundles_free(feed->bundles);
  tc_wakeup_fini(&feed->wakeup);
  free(feed->inbox);
  free(atomic_load(&feed->page));
  free(feed);
}

tb_rc tc_feed_attach(struct tc_feed *feed, struct tc_feed_reader *reader) {
  for (size_t i = 0; i < sizeof feed->readers / sizeof feed->readers[0]; i++) {
    struct tc_feed_reader *none = NULL;

    if (atomic_compare_exchange_strong(&feed->readers[i], &none, reader)) return TB_OK;
  }
  return TB_BUDGET;
}

const char *tc_feed_url(const struct tc_feed *feed, unsigned i) {
  return i < TC_URLS_MAX && feed->urls[i][0] != '\0' ? feed->urls[i] : NULL;
}

tb_rc tc_feed_set_page(struct tc_feed *feed, const char *url) {
  char *copy = strdup(url);

  if (copy == NULL) return TB_NOMEM;
  atomic_store(&feed->page, copy);
  return TB_OK;
}

const char *tc_feed_page(const struct tc_feed *feed) {
  return atomic_load(&feed->page);
}

uint64_t tc_feed_turns(const struct tc_feed *feed) {
  return atomic_load(&feed->turns);
}

struct tc_metrics *tc_feed_metrics(struct tc_feed *feed) {
  return &feed->metrics;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/net/nng_listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <nng/supplemental/tls/tls.h>
#include <nng/transport/ipc/ipc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "nng/accept.h"

enum {
  SOCKET_MODE = 0660, /* this host's group reads traces, others do not */
  TICK_MS = 250,      /* longer than nng's own pause of 100 ms after an error */
  /* While nothing is wrong. */
  CALM_TICK_MS = 1000,
  /* Ticks until a knock without an answer counts. Too few would be worse than too many: a new listener cuts off
   * every reader of the old one. Twice as many after each new listener that has not been seen alive. */
  PATIENCE_MIN = 4,
  PATIENCE_MAX = 64,
  GREETING_BYTES = 8,
};

enum state {
  CALM,    /* no new errors */
  SUSPECT, /* an error came: it may have been the last thing the listener did */
  KNOCKED, /* a live listener counts our knock */
  GONE,    /* the new one could not be started yet: the old one's address is still taken */
};

struct tc_nng_listener {
  nng_socket socket;
  struct tc_nng_tls *tls;
  char url[TC_URL_BYTES];
  nng_listener current;
  nng_sockaddr address;
  pthread_t thread;
  atomic_ullong turns;
  pthread_mutex_t lock; /* for closing */
  pthread_cond_t changed;
  bool closing;
  enum state state;
  uint64_t errors, accepted; /* when last looked at */
  int peer;                  /* the protocol that the socket talks to: what we come as */
  int knock_fd;              /* -1: we have left, or never came */
  uint32_t knock;            /* the last one's name; 0: none */
  bool greeted;              /* and have said who we are */
  unsigned waited, patience; /* ticks since the knock */
};

/* --- what nng counts --------------------------------------------------------------------------- */

struct counts {
  uint64_t errors, accepted;
};

static nng_stat *child_named(nng_stat *parent, const char *name) {
  nng_stat *child = nng_stat_child(parent);

  while (child != NULL && strcmp(nng_stat_name(child), name) != 0) child = nng_stat_next(child);
  return child;
}

static uint64_t value_of(nng_stat *parent, const char *name) {
  nng_stat *stat = child_named(parent, name);

  return stat != NULL ? nng_stat_value(stat) : 0;
}

/* "other" is where NNG_ECLOSED is counted, beside what ends well. */
static bool read_counts(const struct tc_nng_listener *l, struct counts *out) {
  uint64_t id = (uint64_t)nng_listener_id(l->current);
  nng_stat *all, *stat = NULL;

  if (nng_stats_get(&all) != 0) return false;
  for (stat = nng_stat_child(all); stat != NULL; stat = nng_stat_next(stat))
    if (strcmp(nng_stat_name(stat), "listener") == 0 && value_of(stat, "id") == id) break;
  if (stat != NULL)
    *out =
        (struct counts){ .errors = value_of(stat, "other"), .accepted = value_of(stat, "accept") };
  nng_stats_free(all);
  return stat != NULL;
}

/* --- knocking ---------------------------------------------------------------------------------- */

/* Its name is known before it comes, so that it is let in where no other peer is. */
static void announce(struct tc_nng_listener *l, int fd, sa_family_t family) {
  struct sockaddr_storage here = { .ss_family = family };
  socklen_t bytes = family == AF_INET    ? sizeof(struct sockaddr_in)
                    : family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                         : sizeof family; /* the kernel chooses a name */

  if (bind(fd, (const struct sockaddr *)&here, bytes) != 0) return;
  bytes = sizeof here;
  if (getsockname(fd, (struct sockaddr *)&here, &bytes) != 0) return;
  uint32_t knock = tc_nng_knock_of((const struct sockaddr *)&here, bytes);
  tc_nng_accept_expect(l->knock, knock);
  l->knock = knock;
}

static int connect_to(struct tc_nng_listener *l) {
  const nng_sockaddr *at = &l->address;
  struct sockaddr_un path = { .sun_family = AF_UNIX };
  struct sockaddr_in v4 = { .sin_family = AF_INET };
  struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
  const struct sockaddr *to = (const struct sockaddr *)&path;
  socklen_t bytes = sizeof path;

  if (at->s_family == NNG_AF_IPC) {
    snprintf(path.sun_path, sizeof path.sun_path, "%.107s", at->s_ipc.sa_path);
  } else if (at->s_family == NNG_AF_INET) {
    v4.sin_port = at->s_in.sa_port;
    v4.sin_addr.s_addr = at->s_in.sa_addr;
    to = (const struct sockaddr *)&v4;
    bytes = sizeof v4;
  } else {
    v6.sin6_port = at->s_in6.sa_port;
    memcpy(&v6.sin6_addr, at->s_in6.sa_addr, sizeof v6.sin6_addr);
    to = (const struct sockaddr *)&v6;
    bytes = sizeof v6;
  }
  int fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd >= 0) announce(l, fd, to->sa_family);
  if (fd >= 0)
    (void)connect(fd, to, bytes); /* over loopback: done at once, or it does not matter */
  return fd;
}

static void leave(struct tc_nng_listener *l) {
  if (l->knock_fd >= 0) close(l->knock_fd);
  l->knock_fd = -1;
}

/* As a reader, which is counted as accepted; without TLS, for a TLS listener, which is counted as an error. */
static void knock(struct tc_nng_listener *l) {
  l->knock_fd = connect_to(l);
  if (l->knock_fd < 0) return; /* no file is left to us: at the next tick */
  l->greeted = false;
  l->waited = 0;
  l->state = KNOCKED;
  if (l->tls != NULL) leave(l);
}

/* Going before the greeting is what stops a listener in the first place, so we stay until it comes, over as
 * many ticks as it takes. It proves nothing: nng's transport greets while the listener behind it is dead. */
static bool answer_greeting(struct tc_nng_listener *l) {
  unsigned char greeting[GREETING_BYTES];

  if (l->greeted || l->knock_fd < 0) return false;
  if (recv(l->knock_fd, greeting, sizeof greeting, MSG_DONTWAIT) <= 0) return false;
  memcpy(greeting,
         (unsigned char[]){ 0, 'S', 'P', 0, (unsigned char)(l->peer >> 8), (unsigned char)l->peer,
                            0, 0 },
         sizeof greeting);
  (void)!send(l->knock_fd, greeting, sizeof greeting, MSG_DONTWAIT | MSG_NOSIGNAL);
  l->greeted = true;
  return true;
}

/* --- starting, and starting again -------------------------------------------------------------- */

static int start(struct tc_nng_listener *l) {
  int rv = nng_listener_create(&l->current, l->socket, l->url);

  if (rv != 0) return rv;
  if (tc_url_is_ipc(l->url))
    rv = nng_listener_set_int(l->current, NNG_OPT_IPC_PERMISSIONS, SOCKET_MODE);
  else
    rv = nng_listener_set_bool(l->current, NNG_OPT_TCP_KEEPALIVE, true);
  if (rv == 0 && l->tls != NULL)
    rv = nng_listener_set_ptr(l->current, NNG_OPT_TLS_CONFIG, tc_nng_tls_config(l->tls));
  if (rv == 0) rv = nng_listener_start(l->current, 0);
  if (rv != 0) nng_listener_close(l->current);
  return rv;
}

static void begin_watch(struct tc_nng_listener *l) {
  struct counts now = { 0 };

  (void)read_counts(l, &now);
  l->errors = now.errors;
  l->accepted = now.accepted;
  l->state = CALM;
}

static void start_again(struct tc_nng_listener *l) {
  if (l->state != GONE) {
    leave(l);
    nng_listener_close(l->current);
    if (l->patience < PATIENCE_MAX) l->patience *= 2;
  }
  l->state = GONE;
  if (start(l) == 0) begin_watch(l);
}

static void be_calm(struct tc_nng_listener *l) {
  leave(l);
  l->patience = PATIENCE_MIN;
  l->state = CALM;
}

/* Over TLS our leaving is the one error. Else an error may belong to a later caller, and the last: an
 * accept in a tick without any is the proof. */
static void await_answer(struct tc_nng_listener *l, bool accepts, uint64_t fails) {
  bool tls = l->tls != NULL, alive = tls ? fails == 1 || accepts : fails == 0 && accepts;

  if (alive) {
    be_calm(l);
  } else if (fails > 0 && (tls || l->greeted)) {
    leave(l);
    l->state = SUSPECT;
  } else if (fails > 0 || answer_greeting(l)) {
    l->waited = 0;
  } else if (++l->waited >= l->patience) {
    start_again(l);
  }
}

static void look(struct tc_nng_listener *l) {
  struct counts now;

  if (l->state == GONE) {
    start_again(l);
    return;
  }
  if (!read_counts(l, &now)) return;
  bool accepts = now.accepted != l->accepted;
  uint64_t fails = now.errors - l->errors;
  l->accepted = now.accepted;
  l->errors = now.errors;
  switch (l->state) {
  case CALM:
    if (fails > 0) l->state = SUSPECT;
    break;
  case SUSPECT: /* while errors come it is alive, but the newest may be the last */
    if (fails > 0) break;
    if (accepts)
      be_calm(l);
    else
      knock(l);
    break;
  case KNOCKED: await_answer(l, accepts, fails); break;
  case GONE: break;
  }
}

/* Not by nng's timers, which go by the wall clock: where that is set back by a day, they come a day late, and with
 * them the end of nng's own pause after an error. fault row 22 shows it. */
static bool sleeps_a_tick(struct tc_nng_listener *l) {
  struct timespec until = tc_from_now(l->state == CALM ? CALM_TICK_MS : TICK_MS);

  pthread_mutex_lock(&l->lock);
  while (!l->closing && pthread_cond_timedwait(&l->changed, &l->lock, &until) != ETIMEDOUT)
    continue;
  bool closing = l->closing;
  pthread_mutex_unlock(&l->lock);
  return !closing;
}

static void *watch(void *self) {
  struct tc_nng_listener *l = self;

  pthread_setname_np(pthread_self(), "tc-listener");
  while (sleeps_a_tick(l)) {
    atomic_fetch_add_explicit(&l->turns, 1, memory_order_relaxed);
    look(l);
    if (l->tls != NULL) tc_nng_tls_expire();
  }
  return NULL;
}

static int start_watch(struct tc_nng_listener *l) {
  begin_watch(l);
  pthread_mutex_init(&l->lock, NULL);
  tc_cond_init(&l->changed);
  int failed = tc_thread_start(&l->thread, NULL, watch, l);
  if (failed == 0) return 0;
  pthread_cond_destroy(&l->changed);
  pthread_mutex_destroy(&l->lock);
  return NNG_ESYSERR + failed;
}

/* --- public ------------------------------------------------------------------------------------ */

tb_rc tc_nng_listen(nng_socket socket, const char *url, struct tc_nng_tls *tls,
                    struct tb_diag *diag, struct tc_nng_listener **out) {
  struct tc_nng_listener *l = calloc(1, sizeof *l);
  bool wants_tls = tc_url_is_tls(url);
  char *real = NULL;

  if (l == NULL) return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  l->socket = socket;
  l->knock_fd = -1;
  l->patience = PATIENCE_MIN;
  l->tls = wants_tls ? tls : NULL;
  snprintf(l->url, sizeof l->url, "%s", url);
  if (wants_tls && tls == NULL) {
    free(l);
    return tb_fail(diag, TB_IO, "%.120s: no certificates for it", url);
  }
  int rv = start(l);
  bool started = rv == 0;
  if (rv == 0) rv = nng_listener_get_addr(l->current, NNG_OPT_LOCADDR, &l->address);
  if (rv == 0) rv = nng_socket_get_int(socket, NNG_OPT_PEER, &l->peer);
  if (rv == 0) rv = nng_listener_get_string(l->current, NNG_OPT_URL, &real);
  if (rv == 0) {
    snprintf(l->url, sizeof l->url, "%s", real); /* port 0 resolved: a new start takes the same */
    nng_strfree(TB_MOVE(real));
    rv = start_watch(l);
  }
  if (rv != 0) {
    if (started) nng_listener_close(l->current);
    if (real != NULL) nng_strfree(real);
    free(l);
    return tb_fail(diag, TB_IO, "cannot listen on %.120s: %s", url, nng_strerror(rv));
  }
  *out = l;
  return TB_OK;
}

void tc_nng_listener_close(struct tc_nng_listener *l) {
  if (l == NULL) return;
  pthread_mutex_lock(&l->lock);
  l->closing = true;
  pthread_cond_signal(&l->changed);
  pthread_mutex_unlock(&l->lock);
  pthread_join(l->thread, NULL);
  pthread_cond_destroy(&l->changed);
  pthread_mutex_destroy(&l->lock);
  leave(l);
  tc_nng_accept_expect(l->knock, 0);
  if (l->state != GONE) nng_listener_close(l->current);
  free(l);
}

uint64_t tc_nng_listener_turns(const struct tc_nng_listener *l) {
  return atomic_load(&l->turns);
}

const char *tc_nng_listener_url(const struct tc_nng_listener *l) {
  return l->url;
}

/* --- lists ------------------------------------------------------------------------------------- */

tb_rc tc_nng_listeners_add(struct tc_nng_listeners *all, nng_socket socket, const char *url,
                           struct tc_nng_tls *tls, struct tb_diag *diag) {
  if (all->count == TC_URLS_MAX)
    return tb_fail(diag, TB_BUDGET, "%.120s: more than %d listeners", url, TC_URLS_MAX);
  TB_TRY(tc_nng_listen(socket, url, tls, diag, &all->at[all->count]));
  all->count++;
  return TB_OK;
}

void tc_nng_listeners_close(struct tc_nng_listeners *all) {
  while (all->count > 0) tc_nng_listener_close(all->at[--all->count]);
}

uint64_t tc_nng_listeners_turns(const struct tc_nng_listeners *all) {
  uint64_t least = UINT64_MAX;

  for (unsigned i = 0; i < all->count; i++) {
    uint64_t turns = tc_nng_listener_turns(all->at[i]);
    if (turns < least) least = turns;
  }
  return least;
}

const char *tc_nng_listeners_url(const struct tc_nng_listeners *all, unsigned i) {
  return i < all->count ? tc_nng_listener_url(all->at[i]) : NULL;
}

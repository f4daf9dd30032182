/* SPDX-License-Identifier: Apache-2.0 */
#include "nng/close.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/thread.h"

enum { PATIENCE_S = 1 };

struct closing {
  nng_socket socket;
  sem_t closed;
  atomic_bool one_is_out; /* one of the two threads is done */
};

static void drop_closing(struct closing *c) {
  if (!atomic_exchange(&c->one_is_out, true)) return;
  sem_destroy(&c->closed);
  free(c);
}

static void *thread_main(void *arg) {
  struct closing *c = arg;

  nng_close(c->socket);
  sem_post(&c->closed);
  drop_closing(c);
  return NULL;
}

static bool wait_until_closed(struct closing *c) {
  struct timespec until;
  int rv;

  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += PATIENCE_S;
  while ((rv = sem_clockwait(&c->closed, CLOCK_MONOTONIC, &until)) != 0 && errno == EINTR)
    ;
  return rv == 0;
}

bool tc_nng_close(nng_socket socket) {
  struct closing *c = calloc(1, sizeof *c);
  pthread_attr_t detached;
  pthread_t thread;

  pthread_attr_init(&detached);
  pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
  bool apart = false;
  if (c != NULL) {
    c->socket = socket;
    sem_init(&c->closed, 0, 0);
    apart = tc_thread_start(&thread, &detached, thread_main, c) == 0;
  }
  pthread_attr_destroy(&detached);
  if (!apart) {
    free(c);
    nng_close(socket);
    return true;
  }
  bool closed = wait_until_closed(c);
  drop_closing(c);
  return closed;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A shop that knows nothing of tracing, works well for a while, and then has one fault that is known: planted FAULT GOOD_MS LASTS_MS.
 *
 *     none      it works well for longer
 *     deadlock  three threads each hold a lock and want the next one's
 *     convoy    eight clerks take the stock for 5 ms each, in turn
 *     flush     the ledger's lock is held by a thread that reads from a pipe into which nothing comes; a clerk waits for it
 *
 * Alerts must name each (tests/e2e/test_planted.py). */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CLERKS = 8, RING = 3 };

static pthread_mutex_t stock = PTHREAD_MUTEX_INITIALIZER, ledger = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t ring[RING] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
                                      PTHREAD_MUTEX_INITIALIZER };
static pthread_barrier_t all_hold, ledger_is_held;
static struct timespec ends_at;
static int silent[2];
static atomic_uint served; /* clerks that have had the stock */

static void pause_for(long us) {
  nanosleep(&(struct timespec){ us / 1000000, us % 1000000 * 1000 }, NULL);
}

static void set_end(long ms) {
  clock_gettime(CLOCK_MONOTONIC, &ends_at);
  ends_at.tv_sec += ms / 1000;
  ends_at.tv_nsec += ms % 1000 * 1000000;
}

static bool goes_on(void) {
  struct timespec now;

  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec < ends_at.tv_sec ||
         (now.tv_sec == ends_at.tv_sec && now.tv_nsec < ends_at.tv_nsec);
}

static void start(void *(*run)(void *), void *arg) {
  pthread_t thread;

  if (pthread_create(&thread, NULL, run, arg) != 0) abort();
  pthread_detach(thread);
}

static void until_the_end(void) {
  while (goes_on()) pause_for(10000);
}

static void work_well(void) {
  while (goes_on()) {
    pthread_mutex_lock(&stock);
    pthread_mutex_unlock(&stock);
    pause_for(2000);
  }
}

static void *embrace(void *arg) {
  int mine = (int)(long)arg;

  pthread_mutex_lock(&ring[mine]);
  pthread_barrier_wait(&all_hold);
  pthread_mutex_lock(&ring[(mine + 1) % RING]);
  return NULL;
}

static void plant_deadlock(void) {
  pthread_barrier_init(&all_hold, NULL, RING);
  for (long i = 0; i < RING; i++) start(embrace, (void *)i);
  until_the_end();
}

/* A clerk comes again as soon as the next clerk has the lock, so all but one wait, however busy the machine is. */
static void *clerk(void *arg) {
  while (goes_on()) {
    pthread_mutex_lock(&stock);
    unsigned mine = ++served;
    pause_for(5000);
    pthread_mutex_unlock(&stock);
    while (goes_on() && served == mine) pause_for(200);
  }
  return arg;
}

static void plant_convoy(void) {
  for (int i = 0; i < CLERKS; i++) start(clerk, NULL);
  until_the_end();
}

static void *flusher(void *arg) {
  char byte;

  pthread_mutex_lock(&ledger);
  pthread_barrier_wait(&ledger_is_held);
  if (read(silent[0], &byte, 1) < 0) abort();
  return arg;
}

static void *entry_clerk(void *arg) {
  pthread_barrier_wait(&ledger_is_held);
  pthread_mutex_lock(&ledger);
  return arg;
}

static void plant_flush(void) {
  if (pipe(silent) != 0) abort();
  pthread_barrier_init(&ledger_is_held, NULL, 2);
  start(flusher, NULL);
  start(entry_clerk, NULL);
  until_the_end();
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*plant)(void);
  } faults[] = { { "none", work_well },
                 { "deadlock", plant_deadlock },
                 { "convoy", plant_convoy },
                 { "flush", plant_flush } };
  size_t i = 0, n = sizeof faults / sizeof *faults;

  while (argc == 4 && i < n && strcmp(faults[i].name, argv[1]) != 0) i++;
  if (argc != 4 || i == n) {
    fprintf(stderr, "usage: planted none|deadlock|convoy|flush GOOD_MS LASTS_MS\n");
    return 2;
  }
  set_end(atol(argv[2]));
  work_well();
  set_end(atol(argv[3]));
  faults[i].plant();
  return 0; /* what is stuck ends with the process */
}

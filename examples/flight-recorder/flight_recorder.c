/* SPDX-License-Identifier: Apache-2.0 */
/* flight_recorder SERVER CERTS [SECONDS]: keeps the newest seconds of what it does, and sends them when asked.
 *
 *   cc -pthread flight_recorder.c $(pkg-config --cflags --libs traceagent) -o flight_recorder
 *   flight_recorder @tracecollect-data/ready certs 30 &
 *   kill -USR1 $!                                      -- the program's own trigger, or from outside:
 *   tracectl snap --service flight-recorder --last 10s
 *
 * Nothing leaves the program before that. Four lines a second say what it keeps, until SIGTERM. */
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <traceagent.h>

enum { WORKERS = 2, KEEP_S = 30 };

static atomic_bool stopped;
static ta_name step;

static void on_term(int signal) {
  (void)signal;
  stopped = true;
}

/* All that a signal handler has to do. */
static void on_usr1(int signal) {
  (void)signal;
  ta_emit_snap(0);
}

static void watch(int signal, void (*handler)(int)) {
  struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };

  sigaction(signal, &action, NULL);
}

static void nap(long ms) {
  nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 }, NULL);
}

static void *work(void *self) {
  (void)self;
  while (!stopped) {
    ta_region_begin(step, 0);
    ta_wait_begin(TA_WAIT_SLEEP);
    nap(1);
    ta_wait_end();
    ta_region_end();
  }
  return NULL;
}

static void report(void) {
  struct ta_forward_status s = { .size = sizeof s };

  if (ta_emit_forward_status(&s) != TA_OK) return;
  printf("keeps %" PRIu64 " generations, %" PRIu64 " KiB; forgot %" PRIu64 ", sent %" PRIu64
         " on %" PRIu64 " requests, lost %" PRIu64 "\n",
         s.recorded_generations, s.recorded_bytes >> 10, s.forgotten_generations,
         s.acked_generations, s.snaps, s.lost_generations);
  fflush(stdout);
}

int main(int argc, char **argv) {
  pthread_t worker[WORKERS];

  if (argc < 3) {
    fprintf(stderr, "usage: %s SERVER CERTS [SECONDS]\n", argv[0]);
    return 2;
  }
  uint64_t keep_s = argc > 3 ? strtoull(argv[3], NULL, 10) : KEEP_S;
  struct ta_forward_config where = { .size = sizeof where,
                                     .server = argv[1],
                                     .certs = argv[2],
                                     .service = "flight-recorder",
                                     .record_ms = keep_s * 1000 };
  struct ta_emit_config how = { .generation_ms = 200 };
  watch(SIGTERM, on_term);
  watch(SIGUSR1, on_usr1);
  int error = ta_emit_start(&where, &how);
  if (error != TA_OK) {
    fprintf(stderr, "flight_recorder: %s\n", ta_strerror(error));
    return 1;
  }
  step = ta_name_of("step");
  for (int i = 0; i < WORKERS; i++) pthread_create(&worker[i], NULL, work, NULL);
  while (!stopped) {
    nap(250);
    report();
  }
  for (int i = 0; i < WORKERS; i++) pthread_join(worker[i], NULL);
  return ta_emit_stop(30000) == TA_OK ? 0 : 1;
}

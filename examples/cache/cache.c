/* SPDX-License-Identifier: Apache-2.0 */
/* cache SERVER CERTS [GETS]: a cache of pages that traces its own events, thousands a second, and its content.
 *
 *   cc -pthread cache.c $(pkg-config --cflags --libs traceagent) -o cache
 *   cache @tracecollect-data/ready certs 100000
 *   tracectl fetch --full --service cache -o t.trace && tracectl cat --json t.trace
 *   tracectl fetch --service cache -o t.trace && go tool trace t.trace
 *
 * A log would do for what happens now and then. Hits and misses come too often for that; so they are an experiment: two
 * numbers each. Evictions happen on the cache's own thread and under its lock: their numbers say in which order,
 * whatever the clocks of the cores say. Before the program ends it writes the whole cache as one blob, where an event
 * for each page would cost more than the cache itself. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <traceexperiment.h>

enum { PAGES = 64, KEYS = 256, READERS = 2, GETS = 100000 };

static const char spec[] = "experiment Cache\n"
                           "event Hit page_value age_value\n"
                           "event Miss page_value reason_string\n"
                           "event Evict shelf_value shelf_seq page_value\n"
                           "event Content pages_value blob\n";
enum { HIT, MISS, EVICT, CONTENT, EVENTS };
static ta_event event[EVENTS];

static struct {
  pthread_mutex_t lock;
  struct {
    unsigned key; /* + 1; 0: nothing */
    unsigned used;
  } page[PAGES];
  ta_sequence evictions;
  unsigned clock;
} cache = { .lock = PTHREAD_MUTEX_INITIALIZER };

static unsigned oldest(void) {
  unsigned at = 0;

  for (unsigned i = 1; i < PAGES; i++)
    if (cache.page[i].used < cache.page[at].used) at = i;
  return at;
}

static void put(unsigned at, unsigned key) {
  cache.page[at].key = key + 1;
  cache.page[at].used = ++cache.clock;
}

static void get(unsigned key, ta_name never, ta_name gone) {
  static unsigned char seen[KEYS];

  pthread_mutex_lock(&cache.lock);
  unsigned at = 0;
  while (at < PAGES && cache.page[at].key != key + 1) at++;
  if (at < PAGES) {
    ta_experiment_emit(event[HIT], key, cache.clock - cache.page[at].used, 0, 0);
    cache.page[at].used = ++cache.clock;
  } else {
    ta_experiment_emit(event[MISS], key, seen[key] ? gone : never, 0, 0);
    seen[key] = 1;
    at = oldest();
    unsigned old = cache.page[at].key;
    if (old == 0)
      put(at, key);
    else
      TA_ATOMIC(put(at, key),
                ta_experiment_emit(event[EVICT], 0, TA_SEQUENCE(&cache.evictions), old - 1, 0));
  }
  pthread_mutex_unlock(&cache.lock);
}

static unsigned gets;

static void *reader(void *arg) {
  unsigned random = (unsigned)(size_t)arg;
  ta_name never = ta_name_of("never seen"), gone = ta_name_of("gone again");

  for (unsigned i = 0; i < gets; i++) {
    random = random * 1664525 + 1013904223;
    unsigned a = random >> 24, b = random >> 16 & 255;
    get(a < b ? a : b, never, gone); /* low keys are asked for more often */
  }
  return NULL;
}

int main(int argc, char **argv) {
  pthread_t thread[READERS];
  struct ta_forward_config where = { .service = "cache" };
  struct ta_emit_config how = { .generation_ms = 100 };
  int error;

  if (argc < 3) {
    fprintf(stderr, "usage: cache SERVER CERTS [GETS]\n");
    return 2;
  }
  where.server = argv[1];
  where.certs = argv[2];
  gets = (argc > 3 ? (unsigned)atoi(argv[3]) : GETS) / READERS;
  if ((error = ta_experiment_register(spec, NULL, event, EVENTS)) != TA_OK ||
      (error = ta_emit_start(&where, &how)) != TA_OK) {
    fprintf(stderr, "cache: %s\n", ta_strerror(error));
    return 1;
  }
  for (size_t i = 0; i < READERS; i++) pthread_create(&thread[i], NULL, reader, (void *)(i + 1));
  for (size_t i = 0; i < READERS; i++) pthread_join(thread[i], NULL);
  ta_emit_blob(event[CONTENT], ta_name_of("pages"), cache.page, sizeof cache.page, PAGES, 0, 0, 0);

  struct ta_emit_status status = { .size = sizeof status };
  ta_emit_status(&status);
  printf("%u gets, %u used, %llu dropped, %llu misused\n", gets * READERS, cache.clock,
         (unsigned long long)status.dropped, (unsigned long long)status.misused);
  if ((error = ta_emit_stop(10000)) == TA_OK) return 0;
  fprintf(stderr, "cache: %s\n", ta_strerror(error));
  return 1;
}

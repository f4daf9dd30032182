/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/ingest/quota.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"

enum { BUCKETS = 1024, PACE_NS = 250000000 };

struct entry {
  struct tc_quota quota; /* must be first: cast in tc_quotas_leave() */
  struct entry *next;
  uint64_t connections;
  char identity[];
};

/* For the whole process, as the store's threads end jobs. */
static atomic_size_t with_jobs;
static atomic_ullong jobs_done;

size_t tc_quotas_with_jobs(void) {
  return atomic_load_explicit(&with_jobs, memory_order_relaxed);
}

uint64_t tc_jobs_done(void) {
  return atomic_load_explicit(&jobs_done, memory_order_relaxed);
}

/* If two loops call this at once, one of them ends the window. */
uint64_t tc_jobs_paced(uint64_t now_ns) {
  static atomic_ullong began_ns, began_jobs, paced;
  unsigned long long began = atomic_load_explicit(&began_ns, memory_order_relaxed);
  uint64_t length = now_ns - began, jobs;

  if (now_ns > began && length >= PACE_NS &&
      atomic_compare_exchange_strong(&began_ns, &began, now_ns)) {
    jobs = tc_jobs_done();
    jobs -= atomic_exchange_explicit(&began_jobs, jobs, memory_order_relaxed);
    atomic_store_explicit(&paced, (uint64_t)((double)jobs * PACE_NS / (double)length),
                          memory_order_relaxed);
  }
  return atomic_load_explicit(&paced, memory_order_relaxed);
}

void tc_job_begun(struct tc_quota *quota) {
  if (atomic_fetch_add_explicit(&quota->jobs, 1, memory_order_relaxed) == 0)
    atomic_fetch_add_explicit(&with_jobs, 1, memory_order_relaxed);
}

void tc_job_done(struct tc_quota *quota) {
  atomic_fetch_add_explicit(&jobs_done, 1, memory_order_relaxed);
  if (atomic_fetch_sub_explicit(&quota->jobs, 1, memory_order_relaxed) == 1)
    atomic_fetch_sub_explicit(&with_jobs, 1, memory_order_relaxed);
}

struct tc_quotas {
  pthread_mutex_t lock;
  struct entry *buckets[BUCKETS];
};

tb_rc tc_quotas_new(struct tc_quotas **out) {
  struct tc_quotas *quotas = calloc(1, sizeof *quotas);

  if (quotas == NULL) return TB_NOMEM;
  pthread_mutex_init(&quotas->lock, NULL);
  *out = quotas;
  return TB_OK;
}

void tc_quotas_free(struct tc_quotas *quotas) {
  if (quotas == NULL) return;
  for (size_t i = 0; i < BUCKETS; i++)
    for (struct entry *entry = quotas->buckets[i], *next; entry != NULL; entry = next) {
      next = entry->next;
      free(entry);
    }
  pthread_mutex_destroy(&quotas->lock);
  free(quotas);
}

/* Owners are names in certificates of ours, so no agent can choose a bucket. */
static struct entry **bucket_of(struct tc_quotas *quotas, const char *identity) {
  return &quotas->buckets[tb_hash(TB_HASH_START, identity, strlen(identity)) % BUCKETS];
}

/* May the entry be freed? No thread reads a quota after it freed the last record. An entry whose rate limit is in use stays, so
 * that an owner cannot escape the limit by reconnecting. */
static bool is_idle(struct entry *entry) {
  return entry->connections == 0 && atomic_load(&entry->quota.record_bytes) == 0 &&
         tc_rate_limit_is_idle(&entry->quota.pace, tc_mono_ns());
}

static struct entry *find_entry(struct entry **at, const char *identity) {
  struct entry *found = NULL;

  while (*at != NULL) {
    struct entry *entry = *at;
    if (strcmp(entry->identity, identity) == 0) {
      found = entry;
    } else if (is_idle(entry)) {
      *at = entry->next;
      free(entry);
      continue;
    }
    at = &entry->next;
  }
  return found;
}

static struct entry *make_entry(struct entry **at, const char *identity) {
  size_t len = strlen(identity) + 1;
  struct entry *entry = calloc(1, sizeof *entry + len);

  if (entry == NULL) return NULL;
  memcpy(entry->identity, identity, len);
  entry->next = *at;
  *at = entry;
  return entry;
}

tb_rc tc_quotas_enter(struct tc_quotas *quotas, const char *identity, uint64_t connections_max,
                      struct tc_quota **out) {
  tb_rc rc = TB_OK;

  pthread_mutex_lock(&quotas->lock);
  struct entry **bucket = bucket_of(quotas, identity);
  struct entry *entry = find_entry(bucket, identity);
  if (entry == NULL) entry = make_entry(bucket, identity);
  if (entry == NULL)
    rc = TB_NOMEM;
  else if (entry->connections >= connections_max)
    rc = TB_BUDGET;
  else
    entry->connections++;
  pthread_mutex_unlock(&quotas->lock);
  if (rc == TB_OK) *out = &entry->quota;
  return rc;
}

void tc_quotas_leave(struct tc_quotas *quotas, struct tc_quota *quota) {
  struct entry *entry = (struct entry *)quota;

  pthread_mutex_lock(&quotas->lock);
  entry->connections--;
  pthread_mutex_unlock(&quotas->lock);
}

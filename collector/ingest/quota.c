/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/ingest/quota.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum { BUCKETS = 1024 };

struct entry {
  struct tc_tenant tenant; /* first: what others hold */
  struct entry *next;
  uint64_t connections;
  char identity[];
};

/* Of the whole process: the store's threads end jobs. */
static atomic_size_t with_jobs;
static atomic_ullong jobs_done;

size_t tc_tenants_with_jobs(void) {
  return atomic_load_explicit(&with_jobs, memory_order_relaxed);
}

uint64_t tc_jobs_done(void) {
  return atomic_load_explicit(&jobs_done, memory_order_relaxed);
}

void tc_job_begun(struct tc_tenant *tenant) {
  if (atomic_fetch_add_explicit(&tenant->jobs, 1, memory_order_relaxed) == 0)
    atomic_fetch_add_explicit(&with_jobs, 1, memory_order_relaxed);
}

void tc_job_done(struct tc_tenant *tenant) {
  atomic_fetch_add_explicit(&jobs_done, 1, memory_order_relaxed);
  if (atomic_fetch_sub_explicit(&tenant->jobs, 1, memory_order_relaxed) == 1)
    atomic_fetch_sub_explicit(&with_jobs, 1, memory_order_relaxed);
}

struct tc_tenants {
  pthread_mutex_t lock;
  struct entry *buckets[BUCKETS];
};

tb_rc tc_tenants_new(struct tc_tenants **out) {
  struct tc_tenants *tenants = calloc(1, sizeof *tenants);

  if (tenants == NULL) return TB_NOMEM;
  pthread_mutex_init(&tenants->lock, NULL);
  *out = tenants;
  return TB_OK;
}

void tc_tenants_free(struct tc_tenants *tenants) {
  if (tenants == NULL) return;
  for (size_t i = 0; i < BUCKETS; i++)
    for (struct entry *entry = tenants->buckets[i], *next; entry != NULL; entry = next) {
      next = entry->next;
      free(entry);
    }
  pthread_mutex_destroy(&tenants->lock);
  free(tenants);
}

/* Names come with a certificate of ours, so nobody chooses them to share a bucket. */
static struct entry **bucket_of(struct tc_tenants *tenants, const char *identity) {
  uint64_t hash = 0xcbf29ce484222325u;

  for (; *identity != '\0'; identity++) hash = (hash ^ (unsigned char)*identity) * 0x100000001b3u;
  return &tenants->buckets[hash % BUCKETS];
}

/* A thread that frees the last record does not look at its tenant afterwards. A name cannot escape its rate by coming
 * back. */
static bool is_idle(struct entry *entry) {
  return entry->connections == 0 && atomic_load(&entry->tenant.record_bytes) == 0 &&
         tc_pace_is_idle(&entry->tenant.pace, tc_mono_ns());
}

static struct entry *find(struct entry **at, const char *identity) {
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

static struct entry *make(struct entry **at, const char *identity) {
  size_t len = strlen(identity) + 1;
  struct entry *entry = calloc(1, sizeof *entry + len);

  if (entry == NULL) return NULL;
  memcpy(entry->identity, identity, len);
  entry->next = *at;
  *at = entry;
  return entry;
}

tb_rc tc_tenants_enter(struct tc_tenants *tenants, const char *identity, uint64_t connections_max,
                       struct tc_tenant **out) {
  tb_rc rc = TB_OK;

  pthread_mutex_lock(&tenants->lock);
  struct entry **bucket = bucket_of(tenants, identity);
  struct entry *entry = find(bucket, identity);
  if (entry == NULL) entry = make(bucket, identity);
  if (entry == NULL)
    rc = TB_NOMEM;
  else if (entry->connections >= connections_max)
    rc = TB_BUDGET;
  else
    entry->connections++;
  pthread_mutex_unlock(&tenants->lock);
  if (rc == TB_OK) *out = &entry->tenant;
  return rc;
}

void tc_tenants_leave(struct tc_tenants *tenants, struct tc_tenant *tenant) {
  struct entry *entry = (struct entry *)tenant;

  pthread_mutex_lock(&tenants->lock);
  entry->connections--;
  pthread_mutex_unlock(&tenants->lock);
}

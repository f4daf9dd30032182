/* SPDX-License-Identifier: Apache-2.0 */
/* thread_pool SERVER CERTS [JOBS]: a pool of threads that traces what it does, live.
 *
 *   cc -pthread thread_pool.c $(pkg-config --cflags --libs traceagent) -o thread_pool
 *   thread_pool @tracecollect-data/ready certs 1000
 *   tracectl fetch --service thread-pool -o t.trace && go tool trace t.trace
 *
 * Each job is a task; what its worker does for it are regions of that task. Workers sleep on a condition until there is
 * work and share one account behind a mutex: how long they wait for either shows as blocking, by reason. A job's
 * paperwork goes to a file, so that there are system calls, too. Every 100 jobs the accountant stops all workers. */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <traceagent.h>

enum { WORKERS = 4, QUEUE = 64, JOBS = 1000, AUDIT_EVERY = 100 };

/* Texts that events name, once for the whole program. */
static struct { ta_name job, compute, file, balance, audit, worker; } names;

struct job {
  ta_task task;
  unsigned number;
};

static struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  struct job queue[QUEUE];
  unsigned first, queued;
  bool closed;
} pool = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static struct {
  pthread_mutex_t lock;
  unsigned done;
  double sum;
} account = { .lock = PTHREAD_MUTEX_INITIALIZER };

static FILE *paper;

/* Only real waits are written as waits. */
static void lock(pthread_mutex_t *mutex) {
  if (pthread_mutex_trylock(mutex) == 0) return;
  ta_wait_begin(TA_WAIT_MUTEX);
  pthread_mutex_lock(mutex);
  ta_wait_end();
}

static void wait_for_change(void) {
  ta_wait_begin(TA_WAIT_COND);
  pthread_cond_wait(&pool.changed, &pool.lock);
  ta_wait_end();
}

static void add_job(struct job job) {
  lock(&pool.lock);
  while (pool.queued == QUEUE) wait_for_change();
  pool.queue[(pool.first + pool.queued++) % QUEUE] = job;
  pthread_cond_broadcast(&pool.changed);
  pthread_mutex_unlock(&pool.lock);
}

/* Returns false if the pool is closed and has no jobs left. */
static bool take_job(struct job *job) {
  lock(&pool.lock);
  while (pool.queued == 0 && !pool.closed) wait_for_change();
  bool any = pool.queued > 0;
  if (any) {
    *job = pool.queue[pool.first];
    pool.first = (pool.first + 1) % QUEUE;
    pool.queued--;
    pthread_cond_broadcast(&pool.changed);
  }
  pthread_mutex_unlock(&pool.lock);
  return any;
}

static double compute(unsigned number) {
  double sum = 0;

  for (unsigned i = 1; i < 20000 + number % 7 * 1000; i++) sum += 1.0 / i;
  return sum;
}

static void file_away(unsigned number, double result) {
  char line[64];
  int n = snprintf(line, sizeof line, "%u %f\n", number, result);

  ta_syscall_begin();
  if (write(fileno(paper), line, (size_t)n) != n) perror("paper");
  ta_syscall_end();
}

static void book(double result) {
  lock(&account.lock);
  account.sum += result;
  if (++account.done % AUDIT_EVERY == 0) {
    ta_pause_begin(names.audit);
    compute(0);
    ta_pause_end();
  }
  pthread_mutex_unlock(&account.lock);
}

static void *work(void *arg) {
  struct job job;

  ta_thread_attach(names.worker);
  while (take_job(&job)) {
    ta_region_begin(names.compute, job.task);
    double result = compute(job.number);
    ta_region_end();
    ta_region_begin(names.file, job.task);
    file_away(job.number, result);
    ta_region_end();
    book(result);
    ta_task_end(job.task);
  }
  return arg;
}

static void run(unsigned jobs) {
  pthread_t worker[WORKERS];
  char text[32];

  ta_workers(WORKERS);
  for (int i = 0; i < WORKERS; i++) pthread_create(&worker[i], NULL, work, NULL);
  for (unsigned i = 0; i < jobs; i++) add_job((struct job){ ta_task_begin(names.job, 0), i });
  lock(&pool.lock);
  pool.closed = true;
  pthread_cond_broadcast(&pool.changed);
  pthread_mutex_unlock(&pool.lock);
  for (int i = 0; i < WORKERS; i++) {
    ta_wait_begin(TA_WAIT_JOIN);
    pthread_join(worker[i], NULL);
    ta_wait_end();
  }
  snprintf(text, sizeof text, "%f", account.sum);
  ta_log(0, names.balance, text);
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: thread_pool SERVER CERTS [JOBS]\n");
    return 2;
  }
  struct ta_forward_config where = { .server = argv[1],
                                     .certs = argv[2],
                                     .service = "thread-pool" };
  int error = ta_emit_start(&where, NULL);
  if (error != TA_OK) {
    fprintf(stderr, "thread_pool: %s\n", ta_strerror(error));
    if (error != TA_E_OFF) return 1; /* off: the same program, untraced */
  }
  names.job = ta_name_of("job"), names.compute = ta_name_of("compute"),
  names.file = ta_name_of("file");
  names.balance = ta_name_of("balance"), names.audit = ta_name_of("audit"),
  names.worker = ta_name_of("worker");
  if ((paper = tmpfile()) == NULL) return 1;
  run(argc > 3 ? (unsigned)atoi(argv[3]) : JOBS);
  printf("%u jobs, balance %f\n", account.done, account.sum);
  if (error == TA_OK && (error = ta_emit_stop(10000)) != TA_OK) {
    fprintf(stderr, "thread_pool: %s\n", ta_strerror(error));
    return 1;
  }
  return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A program that knows nothing of tracing, and whose locks have holders that a test knows:
 * contended [MS].
 *
 * Three threads each hold a lock of a different kind, and release it when the others sleep in
 * the kernel for it: the mutex of a table 3 times, the lock of a configuration 2 times, a mutex
 * in a structure once. Meanwhile a worker waits for work. At the end a thread that reads from a
 * pipe holds a fourth lock for MS, while another thread waits for the lock. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TABLE_ROUNDS = 3, CONFIG_ROUNDS = 2, POOL_ROUNDS = 1 };

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t config_lock = PTHREAD_RWLOCK_INITIALIZER;
static struct {
  long connections;
  pthread_mutex_t lock;
} pool = { 0, PTHREAD_MUTEX_INITIALIZER };
static pthread_mutex_t last_lock = PTHREAD_MUTEX_INITIALIZER;

static pthread_mutex_t work_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static bool enough;
static int nothing[2];

/* waiter: the thread that is about to wait. step: the part of a round: held, waited for,
 * released, over. */
static atomic_int waiter;
static atomic_int step;

static bool sleeps(int id) {
  char path[64], text[256] = "";

  snprintf(path, sizeof path, "/proc/self/task/%d/stat", id);
  int fd = open(path, O_RDONLY);
  if (fd < 0) return false;
  ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  const char *state = n > 0 ? strrchr(text, ')') : NULL;
  return state != NULL && state[2] == 'S';
}

static void until(int wanted) {
  while (atomic_load(&step) < wanted) sched_yield();
}

static void until_it_sleeps(void) {
  while (atomic_load(&waiter) == 0 || !sleeps(atomic_load(&waiter))) sched_yield();
}

/* Holds a lock while the other thread waits for it, round after round. */
static void hold(int rounds, void (*take)(void), void (*give)(void)) {
  for (int i = 0; i < rounds; i++) {
    until(4 * i);
    take();
    atomic_store(&step, 4 * i + 1);
    until_it_sleeps();
    give();
    until(4 * i + 3);
    atomic_store(&waiter, 0);
    atomic_store(&step, 4 * i + 4);
  }
}

static void wait_for(int rounds, void (*take)(void), void (*give)(void)) {
  for (int i = 0; i < rounds; i++) {
    until(4 * i + 1);
    atomic_store(&waiter, gettid());
    take();
    give();
    atomic_store(&step, 4 * i + 3);
    until(4 * i + 4);
  }
}

static void lock_table(void) {
  pthread_mutex_lock(&table_lock);
}
static void unlock_table(void) {
  pthread_mutex_unlock(&table_lock);
}
static void write_config(void) {
  pthread_rwlock_wrlock(&config_lock);
}
static void read_config(void) {
  pthread_rwlock_rdlock(&config_lock);
}
static void unlock_config(void) {
  pthread_rwlock_unlock(&config_lock);
}
static void lock_pool(void) {
  pthread_mutex_lock(&pool.lock);
}
static void unlock_pool(void) {
  pthread_mutex_unlock(&pool.lock);
}

static void *holds_table(void *arg) {
  hold(TABLE_ROUNDS, lock_table, unlock_table);
  return arg;
}
static void *holds_config(void *arg) {
  hold(CONFIG_ROUNDS, write_config, unlock_config);
  return arg;
}
static void *holds_pool(void *arg) {
  hold(POOL_ROUNDS, lock_pool, unlock_pool);
  return arg;
}

static void against(void *(*holder)(void *), int rounds, void (*take)(void), void (*give)(void)) {
  pthread_t thread;

  atomic_store(&step, 0);
  if (pthread_create(&thread, NULL, holder, NULL) != 0) exit(1);
  wait_for(rounds, take, give);
  pthread_join(thread, NULL);
}

__attribute__((noinline)) static void wait_for_work(void) {
  while (!enough) pthread_cond_wait(&work, &work_lock);
}
static void *worker(void *arg) {
  pthread_mutex_lock(&work_lock);
  atomic_store(&waiter, gettid()); /* past the point where it could wait for that lock */
  wait_for_work();
  pthread_mutex_unlock(&work_lock);
  return arg;
}

static void *holds_last(void *arg) {
  char byte;

  pthread_mutex_lock(&last_lock);
  atomic_store(&step, 1);
  if (read(nothing[0], &byte, 1) != 1) exit(1); /* for ever */
  return arg;
}
static void *waits_last(void *arg) {
  atomic_store(&waiter, gettid());
  pthread_mutex_lock(&last_lock);
  return arg;
}

int main(int n, char **args) {
  pthread_t thread, other, works;

  if (pipe(nothing) != 0 || pthread_create(&works, NULL, worker, NULL) != 0) return 1;
  until_it_sleeps();
  atomic_store(&waiter, 0);
  against(holds_table, TABLE_ROUNDS, lock_table, unlock_table);
  against(holds_config, CONFIG_ROUNDS, read_config, unlock_config);
  against(holds_pool, POOL_ROUNDS, lock_pool, unlock_pool);
  pthread_mutex_lock(&work_lock);
  enough = true;
  pthread_cond_signal(&work);
  pthread_mutex_unlock(&work_lock);
  pthread_join(works, NULL);
  atomic_store(&step, 0);
  if (pthread_create(&thread, NULL, holds_last, NULL) != 0) return 1;
  until(1);
  if (pthread_create(&other, NULL, waits_last, NULL) != 0) return 1;
  until_it_sleeps();
  if (n > 1) usleep((useconds_t)atoi(args[1]) * 1000);
  puts("as ever");
  return 0;
}

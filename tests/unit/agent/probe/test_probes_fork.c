/* SPDX-License-Identifier: Apache-2.0 */
/* Our own probes in a program that forks: files contain each byte once, and no child waits for a
 * thread that it does not have. Each child has an alarm: a child that hangs is killed, and the
 * test fails. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include "forked.trace.h"
#include "support/patience.h"

//trace:event passed(int n)

enum { CHILDREN = 30, ALONE = 1000000 };

#ifdef __SANITIZE_THREAD__ /* each child would sleep for a second at its end: 2.5 minutes */
const char *__tsan_default_options(void) {
  return "atexit_sleep_ms=50";
}
#endif

static char folder[] = "/tmp/tt-fork-XXXXXX";
static atomic_bool over;
static atomic_int events;

static const char *path_in(const char *name) {
  static char path[80];

  if (strchr(folder, 'X') != NULL && strstr(folder, "XXXXXX") != NULL)
    cr_assert_not_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static void *pass_on(void *self) {
  while (!atomic_load(&over)) passed(atomic_fetch_add(&events, 1));
  return self;
}

/* A child that is forked while a thread starts may stay locked for ever in ThreadSanitizer's
 * runtime. */
static void until_it_runs(void) {
  while (atomic_load(&events) == 0) sched_yield();
}

/* Forks children that do so and exit as programs do, flushing everything that exit() flushes. */
static void in_children(void (*act)(void *self), void *self) {
  for (int i = 0; i < CHILDREN; i++) {
    pid_t child = fork();
    int status;
    if (child == 0) {
      alarm(TT_PATIENCE_S);
      act(self);
#ifdef __SANITIZE_ADDRESS__ /* memory that only other threads refer to is not a leak here */
      fflush(NULL);
      _exit(0);
#endif
      exit(0);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0, "child %d ended with %d", i, status);
  }
}

static void pass_one(void *self) {
  (void)self;
  passed(ALONE);
}

static void close_chrome(void *self) {
  passed(ALONE);
  cr_assert_eq(ta_chrome_close(self), TA_OK);
}

static void (*const in_child[])(void *self) = { pass_one, close_chrome };

/* Expects every number below n once in the file, and none of a child. */
static void expect_each_once(const char *path, int n) {
  unsigned char *seen = calloc((size_t)n, 1);
  FILE *file = fopen(path, "re");
  char line[400];
  int found = 0;

  cr_assert_not_null(file);
  while (fgets(line, sizeof line, file) != NULL) {
    const char *at = strstr(line, "\"n\":");
    if (at == NULL) continue;
    int number = atoi(at + 4);
    cr_assert(number >= 0 && number < n && !seen[number], "%s", line);
    seen[number] = 1;
    found++;
  }
  cr_assert_eq(strcmp(line, "]\n"), 0, "the last line is %s", line);
  cr_assert_eq(found, n);
  fclose(file);
  free(seen);
}

Test(probes_fork, a_chrome_file_has_each_event_of_its_process_once) {
  for (size_t i = 0; i < sizeof in_child / sizeof *in_child; i++) {
    struct ta_probe_group group = { 0 };
    struct ta_probe probe = { 0 };
    pthread_t thread;
    ta_chrome *chrome;

    atomic_store(&over, false);
    atomic_store(&events, 0);
    cr_assert_eq(ta_chrome_open(path_in("chrome.json"), &chrome), TA_OK);
    ta_lock();
    cr_assert_eq(ta_chrome_attach(&group, passed_point(), &probe, chrome), TA_OK);
    ta_unlock();
    cr_assert_eq(pthread_create(&thread, NULL, pass_on, NULL), 0);
    until_it_runs();
    in_children(in_child[i], chrome);
    atomic_store(&over, true);
    pthread_join(thread, NULL);
    ta_probe_group_done(&group);
    cr_assert_eq(ta_chrome_close(chrome), TA_OK);
    expect_each_once(path_in("chrome.json"), atomic_load(&events));
    unlink(path_in("chrome.json"));
  }
  rmdir(folder);
}

/* One thread writes profiles while another one forks. */

static void *write_on(void *profile) {
  unsigned char bytes[4096];

  while (!atomic_load(&over)) {
    cr_assert_eq(ta_profile_write(profile, path_in("profile")), TA_OK);
    gzFile file = gzopen(path_in("profile"), "rb");
    int n;
    while ((n = gzread(file, bytes, sizeof bytes)) > 0) continue;
    cr_assert_eq(n, 0);
    cr_assert_eq(gzclose(file), Z_OK); /* the checksum is right: not a byte too many or too few */
    atomic_fetch_add(&events, 1);
  }
  return NULL;
}

Test(probes_fork, a_profile_is_whole_while_the_program_forks) {
  struct ta_probe_group group = { 0 };
  struct ta_probe probe = { 0 };
  pthread_t thread;
  ta_profile *profile;

  atomic_store(&over, false);
  cr_assert_eq(ta_profile_open(0, &profile), TA_OK);
  ta_lock();
  cr_assert_eq(ta_profile_attach(&group, passed_point(), &probe, profile), TA_OK);
  ta_unlock();
  path_in("");
  cr_assert_eq(pthread_create(&thread, NULL, write_on, profile), 0);
  in_children(pass_one, NULL);
  atomic_store(&over, true);
  pthread_join(thread, NULL);
  ta_probe_group_done(&group);
  ta_profile_close(profile);
  unlink(path_in("profile"));
  rmdir(folder);
}

/* A probe for whose release another thread waits. */

static sem_t inside, may_leave;
static struct ta_probe waited_for;

static void stay(void *self, int n) {
  (void)self;
  if (n == ALONE) return;
  sem_post(&inside);
  sem_wait(&may_leave);
}

static void *pass_and_stay(void *self) {
  passed(1);
  return self;
}

static void *detach(void *self) {
  ta_lock();
  ta_probe_detach(&waited_for);
  ta_unlock();
  return self;
}

static void attach_again(void *self) {
  (void)self;
  if (ta_lock() != TA_OK || ta_unlock() != TA_OK || ta_lock() != TA_OK) exit(11);
  if (passed_attach(NULL, &waited_for, stay, NULL) != TA_OK) exit(12);
  ta_unlock();
  passed(ALONE);
}

static bool is_detached(void) {
  return __atomic_load_n(&passed_point()->first, __ATOMIC_ACQUIRE) == NULL;
}

Test(probes_fork, what_another_thread_waits_for_is_free_in_the_child) {
  pthread_t passes, detaches;

  sem_init(&inside, 0, 0);
  sem_init(&may_leave, 0, 0);
  ta_lock();
  cr_assert_eq(passed_attach(NULL, &waited_for, stay, NULL), TA_OK);
  ta_unlock();
  cr_assert_eq(pthread_create(&passes, NULL, pass_and_stay, NULL), 0);
  sem_wait(&inside);
  cr_assert_eq(pthread_create(&detaches, NULL, detach, NULL), 0);
  TT_WAIT_UNTIL(is_detached());
  in_children(attach_again, NULL);
  sem_post(&may_leave);
  pthread_join(passes, NULL);
  pthread_join(detaches, NULL);
  ta_lock();
  cr_assert_eq(passed_attach(NULL, &waited_for, stay, NULL), TA_OK);
  cr_assert_eq(ta_probe_detach(&waited_for), TA_OK);
  ta_unlock();
}

/* A script. */

static void pass_expected(void *x) {
  passed(ALONE);
  if (ta_expect_pause(x, "main", "") != TA_E_MISUSE || ta_expect_end(x) != TA_E_MISUSE) exit(9);
  ta_expect_go(x);
  if (ta_expect_close(x) != TA_OK) exit(10);
}

static void *pass_seven(void *self) {
  ta_expect_name("other");
  passed(7);
  return self;
}

Test(probes_fork, a_script_holds_nothing_up_in_a_child) {
  struct ta_probe probe = { 0 };
  pthread_t thread;
  ta_expect *x;

  cr_assert_eq(ta_expect_open(0, &x), TA_OK);
  ta_lock();
  cr_assert_eq(ta_expect_attach(x, passed_point(), &probe), TA_OK);
  ta_unlock();
  cr_assert_eq(pthread_create(&thread, NULL, pass_seven, NULL), 0);
  cr_assert_eq(ta_expect_pause(x, "other", "forked.passed(n=7)"), TA_OK);
  in_children(pass_expected, x);
  ta_expect_go(x);
  pthread_join(thread, NULL);
  cr_assert_eq(ta_expect_end(x), TA_OK, "%s", ta_expect_fault(x));
  cr_assert_eq(ta_expect_close(x), TA_OK);
}

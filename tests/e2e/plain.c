/* SPDX-License-Identifier: Apache-2.0 */
/* A small program that prints all it can see of its surroundings, and exits with 7. With LINKED
 * the agent is linked in: the program prints on stderr what the agent reports, and does the rest
 * as before. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef LINKED
#include "traceagent.h"
#else
#define ta_region_begin(name, task) (void)0
#define ta_region_end()             (void)0
#endif

enum { STACK_BYTES = 64 << 10, TURNS = 100 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int turns;
static volatile sig_atomic_t children;

static void on_child(int signal) {
  (void)signal;
  children++;
}

static void *take_turns(void *self) {
  for (int i = 0; i < TURNS; i++) {
    ta_region_begin(0, 0);
    pthread_mutex_lock(&lock);
    while (turns % 2 != (self != NULL)) pthread_cond_wait(&changed, &lock);
    turns++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    ta_region_end();
  }
  return NULL;
}

static void threads(void) {
  pthread_attr_t attr;
  pthread_t thread;

  pthread_attr_init(&attr);
  pthread_attr_setstacksize(&attr, STACK_BYTES);
  int error = pthread_create(&thread, &attr, take_turns, &lock);
  if (error == 0) {
    take_turns(NULL);
    pthread_join(thread, NULL);
  }
  printf("thread %d, turns %d\n", error, turns);
}

static void processes(void) {
  struct sigaction act = { .sa_handler = on_child, .sa_flags = SA_RESTART };
  int status = -1;

  sigaction(SIGCHLD, &act, NULL);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) _exit(3);
  int error = child < 0 ? errno : 0;
  if (child > 0) waitpid(child, &status, 0);
  printf("child %d, ended %d, signals %d, others %d\n", error, WEXITSTATUS(status), (int)children,
         waitpid(-1, NULL, 0));
}

static void descriptors(void) {
  int fd = open("/dev/null", O_RDONLY), shown = fd;

#ifdef LINKED /* other descriptors may be the agent's, which the program must not close */
  shown = fd < 0 ? fd : 3;
#endif
  printf("descriptor %d\n", shown);
  close(fd);
}

static void signals(void) {
  sigset_t mask, pending;

  sigprocmask(SIG_SETMASK, NULL, &mask);
  sigpending(&pending);
  for (int i = 1; i < 32; i++)
    if (sigismember(&mask, i) || sigismember(&pending, i)) printf("signal %d\n", i);
}

#ifdef LINKED
static void log_line(void *self, int level, const char *text) {
  (void)self;
  fprintf(stderr, "log %d: %s\n", level, text);
}

static void begin(void) {
  struct ta_forward_config where = { .size = sizeof where, .log = log_line };
  struct ta_emit_config how = { .size = sizeof how, .generation_ms = 50 };
  int error;

  if (getenv("TRACEAGENT_SERVICE") == NULL) where.service = "plain";
  if ((error = ta_emit_start(&where, &how)) != TA_OK)
    fprintf(stderr, "start: %s\n", ta_strerror(error));
}

static void end(void) {
  struct ta_forward_status status = { .size = sizeof status };
  const char *reason_ms = getenv("REASON_MS");

  int error = ta_emit_sync(1000);
  /* Wait up to reason_ms for the reason why nothing was acked: the thread that calls the collector may have to wait for
   * a core. */
  for (int left = reason_ms != NULL ? atoi(reason_ms) : 0; left > 0; left--) {
    if (ta_emit_forward_status(&status) != TA_OK || status.last_error[0] != '\0') break;
    usleep(1000);
  }
  if (ta_emit_forward_status(&status) == TA_OK)
    fprintf(stderr, "sync: %s; last error: %s\n", ta_strerror(error), status.last_error);
  ta_emit_stop(200);
}
#else
static void begin(void) {}
static void end(void) {}
#endif

int main(int argc, char **argv) {
  begin();
  threads();
  processes();
  descriptors();
  signals();
  for (int i = 1; i < argc; i++) puts(argv[i]);
  fputs("said on stderr\n", stderr);
  end();
  return 7;
}

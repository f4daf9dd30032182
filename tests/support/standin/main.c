/* SPDX-License-Identifier: Apache-2.0 */
/* Runs what criterion.h beside this file has registered: a forked child for each case, in order of
 * registration. Arguments are names ("suite/test", "suite" or nothing for all). */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../patience.h"

static struct tt_test *tests, **tests_end = &tests;
static struct tt_suite *suites;
static bool expectation_failed; /* in the child */
static FILE *results; /* a line a case, as Criterion writes it to CRITERION_OUTPUTS=tap:FILE */

void tt_register(struct tt_test *test) {
  *tests_end = test;
  tests_end = &test->next;
}

void tt_register_suite(struct tt_suite *suite) {
  suite->next = suites;
  suites = suite;
}

void tt_end_case(int code) {
  _exit(code);
}

void tt_failed(const char *file, int line, const char *what, const char *fmt, ...) {
  va_list ap;

  expectation_failed = true;
  fprintf(stderr, "%s:%d: expected %s:", file, line, what);
  va_start(ap, fmt);
  vfprintf(stderr, fmt, ap);
  va_end(ap);
  fputc('\n', stderr);
}

static void fill_from_suite(struct tt_test *test) {
  struct tt_options *own = &test->options;

  for (const struct tt_suite *s = suites; s != NULL; s = s->next) {
    if (strcmp(s->name, test->suite) != 0) continue;
    if (own->init == NULL) own->init = s->options.init;
    if (own->fini == NULL) own->fini = s->options.fini;
    own->disabled |= s->options.disabled;
  }
}

static _Noreturn void run_in_child(const struct tt_test *test, void *param) {
  alarm(3 * (unsigned)TT_PATIENCE_S); /* ends the child, unless the test handles the signal */
  if (test->options.init != NULL) test->options.init();
  if (test->run_param != NULL)
    test->run_param(param);
  else
    test->run();
  if (test->options.fini != NULL) test->options.fini();
  exit(expectation_failed ? 1 : 0); /* not _exit: ThreadSanitizer sets its exit code here */
}

static bool run_case(const struct tt_test *test, void *param) {
  pid_t pid;
  int status;

  fflush(NULL);
  pid = fork();
  if (pid < 0) return false;
  if (pid == 0) run_in_child(test, param);
  if (waitpid(pid, &status, 0) != pid) return false;
  if (WIFSIGNALED(status)
          ? WTERMSIG(status) == test->options.signal
          : test->options.signal == 0 && WEXITSTATUS(status) == test->options.exit_code)
    return true;
  fprintf(stderr, "%s::%s failed: %s %d\n", test->suite, test->name,
          WIFSIGNALED(status) ? "signal" : "exit code",
          WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  return false;
}

static bool run_and_report(const struct tt_test *test, void *param) {
  struct timespec began, ended;
  bool passed;

  clock_gettime(CLOCK_MONOTONIC, &began);
  passed = run_case(test, param);
  clock_gettime(CLOCK_MONOTONIC, &ended);
  if (results != NULL)
    fprintf(results, "%sok - %s::%s  (%.2fs)\n", passed ? "" : "not ", test->suite, test->name,
            (double)(ended.tv_sec - began.tv_sec) + 1e-9 * (double)(ended.tv_nsec - began.tv_nsec));
  return passed;
}

static bool is_wanted(const struct tt_test *test, int argc, char **argv) {
  char full[256];

  snprintf(full, sizeof full, "%s/%s", test->suite, test->name);
  for (int i = 1; i < argc; i++)
    if (strcmp(argv[i], full) == 0 || strcmp(argv[i], test->suite) == 0) return true;
  return argc < 2;
}

int main(int argc, char **argv) {
  unsigned passed = 0, failed = 0;
  const char *outputs = getenv("CRITERION_OUTPUTS");

  if (outputs != NULL && strncmp(outputs, "tap:", 4) == 0) results = fopen(outputs + 4, "we");
  for (struct tt_test *test = tests; test != NULL; test = test->next) {
    struct criterion_test_params all = { .length = 1 };

    if (!is_wanted(test, argc, argv)) continue;
    fill_from_suite(test);
    if (test->options.disabled) {
      fprintf(stderr, "SKIP %s::%s is disabled\n", test->suite, test->name);
      continue;
    }
    if (test->params != NULL) all = test->params();
    for (size_t i = 0; i < all.length; i++)
      *(run_and_report(test, (char *)all.params + i * all.size) ? &passed : &failed) += 1;
  }
  if (results != NULL) fclose(results);
  printf("%u passed, %u failed\n", passed, failed);
  return failed > 0 ? 1 : 0;
}

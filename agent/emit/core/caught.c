/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers read the program's sigaction while other threads may change it, under a sequence count: an odd count means that
 * a change is in progress and the reader must retry. The changing thread has all signals blocked, so no handler waits for
 * its own thread. */
#include "agent/emit/core/caught.h"

#include <pthread.h>
#include <string.h>
#include <ucontext.h>

static struct wanted {
  atomic_uint count;
  struct sigaction action;
} wanted[_NSIG];
static atomic_flag changing = ATOMIC_FLAG_INIT;
static void (*handlers[_NSIG])(int number, siginfo_t *info, void *context);

atomic_bool ta_caught[_NSIG];
int (*ta_caught_install)(int number, const struct sigaction *act,
                         struct sigaction *old) = sigaction;

static struct sigaction wanted_action(int number) {
  struct wanted *w = &wanted[number];
  struct sigaction action;
  unsigned count;

  do {
    count = atomic_load_explicit(&w->count, memory_order_acquire);
    action = w->action;
    atomic_thread_fence(memory_order_acquire);
  } while (count % 2 != 0 || count != atomic_load_explicit(&w->count, memory_order_relaxed));
  return action;
}

static void change(int number, const struct sigaction *to) {
  struct wanted *w = &wanted[number];

  atomic_fetch_add(&w->count, 1);
  w->action = *to;
  atomic_fetch_add(&w->count, 1);
}

static void begin_change(sigset_t *before) {
  sigset_t all;

  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, before);
  while (atomic_flag_test_and_set(&changing)) continue;
}

static void end_change(const sigset_t *before) {
  atomic_flag_clear(&changing);
  pthread_sigmask(SIG_SETMASK, before, NULL);
}

static bool has_handler(const struct sigaction *a) {
  return (a->sa_flags & SA_SIGINFO) != 0 || (a->sa_handler != SIG_DFL && a->sa_handler != SIG_IGN);
}

/* Takes SA_RESTART and SA_ONSTACK from the program's handler, if it has one. */
static int install(int number, const struct sigaction *program) {
  const int said = SA_RESTART | SA_ONSTACK, of_children = SA_NOCLDSTOP | SA_NOCLDWAIT;
  struct sigaction ours = { .sa_sigaction = handlers[number], .sa_flags = SA_SIGINFO };

  ours.sa_flags |= has_handler(program) ? program->sa_flags & said : said;
  ours.sa_flags |= program->sa_flags & of_children;
  sigfillset(&ours.sa_mask);
  return ta_caught_install(number, &ours, NULL);
}

/* Refuses if the program has installed a handler over ours: it may pass signals on to ours, and if ours then passed them
 * on to it, each would call the other endlessly. */
tb_rc ta_caught_begin(int number, void (*handler)(int number, siginfo_t *info, void *context)) {
  struct sigaction is;
  sigset_t before;

  if (ta_caught_install(number, NULL, &is) != 0) return TB_BROKEN;
  if ((is.sa_flags & SA_SIGINFO) != 0 && is.sa_sigaction == handler) return TB_OK;
  if (ta_is_caught(number) && has_handler(&is)) return TB_REFUSED;
  begin_change(&before);
  handlers[number] = handler;
  change(number, &is);
  bool done = install(number, &is) == 0;
  end_change(&before);
  if (!done) return TB_BROKEN;
  atomic_store(&ta_caught[number], true);
  return TB_OK;
}

void ta_caught_action(int number, const struct sigaction *act, struct sigaction *old) {
  sigset_t before;

  begin_change(&before);
  struct sigaction was = wanted[number].action;
  if (act != NULL) {
    change(number, act);
    install(number, act);
  }
  end_change(&before);
  if (old != NULL) *old = was;
}

static bool does_nothing(int number, const struct sigaction *was) {
  if (was->sa_handler != SIG_DFL) return was->sa_handler == SIG_IGN;
  return number == SIGCHLD || number == SIGCONT || number == SIGURG || number == SIGWINCH;
}

/* Copies only _NSIG / 8 bytes: the kernel's signal set is shorter than libc's, and other data follows it. */
static void set_mask(int number, const struct sigaction *was, const ucontext_t *context) {
  sigset_t interrupted, mask;

  sigemptyset(&interrupted);
  memcpy(&interrupted, &context->uc_sigmask, _NSIG / 8);
  sigorset(&mask, &interrupted, &was->sa_mask);
  if ((was->sa_flags & SA_NODEFER) == 0) sigaddset(&mask, number);
  pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

/* A signal that kills the program is raised again here and takes effect when the handler has returned. */
void ta_caught_pass_on(int number, siginfo_t *info, void *context) {
  struct sigaction was = wanted_action(number);

  if (!has_handler(&was)) {
    if (does_nothing(number, &was)) return;
    atomic_store(&ta_caught[number], false);
    ta_caught_install(number, &was, NULL);
    raise(number);
    return;
  }
  if ((was.sa_flags & SA_RESETHAND) != 0)
    ta_caught_action(number, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
  set_mask(number, &was, context);
  if ((was.sa_flags & SA_SIGINFO) != 0)
    was.sa_sigaction(number, info, context);
  else
    was.sa_handler(number);
}

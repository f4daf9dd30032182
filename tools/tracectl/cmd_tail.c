/* SPDX-License-Identifier: Apache-2.0 */
/* tracectl tail: what the collector says, as it says it. The feed and a lease are followed on threads of
 * their own, while this one waits for ^C or the first of them to end; nothing waits for the other,
 * which may be in the middle of a question that takes seconds. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "config/times.h"
#include "tools/tracectl/args/options.h"
#include "tools/tracectl/help/commands.h"
#include "tools/tracectl/remote/remote.h"
#include "tools/tracectl/tail/tail.h"
#include "tools/tracectl/term/tracectl.h"

enum { OPT_KIND = 0x2000, OPT_GOROUTINE, OPT_MIN_DURATION, OPT_STRICT };

struct part {
  tb_rc (*follow)(const struct tk_tail_ask *ask, struct tk_lines *lines, struct tb_diag *diag);
  const struct tk_tail_ask *ask;
  struct tk_lines *lines;
  pthread_t thread;
  int ended; /* eventfd of all parts */
  atomic_bool done;
  tb_rc rc;
  struct tb_diag diag;
};

struct tailing {
  struct tk_tail_ask ask;
  struct tk_lines lines;
  uint64_t limit;
  bool strict;
  struct part parts[2];
  size_t n;
};

/* --- options ----------------------------------------------------------------------------------- */

static bool parse_number(const char *value, uint64_t *out) {
  char *end;

  errno = 0;
  *out = strtoull(value, &end, 10);
  return *value >= '0' && *value <= '9' && *end == '\0' && errno == 0 && *out != 0;
}

static int parse_option(struct tailing *t, int option, const char *value) {
  struct tb_diag diag;
  tb_rc rc;

  tb_diag_clear(&diag);
  switch (option) {
  case 'j': t->ask.json = true; return TK_DONE;
  case OPT_STRICT: t->strict = true; return TK_DONE;
  case 'n':
    if (parse_number(value, &t->limit)) return TK_DONE;
    return tk_usage("tail", "-n: \"%s\" is no number of lines", value);
  case OPT_GOROUTINE:
    rc = tk_selector_goroutine(value, &t->ask.goroutine, &diag);
    return rc == TB_OK ? TK_DONE : tk_usage("tail", "%s", diag.text);
  case OPT_MIN_DURATION:
    /* A number alone would be seconds, and is hardly meant as such here. */
    if (value[strspn(value, "0123456789")] == '\0')
      return tk_usage("tail", "--min-duration: \"%s\" wants a unit: 10us, 5ms, 1s", value);
    rc = tc_span_parse(value, &diag, &t->ask.duration_ns);
    return rc == TB_OK ? TK_DONE : tk_usage("tail", "--min-duration: %s", diag.text);
  case OPT_KIND:
    if (tk_tail_kind(&t->ask, value)) return TK_DONE;
    return tk_usage("tail", "--kind: \"%s\" is none; see `tracectl tables kinds events`", value);
  default: break;
  }
  rc = tk_remote_option(&t->ask.client, &t->ask.selector, option, value, &diag);
  if (rc == TB_NOTFOUND) return tk_usage_hint("tail");
  return rc == TB_OK ? TK_DONE : tk_remote_fail("tail", rc, &diag);
}

/* --- parts ------------------------------------------------------------------------------------- */

static void *run_part(void *self) {
  struct part *part = self;
  const uint64_t one = 1;

  tb_diag_clear(&part->diag);
  part->rc = part->follow(part->ask, part->lines, &part->diag);
  atomic_store(&part->done, true);
  ssize_t n = write(part->ended, &one, sizeof one);
  (void)n; /* it cannot be full */
  return NULL;
}

static int start_part(struct part *part) {
  int rv = pthread_create(&part->thread, NULL, run_part, part);

  return rv == 0 ? TK_DONE : tk_fail("tail", "thread: %s", strerror(rv));
}

/* The meaning of a part's end for the whole. */
static int code_of(struct tailing *t, const struct part *part) {
  if (part->rc != TB_END) return tk_remote_fail("tail", part->rc, &part->diag);
  return t->strict && (t->lines.lost != 0 || t->lines.missing) ? TK_INCOMPLETE : TK_DONE;
}

static int wait_for_end(struct tailing *t, int ended, int signals) {
  struct pollfd fds[] = { { .fd = ended, .events = POLLIN }, { .fd = signals, .events = POLLIN } };

  while (poll(fds, 2, -1) < 0) {
  }
  if (fds[1].revents != 0) return TK_INTERRUPTED;
  for (size_t i = 0; i < t->n; i++)
    if (atomic_load(&t->parts[i].done)) return code_of(t, &t->parts[i]);
  return TK_FAILED;
}

static void leave_parts(struct tailing *t) {
  for (size_t i = 0; i < t->n; i++) {
    if (atomic_load(&t->parts[i].done))
      pthread_join(t->parts[i].thread, NULL);
    else
      pthread_detach(t->parts[i].thread);
  }
}

/* Signals are blocked before a thread is made, so that all come here. */
static int follow_all(struct tailing *t) {
  sigset_t set;
  int ended = eventfd(0, EFD_CLOEXEC);

  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigprocmask(SIG_BLOCK, &set, NULL);
  int signals = signalfd(-1, &set, SFD_CLOEXEC);
  if (ended < 0 || signals < 0) return tk_fail("tail", "%s", strerror(errno));

  if (t->ask.feed) t->parts[t->n++].follow = tk_tail_feed;
  if (t->ask.lease) t->parts[t->n++].follow = tk_tail_lease;
  for (size_t i = 0; i < t->n; i++) {
    t->parts[i].ask = &t->ask;
    t->parts[i].lines = &t->lines;
    t->parts[i].ended = ended;
    int code = start_part(&t->parts[i]);
    if (code != TK_DONE) return code;
  }
  int code = wait_for_end(t, ended, signals);
  leave_parts(t);
  return code;
}

int tk_cmd_tail(int argc, char **argv) {
  static const struct option options[] = {
    { "json", no_argument, NULL, 'j' },
    { "strict", no_argument, NULL, OPT_STRICT },
    { "kind", required_argument, NULL, OPT_KIND },
    { "goroutine", required_argument, NULL, OPT_GOROUTINE },
    { "min-duration", required_argument, NULL, OPT_MIN_DURATION },
    { "since", required_argument, NULL, TK_OPT_SINCE },
    TK_SELECTOR_STREAM_OPTIONS,
    TK_CLIENT_OPTIONS,
    { 0 },
  };
  /* Threads of its parts may outlive this call. */
  static struct tailing t = { .ask = { .topic = "" } };
  struct tb_diag diag;
  int code;

  for (int c; (c = tk_option_next(argc, argv, "n:", options)) != -1;)
    if ((code = parse_option(&t, c, optarg)) != TK_DONE) return code;
  if (optind < argc) t.ask.topic = argv[optind++];
  if (optind < argc) return tk_usage("tail", "\"%s\" has no place here", argv[optind]);
  tb_diag_clear(&diag);
  tb_rc rc = tk_selector_check(&t.ask.selector, &diag);
  if (rc == TB_OK) rc = tk_tail_resolve(&t.ask, &diag);
  if (rc != TB_OK) return tk_remote_fail("tail", rc, &diag);
  tk_lines_init(&t.lines, t.ask.json, t.limit);
  code = follow_all(&t);

  /* A part may still run: exit() would take from it what it stands on. */
  tk_lines_flush(&t.lines);
  int error = t.lines.out.error;
  if (error != 0 && error != EPIPE && code == TK_DONE)
    code = tk_fail("tail", "%s", strerror(error));
  fflush(stderr);
  _exit(code);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Row 10, the agent's side: each allocation of the agent fails once, then it and all later ones fail. The same for the
 * allocations of OpenSSL inside the agent.
 *
 *     agent_memory own|tls
 *
 * Runs one session after another with a scripted collector: opens a stream with a spool on disk, writes a trace, syncs, closes
 * the stream. In the n-th session the n-th allocation on the agent's threads or in its calls fails, until a session has fewer
 * allocations. All of the agent's own allocations are tried; of OpenSSL's some, with TC_FULL=1 every 37th. In one session only
 * this allocation fails, in another all from this one on, up to the sync. The agent must return an error, or go on and have
 * everything acked or reported as lost once there is memory again. It must not crash, hang or leak; leaks are seen by the
 * sanitizer, and by a count of OpenSSL's blocks. At last no collector listens, and the agent reads what an earlier program has
 * left.
 *
 * The agent's allocations are those of the objects linked into this program (ld --wrap), OpenSSL's come through
 * CRYPTO_set_mem_functions(). The collector is in this process, too; its thread always gets memory. */
#include <ftw.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>

#include "tests/support/certs.h"
#include "tests/support/patience.h"
#include "tests/support/scripted_collector.h"
#include "tests/support/stream.h"
#include "traceagent.h"

enum {
  STEP_MS = 20,
  FOREVER_MS = 30,
  WARM_SESSIONS = 3,
  AWAY = 20,       /* allocations, more than there are */
  EVERY_FULL = 37, /* of OpenSSL's */
  EVERY_SHORT = 2500,
  BLOCKS_MORE = 64, /* caches; one for each session is a leak */
};

#define NOBODY "127.0.0.1:9"

/* Which threads run out of memory. */

static _Thread_local bool in_call; /* the host's thread is inside the agent */
static atomic_bool tls_counts;     /* count OpenSSL's allocations, not the agent's */
static atomic_long count, fail_at; /* fail_at 0: never */
static atomic_bool for_ever;
static atomic_long failed, tls_blocks;

static bool is_agents(void) {
  char name[16] = "";

  if (in_call) return true;
  prctl(PR_GET_NAME, name);
  return strncmp(name, "traceagent", 10) == 0;
}

static bool fails(bool tls) {
  long n, at = atomic_load(&fail_at);

  if (tls != atomic_load(&tls_counts) || !is_agents()) return false;
  n = atomic_fetch_add(&count, 1) + 1;
  if (at == 0 || n < at || (n > at && !atomic_load(&for_ever))) return false;
  atomic_fetch_add(&failed, 1);
  return true;
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t each);
void *__real_realloc(void *block, size_t n);
void *__real_mmap(void *at, size_t n, int protection, int flags, int fd, off_t from);
char *__real_strdup(const char *text);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *),
                          void *self);

void *__wrap_malloc(size_t n) {
  return fails(false) ? NULL : __real_malloc(n);
}
void *__wrap_calloc(size_t n, size_t each) {
  return fails(false) ? NULL : __real_calloc(n, each);
}
void *__wrap_realloc(void *block, size_t n) {
  return fails(false) ? NULL : __real_realloc(block, n);
}
void *__wrap_mmap(void *at, size_t n, int protection, int flags, int fd, off_t from) {
  return fails(false) ? MAP_FAILED : __real_mmap(at, n, protection, flags, fd, from);
}
char *__wrap_strdup(const char *text) {
  return fails(false) ? NULL : __real_strdup(text);
}
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*body)(void *),
                          void *self) {
  return fails(false) ? 11 : __real_pthread_create(thread, attr, body, self);
}
int __wrap_asprintf(char **out, const char *fmt, ...) {
  va_list args;

  if (fails(false)) return -1;
  va_start(args, fmt);
  int n = vasprintf(out, fmt, args);
  va_end(args);
  return n;
}
int __wrap___asprintf_chk(char **out, int flag, const char *fmt, ...) {
  va_list args;

  (void)flag;
  if (fails(false)) return -1;
  va_start(args, fmt);
  int n = vasprintf(out, fmt, args);
  va_end(args);
  return n;
}

static void *tls_malloc(size_t n, const char *file, int line) {
  (void)file, (void)line;
  if (n == 0 || fails(true)) return NULL;
  atomic_fetch_add(&tls_blocks, 1);
  return __real_malloc(n);
}

static void tls_free(void *block, const char *file, int line) {
  (void)file, (void)line;
  if (block != NULL) atomic_fetch_sub(&tls_blocks, 1);
  free(block);
}

static void *tls_realloc(void *block, size_t n, const char *file, int line) {
  if (block == NULL) return tls_malloc(n, file, line);
  if (n == 0) {
    tls_free(block, file, line);
    return NULL;
  }
  return fails(true) ? NULL : __real_realloc(block, n);
}

/* The scene. */

struct scene {
  char certs[64], spool[64];
  struct tt_stream trace;
  struct tt_collector *collector;
};

_Noreturn static void give_up(const char *what, long n) {
  fprintf(stderr, "allocation %ld%s: %s\n", n, atomic_load(&for_ever) ? " and all behind it" : "",
          what);
  exit(1);
}

static void arm(long n, bool ever) {
  atomic_store(&count, 0);
  atomic_store(&for_ever, ever);
  atomic_store(&fail_at, n);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw) {
  (void)st, (void)kind;
  return ftw->level == 0 ? 0 : remove(path);
}

static int open_stream(const struct scene *s, const char *server, ta_forward **out) {
  struct ta_forward_config config = { .size = sizeof config,
                                      .server = server,
                                      .certs = s->certs,
                                      .service = "shop",
                                      .spool_bytes = 1 << 20,
                                      .spool_dir = s->spool };

  in_call = true;
  int error = ta_forward_open(&config, out);
  in_call = false;
  return error;
}

static void write_trace(const struct scene *s, ta_forward *f) {
  in_call = true;
  for (size_t at = 0, n; at < s->trace.n; at += n) {
    n = s->trace.n - at < 50000 ? s->trace.n - at : 50000;
    ta_forward_write(f, s->trace.bytes + at, n);
  }
  in_call = false;
}

/* When there is memory again, expects that all is acked or lost, or that the stream reports its end. */
static void expect_an_end(ta_forward *f, long n) {
  struct ta_forward_status s = { .size = sizeof s };

  for (int left = TT_PATIENCE_MS / STEP_MS; left > 0; left--) {
    int said = ta_forward_sync(f, STEP_MS);
    if (said == TA_E_TIMEOUT || said == TA_E_KEPT) continue;
    ta_forward_status(f, &s);
    if (s.faults != 0) give_up("a check failed", n);
    if (said == TA_OK && s.acked_bytes + s.lost_bytes != s.produced_bytes)
      give_up("something is neither acked nor told as lost", n);
    return;
  }
  ta_forward_status(f, &s);
  fprintf(stderr, "state %d, %s\n", s.state, s.last_error);
  give_up("the agent hangs", n);
}

/* Returns whether the session had that many allocations. */
static bool session(struct scene *s, long n, bool ever) {
  ta_forward *f = NULL;

  s->collector = tt_collector_new(s->certs, 0);
  arm(n, ever);
  int error = open_stream(s, tt_collector_address(s->collector), &f);
  if (error == TA_OK) {
    write_trace(s, f);
    if (ever) ta_forward_sync(f, FOREVER_MS);
    in_call = true;
    ta_forward_finish(f);
    in_call = false;
    if (ever) atomic_store(&fail_at, 0);
    expect_an_end(f, n);
    bool reached = atomic_load(&count) >= n;
    atomic_store(&fail_at, 0);
    ta_forward_close(f, STEP_MS);
    tt_collector_free(s->collector);
    nftw(s->spool, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    return reached;
  }
  atomic_store(&fail_at, 0);
  if (n == 0 || ta_strerror(error) == NULL || f != NULL) give_up("an open that fails", n);
  tt_collector_free(s->collector);
  nftw(s->spool, remove_one, 8, FTW_DEPTH | FTW_PHYS);
  return true;
}

/* No collector listens, and an earlier program left a trace: it is read, and kept. */
static void session_away(struct scene *s, long n, bool ever) {
  ta_forward *f = NULL;

  arm(0, false);
  if (open_stream(s, NOBODY, &f) != TA_OK) give_up("cannot be opened", 0);
  write_trace(s, f);
  for (int left = TT_PATIENCE_MS / STEP_MS; ta_forward_sync(f, STEP_MS) != TA_E_KEPT; left--)
    if (left == 0) give_up("the spool is not kept", 0);
  ta_forward_close(f, 0);
  arm(n, ever);
  if (open_stream(s, NOBODY, &f) == TA_OK) {
    write_trace(s, f);
    ta_forward_sync(f, FOREVER_MS);
    in_call = true;
    ta_forward_close(f, 0);
    in_call = false;
  }
  atomic_store(&fail_at, 0);
  nftw(s->spool, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

int main(int argc, char **argv) {
  struct scene s = { .certs = "/tmp/tt-memory-XXXXXX", .spool = "/tmp/tt-memory-spool-XXXXXX" };
  bool tls = argc == 2 && strcmp(argv[1], "tls") == 0;
  const char *full = getenv("TC_FULL");
  long step = !tls ? 1 : full != NULL && *full != 0 ? EVERY_FULL : EVERY_SHORT;
  long sessions = 0, places = 0;

  if (argc != 2 || (!tls && strcmp(argv[1], "own") != 0)) {
    fprintf(stderr, "usage: agent_memory own|tls\n");
    return 2;
  }
  if (CRYPTO_set_mem_functions(tls_malloc, tls_realloc, tls_free) != 1 ||
      mkdtemp(s.certs) == NULL || mkdtemp(s.spool) == NULL)
    return 3;
  tt_certs_make(s.certs);
  s.trace = tt_stream_make(26, 2, 4, 40000);
  atomic_store(&tls_counts, tls);
  for (int i = 0; i < WARM_SESSIONS; i++) session(&s, 0, false);
  long blocks = atomic_load(&tls_blocks);
  for (int ever = 0; ever < 2; ever++)
    for (long n = 1; session(&s, n, ever); n += step, sessions++) places = n;
  for (int ever = 0; ever < 2 && !tls; ever++)
    for (long n = 1; n <= AWAY; n++, sessions++) session_away(&s, n, ever);
  long more = atomic_load(&tls_blocks) - blocks;
  printf("row 10: %s allocations of a session: %ld, %ld sessions, %ld failed; OpenSSL keeps %ld "
         "blocks more\n",
         tls ? "OpenSSL's" : "the agent's own", places, sessions, atomic_load(&failed), more);
  tt_stream_free(&s.trace);
  nftw(s.certs, remove_one, 8, FTW_DEPTH | FTW_PHYS);
  remove(s.certs);
  remove(s.spool);
  return more > BLOCKS_MORE ? 1 : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls. The writer's thread cuts the stream into batches and puts them into the spool;
 * everything else happens on the client's thread. Each call keeps errno as it found it.
 *
 * The handle belongs to the host and to the thread: whoever lets go last frees it, so that close()
 * never waits for a resolver that hangs. */
#include "agent/api/forward.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/api/recovery.h"
#include "agent/host/clock.h"
#include "agent/host/faults.h"
#include "agent/host/keep.h"
#include "agent/host/limits.h"
#include "agent/host/pin.h"
#include "agent/host/process.h"
#include "agent/host/spawn.h"
#include "agent/net/client.h"
#include "proto/loss.h"
#include "wire/split.h"

enum {
  NAME_MAX_BYTES = 64,
  SPLIT_BYTES_MAX = 256 << 10,
  RAW_BYTES_MAX = 64 << 10,
  HEADER_BYTES_MAX = 64,
  STACK_BYTES = 512 << 10,
  SPOOL_BYTES = 16 << 20,
  DISK_FOR_SPOOL = 4, /* times spool_bytes */
  TIDY_MS = 200,      /* past the deadline of close(), for the thread to end */
  RECORD_MS_MAX = 3600000,
  KEPT_STREAM_BYTES = 128 << 10, /* of a program that was never connected, on disk */
  KEPT_STREAMS_MAX = 256,
  FIRST_VERSION_WITH_END_MARK = 26,
};

enum { TEXT_SERVER, TEXT_CA, TEXT_CERT, TEXT_KEY, TEXT_SERVICE, TEXT_INSTANCE, TEXT_CRL, TEXTS };

struct ta_forward {
  struct ta_member member; /* first: wake() is handed it */
  atomic_uint holders;
  atomic_bool closed;
  struct ta_spool spool;
  struct ta_client client;
  struct tb_mem mem;
  struct tw_split split;
  uint64_t gen;      /* being written, 0: none */
  uint64_t gen_last; /* that was written */
  bool header_put;
  bool runs; /* its thread does */
  char *text[TEXTS];
  struct ta_mirror mirror;     /* zeroed: there is no spool on disk */
  struct ta_heritage heritage; /* what was left there */
  struct ta_member heir;       /* its thread */
};

#define KEEP_CHECKS(f)                                                                             \
  TB_CLEANUP(restore_keeper) struct tb_keeper *keeper_before = tb_check_keep(&(f)->client.keeper)
static void restore_keeper(struct tb_keeper *const *before) {
  tb_check_keep(*before);
}

/* Configuration. */

static int fault(int error, const char *fmt, ...) TB_PRINTF(2, 3);

static int fault(int error, const char *fmt, ...) {
  va_list args;

  va_start(args, fmt);
  ta_fault_say(fmt, args);
  va_end(args);
  return error;
}

int ta_forward_fault(int error, const char *text) {
  return fault(error, "%s", text);
}

static bool is_name(const char *text) {
  size_t n = strlen(text);

  for (size_t i = 0; i < n; i++)
    if (!isalnum((unsigned char)text[i]) && strchr("._:-", text[i]) == NULL) return false;
  return n >= 1 && n <= NAME_MAX_BYTES;
}

static char *default_instance(void) {
  char host[NAME_MAX_BYTES - 11], *text;

  if (gethostname(host, sizeof host) != 0) strcpy(host, "host");
  host[sizeof host - 1] = 0;
  for (char *c = host; *c != 0; c++)
    if (!isalnum((unsigned char)*c) && strchr("._-", *c) == NULL) *c = '-';
  return asprintf(&text, "%s:%ld", host, (long)getpid()) < 0 ? NULL : text;
}

static const char *or_env(const char *value, const char *name, bool use_env) {
  return value != NULL || !use_env ? value : secure_getenv(name);
}

/* The texts: taken from a field, made from the folder, or the default. The first error stays. */

static const char *const text_names[TEXTS] = { "server",  "ca",       "cert", "key",
                                               "service", "instance", "crl" };

static void take_text(struct ta_forward *f, int text, const char *value, int *error) {
  if (*error != TA_OK) return;
  if (value == NULL) {
    *error = fault(TA_E_CONFIG, "%s is not given", text_names[text]);
    return;
  }
  f->text[text] = strdup(value);
  if (f->text[text] == NULL) *error = TA_E_NOMEM;
}

static void take_path(struct ta_forward *f, int text, const char *file, const char *folder,
                      const char *name, int *error) {
  if (file != NULL || folder == NULL) {
    take_text(f, text, file, error);
    return;
  }
  if (*error != TA_OK || asprintf(&f->text[text], "%s/%s", folder, name) >= 0) return;
  f->text[text] = NULL;
  *error = TA_E_NOMEM;
}

static void take_instance(struct ta_forward *f, const char *value, int *error) {
  if (value != NULL) {
    take_text(f, TEXT_INSTANCE, value, error);
    return;
  }
  if (*error != TA_OK) return;
  f->text[TEXT_INSTANCE] = default_instance();
  if (f->text[TEXT_INSTANCE] == NULL) *error = TA_E_NOMEM;
}

struct ta_forward_config ta_forward_config_of(const struct ta_forward_config *config) {
  struct ta_forward_config all = { 0 };
  size_t first =
      offsetof(struct ta_forward_config, record_ms) + sizeof all.record_ms; /* in 0.1.0 */

  all.size = sizeof all;
  if (config == NULL) return all;
  size_t size = config->size == 0 ? first : config->size;
  memcpy(&all, config, size < sizeof all ? size : sizeof all);
  all.size = sizeof all;
  return all;
}

static int take_config(struct ta_forward *f, const struct ta_forward_config *config, bool use_env) {
  const char *certs = or_env(config->certs, "TRACEAGENT_CERTS", use_env);
  const char *crl = secure_getenv("TRACEAGENT_CRL"); /* of tracectl send, too */
  struct tb_diag diag;
  int error = TA_OK;

  take_text(f, TEXT_SERVER, or_env(config->server, "TRACEAGENT_SERVER", use_env), &error);
  take_path(f, TEXT_CA, config->ca, certs, "ca.pem", &error);
  take_path(f, TEXT_CERT, config->cert, certs, "agent.pem", &error);
  take_path(f, TEXT_KEY, config->key, certs, "agent.key", &error);
  if (crl != NULL && *crl != 0) take_text(f, TEXT_CRL, crl, &error);
  take_text(f, TEXT_SERVICE, or_env(config->service, "TRACEAGENT_SERVICE", use_env), &error);
  take_instance(f, or_env(config->instance, "TRACEAGENT_INSTANCE", use_env), &error);
  if (error != TA_OK) return error;
  for (int i = TEXT_SERVICE; i <= TEXT_INSTANCE; i++)
    if (!is_name(f->text[i]))
      return fault(TA_E_CONFIG, "%s \"%.80s\" is not 1 to 64 of A-Z a-z 0-9 . _ : -", text_names[i],
                   f->text[i]);
  if (config->spool_bytes != 0 && config->spool_bytes < TA_SPOOL_BYTES_MIN)
    return fault(TA_E_CONFIG, "spool_bytes is below %d", TA_SPOOL_BYTES_MIN);
  if (config->spool_dir_bytes != 0 && config->spool_dir_bytes < 2 * TA_SPOOL_BYTES_MIN)
    return fault(TA_E_CONFIG, "spool_dir_bytes is below %d", 2 * TA_SPOOL_BYTES_MIN);
  tb_diag_clear(&diag);
  if (ta_dial_check(f->text[TEXT_SERVER], &diag) != TB_OK)
    return fault(TA_E_CONFIG, "server: %s", diag.text);
  return TA_OK;
}

/* record_ms, or what the environment says. */
static int take_record(const struct ta_forward_config *config, bool use_env, uint64_t *out_ms) {
  const char *text = or_env(NULL, "TRACEAGENT_RECORD_MS", use_env && config->record_ms == 0);
  char *end = NULL;

  *out_ms = config->record_ms;
  if (text != NULL && *text != 0) {
    errno = 0;
    *out_ms = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end != 0 || errno != 0)
      return fault(TA_E_CONFIG, "TRACEAGENT_RECORD_MS: \"%.40s\" is not a number", text);
  }
  if (*out_ms > RECORD_MS_MAX)
    return fault(TA_E_CONFIG, "record_ms is above %d, an hour", RECORD_MS_MAX);
  return TA_OK;
}

/* A tool of ours that forwards for nobody else may use up what it has. */
static int check_limits(uint64_t spool_bytes, bool is_guest) {
  struct tb_diag diag;

  tb_diag_clear(&diag);
  return !is_guest || ta_limits_check(spool_bytes, &diag) == TB_OK
             ? TA_OK
             : fault(TA_E_CONFIG, "%s", diag.text);
}

/* A mistake in the files is told at once, not in some later status. */
static int check_files(const struct ta_client_config *client) {
  struct ta_tls *tls = NULL;
  struct tb_diag diag;

  tb_diag_clear(&diag);
  tb_rc rc = ta_tls_new(&client->files, "", &diag, &tls);
  ta_tls_free(tls);
  return rc == TB_OK ? TA_OK : fault(rc == TB_NOMEM ? TA_E_NOMEM : TA_E_CERT, "%s", diag.text);
}

static bool is_same(const char *a, const char *b) {
  return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* Without OpenSSL: that they can be read. What was read is kept for when the program may read them no more, and in a
 * child for when that was so before it was made. */
static int keep_files(struct ta_client_config *client) {
  static struct ta_pems kept;
  static char *of[TA_PEMS];
  struct ta_pems fresh;
  struct tb_diag diag;
  bool same = true;

  client->files.kept = &kept;
  for (int i = 0; i < TA_PEMS; i++) same &= is_same(of[i], client->files.path[i]);
  tb_diag_clear(&diag);
  tb_rc rc = ta_pems_read(client->files.path, &diag, &fresh);
  if (rc != TB_OK && same) return TA_OK;
  if (rc != TB_OK) return fault(rc == TB_NOMEM ? TA_E_NOMEM : TA_E_CERT, "%s", diag.text);
  ta_pems_free(&kept);
  kept = fresh;
  for (int i = 0; i < TA_PEMS && !same; i++) {
    free(of[i]);
    of[i] = NULL;
    if (client->files.path[i] == NULL) continue;
    if ((of[i] = strdup(client->files.path[i])) == NULL) return TA_E_NOMEM;
  }
  return TA_OK;
}

/* The thread. */

static void let_go(struct ta_forward *f) {
  if (atomic_fetch_sub(&f->holders, 1) > 1) return;
  ta_process_leave(&f->member);
  ta_process_leave(&f->heir);
  ta_heritage_fini(&f->heritage);
  ta_mirror_fini(&f->mirror);
  ta_client_fini(&f->client);
  tw_split_fini(&f->split);
  ta_spool_fini(&f->spool);
  for (int i = 0; i < TEXTS; i++) free(f->text[i]);
  free(f);
}

static void wake_member(struct ta_member *member) {
  ta_client_wake(&((struct ta_forward *)(void *)member)->client);
}

static void *thread_main(void *self) {
  struct ta_forward *f = self;

  ta_client_run(&f->client);
  if (ta_process_exiting()) ta_process_park(&f->member);
  ta_process_quiet(&f->member);
  let_go(f);
  return NULL;
}

static struct ta_forward *of_heir(struct ta_member *heir) {
  return (struct ta_forward *)(void *)((char *)heir - offsetof(struct ta_forward, heir));
}

static void wake_heir(struct ta_member *heir) {
  ta_heritage_wake(&of_heir(heir)->heritage);
}

static void forked_member(struct ta_member *member) {
  ta_mirror_forked(&((struct ta_forward *)(void *)member)->mirror);
}

static void forked_heir(struct ta_member *heir) {
  ta_heritage_forked(&of_heir(heir)->heritage);
}

static void *heir_main(void *self) {
  struct ta_forward *f = self;

  ta_heritage_run(&f->heritage);
  if (ta_process_exiting()) ta_process_park(&f->heir);
  ta_process_quiet(&f->heir);
  let_go(f);
  return NULL;
}

static int start_thread(struct ta_forward *f, const char *name, void *(*body)(void *self)) {
  atomic_fetch_add(&f->holders, 1);
  if (ta_spawn_detached(name, STACK_BYTES, body, f) == 0) return TA_OK;
  atomic_fetch_sub(&f->holders, 1);
  return TA_E_THREAD;
}

/* The spool on disk. */

static int open_disk(struct ta_forward *f, const struct ta_forward_config *config,
                     const char *dir) {
  uint64_t memory = config->spool_bytes == 0 ? SPOOL_BYTES : config->spool_bytes;
  uint64_t bytes = config->spool_dir_bytes == 0 ? DISK_FOR_SPOOL * memory : config->spool_dir_bytes;
  struct tb_diag diag;
  int root;

  tb_diag_clear(&diag);
  if (ta_shelf_root(dir, &diag, &root) != TB_OK)
    return fault(TA_E_CONFIG, "spool_dir: %s", diag.text);
  struct ta_mirror_config mirror = { .root = root,
                                     .bytes_max = bytes / 2,
                                     .service = f->text[TEXT_SERVICE],
                                     .instance = f->text[TEXT_INSTANCE],
                                     .log = config->log,
                                     .log_self = config->log_self };
  if (ta_mirror_init(&f->mirror, &mirror, &f->spool) != TB_OK) return TA_E_NOMEM;
  ta_heritage_init(&f->heritage, root, bytes / 2, &f->client.config);
  ta_client_keep(&f->client, &f->mirror);
  f->heir.wake = wake_heir;
  f->heir.forked = forked_heir;
  f->member.forked = forked_member;
  return TA_OK;
}

/* Without its thread, what was left stays for the next process. */
static void start_heir(struct ta_forward *f) {
  if (f->mirror.spool == NULL || !ta_process_join(&f->heir)) return;
  if (start_thread(f, "traceagent-old", heir_main) != TA_OK) ta_process_quiet(&f->heir);
}

/* A folder that only short programs write to is not tidied up by any of them: they leave no more in it than so many
 * streams, of half the folder's bytes. */
static bool may_leave_files(const struct ta_forward *f) {
  uint64_t most = f->heritage.bytes_max / KEPT_STREAM_BYTES, streams = 0;
  int fd = openat(f->mirror.shelf.root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *dir = fd < 0 ? NULL : fdopendir(fd);

  if (most > KEPT_STREAMS_MAX) most = KEPT_STREAMS_MAX;
  if (dir == NULL && fd >= 0) close(fd);
  if (dir == NULL) return false;
  for (const struct dirent *entry; streams < most && (entry = readdir(dir)) != NULL;)
    streams += ta_shelf_is_stream(entry->d_name);
  closedir(dir);
  return streams < most;
}

struct patience {
  bool (*impatient)(void *self);
  void *self;
};

/* The system would not give us what a stream needs. */
static int system_fault(const char *what) {
  return fault(TA_E_SYSTEM, "%s: %s", what, strerror(errno));
}

static int run(struct ta_forward *f) {
  if (ta_client_open(&f->client) != TB_OK) return system_fault("no eventfd");
  f->member.quiet = false;
  if (!ta_process_join(&f->member)) return TA_E_OFF;
  int error = start_thread(f, "traceagent", thread_main);
  f->runs = error == TA_OK;
  if (f->runs)
    start_heir(f);
  else
    ta_process_quiet(&f->member);
  return error;
}

static int prepare(struct ta_forward *f, const struct ta_forward_config *config,
                   const struct patience *patience, bool late) {
  int error = take_config(f, config, patience == NULL);
  uint64_t record_ms;

  if (error == TA_OK) error = take_record(config, patience == NULL, &record_ms);
  uint64_t spool_bytes = config->spool_bytes == 0 ? SPOOL_BYTES : config->spool_bytes;
  if (error == TA_OK) error = check_limits(spool_bytes, patience == NULL);
  if (error != TA_OK) return error;
  if (ta_spool_init(&f->spool, spool_bytes) != TB_OK) return TA_E_NOMEM;
  if (patience != NULL) {
    f->spool.impatient = patience->impatient;
    f->spool.impatient_self = patience->self;
  }
  ta_spool_record(&f->spool, record_ms * UINT64_C(1000000));
  tb_mem_init(&f->mem, tb_mem_libc, NULL, SPLIT_BYTES_MAX);
  tw_split_init(&f->split, &f->mem);
  if (tw_split_reserve(&f->split) != TB_OK) return TA_E_NOMEM;
  struct ta_client_config client = {
    .server = f->text[TEXT_SERVER],
    .files = { .path = { f->text[TEXT_CA], f->text[TEXT_CERT], f->text[TEXT_KEY],
                         f->text[TEXT_CRL] } },
    .service = f->text[TEXT_SERVICE],
    .instance = f->text[TEXT_INSTANCE],
    .rate_bytes_s = config->rate_bytes_s,
    .refusal_ends = patience != NULL,
    .log = config->log,
    .log_self = config->log_self,
  };
  error = late ? keep_files(&client) : check_files(&client);
  if (error != TA_OK) return error;
  if (ta_client_init(&f->client, &client, &f->spool) != TB_OK)
    return system_fault("no random bytes");
  const char *dir = or_env(config->spool_dir, "TRACEAGENT_SPOOL_DIR", patience == NULL);
  if (dir != NULL && *dir != 0 && record_ms != 0)
    return fault(TA_E_CONFIG, "spool_dir: a flight recorder (record_ms) keeps nothing on disk");
  if (dir != NULL && *dir != 0 && (error = open_disk(f, config, dir)) != TA_OK) return error;
  f->member.quiet = true; /* it has no thread yet */
  f->member.wake = wake_member;
  return ta_process_own(&f->member) ? TA_OK : TA_E_OFF;
}

static int open_stream(const struct ta_forward_config *config, const struct patience *patience,
                       bool late, ta_forward **out) {
  struct ta_forward *f = calloc(1, sizeof *f);
  struct ta_forward_config all = ta_forward_config_of(config);

  ta_fault_clear();
  if (f == NULL || !ta_pin()) {
    free(f);
    return TA_E_NOMEM;
  }
  KEEP_CHECKS(f);
  atomic_store(&f->holders, 1);
  f->client.wake_fd = -1;
  int error = prepare(f, &all, patience, late);
  if (error == TA_OK && !late) error = run(f);
  if (error == TA_OK)
    *out = f;
  else
    let_go(f);
  return error;
}

/* A program that runs with raised rights takes nothing from its caller's environment, not even this. */
static bool is_disabled(void) {
  const char *disable = secure_getenv("TRACEAGENT_DISABLE");

  return disable != NULL && strcmp(disable, "1") == 0;
}

static int open_own(const struct ta_forward_config *config, bool late, ta_forward **out) {
  if (out == NULL) return TA_E_MISUSE;
  *out = NULL;
  return is_disabled() ? TA_E_OFF : open_stream(config, NULL, late, out);
}

int ta_forward_open(const struct ta_forward_config *config, ta_forward **out) {
  KEEP_ERRNO;
  return open_own(config, false, out);
}

int ta_forward_open_late(const struct ta_forward_config *config, ta_forward **out) {
  KEEP_ERRNO;
  return open_own(config, true, out);
}

int ta_forward_run(ta_forward *f, uint64_t first_try_ns) {
  KEEP_ERRNO;
  KEEP_CHECKS(f);

  if (!ta_process_owns(&f->member)) return TA_E_OFF;
  f->client.config.first_try_ns = f->heritage.client_config.first_try_ns = first_try_ns;
  return run(f);
}

void ta_forward_abandon(ta_forward *f) {
  KEEP_ERRNO;

  if (!ta_process_owns(&f->member)) return;
  KEEP_CHECKS(f);
  ta_forward_finish(f);
  if (f->runs) {
    ta_forward_free(f, TA_OK);
    return;
  }
  if (f->mirror.spool != NULL && may_leave_files(f)) ta_client_keep_only(&f->client);
  let_go(f);
}

bool ta_forward_keeps(ta_forward *f) {
  return f->mirror.spool != NULL;
}

int ta_forward_open_patient(const struct ta_forward_config *config, bool (*impatient)(void *self),
                            void *self, ta_forward **out) {
  return open_stream(config, &(struct patience){ impatient, self }, false, out);
}

/* Writing. */

/* Where a new generation begins. A number that does not rise is no business of ours (the collector
 * says so in its verdict): its bytes go where they came. */
static void enter(struct ta_forward *f, uint64_t gen) {
  if (f->gen != 0 && gen <= f->gen) return;
  if (f->gen != 0 && ta_spool_end(&f->spool)) ta_client_wake(&f->client);
  f->gen = gen > f->gen_last ? gen : f->gen_last + 1;
  f->gen_last = f->gen;
}

static void put(struct ta_forward *f, const unsigned char *bytes, size_t n) {
  if (ta_spool_put(&f->spool, f->gen, bytes, n)) ta_client_wake(&f->client);
}

static void leave(struct ta_forward *f) {
  if (f->gen != 0 && ta_spool_end(&f->spool)) ta_client_wake(&f->client);
  f->gen = 0;
}

/* Before the end mark a generation's end is only seen when the next one comes, unless the writer tells it. */
static void put_header(struct ta_forward *f, const unsigned char *bytes, size_t n) {
  bool told =
      f->split.version >= FIRST_VERSION_WITH_END_MARK || atomic_load(&f->client.cut) != NULL;

  f->header_put = true;
  ta_spool_record_ends(&f->spool, told ? 1 : 2);
  if (ta_spool_header(&f->spool, bytes, n)) ta_client_wake(&f->client);
}

/* Bytes that are no batch go on as they are, in the generation that is open. If not even a header
 * was seen, the first of them stand for it. */
static void put_raw(struct ta_forward *f, const unsigned char *bytes, size_t n) {
  if (!f->header_put) {
    size_t header = n < TW_HEADER_BYTES ? n : TW_HEADER_BYTES;
    put_header(f, bytes, header);
    bytes += header;
    n -= header;
  }
  for (size_t here; n > 0; bytes += here, n -= here) {
    here = n < RAW_BYTES_MAX ? n : RAW_BYTES_MAX;
    if (f->gen == 0) enter(f, f->gen_last + 1);
    put(f, bytes, here);
  }
}

static void put_item(struct ta_forward *f, const struct tw_item *item) {
  switch (item->kind) {
  case TW_ITEM_HEADER:
    if (item->len <= HEADER_BYTES_MAX)
      put_header(f, item->bytes, item->len);
    else
      put_raw(f, item->bytes, item->len);
    break;
  case TW_ITEM_BATCH:
    enter(f, item->batch.gen);
    put(f, item->bytes, item->len);
    break;
  case TW_ITEM_END_MARK:
    if (f->gen == 0) enter(f, f->gen_last + 1);
    put(f, item->bytes, item->len);
    leave(f);
    break;
  case TW_ITEM_RAW: put_raw(f, item->bytes, item->len); break;
  }
}

static bool mistaken(const struct ta_forward *f) {
  return atomic_load(&f->client.keeper.where) != NULL;
}

/* A check failed in this call or before: nothing more is kept or sent. */
static int turn_off(struct ta_forward *f) {
  ta_spool_over(&f->spool);
  ta_client_wake(&f->client);
  return TA_E_OFF;
}

static int usable(struct ta_forward *f) {
  if (f == NULL) return TA_E_MISUSE;
  if (!ta_process_owns(&f->member) || mistaken(f)) return TA_E_OFF;
  return f->closed ? TA_E_CLOSED : TA_OK;
}

/* Why nothing more will be sent. */
static int over_error(struct ta_forward *f) {
  struct ta_client_status status;

  if (mistaken(f)) return TA_E_OFF;
  ta_client_status(&f->client, &status);
  if (status.refused) return TA_E_REFUSED;
  return status.state == TA_AT_ENDED ? TA_E_OFF : TA_E_TIMEOUT; /* the writer lost patience */
}

int ta_forward_write(ta_forward *f, const void *bytes, size_t n) {
  KEEP_ERRNO;
  const unsigned char *from = bytes;
  struct tw_item item;
  size_t used;
  int error = usable(f);

  if (error != TA_OK) return error;
  if ((bytes == NULL && n > 0) || n > PTRDIFF_MAX) return TA_E_MISUSE;
  if (atomic_load(&f->spool.over)) return over_error(f);
  KEEP_CHECKS(f);
  ta_client_take_snap(&f->client);
  for (;;) {
    tb_rc rc = tw_split_feed(&f->split, from, n, &used, &item);
    if (rc == TB_AGAIN) return TA_OK;               /* all taken */
    if (!TB_CHECK(rc == TB_OK)) return turn_off(f); /* it has all the memory it wants */
    from += used;
    n -= used;
    put_item(f, &item);
    if (mistaken(f)) return turn_off(f);
    if (f->spool.impatient != NULL && f->spool.over) return over_error(f);
  }
}

void ta_forward_cut_by(ta_forward *f, void (*cut)(void)) {
  atomic_store(&f->client.cut, cut);
}

bool ta_forward_records(ta_forward *f) {
  return f->spool.recorder.keep_ns != 0;
}

int ta_forward_snap(ta_forward *f, uint64_t last_ms) {
  KEEP_ERRNO;

  if (f == NULL) return TA_E_MISUSE;
  if (!ta_process_owns(&f->member) || mistaken(f)) return TA_E_OFF;
  if (!ta_forward_records(f)) return TA_E_CONFIG;
  ta_client_ask_snap(&f->client, last_ms > RECORD_MS_MAX ? 0 : last_ms * UINT64_C(1000000));
  return TA_OK;
}

void ta_forward_take_snap(ta_forward *f) {
  ta_client_take_snap(&f->client);
}

void ta_forward_log(ta_forward *f, int level, const char *text) {
  if (f->client.config.log != NULL) f->client.config.log(f->client.config.log_self, level, text);
}

void ta_forward_end_generation(ta_forward *f) {
  if (usable(f) != TA_OK) return;
  KEEP_CHECKS(f);
  leave(f);
}

void ta_forward_lose_generation(ta_forward *f, uint64_t gen, int reason) {
  if (usable(f) != TA_OK) return;
  KEEP_CHECKS(f);
  enter(f, gen);
  if (ta_spool_lose(&f->spool, f->gen, (uint32_t)reason)) ta_client_wake(&f->client);
}

/* Waiting and ending. */

static int wait_for_acks(struct ta_forward *f, uint64_t until_ns, uint64_t patience_ns) {
  bool kept;

  ta_client_hurry(&f->client, true);
  tb_rc rc = ta_spool_wait_in_hope(&f->spool, until_ns, patience_ns, &kept);
  ta_client_hurry(&f->client, false);
  switch (rc) {
  case TB_OK: return TA_OK;
  case TB_AGAIN: return kept ? TA_E_KEPT : TA_E_TIMEOUT;
  default: return over_error(f);
  }
}

/* After the thread's last look at the disk. */
static int left_behind(struct ta_forward *f, int error) {
  bool kept;

  if (error != TA_E_TIMEOUT) return error;
  return ta_spool_wait(&f->spool, 0, &kept) != TB_OK && kept ? TA_E_KEPT : error;
}

int ta_forward_sync(ta_forward *f, int64_t deadline_ms) {
  KEEP_ERRNO;

  if (f == NULL) return TA_E_MISUSE;
  if (!ta_process_owns(&f->member)) return TA_E_OFF;
  ta_client_take_snap(&f->client);
  return wait_for_acks(f, ta_deadline_ns(deadline_ms), UINT64_MAX);
}

void ta_forward_finish(ta_forward *f) {
  KEEP_ERRNO;
  struct tw_item item;

  if (f == NULL) return;
  if (!ta_process_owns(&f->member) || atomic_exchange(&f->closed, true)) return;
  KEEP_CHECKS(f);
  ta_client_take_snap(&f->client);
  while (tw_split_finish(&f->split, &item) == TB_OK) put_item(f, &item);
  leave(f);
  if (ta_spool_finish(&f->spool)) ta_client_wake(&f->client);
}

void ta_forward_over(ta_forward *f) {
  ta_spool_over(&f->spool);
}

int ta_forward_end(ta_forward *f, uint64_t until_ns, uint64_t patience_ns) {
  KEEP_CHECKS(f);

  if (!ta_process_owns(&f->member)) return TA_E_OFF;
  ta_forward_finish(f);
  return ta_process_exiting() ? TA_E_OFF : wait_for_acks(f, until_ns, patience_ns);
}

int ta_forward_free(ta_forward *f, int error) {
  KEEP_CHECKS(f);

  if (!ta_process_owns(&f->member))
    return TA_E_OFF; /* the parent's: its memory may be mid-change */
  ta_client_stop(&f->client);
  if (f->mirror.spool != NULL) ta_heritage_stop(&f->heritage);
  if (ta_process_wait_quiet(&f->member, TIDY_MS)) error = left_behind(f, error);
  if (f->mirror.spool != NULL) ta_process_wait_quiet(&f->heir, TIDY_MS);
  let_go(f);
  return error;
}

int ta_forward_close(ta_forward *f, int64_t deadline_ms) {
  KEEP_ERRNO;

  if (f == NULL) return TA_OK;
  return ta_forward_free(f, ta_forward_end(f, ta_deadline_ns(deadline_ms), UINT64_MAX));
}

/* Telling. */

static enum ta_state public_state(const struct ta_forward *f,
                                  const struct ta_client_status *client) {
  if (mistaken(f)) return TA_STATE_OFF;
  switch (client->state) {
  case TA_AT_STREAMING:
  case TA_AT_LEAVING: return TA_STATE_STREAMING;
  case TA_AT_WAITING: return TA_STATE_WAITING;
  case TA_AT_ENDED:
    if (client->refused) return TA_STATE_REFUSED;
    return f->closed ? TA_STATE_CLOSED : TA_STATE_OFF;
  default: return TA_STATE_CONNECTING;
  }
}

int ta_forward_status(ta_forward *f, struct ta_forward_status *out) {
  KEEP_ERRNO;
  if (f == NULL || out == NULL) return TA_E_MISUSE;
  struct ta_forward_status status = { .size = out->size };
  struct ta_client_status client;
  struct ta_counters counters;
  struct ta_recorded recorded;

  if (!ta_process_owns(&f->member)) return TA_E_OFF;
  ta_spool_recorded(&f->spool, &recorded);
  ta_client_status(&f->client, &client);
  ta_spool_counters(&f->spool, &counters);
  status.state = public_state(f, &client);
  status.produced_batches = counters.produced.batches;
  status.produced_bytes = counters.produced.bytes;
  status.acked_batches = counters.acked.batches;
  status.acked_bytes = counters.acked.bytes;
  status.acked_generations = counters.acked_generations;
  status.lost_batches = counters.lost.batches;
  status.lost_bytes = counters.lost.bytes;
  status.lost_generations = counters.lost_generations;
  status.spool_bytes = counters.spooled.bytes;
  status.spool_bytes_peak = counters.spooled_peak.bytes;
  status.connects = client.connects;
  status.reconnects = client.welcomes > 0 ? client.welcomes - 1 : 0;
  status.resent_batches = counters.resent_batches;
  status.faults = atomic_load(&f->client.keeper.failed);
  status.begun_anew = client.begun_anew;
  if (f->mirror.spool != NULL) {
    status.disk_bytes = atomic_load(&f->mirror.told_bytes);
    status.disk_faults = atomic_load(&f->mirror.told_faults);
    ta_heritage_told(&f->heritage, &status.old_streams, &status.old_streams_sent);
  }
  status.recorded_generations = recorded.generations;
  status.recorded_bytes = recorded.bytes;
  status.forgotten_generations = recorded.forgotten_generations;
  status.snaps = recorded.snaps;
  for (size_t i = 0; i < sizeof client.stream; i++)
    snprintf(status.stream + 2 * i, 3, "%02x", client.stream[i]);
  if (counters.lost_generations > 0)
    snprintf(status.last_loss, sizeof status.last_loss, "%s", tp_loss_text(counters.last_loss));
  memcpy(status.last_error, client.last_error, sizeof status.last_error);
  memcpy(out, &status, out->size < sizeof status ? out->size : sizeof status);
  return TA_OK;
}

const char *ta_version(void) {
  return TA_VERSION;
}

/* The thread's own words, or those for the code. */
static const char *own_or(const char *text) {
  const char *own = ta_fault_text();

  return own != NULL ? own : text;
}

const char *ta_strerror(int error) {
  switch (error) {
  case TA_OK: return "done";
  case TA_E_CONFIG: return own_or("configuration is incomplete or wrong");
  case TA_E_NOMEM: return "out of memory";
  case TA_E_TIMEOUT: return "not all was acked before the deadline";
  case TA_E_OFF: return own_or("the agent is off");
  case TA_E_REFUSED: return "the collector refused for good";
  case TA_E_CERT: return own_or("certificate or key cannot be used");
  case TA_E_CLOSED: return "the stream is closed";
  case TA_E_BUSY: return "a session of emitting is open already";
  case TA_E_KEPT: return "not all was acked before the deadline; it is on disk, for the next start";
  case TA_E_SYSTEM: return own_or("the system refuses what a stream needs");
  case TA_E_THREAD: return "no thread could be started";
  case TA_E_MISUSE: return "the call makes no sense here";
  case TA_E_FILE: return "the file cannot be written";
  case TA_E_UNEXPECTED: return "another event came than was expected";
  default: return "unknown error";
  }
}

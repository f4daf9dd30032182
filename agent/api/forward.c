/* SPDX-License-Identifier: Apache-2.0 */
/* The public calls. The writer's thread cuts the stream into batches and puts them into the spool;
 * everything else happens on the client's thread. Each call keeps errno as it found it.
 *
 * The host and the threads hold the handle together: the last holder frees it, so that close() never waits for
 * a resolver that hangs. */
#include "agent/api/forward.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/api/private.h"
#include "agent/api/recovery.h"
#include "agent/host/clock.h"
#include "agent/host/counter.h"
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
  SPLIT_BYTES_MAX = 256 << 10,
  RAW_BYTES_MAX = 64 << 10,
  HEADER_BYTES_MAX = 64,
  STACK_BYTES = 512 << 10,
  SPOOL_BYTES = 16 << 20,
  DISK_FOR_SPOOL = 4,            /* default of spool_dir_bytes, times spool_bytes */
  TIDY_MS = 200,                 /* wait for the thread's end after the deadline of close() */
  KEPT_STREAM_BYTES = 128 << 10, /* on disk, of a program that never connected */
  KEPT_STREAMS_MAX = 256,
  FIRST_VERSION_WITH_END_MARK = 26,
};

#define KEEP_CHECKS(f)                                                                             \
  TB_CLEANUP(restore_keeper) struct tb_keeper *keeper_before = tb_check_keep(&(f)->client.keeper)
static void restore_keeper(struct tb_keeper *const *before) {
  tb_check_keep(*before);
}

/* The thread. */

static void release(struct ta_forward *f) {
  if (atomic_fetch_sub(&f->holders, 1) > 1) return;
  ta_process_leave(&f->member);
  ta_process_leave(&f->recovery_member);
  ta_recovery_fini(&f->recovery);
  ta_spool_writer_fini(&f->disk);
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
  release(f);
  return NULL;
}

static struct ta_forward *of_recovery_member(struct ta_member *recovery_member) {
  return (struct ta_forward *)(void *)((char *)recovery_member -
                                       offsetof(struct ta_forward, recovery_member));
}

static void wake_recovery(struct ta_member *recovery_member) {
  ta_recovery_wake(&of_recovery_member(recovery_member)->recovery);
}

static void forked_member(struct ta_member *member) {
  ta_spool_writer_forked(&((struct ta_forward *)(void *)member)->disk);
}

static void forked_recovery(struct ta_member *recovery_member) {
  ta_recovery_forked(&of_recovery_member(recovery_member)->recovery);
}

static void *recovery_main(void *self) {
  struct ta_forward *f = self;

  ta_recovery_run(&f->recovery);
  if (ta_process_exiting()) ta_process_park(&f->recovery_member);
  ta_process_quiet(&f->recovery_member);
  release(f);
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
  if (ta_spool_dir_root(dir, &diag, &root) != TB_OK)
    return ta__fault(TA_E_CONFIG, "spool_dir: %s", diag.text);
  struct ta_spool_writer_config disk = { .root = root,
                                         .bytes_max = bytes / 2,
                                         .service = f->text[TEXT_SERVICE],
                                         .instance = f->text[TEXT_INSTANCE],
                                         .log = config->log,
                                         .log_self = config->log_self };
  if (ta_spool_writer_init(&f->disk, &disk, &f->spool) != TB_OK) return TA_E_NOMEM;
  ta_recovery_init(&f->recovery, root, bytes / 2, &f->client.config);
  ta_client_keep(&f->client, &f->disk);
  f->recovery_member.wake = wake_recovery;
  f->recovery_member.forked = forked_recovery;
  f->member.forked = forked_member;
  return TA_OK;
}

/* If the thread cannot be started, the old streams stay for the next process. */
static void start_recovery(struct ta_forward *f) {
  if (f->disk.spool == NULL || !ta_process_join(&f->recovery_member)) return;
  if (start_thread(f, "traceagent-old", recovery_main) != TA_OK)
    ta_process_quiet(&f->recovery_member);
}

/* Short programs never send or delete old streams, so the streams they leave in a folder are limited: in number, and to
 * half of the folder's bytes. */
static bool may_leave_files(const struct ta_forward *f) {
  uint64_t most = f->recovery.bytes_max / KEPT_STREAM_BYTES, streams = 0;
  int fd = openat(f->disk.dir.root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *dir = fd < 0 ? NULL : fdopendir(fd);

  if (most > KEPT_STREAMS_MAX) most = KEPT_STREAMS_MAX;
  if (dir == NULL && fd >= 0) close(fd);
  if (dir == NULL) return false;
  for (const struct dirent *entry; streams < most && (entry = readdir(dir)) != NULL;)
    streams += ta_spool_dir_is_stream(entry->d_name);
  closedir(dir);
  return streams < most;
}

struct patience {
  bool (*impatient)(void *self);
  void *self;
};

static int system_fault(const char *what) {
  return ta__fault(TA_E_SYSTEM, "%s: %s", what, strerror(errno));
}

static int start_stream(struct ta_forward *f) {
  if (ta_client_open(&f->client) != TB_OK) return system_fault("no eventfd");
  f->member.quiet = false;
  if (!ta_process_join(&f->member)) return TA_E_OFF;
  int error = start_thread(f, "traceagent", thread_main);
  f->runs = error == TA_OK;
  if (f->runs)
    start_recovery(f);
  else
    ta_process_quiet(&f->member);
  return error;
}

static int prepare(struct ta_forward *f, const struct ta_forward_config *config,
                   const struct patience *patience, bool late) {
  int error = ta__forward_take_config(f, config, patience == NULL);
  uint64_t record_ms;

  if (error == TA_OK) error = ta__forward_take_record(config, patience == NULL, &record_ms);
  uint64_t spool_bytes = config->spool_bytes == 0 ? SPOOL_BYTES : config->spool_bytes;
  if (error == TA_OK) error = ta__forward_check_limits(spool_bytes, patience == NULL);
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
  error = late ? ta__forward_keep_files(&client) : ta__forward_check_files(&client);
  if (error != TA_OK) return error;
  if (ta_client_init(&f->client, &client, &f->spool) != TB_OK)
    return system_fault("no random bytes");
  const char *dir = ta__or_env(config->spool_dir, "TRACEAGENT_SPOOL_DIR", patience == NULL);
  if (dir != NULL && *dir != 0 && record_ms != 0)
    return ta__fault(TA_E_CONFIG, "spool_dir: a flight recorder (record_ms) keeps nothing on disk");
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
  ta_counter_ask();
  if (f == NULL || !ta_pin()) {
    free(f);
    return TA_E_NOMEM;
  }
  KEEP_CHECKS(f);
  atomic_store(&f->holders, 1);
  f->client.wake_fd = -1;
  int error = prepare(f, &all, patience, late);
  if (error == TA_OK && !late) error = start_stream(f);
  if (error == TA_OK)
    *out = f;
  else
    release(f);
  return error;
}

/* secure_getenv: a program that runs with raised rights ignores its caller's environment. */
static bool is_disabled(void) {
  const char *disable = secure_getenv("TRACEAGENT_DISABLE");

  return disable != NULL && strcmp(disable, "1") == 0;
}

static int open_own(const struct ta_forward_config *config, bool late, ta_forward **out) {
  if (out == NULL) return TA_E_MISUSE;
  *out = NULL;
  return is_disabled() || ta_process_is_torn() ? TA_E_OFF : open_stream(config, NULL, late, out);
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
  f->client.config.first_try_ns = f->recovery.client_config.first_try_ns = first_try_ns;
  return start_stream(f);
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
  if (f->disk.spool != NULL && may_leave_files(f)) ta_client_keep_only(&f->client);
  release(f);
}

bool ta_forward_keeps(ta_forward *f) {
  return f->disk.spool != NULL;
}

int ta_forward_open_patient(const struct ta_forward_config *config, bool (*impatient)(void *self),
                            void *self, ta_forward **out) {
  return open_stream(config, &(struct patience){ impatient, self }, false, out);
}

/* Writing. */

/* Begins generation gen unless it is open. A batch whose number does not rise stays in the open generation: the collector
 * reports that in its verdict. */
static void enter(struct ta_forward *f, uint64_t gen) {
  if (f->gen != 0 && gen <= f->gen) return;
  if (f->gen != 0 && ta_spool_end(&f->spool)) ta_client_wake(&f->client);
  f->gen = gen > f->gen_last ? gen : f->gen_last + 1;
  f->gen_last = f->gen;
}

static void put_bytes(struct ta_forward *f, const unsigned char *bytes, size_t n) {
  if (ta_spool_put(&f->spool, f->gen, bytes, n)) ta_client_wake(&f->client);
}

static void leave(struct ta_forward *f) {
  if (f->gen != 0 && ta_spool_end(&f->spool)) ta_client_wake(&f->client);
  f->gen = 0;
}

/* Without end marks a generation's end is known only when the next one begins: the recorder then keeps one more. */
static void put_header(struct ta_forward *f, const void *bytes, size_t n, bool ends_are_known) {
  f->header_put = true;
  ta_spool_record_ends(&f->spool, ends_are_known ? 1 : 2);
  if (ta_spool_header(&f->spool, bytes, n)) ta_client_wake(&f->client);
}

static void put_stream_header(struct ta_forward *f, const unsigned char *bytes, size_t n) {
  put_header(f, bytes, n, f->split.version >= FIRST_VERSION_WITH_END_MARK);
}

/* Passes on bytes that are not a batch unchanged, in the open generation. If there was no header yet, the first of
 * them are sent as the header. */
static void put_raw(struct ta_forward *f, const unsigned char *bytes, size_t n) {
  if (!f->header_put) {
    size_t header = n < TW_HEADER_BYTES ? n : TW_HEADER_BYTES;
    put_stream_header(f, bytes, header);
    bytes += header;
    n -= header;
  }
  for (size_t here; n > 0; bytes += here, n -= here) {
    here = n < RAW_BYTES_MAX ? n : RAW_BYTES_MAX;
    if (f->gen == 0) enter(f, f->gen_last + 1);
    put_bytes(f, bytes, here);
  }
}

static void put_item(struct ta_forward *f, const struct tw_item *item) {
  switch (item->kind) {
  case TW_ITEM_HEADER:
    if (item->len <= HEADER_BYTES_MAX)
      put_stream_header(f, item->bytes, item->len);
    else
      put_raw(f, item->bytes, item->len);
    break;
  case TW_ITEM_BATCH:
    enter(f, item->batch.gen);
    put_bytes(f, item->bytes, item->len);
    break;
  case TW_ITEM_END_MARK:
    if (f->gen == 0) enter(f, f->gen_last + 1);
    put_bytes(f, item->bytes, item->len);
    leave(f);
    break;
  case TW_ITEM_RAW: put_raw(f, item->bytes, item->len); break;
  }
}

/* After a failed check nothing more is stored or sent. */
static int turn_off(struct ta_forward *f) {
  ta_spool_over(&f->spool);
  ta_client_wake(&f->client);
  return TA_E_OFF;
}

static int usable(struct ta_forward *f) {
  if (f == NULL) return TA_E_MISUSE;
  if (!ta_process_owns(&f->member) || ta__forward_is_mistaken(f)) return TA_E_OFF;
  return f->closed ? TA_E_CLOSED : TA_OK;
}

/* Why nothing more will be sent. */
static int over_error(struct ta_forward *f) {
  struct ta_client_status status;

  if (ta__forward_is_mistaken(f)) return TA_E_OFF;
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
    if (!TB_CHECK(rc == TB_OK)) return turn_off(f); /* its memory was reserved at open */
    from += used;
    n -= used;
    put_item(f, &item);
    if (ta__forward_is_mistaken(f)) return turn_off(f);
    if (f->spool.impatient != NULL && f->spool.over) return over_error(f);
  }
}

static bool takes_batches(struct ta_forward *f) {
  return usable(f) == TA_OK && !atomic_load(&f->spool.over);
}

void ta_forward_put_header(ta_forward *f, const void *bytes, size_t n) {
  if (!takes_batches(f)) return;
  KEEP_CHECKS(f);
  put_header(f, bytes, n, true);
  if (ta__forward_is_mistaken(f)) turn_off(f);
}

void ta_forward_put_batch(ta_forward *f, uint64_t gen, const void *bytes, size_t n) {
  if (!takes_batches(f)) return;
  KEEP_CHECKS(f);
  ta_client_take_snap(&f->client);
  enter(f, gen);
  put_bytes(f, bytes, n);
  if (ta__forward_is_mistaken(f)) turn_off(f);
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
  if (!ta_process_owns(&f->member) || ta__forward_is_mistaken(f)) return TA_E_OFF;
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
  bool kept, waits = until_ns > ta_mono_ns(); /* a check without waiting wakes no thread */

  if (waits) ta_client_hurry(&f->client, true);
  tb_rc rc = ta_spool_wait_by_outlook(&f->spool, until_ns, patience_ns, &kept);
  if (waits) ta_client_hurry(&f->client, false);
  switch (rc) {
  case TB_OK: return TA_OK;
  case TB_AGAIN: return kept ? TA_E_KEPT : TA_E_TIMEOUT;
  default: return over_error(f);
  }
}

/* Checks once more after the thread has written its last data to disk. */
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
    return TA_E_OFF; /* the parent's object: fork() may have copied it in the middle of a change */
  ta_client_stop(&f->client);
  if (f->disk.spool != NULL) ta_recovery_stop(&f->recovery);
  if (ta_process_wait_quiet(&f->member, TIDY_MS)) error = left_behind(f, error);
  if (f->disk.spool != NULL) ta_process_wait_quiet(&f->recovery_member, TIDY_MS);
  release(f);
  return error;
}

int ta_forward_close(ta_forward *f, int64_t deadline_ms) {
  KEEP_ERRNO;

  if (f == NULL) return TA_OK;
  return ta_forward_free(f, ta_forward_end(f, ta_deadline_ns(deadline_ms), UINT64_MAX));
}

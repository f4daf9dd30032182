/* SPDX-License-Identifier: Apache-2.0 */
#include "support/store_driver.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "proto/frame.pb-c.h"
#include "support/patience.h"
#include "support/scratch.h"

static uint64_t now_ns(void) {
  struct timespec ts;

  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void pause_a_little(void) {
  struct timespec ts = { .tv_nsec = 200000 };

  nanosleep(&ts, NULL);
}

static bool take_reply(void *self, enum tc_from from, struct tc_reply *reply) {
  struct tt_store *t = self;

  (void)from;
  if (reply->loop != 0 && t->elsewhere != NULL) {
    t->elsewhere(t->elsewhere_self, reply);
    return true;
  }
  pthread_mutex_lock(&t->lock);
  bool full = t->refuse_replies || t->nreplies == TT_REPLIES_MAX;
  if (!full) t->replies[t->nreplies++] = reply;
  pthread_mutex_unlock(&t->lock);
  return !full;
}

static void take_note(void *self, const struct tc_note *note) {
  struct tt_store *t = self;

  pthread_mutex_lock(&t->lock);
  size_t len = strlen(t->notes);
  snprintf(t->notes + len, sizeof t->notes - len, "%s\n", note->text);
  pthread_mutex_unlock(&t->lock);
}

bool tt_noted(struct tt_store *t, const char *text) {
  pthread_mutex_lock(&t->lock);
  bool noted = strstr(t->notes, text) != NULL;
  pthread_mutex_unlock(&t->lock);
  return noted;
}

void tt_store_make(struct tt_store *t) {
  memset(t, 0, sizeof *t);
  pthread_mutex_init(&t->lock, NULL);
  snprintf(t->dir, sizeof t->dir, "%s/tc-store-XXXXXX", tt_scratch());
  if (mkdtemp(t->dir) == NULL) abort();
  tc_config_init(&t->config);
  free(t->config.top_state);
  t->config.top_state = strdup(t->dir);
  t->config.segment_generations_max = 1; /* tests of runs say so */
  t->config.log_file_bytes = 4 << 20;
  t->config.disk_free_min = 0;
  t->config.disk_reserve_bytes = 0;
  t->config.retention_age = 0;
  t->config.retention_free_bytes = 0;
}

tb_rc tt_store_start(struct tt_store *t) {
  struct tb_diag diag = { 0 };
  struct tc_store_sink sink = { t, take_reply, take_note };
  tb_rc rc = tc_store_open(&t->config, 1, sink, &diag, &t->store);

  if (rc != TB_OK) snprintf(t->notes, sizeof t->notes, "%s", diag.text);
  return rc;
}

void tt_store_stop(struct tt_store *t) {
  tt_store_stop_by(t, 0);
}

void tt_store_stop_by(struct tt_store *t, uint64_t deadline_mono_ns) {
  tc_store_close_by(t->store, deadline_mono_ns);
  t->store = NULL;
  for (unsigned i = 0; i < t->nreplies; i++) tc_reply_free(t->replies[i]);
  t->nreplies = 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
  (void)st;
  (void)type;
  (void)ftw;
  return remove(path);
}

void tt_store_remove(struct tt_store *t) {
  tt_store_stop(t);
  nftw(t->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
  tc_config_fini(&t->config);
  pthread_mutex_destroy(&t->lock);
}

static struct tc_reply *find(struct tt_store *t, enum tc_reply_kind kind, unsigned n) {
  struct tc_reply *found = NULL;

  pthread_mutex_lock(&t->lock);
  for (unsigned i = 0; found == NULL && i < t->nreplies; i++)
    if (t->replies[i]->kind == kind && n-- == 0) found = t->replies[i];
  pthread_mutex_unlock(&t->lock);
  return found;
}

static unsigned replies_of(struct tt_store *t) {
  pthread_mutex_lock(&t->lock);
  unsigned n = t->nreplies;
  pthread_mutex_unlock(&t->lock);
  return n;
}

struct tc_reply *tt_wait(struct tt_store *t, enum tc_reply_kind kind, unsigned n) {
  uint64_t patience = TT_PATIENCE_S * UINT64_C(1000000000), deadline = now_ns() + patience;
  unsigned seen = 0;
  struct tc_reply *found;

  while ((found = find(t, kind, n)) == NULL && now_ns() < deadline) {
    unsigned came = replies_of(t);
    if (came != seen) deadline = now_ns() + patience; /* a slow disk makes progress */
    seen = came;
    pause_a_little();
  }
  return found;
}

unsigned tt_count(struct tt_store *t, enum tc_reply_kind kind) {
  unsigned n = 0;

  pthread_mutex_lock(&t->lock);
  for (unsigned i = 0; i < t->nreplies; i++) n += t->replies[i]->kind == kind;
  pthread_mutex_unlock(&t->lock);
  return n;
}

bool tt_wait_acked(struct tt_store *t, uint32_t stream, uint64_t seq) {
  uint64_t deadline = now_ns() + TT_PATIENCE_S * UINT64_C(1000000000);
  bool acked = false;

  while (!acked && now_ns() < deadline) {
    pthread_mutex_lock(&t->lock);
    for (unsigned i = 0; i < t->nreplies; i++)
      acked |= t->replies[i]->kind == TC_REPLY_ACKED && t->replies[i]->stream == stream &&
               t->replies[i]->seq >= seq;
    pthread_mutex_unlock(&t->lock);
    if (!acked) pause_a_little();
  }
  return acked;
}

void tt_submit(struct tt_store *t, struct tc_submit *msg) {
  while (!tc_store_submit(t->store, t->sender, msg)) pause_a_little();
}

void tt_attach(struct tt_store *t, uint64_t conn, unsigned id, const char *identity) {
  struct tc_submit *msg = tc_submit_new(TC_SUBMIT_ATTACH);

  msg->conn = conn;
  memset(msg->attach.stream, (int)id, TC_STREAM_BYTES);
  if (id > UINT8_MAX) memcpy(msg->attach.stream, &id, sizeof id);
  snprintf(msg->attach.identity, sizeof msg->attach.identity, "%s", identity);
  snprintf(msg->attach.service, sizeof msg->attach.service, "shop");
  snprintf(msg->attach.instance, sizeof msg->attach.instance, "host-%u", id);
  snprintf(msg->attach.peer, sizeof msg->attach.peer, "127.0.0.1:%u", 1000 + id);
  tt_submit(t, msg);
}

uint32_t tt_attached(struct tt_store *t, uint64_t conn, uint64_t *out_seq) {
  uint64_t deadline = now_ns() + TT_PATIENCE_S * UINT64_C(1000000000);

  while (now_ns() < deadline) {
    struct tc_reply *found = NULL;
    pthread_mutex_lock(&t->lock);
    for (unsigned i = 0; found == NULL && i < t->nreplies; i++)
      if (t->replies[i]->conn == conn &&
          (t->replies[i]->kind == TC_REPLY_ATTACHED || t->replies[i]->kind == TC_REPLY_REFUSED))
        found = t->replies[i];
    pthread_mutex_unlock(&t->lock);
    if (found != NULL && found->kind == TC_REPLY_REFUSED) return 0;
    if (found != NULL && out_seq != NULL) *out_seq = found->seq;
    if (found != NULL) return found->stream;
    pause_a_little();
  }
  return 0;
}

void tt_detach(struct tt_store *t, uint64_t conn) {
  struct tc_submit *msg = tc_submit_new(TC_SUBMIT_DETACH);

  msg->conn = conn;
  tt_submit(t, msg);
}

void tt_barrier(struct tt_store *t) {
  unsigned before = tt_count(t, TC_REPLY_BARRIER);
  struct tc_submit *msg = tc_submit_new(TC_SUBMIT_BARRIER);

  msg->barrier = before + 1;
  tt_submit(t, msg);
  if (tt_wait(t, TC_REPLY_BARRIER, before) != NULL) return;
  fprintf(stderr, "no barrier in %d s: %s\n", TT_PATIENCE_S, t->notes);
  abort();
}

static void free_record(struct tc_record *record) {
  free(record);
}

void tt_record(struct tt_writer *w, unsigned kind, uint64_t gen, const void *payload, size_t len) {
  struct tc_submit *msg = tc_submit_new(TC_SUBMIT_RECORD);
  struct tc_record *record = calloc(1, sizeof *record + len);

  *record = (struct tc_record){ .free = free_record,
                                .magic = TC_RECORD_MAGIC,
                                .conn = w->conn,
                                .seq = ++w->seq,
                                .gen = gen,
                                .stream = w->stream,
                                .len = (uint32_t)len,
                                .crc = tb_crc32c(0, payload, len),
                                .kind = (uint8_t)kind };
  if (len > 0) memcpy(record->payload, payload, len);
  msg->conn = w->conn;
  msg->record = record;
  tt_submit(w->t, msg);
}

void tt_header(struct tt_writer *w) {
  tt_record(w, TP_HEADER, 0, "go 1.26 trace\0\0\0", 16);
}

void tt_batch(struct tt_writer *w, uint64_t gen, const void *payload, size_t len) {
  unsigned char le[4];
  uint32_t crc = tb_crc32c(0, payload, len);

  for (int i = 0; i < 4; i++) le[i] = (unsigned char)(crc >> 8 * i);
  w->crc = tb_crc32c(w->crc, le, 4);
  w->batches++;
  w->bytes += len;
  tt_record(w, TP_BATCH, gen, payload, len);
}

void tt_end(struct tt_writer *w, uint64_t gen) {
  Tracecollect__V1__GenerationEnd end = TRACECOLLECT__V1__GENERATION_END__INIT;
  unsigned char buf[128];

  end.batches = w->batches;
  end.bytes = w->bytes;
  end.crc = w->crc;
  end.wall_ns = 1700000000000000000 + gen;
  tt_record(w, TP_GENEND, gen, buf, tracecollect__v1__generation_end__pack(&end, buf));
  w->batches = w->bytes = 0;
  w->crc = 0;
}

void tt_loss(struct tt_writer *w, uint64_t first_gen, uint64_t last_gen, uint64_t batches,
             uint64_t bytes) {
  Tracecollect__V1__Loss loss = TRACECOLLECT__V1__LOSS__INIT;
  unsigned char buf[128];

  loss.first_gen = first_gen;
  loss.last_gen = last_gen;
  loss.batches = batches;
  loss.bytes = bytes;
  loss.sent_batches = w->batches;
  loss.sent_bytes = w->bytes;
  loss.reason = TRACECOLLECT__V1__LOSS_REASON__LOSS_SPOOL_FULL;
  tt_record(w, TP_LOSS, first_gen, buf, tracecollect__v1__loss__pack(&loss, buf));
  w->batches = w->bytes = 0;
  w->crc = 0;
}

void tt_close(struct tt_writer *w) {
  tt_close_with(w, 0, 0);
}

void tt_close_with(struct tt_writer *w, uint64_t produced_batches, uint64_t produced_bytes) {
  Tracecollect__V1__Close close = TRACECOLLECT__V1__CLOSE__INIT;
  Tracecollect__V1__Counters counters = TRACECOLLECT__V1__COUNTERS__INIT;
  unsigned char buf[128];

  counters.produced_batches = produced_batches;
  counters.produced_bytes = produced_bytes;
  if (produced_batches > 0) close.counters = &counters;
  tt_record(w, TP_CLOSE, 0, buf, tracecollect__v1__close__pack(&close, buf));
}

void tt_verdict(struct tt_writer *w, uint64_t gen, uint32_t code) {
  struct tc_submit *msg = tc_submit_new(TC_SUBMIT_VERDICT);

  msg->verdict = (struct tc_verdict){
    .stream = w->stream, .gen = gen, .code = code, .events = 10, .thread = TB_NO_THREAD
  };
  tt_submit(w->t, msg);
}

void tt_heartbeat(struct tt_writer *w, uint64_t produced, uint64_t reported_seq,
                  uint64_t reported) {
  struct tc_submit *msg = tc_submit_new(TC_SUBMIT_HEARTBEAT);

  msg->conn = w->conn;
  msg->counters = (struct tc_counters){ .stream = w->stream,
                                        .produced_batches = produced,
                                        .produced_bytes = 1000 * produced,
                                        .reported_seq = reported_seq,
                                        .reported_batches = reported,
                                        .reported_bytes = 1000 * reported };
  tt_submit(w->t, msg);
}

void tt_fill(unsigned char *out, size_t len, uint64_t gen, unsigned position) {
  uint64_t state = gen * 1000003 + position * 7919 + 1;

  for (size_t i = 0; i < len; i += sizeof state) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    memcpy(out + i, &state, len - i < sizeof state ? len - i : sizeof state);
  }
  if (len > 0) out[0] = 1; /* an event batch */
}

void tt_generation(struct tt_writer *w, uint64_t gen, unsigned n, size_t len) {
  unsigned char *buf = malloc(len + 1);

  for (unsigned i = 0; i < n; i++) {
    tt_fill(buf, len, gen, i);
    tt_batch(w, gen, buf, len);
  }
  free(buf);
  tt_end(w, gen);
}

char *tt_read_file(struct tt_store *t, const char *path, size_t *out_len) {
  char full[400];
  struct stat st;

  snprintf(full, sizeof full, "%s/%s", t->dir, path);
  int fd = open(full, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &st) != 0) {
    if (fd >= 0) close(fd);
    return NULL;
  }
  char *bytes = malloc((size_t)st.st_size + 1);
  ssize_t n = read(fd, bytes, (size_t)st.st_size);
  close(fd);
  *out_len = n < 0 ? 0 : (size_t)n;
  return bytes;
}

static __thread unsigned files_seen;
static __thread const char *files_ending;

static int count_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
  size_t n = strlen(path), m = strlen(files_ending);

  (void)st;
  (void)ftw;
  if (type == FTW_F && n >= m && strcmp(path + n - m, files_ending) == 0) files_seen++;
  return 0;
}

unsigned tt_count_files(struct tt_store *t, const char *folder, const char *ending) {
  char full[400];

  snprintf(full, sizeof full, "%s/%s", t->dir, folder);
  files_seen = 0;
  files_ending = ending;
  nftw(full, count_one, 16, FTW_PHYS);
  return files_seen;
}

void tt_flip(struct tt_store *t, const char *path, uint64_t offset) {
  char full[400];
  unsigned char byte;

  snprintf(full, sizeof full, "%s/%s", t->dir, path);
  int fd = open(full, O_RDWR | O_CLOEXEC);
  if (fd < 0 || pread(fd, &byte, 1, (off_t)offset) != 1) abort();
  byte = (unsigned char)(byte ^ 1u << (offset % 8));
  if (pwrite(fd, &byte, 1, (off_t)offset) != 1) abort();
  close(fd);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The spool on disk, called directly: the test is the writer, the sender, the collector, and the program that dies. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/api/recovery.h"
#include "agent/host/clock.h"
#include "agent/persist/writer.h"
#include "proto/frame.pb-c.h"
#include "tests/support/patience.h"

enum { MIB = 1 << 20, BATCH = 60000, RECORDS_MAX = 4096 };

/* Number of the next readdir() call that fails, from 1; 0: none. */
static unsigned bad_entry;

struct dirent *readdir(DIR *dir) {
  if (bad_entry == 0 || --bad_entry > 0)
    return ((__typeof__(&readdir))dlsym(RTLD_NEXT, "readdir"))(dir);
  errno = EIO;
  return NULL;
}

/* Bytes of the stream that a collector has received. */
struct archive {
  uint64_t seq;
  uint32_t crc[RECORDS_MAX]; /* of each record's frame, by number */
  struct ta_count reported, batches;
  uint64_t generations, losses, abandoned;
  bool closed;
};

struct life {
  char dir[64];
  unsigned char stream[16], noise[BATCH];
  struct ta_spool spool;
  struct ta_spool_writer disk;
  struct archive there;
  uint64_t gen, random;
  unsigned char *wire; /* sent, not yet arrived */
  size_t wire_n;
};

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw) {
  (void)st, (void)kind, (void)ftw;
  return remove(path);
}

static uint64_t below(struct life *l, uint64_t end) {
  l->random = l->random * UINT64_C(6364136223846793005) + 1442695040888963407;
  return (l->random >> 33) % end;
}

static int open_root(struct life *l) {
  struct tb_diag diag;
  int root = -1;

  tb_diag_clear(&diag);
  cr_assert_eq(ta_spool_dir_root(l->dir, &diag, &root), TB_OK, "%s", diag.text);
  return root;
}

static struct life *begin(uint64_t seed, uint64_t disk_bytes) {
  struct life *l = calloc(1, sizeof *l);

  strcpy(l->dir, "/tmp/spool-disk-XXXXXX");
  cr_assert_not_null(mkdtemp(l->dir));
  l->random = seed;
  for (size_t i = 0; i < sizeof l->noise; i++) l->noise[i] = (unsigned char)(i * 7 + i / 256);
  for (size_t i = 0; i < sizeof l->stream; i++) l->stream[i] = (unsigned char)(seed + i);
  struct ta_spool_writer_config config = {
    .root = open_root(l), .bytes_max = disk_bytes, .service = "shop", .instance = "a:1"
  };
  cr_assert_eq(ta_spool_init(&l->spool, MIB), TB_OK);
  cr_assert_eq(ta_spool_writer_init(&l->disk, &config, &l->spool), TB_OK);
  ta_spool_writer_begin(&l->disk, l->stream, 7);
  cr_assert(l->disk.on);
  ta_spool_header(&l->spool, "go 1.26 trace\0\0", 16);
  return l;
}

static void end(struct life *l) {
  ta_spool_fini(&l->spool);
  ta_spool_writer_fini(&l->disk);
  nftw(l->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
  free(l->wire);
  free(l);
}

/* Ends the process: its locks are released, and the files stay as they are. */
static void die(struct life *l) {
  ta_spool_writer_fini(&l->disk);
  ta_spool_fini(&l->spool);
  l->wire_n = 0;
}

static bool find_name(struct life *l, char out[TA_SPOOL_DIR_NAME]) {
  struct stat st;
  char path[128];

  for (int i = 0; i < 16; i++) snprintf(out + 2 * i, 3, "%02x", l->stream[i]);
  snprintf(path, sizeof path, "%s/%s", l->dir, out);
  return stat(path, &st) == 0;
}

/* Takes the folder over, as a successor does, and loads the spool from the files. */
static tb_rc inherit(struct life *l, struct ta_spool_dir *dir) {
  tb_rc rc;

  struct ta_spool_dir_state state;
  char name[TA_SPOOL_DIR_NAME];
  struct tb_diag diag;

  tb_diag_clear(&diag);
  cr_assert(find_name(l, name));
  ta_spool_dir_init(dir, open_root(l), 0);
  cr_assert_eq(ta_spool_dir_take(dir, name, &diag, &state), TB_OK, "%s", diag.text);
  cr_assert_str_eq(state.instance, "a:1");
  cr_assert_eq(memcmp(state.stream, l->stream, 16), 0);
  rc = ta_recovery_load(dir, &state, &l->spool);
  cr_assert_eq(ta_recovery_announce(dir, &state, &l->spool), TB_OK);
  return rc;
}

static void release(struct ta_spool_dir *dir) {
  int root = dir->root;

  ta_spool_dir_leave(dir);
  close(root);
}

/* The collector takes a record: the next one, or one that it already has, which must then be the same. */
static void take(struct archive *a, const struct tp_frame *frame, const unsigned char *bytes) {
  uint32_t crc;

  memcpy(&crc, bytes + 24, sizeof crc); /* covers the whole frame */
  cr_assert(frame->seq >= 1 && frame->seq <= a->seq + 1, "record %lu behind %lu",
            (unsigned long)frame->seq, (unsigned long)a->seq);
  cr_assert_lt(frame->seq, RECORDS_MAX);
  if (frame->seq <= a->seq) {
    cr_assert_eq(a->crc[frame->seq], crc, "record %lu is another", (unsigned long)frame->seq);
    return;
  }
  a->crc[++a->seq] = crc;
  cr_assert_not(a->closed);
  if (frame->kind == TP_BATCH) {
    ta_count_add(&a->batches, (struct ta_count){ 1, frame->len });
    ta_count_add(&a->reported, (struct ta_count){ 1, frame->len });
  }
  a->generations += frame->kind == TP_GENEND;
  a->closed = frame->kind == TP_CLOSE;
  if (frame->kind != TP_LOSS) return;
  Tracecollect__V1__Loss *loss = tracecollect__v1__loss__unpack(NULL, frame->len, frame->payload);
  a->losses++;
  a->abandoned += loss->sent_batches > 0;
  ta_count_add(&a->reported, (struct ta_count){ loss->batches - loss->sent_batches,
                                                loss->bytes - loss->sent_bytes });
  tracecollect__v1__loss__free_unpacked(loss, NULL);
}

/* Sends what was granted. Of the records in transit, `records` arrive. */
static void send_granted(struct life *l, uint64_t records) {
  const unsigned char *bytes;
  struct tp_frame frame;
  size_t n, at = 0, used, need;

  while ((n = ta_spool_span(&l->spool, &bytes)) > 0) {
    l->wire = realloc(l->wire, l->wire_n + n);
    memcpy(l->wire + l->wire_n, bytes, n);
    l->wire_n += n;
    ta_spool_sent(&l->spool, n);
  }
  for (; at < l->wire_n && records > 0; at += used, records--) {
    cr_assert_eq(tp_frame_take(l->wire + at, l->wire_n - at, NULL, &frame, &used, &need), TB_OK);
    take(&l->there, &frame, l->wire + at);
  }
  l->wire_n -= at;
  if (l->wire_n > 0) memmove(l->wire, l->wire + at, l->wire_n);
}

static void put(struct life *l, unsigned batches) {
  while (batches-- > 0) ta_spool_put(&l->spool, l->gen, l->noise, 1 + below(l, BATCH - 1));
}

static uint64_t produced(struct life *l) {
  struct ta_counters c;

  ta_spool_counters(&l->spool, &c);
  cr_assert_eq(c.produced.batches, c.acked.batches + c.lost.batches + c.spooled.batches);
  cr_assert_eq(c.produced.bytes, c.acked.bytes + c.lost.bytes + c.spooled.bytes);
  return c.produced.batches;
}

/* Flushes, grants and sends, as the sender does. Some of the granted records arrive. */
static void send_some(struct life *l, uint64_t bytes, uint64_t records) {
  uint64_t need;

  ta_spool_writer_flush(&l->disk);
  ta_spool_grant(&l->spool, bytes, &need);
  ta_spool_writer_note(&l->disk);
  send_granted(l, records);
}

/* Takes one random step in the life of a program. */
static void step(struct life *l) {
  switch (below(l, 8)) {
  case 0:
    ta_spool_end(&l->spool);
    l->gen++;
    break;
  case 1: ta_spool_lose(&l->spool, l->gen, TRACECOLLECT__V1__LOSS_REASON__LOSS_NO_BATCH); break;
  case 2:
  case 3: {
    uint64_t bytes = below(l, 400000);
    send_some(l, bytes, below(l, 8));
    break;
  }
  case 4:
    send_granted(l, UINT64_MAX);
    if (l->there.seq > l->spool.acked_seq)
      cr_assert_eq(
          ta_spool_ack(&l->spool,
                       l->spool.acked_seq + below(l, l->there.seq - l->spool.acked_seq + 1), NULL),
          TB_OK);
    break;
  default: put(l, (unsigned)below(l, 4)); break;
  }
}

/* Connects as the successor, sends all records, and acks them. */
static void deliver(struct life *l) {
  struct tb_diag diag;
  uint64_t need;

  tb_diag_clear(&diag);
  cr_assert_eq(ta_spool_resume(&l->spool, l->there.seq, &diag), TB_OK, "%s", diag.text);
  while (ta_spool_grant(&l->spool, 3 * MIB, &need) > 0) send_granted(l, UINT64_MAX);
  cr_assert_eq(ta_spool_ack(&l->spool, l->there.seq, &diag), TB_OK, "%s", diag.text);
  cr_assert(ta_spool_done(&l->spool) || !l->spool.inherited);
}

/* Ends the successor as well, after some of its records have arrived. */
static void die_on_the_way(struct life *l, struct ta_spool_dir *dir) {
  struct tb_diag diag;
  uint64_t need;

  tb_diag_clear(&diag);
  cr_assert_eq(ta_spool_resume(&l->spool, l->there.seq, &diag), TB_OK, "%s", diag.text);
  ta_spool_grant(&l->spool, below(l, MIB), &need);
  send_granted(l, below(l, 20));
  ta_spool_fini(&l->spool);
  l->wire_n = 0;
  release(dir);
}

/* Whatever the program did, and whenever it died: the collector gets each record that was on disk once and unchanged, and the
 * reported counts add up. */
Test(spool_disk, a_program_dies_at_any_moment) {
  uint64_t losses = 0, abandoned = 0;

  for (uint64_t seed = 1; seed <= (tt_full() ? 150 : 50); seed++) {
    struct life *l = begin(seed, 64 * MIB);
    struct ta_spool_dir dir;
    l->gen = 1;
    for (uint64_t steps = below(l, 200); steps > 0; steps--) step(l);
    bool finished = below(l, 4) == 0;
    if (finished) ta_spool_end(&l->spool);
    if (finished) ta_spool_finish(&l->spool);
    ta_spool_writer_flush(&l->disk);
    cr_assert_eq(l->spool.kept_records, l->spool.records);
    uint64_t had = produced(l);
    if (!finished) put(l, (unsigned)below(l, 3)); /* these are not on disk */
    die(l);
    cr_assert_eq(inherit(l, &dir), TB_OK);
    cr_assert_eq(produced(l), had, "seed %lu: %lu, not %lu", (unsigned long)seed,
                 (unsigned long)produced(l), (unsigned long)had);
    for (uint64_t heirs = below(l, 3); heirs > 0; heirs--) {
      die_on_the_way(l, &dir);
      cr_assert_eq(inherit(l, &dir), TB_OK);
    }
    deliver(l);
    cr_assert_eq(l->there.closed, finished);
    cr_assert_eq(l->there.reported.batches, had, "seed %lu", (unsigned long)seed);
    losses += l->there.losses;
    abandoned += l->there.abandoned;
    release(&dir);
    end(l);
  }
  cr_assert_gt(losses, 50);
  cr_assert_gt(abandoned, 20);
}

static void ack_all(struct life *l) {
  struct tb_diag diag;

  tb_diag_clear(&diag);
  cr_assert_eq(ta_spool_ack(&l->spool, l->there.seq, &diag), TB_OK, "%s", diag.text);
}

/* A disk with too little room: records on disk stay there, and the others wait. When all records on disk are acked, the stream
 * continues without files. It gets files again when there is room. */
Test(spool_disk, a_full_disk_keeps_what_it_has) {
  struct life *l = begin(1, 200000);
  struct ta_spool_dir dir;
  char name[TA_SPOOL_DIR_NAME];

  l->gen = 1;
  put(l, 3);
  ta_spool_writer_flush(&l->disk);
  uint64_t vouched = l->spool.records;
  cr_assert_eq(l->spool.kept_records, vouched);
  put(l, 12);
  ta_spool_end(&l->spool);
  ta_spool_writer_flush(&l->disk);
  cr_assert(l->disk.on && l->disk.full);
  cr_assert_eq(l->disk.reported_faults, 1);
  cr_assert_eq(l->spool.kept_records, vouched);
  send_some(l, 3 * MIB, UINT64_MAX);
  cr_assert_geq(l->there.batches.batches, 3);
  cr_assert_lt(l->there.batches.batches, 15, "what is on no disk went out");
  cr_assert(find_name(l, name), "nothing of it was acked");
  ack_all(l);
  while (l->there.batches.batches < 15) send_some(l, 3 * MIB, UINT64_MAX);
  cr_assert_not(l->disk.on);
  cr_assert_eq(l->disk.reported_faults, 1);
  cr_assert_not(find_name(l, name), "files that are not the whole truth");
  ack_all(l);

  l->disk.due_ns = 0; /* the time of the next try */
  l->gen++;
  put(l, 2);
  ta_spool_writer_flush(&l->disk);
  cr_assert(l->disk.on);
  die(l);
  cr_assert_eq(inherit(l, &dir), TB_OK);
  cr_assert_eq(produced(l), 17);
  deliver(l);
  cr_assert_eq(l->there.batches.batches, 17);
  release(&dir);
  end(l);
}

/* The same, but the disk has room again before anything is acked. */
Test(spool_disk, a_disk_that_was_full_goes_on) {
  struct life *l = begin(1, 200000);
  struct ta_spool_dir dir;

  l->gen = 1;
  put(l, 12);
  ta_spool_writer_flush(&l->disk);
  cr_assert(l->disk.full);
  l->disk.dir.bytes_max = MIB;
  l->disk.due_ns = 0;
  ta_spool_writer_flush(&l->disk);
  cr_assert_not(l->disk.full);
  cr_assert_eq(l->spool.kept_records, l->spool.records);
  die(l);
  cr_assert_eq(inherit(l, &dir), TB_OK);
  cr_assert_eq(produced(l), 12);
  deliver(l);
  cr_assert_eq(l->there.batches.batches, 12);
  release(&dir);
  end(l);
}

/* When the files are begun, more records wait than the disk has room for. If no record has a number yet, the files get as many
 * as fit. If records have numbers, all of these must be in the files, or a successor could not continue the stream. */
Test(spool_disk, a_disk_smaller_than_what_waits_holds_its_beginning) {
  for (int given = 0; given < 2; given++) {
    struct life *l = begin(1, 0);
    struct ta_spool_dir dir;
    char name[TA_SPOOL_DIR_NAME];
    uint64_t need;
    l->gen = 1;
    put(l, 12);
    ta_spool_writer_flush(&l->disk);
    cr_assert_not(l->disk.on, "there is no room at all");
    if (given) cr_assert_gt(ta_spool_grant(&l->spool, MIB, &need), 200000);
    l->disk.dir.bytes_max = 200000;
    l->disk.due_ns = 0;
    ta_spool_writer_flush(&l->disk);
    cr_assert_eq(l->disk.on, !given);
    cr_assert_eq(find_name(l, name), !given);
    if (!given) {
      cr_assert(l->disk.full);
      cr_assert_lt(l->spool.kept_records, l->spool.records);
      die(l);
      cr_assert_eq(inherit(l, &dir), TB_OK);
      uint64_t had = produced(l);
      cr_assert(had >= 3 && had < 12, "%lu of 12", (unsigned long)had);
      deliver(l);
      cr_assert_eq(l->there.batches.batches, had);
      release(&dir);
    }
    end(l);
  }
}

/* A disk that is full at times, and a program that dies at any moment: each record that was once on disk arrives once and
 * unchanged, from the program or from its successor. */
Test(spool_disk, what_a_disk_had_before_it_was_full_is_kept) {
  uint64_t full = 0, went = 0;

  for (uint64_t seed = 1; seed <= (tt_full() ? 100 : 40); seed++) {
    struct life *l = begin(seed, 64 * MIB);
    struct ta_spool_dir dir;
    char name[TA_SPOOL_DIR_NAME];
    uint64_t vouched = 0;
    l->gen = 1;
    for (uint64_t steps = below(l, 200); steps > 0; steps--) {
      if (below(l, 4) == 0) l->disk.dir.bytes_max = below(l, MIB / 4);
      if (below(l, 2) == 0) l->disk.due_ns = 0;
      step(l);
      full += l->disk.full;
      if (l->disk.on && l->spool.kept_records == l->spool.records) vouched = produced(l);
    }
    struct ta_counters last; /* losses that were not reported are forgotten with the program */
    ta_spool_counters(&l->spool, &last);
    die(l);
    if (!find_name(l, name)) {
      cr_assert_geq(l->there.reported.batches + last.lost.batches, vouched, "seed %lu",
                    (unsigned long)seed);
      went++;
    } else {
      cr_assert_eq(inherit(l, &dir), TB_OK, "seed %lu", (unsigned long)seed);
      uint64_t had = produced(l);
      cr_assert_geq(had, vouched, "seed %lu", (unsigned long)seed);
      deliver(l);
      cr_assert_geq(l->there.reported.batches, had, "seed %lu", (unsigned long)seed);
      release(&dir);
    }
    end(l);
  }
  cr_assert_gt(full, 500);
  cr_assert_gt(went, 0);
}

/* The process continued without its files, and could not even delete them. No successor may send from them. */
Test(spool_disk, files_of_the_past_are_not_sent) {
  struct life *l = begin(1, 64 * MIB);
  struct ta_spool_dir dir;
  struct tb_diag diag;

  tb_diag_clear(&diag);
  l->gen = 1;
  put(l, 3);
  ta_spool_writer_flush(&l->disk);
  die(l);
  cr_assert_eq(inherit(l, &dir), TB_OK);
  cr_assert_eq(ta_spool_resume(&l->spool, 2, &diag), TB_REFUSED, "%s", diag.text);
  cr_assert(l->spool.superseded);
  release(&dir);
  end(l);
}

/* The successor's connection breaks after more records have arrived than the program had sent. The successor must know that it
 * has sent these itself. */
Test(spool_disk, an_heir_whose_connection_breaks_goes_on) {
  struct life *l = begin(1, 64 * MIB);
  struct ta_spool_dir dir;
  struct tb_diag diag;
  uint64_t need;

  tb_diag_clear(&diag);
  l->gen = 1;
  put(l, 12);
  ta_spool_writer_flush(&l->disk);
  uint64_t had = produced(l);
  die(l);
  cr_assert_eq(inherit(l, &dir), TB_OK);
  cr_assert_eq(ta_spool_resume(&l->spool, 0, &diag), TB_OK, "%s", diag.text);
  cr_assert_gt(ta_spool_grant(&l->spool, MIB, &need), 0);
  send_granted(l, 4);
  l->wire_n = 0;
  cr_assert_eq(l->there.seq, 4);
  deliver(l);
  cr_assert_eq(l->there.batches.batches, had);
  cr_assert_not(l->spool.superseded);
  release(&dir);
  end(l);
}

/* A disk that fails for a while, or a lack of descriptors, is no reason to treat the files as sent. */
Test(spool_disk, files_that_cannot_be_read_now_are_kept) {
  struct life *l = begin(1, 64 * MIB);
  struct ta_spool_dir dir;
  char path[128], away[140], name[TA_SPOOL_DIR_NAME];

  for (l->gen = 1; l->gen <= 2; l->gen++) {
    put(l, 3);
    ta_spool_end(&l->spool);
  }
  ta_spool_writer_flush(&l->disk);
  uint64_t had = produced(l);
  cr_assert(find_name(l, name));
  die(l);
  for (int run = 1; run <= 3; run++) {
    struct ta_spool_dir_state state;
    struct tb_diag diag;
    tb_diag_clear(&diag);
    snprintf(path, sizeof path, "%s/%s/%016x", l->dir, name, run);
    snprintf(away, sizeof away, "%s.away", path);
    cr_assert(rename(path, away) == 0 && mkdir(path, 0700) == 0); /* can be opened, but not read */
    ta_spool_dir_init(&dir, open_root(l), 0);
    cr_assert_eq(ta_spool_dir_take(&dir, name, &diag, &state), TB_OK, "%s", diag.text);
    cr_assert_eq(ta_recovery_load(&dir, &state, &l->spool), TB_IO);
    ta_spool_fini(&l->spool);
    release(&dir);
    cr_assert(rmdir(path) == 0 && rename(away, path) == 0);
  }
  cr_assert_eq(inherit(l, &dir), TB_OK);
  cr_assert_eq(produced(l), had);
  deliver(l);
  release(&dir);
  end(l);
}

static atomic_bool flushed;

static void *write_on(void *self) {
  struct life *l = self;

  for (; !atomic_load(&flushed); l->gen++) {
    ta_spool_put(&l->spool, l->gen, l->noise, BATCH);
    ta_spool_end(&l->spool);
  }
  return NULL;
}

/* A disk that is slower than the trace: each flush ends, although the files never have all records. After the last flush they
 * have all. */
Test(spool_disk, a_flush_ends_where_the_writer_is_faster) {
  struct life *l = begin(1, 64 * MIB);
  struct ta_spool_dir dir;
  pthread_t thread;

  l->gen = 1;
  cr_assert_eq(pthread_create(&thread, NULL, write_on, l), 0);
  for (int rounds = 0; rounds < 5; rounds++) ta_spool_writer_flush(&l->disk);
  atomic_store(&flushed, true);
  pthread_join(thread, NULL);
  uint64_t had = produced(l);
  ta_spool_writer_end(&l->disk);
  die(l);
  cr_assert_eq(inherit(l, &dir), TB_OK);
  cr_assert_eq(produced(l), had);
  release(&dir);
  end(l);
}

/* A writer that is much faster than the disk: some runs are dropped before they have a file. */
Test(spool_disk, runs_without_a_file_are_not_looked_for) {
  struct life *l = begin(1, 64 * MIB);

  l->gen = 1;
  put(l, 3);
  ta_spool_writer_flush(&l->disk);
  uint64_t had = l->disk.dir.bytes;
  ta_spool_dir_drop(&l->disk.dir, l->disk.dir.run_id_max + 1, UINT64_MAX - 1);
  cr_assert(had > 0 && l->disk.dir.bytes == had);
  ta_spool_dir_drop(&l->disk.dir, 0, UINT64_MAX - 1);
  cr_assert_eq(l->disk.dir.bytes, 0);
  end(l);
}

/* A file was damaged, but the collector has its records already, so there is nothing to send. */
Test(spool_disk, what_the_collector_has_and_the_files_lost_is_not_asked_for) {
  struct life *l = begin(1, 64 * MIB);
  struct ta_spool_dir dir;
  struct tb_diag diag;
  char path[128], name[TA_SPOOL_DIR_NAME];

  tb_diag_clear(&diag);
  for (l->gen = 1; l->gen <= 2; l->gen++) {
    put(l, 3);
    ta_spool_end(&l->spool);
  }
  send_some(l, MIB, UINT64_MAX);
  cr_assert_gt(l->there.generations, 0);
  cr_assert(find_name(l, name));
  die(l);
  snprintf(path, sizeof path, "%s/%s/%016x", l->dir, name, 2); /* file of the first generation */
  cr_assert_eq(truncate(path, 10), 0);
  cr_assert_eq(inherit(l, &dir), TB_CORRUPT);
  cr_assert_eq(ta_spool_resume(&l->spool, l->there.seq, &diag), TB_REFUSED, "%s", diag.text);
  cr_assert(l->spool.superseded);
  release(&dir);
  end(l);
}

/* Four generations have a file each; the folder holds these files and the state. */
static struct life *begin_with_files(void) {
  struct life *l = begin(1, 64 * MIB);

  for (l->gen = 1; l->gen <= 4; l->gen++) {
    put(l, 2);
    ta_spool_end(&l->spool);
  }
  ta_spool_writer_flush(&l->disk);
  return l;
}

/* Files that were left in a folder cannot be sent, but they are not forgotten: the next program that finds the folder removes
 * it. */
Test(spool_disk, a_folder_that_is_not_listed_to_its_end_is_removed_by_the_next) {
  for (unsigned bad = 1; bad <= 5; bad++) {
    struct life *l = begin_with_files();
    struct ta_spool_dir dir;
    struct ta_spool_dir_state state;
    struct tb_diag diag;
    char name[TA_SPOOL_DIR_NAME];
    tb_diag_clear(&diag);
    bad_entry = bad;
    ta_spool_dir_remove(&l->disk.dir);
    cr_assert_eq(bad_entry, 0);
    cr_assert(find_name(l, name));
    ta_spool_dir_init(&dir, open_root(l), 0);
    cr_assert_eq(ta_spool_dir_take(&dir, name, &diag, &state), TB_CORRUPT);
    ta_spool_dir_remove(&dir);
    cr_assert_not(find_name(l, name));
    close(dir.root);
    end(l);
  }
}

/* Such a folder does not prevent new files of the same stream. */
Test(spool_disk, files_begin_anew_where_some_were_left) {
  struct life *l = begin_with_files();
  struct ta_spool_dir dir;

  bad_entry = 1;
  ta_spool_writer_begin(&l->disk, l->stream, 7); /* gives up its files */
  cr_assert_eq(bad_entry, 0);
  cr_assert(l->disk.on);
  uint64_t had = produced(l);
  die(l);
  cr_assert_eq(inherit(l, &dir), TB_OK);
  deliver(l);
  cr_assert_eq(l->there.batches.batches, had);
  release(&dir);
  end(l);
}

struct flipping {
  struct life *l;
  int dir;
  uint64_t had, flips, noticed;
};

/* Flips 20 random bits in a file, one at a time, and loads the spool each time. */
static void flip_one(void *self, const char *name) {
  struct flipping *f = self;
  struct archive before = f->l->there;
  struct ta_spool_dir dir;
  struct ta_spool_dir_state state;
  struct tb_diag diag;
  struct stat st;
  unsigned char byte;
  char folder[TA_SPOOL_DIR_NAME];
  int fd = openat(f->dir, name, O_RDWR);

  cr_assert_eq(fstat(fd, &st), 0);
  for (int i = 0; i < 20; i++, f->flips++) {
    off_t at = (off_t)below(f->l, (uint64_t)st.st_size);
    unsigned char bit = (unsigned char)(1u << below(f->l, 8));
    cr_assert_eq(pread(fd, &byte, 1, at), 1);
    byte ^= bit;
    cr_assert_eq(pwrite(fd, &byte, 1, at), 1);
    tb_diag_clear(&diag);
    cr_assert(find_name(f->l, folder));
    ta_spool_dir_init(&dir, open_root(f->l), 0);
    tb_rc rc = ta_spool_dir_take(&dir, folder, &diag, &state);
    if (rc == TB_OK) {
      rc = ta_recovery_load(&dir, &state, &f->l->spool);
      cr_assert_leq(produced(f->l), f->had);
      if (ta_spool_resume(&f->l->spool, f->l->there.seq, &diag) == TB_OK) deliver(f->l);
      ta_spool_fini(&f->l->spool);
    }
    f->noticed += rc != TB_OK;
    f->l->there = before;
    release(&dir);
    byte ^= bit;
    cr_assert_eq(pwrite(fd, &byte, 1, at), 1);
  }
  close(fd);
}

/* A flipped bit ends what can be sent, or is in bytes that are no longer used. */
Test(spool_disk, damage_is_noticed) {
  struct life *l = begin(3, 64 * MIB);
  struct flipping f = { .l = l };
  char name[TA_SPOOL_DIR_NAME], path[128];

  for (l->gen = 1; l->gen <= 4; l->gen++) {
    put(l, 2);
    ta_spool_end(&l->spool);
  }
  ta_spool_writer_flush(&l->disk);
  f.had = produced(l);
  cr_assert(find_name(l, name));
  snprintf(path, sizeof path, "%s/%s", l->dir, name);
  die(l);
  f.dir = open(path, O_RDONLY | O_DIRECTORY);
  ta_spool_dir_list(f.dir, flip_one, &f);
  close(f.dir);
  cr_assert_eq(f.flips, 6 * 20);
  cr_assert_geq(f.noticed, 5 * 20); /* the state has two copies */
  end(l);
}

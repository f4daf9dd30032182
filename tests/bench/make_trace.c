/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a whole trace of a chosen size and number of threads, for benches.
 *
 *   make_trace FILE MB THREADS
 *
 * Writes generations of at most 20 MB. Each thread stops and starts a goroutine of its own, as often as a trace can
 * express: 6 bytes an event. All threads do so at the same time, so that each event in order is another thread's. */
#include <stdio.h>
#include <stdlib.h>

#include "wire/write.h"

enum { STACKS = 2000, GENERATION_MB = 20, VERSION = 26 };

struct maker {
  FILE *file;
  struct tw_write w;
  unsigned char room[TW_WRITE_ROOM];
  uint64_t gen, bytes;
};

static void fail(const char *what) {
  fprintf(stderr, "make_trace: %s\n", what);
  exit(1);
}

static void begin_batch(struct maker *m, int64_t thread, uint64_t time) {
  struct tw_batch batch = { .gen = m->gen, .thread = thread, .time = time };
  tw_write_open(&m->w, m->room, sizeof m->room, VERSION, &batch);
}

static void end_batch(struct maker *m) {
  size_t n = tw_write_close(&m->w);

  if (fwrite(m->room, 1, n, m->file) != n) fail("cannot write");
  m->bytes += n;
}

static void write_tables(struct maker *m, uint64_t time) {
  const struct tw_clocks clocks = { 1000000000, time, time, 1700000000, time % 1000000000 };

  begin_batch(m, -1, time);
  if (tw_write_sync(&m->w, &clocks) != TB_OK) fail("no sync");
  end_batch(m);
  begin_batch(m, -1, time);
  if (tw_write_string(&m->w, 1, "preempted", 9) != TB_OK) fail("no string");
  end_batch(m);
  begin_batch(m, -1, time);
  for (uint64_t id = 1; id <= STACKS; id++) {
    struct tw_frame frames[8];
    for (uint64_t i = 0; i < 8; i++) frames[i] = (struct tw_frame){ 4096 + id * 8 + i, 1, 1, i };
    if (tw_write_stack(&m->w, id, frames, 8) == TB_OK) continue;
    end_batch(m);
    begin_batch(m, -1, time);
    id--;
  }
  end_batch(m);
}

/* Writes one thread's events of a generation; returns the time of the last event. */
static uint64_t write_thread(struct maker *m, uint64_t thread, uint64_t time, uint64_t bytes_max) {
  uint64_t until = m->bytes + bytes_max, seq = 0, g = thread + 1;
  const uint64_t proc[] = { thread, TW_PROC_RUNNING }, status[] = { g, thread, TW_GO_RUNNING };

  begin_batch(m, (int64_t)thread, time);
  if (tw_write_event(&m->w, TW_EV_PROC_STATUS, time, proc) != TB_OK ||
      tw_write_event(&m->w, TW_EV_GO_STATUS, time, status) != TB_OK)
    fail("no status");
  for (bool stop = true; m->bytes + (uint64_t)(m->w.pos - m->w.room) < until || !stop;
       stop = !stop) {
    const uint64_t stopped[] = { 1, 1 + seq % STACKS }, started[] = { g, seq + 1 };
    time += 40;
    tb_rc rc = tw_write_event(&m->w, stop ? TW_EV_GO_STOP : TW_EV_GO_START, time,
                              stop ? stopped : started);
    if (rc == TB_AGAIN) {
      end_batch(m);
      begin_batch(m, (int64_t)thread, time);
      rc = tw_write_event(&m->w, stop ? TW_EV_GO_STOP : TW_EV_GO_START, time,
                          stop ? stopped : started);
    }
    if (rc != TB_OK) fail("no event");
    seq += !stop;
  }
  end_batch(m);
  return time;
}

static void make(const char *path, uint64_t mb, uint64_t threads) {
  static struct maker m;
  unsigned char header[TW_HEADER_BYTES];
  uint64_t time = 1000000;

  uint64_t generation_bytes = (mb < GENERATION_MB ? mb : GENERATION_MB) * 1000000;
  m.file = fopen(path, "wb");
  if (m.file == NULL) fail("cannot write");
  tw_header_write(header, VERSION);
  fwrite(header, 1, sizeof header, m.file);
  for (m.gen = 1; m.bytes < mb * 1000000; m.gen++) {
    uint64_t last = time;
    write_tables(&m, time);
    for (uint64_t t = 0; t < threads; t++) {
      uint64_t end = write_thread(&m, t, time + t, generation_bytes / threads);
      if (end > last) last = end;
    }
    putc(TW_EV_END_OF_GENERATION, m.file);
    m.bytes++;
    time = last + 1000;
  }
  if (fclose(m.file) != 0) fail("cannot write");
}

int main(int argc, char **argv) {
  uint64_t mb = argc == 4 ? strtoull(argv[2], NULL, 10) : 0;
  uint64_t threads = argc == 4 ? strtoull(argv[3], NULL, 10) : 0;

  if (mb == 0 || threads == 0) fail("usage: make_trace FILE MB THREADS");
  make(argv[1], mb, threads);
  return 0;
}

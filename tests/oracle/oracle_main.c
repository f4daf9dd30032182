/* SPDX-License-Identifier: Apache-2.0 */
/* Mutants of small real traces, read by us and by Go's own reader beside us: verdict, number of events
 * and a hash over the whole event sequence must be equal.
 *
 *   oracle_compare ORACLE COUNT SEED PACK [--keep DIR]
 *
 * ORACLE is the program made by build.sh, PACK a file of traces (tests/fuzz/pack.h) made by seeds.sh. Prints a line for each
 * difference (the mutant is kept in DIR as diff-SEED.trace), then the number of mutants by verdict, and at the end
 * "N equal, M different". Exit 1: there was a difference. A mutant depends on its own seed alone: SEED + index. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fuzz/pack.h"
#include "online/event/generation.h"
#include "online/trace/reader.h"
#include "oracle/mutate.h"
#include "wire/spec.h"

enum { ROUND = 64, SEEDS_MAX = 64 };
enum verdict { WHOLE, BROKEN, PANICKED, REFUSED };

struct answer {
  uint64_t verdict, events, hash;
};

static uint64_t mix(uint64_t h, uint64_t w) {
  h = (h ^ w) * UINT64_C(0x9E3779B97F4A7C15);
  return h ^ h >> 29;
}

/* Returns how many arguments of an ordered event have a meaning: see online/event/event.h. */
static unsigned meaningful_args(unsigned type) {
  switch (type) {
  case TW_EV_SYNC:
  case TW_EV_CPU_SAMPLE: return 1;
  case TW_EV_PROC_STATUS: return 3;
  case TW_EV_PROC_STEAL:
  case TW_EV_USER_TASK_END: return 4;
  default: return tw_specs[type].nargs;
  }
}

static tb_rc hash_events(void *self, const struct to_generation *gen, const struct to_event *events,
                         size_t n) {
  struct answer *answer = self;
  (void)gen;

  for (const struct to_event *ev = events; ev < events + n; ev++) {
    uint64_t h = mix(answer->hash, ev->type == TW_EV_SYNC ? 255 : ev->type);
    h = mix(h, (uint64_t)ev->time);
    h = mix(h, (uint64_t)ev->m);
    h = mix(h, (uint64_t)ev->p);
    h = mix(h, (uint64_t)ev->g);
    unsigned nargs = meaningful_args(ev->type);
    for (unsigned i = 0; i < nargs; i++) h = mix(h, ev->args[i]);
    answer->hash = h;
    answer->events++;
  }
  return TB_OK;
}

/* Feeds one mutant in eight in small pieces, which must not change the result. */
static tb_rc read_trace(struct to_reader *reader, const unsigned char *data, size_t len,
                        struct tt_rng *rng) {
  bool chunked = tt_below(rng, 8) == 0;

  while (len > 0) {
    size_t n = chunked ? 1 + tt_below(rng, 200) : len;
    if (n > len) n = len;
    TB_TRY(to_reader_push(reader, data, n));
    data += n;
    len -= n;
  }
  return to_reader_end(reader);
}

static struct answer our_answer(const unsigned char *data, size_t len, uint64_t seed, char *why,
                                size_t why_bytes) {
  struct answer answer = { 0 };
  struct to_event_sink sink = { &answer, hash_events };
  struct tt_rng rng = { seed };
  struct to_reader *reader = NULL;
  struct tb_diag diag;
  struct tb_mem mem;

  tb_mem_init(&mem, tb_mem_libc, NULL, 256 << 20);
  tb_diag_clear(&diag);
  struct to_limits limits = { .fuel_tries = UINT64_C(1) << 40 }; /* Go has no such limit */
  /* The storage of the bytes and the choice of instructions must not change the result either. */
  unsigned flags = (unsigned)tt_below(&rng, 2) * TO_READER_BYTES_STAY |
                   (unsigned)tt_below(&rng, 2) * TO_READER_PLAIN;
  if (to_reader_new(&mem, &limits, flags, sink, &diag, &reader) != TB_OK) abort();
  tb_rc rc = read_trace(reader, data, len, &rng);
  answer.verdict = rc == TB_OK ? WHOLE : to_reader_version(reader) == 0 ? REFUSED : BROKEN;
  if (rc != TB_OK && rc != TB_BROKEN && rc != TB_UNSUPPORTED) answer.verdict = 100 + rc;
  if (answer.verdict == REFUSED) answer.events = answer.hash = 0;
  tb_diag_format(&diag, why, why_bytes);
  to_reader_free(reader);
  if (mem.bytes != 0) {
    fprintf(stderr, "seed %" PRIu64 ": %zu bytes not given back\n", seed, mem.bytes);
    exit(1);
  }
  return answer;
}

static void write_all(int fd, const void *bytes, size_t n) {
  const char *p = bytes;
  while (n > 0) {
    ssize_t put = write(fd, p, n);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) {
      perror("oracle_compare: writing to the oracle");
      exit(1);
    }
    p += put;
    n -= (size_t)put;
  }
}

static void read_all(int fd, void *bytes, size_t n) {
  char *p = bytes;
  while (n > 0) {
    ssize_t got = read(fd, p, n);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      fprintf(stderr, "oracle_compare: the oracle ended\n");
      exit(1);
    }
    p += got;
    n -= (size_t)got;
  }
}

static pid_t start_oracle(const char *path, int *to, int *from) {
  int in[2], out[2];

  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) {
    perror("oracle_compare: pipe");
    exit(1);
  }
  pid_t pid = fork();
  if (pid == 0) {
    dup2(in[0], 0);
    dup2(out[1], 1);
    execl(path, path, (char *)NULL);
    perror(path);
    _exit(127);
  }
  close(in[0]);
  close(out[1]);
  *to = in[1];
  *from = out[0];
  return pid;
}

static void keep_mutant(const char *dir, uint64_t seed, const unsigned char *data, size_t len) {
  char path[4096];
  if (dir == NULL) return;
  snprintf(path, sizeof path, "%s/diff-%" PRIu64 ".trace", dir, seed);
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (fd < 0) {
    perror(path);
    return;
  }
  write_all(fd, data, len);
  close(fd);
}

static size_t load_seeds(const char *path, struct tt_pack *pack, struct tt_seed *seeds) {
  if (!tt_pack_load(path, pack)) exit(2);
  size_t n = pack->n < SEEDS_MAX ? pack->n : SEEDS_MAX;

  for (size_t i = 0; i < n; i++)
    seeds[i] = (struct tt_seed){ path, pack->input[i].data, pack->input[i].len };
  return n;
}

int main(int argc, char **argv) {
  static unsigned char mutants[ROUND][TT_MUTANT_BYTES_MAX];
  size_t lens[ROUND];
  struct tt_seed seeds[SEEDS_MAX];
  struct tt_pack pack;
  bool keeps = argc == 7 && strcmp(argv[5], "--keep") == 0;
  int to, from;

  if (argc != 5 && !keeps) {
    fprintf(stderr, "usage: oracle_compare ORACLE COUNT SEED PACK [--keep DIR]\n");
    return 2;
  }
  const char *keep = keeps ? argv[6] : NULL;
  uint64_t count = strtoull(argv[2], NULL, 10), seed = strtoull(argv[3], NULL, 10), equal = 0,
           different = 0, verdicts[REFUSED + 1] = { 0 };
  size_t nseeds = load_seeds(argv[4], &pack, seeds);
  signal(SIGPIPE, SIG_IGN);
  pid_t pid = start_oracle(argv[1], &to, &from);

  for (uint64_t done = 0; done < count;) {
    size_t n = count - done < ROUND ? (size_t)(count - done) : ROUND;
    for (size_t i = 0; i < n; i++) {
      struct tt_rng rng = { seed + done + i };
      lens[i] = tt_mutate(&rng, seeds, nseeds, mutants[i]);
      uint32_t len = (uint32_t)lens[i];
      write_all(to, &len, sizeof len);
      write_all(to, mutants[i], lens[i]);
    }
    for (size_t i = 0; i < n; i++) {
      char why[300] = "";
      struct answer theirs,
          ours = our_answer(mutants[i], lens[i], seed + done + i, why, sizeof why);
      read_all(from, &theirs, sizeof theirs);
      if (theirs.verdict <= REFUSED) verdicts[theirs.verdict]++;
      if (memcmp(&ours, &theirs, sizeof ours) == 0) {
        equal++;
        continue;
      }
      different++;
      printf("seed %" PRIu64 ": we say %" PRIu64 " after %" PRIu64 " events, Go %" PRIu64
             " after %" PRIu64 "; %s\n",
             seed + done + i, ours.verdict, ours.events, theirs.verdict, theirs.events, why);
      keep_mutant(keep, seed + done + i, mutants[i], lens[i]);
    }
    done += n;
  }
  close(to);
  waitpid(pid, NULL, 0);
  tt_pack_free(&pack);
  printf("Go: %" PRIu64 " whole, %" PRIu64 " broken, %" PRIu64 " refused, %" PRIu64 " panics\n",
         verdicts[WHOLE], verdicts[BROKEN], verdicts[REFUSED], verdicts[PANICKED]);
  printf("%" PRIu64 " equal, %" PRIu64 " different\n", equal, different);
  return different == 0 ? 0 : 1;
}

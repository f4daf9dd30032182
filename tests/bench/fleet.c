/* SPDX-License-Identifier: Apache-2.0 */
/* fleet SERVER CERTS TRACE [OPTION VALUE]...: runs many programs that each send a generation now and then, with the
 * real agent library, as processes of many streams each.
 *
 *     streams N       (100) in all
 *     processes N     (4)
 *     seconds N       (20) of load; then all streams end and wait for their acks
 *     period_ms N     (1000) between two generations of a stream
 *     lives N         (0) generations until a stream ends and another comes in its place; 0: all the trace has
 *     leave_percent N (0) of the streams, each minute, leave as well, and others join in their place
 *     leave_least N   (0) the load goes on until so many have left, on a machine that is slow
 *     kill_s N        (0) seconds between two kills of a process and its successor; 0: none. None is killed before all
 *                     processes have begun their streams
 *     spool DIR       where a process has its spool on disk, DIR/NUMBER, which its successor takes over; default: none
 *     curve_s N       (0) length of a day: at its begin all streams write, at its noon a third of them; 0: always all
 *     books FILE      what each stream wrote and was acked goes there (books.h), for check_books.py
 *
 * A stream starts at a random generation, since a trace may begin at any, and at a random moment within the period. Ack
 * times are measured for each PROBE_EVERYth stream: from the moment its generation is written until all of it is acked,
 * checked each millisecond. Prints NAME<TAB>VALUE lines. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "books.h"
#include "traceagent.h"
#include "wire/split.h"

enum {
  PROBE_EVERY = 16,
  ACK_MS_MAX = 60000,
  SPOOL_BYTES = 2 << 20,
  PROCESSES_MAX = 64,
  CLOSE_MS = 60000,
  LOOK_MS =
      100, /* between two looks at a stream that leaves: there are thousands while a collector is away */
};

static const uint64_t MS = 1000000, S = 1000000000;

struct options {
  uint64_t streams, processes, seconds, period_ms, lives, leave_percent, leave_least, kill_s,
      curve_s;
  const char *spool, *books; /* NULL: none */
};

/* Shared by all processes. */
struct figures {
  atomic_ullong written_gens, written_bytes, skipped_gens;
  atomic_ullong acked_gens, lost_gens, unacked_streams, streams_opened, streams_left, kills,
      processes_begun;
  atomic_ullong acks[ACK_MS_MAX + 1];
  atomic_ullong cpu_ns;
};

struct piece {
  const unsigned char *bytes;
  size_t n;
};

struct trace {
  unsigned char *bytes;
  size_t header_bytes, ngens;
  struct piece *gens;
};

/* A stream that wrote its last bytes and waits for its acks. */
struct leaver {
  ta_forward *forward;
  struct book *book;
  uint64_t look_ns, deadline_ns;
};

struct stream {
  ta_forward *forward;
  struct book *book;
  unsigned number, lives;
  size_t at, left;     /* the next generation; how many remain */
  uint64_t due_ns;     /* time of the next generation */
  uint64_t written_ns; /* time of the generation whose ack is awaited; 0: none */
  uint64_t written_bytes, probe_bytes;
};

struct fleet {
  const char *server, *certs;
  struct options options;
  struct trace trace;
  struct figures *figures;
  struct books *books;
  struct stream *streams; /* of this process */
  size_t n;
  struct leaver *leavers;
  size_t nleavers, leavers_cap;
  unsigned process;
  char spool[512]; /* of this process; "": none */
  unsigned chance; /* of the next stream to leave */
  uint64_t began_ns;
};

static _Noreturn void fail(const char *what, const char *why) {
  fprintf(stderr, "fleet: %s: %s\n", what, why);
  exit(1);
}

static uint64_t now_ns(void) {
  struct timespec now;

  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * S + (uint64_t)now.tv_nsec;
}

/* ---- the trace, by generations */

static size_t read_file(const char *path, unsigned char **out) {
  FILE *file = fopen(path, "rb");

  if (file == NULL || fseek(file, 0, SEEK_END) != 0) fail(path, "cannot be read");
  size_t n = (size_t)ftell(file);
  rewind(file);
  *out = malloc(n);
  if (*out == NULL || fread(*out, 1, n, file) != n) fail(path, "cannot be read");
  fclose(file);
  return n;
}

static void add_generation(struct trace *trace, const unsigned char *begin) {
  trace->gens = realloc(trace->gens, (trace->ngens + 1) * sizeof *trace->gens);
  if (trace->gens == NULL) fail("trace", "no memory");
  trace->gens[trace->ngens++] = (struct piece){ .bytes = begin };
}

static void read_trace(struct trace *trace, const char *path) {
  size_t n = read_file(path, &trace->bytes), at = 0, used;
  uint64_t gen = 0;
  struct tb_mem mem;
  struct tw_split split;
  struct tw_item item;

  tb_mem_init(&mem, tb_mem_libc, NULL, 1 << 20);
  tw_split_init(&split, &mem);
  while (at < n && tw_split_feed(&split, trace->bytes + at, n - at, &used, &item) == TB_OK) {
    const unsigned char *begin = trace->bytes + at;
    at += used;
    if (item.kind == TW_ITEM_RAW) fail(path, split.fault.text);
    if (item.kind == TW_ITEM_HEADER) {
      trace->header_bytes = item.len;
      continue;
    }
    if (item.kind == TW_ITEM_BATCH && item.batch.gen != gen) {
      gen = item.batch.gen;
      add_generation(trace, begin);
    }
    if (trace->ngens == 0) fail(path, "does not begin with a batch");
    trace->gens[trace->ngens - 1].n += item.len;
  }
  tw_split_fini(&split);
  if (trace->ngens < 3) fail(path, "has fewer than three generations");
  trace->ngens--; /* the last one was cut short by the program's end */
}

/* ---- streams */

static struct ta_forward_status look_at(ta_forward *forward, struct book *book) {
  struct ta_forward_status status = { .size = sizeof status };

  if (ta_forward_status(forward, &status) != TA_OK) fail("status", "off");
  book_note(book, &status);
  return status;
}

static void begin_stream(struct fleet *fleet, struct stream *stream) {
  const struct trace *trace = &fleet->trace;
  char service[32], instance[48];

  snprintf(service, sizeof service, "service-%u", stream->number % 50);
  snprintf(instance, sizeof instance, "host-%u:%d", stream->number, (int)getpid());
  struct ta_forward_config config = { .size = sizeof config,
                                      .server = fleet->server,
                                      .certs = fleet->certs,
                                      .service = service,
                                      .instance = instance,
                                      .spool_bytes = SPOOL_BYTES,
                                      .spool_dir = fleet->spool[0] != '\0' ? fleet->spool : NULL };
  int error = ta_forward_open(&config, &stream->forward);
  if (error != TA_OK) fail("open", ta_strerror(error));
  stream->at = (stream->number * 7919u + stream->lives * 31u) % (trace->ngens / 2 + 1);
  stream->left = trace->ngens - stream->at;
  if (fleet->options.lives != 0 && stream->left > fleet->options.lives)
    stream->left = fleet->options.lives;
  stream->lives++;
  stream->book = books_open(fleet->books);
  if (stream->book == NULL) fail("books", strerror(errno));
  stream->written_ns = stream->written_bytes = 0;
  atomic_fetch_add(&fleet->figures->streams_opened, 1);
  look_at(stream->forward, stream->book);
  ta_forward_write(stream->forward, trace->bytes, trace->header_bytes);
}

/* Returns true if all is acked, including the data that a killed process left in the folder. */
static bool has_ended(ta_forward *forward, struct book *book) {
  return ta_forward_sync(forward, 0) == TA_OK && look_at(forward, book).old_streams == 0;
}

static void close_leaver(struct fleet *fleet, struct leaver *leaver, bool ended) {
  struct ta_forward_status status = look_at(leaver->forward, leaver->book);

  leaver->book->ended = ended;
  if (!ended) atomic_fetch_add(&fleet->figures->unacked_streams, 1);
  atomic_fetch_add(&fleet->figures->acked_gens, status.acked_generations);
  atomic_fetch_add(&fleet->figures->lost_gens, status.lost_generations);
  ta_forward_close(leaver->forward, 0);
}

/* Stops writing the stream; its process goes on. */
static void leave(struct fleet *fleet, struct stream *stream) {
  if (fleet->nleavers == fleet->leavers_cap) {
    fleet->leavers_cap = fleet->leavers_cap * 2 + 16;
    fleet->leavers = realloc(fleet->leavers, fleet->leavers_cap * sizeof *fleet->leavers);
    if (fleet->leavers == NULL) fail("streams", "no memory");
  }
  ta_forward_finish(stream->forward);
  fleet->leavers[fleet->nleavers++] =
      (struct leaver){ stream->forward, stream->book, 0, now_ns() + CLOSE_MS * MS };
  stream->forward = NULL;
}

static void look_after_leavers(struct fleet *fleet, uint64_t now) {
  for (size_t i = fleet->nleavers; i-- > 0;) {
    struct leaver *leaver = &fleet->leavers[i];
    if (now < leaver->look_ns) continue;
    leaver->look_ns = now + LOOK_MS * MS;
    bool ended = has_ended(leaver->forward, leaver->book);
    if (!ended && now < leaver->deadline_ns) continue;
    close_leaver(fleet, leaver, ended);
    *leaver = fleet->leavers[--fleet->nleavers];
  }
}

static void replace(struct fleet *fleet, struct stream *stream) {
  leave(fleet, stream);
  begin_stream(fleet, stream);
}

/* Returns whether the stream writes now; a share of the streams is quiet around noon. */
static bool is_awake(const struct fleet *fleet, const struct stream *stream, uint64_t now) {
  uint64_t day = fleet->options.curve_s * S;

  if (day == 0) return true;
  uint64_t of_day = (now - fleet->began_ns) % day;
  uint64_t from_midnight = of_day < day / 2 ? of_day : day - of_day;
  uint64_t awake = 100 - 67 * from_midnight / (day / 2);
  return stream->number * 37 % 100 < awake;
}

static void write_generation(struct fleet *fleet, struct stream *stream, uint64_t now) {
  const struct piece *piece = &fleet->trace.gens[stream->at];

  stream->due_ns += fleet->options.period_ms * MS;
  if (stream->due_ns + S < now) { /* the machine is too slow: skip what is overdue */
    atomic_fetch_add(&fleet->figures->skipped_gens, 1);
    stream->due_ns = now;
  }
  if (!is_awake(fleet, stream, now)) return;
  look_at(stream->forward, stream->book); /* before it: what a spool on disk has for sure */
  ta_forward_write(stream->forward, piece->bytes, piece->n);
  stream->written_bytes += piece->n;
  if (stream->written_ns == 0) {
    stream->written_ns = now;
    stream->probe_bytes = stream->written_bytes;
  }
  atomic_fetch_add(&fleet->figures->written_gens, 1);
  atomic_fetch_add(&fleet->figures->written_bytes, piece->n);
  stream->at++;
  if (--stream->left == 0) replace(fleet, stream);
}

/* Lets as many streams leave as are due since the process began at `from_ns`; *gone counts those
 * that left. */
static void let_leave(struct fleet *fleet, uint64_t from_ns, uint64_t now, uint64_t *gone) {
  uint64_t due = fleet->n * fleet->options.leave_percent * ((now - from_ns) / MS) / (100 * 60000);

  for (; *gone < due; ++*gone) {
    fleet->chance = fleet->chance * 1103515245u + 12345u;
    replace(fleet, &fleet->streams[(fleet->chance >> 16) % fleet->n]);
    atomic_fetch_add(&fleet->figures->streams_left, 1);
  }
}

static void probe(struct fleet *fleet, struct stream *stream, uint64_t now) {
  if (stream->written_ns == 0) return;
  struct ta_forward_status status = look_at(stream->forward, stream->book);
  if (status.acked_bytes + status.lost_bytes < stream->probe_bytes) return;
  uint64_t ms = (now - stream->written_ns) / MS;
  atomic_fetch_add(&fleet->figures->acks[ms < ACK_MS_MAX ? ms : ACK_MS_MAX], 1);
  stream->written_ns = 0;
}

/* ---- a process */

static int by_due(const void *a, const void *b) {
  uint64_t x = ((const struct stream *)a)->due_ns, y = ((const struct stream *)b)->due_ns;

  return (x > y) - (x < y);
}

static void begin_all(struct fleet *fleet) {
  uint64_t period = fleet->options.period_ms * MS, now = now_ns();

  fleet->streams = calloc(fleet->n + 1, sizeof *fleet->streams);
  if (fleet->streams == NULL) fail("streams", "no memory");
  for (size_t i = 0; i < fleet->n; i++) {
    struct stream *stream = &fleet->streams[i];
    stream->number = (unsigned)(fleet->process + i * fleet->options.processes);
    stream->due_ns = now + period + stream->number * UINT64_C(2654435761) % period;
    begin_stream(fleet, stream);
  }
  qsort(fleet->streams, fleet->n, sizeof *fleet->streams, by_due);
}

/* Runs the streams in turn: they have the same period. */
static void run_process(struct fleet *fleet) {
  uint64_t end_ns = fleet->began_ns + fleet->options.seconds * S;
  uint64_t from_ns = now_ns(), gone = 0;
  size_t next = 0;
  struct rusage use;

  begin_all(fleet);
  atomic_fetch_add(&fleet->figures->processes_begun, 1);
  for (uint64_t now;
       (now = now_ns()) < end_ns || fleet->figures->streams_left < fleet->options.leave_least;) {
    for (size_t n = 0; n < fleet->n && fleet->streams[next].due_ns <= now; n++) {
      write_generation(fleet, &fleet->streams[next], now);
      next = (next + 1) % fleet->n;
    }
    for (size_t i = 0; i < fleet->n; i += PROBE_EVERY) probe(fleet, &fleet->streams[i], now);
    let_leave(fleet, from_ns, now, &gone);
    look_after_leavers(fleet, now);
    poll(NULL, 0, 1);
  }
  for (size_t i = 0; i < fleet->n; i++) leave(fleet, &fleet->streams[i]);
  for (; fleet->nleavers > 0; poll(NULL, 0, 1)) look_after_leavers(fleet, now_ns());
  getrusage(RUSAGE_SELF, &use);
  atomic_fetch_add(&fleet->figures->cpu_ns,
                   (uint64_t)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * S +
                       (uint64_t)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1000);
}

static pid_t fork_process(struct fleet *fleet, unsigned process) {
  pid_t pid = fork();

  if (pid < 0) fail("fork", strerror(errno));
  if (pid > 0) return pid;
  uint64_t all = fleet->options.streams, of = fleet->options.processes;
  fleet->process = process;
  fleet->chance = process + (unsigned)getpid();
  if (fleet->options.spool != NULL)
    snprintf(fleet->spool, sizeof fleet->spool, "%s/%u", fleet->options.spool, process);
  fleet->n = (size_t)((all - process + of - 1) / of);
  run_process(fleet);
  exit(0);
}

/* ---- all */

static void run_fleet(struct fleet *fleet) {
  pid_t pids[PROCESSES_MAX];
  unsigned of = (unsigned)fleet->options.processes;
  uint64_t kill_ns = fleet->options.kill_s * S, end_ns;
  int failed = 0, status;

  fleet->began_ns = now_ns();
  end_ns = fleet->began_ns + fleet->options.seconds * S;
  for (unsigned i = 0; i < of; i++) pids[i] = fork_process(fleet, i);
  for (uint64_t n = 1; kill_ns != 0 && fleet->began_ns + n * kill_ns < end_ns; n++) {
    while (now_ns() < fleet->began_ns + n * kill_ns || fleet->figures->processes_begun < of + n - 1)
      poll(NULL, 0, 10);
    kill(pids[n % of], SIGKILL);
    waitpid(pids[n % of], &status, 0);
    atomic_fetch_add(&fleet->figures->kills, 1);
    pids[n % of] = fork_process(fleet, (unsigned)(n % of));
  }
  for (unsigned i = 0; i < of; i++)
    if (waitpid(pids[i], &status, 0) != pids[i] || status != 0) failed++;
  if (failed > 0) fail("processes", "some did not end well");
}

static uint64_t quantile(const struct figures *figures, double q) {
  uint64_t all = 0, sum = 0;

  for (unsigned ms = 0; ms <= ACK_MS_MAX; ms++) all += figures->acks[ms];
  for (unsigned ms = 0; ms <= ACK_MS_MAX; ms++) {
    sum += figures->acks[ms];
    if (all > 0 && (double)sum >= q * (double)all) return ms;
  }
  return 0;
}

static void print(const struct figures *figures, double seconds) {
  printf("seconds\t%.2f\n", seconds);
  printf("streams_opened\t%llu\n", (unsigned long long)figures->streams_opened);
  printf("streams_left\t%llu\n", (unsigned long long)figures->streams_left);
  printf("kills\t%llu\n", (unsigned long long)figures->kills);
  printf("written_generations\t%llu\n", (unsigned long long)figures->written_gens);
  printf("written_bytes\t%llu\n", (unsigned long long)figures->written_bytes);
  printf("late_generations\t%llu\n", (unsigned long long)figures->skipped_gens);
  printf("acked_generations\t%llu\n", (unsigned long long)figures->acked_gens);
  printf("lost_generations\t%llu\n", (unsigned long long)figures->lost_gens);
  printf("unacked_streams\t%llu\n", (unsigned long long)figures->unacked_streams);
  printf("ack_p50_ms\t%llu\n", (unsigned long long)quantile(figures, 0.5));
  printf("ack_p99_ms\t%llu\n", (unsigned long long)quantile(figures, 0.99));
  printf("ack_max_ms\t%llu\n", (unsigned long long)quantile(figures, 1));
  printf("agents_cpu_s\t%.2f\n", (double)figures->cpu_ns / 1e9);
}

static void take_option(struct options *options, const char *name, const char *value) {
  const struct {
    const char *name;
    uint64_t *place;
  } all[] = { { "streams", &options->streams },
              { "processes", &options->processes },
              { "seconds", &options->seconds },
              { "period_ms", &options->period_ms },
              { "lives", &options->lives },
              { "leave_percent", &options->leave_percent },
              { "leave_least", &options->leave_least },
              { "kill_s", &options->kill_s },
              { "curve_s", &options->curve_s } };

  if (strcmp(name, "spool") == 0) options->spool = value;
  if (strcmp(name, "books") == 0) options->books = value;
  if (strcmp(name, "spool") == 0 || strcmp(name, "books") == 0) return;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (strcmp(name, all[i].name) == 0) {
      *all[i].place = strtoull(value, NULL, 10);
      return;
    }
  fail(name, "no such option");
}

int main(int argc, char **argv) {
  struct fleet fleet = { .options = {
                             .streams = 100, .processes = 4, .seconds = 20, .period_ms = 1000 } };

  if (argc < 4 || argc % 2 != 0) fail("usage", "fleet SERVER CERTS TRACE [OPTION VALUE]...");
  for (int i = 4; i + 1 < argc; i += 2) take_option(&fleet.options, argv[i], argv[i + 1]);
  if (fleet.options.processes == 0 || fleet.options.processes > PROCESSES_MAX)
    fail("processes", "1 to 64");
  if (fleet.options.streams < fleet.options.processes || fleet.options.period_ms == 0)
    fail("streams", "fewer than processes, or no period");
  fleet.server = argv[1];
  fleet.certs = argv[2];
  read_trace(&fleet.trace, argv[3]);
  fleet.figures =
      mmap(NULL, sizeof *fleet.figures, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (fleet.figures == MAP_FAILED) fail("mmap", strerror(errno));
  fleet.books = books_new();
  if (fleet.books == NULL) fail("mmap", strerror(errno));
  if (fleet.options.spool != NULL && mkdir(fleet.options.spool, 0700) != 0 && errno != EEXIST)
    fail(fleet.options.spool, strerror(errno));
  run_fleet(&fleet);
  if (fleet.options.books != NULL && !books_write(fleet.books, fleet.options.books))
    fail(fleet.options.books, strerror(errno));
  print(fleet.figures, (double)(now_ns() - fleet.began_ns) / 1e9);
  return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Random lives (docs/RELIABILITY.md, row 4).
 *
 *     sim_seeds [--from SEED] [--count N] [--jobs N]
 *
 * A seed is one life of a minute or more of the store on a simulated machine. Its agents write frames, which arrive
 * late and in pieces; they lose their connections in the middle of a frame, reconnect beside what is still on its way,
 * stall, and are half open. The machine loses its power, or the store is killed or stopped, in the middle of any call
 * that changes the disk, those of recovery and of the stop included. Calls fail (reads, listings and stat calls, too);
 * syncs fail and lie; allocations fail; the wall clock jumps. In a third of the lives retention deletes what has no
 * room; in a third the store soon gives up open generations, and the agent goes on with them or gives them up as well.
 * Then all goes well for a while, and everything that was ever acked must be in the archive, once, or have expired, or
 * be reported as lost, once. The same seed is the same life: each sixteenth is run twice, and must result in the same
 * archive by the same number of calls.
 *
 * --jobs N: processes that share the seeds. */
#include <inttypes.h>
#include <malloc.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "archive/state_dir.h"
#include "sim/jobs.h"
#include "sim/oracle.h"
#include "sim/wire.h"
#include "sim/world.h"

enum { RECORDS = 60, FAULTS_MIN = 20, TWICE_ONCE_IN = 16, STARTS_MAX = 200 };

static const uint64_t MS = 1000000, SECOND = 1000000000, LIFE_NS = UINT64_C(60000000000),
                      JUMPS_NS[] = { UINT64_C(60000000000), UINT64_C(86400000000000),
                                     UINT64_C(1577880000000000000) }; /* the last is 50 years */

struct life {
  uint64_t seed;
  struct sim_chance chance;
  struct sim_world world;
  struct sim_agents agents;
  struct tc_config config;
  struct sim_script scripts[SIM_STREAMS];
  struct sim_disk *left;        /* what the last power cut left */
  uint64_t cut_in;              /* boundaries until the next cut; 0: none planned */
  uint64_t failing;             /* some of the next so many calls fail */
  unsigned failed_reads;        /* in a row */
  uint64_t short_in, short_for; /* allocations until a shortage, and its length */
  bool short_own;               /* count only the store's own allocations */
  bool rots;                    /* flip bits in open/ while the power is off */
  uint64_t cuts, failures, shortages, jumps, calls; /* totals of this life */
  struct sim_whole whole;                           /* at its end */
  uint64_t rotten;                                  /* open files with a flipped bit */
};

static void say_where(void *self) {
  const struct life *life = self;

  fprintf(stderr,
          "  after %" PRIu64 " power cuts, %" PRIu64 " failed calls, %" PRIu64
          " failed allocations, %" PRIu64 " jumps; again: sim_seeds --from %" PRIu64
          " --count 1, commit %s\n",
          life->cuts, life->failures, life->shortages, life->jumps, life->seed, TC_COMMIT);
}

/* ---- faults */

static void at_boundary(void *self, const char *call) {
  struct life *life = self;

  (void)call;
  if (life->cut_in == 0 || --life->cut_in > 0) return;
  life->left =
      sim_disk_crash(life->world.disk, (unsigned)sim_below(&life->chance, 12), &life->chance);
  life->agents.dead =
      true; /* it runs on with a disk that is discarded, and its replies are ignored */
  life->world.boundary = NULL;
  life->world.fault = NULL;
  life->world.no_memory = NULL;
  life->cuts++;
}

static enum sim_fault fail_some(void *self, const char *call) {
  static const enum sim_fault faults[] = { SIM_EIO, SIM_ENOSPC, SIM_EINTR, SIM_SHORT };
  struct life *life = self;

  bool is_read = strcmp(call, "read") == 0;
  if (life->failing == 0) return SIM_NO_FAULT;
  life->failing--;
  bool fails = sim_once_in(&life->chance, 6);
  /* Loss by the disk is tested elsewhere (store_order): here each read succeeds at last. */
  if (is_read && (!fails || life->failed_reads == TC_READ_TRIES - 1)) {
    life->failed_reads = 0;
    return SIM_NO_FAULT;
  }
  if (!fails) return SIM_NO_FAULT;
  life->failures++;
  life->failed_reads += is_read;
  return faults[sim_below(&life->chance, 4)];
}

static bool find_no_memory(void *self, bool own) {
  struct life *life = self;

  if (life->short_own && !own) return false; /* SQLite asks for nine of ten */
  if (life->short_in > 0) {
    life->short_in--;
    return false;
  }
  if (life->short_for == 0) return false;
  life->short_for--;
  life->shortages++;
  return true;
}

static void jump(struct life *life) {
  uint64_t by = JUMPS_NS[sim_below(&life->chance, 3)];

  life->jumps++;
  if (sim_once_in(&life->chance, 2) && life->world.wall_ns > 2 * by)
    life->world.wall_ns -= by;
  else if (life->world.wall_ns < UINT64_C(4000000000000000000))
    life->world.wall_ns += by;
}

/* ---- starts and ends */

static void arm(struct life *life) {
  life->world.boundary = at_boundary;
  life->world.fault = fail_some;
  life->world.no_memory = find_no_memory;
  life->world.self = life;
}

/* Flips a bit in about half of the files in open/. Data that the log still has is written again; the rest is lost, and
 * reported as lost. */
static void rot(struct life *life) {
  const struct sim_file *open = sim_find(life->left->root, "open");
  const char *name;

  for (size_t i = 0; open != NULL && (name = sim_name_at(open, i)) != NULL; i++) {
    struct sim_file *file = sim_find(open, name);
    if (sim_size(file) == 0 || sim_once_in(&life->chance, 2)) continue;
    sim_rot(file, sim_below(&life->chance, sim_size(file)), (unsigned)sim_below(&life->chance, 8));
    life->agents.impatient = true; /* to the oracle */
    life->rotten++;
  }
}

/* Restarts the machine with what is left on its disk. */
static void after_cut(struct life *life) {
  if (life->rots) rot(life);
  uint64_t mono = life->world.mono_ns, wall = life->world.wall_ns;

  sim_agents_stop(&life->agents);
  life->calls += life->world.boundaries;
  sim_end(&life->world);
  sim_begin(&life->world, life->left, sim_next(&life->chance));
  life->world.mono_ns = mono;
  life->world.wall_ns = wall;
  life->left = NULL;
  life->agents.dead = false;
  arm(life);
}

/* Starts the store; failing calls and power cuts may make several tries necessary. */
static void start(struct life *life) {
  struct tb_diag diag = { 0 };

  for (unsigned i = 0; i < STARTS_MAX; i++) {
    uint64_t failures = life->failures + life->shortages;
    bool started = sim_agents_start(&life->agents, &diag);
    if (life->agents.dead) {
      after_cut(life);
      continue;
    }
    if (started) return;
    if (life->failures + life->shortages == failures)
      sim_violation("it does not start: %s", diag.text);
  }
  sim_violation("it does not start: %s", diag.text);
}

static void stop(struct life *life) {
  sim_agents_stop(&life->agents);
  if (life->agents.dead) after_cut(life);
}

/* ---- a life */

/* Ends a connection in two cases of three; else silences it, for a while or for good. */
static void hurt_connection(struct life *life) {
  struct sim_chance *chance = &life->chance;
  unsigned stream = (unsigned)sim_below(chance, SIM_STREAMS);

  switch (sim_below(chance, 6)) {
  case 0: sim_agents_stall(&life->agents, stream, sim_below(chance, 5 * SECOND)); break;
  case 1: sim_agents_lose_touch(&life->agents, stream); break;
  default: sim_agents_leave(&life->agents, stream);
  }
}

static void go_on(struct life *life) {
  struct sim_chance *chance = &life->chance;
  unsigned stream = (unsigned)sim_below(chance, SIM_STREAMS);

  for (uint64_t n = sim_below(chance, 5); n > 0; n--) sim_agents_send(&life->agents, stream);
  if (sim_once_in(chance, 2)) sim_agents_understand(&life->agents);
  for (uint64_t n = sim_below(chance, 12); n > 0; n--) {
    sim_wires_step(&life->agents);
    sim_turn(life->world.mono_ns + 5 * MS);
  }
  if (sim_once_in(chance, 8)) {
    uint64_t until = life->world.mono_ns + sim_below(chance, 2 * SECOND);
    while (life->world.mono_ns < until)
      sim_turn(sim_wires_step(&life->agents) ? life->world.mono_ns + 5 * MS : until);
  }
}

static void trouble(struct life *life) {
  struct sim_chance *chance = &life->chance;

  switch (sim_below(chance, 8)) {
  case 0:
  case 1: hurt_connection(life); break;
  case 2: jump(life); break;
  case 3: life->failing = 1 + sim_below(chance, 20); break;
  case 4:
    if (life->cut_in == 0) life->cut_in = 1 + sim_below(chance, 60);
    break;
  case 5:
  case 6:
    life->short_own = sim_once_in(chance, 2);
    life->short_in = sim_below(chance, life->short_own ? 50 : 500);
    life->short_for = sim_once_in(chance, 2) ? 1 : 1 + sim_below(chance, 100);
    break;
  default:
    if (!sim_once_in(chance, 4)) break;
    stop(life);
    start(life);
  }
}

static void live(struct life *life) {
  uint64_t until = life->world.mono_ns + LIFE_NS;

  while (life->world.mono_ns < until || life->cuts + life->failures + life->jumps < FAULTS_MIN) {
    go_on(life);
    if (sim_once_in(&life->chance, 5)) trouble(life);
    if (life->agents.dead) {
      after_cut(life);
      start(life);
    } else if (life->agents.failed) {
      stop(life);
      start(life);
    }
  }
}

static void start_well(struct life *life) {
  struct tb_diag diag = { 0 };

  if (!sim_agents_start(&life->agents, &diag)) sim_violation("it does not start: %s", diag.text);
}

/* Ends the life without further faults: everything begun is reported, acked and archived. A store may report only now
 * that it failed before; a store that starts from here on does not fail. */
static void end(struct life *life) {
  life->world.boundary = NULL;
  life->world.fault = NULL;
  life->world.no_memory = NULL;
  bool anew = life->agents.failed || sim_once_in(&life->chance, 2);
  if (anew) {
    sim_agents_stop(&life->agents);
    start_well(life);
  }
  while (!sim_agents_end_soon(&life->agents) || !sim_agents_finish(&life->agents, true)) {
    if (anew) sim_violation("it fails though nothing goes wrong");
    anew = true;
    sim_agents_stop(&life->agents);
    start_well(life);
  }
  sim_agents_stop(&life->agents);
  if (sim_find(life->world.disk->root, "catalog.stale") !=
      NULL) { /* the next start rebuilds the catalog */
    start_well(life);
    sim_agents_stop(&life->agents);
  }
  life->whole = sim_expect_whole(&life->agents, true);
}

/* In a third of the lives the archive has no room for all of it. Uses random numbers of its own, so that other lives do
 * not change. */
static void keep_little(struct life *life) {
  struct sim_chance chance = { .state = ~life->seed };
  struct tc_config *config = &life->config;

  if (!sim_once_in(&chance, 3)) return;
  config->retention_every = 100 * MS + sim_below(&chance, 2 * SECOND);
  config->retention_quarantine_bytes = 1 + sim_below(&chance, 40000);
  switch (sim_below(&chance, 3)) {
  case 0: config->retention_bytes = 1 + sim_below(&chance, 40000); break;
  case 1: config->retention_service_bytes = 1 + sim_below(&chance, 40000); break;
  default: config->retention_age = 1 + sim_below(&chance, 30 * SECOND);
  }
  if (!sim_once_in(&chance, 2)) return;
  life->agents.keep_ns = 1 + sim_below(&chance, 5 * SECOND);
  config->retention_kept_age = 1 + sim_below(&chance, 60 * SECOND);
}

/* In a third of the lives the store soon gives up open generations of agents that stay away, or that hold the log. */
static void give_up_soon(struct life *life) {
  struct sim_chance chance = { .state = life->seed * UINT64_C(0x9e3779b97f4a7c15) };
  struct tc_config *config = &life->config;

  if (!sim_once_in(&chance, 3)) return;
  life->agents.impatient = true;
  config->agents_abandon_after = 50 * MS + sim_below(&chance, 2 * SECOND);
  if (sim_once_in(&chance, 2)) return;
  config->log_file_bytes = 64 << 10;
  config->log_group_bytes = 16 << 10;
  config->log_checkpoint_bytes = 1 + sim_below(&chance, 30 << 10);
  config->log_held_bytes_max = config->log_checkpoint_bytes + sim_below(&chance, 60 << 10);
}

/* In a third of the lives, a segment's file has many generations, and the log soon deletes the records that this file contains. */
static void write_long_runs(struct life *life) {
  struct sim_chance chance = { .state = life->seed * UINT64_C(0xd1342543de82ef95) };
  struct tc_config *config = &life->config;

  if (!sim_once_in(&chance, 3)) return;
  config->segment_generations_max = 100;
  config->segment_bytes_max = 20000 + sim_below(&chance, 200000);
  config->segment_seconds_max = SECOND + sim_below(&chance, 30 * SECOND);
  if (life->agents.impatient) return;
  config->log_file_bytes = 64 << 10;
  config->log_group_bytes = 16 << 10;
  config->log_checkpoint_bytes = 1 + sim_below(&chance, 30 << 10);
  life->rots = sim_once_in(&chance, 2);
}

/* Runs a life; returns a number that only this life results in. */
static uint64_t live_through(uint64_t seed, struct life *life) {
  *life = (struct life){ .seed = seed, .chance = { .state = seed } };
  sim_violation_context(say_where, life);
  sim_config(&life->config, 1 + (unsigned)sim_below(&life->chance, 3));
  keep_little(life);
  give_up_soon(life);
  write_long_runs(life);
  for (unsigned i = 0; i < SIM_STREAMS; i++)
    life->scripts[i] = sim_script_make(&life->chance, RECORDS, i == SIM_STREAMS - 1);
  life->agents.wired = true;
  life->agents.scripts = life->scripts;
  life->agents.config = &life->config;
  life->agents.chance.state = sim_next(&life->chance);
  sim_begin(&life->world, sim_disk_new(), sim_next(&life->chance));
  arm(life);
  start(life);
  live(life);
  end(life);
  life->calls += life->world.boundaries;
  uint64_t hash = sim_archive_hash() ^ life->calls * UINT64_C(0x9e3779b97f4a7c15);
  sim_end(&life->world);
  for (unsigned i = 0; i < SIM_STREAMS; i++) sim_script_free(&life->scripts[i]);
  tc_config_fini(&life->config);
  return hash;
}

static double seconds(clockid_t id) {
  struct timespec ts;

  syscall(SYS_clock_gettime, id, &ts);
  return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

struct sum {
  uint64_t seeds, twice, hash, cuts, failures, shortages, jumps, expired, folded, rotten,
      simulated_ns;
};

static struct life life;

static void live_and_count(uint64_t seed, struct sum *sum) {
  uint64_t once = live_through(seed, &life);

  sum->seeds++;
  sum->hash = (sum->hash ^ once) * UINT64_C(0x100000001b3);
  sum->cuts += life.cuts;
  sum->failures += life.failures;
  sum->shortages += life.shortages;
  sum->jumps += life.jumps;
  sum->expired += life.whole.expired;
  sum->folded += life.whole.folded;
  sum->rotten += life.rotten;
  sum->simulated_ns += life.world.mono_ns;
  if (seed % TWICE_ONCE_IN != 0) return;
  sum->twice++;
  if (live_through(seed, &life) != once) sim_violation("the same seed came to another end");
}

static struct {
  uint64_t from, count, jobs, job; /* job: number of this process */
} run = { .from = 1, .jobs = 1 };

static void read_arguments(int argc, char **argv) {
  const char *full = getenv("TC_FULL");

  run.count = full != NULL && *full != '\0' ? 2000 : 20;
  for (int i = 1; i < argc; i += 2) {
    uint64_t *out = strcmp(argv[i], "--from") == 0    ? &run.from
                    : strcmp(argv[i], "--count") == 0 ? &run.count
                    : strcmp(argv[i], "--jobs") == 0  ? &run.jobs
                                                      : NULL;
    if (out == NULL || i + 1 == argc) {
      fprintf(stderr, "sim_seeds: %s: unknown, or without its number\n", argv[i]);
      exit(2);
    }
    *out = strtoull(argv[i + 1], NULL, 10);
  }
}

static void report(const struct sum *sum, double took, double cpu) {
  double lives = (double)(sum->seeds + sum->twice);

  printf("%" PRIu64 " seeds, %" PRIu64 " power cuts, %" PRIu64 " failed calls, %" PRIu64
         " failed allocations, %" PRIu64 " jumps, %" PRIu64 " segments expired, %" PRIu64
         " records in ledgers, %" PRIu64 " open files rotten, no violation; %" PRIu64
         " lived twice, the same; %.1f ms of CPU time a life, %.0f a minute, %.0f times real time; "
         "all of them %016" PRIx64 "\n",
         sum->seeds, sum->cuts, sum->failures, sum->shortages, sum->jumps, sum->expired,
         sum->folded, sum->rotten, sum->twice, 1000 * cpu / lives, 60 * lives / took,
         (double)sum->simulated_ns / 1e9 / took, sum->hash);
  fflush(stdout);
}

int main(int argc, char **argv) {
  struct sum sum = { 0 };
  int status = 0;

  mallopt(M_MMAP_THRESHOLD, 1 << 30); /* large blocks come and go with every start */
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  read_arguments(argc, argv);
  pid_t below = sim_split(&run.job, run.jobs);
  sim_vfs_register();
  /* Libraries make their one-time allocations before the first life, as in a long-running daemon: else the allocations
   * of the first life would differ. */
  ERR_clear_error();
  live_through(0, &life);
  double began = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
  for (uint64_t i = run.job; i < run.count; i += run.jobs) live_and_count(run.from + i, &sum);
  report(&sum, seconds(CLOCK_MONOTONIC) - began, seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu);
  if (below > 0 && waitpid(below, &status, 0) != below) return 1;
  return status == 0 ? 0 : 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Power loss at every boundary (docs/RELIABILITY.md, row 3).
 *
 *     sim_power [--seed S] [--records N] [--patterns P] [--every N] [--generations N] [--jobs N] [--full 1]
 *
 * Runs the store once on a simulated disk. Before each call that changes the disk the power is cut, in P ways: data
 * that was not synced is kept, dropped or torn. After each cut the store starts on the remaining disk, the agents go on
 * from what they know and end their streams, and all that was ever acked must be there, once. Some of these runs are
 * cut again in the same way, at a random boundary (in recovery, too), up to three deep. Others are stopped and started
 * once more, which must change nothing.
 *
 * --every N: try one boundary of N. --generations N: per file. --jobs N: processes that share the boundaries. Without
 * --full 1, or TC_FULL in the environment, the run is short and a few boundaries are tried. */
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sim/jobs.h"
#include "sim/oracle.h"
#include "sim/world.h"

enum {
  DEPTH_MAX = 3,
  CUT_AGAIN_ONCE_IN = 4,
  BEGIN_AGAIN_ONCE_IN = 16,
  VERIFY_ONCE_IN = 4,
  CUT_WITHIN = 120
};

static struct run {
  uint64_t seed, records, patterns, every, generations, jobs, full;
  uint64_t job; /* number of this process */
  struct tc_config config;
  struct sim_script scripts[SIM_STREAMS];
  uint64_t tried, crashes, nested;
  struct level { /* of crashes within crashes; 0 is the run itself */
    struct sim_agents agents;
    struct sim_chance chance;
    uint64_t cut_at; /* boundary of this level for the next crash; 0: none */
    uint64_t boundary, pattern;
    const char *call;
  } levels[DEPTH_MAX + 1];
  unsigned depth;
} run = { .seed = 1, .patterns = 20, .generations = 1, .jobs = 1 };

static void say_where(void *self) {
  (void)self;
  for (unsigned i = 0; i < run.depth; i++)
    fprintf(stderr, "  crash %u: before boundary %" PRIu64 " (%s), pattern %" PRIu64 "\n", i + 1,
            run.levels[i].boundary, run.levels[i].call, run.levels[i].pattern);
  fprintf(stderr,
          "  again: sim_power --seed %" PRIu64 " --records %" PRIu64 " --patterns %" PRIu64
          " --generations %" PRIu64 " --every %" PRIu64 ", commit %s\n",
          run.seed, run.records, run.patterns, run.generations, run.every, TC_COMMIT);
}

static void at_boundary(void *self, const char *call);

/* Starts the store on what the power cut left; all that was acked must be there. */
static void prove(struct sim_disk *disk, uint64_t seed) {
  static struct sim_world worlds[DEPTH_MAX + 1];
  struct level *level = &run.levels[run.depth];
  struct sim_world *world = &worlds[run.depth];
  struct tb_diag diag = { 0 };

  level->agents = level[-1].agents;
  level->agents.chance.state = level->chance.state = seed;
  level->cut_at = 0;
  sim_begin(world, disk, seed);
  if (run.depth < DEPTH_MAX && sim_once_in(&level->chance, CUT_AGAIN_ONCE_IN))
    level->cut_at = 1 + sim_below(&level->chance, CUT_WITHIN);
  world->boundary = at_boundary;
  world->self = level;
  if (!sim_agents_start(&level->agents, &diag)) sim_violation("it does not start: %s", diag.text);
  if (!sim_agents_end_soon(&level->agents) ||
      !sim_agents_finish(&level->agents, sim_once_in(&level->chance, 2)))
    sim_violation("it fails after its start");
  sim_agents_stop(&level->agents);
  (void)sim_expect_whole(&level->agents, level[-1].pattern < SIM_PLAIN_PATTERNS ||
                                             sim_once_in(&level->chance, VERIFY_ONCE_IN));
  if (sim_once_in(&level->chance, BEGIN_AGAIN_ONCE_IN)) {
    uint64_t hash = sim_archive_hash();
    world->boundary = NULL;
    if (!sim_agents_start(&level->agents, &diag)) sim_violation("it does not start again");
    sim_agents_stop(&level->agents);
    if (sim_archive_hash() != hash) sim_violation("I5: a start has changed the archive");
  }
  sim_end(world);
}

static void cut(struct level *level, struct sim_world *world, const char *call, uint64_t pattern) {
  struct sim_chance chance = { .state = run.seed * UINT64_C(1000003) + world->boundaries * 1009 +
                                        pattern * 31 + run.depth };

  level->boundary = world->boundaries;
  level->pattern = pattern;
  level->call = call;
  run.depth++;
  prove(sim_disk_crash(world->disk, (unsigned)pattern, &chance), sim_next(&chance));
  run.depth--;
}

static void at_boundary(void *self, const char *call) {
  struct level *level = self;
  struct sim_world *world = sim_world;

  if (run.depth > 0) {
    if (world->boundaries != level->cut_at) return;
    cut(level, world, call, sim_below(&level->chance, 8));
    run.nested++;
    return;
  }
  if (world->boundaries % (run.every * run.jobs) != run.job * run.every) return;
  run.tried++;
  for (uint64_t pattern = 0; pattern < run.patterns; pattern++, run.crashes++)
    cut(level, world, call, pattern);
}

/* Writes all streams, a few records at a time, so that few records lie between two boundaries. */
static void write_streams(struct sim_agents *agents) {
  struct sim_chance *chance = &agents->chance;
  bool more = true;

  while (more) {
    unsigned stream = (unsigned)sim_below(chance, SIM_STREAMS);
    for (uint64_t n = 1 + sim_below(chance, 4); n > 0; n--) sim_agents_send(agents, stream);
    if (agents->nstored > 0 && (agents->nstored > 8 || sim_once_in(chance, 2)))
      sim_agents_understand(agents);
    for (uint64_t n = sim_below(chance, 8); n > 0; n--) sim_turn(sim_world->mono_ns + 1000000);
    more = false;
    for (unsigned i = 0; i < SIM_STREAMS; i++)
      more |= agents->agents[i].acked < agents->scripts[i].nrecords;
  }
  for (unsigned i = 0; i < SIM_STREAMS; i++) agents->agents[i].end_at = agents->scripts[i].nrecords;
  if (!sim_agents_finish(agents, true)) sim_violation("the store fails");
}

static uint64_t number(const char *text, const char *what) {
  char *end;
  uint64_t n = strtoull(text, &end, 10);

  if (*text != '\0' && *end == '\0') return n;
  fprintf(stderr, "sim_power: %s: not a number\n", what);
  exit(2);
}

static void read_arguments(int argc, char **argv) {
  const struct {
    const char *name;
    uint64_t *out;
  } options[] = { { "--seed", &run.seed },
                  { "--records", &run.records },
                  { "--patterns", &run.patterns },
                  { "--every", &run.every },
                  { "--generations", &run.generations },
                  { "--jobs", &run.jobs },
                  { "--full", &run.full } };
  const char *full = getenv("TC_FULL");

  for (int i = 1; i < argc; i++) {
    size_t o = 0, n = sizeof options / sizeof *options;
    while (o < n && strcmp(argv[i], options[o].name) != 0) o++;
    if (o == n || i + 1 == argc) {
      fprintf(stderr, "sim_power: %s: unknown, or without its number\n", argv[i]);
      exit(2);
    }
    *options[o].out = number(argv[i + 1], argv[i]);
    i++;
  }
  if (full != NULL && *full != '\0') run.full = 1;
  if (run.records == 0) run.records = run.full ? 2000 : 200;
  if (run.every == 0) run.every = run.full ? 1 : 53;
}

static double seconds(void) {
  struct timespec ts;

  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &ts);
  return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
  static struct sim_world world;
  struct level *level = &run.levels[0];
  struct tb_diag diag = { 0 };
  double began = seconds();

  mallopt(M_MMAP_THRESHOLD, 1 << 30); /* large blocks come and go with every crash */
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  read_arguments(argc, argv);
  pid_t below = sim_split(&run.job, run.jobs);
  sim_vfs_register();
  sim_violation_context(say_where, NULL);
  sim_config(&run.config, (unsigned)run.generations);
  level->chance.state = level->agents.chance.state = run.seed;
  for (unsigned i = 0; i < SIM_STREAMS; i++)
    run.scripts[i] =
        sim_script_make(&level->chance, run.records / SIM_STREAMS, i == SIM_STREAMS - 1);
  level->agents.scripts = run.scripts;
  level->agents.config = &run.config;
  sim_begin(&world, sim_disk_new(), run.seed);
  world.boundary = at_boundary;
  world.self = level;
  if (!sim_agents_start(&level->agents, &diag)) sim_violation("it does not start: %s", diag.text);
  write_streams(&level->agents);
  sim_agents_stop(&level->agents);
  (void)sim_expect_whole(&level->agents, true);
  printf("%" PRIu64 " boundaries, %" PRIu64 " tried in %" PRIu64 " ways: %" PRIu64
         " crashes, %" PRIu64 " more within them, no violation; %.0f a second; archive %016" PRIx64
         "\n",
         world.boundaries, run.tried, run.patterns, run.crashes, run.nested,
         (double)(run.crashes + run.nested) / (seconds() - began), sim_archive_hash());
  sim_end(&world);
  for (unsigned i = 0; i < SIM_STREAMS; i++) sim_script_free(&run.scripts[i]);
  tc_config_fini(&run.config);
  fflush(stdout);
  int status = 0;
  if (below > 0 && waitpid(below, &status, 0) != below) return 1;
  return status == 0 ? 0 : 1;
}

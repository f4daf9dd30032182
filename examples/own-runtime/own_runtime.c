/* SPDX-License-Identifier: Apache-2.0 */
/* own_runtime SERVER CERTS [ROUNDS]: a small runtime with a scheduler and a heap of its own is traced, live.
 *
 *   cc own_runtime.c $(pkg-config --cflags --libs traceagent) -o own_runtime
 *   own_runtime @tracecollect-data/ready certs 200
 *   tracectl fetch --service runtime -o t.trace && go tool trace t.trace
 *
 * Processes stand in a ring. In each round a process builds a list of cells, sends to its neighbour and waits for a
 * message. After SLICE cells the next process runs: a yield. A collection begins when cells run short; from then on
 * each allocation marks a little (an assist) until all is marked, and what is not marked is swept up. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <traceagent.h>

enum { PROCESSES = 4, CELLS = 1 << 12, LOW = CELLS / 4, LIST = 300, SLICE = 64, MARKS = 8 };
struct cell {
  struct cell *next;
  bool used, marked;
};
struct process {
  struct cell *list; /* of this round */
  unsigned long built, messages, round;
  enum { READY, WAITS, DONE } state;
  ta_fiber traced;
};

static struct cell heap[CELLS], *grey[PROCESSES];
static struct process process[PROCESSES];
static unsigned free_cells = CELLS, next_free;
static unsigned long rounds = 200, collections;
static bool collecting;
static ta_name slice_is_over, receive, roots;

static void begin_collection(void) {
  ta_gc_begin();
  ta_pause_begin(roots);
  for (int i = 0; i < PROCESSES; i++) grey[i] = process[i].list;
  ta_pause_end();
  collecting = true, collections++;
}

static void sweep(void) {
  unsigned before = free_cells;

  ta_gc_sweep_begin();
  for (struct cell *c = heap; c < heap + CELLS; c++) {
    free_cells += c->used && !c->marked;
    c->used = c->marked;
    c->marked = false;
  }
  ta_gc_sweep_end(sizeof heap, (free_cells - before) * sizeof *heap);
  ta_heap_alloc((CELLS - free_cells) * sizeof *heap);
}

static void assist(void) {
  int left = MARKS;

  ta_gc_assist_begin();
  for (int i = 0; i < PROCESSES; i++)
    for (; grey[i] != NULL && left > 0; left--, grey[i] = grey[i]->next) grey[i]->marked = true;
  ta_gc_assist_end();
  if (left == 0) return; /* there may be more */
  collecting = false;
  ta_gc_end();
  sweep();
}

static struct cell *allocate(struct cell *next) {
  if (!collecting && free_cells < LOW) begin_collection();
  if (collecting) assist();
  while (heap[next_free].used) next_free = (next_free + 1) % CELLS;
  free_cells--;
  heap[next_free] = (struct cell){ next, true, collecting }; /* new cells are marked */
  return &heap[next_free];
}

static void send_to(struct process *p) {
  if (p->state == WAITS) ta_fiber_unblock(p->traced);
  p->messages += p->state != WAITS;
  if (p->state == WAITS) p->state = READY;
}

static void run(struct process *p) {
  ta_fiber_switch(p->traced);
  for (int i = 0; i < SLICE && p->built < LIST; i++, p->built++) p->list = allocate(p->list);
  if (p->built < LIST) {
    ta_fiber_yield(slice_is_over);
    return;
  }
  p->built = 0;
  p->list = NULL;
  send_to(&process[(p - process + 1) % PROCESSES]);
  p->state = ++p->round == rounds ? DONE : p->messages > 0 ? READY : WAITS;
  if (p->state == DONE) ta_fiber_end();
  if (p->state == WAITS) ta_fiber_block(receive);
  if (p->state != READY) return;
  p->messages--;
  ta_fiber_yield(slice_is_over);
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  struct ta_forward_config where = { .server = argv[1], .certs = argv[2], .service = "runtime" };
  struct ta_emit_config how = { .generation_ms = 50 };
  int error = ta_emit_start(&where, &how), running = PROCESSES;
  if (error != TA_OK) return fprintf(stderr, "own_runtime: %s\n", ta_strerror(error)), 1;
  if (argc > 3) rounds = strtoul(argv[3], NULL, 10);
  slice_is_over = ta_name_of("slice is over"), receive = ta_name_of("receive"),
  roots = ta_name_of("roots");
  for (int i = 0; i < PROCESSES; i++) process[i].traced = ta_fiber_create(ta_name_of("process"), 0);
  for (struct process *p = process; running > 0; p = process + (p - process + 1) % PROCESSES) {
    if (p->state != READY) continue;
    run(p);
    running -= p->state == DONE;
  }
  printf("%lu rounds, %lu collections\n", rounds, collections);
  return ta_emit_stop(10000) == TA_OK ? 0 : 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* fibers SERVER CERTS [ITEMS]: fibers of one thread, a pipeline of them, that show which waits for which, live.
 *
 *   cc fibers.c $(pkg-config --cflags --libs traceagent) -o fibers
 *   fibers @tracecollect-data/ready certs 1000
 *   tracectl fetch --service fibers -o t.trace && go tool trace t.trace
 *
 * A source hands numbers to three squarers through a channel, these their squares to a sink through another. A channel
 * holds few: a fiber that finds it full or empty waits, and is woken by the one that made room or put something in.
 * The scheduler is a queue of fibers that are ready; all that the agent needs to know is said in spawn(), run(),
 * wait_for(), wake() and in main_of(). */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#include <traceagent.h>

enum { SQUARERS = 3, FIBERS = SQUARERS + 2, STACK_BYTES = 64 << 10, ROOM = 4, ITEMS = 1000 };

struct fiber {
  ucontext_t context;
  void (*main)(void);
  ta_fiber traced;
  struct fiber *next; /* in a queue */
};

struct queue {
  struct fiber *first, **end;
};

struct channel {
  unsigned long item[ROOM];
  unsigned first, count, senders;
  struct queue full, empty; /* fibers that wait while the channel is full, or empty */
};

static struct fiber fibers[FIBERS];
static _Alignas(16) unsigned char stacks[FIBERS][STACK_BYTES];
static unsigned spawned;
static struct queue ready = { NULL, &ready.first };
static struct fiber *running;
static ucontext_t scheduler;

static struct channel numbers = { .senders = 1,
                                  .full.end = &numbers.full.first,
                                  .empty.end = &numbers.empty.first };
static struct channel squares = { .senders = SQUARERS,
                                  .full.end = &squares.full.first,
                                  .empty.end = &squares.empty.first };
static ta_name until_room, until_item, square;
static unsigned long items = ITEMS, sum;

/* The scheduler. */

static void push(struct queue *q, struct fiber *f) {
  f->next = NULL;
  *q->end = f;
  q->end = &f->next;
}

static struct fiber *pop(struct queue *q) {
  struct fiber *f = q->first;

  if (f == NULL) return NULL;
  if ((q->first = f->next) == NULL) q->end = &q->first;
  return f;
}

static void main_of(void) {
  running->main();
  ta_fiber_end();
}

static void spawn(const char *name, void (*main)(void)) {
  struct fiber *f = &fibers[spawned];

  getcontext(&f->context);
  f->context.uc_stack.ss_sp = stacks[spawned++];
  f->context.uc_stack.ss_size = STACK_BYTES;
  f->context.uc_link = &scheduler;
  f->main = main;
  f->traced = ta_fiber_create(ta_name_of(name), 0);
  makecontext(&f->context, main_of, 0);
  push(&ready, f);
}

static void run(void) {
  while ((running = pop(&ready)) != NULL) {
    ta_fiber_switch(running->traced);
    swapcontext(&scheduler, &running->context);
  }
}

static void wait_for(struct queue *q, ta_name reason) {
  push(q, running);
  ta_fiber_block(reason);
  swapcontext(&running->context, &scheduler);
}

static void wake(struct queue *q) {
  struct fiber *f = pop(q);

  if (f == NULL) return;
  ta_fiber_unblock(f->traced);
  push(&ready, f);
}

/* Channels. */

static void put(struct channel *c, unsigned long item) {
  while (c->count == ROOM) wait_for(&c->full, until_room);
  c->item[(c->first + c->count++) % ROOM] = item;
  wake(&c->empty);
}

/* Returns false if the channel is empty and has no sender left. */
static bool take(struct channel *c, unsigned long *out) {
  while (c->count == 0) {
    if (c->senders == 0) return false;
    wait_for(&c->empty, until_item);
  }
  *out = c->item[c->first];
  c->first = (c->first + 1) % ROOM;
  c->count--;
  wake(&c->full);
  return true;
}

static void close_one(struct channel *c) {
  if (--c->senders > 0) return;
  while (c->empty.first != NULL) wake(&c->empty);
}

/* Work of the fibers. */

static void source(void) {
  for (unsigned long i = 1; i <= items; i++) put(&numbers, i);
  close_one(&numbers);
}

static void squarer(void) {
  unsigned long n;

  while (take(&numbers, &n)) {
    ta_region_begin(square, 0);
    n *= n;
    ta_region_end();
    put(&squares, n);
  }
  close_one(&squares);
}

static void sink(void) {
  unsigned long n;

  while (take(&squares, &n)) sum += n;
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: fibers SERVER CERTS [ITEMS]\n");
    return 2;
  }
  struct ta_forward_config where = { .server = argv[1], .certs = argv[2], .service = "fibers" };
  int error = ta_emit_start(&where, NULL);
  if (error != TA_OK) {
    fprintf(stderr, "fibers: %s\n", ta_strerror(error));
    if (error != TA_E_OFF) return 1; /* off: the same program, untraced */
  }
  if (argc > 3) items = strtoul(argv[3], NULL, 10);
  until_room = ta_name_of("channel is full"), until_item = ta_name_of("channel is empty");
  square = ta_name_of("square");
  spawn("source", source);
  for (int i = 0; i < SQUARERS; i++) spawn("squarer", squarer);
  spawn("sink", sink);
  run();
  printf("%lu items, sum of squares %lu\n", items, sum);
  if (error == TA_OK && (error = ta_emit_stop(10000)) != TA_OK) {
    fprintf(stderr, "fibers: %s\n", ta_strerror(error));
    return 1;
  }
  return 0;
}

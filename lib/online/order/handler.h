/* SPDX-License-Identifier: Apache-2.0 */
/* Your own ordering rule for events of an experiment, in addition to their spec (wire/experiments.h: context, ids,
 * sequence): decides whether an event fits now, has to wait for another thread's, or breaks the trace.
 *
 *   static tb_rc evict(void *self, const struct to_handled *at) {
 *     struct shelf *shelf = self;
 *     if (shelf->pages == 0) return TB_AGAIN;          -- the matching Fill is on another thread
 *     if (at->ev->args[0] == shelf->pinned) return to_handled_refuse(at, "the page is pinned");
 *     shelf->pages--;
 *     return TB_OK;
 *   }
 *   TB_TRY(to_reader_handle(reader, &(struct to_handler){ "Cache", "Evict", shelf, evict }));
 *
 * The orderer calls a handler for each event that satisfies its spec, in the order of the trace. After TB_OK the event
 * is delivered; after TB_AGAIN other threads go first, and the handler is called again; TB_BROKEN ends the generation, with
 * the place of the event in diag. A handler may change its own state only if it then returns TB_OK. Sequence numbers
 * start from one in each generation; a handler can detect a new one by to_generation_number(at->gen).
 *
 * Memory    at most 32 handlers a reader; names and self must stay until the reader is freed.
 * Threads   a handler is called on the thread that runs the reader.
 */
#ifndef TO_ORDER_HANDLER_H
#define TO_ORDER_HANDLER_H

#include "online/event/generation.h"
#include "online/event/view.h"

struct to_order;
struct to_thread;

/* The event to be judged. */
struct to_handled {
  const struct to_generation *gen;
  const struct to_event *ev; /* with its context: m, p, g */
  struct to_order *order;    /* for the functions below */
  const struct to_thread *thread;
};

struct to_handler {
  const char *experiment;
  const char *event; /* NULL: each event of the experiment that has no handler of its own */
  void *self;
  tb_rc (*fits)(void *self, const struct to_handled *at); /* TB_OK, TB_AGAIN, or a fault */
};

/* Return the state just before the event; UNDETERMINED if the trace has not shown it yet. */
enum to_go_state to_handled_goroutine(const struct to_handled *at, int64_t id);
enum to_proc_state to_handled_proc(const struct to_handled *at, int64_t id);

/* Returns TB_BROKEN, with the event's name and the reason in diag. */
tb_rc to_handled_refuse(const struct to_handled *at, const char *reason);

#endif

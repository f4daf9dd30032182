/* SPDX-License-Identifier: Apache-2.0 */
/* A rule of your own for the events of an experiment, beyond what their spec says (wire/experiments.h: context, ids,
 * sequence): whether an event fits now, has to wait for another thread's, or breaks the trace.
 *
 *   static tb_rc evict(void *self, const struct to_handled *at) {
 *     struct shelf *shelf = self;
 *     if (shelf->pages == 0) return TB_AGAIN;          -- the Fill that it empties stands on another thread
 *     if (at->ev->args[0] == shelf->pinned) return to_handled_refuse(at, "the page is pinned");
 *     shelf->pages--;
 *     return TB_OK;
 *   }
 *   TB_TRY(to_reader_handle(reader, &(struct to_handler){ "Cache", "Evict", shelf, evict }));
 *
 * The orderer asks a handler when the event has passed its spec, in the order of the trace. After TB_OK the event
 * is delivered; after TB_AGAIN other threads go first, and the handler is asked again; TB_BROKEN ends the generation, with the
 * place of the event in diag. Only before TB_OK may a handler change what it remembers. Numbers of a sequence count from
 * one in each generation, and so may a handler: to_generation_number(at->gen).
 *
 * Memory    32 handlers a reader; names and self are lent until the reader is freed.
 * Threads   a handler is called on the thread that runs the reader.
 */
#ifndef TO_ORDER_HANDLER_H
#define TO_ORDER_HANDLER_H

#include "online/event/generation.h"
#include "online/event/view.h"

struct to_order;
struct to_thread;

/* An event that wants to be next. */
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

/* The state just before the event; UNDETERMINED where the trace has not said it. */
enum to_go_state to_handled_goroutine(const struct to_handled *at, int64_t id);
enum to_proc_state to_handled_proc(const struct to_handled *at, int64_t id);

/* The reason why the event breaks the trace, after its name: TB_BROKEN. */
tb_rc to_handled_refuse(const struct to_handled *at, const char *reason);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* One generation of a trace: its tables, and the batches of timed events by thread.
 *
 * Memory    lives in an arena of its own; batch bytes are borrowed (reader: its copy or the caller's
 *           mapping). Everything handed out here is valid until the generation is dropped, that is
 *           until the sink has had its last event.
 * Threads   use each object from one thread at a time.
 */
#ifndef TO_EVENT_GENERATION_H
#define TO_EVENT_GENERATION_H

#include "online/event/event.h"

struct to_string { /* any bytes, not NUL-terminated, at most 1024 */
  const char *data;
  size_t len;
};

struct to_frame {
  uint64_t pc, line;
  struct to_string function, file;
};

/* Frames from the innermost outwards. */
struct to_stack_iter {
  const struct to_generation *gen;
  const unsigned char *pos;
  uint64_t left;
  bool own; /* each frame in the words of this very stack */
};

uint64_t to_generation_number(const struct to_generation *gen);
unsigned to_generation_version(const struct to_generation *gen); /* 22, 23, 25 or 26 */
/* When its earliest batch was begun, on the trace clock: no event of it is earlier. Of a trace's first
 * generation it is the start of the trace (online/trace/survey.h has it before anything is ordered). */
to_ns to_generation_start(const struct to_generation *gen);

/* True and *out for an id of the table (id 0 is the empty string), false for an unknown one. */
bool to_generation_string(const struct to_generation *gen, uint64_t id, struct to_string *out);
struct to_string to_generation_extra_string(const struct to_generation *gen, uint64_t id);

/* False for an unknown stack id; id 0 is the empty stack. */
bool to_generation_stack(const struct to_generation *gen, uint64_t id, struct to_stack_iter *out);
/* The same with each frame in the words of this very stack, not of the first that names its program
 * counter. They differ only in a made-up trace, and no table of all frames needs to be built. A string
 * that does not exist (such a trace may name one where another frame has the counter) is empty. */
bool to_generation_stack_own(const struct to_generation *gen, uint64_t id,
                             struct to_stack_iter *out);
uint64_t to_stack_length(const struct to_generation *gen, uint64_t id); /* frames, O(1) */
bool to_stack_next(struct to_stack_iter *it, struct to_frame *out);
/* The frame at a depth, 0 being the innermost, as to_stack_next() gives it: O(1) once a stack has been
 * asked. False: no such stack or frame, or no memory to remember where its frames stand. */
bool to_stack_at(const struct to_generation *gen, uint64_t id, uint64_t depth,
                 struct to_frame *out);

/* Program counters of a stack as they are written, innermost first: how many, at most max; 0 for an
 * unknown id. Needs no table of frames, so it is the cheap way to recognise a stack. */
size_t to_stack_pcs(const struct to_generation *gen, uint64_t id, uint64_t *pcs, size_t max);

/* Hash of a stack's frames (function, file and line text, pc left out): equal in every generation
 * and run, 0 for the empty stack. */
uint64_t to_stack_hash(const struct to_generation *gen, uint64_t id);

/* The clocks of this generation. False before 1.25 (no snapshot): the agent's own pair serves then. */
struct to_clock {
  to_ns trace_ns;   /* when it was taken, trace clock */
  uint64_t mono_ns; /* the program's monotonic clock */
  int64_t wall_s;
  int64_t wall_ns;
};
bool to_generation_clock(const struct to_generation *gen, struct to_clock *out);

/* Experimental batches of this generation, byte for byte. */
struct to_experimental {
  uint8_t experiment;
  int64_t thread;
  const unsigned char *data;
  size_t len;
  uint64_t offset; /* of data in the trace */
};
size_t to_generation_experimental(const struct to_generation *gen,
                                  const struct to_experimental **out);

/* The name and arguments of an event type: of the program's own experiments, too (wire/experiments.h); their numbers
 * mean nothing in another generation. NULL for gen serves where an event belongs to none. */
const struct tw_spec *to_generation_spec(const struct to_generation *gen, uint8_t type);
/* Types of its arguments as they are ordered: to_event_args() (online/event/event.h) for any event. */
unsigned to_generation_args(const struct to_generation *gen, uint8_t type, enum tw_arg_type out[4]);
/* It is this event of this experiment, with these arguments in this order; NULL ends them. */
bool to_generation_event_is(const struct to_generation *gen, uint8_t type, const char *experiment,
                            const char *name, const char *const *labels);
/* The name of its experiment; NULL: it belongs to none. */
const char *to_generation_experiment(const struct to_generation *gen, uint8_t type);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* One generation of a trace: its tables, and the batches of timed events by thread.
 *
 * Memory    batch bytes are borrowed (the reader's copy or the caller's mapping). Everything returned here
 *           is valid until the generation is dropped, after the sink has received its last event.
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
  bool own; /* see to_generation_stack_own() */
};

uint64_t to_generation_number(const struct to_generation *gen);
unsigned to_generation_version(const struct to_generation *gen); /* 22, 23, 25 or 26 */
/* Returns the begin of the earliest batch on the trace clock; no event of the generation is earlier. In the
 * first generation this is the start of the trace (online/trace/survey.h finds it before ordering). */
to_ns to_generation_start(const struct to_generation *gen);

/* Returns false for an unknown id; id 0 is the empty string. */
bool to_generation_string(const struct to_generation *gen, uint64_t id, struct to_string *out);
struct to_string to_generation_extra_string(const struct to_generation *gen, uint64_t id);

/* Returns false for an unknown stack id; id 0 is the empty stack. */
bool to_generation_stack(const struct to_generation *gen, uint64_t id, struct to_stack_iter *out);
/* Like to_generation_stack(), but each frame is read from this stack itself, not from the generation's first frame with the
 * same program counter. The two differ only in a made-up trace. This one needs no table of all frames. If a frame names a
 * string that is missing, which also happens only in a made-up trace, the string is empty. */
bool to_generation_stack_own(const struct to_generation *gen, uint64_t id,
                             struct to_stack_iter *out);
uint64_t to_stack_length(const struct to_generation *gen, uint64_t id); /* frames, O(1) */
bool to_stack_next(struct to_stack_iter *it, struct to_frame *out);
/* Reads the frame at a depth, 0 for the innermost, as to_stack_next() does: O(1) after the first call for a stack.
 * Returns false if there is no such stack or frame, or if memory for the places of its frames cannot be allocated. */
bool to_stack_at(const struct to_generation *gen, uint64_t id, uint64_t depth,
                 struct to_frame *out);

/* Reads at most max program counters of a stack, innermost first, and returns how many; 0 for an unknown
 * id. Needs no table of frames, so this is the cheapest way to recognise a stack. */
size_t to_stack_pcs(const struct to_generation *gen, uint64_t id, uint64_t *pcs, size_t max);

/* Hashes a stack's frames (function, file and line, without pc): equal in every generation and in every
 * execution of the program, 0 for the empty stack. */
uint64_t to_stack_hash(const struct to_generation *gen, uint64_t id);

/* The clocks of this generation. to_generation_clock() returns false before 1.25; use the agent's pair of clocks then. */
struct to_clock {
  to_ns trace_ns;   /* time of the snapshot on the trace clock */
  uint64_t mono_ns; /* the program's monotonic clock */
  int64_t wall_s;
  int64_t wall_ns;
};
bool to_generation_clock(const struct to_generation *gen, struct to_clock *out);

/* An experimental batch of this generation. */
struct to_experimental {
  uint8_t experiment;
  int64_t thread;
  const unsigned char *data;
  size_t len;
  uint64_t offset; /* of data in the trace */
};
size_t to_generation_experimental(const struct to_generation *gen,
                                  const struct to_experimental **out);

/* Returns name and arguments of an event type, including the program's own experiments (wire/experiments.h), whose
 * type numbers are valid in one generation only. gen may be NULL for an event without a generation. */
const struct tw_spec *to_generation_spec(const struct to_generation *gen, uint8_t type);
/* Works as to_event_args() (online/event/event.h), for experiments' events, too. */
unsigned to_generation_args(const struct to_generation *gen, uint8_t type, enum tw_arg_type out[4]);
/* Returns true for this event of this experiment with these arguments in this order. labels ends with NULL. */
bool to_generation_event_is(const struct to_generation *gen, uint8_t type, const char *experiment,
                            const char *name, const char *const *labels);
/* Returns the name of the event's experiment, or NULL. */
const char *to_generation_experiment(const struct to_generation *gen, uint8_t type);

#endif

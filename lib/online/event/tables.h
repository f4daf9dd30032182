/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of a generation, filled by assemble.c and read by order.c.
 *
 * The tables hold pointers into the batches' bytes; the reader ensures that TO_BATCH_SLACK bytes after
 * each batch can be read, too. All tables keep their memory for the next generation.
 */
#ifndef TO_EVENT_TABLES_H
#define TO_EVENT_TABLES_H

#include "base/arena.h"
#include "online/event/generation.h"
#include "online/event/heap.h"
#include "online/event/ids.h"
#include "wire/batch.h"
#include "wire/experiments.h"

enum { TO_BATCH_SLACK = 16 };

struct to_batch {
  const unsigned char *data, *end;
  uint64_t time;   /* raw ticks */
  uint64_t offset; /* of data[0] in the trace */
  struct to_batch *next;
};

/* The batches of one thread, in order of arrival. */
struct to_thread_batches {
  int64_t thread;
  struct to_batch *first, *last;
};

struct to_stack {
  const unsigned char *frames;
  uint64_t id, hash; /* hash: 0 until needed */
  uint32_t nframes;
};

struct to_sample {
  int64_t m, p, g;
  uint64_t stack;
};

struct to_vec { /* bytes of a growing array */
  void *items;
  size_t count, cap;
};

struct to_generation {
  struct tb_mem *mem;
  uint64_t seed;
  unsigned version;
  uint64_t number; /* 0: nothing read yet */
  uint64_t time_min;
  double ns_per_tick; /* 0: no frequency yet */
  bool has_clock;
  uint64_t clock[4]; /* ticks, mono, sec, nsec */
  uint64_t bytes;    /* of its batches */

  struct tb_arena bytes_arena; /* copies of batches that do not stay */
  struct tb_arena batches;     /* struct to_batch */
  struct to_vec threads;       /* struct to_thread_batches, by first appearance */
  struct tb_map place_by_thread;
  struct to_vec strings; /* struct to_string */
  struct to_ids string_ids;
  struct to_vec stacks; /* struct to_stack, in order of arrival */
  struct to_ids stack_ids;
  uint64_t stack_string_max;          /* largest string id that a frame names */
  struct to_vec samples;              /* struct to_sample */
  struct to_vec sample_times;         /* struct to_heap_entry, sorted */
  struct to_vec experimental;         /* struct to_experimental */
  struct tw_experiments *experiments; /* the program's own; NULL: none declared */
  struct to_vec extra_strings;        /* struct to_string in `extra` */
  struct tb_map extra_by_hash;
  struct tb_arena extra;

  /* For stacks read by to_stack_at(): stack id -> uint16_t array in `extra`, the offset of each frame. */
  struct tb_map places_by_stack;

  /* Built when frames are first read: PC -> address of the first frame with this PC. */
  struct tb_map frame_by_pc;
  bool frames_known;
  size_t frames_next; /* stack whose frames are not in frame_by_pc yet */
  tb_rc frames_rc;    /* failure of building frame_by_pc; returned by the reader after the sink */
};

void to__generation_init(struct to_generation *gen, struct tb_mem *mem);
void to__generation_fini(struct to_generation *gen);
/* Empties gen for the next generation. */
void to__generation_clear(struct to_generation *gen);

/* Empty generations that the readers of one loop take in turn: a stream needs the tables only while it is read. They are in the
 * processor's cache then, where each stream's own would not be. */
enum { TO_GENERATIONS_KEPT = 16 };
struct to_generation_pool {
  struct tb_mem mem; /* of the generations in it */
  struct to_generation generation[TO_GENERATIONS_KEPT];
  size_t n;
};
/* resize, self: as in tb_mem_init(). What they allocate backs the mem of all that take and give, too. bytes_max: of what it keeps. */
void to_generation_pool_init(struct to_generation_pool *pool, tb_mem_resize_fn *resize, void *self,
                             size_t bytes_max);
void to_generation_pool_fini(struct to_generation_pool *pool); /* accepts a zeroed one */
/* Initialises gen with tables of the pool, or with none. Their memory is charged to mem. */
void to__generation_take(struct to_generation *gen, struct to_generation_pool *pool,
                         struct tb_mem *mem);
/* Gives the tables of gen to the pool, or frees them if it has enough. */
void to__generation_give(struct to_generation *gen, struct to_generation_pool *pool);

/* Adds one uninitialised item. */
TB_MUST tb_rc to__vec_add(struct tb_mem *mem, struct to_vec *vec, size_t item_bytes, void **out);

/* Converts ticks to nanoseconds as Go's reader does: a double product, truncated towards zero; out of range it
 * is INT64_MIN, as the processor's conversion returns. */
static inline to_ns to__ticks_ns(double ns_per_tick, uint64_t ticks) {
  double ns = (double)ticks * ns_per_tick;

  return ns < 9223372036854775808.0 && ns >= -9223372036854775808.0 ? (to_ns)ns : INT64_MIN;
}

/* Stores a text for to_generation_extra_string(); the id is 0 for the empty text. */
TB_MUST tb_rc to__extra_string(struct to_generation *gen, struct to_string text, uint64_t *out_id);

TB_MUST tb_rc to__frames_make(struct to_generation *gen);
/* Adds about so many frames to frame_by_pc. TB_AGAIN: more left. */
TB_MUST tb_rc to__frames_make_some(struct to_generation *gen, size_t frames);

#endif

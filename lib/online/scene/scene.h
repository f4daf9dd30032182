/* SPDX-License-Identifier: Apache-2.0 */
/* One generation as a picture needs it: its spans in an array, by goroutine and in the order of time.
 *
 *   TB_TRY(to_scene_new(mem, &source, diag, &scene));                     -- online/scene/source.h
 *   to_picture_add(picture, scene);                                       -- online/scene/picture.h
 *   to_scene_free(scene);
 *
 * A generation is read alone, so a cache can free a scene and make it again. A span that began earlier has no known
 * begin, and one that has not ended is open: pictures join them.
 *
 * Memory    from mem: 40 bytes a span, 24 a goroutine, 48 for each task, region, range, log, sample and metric; each name
 *           once. In to_scene_new() also a reader and spans. The source's bytes are not used afterwards.
 * Threads   any number of threads may read a finished scene.
 * Time      nanoseconds of the trace clock.
 * Errors    those of online/trace/reader.h and online/spans/spans.h; TB_END: source->go_on() returned false.
 */
#ifndef TO_SCENE_SCENE_H
#define TO_SCENE_SCENE_H

#include "online/scene/source.h"
#include "online/scene/texts.h"
#include "online/spans/spans.h"

enum to_look {
#define TO_LOOK(ID, name) TO_LOOK_##ID,
#include "online/scene/looks.def"
#undef TO_LOOK
  TO_LOOKS
};
const char *to_look_name(enum to_look look); /* "running" */

enum { TO_SCENE_NONE = UINT32_MAX };

struct to_scene_span {
  to_ns from, until;
  uint32_t goroutine; /* index in goroutine[] */
  int32_t proc;       /* -1: none */
  uint32_t thread;    /* index in thread[]; TO_SCENE_NONE */
  uint8_t look;       /* RUNNING to WAITING_GC */
  bool from_known, open;
};

struct to_scene_goroutine {
  int64_t id;
  uint32_t entry; /* number of the entry function's name; 0: unknown */
  bool entry_is_sure;
  uint32_t first, n; /* in span[] */
};

/* A task, region, range, log, sample or metric. */
struct to_scene_mark {
  to_ns from, until;
  uint64_t value;     /* a metric's value; a task's id; the id of a region's or log's task */
  uint32_t goroutine; /* TO_SCENE_NONE */
  uint32_t name;
  uint8_t look;  /* STW and all after it */
  uint8_t state; /* for a metric: enum to_metric */
  bool from_known, open;
};

/* The spans on each P or thread: indices in span[], in the order of time. */
struct to_scene_order {
  uint32_t *first; /* by P or thread: begin of its indices in span[]; then the end of the last */
  uint32_t *span;
  size_t of; /* number of Ps or threads */
  size_t n;
};

struct to_scene {
  struct tb_mem *mem;
  uint64_t gen;
  enum to_program program; /* in whose words people read it */
  to_ns from, until;
  bool has_clock;
  struct to_clock clock;
  struct to_texts names;
  struct to_scene_span *span; /* by goroutine, then by time */
  size_t spans, spans_room;
  struct to_scene_mark *mark; /* in the order of their ends */
  size_t marks, marks_room;
  struct to_scene_goroutine *goroutine; /* sorted by id */
  size_t goroutines, goroutines_room;
  int64_t *thread;
  size_t threads, threads_room;
  struct to_scene_order on_proc, on_thread;
};

TB_MUST tb_rc to_scene_new(struct tb_mem *mem, const struct to_scene_source *source,
                           struct tb_diag *diag, struct to_scene **out);
void to_scene_free(struct to_scene *scene); /* accepts NULL */

#endif

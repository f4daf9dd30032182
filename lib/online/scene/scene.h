/* SPDX-License-Identifier: Apache-2.0 */
/* One generation as a picture needs it: its spans in columns, by goroutine and in the order of time.
 *
 *   TB_TRY(to_scene_new(mem, &source, diag, &scene));                     -- online/scene/source.h
 *   to_picture_add(picture, scene);                                       -- online/scene/picture.h
 *   to_scene_free(scene);
 *
 * A generation is read alone, so each can be kept, dropped and made again by itself. A span that began before has no known
 * begin, and one that goes on is open: neighbours are joined when they are drawn.
 *
 * Memory    from mem: 40 bytes a span, 24 a goroutine, 48 for each task, region, range, log, sample and metric; names once.
 *           While it is made, what a reader and spans take. Nothing is lent: the bytes may go.
 * Threads   use each object from one thread at a time. One that is made is only read: by any number at once.
 * Time      nanoseconds of the trace clock.
 * Errors    those of online/trace/reader.h and online/spans/spans.h; TB_END: source->go_on() said no.
 */
#ifndef TO_SCENE_SCENE_H
#define TO_SCENE_SCENE_H

#include "online/scene/source.h"
#include "online/scene/texts.h"
#include "online/spans/spans.h"

/* How a stretch is drawn. */
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
  uint32_t goroutine; /* index of goroutine[] */
  int32_t proc;       /* -1: none */
  uint32_t thread;    /* index of thread[]; TO_SCENE_NONE */
  uint8_t look;       /* RUNNING to WAITING_GC */
  bool from_known, open;
};

struct to_scene_goroutine {
  int64_t id;
  uint32_t entry; /* name of the function that it began in; 0: not known */
  bool entry_is_sure;
  uint32_t first, n; /* of span[] */
};

/* What is no state of a goroutine. */
struct to_scene_mark {
  to_ns from, until;
  uint64_t value;     /* of a metric; of a task its id; of a region and a log that of their task */
  uint32_t goroutine; /* TO_SCENE_NONE */
  uint32_t name;
  uint8_t look;  /* STW to the last */
  uint8_t state; /* of a metric: enum to_metric */
  bool from_known, open;
};

/* Which spans were on a P, on a thread: numbers of span[], in the order of time. */
struct to_scene_order {
  uint32_t
      *first; /* where those of each P or thread begin in span[], and where the last ones end */
  uint32_t *span;
  size_t of; /* Ps, threads */
  size_t n;
};

struct to_scene {
  struct tb_mem *mem;
  uint64_t gen;
  to_ns from, until;
  bool has_clock;
  struct to_clock clock;
  struct to_texts names;
  struct to_scene_span *span; /* by goroutine, then by time */
  size_t spans, spans_room;
  struct to_scene_mark *mark; /* in the order of their end */
  size_t marks, marks_room;
  struct to_scene_goroutine *goroutine; /* by id */
  size_t goroutines, goroutines_room;
  int64_t *thread;
  size_t threads, threads_room;
  struct to_scene_order on_proc, on_thread;
};

TB_MUST tb_rc to_scene_new(struct tb_mem *mem, const struct to_scene_source *source,
                           struct tb_diag *diag, struct to_scene **out);
void to_scene_free(struct to_scene *scene); /* accepts NULL */

#endif

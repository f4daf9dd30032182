/* SPDX-License-Identifier: Apache-2.0 */
/* A timeline's view of a stretch of a stream: lanes of cells, no finer than the timeline's pixels.
 *
 *   TB_TRY(to_picture_new(mem, &ask, &picture));
 *   for each generation, in order: TB_TRY(to_picture_add(picture, scene));   -- online/scene/scene.h; can be freed then
 *   TB_TRY(to_picture_end(picture));
 *   for (size_t i = 0; i < picture->lanes; i++) draw(&picture->lane[i]);
 *
 * A stretch of at least a pixel is a cell of its own, exact to `unit`. Shorter ones are summed up by pixel: the cell has
 * the look that took most of the pixel (waiting only if there is nothing else) and the share that it took.
 *
 *   PROC       what runs on a P: subject is the goroutine, name its entry function
 *   THREAD     what runs on a thread: likewise
 *   GOROUTINE  states of a goroutine. name: of the lane, its entry function
 *   GROUP      all goroutines of an entry function: share is the average number with this look, in 256ths
 *   COUNT      value: average number of goroutines running, runnable, in calls and waiting (ids 0 to 3)
 *   RANGE      stops of the world (id STW; name: why), phases of GC marking (id GC_MARK)
 *   TASK       subject is the task, name its type; as many rows as needed, up to TO_PICTURE_ROWS
 *   REGION     regions and mark assists of a GOROUTINE lane, which has the same id; rows as above
 *   LOG        log messages: subject is the goroutine, name the message
 *   SAMPLE     CPU samples: subject is the goroutine
 *   METRIC     id: enum to_metric; value
 *
 * Memory    from mem: 24 bytes a cell, at most twice as many cells a lane as there are pixels; 32 bytes a pixel and group.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM.
 */
#ifndef TO_SCENE_PICTURE_H
#define TO_SCENE_PICTURE_H

#include "online/scene/scene.h"

enum to_lane_kind {
  TO_LANE_COUNT,
  TO_LANE_METRIC,
  TO_LANE_RANGE,
  TO_LANE_LOG,
  TO_LANE_SAMPLE,
  TO_LANE_TASK,
  TO_LANE_PROC,
  TO_LANE_THREAD,
  TO_LANE_GROUP,
  TO_LANE_GOROUTINE,
  TO_LANE_REGION,
  TO_LANE_KINDS
};
const char *to_lane_kind_name(enum to_lane_kind kind); /* "proc" */

enum {
  TO_PICTURE_ROWS = 24,
  TO_PICTURE_GROUPS = 400, /* further groups share one lane: name 0 */
  TO_PICTURE_PX_MAX = 8192,
  TO_PICTURE_GOROUTINES_MAX = 1000,
};

enum {
  TO_CELL_MIXED = 1,        /* a sum of stretches shorter than a pixel */
  TO_CELL_BEGAN_BEFORE = 2, /* begin not seen, or cut off by the picture's edge */
  TO_CELL_GOES_ON = 4,      /* end not seen, or cut off by the picture's edge */
};
struct to_cell {
  union {
    uint64_t subject;
    double value;
  };
  uint32_t from, until; /* in units, from the picture's begin */
  uint32_t name;        /* number in names */
  uint16_t share;       /* 65535: the whole pixel */
  uint8_t look, flags;
};

struct to_lane {
  uint8_t kind;
  uint8_t row;
  int64_t id;
  uint32_t name;
  struct to_cell *cell; /* in the order of time; they do not overlap */
  size_t cells, room;
  struct to_cell_builder *builder; /* NULL after to_picture_end() */
};

struct to_picture_ask {
  to_ns from, until; /* until > from */
  unsigned px;       /* 1 to TO_PICTURE_PX_MAX */
  uint32_t kinds;    /* bits of enum to_lane_kind */
  /* Which goroutines get a lane: of those with one of `ids`, with `entry` and with an id greater than `after`, the
   * `limit` with the lowest ids. */
  const int64_t *ids;
  size_t n_ids; /* 0: any */
  bool has_entry;
  struct to_string entry; /* lent */
  int64_t after;
  size_t limit; /* at most TO_PICTURE_GOROUTINES_MAX */
};

struct to_picture {
  struct tb_mem *mem;
  struct to_picture_ask ask;
  to_ns unit, px_ns;
  struct to_texts names;
  struct to_lane *lane;
  size_t lanes, lanes_room;
  size_t goroutines;    /* lanes of goroutines */
  bool more_goroutines; /* more goroutines than the limit */
  uint64_t left_out;    /* tasks and regions without a row */
  struct to_picture_work *work;
};

TB_MUST tb_rc to_picture_new(struct tb_mem *mem, const struct to_picture_ask *ask,
                             struct to_picture **out);
void to_picture_free(struct to_picture *picture); /* accepts NULL */
TB_MUST tb_rc to_picture_add(struct to_picture *picture, const struct to_scene *scene);
/* Finishes the picture: nothing can be added. Sorts lanes by kind, then id (groups: name), then row. */
TB_MUST tb_rc to_picture_end(struct to_picture *picture);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that make a picture:
 *
 *   picture.c  lanes, and the spans of a scene on them
 *   cell_builder.c    cells of one lane, merged by pixel
 *   counts.c   numbers of goroutines by state: of groups, and of all
 *   rows.c     tasks and regions, which overlap */
#ifndef TO_SCENE_PICTURE_WORK_H
#define TO_SCENE_PICTURE_WORK_H

#include "online/scene/picture.h"

/* A stretch to draw. */
struct to_stroke {
  to_ns from, until;
  uint64_t subject;
  uint32_t name;
  uint8_t look;
  bool from_known, open;
};

/* cell_builder.c: draws strokes in the order of time, without the part that overlaps an earlier one. */
TB_MUST tb_rc to__draw(struct to_picture *p, struct to_lane *lane, const struct to_stroke *stroke);
/* Draws a moment. Those of one pixel share a cell, which counts them. */
TB_MUST tb_rc to__draw_moment(struct to_picture *p, struct to_lane *lane,
                              const struct to_stroke *stroke);
TB_MUST tb_rc to__draw_value(struct to_picture *p, struct to_lane *lane, to_ns at, double value);
/* Finishes the lane. until: the end of the last value. */
TB_MUST tb_rc to__draw_end(struct to_picture *p, struct to_lane *lane, to_ns until);
void to__cell_builder_free(struct to_picture *p, struct to_lane *lane);
/* Appends a cell without merging. */
TB_MUST tb_rc to__put_cell(struct to_picture *p, struct to_lane *lane, const struct to_cell *cell);
uint32_t to__unit_of(const struct to_picture *p, to_ns at); /* clipped to the picture */

/* counts.c */
struct to_counts;
TB_MUST tb_rc to__counts_new(struct to_picture *p, struct to_counts **out);
void to__counts_free(struct to_picture *p, struct to_counts *counts);
void to__counts_add(const struct to_picture *p, struct to_counts *counts,
                    const struct to_scene_span *span);
TB_MUST tb_rc to__counts_draw_group(struct to_picture *p, struct to_counts *counts,
                                    struct to_lane *lane);
/* which: 0 running, 1 runnable, 2 in calls, 3 waiting. */
TB_MUST tb_rc to__counts_draw(struct to_picture *p, struct to_counts *counts, unsigned which,
                              struct to_lane *lane);

/* rows.c */
struct to_rows;
TB_MUST tb_rc to__rows_new(struct to_picture *p, struct to_rows **out);
void to__rows_free(struct to_picture *p, struct to_rows *rows);
/* Adds a task or region, or joins it with its earlier part, by generation. id: the lanes'. */
TB_MUST tb_rc to__rows_add(struct to_picture *p, struct to_rows *rows, enum to_lane_kind kind,
                           int64_t id, const struct to_stroke *stroke);
TB_MUST tb_rc to__rows_draw(struct to_picture *p, struct to_rows *rows);

/* picture.c: finds or makes a lane. */
TB_MUST tb_rc to__lane(struct to_picture *p, enum to_lane_kind kind, int64_t id, unsigned row,
                       uint32_t name, size_t *out);

#endif

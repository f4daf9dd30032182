/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of this room:
 *
 *   timeline.c  a picture of a stretch, generation by generation
 *   scenes.c    generations in memory
 *   places.c    finds the generations of a stretch in the archive
 *   answer.c    a picture as JSON and in binary
 *   moment.c    one span
 *   state.c     all goroutines of one moment
 *   one.c       reads one generation for moment.c and state.c
 *   stretch.c   reports of a stretch
 *   why.c       why something took so long
 *   frames.c    stacks as JSON
 */
#ifndef TC_TIMELINE_PRIVATE_H
#define TC_TIMELINE_PRIVATE_H

#include <sys/queue.h>

#include "collector/timeline/timeline.h"

enum { TC__TIMELINE_HEADER_BYTES = 16 };

struct tc__scene {
  TAILQ_ENTRY(tc__scene) by_use;
  unsigned char stream[TC_TIMELINE_STREAM_BYTES];
  uint64_t gen;
  to_ns after; /* tc__place.after when the scene was made */
  struct tb_mem mem;
  struct to_scene *scene;
};

struct tc_timeline {
  struct tb_mem mem; /* limit of all memory */
  bool is_full;      /* the last allocation failed by the limit, with no scene left to free */
  TAILQ_HEAD(tc__scenes, tc__scene) scenes; /* the last used one is at the end */
};

/* places.c */
struct tc__place {
  uint64_t segment, gen, offset, bytes;
  uint64_t from_wall_ns, until_wall_ns;
  to_ns last;  /* last event; 0: unknown */
  to_ns after; /* last event of the generation before; 0: unknown */
  bool expired;
};
struct tc__places {
  struct tb_mem *mem;
  struct tc__place *place; /* sorted by generation */
  size_t n, room;
  char service[65], instance[65];
  bool wall_estimated;
  char next[80]; /* place of the next page */
};
void tc__places_fini(struct tc__places *places);
/* Finds the generations that overlap from..until; both 0: the newest. */
TB_MUST tb_rc tc__places_find(struct tc_query_session *session, const unsigned char *stream,
                              uint64_t from_wall_ns, uint64_t until_wall_ns, struct tb_diag *diag,
                              struct tc__places *out);
/* TB_BUDGET: too many bytes for one answer. */
TB_MUST tb_rc tc__places_check_size(const struct tc__places *places, struct tb_diag *diag);
TB_MUST tb_rc tc__places_find_gen(struct tc_query_session *session, const unsigned char *stream,
                                  uint64_t gen, struct tb_diag *diag, struct tc__places *out);

/* scenes.c */
struct tc__bytes {
  unsigned char header[TC__TIMELINE_HEADER_BYTES];
  unsigned char *bytes;
  size_t len;
  struct tb_mem mem;
};
/* Makes mem an allocator within the timeline's limit, which frees scenes if there is not enough memory. */
void tc__mem_init(struct tc_timeline *t, struct tb_mem *mem);
/* rc: result of a call that used such a mem. Returns TB_BUDGET, with diag, if the limit was reached; else rc. */
tb_rc tc__mem_rc(const struct tc_timeline *t, tb_rc rc, struct tb_diag *diag);
/* Reads a generation from the archive. */
TB_MUST tb_rc tc__bytes_read(struct tc_timeline *t, struct tc_query_session *session,
                             const struct tc__place *place, struct tb_diag *diag,
                             struct tc__bytes *out);
void tc__bytes_free(struct tc__bytes *bytes);
/* place and bytes must stay valid while the source is used. */
struct to_scene_source tc__bytes_source(const struct tc__place *place,
                                        const struct tc__bytes *bytes, bool (*go_on)(void *self),
                                        void *self);
void tc__scenes_drop_all(struct tc_timeline *t);
/* Returns a scene, lent until the next call. TB_BROKEN and other codes of online/trace/reader.h: the generation is faulty. */
TB_MUST tb_rc tc__scenes_get(struct tc_timeline *t, struct tc_query_session *session,
                             const struct tc_timeline_ask *ask, const struct tc__place *place,
                             struct tb_diag *diag, const struct to_scene **out);

/* one.c */
struct tc__one_ask {
  const unsigned char *stream;
  uint64_t gen;
  bool (*go_on)(void *self);
  void *self;
};
typedef tb_rc tc__one_fn(void *self, struct tb_mem *mem, const struct to_scene_source *source,
                         struct tb_diag *diag);
/* Reads a generation and returns look(look_self, ...), which gets memory within the timeline's limit. */
TB_MUST tb_rc tc__one_read(struct tc_timeline *t, struct tc_query_session *session,
                           const struct tc__one_ask *ask, struct tb_diag *diag, struct tb_mem *mem,
                           tc__one_fn *look, void *look_self);
/* frames.c */
void tc__put_frame(struct tb_buf *out, const struct to_frame *frame);
/* Writes ,"NAME":[frames]; stack NULL: no frames. */
void tc__put_stack(struct tb_buf *out, const char *name, const struct to_callstack *stack);

#endif

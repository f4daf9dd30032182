/* SPDX-License-Identifier: Apache-2.0 */
/* Timelines of archived streams: generations are found, read, ordered again and drawn.
 *
 *   struct tc_timeline_answer a;
 *   tc_timeline_answer_init(&a, mem);
 *   tb_rc rc = tc_timeline_draw(timeline, session, &ask, &diag, &a);
 *   if (rc == TB_OK) tc_timeline_json(&a, &buf);                          -- docs/HTTP.md
 *   tc_timeline_answer_fini(&a);
 *
 * Generations of the last pictures stay in memory as columns, so that the next picture of the same stretch needs no file.
 *
 * Memory    memory_max for these and for the generation that is being read; a picture is allocated from the caller's mem.
 * Threads   one call at a time, on any thread; calls read files and take long. ask->go_on may cancel a call.
 * Time      of the traced host's wall clock, nanoseconds since 1970.
 * Errors    TB_NOTFOUND: no such stream or time, or its bytes have expired; TB_BUDGET: too much at once; TB_END:
 *           cancelled; TB_IO, TB_NOMEM. A generation that cannot be ordered is a hole in the picture.
 */
#ifndef TC_TIMELINE_TIMELINE_H
#define TC_TIMELINE_TIMELINE_H

#include "base/buf.h"
#include "collector/query/session.h"
#include "online/scene/moment.h"
#include "online/scene/picture.h"
#include "online/scene/state.h"
#include "online/why/interval.h"

enum { TC_TIMELINE_STREAM_BYTES = 16 };

struct tc_timeline;

struct tc_timeline *tc_timeline_new(size_t memory_max); /* NULL: out of memory */
void tc_timeline_free(struct tc_timeline *timeline);    /* accepts NULL */
/* Frees the generations in memory. */
void tc_timeline_rest(struct tc_timeline *timeline);

struct tc_timeline_ask {
  unsigned char stream[TC_TIMELINE_STREAM_BYTES];
  uint64_t from_wall_ns, until_wall_ns; /* both 0: the stream's newest generation */
  struct to_picture_ask picture;        /* its times are not used */
  bool (*go_on)(void *self);
  void *self;
};

struct tc_timeline_generation {
  uint64_t gen, segment;
  uint64_t from_wall_ns, until_wall_ns;
  const char *state; /* "ok", "expired", or the reason of a hole as in `list`, such as "broken" */
  char why[160];     /* reason of a hole; "": expired */
};

struct tc_timeline_answer {
  struct tb_mem *mem;
  char service[65], instance[65];
  unsigned char stream[TC_TIMELINE_STREAM_BYTES];
  uint64_t from_wall_ns, until_wall_ns;
  enum to_program program; /* in whose words people read it */
  bool wall_estimated;     /* the trace has no wall clock (before Go 1.25) */
  struct to_picture *picture;
  struct tc_timeline_generation *generation;
  size_t generations, room;
};

void tc_timeline_answer_init(struct tc_timeline_answer *answer, struct tb_mem *mem);
void tc_timeline_answer_fini(struct tc_timeline_answer *answer);
TB_MUST tb_rc tc_timeline_draw(struct tc_timeline *timeline, struct tc_query_session *session,
                               const struct tc_timeline_ask *ask, struct tb_diag *diag,
                               struct tc_timeline_answer *out);

/* answer.c: formats of docs/HTTP.md. */
void tc_timeline_json(const struct tc_timeline_answer *answer, struct tb_buf *out);
void tc_timeline_binary(const struct tc_timeline_answer *answer, struct tb_buf *out);

struct tc_timeline_moment_ask {
  unsigned char stream[TC_TIMELINE_STREAM_BYTES];
  uint64_t gen;
  struct to_moment_ask moment; /* on the trace's clock */
  bool (*go_on)(void *self);
  void *self;
};
/* moment.c: one span with its stacks, as JSON. */
TB_MUST tb_rc tc_timeline_moment(struct tc_timeline *timeline, struct tc_query_session *session,
                                 const struct tc_timeline_moment_ask *ask, struct tb_diag *diag,
                                 struct tb_buf *out);

struct tc_timeline_state_ask {
  unsigned char stream[TC_TIMELINE_STREAM_BYTES];
  uint64_t gen;
  to_ns at; /* on the trace's clock */
  bool (*go_on)(void *self);
  void *self;
};
/* state.c: all goroutines at one moment, as JSON. */
TB_MUST tb_rc tc_timeline_state(struct tc_timeline *timeline, struct tc_query_session *session,
                                const struct tc_timeline_state_ask *ask, struct tb_diag *diag,
                                struct tb_buf *out);

struct tc_timeline_stretch_ask {
  unsigned char stream[TC_TIMELINE_STREAM_BYTES];
  uint64_t from_wall_ns, until_wall_ns; /* both 0: the stream's newest generation */
  const char *kind;                     /* kind of report; NULL: all */
  size_t rows_max;                      /* per table */
  bool (*go_on)(void *self);
  tb_rc (*take)(void *self, const void *report, size_t len); /* a packed StreamReport, lent */
  void *self;
};
/* stretch.c: makes reports of the generations that overlap a stretch; a broken one is a hole. mem: for their places. */
TB_MUST tb_rc tc_timeline_stretch(struct tc_timeline *timeline, struct tc_query_session *session,
                                  const struct tc_timeline_stretch_ask *ask, struct tb_mem *mem,
                                  struct tb_diag *diag);

struct tc_timeline_why_ask {
  unsigned char stream[TC_TIMELINE_STREAM_BYTES];
  uint64_t from_wall_ns, until_wall_ns; /* both 0: the stream's newest generation */
  struct to_why_ask of;                 /* time on the trace's clock */
  size_t rows_max;                      /* rows of the path; 0: all */
  bool (*go_on)(void *self);
  void *self;
};
/* why.c: explains why one task, region or wait took so long, as JSON. Uses only generations after the stretch's last hole. */
TB_MUST tb_rc tc_timeline_why(struct tc_timeline *timeline, struct tc_query_session *session,
                              const struct tc_timeline_why_ask *ask, struct tb_diag *diag,
                              struct tb_buf *out);

#endif

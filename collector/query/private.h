/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of this room. */
#ifndef TC_QUERY_PRIVATE_H
#define TC_QUERY_PRIVATE_H

#include <pthread.h>

#include "base/arena.h"
#include "collector/query/session.h"

enum {
  TC__ANSWER_MEMORY_MAX = 64 << 20, /* memory of one answer */
  TC__SEGMENTS = 1000,              /* default limit of an answer */
  TC__SEGMENTS_MAX = 10000,
  TC__STREAMS_MAX = 1000,
  TC__SETTLE_MS = 10000,
  TC__REBUILD_MS = 3000, /* wait for a catalog that is being rebuilt */
};

struct tc_query {
  struct tc_query_env env;
  pthread_mutex_t lock;   /* for the fields below */
  pthread_cond_t changed; /* settled or stopping changed */
  bool stopping;
  uint64_t asked, settled; /* numbers of barriers */
};

struct tc_query_session {
  struct tc_query *query;
  struct tc_catalog *catalog; /* opened by the first question */
  struct tb_mem mem;
  struct tb_arena arena; /* the last answer */
};

/* Defines tc_query_NAME(), which calls answer_NAME(). */
#define TC__QUESTION(name, Message)                                                                \
  tb_rc tc_query_##name(struct tc_query_session *s,                                                \
                        const Tracecollect__V1__##Message##Request *ask, struct tb_diag *diag,     \
                        Tracecollect__V1__##Message##Reply **out) {                                \
    tb_arena_reset(&s->arena);                                                                     \
    return tc__query_end(s, answer_##name(s, ask, diag, out), diag);                               \
  }

/* Copy into the arena. */
TB_MUST tb_rc tc__query_text(struct tb_arena *arena, const char *text, char **out);
TB_MUST tb_rc tc__query_bytes(struct tb_arena *arena, const void *bytes, size_t n,
                              ProtobufCBinaryData *out);
/* Waits until everything submitted before is in files. */
TB_MUST tb_rc tc__query_settle(struct tc_query_session *s, struct tb_diag *diag);
/* Waits until a rebuild of the catalog is finished: before that rows are missing. */
TB_MUST tb_rc tc__query_await_rebuild(struct tc_query_session *s, struct tb_diag *diag);
/* Opens the catalog, or opens it again after a rebuild replaced the file. */
TB_MUST tb_rc tc__query_catalog(struct tc_query_session *s, struct tb_diag *diag);
/* Ends each question: fills diag after a failure, and has a damaged catalog rebuilt. */
TB_MUST tb_rc tc__query_end(struct tc_query_session *s, tb_rc rc, struct tb_diag *diag);
/* Is the report of the service's last minutes, as the newest one that was collected with it is? That of a connected stream always is:
 * it is only quiet. A stream whose program was killed is waited for, and stays as it was. */
bool tc__query_is_of_now(struct tc_query_session *s, const struct tc_report *report);
/* Adds up the selected streams' reports that are of now, one for each kind: of live streams, of ended ones if none is live. */
TB_MUST tb_rc tc__query_sums(struct tc_query_session *s, const struct tc_report_select *select,
                             Tracecollect__V1__ReportReply *out);
bool tc__query_is_stopping(struct tc_query *q);

/* Returns a segment's row and its file, opened for reading; the caller closes the file. */
TB_MUST tb_rc tc__query_open(struct tc_query_session *s, uint64_t id, struct tb_diag *diag,
                             struct tc_segment_row *out_row, int *out_fd);
/* Copies a message into the arena. */
TB_MUST tb_rc tc__query_move_in(struct tb_arena *arena, const ProtobufCMessage *message,
                                void **out);

#endif

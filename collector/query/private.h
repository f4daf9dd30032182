/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of this room. */
#ifndef TC_QUERY_PRIVATE_H
#define TC_QUERY_PRIVATE_H

#include <pthread.h>

#include "base/arena.h"
#include "collector/query/session.h"

enum {
  TC__ANSWER_MEMORY_MAX = 64 << 20, /* what one answer may take while it is put together */
  TC__SEGMENTS = 1000, /* in one answer that does not say how many */
  TC__SEGMENTS_MAX = 10000,
  TC__STREAMS_MAX = 1000,
  TC__SETTLE_MS = 10000,
  TC__REBUILD_MS = 3000, /* for a catalog that is being rebuilt */
};

struct tc_query {
  struct tc_query_env env;
  pthread_mutex_t lock;   /* over the rest */
  pthread_cond_t changed; /* a barrier came, or stopping */
  bool stopping;
  uint64_t asked, settled; /* numbers of barriers */
};

struct tc_query_session {
  struct tc_query *query;
  struct tc_catalog *catalog; /* opened at the first question */
  struct tb_mem mem;
  struct tb_arena arena; /* its last answer */
};

/* The public call of a question that answer_NAME() answers. */
#define TC__QUESTION(name, Message)                                                                \
  tb_rc tc_query_##name(struct tc_query_session *s,                                                \
                        const Tracecollect__V1__##Message##Request *ask, struct tb_diag *diag,     \
                        Tracecollect__V1__##Message##Reply **out) {                                \
    tb_arena_reset(&s->arena);                                                                     \
    return tc__query_end(s, answer_##name(s, ask, diag, out), diag);                               \
  }

/* Copies in the arena. */
TB_MUST tb_rc tc__query_text(struct tb_arena *arena, const char *text, char **out);
TB_MUST tb_rc tc__query_bytes(struct tb_arena *arena, const void *bytes, size_t n,
                              ProtobufCBinaryData *out);
/* Waits for everything submitted before to be in files. */
TB_MUST tb_rc tc__query_settle(struct tc_query_session *s, struct tb_diag *diag);
/* A catalog that is being rebuilt does not say yet what there is: waits for it, as a settled answer must. */
TB_MUST tb_rc tc__query_await_rebuild(struct tc_query_session *s, struct tb_diag *diag);
/* Opens it, again where another one has taken its name. */
TB_MUST tb_rc tc__query_catalog(struct tc_query_session *s, struct tb_diag *diag);
/* The end of each question: one that failed gets words, and a catalog that is damaged is rebuilt. */
TB_MUST tb_rc tc__query_end(struct tc_query_session *s, tb_rc rc, struct tb_diag *diag);
bool tc__query_is_stopping(struct tc_query *q);

/* A segment's row and its file, opened for reading; the caller closes it. */
TB_MUST tb_rc tc__query_open(struct tc_query_session *s, uint64_t id, struct tb_diag *diag,
                             struct tc_segment_row *out_row, int *out_fd);
/* A copy in the arena; what the message has does not outlive an answer otherwise. */
TB_MUST tb_rc tc__query_move_in(struct tb_arena *arena, const ProtobufCMessage *message,
                                void **out);

#endif

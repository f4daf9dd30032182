/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the archive*.c files only. */
#ifndef TC_QUERY_PRIVATE_H
#define TC_QUERY_PRIVATE_H

#include <pthread.h>

#include "archive/catalog.h"
#include "base/arena.h"
#include "collector/query/server.h"
#include "proto/archive.pb-c.h"

enum {
  TC__WORKERS = 8,
  TC__REQUEST_BYTES_MAX = 64 << 10,
  TC__ANSWER_MEMORY_MAX = 64 << 20, /* what one answer may take while it is put together */
  TC__CHUNK_BYTES = 256 << 10,
  TC__CHUNK_BYTES_MAX = 1 << 20,
  TC__SEGMENTS_MAX = 1000, /* in one answer */
  TC__SETTLE_MS = 10000,
  TC__REBUILD_MS = 3000, /* for a catalog that is being rebuilt */
  TC__SEND_MS = 30000,   /* a reader that asks and does not read must not hold a worker for ever */
};

/* A context whose question waits elsewhere, or a spare one. */
struct tc__line {
  struct tc__line *next; /* spare */
  struct tc_archive *archive;
  nng_ctx ctx;
  nng_aio *aio;
  struct tc_lease_ask ask;
};

struct tc__worker {
  struct tc_archive *archive;
  pthread_t thread;
  bool started;
  bool ended; /* under the archive's lock */
  unsigned index;
  nng_ctx ctx;
  nng_pipe pipe; /* of the question */
  nng_aio *aio;
  struct tc_catalog *catalog; /* opened at the first question */
  struct tb_mem mem;
  struct tb_arena arena;   /* the question and its answer */
  uint64_t asked, settled; /* barriers; under archive->lock */
};

struct tc_archive {
  struct tc_archive_env env;
  bool durable;
  nng_socket socket;
  struct tc_nng_listeners listeners;
  pthread_mutex_t lock;
  pthread_cond_t changed; /* a barrier came, or stopping */
  bool stopping;
  bool verifying; /* reads every byte: one worker at a time */
  struct tc__worker workers[TC__WORKERS];
  struct tc__line *lines, *spare; /* spare: under lock */
  size_t n_lines;
};

/* Waits for everything submitted before to be in files. */
TB_MUST tb_rc tc__archive_settle(struct tc__worker *w, struct tb_diag *diag);

/* Fills *reply, in w's arena, with the answer to request, or with what went wrong. True: another part will
 * answer. */
bool tc__archive_answer(struct tc__worker *w, const Tracecollect__V1__Request *request,
                        Tracecollect__V1__Reply *reply);

/* A segment's row and its file, opened for reading; the caller closes it. */
TB_MUST tb_rc tc__archive_open(struct tc__worker *w, uint64_t id, struct tb_diag *diag,
                               struct tc_segment_row *out_row, int *out_fd);

/* One chunk of a segment's file. */
TB_MUST tb_rc tc__archive_read(struct tc__worker *w, const Tracecollect__V1__ReadRequest *ask,
                               struct tb_diag *diag, Tracecollect__V1__ReadReply **out);

/* Proves the whole archive; one at a time. */
TB_MUST tb_rc tc__archive_verify(struct tc__worker *w, const Tracecollect__V1__VerifyRequest *ask,
                                 struct tb_diag *diag, Tracecollect__V1__VerifyReply **out);

/* Agents' flight recorders send what they keep; answered when they have answered. */
TB_MUST tb_rc tc__archive_snap(struct tc__worker *w, const Tracecollect__V1__SnapRequest *ask,
                               struct tb_diag *diag, Tracecollect__V1__SnapReply **out);

/* Reports that were kept. */
TB_MUST tb_rc tc__archive_history(struct tc__worker *w, const Tracecollect__V1__HistoryRequest *ask,
                                  struct tb_diag *diag, Tracecollect__V1__HistoryReply **out);
/* A copy in the arena; what the message has does not outlive an answer otherwise. */
TB_MUST tb_rc tc__archive_move_in(struct tb_arena *arena, const ProtobufCMessage *message,
                                  void **out);

/* What rules of triggers have fired. */
TB_MUST tb_rc tc__archive_firings(struct tc__worker *w, const Tracecollect__V1__FiringsRequest *ask,
                                  struct tb_diag *diag, Tracecollect__V1__FiringsReply **out);
/* Rules of triggers; changed before they are shown, where the question says so. */
TB_MUST tb_rc tc__archive_trigger(struct tc__worker *w, const Tracecollect__V1__TriggerRequest *ask,
                                  struct tb_diag *diag, Tracecollect__V1__TriggerReply **out);

/* --- lease.c: questions that another part answers --- */

TB_MUST tb_rc tc__lines_open(struct tc_archive *a, struct tb_diag *diag);
/* After the leases have stopped, before the socket is closed. */
void tc__lines_close(struct tc_archive *a);
/* Hands the question of w's context to the leases and gives w another context; TB_OK: w has nothing to
 * answer. */
TB_MUST tb_rc tc__archive_lease(struct tc__worker *w, const Tracecollect__V1__Request *request,
                                struct tb_diag *diag);
bool tc__archive_is_lease(const Tracecollect__V1__Request *request);

/* A message of the reply; NULL: no memory. */
nng_msg *tc__archive_pack(const Tracecollect__V1__Reply *reply);

/* A catalog that is being rebuilt does not say yet what there is: waits for it, as a settled answer must. */
TB_MUST tb_rc tc__archive_await_rebuild(struct tc__worker *w, struct tb_diag *diag);
/* Opens it, again where another one has taken its name. */
TB_MUST tb_rc tc__archive_catalog(struct tc__worker *w, struct tb_diag *diag);
/* After a question that failed so: a catalog that is damaged is rebuilt. */
void tc__archive_look_at_catalog(struct tc__worker *w, const struct tb_diag *diag);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of this room:
 *
 *   server.c      the server, its doors and its set of connections
 *   connection.c  one connection: request heads in, one answer after the other out
 *   access.c      who may do what
 *   body.c        the body of a request
 *   audit.c       a line for each act
 *   answer.c      what an answer looks like on the wire
 *   routes.c      the function that answers each path
 *   message.c     messages: what is asked, and answers in the form the peer takes
 *   job.c         work on another thread, for one connection
 *   leases.c      leased events
 *   jobs.c        work that takes longer than a question may
 *   places.c      who is taken in and who gives way, and what one owner may have
 *   api.c         answers out of the catalog and the reports
 *   file.c        a segment's file, in chunks
 *   turns.c       who has more to be sent than fits into one turn of the loop
 *   events.c      live events for connections; live.c is their ring
 *   feed.c        messages of the feed as live events
 *   timeline.c    pictures of a stretch of a stream
 *   report_view.c few values of packed reports, for overview.c and metrics/peers.c
 */
#ifndef TC_HTTP_PRIVATE_H
#define TC_HTTP_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "base/arena.h"
#include "base/buf.h"
#include "collector/http/live.h"
#include "collector/http/request/range.h"
#include "collector/http/request/request.h"
#include "collector/http/server.h"
#include "collector/net/tcp_listener.h"
#include "collector/timeline/timeline.h"
#include "proto/route.h"
#include "tls/role.h"

enum {
  TC__ANSWER_BYTES_MAX = 64 << 20,
  TC__HEAD_BYTES_MAX = 2048, /* of an answer */
  TC__WHY_BYTES = 1024,      /* an error's text */
  TC__FILE_CHUNK_BYTES = 256 << 10,
  TC__ID_HEX = 16
};

/* --- an answer --------------------------------------------------------------------------------- */

struct tc__http_answer {
  int status;
  const char *type;
  const char *caching; /* NULL: no-store */
  const char *policy;  /* Content-Security-Policy; NULL: nothing at all */
  char tag[72];        /* ETag with its quotes; "": none */
  char message_type[80]; /* type of a message */
  bool varies;           /* Accept has been looked at */
  char fields[512];      /* more lines of the head, each with its CR LF */
  char what[96];         /* was changed, for the audit */
  uint64_t bytes;      /* Content-Length; UINT64_MAX: until the connection ends */
  struct tb_mem mem;
  struct tb_buf body; /* where the answer is not sent in pieces */
};

void tc__answer_init(struct tc__http_answer *a, const char *type);
void tc__answer_fini(struct tc__http_answer *a);
/* Makes it an error, in JSON. */
void tc__answer_fail(struct tc__http_answer *a, int status, const char *fmt, ...) TB_PRINTF(3, 4);
void tc__answer_fail_rc(struct tc__http_answer *a, tb_rc rc, const char *why);
void tc__answer_fail_as(struct tc__http_answer *a, int status, tb_rc rc, const char *why);

/* --- connections ------------------------------------------------------------------------------- */

struct tc__http_job;

/* Each has workers of its own, so that none is without one. Of jobs that wait, each owner's first one comes before
 * anyone's second. */
enum tc__http_lane_kind {
  TC__LANE_QUICK,
  TC__LANE_LONG,   /* it may take seconds */
  TC__LANE_HEALTH, /* what an operator's eyes need */
  TC__LANE_WAIT,   /* it waits for the store or for agents */
  TC__LANE_AUDIT,  /* it reads every byte there is */
  TC__LANES
};

struct tc__http_lane {
  TAILQ_HEAD(, tc__http_job) waiting; /* in order of their turns */
  unsigned running;
  uint64_t turn; /* of the job that was begun last */
};

struct tc__http_conn {
  struct tc__http_conn *next, **at; /* of the server */
  struct tc_http *http;
  const struct tc__http_door *door; /* it came by */
  struct tc_tls *tls;               /* NULL: gone, a job is still at work */
  struct tc_http_head head;
  const struct tp_route *route; /* of the request that is being answered */
  uint64_t owner;    /* of its certificate's name or, without one, its address or user (base/source.h) */
  bool greets;       /* its TLS handshake is not over */
  bool spare;        /* in a place beside connections_max: for health and metrics only */
  enum tc_role role;
  char identity[TC_IDENTITY_BYTES + 1]; /* of its certificate; "": it has none, or no good one */
  unsigned char *body;
  size_t body_len;
  uint64_t body_left; /* bytes of the request's body that have not been read */
  bool asks;          /* what it asks counts as a question of its owner's */
  bool busy;         /* an answer is under way: what comes behind waits in tls */
  bool feeding;      /* inside on_bytes(), which goes on by itself */
  bool ending;       /* no further request is read; closes once all is out */
  uint64_t unread_ms; /* when its request was seen to wait in the socket; 0: it was read, or none was seen */
  uint64_t since_ms; /* when its head began or, between two, when the last answer was out */
  uint64_t owes_ms;  /* since when a part of its answer waits in tls; 0: none does */
  uint64_t moved_ms; /* when its system last took a byte, or none was on the way to it */
  uint64_t taken;    /* bytes, by then */
  struct tc__http_job *job;    /* at most one at a time */
  struct tc__lease_wait *lease; /* likewise: a question of it is under way */
  struct tc__http_long *polled; /* its end is waited for */
  uint64_t poll_until_ms;
  struct tc__http_file *file;  /* being sent */
  struct tc_live_reader *live; /* reads live events until it ends */
  struct tc__http_rest *rest;  /* of a large answer, being sent */
  bool in_line;                /* in the server's line */
  TAILQ_ENTRY(tc__http_conn) line;
  char peer[TC_PEER_MAX + 1];
};

enum tc__door_kind { TC__DOOR_TCP, TC__DOOR_SOCKET, TC__DOOR_METRICS, TC__DOORS };

struct tc__http_door {
  struct tc_http *http;
  enum tc__door_kind kind;
  struct tc_listener *listener; /* NULL: closed */
  struct tb_hostport where;     /* as configured; "" for none, and of the unix socket */
};

struct tc_http {
  struct tc_http_env env;
  struct tc__http_door doors[TC__DOORS];
  SSL_CTX *ctx; /* of the server's certificate */
  bool is_tls;  /* TC__DOOR_TCP */
  struct tc__http_conn *first;
  size_t count;
  size_t spares;  /* of count */
  size_t greeting; /* of count: their handshakes are not over */
  size_t leaving; /* have given way, and are closing */
  struct tc_live *live;
  uv_idle_t turns;                 /* runs while line is not empty */
  TAILQ_HEAD(, tc__http_conn) line; /* those with something to be sent */
  unsigned char *turn_bytes;       /* what a turn gathers or reads, TC__FILE_CHUNK_BYTES */
  bool overview;                   /* one is being made */
  uint64_t overview_ms;            /* when the last one was begun */
  struct tc__http_feed *feed;      /* NULL: none is there */
  bool closing;
  struct tc_timeline *timeline; /* of the long job that runs */
  uint64_t timeline_ms;         /* when the last one was drawn; 0: nothing of it is in memory */
  struct tc__http_lane lanes[TC__LANES];
  LIST_HEAD(, tc__http_long) long_jobs;
  size_t longs;
  uv_async_t lease_wake; /* leases_answered has another */

  pthread_mutex_t lock; /* over the rest */
  pthread_cond_t idle;
  unsigned jobs_running;
  atomic_bool jobs_refused; /* read without the lock by jobs at work */
  struct tc_query_session *sessions[TC_HTTP_WORKERS]; /* not in use */
  unsigned desk_count;
  STAILQ_HEAD(, tc__lease_wait) leases_answered;
};

/* connection.c */
void tc__conn_accept(const struct tc__http_door *door, int fd, const char *peer);
void tc__conn_tick(struct tc__http_conn *c, uint64_t now_ms);
/* Head and body; after it the answer is out and the next request may be read. */
void tc__conn_answer(struct tc__http_conn *c, struct tc__http_answer *a);
void tc__conn_begin(struct tc__http_conn *c, const struct tc__http_answer *a); /* head only */
void tc__conn_done(struct tc__http_conn *c); /* the answer is out */
void tc__conn_fail(struct tc__http_conn *c, int status, const char *why);
void tc__conn_fail_rc(struct tc__http_conn *c, tb_rc rc, const char *why);
void tc__conn_free(struct tc__http_conn *c); /* for its last user */

/* access.c: the route of c's request. NULL: the peer was told why it has none. */
const struct tp_route *tc__access_check(struct tc__http_conn *c);
bool tc__access_may(const struct tc__http_conn *c, enum tc_act act);
enum tc__body_type { TC__BODY_OTHER, TC__BODY_JSON, TC__BODY_PROTOBUF };
enum tc__body_type tc__body_type_of(const struct tc_http_request *r);

/* audit.c: of an answer that is about to leave */
void tc__audit(const struct tc__http_conn *c, const struct tc__http_answer *a);

/* body.c: reads the body that the head has announced, then calls tc__http_answer(). */
void tc__body_begin(struct tc__http_conn *c);
size_t tc__body_take(struct tc__http_conn *c, const unsigned char *bytes, size_t n);
void tc__body_free(struct tc__http_conn *c);

/* answer.c: the head as bytes; answers its length. */
size_t tc__answer_head(const struct tc__http_answer *a, const struct tc_http_request *r, bool keep,
                       char out[TC__HEAD_BYTES_MAX]);

/* routes.c: answers, or makes c busy. */
void tc__http_dispatch(struct tc__http_conn *c);
void tc__http_no_path(struct tc__http_conn *c); /* 404, and which paths there are */
enum tc_act tc__route_act(const struct tp_route *route); /* what its user must be allowed to do */
void tc__http_answer(struct tc__http_conn *c); /* its body is whole */

/* places.c: the sink of a door's listener */
bool tc__place_ready(void *door);
bool tc__place_takes_last(void *door, unsigned left);
void tc__place_accepted(void *door, int fd, const char *peer);
void tc__place_take(struct tc__http_conn *c);
void tc__place_greeted(struct tc__http_conn *c); /* its handshake is over */
void tc__place_leave(struct tc__http_conn *c); /* gives the place back; once */
void tc__place_left(struct tc__http_conn *c);  /* its connection has ended */
/* False: c was told that it may not ask, as one that is no question of health. */
bool tc__place_may_ask(struct tc__http_conn *c);
bool tc__place_may_listen(struct tc__http_conn *c); /* the same for one more reader of live events */
bool tc__place_may_wait(struct tc__http_conn *c); /* the same for a question that others limit */

/* message.c */
struct tc__http_question {
  struct tb_mem mem;
  struct tb_arena arena;
  ProtobufCMessage *message;
};

/* What c's route asks: of a GET its parameters, else its body, on the loop. It points into the head and the body. False:
 * c was told what is wrong with it; no fini() then. */
bool tc__question_read(struct tc__http_conn *c, struct tc__http_question *q);
void tc__question_fini(struct tc__http_question *q);
bool tc__wants_protobuf(const struct tc__http_conn *c);
bool tc__asks_to_settle(const struct tc__http_conn *c); /* of TP_ROUTE_SEGMENTS */
bool tc__read_id(const struct tc__http_conn *c, uint64_t *out); /* behind the route's path */
void tc__write_id(uint64_t id, char out[TC__ID_HEX + 1]);
/* packed: as protobuf, else as JSON. */
void tc__put_message(struct tb_buf *out, bool packed, const ProtobufCMessage *message);
void tc__answer_type(struct tc__http_answer *a, bool packed, const ProtobufCMessageDescriptor *of);
void tc__answer_put(struct tc__http_answer *a, bool packed, const ProtobufCMessage *message);

/* Of a job, on its worker: what is asked, and the answer. */
bool tc__job_question(struct tc__http_job *job, struct tc__http_question *q);
void tc__job_say(struct tc__http_job *job, tb_rc rc, const struct tb_diag *diag,
                 const ProtobufCMessage *reply);

/* leases.c */
void tc__leases_start(struct tc_http *http);
void tc__leases_close(struct tc_http *http);
void tc__leases_free(struct tc_http *http);
void tc__lease_left(struct tc__http_conn *c); /* its connection has ended */
void tc__lease_open(struct tc__http_conn *c);
void tc__lease_next(struct tc__http_conn *c);
void tc__lease_release(struct tc__http_conn *c);

/* jobs.c */
void tc__verify_begin(struct tc__http_conn *c);
void tc__job_poll(struct tc__http_conn *c);
void tc__job_end(struct tc__http_conn *c);
void tc__longs_tick(struct tc_http *http);
void tc__longs_close(struct tc_http *http);

/* job.c */
struct tc__http_job {
  uv_work_t work;
  TAILQ_ENTRY(tc__http_job) in_line;
  bool waits; /* in its lane */
  uint64_t turn, owner;
  struct tc_http *http;
  struct tc__http_conn *conn; /* NULL: without an owner */
  /* On a worker. session is NULL where there was no memory for one or the server is closing; the request
   * of conn may be read, nothing else of it. */
  void (*run)(struct tc__http_job *job, struct tc_query_session *session);
  /* On the loop. False: it was called off, or its connection is gone. */
  void (*done)(struct tc__http_job *job, bool wanted);
  struct tc__http_answer answer;
  void *self;   /* run's and done's own */
  enum tc__http_lane_kind lane;
  atomic_bool called_off; /* its connection is gone */
};

/* False: no memory; the job was not begun and done() is not called. */
bool tc__job_begin(struct tc_http *http, struct tc__http_conn *c, const struct tc__http_job *like);
/* done() of a job whose answer is whole. */
void tc__job_answer(struct tc__http_job *job, bool wanted);
/* A route whose answer run() makes. */
void tc__conn_work(struct tc__http_conn *c, enum tc__http_lane_kind lane, const char *type,
                   void (*run)(struct tc__http_job *job, struct tc_query_session *session));
/* The job of a connection that has ended: does not begin, or ends as soon as it looks. */
void tc__job_call_off(struct tc__http_job *job);
/* On a worker: has the job still a reader? */
bool tc__job_is_wanted(struct tc__http_job *job);
void tc__jobs_end(struct tc_http *http); /* calls off, and waits for those at work */

/* api.c */
void tc__api_metrics(struct tc__http_job *job, struct tc_query_session *session);
void tc__api_firings(struct tc__http_job *job, struct tc_query_session *session);
void tc__api_triggers(struct tc__http_job *job, struct tc_query_session *session);
void tc__api_trigger_add(struct tc__http_job *job, struct tc_query_session *session);
void tc__api_trigger_remove(struct tc__http_job *job, struct tc_query_session *session);
void tc__api_streams(struct tc__http_job *job, struct tc_query_session *session);
void tc__api_snap(struct tc__http_job *job, struct tc_query_session *session);
void tc__api_segments(struct tc__http_job *job, struct tc_query_session *session);
void tc__api_report(struct tc__http_job *job, struct tc_query_session *session);
void tc__api_history(struct tc__http_job *job, struct tc_query_session *session);
void tc__api_reports(struct tc__http_job *job, struct tc_query_session *session);

/* timeline.c */
void tc__timeline_begin(struct tc__http_conn *c); /* of each question about a stretch of a stream */
void tc__timeline_tick(struct tc_http *http);

/* The kind of report with which the path ends; *out is empty for all. */
TB_MUST tb_rc tc__read_kind(const struct tc__http_conn *c, struct tb_diag *diag, const char **out);
/* A line of JSON; cut to so many rows a table. */
void tc__put_report(struct tb_buf *out, Tracecollect__V1__StreamReport *report, uint64_t rows);

/* turns.c */
TB_MUST tb_rc tc__turns_open(struct tc_http *http);
void tc__turns_start(struct tc_http *http); /* nothing fails behind it */
void tc__turns_close(struct tc_http *http);
void tc__turn_take(struct tc__http_conn *c); /* it may have something to be sent, or room for it */
void tc__turn_leave(struct tc__http_conn *c);
/* Sends a large body in turns, after which c is done; a has it no more. False: it is not large, or there is no memory. */
bool tc__rest_begin(struct tc__http_conn *c, struct tc__http_answer *a);
void tc__rest_free(struct tc__http_conn *c);

/* file.c */
void tc__http_file_begin(struct tc__http_conn *c);
bool tc__http_file_turn(struct tc__http_conn *c); /* sends some; true: there may be more at once */
void tc__http_file_free(struct tc__http_conn *c);

/* events.c */
TB_MUST tb_rc tc__live_open(struct tc_http *http);
void tc__live_free(struct tc_http *http);
void tc__live_begin(struct tc__http_conn *c);
void tc__live_end(struct tc__http_conn *c);  /* its connection has ended */
bool tc__live_turn(struct tc__http_conn *c); /* as tc__http_file_turn() */
void tc__live_tick(struct tc_http *http);
void tc__live_pump_all(struct tc_http *http);

/* feed.c */
TB_MUST tb_rc tc__feed_open(struct tc_http *http);
void tc__feed_listen(struct tc_http *http); /* after a reader came or went */
void tc__feed_close(struct tc_http *http);
void tc__feed_free(struct tc_http *http);

#endif

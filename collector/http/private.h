/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of this room:
 *
 *   server.c      the server and its doors (listeners)
 *   connection.c  one connection: reads requests, sends answers
 *   access.c      permissions
 *   body.c        body of a request
 *   audit.c       a log line for each change
 *   answer.c      head of an answer
 *   routes.c      functions that answer each path
 *   message.c     requests and answers as messages
 *   job.c         work of a connection on another thread
 *   leases.c      leased events
 *   jobs.c        long jobs, which are polled
 *   places.c      limits of connections and of requests per owner
 *   api.c         answers from the catalog and the reports
 *   file.c        a segment's file, in chunks
 *   turns.c       queue of connections with more to send than fits into one turn of the loop
 *   events.c      live events for connections; live.c is their ring
 *   feed.c        messages of the feed as live events
 *   timeline.c    pictures of a stretch of a stream
 *   report_view.c single values of packed reports, for overview.c and metrics/peers.c
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
  TC__HEAD_BYTES_MAX = 2048, /* head of an answer */
  TC__WHY_BYTES = 1024,      /* an error's text */
  TC__FILE_CHUNK_BYTES = 256 << 10,
  TC__ID_HEX = 16
};

/* --- an answer --------------------------------------------------------------------------------- */

struct tc__http_answer {
  int status;
  const char *type;
  const char *caching;   /* NULL: no-store */
  const char *policy;    /* Content-Security-Policy; NULL: allow nothing */
  char tag[72];          /* ETag with its quotes; "": none */
  char message_type[80]; /* content type of a message; type points here */
  bool varies;           /* the form depends on Accept */
  char fields[512];      /* more header lines, each with CR LF */
  char what[96];         /* changed object, for the audit */
  uint64_t bytes;        /* Content-Length; UINT64_MAX: until the connection ends */
  struct tb_mem mem;
  struct tb_buf body; /* unless the answer is sent in pieces */
};

void tc__answer_init(struct tc__http_answer *a, const char *type);
void tc__answer_fini(struct tc__http_answer *a);
/* Replace the answer by an error in JSON. */
void tc__answer_fail(struct tc__http_answer *a, int status, const char *fmt, ...) TB_PRINTF(3, 4);
void tc__answer_fail_rc(struct tc__http_answer *a, tb_rc rc, const char *why);
void tc__answer_fail_as(struct tc__http_answer *a, int status, tb_rc rc, const char *why);

/* --- connections ------------------------------------------------------------------------------- */

struct tc__http_job;

/* Each lane has workers of its own. The first waiting job of each owner runs before any owner's second. */
enum tc__http_lane_kind {
  TC__LANE_QUICK,
  TC__LANE_LONG,   /* may take seconds */
  TC__LANE_HEALTH, /* for the operator's monitoring */
  TC__LANE_WAIT,   /* waits for the store or for agents */
  TC__LANE_AUDIT,  /* reads the whole archive */
  TC__LANES
};

struct tc__http_lane {
  TAILQ_HEAD(, tc__http_job) waiting; /* sorted by turn */
  unsigned running;
  uint64_t turn; /* of the job that started last */
};

struct tc__http_conn {
  struct tc__http_conn *next, **at; /* list of the server */
  struct tc_http *http;
  const struct tc__http_door *door; /* door through which it was accepted */
  struct tc_tls *tls;               /* NULL: closed, but a job still runs */
  struct tc_http_head head;
  const struct tp_route *route; /* route of the current request */
  uint64_t owner; /* hash of the certificate's name, else of address or user (base/source.h) */
  bool greets;    /* TLS handshake not finished */
  bool spare;     /* in a spare place: health and metrics only (places.c) */
  enum tc_role role;
  char identity[TC_IDENTITY_BYTES + 1]; /* name in the certificate; "": none, or invalid */
  unsigned char *body;
  size_t body_len;
  uint64_t body_left; /* unread bytes of the request's body */
  bool asks;          /* counts for owner_questions_max */
  bool busy;          /* a request is being answered: later bytes wait in tls */
  bool feeding;       /* inside on_bytes(), which continues reading itself */
  bool ending;        /* no further request is read; closes after all is sent */
  uint64_t unread_ms; /* when an unread request was noticed in the socket; 0: none, or read since */
  uint64_t since_ms;  /* start of the request's head, or end of the last answer */
  uint64_t owes_ms;   /* since when bytes of an answer wait in tls; 0: none do */
  uint64_t moved_ms;  /* when the peer's host last acknowledged a byte, or nothing was unsent */
  uint64_t taken;     /* bytes acknowledged by then */
  struct tc__http_job *job;     /* at most one at a time */
  struct tc__lease_wait *lease; /* likewise: a request to the leases' thread */
  struct tc__http_long *polled; /* long job that the request waits for */
  uint64_t poll_until_ms;
  struct tc__http_file *file;  /* being sent */
  struct tc_live_reader *live; /* reader of live events, until the connection ends */
  struct tc__http_rest *rest;  /* rest of a large answer, being sent */
  bool in_line;                /* in the server's queue line */
  TAILQ_ENTRY(tc__http_conn) line;
  char peer[TC_PEER_MAX + 1];
};

enum tc__door_kind { TC__DOOR_TCP, TC__DOOR_SOCKET, TC__DOOR_METRICS, TC__DOORS };

struct tc__http_door {
  struct tc_http *http;
  enum tc__door_kind kind;
  struct tc_listener *listener; /* NULL: closed */
  struct tb_hostport where;     /* as configured; host "": none, or the unix socket */
};

struct tc_http {
  struct tc_http_env env;
  struct tc__http_door doors[TC__DOORS];
  SSL_CTX *ctx; /* context of the server's certificate */
  bool is_tls;  /* TC__DOOR_TCP uses TLS */
  struct tc__http_conn *first;
  size_t count;
  size_t spares;   /* part of count: in spare places */
  size_t greeting; /* part of count: in a TLS handshake */
  size_t leaving;  /* replaced connections that are closing */
  struct tc_live *live;
  uv_idle_t turns;                  /* runs while line is not empty */
  TAILQ_HEAD(, tc__http_conn) line; /* queue of connections with something to send */
  unsigned char *turn_bytes;        /* buffer of a turn, TC__FILE_CHUNK_BYTES */
  bool overview;                    /* an overview is being made */
  uint64_t overview_ms;             /* start of the last overview */
  struct tc__http_feed *feed;       /* NULL: no feed */
  bool closing;
  struct tc_timeline *timeline; /* used by the job in TC__LANE_LONG */
  uint64_t timeline_ms;         /* when the last one was drawn; 0: its memory is released */
  struct tc__http_lane lanes[TC__LANES];
  LIST_HEAD(, tc__http_long) long_jobs;
  size_t longs;
  uv_async_t lease_wake; /* leases_answered is not empty */

  pthread_mutex_t lock; /* for the fields below */
  pthread_cond_t idle;
  unsigned jobs_running;
  atomic_bool jobs_refused;                           /* running jobs read it without the lock */
  struct tc_query_session *sessions[TC_HTTP_WORKERS]; /* idle sessions */
  unsigned session_count;
  STAILQ_HEAD(, tc__lease_wait) leases_answered;
};

/* connection.c */
void tc__conn_accept(const struct tc__http_door *door, int fd, const char *peer);
void tc__conn_tick(struct tc__http_conn *c, uint64_t now_ms);
/* Sends head and body and ends the request. */
void tc__conn_answer(struct tc__http_conn *c, struct tc__http_answer *a);
void tc__conn_begin(struct tc__http_conn *c, const struct tc__http_answer *a); /* head only */
void tc__conn_done(struct tc__http_conn *c); /* the answer was sent: the next request may be read */
void tc__conn_fail(struct tc__http_conn *c, int status, const char *why);
void tc__conn_fail_rc(struct tc__http_conn *c, tb_rc rc, const char *why);
void tc__conn_free(struct tc__http_conn *c); /* called by the last user */

/* access.c: returns the route of c's request, or NULL after an error answer. */
const struct tp_route *tc__access_check(struct tc__http_conn *c);
bool tc__access_may(const struct tc__http_conn *c, enum tc_act act);
enum tc__body_type { TC__BODY_OTHER, TC__BODY_JSON, TC__BODY_PROTOBUF };
enum tc__body_type tc__body_type_of(const struct tc_http_request *r);

/* audit.c: logs an answer that is about to be sent */
void tc__audit(const struct tc__http_conn *c, const struct tc__http_answer *a);

/* body.c: reads the request's body, then calls tc__http_answer(). */
void tc__body_begin(struct tc__http_conn *c);
size_t tc__body_take(struct tc__http_conn *c, const unsigned char *bytes, size_t n);
void tc__body_free(struct tc__http_conn *c);

/* answer.c: writes the head; returns its length. */
size_t tc__answer_head(const struct tc__http_answer *a, const struct tc_http_request *r, bool keep,
                       char out[TC__HEAD_BYTES_MAX]);

/* routes.c: answers the request, or makes c busy. */
void tc__http_dispatch(struct tc__http_conn *c);
void tc__http_no_path(struct tc__http_conn *c);          /* 404, with a list of all paths */
enum tc_act tc__route_act(const struct tp_route *route); /* permission that the route needs */
void tc__http_answer(struct tc__http_conn *c);           /* the body is complete */

/* places.c: the sink of a door's listener */
bool tc__place_ready(void *door);
bool tc__place_takes_last(void *door, unsigned left);
void tc__place_accepted(void *door, int fd, const char *peer);
void tc__place_take(struct tc__http_conn *c);
void tc__place_greeted(struct tc__http_conn *c); /* the TLS handshake is finished */
void tc__place_leave(struct tc__http_conn *c);   /* releases the place, once */
void tc__place_left(struct tc__http_conn *c);    /* the connection has ended */
/* May c make a request that is not about health? Returns false after an error answer. */
bool tc__place_may_ask(struct tc__http_conn *c);
bool tc__place_may_listen(struct tc__http_conn *c); /* may c read live events? */
bool tc__place_may_wait(struct tc__http_conn *c); /* may c make a request with limits of its own? */

/* message.c */
struct tc__http_question {
  struct tb_mem mem;
  struct tb_arena arena;
  ProtobufCMessage *message;
};

/* Reads the request's message on the loop: from the parameters of a GET, else from the body. The message points into head
 * and body. Returns false after an error answer; then fini() is not needed. */
bool tc__question_read(struct tc__http_conn *c, struct tc__http_question *q);
void tc__question_fini(struct tc__http_question *q);
bool tc__wants_protobuf(const struct tc__http_conn *c);
/* Returns true for a GET whose answer may take seconds. */
bool tc__asks_for_time(const struct tc__http_conn *c);
bool tc__read_id(const struct tc__http_conn *c, uint64_t *out); /* id after the route's path */
void tc__write_id(uint64_t id, char out[TC__ID_HEX + 1]);
/* packed: protobuf; else JSON. */
void tc__put_message(struct tb_buf *out, bool packed, const ProtobufCMessage *message);
void tc__answer_type(struct tc__http_answer *a, bool packed, const ProtobufCMessageDescriptor *of);
void tc__answer_put(struct tc__http_answer *a, bool packed, const ProtobufCMessage *message);

/* Read the request and write the answer of a job, on its worker. */
bool tc__job_question(struct tc__http_job *job, struct tc__http_question *q);
void tc__job_say(struct tc__http_job *job, tb_rc rc, const struct tb_diag *diag,
                 const ProtobufCMessage *reply);

/* leases.c */
void tc__leases_start(struct tc_http *http);
void tc__leases_close(struct tc_http *http);
void tc__leases_free(struct tc_http *http);
void tc__lease_left(struct tc__http_conn *c); /* the connection has ended */
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
  bool waits; /* in the lane's queue */
  uint64_t turn, owner;
  struct tc_http *http;
  struct tc__http_conn *conn; /* NULL: a job of the server */
  /* Called on a worker. May read the request of conn and no other field of conn. */
  void (*run)(struct tc__http_job *job, struct tc_query_session *session);
  /* Called on the loop. wanted false: the job was cancelled, or its connection is closed. */
  void (*done)(struct tc__http_job *job, bool wanted);
  struct tc__http_answer answer;
  void *self; /* for run and done */
  enum tc__http_lane_kind lane;
  atomic_bool called_off; /* cancelled: the connection is closed */
};

/* Returns false if the job cannot be allocated; done() is not called then. */
bool tc__job_begin(struct tc_http *http, struct tc__http_conn *c, const struct tc__http_job *like);
/* done() of a job that only sends its answer. */
void tc__job_answer(struct tc__http_job *job, bool wanted);
/* Starts a job whose run() makes the answer. */
void tc__conn_work(struct tc__http_conn *c, enum tc__http_lane_kind lane, const char *type,
                   void (*run)(struct tc__http_job *job, struct tc_query_session *session));
/* Cancels a job: a waiting one does not start, a running one ends at its next tc__job_is_wanted(). */
void tc__job_call_off(struct tc__http_job *job);
/* Should the job continue? Called on a worker. */
bool tc__job_is_wanted(struct tc__http_job *job);
void tc__jobs_end(struct tc_http *http); /* cancels all jobs and waits for running ones */

/* api.c */
void tc__api_metrics(struct tc__http_job *job, struct tc_query_session *session);
void tc__api_firings(struct tc__http_job *job, struct tc_query_session *session);
void tc__api_findings(struct tc__http_job *job, struct tc_query_session *session);
void tc__api_summary(struct tc__http_job *job, struct tc_query_session *session);
void tc__api_finding_mute(struct tc__http_job *job, struct tc_query_session *session);
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
void tc__timeline_begin(struct tc__http_conn *c); /* for all timeline routes */
void tc__timeline_tick(struct tc_http *http);

/* Returns the kind of report at the end of the path; "" for all. */
TB_MUST tb_rc tc__read_kind(const struct tc__http_conn *c, struct tb_diag *diag, const char **out);
/* Writes a report as a line of JSON, with at most so many rows per table. */
void tc__put_report(struct tb_buf *out, Tracecollect__V1__StreamReport *report, uint64_t rows);

/* turns.c */
TB_MUST tb_rc tc__turns_open(struct tc_http *http);
void tc__turns_start(struct tc_http *http); /* call last: after it nothing may fail */
void tc__turns_close(struct tc_http *http);
void tc__turn_take(struct tc__http_conn *c); /* puts c into the queue */
void tc__turn_leave(struct tc__http_conn *c);
/* Moves a large body out of a and sends it in turns. Returns false if it is not large, or cannot be allocated. */
bool tc__rest_begin(struct tc__http_conn *c, struct tc__http_answer *a);
void tc__rest_free(struct tc__http_conn *c);

/* file.c */
void tc__http_file_begin(struct tc__http_conn *c);
bool tc__http_file_turn(struct tc__http_conn *c); /* sends a part; true: more at once */
void tc__http_file_free(struct tc__http_conn *c);

/* events.c */
TB_MUST tb_rc tc__live_open(struct tc_http *http);
void tc__live_free(struct tc_http *http);
void tc__live_begin(struct tc__http_conn *c);
void tc__live_end(struct tc__http_conn *c);  /* the connection has ended */
bool tc__live_turn(struct tc__http_conn *c); /* as tc__http_file_turn() */
void tc__live_tick(struct tc_http *http);
void tc__live_pump_all(struct tc_http *http);

/* feed.c */
TB_MUST tb_rc tc__feed_open(struct tc_http *http);
void tc__feed_listen(struct tc_http *http); /* after a reader joined or left */
void tc__feed_close(struct tc_http *http);
void tc__feed_free(struct tc_http *http);

#endif

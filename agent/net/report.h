/* SPDX-License-Identifier: Apache-2.0 */
/* A connection's status for other threads, and its log lines.
 *
 * Threads   the sender writes; status() may be called by any.
 */
#ifndef TA_NET_REPORT_H
#define TA_NET_REPORT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* TA_STATE(NAME): states of a client, whose names tracectl and the tests use, too */
#define TA_CLIENT_STATES(X)                                                                        \
  X(IDLE)                                                                                          \
  X(CONNECTING)                                                                                    \
  X(SECURING)                                                                                      \
  X(GREETING)                                                                                      \
  X(STREAMING)                                                                                     \
  X(LEAVING)                                                                                       \
  X(WAITING)                                                                                       \
  X(ENDED)

#define TA_CODE(name) TA_AT_##name,
enum ta_client_state { TA_CLIENT_STATES(TA_CODE) TA_CLIENT_STATE_COUNT };
#undef TA_CODE

struct ta_client_status {
  enum ta_client_state state;
  unsigned char stream[16];
  uint64_t restarted; /* earlier streams of which the collector lost acked records */
  bool refused;       /* for good */
  uint64_t connects, welcomes;
  char last_error[200]; /* why no acks arrive; empty while they do */
};

struct ta_report {
  void (*log)(void *self, int level, const char *text); /* may be NULL */
  void *log_self;
  pthread_mutex_t lock; /* of status */
  struct ta_client_status status;
};

void ta_report_init(struct ta_report *r);
void ta_report_fini(struct ta_report *r);
/* level: of syslog(3). */
void ta_report_log(struct ta_report *r, int level, const char *text);
void ta_report_state(struct ta_report *r, enum ta_client_state state);
void ta_report_connect(struct ta_report *r);
void ta_report_welcome(struct ta_report *r); /* clears last_error */
void ta_report_restart(struct ta_report *r, const unsigned char stream[16]);
void ta_report_refused(struct ta_report *r);
/* Sets last_error, and logs the text if it differs from the previous one. */
void ta_report_error(struct ta_report *r, const char *text);
/* Acks arrive again: clears last_error if it equals text. */
void ta_report_error_over(struct ta_report *r, const char *text);
void ta_report_status(struct ta_report *r, struct ta_client_status *out);

#endif

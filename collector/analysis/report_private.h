/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by report_table.c and report_asked.c. Everything is protected by the table's lock, except snapshots that a
 * reader holds. */
#ifndef TC_ANALYSIS_REPORT_PRIVATE_H
#define TC_ANALYSIS_REPORT_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "collector/analysis/report_table.h"

enum {
  TC__REPORT_NAME_MAX = 64,
  TC__REPORT_KIND_MAX = 31,
  TC__REPORT_WINDOW_MAX = 15,
  TC__REPORT_ID_PARTS = TC_REPORT_STREAM_BYTES / 4
};

struct tc__report_snapshot {
  struct tc__report_snapshot *next; /* of the same stream */
  atomic_uint holders;
  uint64_t published_ns;
  uint64_t until_wall_ns; /* 0: unknown */
  uint32_t kinds;         /* the bit of its kind; 0: an unknown kind */
  size_t len;
  char kind[TC__REPORT_KIND_MAX + 1], window[TC__REPORT_WINDOW_MAX + 1];
  unsigned char bytes[];
};

/* A reader's wait for reports of one stream. */
struct tc__report_ask {
  LIST_ENTRY(tc__report_ask) of_stream;
  struct tc__report_wait *wait;
  struct tc_report_set missing; /* empty: the ask is in no list */
};

struct tc__report_wait { /* a reader */
  struct tc__report_ask *asks;
  size_t n, missing; /* missing: those of n that still wait */
};

struct tc__report_stream {
  TAILQ_ENTRY(tc__report_stream) all;         /* in the order of creation */
  struct tc__report_stream *chain;            /* of the same bucket */
  TAILQ_ENTRY(tc__report_stream) closed_ones; /* in order of their end */
  unsigned char id[TC_REPORT_STREAM_BYTES];
  char service[TC__REPORT_NAME_MAX + 1], instance[TC__REPORT_NAME_MAX + 1];
  uint64_t ended_wall_ns; /* 0: still open */
  struct tc__report_snapshot *reports;

  struct tc_report_maker *maker; /* NULL: its reports are not made on demand */
  uint32_t ref;
  bool in_line; /* in the maker's list `asked` */
  TAILQ_ENTRY(tc__report_stream) in_asked;
  LIST_ENTRY(tc__report_stream) of_maker; /* if maker != NULL */
  struct tc_report_set outdated, asked;   /* asked: those that readers wait for */
  LIST_HEAD(, tc__report_ask) asks;
};

struct tc_report_maker {
  struct tc_reports *reports;
  void (*wake)(void *self);
  void *self;
  TAILQ_HEAD(, tc__report_stream) asked; /* with sets that the maker has not taken yet */
  LIST_HEAD(, tc__report_stream) streams;
};

struct tc_reports {
  pthread_mutex_t lock;
  pthread_cond_t answered; /* a reader has all it waits for */
  uint64_t factors[TC__REPORT_ID_PARTS];
  struct tc__report_stream **buckets;
  size_t bucket_count, streams; /* bucket_count: a power of two */
  TAILQ_HEAD(, tc__report_stream) all;
  TAILQ_HEAD(, tc__report_stream) closed_ones;
  size_t bytes, bytes_max;
  unsigned closed;
};

/* --- report_table.c --- */
struct tc__report_stream *tc__reports_find(const struct tc_reports *reports,
                                           const unsigned char *id);
/* Finds the stream, creates it if it is new, opens it if it was closed. */
TB_MUST tb_rc tc__reports_stream(struct tc_reports *reports, const unsigned char *id,
                                 const char *service, const char *instance,
                                 struct tc__report_stream **out);
bool tc__report_stream_fits(const struct tc_report_select *select,
                            const struct tc__report_stream *stream);

/* --- report_asked.c --- */
/* Requests the selected reports that are out of date, and waits. The lock is released meanwhile. TB_NOMEM. */
TB_MUST tb_rc tc__reports_ask(struct tc_reports *reports, const struct tc_report_select *select);
/* Call when the report was made, or cannot be made. */
void tc__reports_answer(struct tc_reports *reports, struct tc__report_stream *stream,
                        enum to_analysis_kind kind, enum to_window window);
/* Ends making reports of the stream. */
void tc__reports_leave(struct tc_reports *reports, struct tc__report_stream *stream);

#endif

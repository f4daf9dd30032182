/* SPDX-License-Identifier: Apache-2.0 */
/* Findings: what was wrong with services, since when, and whether it still is.
 *
 *   loops ──see──> findings ──turn──> STATE/findings
 *                  │        └───────> those not seen for a while end; those that ended long ago are forgotten
 *   readers <──────┘          a finding that begins ──> keeps: its part of the trace outlives retention.age
 *
 * There is one finding for each service, kind, place and cause, no matter how many instances show it and how often. Its id is a hash of
 * these four texts, so it is the same after a restart of the collector or of an instance. A finding that has ended and is seen
 * again is open again. It is shown with the times when it was open, and with the part of a trace in which it last began.
 *
 * The file `findings` of the state folder has one line for each (line.c). It is replaced as a whole, soon after a finding has begun or
 * ended, otherwise once a minute.
 *
 * Memory    at most TC_FINDINGS_MAX of some 3 KiB, and findings.max of a service. A further one replaces the finding of its service
 *           that ended first, or was seen first if all are open; at TC_FINDINGS_MAX: of the service that has the most.
 * Threads   any, except open and free. Each call takes one lock for a short time.
 * Errors    TB_IO: the file cannot be read or written; TB_NOMEM, TB_NOTFOUND.
 */
#ifndef TC_FINDINGS_FINDINGS_H
#define TC_FINDINGS_FINDINGS_H

#include "base/result.h"
#include "collector/findings/part.h"
#include "collector/keep/keeps.h"
#include "config/table.h"
#include "proto/names.h"

enum {
  TC_FINDINGS_MAX = 4000,
  TC_FINDING_KIND_BYTES = 16,
  TC_FINDING_PLACE_BYTES = 240,
  TC_FINDING_WORDS_BYTES = 900,
  TC_FINDING_REASON_BYTES = 120,
  TC_FINDING_INSTANCES = 8,
  TC_FINDING_TIMES = 8,
};

/* A stretch of time in which a finding was open. Wall clock of the traced program. */
struct tc_finding_time {
  uint64_t began_ns, last_ns;
  uint64_t peak;
};

struct tc_finding {
  uint64_t id;
  char kind[TC_FINDING_KIND_BYTES]; /* "leak" */
  char service[TC_NAME_MAX + 1];
  char place[TC_FINDING_PLACE_BYTES]; /* "main.reserve:27"; "": none */
  char cause
      [TC_FINDING_PLACE_BYTES]; /* tells findings of the same kind and place apart; "": nothing does */
  char words[TC_FINDING_WORDS_BYTES]; /* a sentence for people */
  uint64_t began_ns, last_ns;         /* when it was first and last seen */
  uint64_t ended_ns;                  /* 0: it is open */
  uint64_t seen_ns;                   /* when it was last seen, by the collector's clock */
  uint64_t read_last_ns;              /* last_ns in the file of findings; 0: it was not in it */
  uint64_t count;                     /* how often it began, in all instances */
  uint64_t peak;                      /* most goroutines, or longest time in ns; 0: neither */
  bool is_time;                       /* peak is a time */
  unsigned instances;                 /* the newest ones, the newest last */
  char instance[TC_FINDING_INSTANCES][TC_NAME_MAX + 1];
  unsigned times; /* the newest ones, the newest last */
  struct tc_finding_time time[TC_FINDING_TIMES];
  unsigned char stream[TC_STREAM_BYTES]; /* where it last began */
  uint64_t gen;
  uint64_t from_ns, until_ns; /* that part of the trace; 0: unknown */
  char why
      [TC_WHY_BYTES]; /* the question whose answer explains it there (collector/findings/part.h); "": none */
  uint64_t muted_until_ns; /* collector's clock; 0: not muted */
  char mute_reason[TC_FINDING_REASON_BYTES];
};

/* A condition that an instance shows. The texts are copied and cut to their sizes. */
struct tc_sighting {
  const char *kind, *service, *instance, *place, *words;
  const char
      *cause; /* "": none or unknown; a finding of this kind and place that has one keeps it */
  const char *unknown; /* a part of words that a known cause replaces; NULL: none */
  unsigned char stream[TC_STREAM_BYTES];
  uint64_t gen;
  uint64_t from_ns,
      until_ns;    /* wall clock of the traced program; 0: unknown, the collector's is used */
  const char *why; /* what explains it; NULL: nothing does */
  uint64_t amount; /* goroutines, or ns */
  bool is_time;
  uint64_t times; /* how often it began since the last sighting; 0: it continues */
};

struct tc_findings;

struct tc_findings_env {
  const struct tc_config *config; /* keys findings.* */
  int state_fd;                   /* the state folder */
  struct tc_keeps *keeps;         /* keep the traces that show them; must outlive the findings */
};

/* Wrong lines are skipped, or the whole file if its disk lost it; *out_wrong is cleared first and then says so. Findings that were open get
 * as much time to be seen again as others. */
TB_MUST tb_rc tc_findings_open(const struct tc_findings_env *env, struct tb_diag *diag,
                               struct tb_diag *out_wrong, struct tc_findings **out);
void tc_findings_free(struct tc_findings *findings); /* NULL is fine */

struct tc_seen {
  uint64_t id;
  bool is_muted;
};
/* Writes a log line if the finding begins and is not muted. TB_NOMEM: it is not noted, and out is unchanged. */
TB_MUST tb_rc tc_findings_see(struct tc_findings *findings, const struct tc_sighting *sighting,
                              struct tc_seen *out);
/* Is there an open finding of this kind and place? */
bool tc_findings_is_open(struct tc_findings *findings, const char *service, const char *kind,
                         const char *place);
/* Ends and forgets findings whose time has come, and writes the file if it is due. is_end: now. Call it about twice a second. */
void tc_findings_turn(struct tc_findings *findings, uint64_t now_ns, bool is_end);
/* Mutes a finding until a time, 0: not any more. out: a copy. */
TB_MUST tb_rc tc_findings_mute(struct tc_findings *findings, uint64_t id, uint64_t until_ns,
                               const char *reason, struct tc_finding *out);

struct tc_findings_ask {
  const char *service; /* "": all */
  uint64_t id;         /* 0: all */
  uint64_t since_ns;   /* last seen then or later */
  bool is_open;        /* only open ones */
};
/* Calls take for each, open ones first, then those that were seen last, until it returns another code than TB_OK. The lock is held during the
 * call, and the finding is lent for it. */
TB_MUST tb_rc tc_findings_each(struct tc_findings *findings, const struct tc_findings_ask *ask,
                               void *self,
                               tb_rc (*take)(void *self, const struct tc_finding *finding));
static inline bool tc_finding_is_muted(const struct tc_finding *f, uint64_t now_ns) {
  return f->muted_until_ns > now_ns;
}

#endif

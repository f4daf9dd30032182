/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of this room. */
#ifndef TP_PACK_SUMMARY_PRIVATE_H
#define TP_PACK_SUMMARY_PRIVATE_H

#include "pack/report_read.h"
#include "pack/summary/summary.h"

enum { TP__WORDS = 32, TP__PLACE = 240, TP__CALL = 320 };

/* A sentence before it is copied. */
struct tp__draft {
  const char *kind, *report, *place;
  const char *more; /* the command's words after the source; NULL: `tracectl report REPORT` */
  const char *finding;
  double weight;
  bool is_open, is_why; /* the command is `why` */
};
__attribute__((format(printf, 4, 5))) TB_MUST tb_rc tp__say(struct tp_summary *summary,
                                                            const struct tp_summary_of *of,
                                                            const struct tp__draft *draft,
                                                            const char *format, ...);

TB_MUST tb_rc tp__summary_findings(struct tp_summary *summary, const struct tp_summary_of *of);
TB_MUST tb_rc tp__summary_figures(struct tp_summary *summary, const struct tp_summary_of *of);
TB_MUST tb_rc tp__summary_places(struct tp_summary *summary, const struct tp_summary_of *of);

/* The longest system call that is not idle; "" and 0: none. */
TB_MUST tb_rc tp__longest_call(struct tp_summary *summary, const struct tp_summary_of *of,
                               char out_place[TP__PLACE], uint64_t *out_ns);

/* The report of a kind, or NULL. */
const Tracecollect__V1__Report *tp__report_of(const struct tp_summary_of *of,
                                              enum to_analysis_kind kind);
/* How long a report's time is; of a sum: of a stream on average. */
uint64_t tp__length_of(const Tracecollect__V1__StreamReport *report);
uint64_t tp__time_of(const struct tp_summary_of *of, enum to_analysis_kind kind);

/* Three digits and a unit. Returns out. */
const char *tp__ns_words(uint64_t ns, char out[TP__WORDS]);
const char *tp__count_words(uint64_t n, char out[TP__WORDS]);
const char *tp__bytes_words(uint64_t bytes, char out[TP__WORDS]);
/* 12 %, 0.4 %. */
const char *tp__share_words(double share, char out[TP__WORDS]);

/* Writes the program's own function and line. Returns false, and "", if the stack is the runtime's or an agent's. */
bool tp__place_words(const Tracecollect__V1__Report *report, const Tracecollect__V1__Value *stack,
                     char out[TP__PLACE]);
/* Is it a call of the C library, since the stack has no frame of the program? */
bool tp__is_call(const char *place);
/* "at" a place of the program, "in" such a call. */
const char *tp__at(const char *place);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A report in the words of its program, for people (online/words/words.h): a C program has threads. */
#ifndef TK_REPORT_WORDS_H
#define TK_REPORT_WORDS_H

#include "base/arena.h"
#include "proto/report.pb-c.h"

/* Replaces headings, sentences and texts of a report that is printed next. Its names are no longer those of JSON. A report of a Go program
 * stays as it is. TB_NOMEM. */
TB_MUST tb_rc tk_report_words(struct tb_arena *arena, Tracecollect__V1__StreamReport *report);

/* Returns true if the report has nothing, and its kind is one that a C program need not have: pauses, garbage collection, objects,
 * samples, tasks, regions. */
bool tk_report_is_unused(const Tracecollect__V1__StreamReport *report);

#endif

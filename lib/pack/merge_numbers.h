/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and times of reports that are added up. The schema says how numbers are. */
#ifndef TP_PACK_MERGE_NUMBERS_H
#define TP_PACK_MERGE_NUMBERS_H

#include "base/result.h"
#include "proto/report.pb-c.h"

struct tp_numbers {  /* of the part that is added */
  bool of_stretches; /* parts are stretches of one stream, in the order of time; else streams */
  bool
      is_past; /* of streams: this one has ended, and others have not: its numbers of now do not count */
  uint64_t time_ns;
};

/* Adds a number of the part. from without a number changes nothing. */
void tp_number_add(const struct tp_numbers *n, const Tracecollect__V1__FieldSchema *field,
                   Tracecollect__V1__Value *into, const Tracecollect__V1__Value *from);
/* Call before a part is added: a number of now is that of the last stretch, or unknown. */
void tp_number_forget(const struct tp_numbers *n, const Tracecollect__V1__FieldSchema *field,
                      Tracecollect__V1__Value *value);
/* Call after the last part. time_ns: of all parts. */
void tp_number_end(const struct tp_numbers *n, const Tracecollect__V1__FieldSchema *field,
                   uint64_t time_ns, Tracecollect__V1__Value *value);
/* Returns true if the greatest or the least number is kept. */
bool tp_number_is_extreme(const struct tp_numbers *n, const Tracecollect__V1__FieldSchema *field);

/* Returns how much of its streams' time a report covers. */
uint64_t tp_time_of(const Tracecollect__V1__StreamReport *part);
/* Appends a stretch of the same stream that is later than those before. */
void tp_time_append(Tracecollect__V1__StreamReport *sum, const Tracecollect__V1__StreamReport *part,
                    bool is_first);
/* Adds another stream. */
void tp_time_join(Tracecollect__V1__StreamReport *sum, const Tracecollect__V1__StreamReport *part,
                  bool is_first);

#endif

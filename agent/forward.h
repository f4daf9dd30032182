/* SPDX-License-Identifier: Apache-2.0 */
/* What tracectl and the tests may do with a forwarded stream beyond traceagent.h. */
#ifndef TA_FORWARD_H
#define TA_FORWARD_H

#include <stdbool.h>

#include "traceagent.h"

/* ta_forward_open() for a tool: write() waits for room instead of dropping, a refused certificate
 * ends the stream, and TRACEAGENT_* is not looked at. impatient() is asked every 100 ms of waiting;
 * once it says yes the stream is over and write() answers TA_E_TIMEOUT. */
int ta_forward_open_patient(const struct ta_forward_config *config, bool (*impatient)(void *self),
                            void *self, ta_forward **out);

/* The caller's config with zeroes for what its version does not have. */
struct ta_forward_config ta_forward_config_of(const struct ta_forward_config *config);

/* For agent/emit, on the writer's thread. What write() took so far is whole generations: the next byte begins
 * another. */
void ta_forward_end_generation(ta_forward *f);
/* Generation gen, the one being written or the next, is lost: what was taken of it, and what still comes until it
 * ends. */
void ta_forward_lose_generation(ta_forward *f, uint64_t gen);
/* The writer can end a generation soon: for snaps, from any thread. Before the first byte. */
void ta_forward_cut_by(ta_forward *f, void (*cut)(void));
bool ta_forward_records(ta_forward *f);
void ta_forward_take_snap(ta_forward *f); /* one that was asked for goes out from here on */
/* A line for the host's log callback, if it has one. */
void ta_forward_log(ta_forward *f, int level, const char *text);
/* error; ta_strerror() says text for it on this thread. */
int ta_forward_fault(int error, const char *text);

#endif

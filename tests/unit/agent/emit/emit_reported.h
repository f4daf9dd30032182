/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the emitted events in order, one a line. A line is the event's name, then the frames of each of its stacks, innermost
 * first, as " < FUNCTION FILE:LINE". FILE has no folder. The line of an experiment's event also has all other arguments, as
 * " LABEL=WHAT". */
#ifndef TT_UNIT_EMIT_EMIT_TOLD_H
#define TT_UNIT_EMIT_EMIT_TOLD_H

#include "online/event/event.h"
#include "tests/unit/agent/emit/emit_scene.h"

/* Ends the session, and reads its single trace with our reader, which must find no fault. */
void emit_end_and_read(struct emitted *e, struct to_event_sink sink);

/* Starts a session, in which no generation ends by time unless config says so. */
void emit_reported_begin(struct emitted *e, struct ta_emit_config config);
/* Ends the session and returns its list of events; the caller frees it. */
char *emit_reported_end(struct emitted *e);

/* Repeats sessions of run() until the list of one contains these words: names of functions are in the trace only after they
 * were looked up. */
void emit_until_reported(void (*run)(void), struct ta_emit_config config, const char *words);

#endif

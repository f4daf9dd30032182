/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of the store: one open store, streams written as an agent would, and the proof at the end.
 * Compiled into each test; failures are the test's. */
#ifndef TT_STORE_FIXTURE_H
#define TT_STORE_FIXTURE_H

#include "archive/audit/audit.h"
#include "archive/catalog/catalog.h"
#include "support/store_driver.h"

extern struct tt_store tt;

void tt_fixture_open(void (*configure)(struct tc_config *config)); /* NULL: as it is */
void tt_fixture_remove(void);

/* Runs the command in the state folder; the command must succeed. */
void tt_shell(const struct tt_store *t, const char *command);

/* Copies what a process that is killed now would leave into the folder `to`; its log alone into the folder `name`
 * beside it. The store runs on meanwhile and may delete a file of its log: the copy is of one moment all the same. */
void tt_crash_into(const struct tt_store *t, const char *to);
void tt_copy_log(const struct tt_store *t, const char *name);

/* Attaches the stream whose id is 16 times `id`, always by the same agent, at the record where the stream continues. */
struct tt_writer tt_attach_as(struct tt_store *t, uint64_t conn, unsigned id);
/* Attaches the stream on another connection, perhaps in a copy of its store, and continues where w was, in the middle
 * of a generation. */
struct tt_writer tt_go_on(struct tt_store *t, uint64_t conn, unsigned id,
                          const struct tt_writer *w);

/* Stops the store, and expects no fault in what it leaves. */
struct tc_audited tt_expect_proven(struct tt_store *t);

/* Returns the catalog's row of the stream; zeroes if there is none. */
struct tc_stream_row tt_stream_row(struct tt_store *t, unsigned id);

#endif

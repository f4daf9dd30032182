/* SPDX-License-Identifier: Apache-2.0 */
/* The table `findings`: of a collector, not of a trace. It is filled before the query.
 *
 * Errors    SQLite's.
 */
#ifndef TK_QUERY_FINDINGS_H
#define TK_QUERY_FINDINGS_H

#include <sqlite3.h>

#include "proto/archive.pb-c.h"

int tk_findings_add(sqlite3 *db, const Tracecollect__V1__FindingsReply *findings);

#endif

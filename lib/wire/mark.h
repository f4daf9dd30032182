/* SPDX-License-Identifier: Apache-2.0 */
/* The mark of a C program's trace: libtraceagent writes this text as this string in every generation
 * (docs/FORMAT.md, "A C program"). Go's tools ignore it, as they ignore any string that no event names. */
#ifndef TW_MARK_H
#define TW_MARK_H

#define TW_C_MARK "tracecollect: a C program"
enum { TW_C_MARK_STRING = 9 };

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The words for a thread's last error, which ta_strerror() adds to TA_E_CONFIG, TA_E_CERT and TA_E_OFF.
 *
 * They belong to the thread, but not to its storage: all of libtraceagent.so's thread-local variables lie in the static
 * block, of which a process has little left for libraries that it loads late (tests/e2e/test_static_tls.py). So there is
 * one table, and a thread that fails takes the slot that was taken longest ago.
 *
 * Memory    11 KiB, static.
 * Threads   any. Words stay for 64 other threads' failures.
 */
#ifndef TA_HOST_FAULTS_H
#define TA_HOST_FAULTS_H

#include <stdarg.h>

void ta_fault_say(const char *fmt, va_list args); /* cut to fit */
void ta_fault_clear(void);
const char *ta_fault_text(void); /* NULL: there are none */

#endif

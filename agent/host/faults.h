/* SPDX-License-Identifier: Apache-2.0 */
/* Text of a thread's last error, which ta_strerror() returns for TA_E_CONFIG, TA_E_CERT and TA_E_OFF.
 *
 * The text is per thread but not thread-local: all of libtraceagent.so's thread-local variables are in the static TLS
 * block, of which a process has little left for libraries loaded late (tests/e2e/test_static_tls.py). So there is one
 * table, and a thread that fails takes the slot that was taken longest ago.
 *
 * Memory    11 KiB, static.
 * Threads   any. A text is overwritten after 64 failures of other threads.
 */
#ifndef TA_HOST_FAULTS_H
#define TA_HOST_FAULTS_H

#include <stdarg.h>

void ta_fault_say(const char *fmt, va_list args); /* cut to fit */
void ta_fault_clear(void);
const char *ta_fault_text(void); /* NULL: no error */

#endif

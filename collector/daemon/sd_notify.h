/* SPDX-License-Identifier: Apache-2.0 */
/* Sends datagrams to the service manager's NOTIFY_SOCKET, as sd_notify(3). Without it all calls do nothing.
 *
 * Threads   the main thread.
 */
#ifndef TC_DAEMON_SD_NOTIFY_H
#define TC_DAEMON_SD_NOTIFY_H

#include "base/result.h"

/* "READY=1\nSTATUS=..."; lost datagrams are ignored. */
void tc_notify(const char *fmt, ...) TB_PRINTF(1, 2);

/* Returns the interval of WATCHDOG=1, half of what the manager allows; 0: no watchdog. */
uint64_t tc_notify_watchdog_ms(void);

#endif

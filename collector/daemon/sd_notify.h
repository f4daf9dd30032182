/* SPDX-License-Identifier: Apache-2.0 */
/* The service manager's ear: datagrams to NOTIFY_SOCKET, as sd_notify(3) describes them. Without one
 * all calls do nothing.
 *
 * Threads   the main thread.
 */
#ifndef TC_DAEMON_SD_NOTIFY_H
#define TC_DAEMON_SD_NOTIFY_H

#include "base/result.h"

/* "READY=1\nSTATUS=..."; lost datagrams are not our concern. */
void tc_notify(const char *fmt, ...) TB_PRINTF(1, 2);

/* How often WATCHDOG=1 is due, half of what the manager allows; 0: it does not watch. */
uint64_t tc_notify_watchdog_ms(void);

#endif

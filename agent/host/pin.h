/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the shared object that contains the agent loaded, even after dlclose().
 *
 * The agent registers callbacks in the process that run its code later: destructors of thread keys, handlers of fork()
 * and exit(), the signal handler for samples; and it has threads. libtraceagent.so is linked with -z nodelete, but a
 * plugin with libtraceagent.a inside is not, and dlclose() would unmap that code. Most callbacks cannot be removed safely
 * (a destructor may be running, a signal may be pending), so the object stays.
 *
 * Call this before registering any of them. It takes the loader's lock: hold no lock of the agent's, since a constructor
 * that runs under the loader's lock may call the agent.
 *
 * Threads   any.
 */
#ifndef TA_HOST_PIN_H
#define TA_HOST_PIN_H

#include <stdbool.h>

bool ta_pin(void); /* false: the object cannot be kept; register nothing */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the shared object that holds the agent loaded, whatever the host does with it.
 *
 * The agent leaves things in the process that call its code later: destructors of threads' keys, handlers of fork() and
 * exit(), the handler of its samples' signal, threads of its own. libtraceagent.so is linked with -z nodelete, but a
 * plugin with libtraceagent.a inside is not, and dlclose() would take the code away from under all of them. Most of them
 * cannot be taken back safely (a destructor may be running, a signal may be on its way), so the object stays.
 *
 * Whatever is about to leave something of that kind behind calls this first. It takes the loader's lock: no lock of ours
 * may be held, since a constructor that holds the loader's may call the agent.
 *
 * Threads   any.
 */
#ifndef TA_HOST_PIN_H
#define TA_HOST_PIN_H

#include <stdbool.h>

bool ta_pin(void); /* false: it cannot be kept, and nothing may be left behind */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The protocol version that a program says it speaks: behind the last underscore of the name it is called by, like
 * seeded_agent_1.9. The few sources that say it are compiled anew with this in front of them (-include). */
#ifndef TT_FAULT_SPOKEN_H
#define TT_FAULT_SPOKEN_H

int tt_spoken_major(void);
int tt_spoken_minor(void);

#define TP_MAJOR tt_spoken_major()
#define TP_MINOR tt_spoken_minor()

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Takes the program's protocol version from its own name, after the last underscore: seeded_agent_1.9. The few sources that use
 * the version are compiled again with this header (-include). */
#ifndef TT_FAULT_SPOKEN_H
#define TT_FAULT_SPOKEN_H

int tt_spoken_major(void);
int tt_spoken_minor(void);

#define TP_MAJOR tt_spoken_major()
#define TP_MINOR tt_spoken_minor()

#endif

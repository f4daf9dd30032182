/* SPDX-License-Identifier: Apache-2.0 */
/* A file that is written by the process that opened it, and by no forked child: what lies in the stream's buffer at a
 * fork() is there twice, and the child's exit() would write it a second time.
 */
#ifndef TA_OWN_FILE_H
#define TA_OWN_FILE_H

#include <stdio.h>

FILE *ta_own_file(const char *path); /* made or emptied; NULL: it cannot be, see errno */

#endif

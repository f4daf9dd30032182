/* SPDX-License-Identifier: Apache-2.0 */
/* A file that only the process that opened it writes, and no forked child: fork() duplicates the data in the stream's
 * buffer, and the child's exit() would write it a second time.
 */
#ifndef TA_OWN_FILE_H
#define TA_OWN_FILE_H

#include <stdio.h>

FILE *ta_own_file(const char *path); /* creates or empties the file; NULL: see errno */

#endif

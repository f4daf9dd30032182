/* SPDX-License-Identifier: Apache-2.0 */
/* Files that a setting names, and that are small: configuration, certificates, ready files.
 *
 * A path that names something else must not hold its reader: a FIFO has no end before somebody writes to it, and a device may
 * have none at all. So the kind and the size are asked before the first byte is read.
 *
 * Threads   any. */
#ifndef TB_SMALL_FILE_H
#define TB_SMALL_FILE_H

#include <stdio.h>

enum { TB_SMALL_FILE_MAX = 1 << 20 };

/* A descriptor for reading; path is below the folder dir_fd, or AT_FDCWD. -1: errno says why; what is neither a file, nor a
 * folder, nor /dev/null is EINVAL, what is larger than a MiB EFBIG. */
int tb_small_file_open(int dir_fd, const char *path);
FILE *tb_small_file(const char *path); /* the same as a stream; NULL: errno */

/* strerror(), with better words for EINVAL and EFBIG. */
const char *tb_small_file_fault(int error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Opens small files that a setting names: configuration, certificates, ready files.
 *
 * A path may name a FIFO or a device, whose reader could wait for ever. So the type and the size are checked before the
 * first byte is read.
 *
 * Threads   any. */
#ifndef TB_SMALL_FILE_H
#define TB_SMALL_FILE_H

#include <stdio.h>

enum { TB_SMALL_FILE_MAX = 1 << 20 };

/* Opens path, relative to the folder dir_fd or AT_FDCWD, for reading. Returns -1 with errno: EISDIR, EFBIG above 1 MiB,
 * EINVAL if it is neither a regular file nor /dev/null, or open()'s. */
int tb_small_file_open(int dir_fd, const char *path);
FILE *tb_small_file(const char *path); /* returns a stream, or NULL with errno */

/* Describes errno as strerror() does, with its own text for EINVAL and EFBIG. */
const char *tb_small_file_fault(int error);

#endif

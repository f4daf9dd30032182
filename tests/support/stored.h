/* SPDX-License-Identifier: Apache-2.0 */
/* The packed traces of a folder in the checkout or beside it, for tests over real traces. */
#ifndef TT_STORED_H
#define TT_STORED_H

#include <stddef.h>

struct tt_stored {
  const char *path;
  unsigned char *bytes; /* unpacked, for the call only */
  size_t len;
};

/* Unpacks FOLDER/\*.trace.zst one after the other (FOLDER relative to the checkout) and passes those of at most
 * bytes_max bytes to look(); returns their number. */
size_t tt_each_stored(const char *folder, size_t bytes_max, void (*look)(const struct tt_stored *));

#endif

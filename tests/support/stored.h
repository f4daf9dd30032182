/* SPDX-License-Identifier: Apache-2.0 */
/* The traces that lie packed in a folder of the checkout or beside it, for tests over real ones. */
#ifndef TT_STORED_H
#define TT_STORED_H

#include <stddef.h>

struct tt_stored {
  const char *path;
  unsigned char *bytes; /* unpacked, for the call only */
  size_t len;
};

/* Unpacks FOLDER/\*.trace.zst one after the other (FOLDER as seen from the checkout) and shows those of at
 * most bytes_max bytes to look(); answers how many that were. */
size_t tt_each_stored(const char *folder, size_t bytes_max, void (*look)(const struct tt_stored *));

#endif

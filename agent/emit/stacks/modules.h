/* SPDX-License-Identifier: Apache-2.0 */
/* The modules that the program has loaded, now or earlier: finds the file of an address.
 *
 * look() reads the loader's counters of loaded and unloaded modules, and makes a new list if they have changed. An
 * unloaded module stays in the list until another is loaded at its addresses, so that older stacks keep their names.
 *
 * Memory    static: two lists of 512 modules and 48 KiB of names, used in turn.
 * Threads   one at a time.
 * Errors    modules beyond the room are not in the list.
 */
#ifndef TA_EMIT_STACKS_MODULES_H
#define TA_EMIT_STACKS_MODULES_H

#include <stdbool.h>
#include <stdint.h>

enum { TA_MODULES_MAX = 512, TA_BUILD_ID_MAX = 20 };

struct ta_module {
  uint64_t bias;       /* address in memory of the file's address 0 */
  uint64_t begin, end; /* bounds of the executable segments */
  uint64_t low, high;  /* bounds of all segments */
  const char *path;    /* lent until the next look() */
  uint8_t build_id[TA_BUILD_ID_MAX];
  uint8_t build_id_len; /* 0: no build id */
};

/* Returns true if addresses of one module now belong to another. */
bool ta_modules_look(void);
const struct ta_module *ta_modules_find(uint64_t pc);     /* by a code address; NULL: none */
const struct ta_module *ta_modules_find_any(uint64_t at); /* by any address, also a variable's */

#endif

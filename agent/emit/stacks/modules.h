/* SPDX-License-Identifier: Apache-2.0 */
/* The modules that the program has loaded, now or earlier: finds the file of an address.
 *
 * look() reads the loader's counters of loaded and unloaded modules, and makes a new list if they have changed. An
 * unloaded module stays in the list until another is loaded at its addresses, so that older stacks keep their names.
 *
 * Memory    static: two lists of 512 modules and 48 KiB of names, turn about.
 * Threads   one at a time.
 * Errors    modules beyond the room are not in the list.
 */
#ifndef TA_EMIT_STACKS_MODULES_H
#define TA_EMIT_STACKS_MODULES_H

#include <stdbool.h>
#include <stdint.h>

enum { TA_MODULES_MAX = 512, TA_BUILD_ID_MAX = 20 };

struct ta_module {
  uint64_t bias;       /* where its address 0 lies */
  uint64_t begin, end; /* of what can be executed */
  uint64_t low, high;  /* of all of it */
  const char *path;    /* lent until the next look() */
  uint8_t build_id[TA_BUILD_ID_MAX];
  uint8_t build_id_len; /* 0: it has none */
};

/* Returns true if addresses of one module now belong to another. */
bool ta_modules_look(void);
const struct ta_module *ta_modules_find(uint64_t pc);     /* NULL: none */
const struct ta_module *ta_modules_find_any(uint64_t at); /* of variables, too */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

static __thread struct tb_keeper *keeper_here;

struct tb_keeper *tb_check_keep(struct tb_keeper *keeper) {
  struct tb_keeper *before = keeper_here;

  keeper_here = keeper;
  return before;
}

bool tb_check_failed(const char *where) {
  const char *none = NULL;

  if (keeper_here == NULL) {
    fprintf(stderr, "check failed: %s\n", where);
    abort();
  }
  atomic_compare_exchange_strong(&keeper_here->where, &none, where);
  atomic_fetch_add(&keeper_here->failed, 1);
  return false;
}

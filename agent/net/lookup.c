/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/net/lookup.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "agent/host/spawn.h"

enum { STACK_BYTES = 256 << 10 }; /* the resolver's own buffers lie there */

struct ta_lookup {
  atomic_uint holders;
  atomic_bool done;
  char *server;
  tb_rc rc;
  struct tb_diag diag;
  struct ta_addresses addresses;
};

static void release(struct ta_lookup *l) {
  if (atomic_fetch_sub(&l->holders, 1) > 1) return;
  free(l->server);
  free(l);
}

static void *look_up(void *self) {
  struct ta_lookup *l = self;

  l->rc = ta_dial_find(l->server, &l->diag, &l->addresses);
  atomic_store(&l->done, true);
  release(l);
  return NULL;
}

tb_rc ta_lookup_begin(const char *server, struct tb_diag *diag, struct ta_addresses *out,
                      struct ta_lookup **out_lookup) {
  *out_lookup = NULL;
  tb_rc rc = ta_dial_find_number(server, diag, out);
  if (rc != TB_AGAIN) return rc;
  struct ta_lookup *l = calloc(1, sizeof *l);
  if (l == NULL || (l->server = strdup(server)) == NULL) {
    free(l);
    return tb_fail(diag, TB_IO, "no memory to look up %.80s", server);
  }
  atomic_store(&l->holders, 2);
  tb_diag_clear(&l->diag);
  if (ta_spawn_detached("traceagent-dns", STACK_BYTES, look_up, l) != 0) {
    free(l->server);
    free(l);
    return tb_fail(diag, TB_IO, "no thread to look up %.80s", server);
  }
  *out_lookup = l;
  return TB_AGAIN;
}

tb_rc ta_lookup_poll(struct ta_lookup **lookup, struct tb_diag *diag, struct ta_addresses *out) {
  struct ta_lookup *l = *lookup;

  if (!atomic_load(&l->done)) return TB_AGAIN;
  tb_rc rc = l->rc;
  if (rc == TB_OK)
    *out = l->addresses;
  else
    *diag = l->diag;
  ta_lookup_give_up(lookup);
  return rc;
}

void ta_lookup_give_up(struct ta_lookup **lookup) {
  if (*lookup != NULL) release(*lookup);
  *lookup = NULL;
}

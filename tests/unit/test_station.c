/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a station's orders where it never runs. */
#include <criterion/criterion.h>

#include "collector/pipeline.h"
#include "collector/station.h"

static unsigned freed;

static void count_free(void *parent, void *ptr, CRYPTO_EX_DATA *data, int index, long argl,
                       void *argp) {
  (void)parent, (void)ptr, (void)data, (void)index, (void)argl, (void)argp;
  freed++;
}

Test(station, one_that_never_starts_frees_the_context_it_was_sent) {
  struct tc_config config;
  struct tc_leases *leases;
  struct tc_tenants *tenants;
  struct tc_station *station;
  struct tb_diag diag;
  atomic_uint handshakes = 0;

  tb_diag_clear(&diag);
  tc_config_init(&config);
  config.top_loops = 1;
  cr_assert_eq(tc_config_finish(&config, &diag), TB_OK, "%s", diag.text);
  struct tc_leases_env leases_env = { .config = &config, .loops = 1 };
  cr_assert_eq(tc_leases_new(&leases_env, &diag, &leases), TB_OK, "%s", diag.text);
  cr_assert_eq(tc_tenants_new(&tenants), TB_OK);
  struct tc_station_env env = {
    .config = &config, .leases = leases, .handshakes = &handshakes, .tenants = tenants
  };
  cr_assert_eq(tc_station_open(&env, &station), TB_OK);
  CRYPTO_get_ex_new_index(CRYPTO_EX_INDEX_SSL_CTX, 0, NULL, NULL, NULL, count_free);
  struct tc_order order = { .kind = TC_ORDER_CONTEXT, .context = SSL_CTX_new(TLS_server_method()) };
  cr_assert_not_null(order.context);
  cr_assert(tc_station_order(station, &order));
  tc_station_close(station);
  cr_assert_eq(freed, 1);
  tc_tenants_free(tenants);
  tc_leases_free(leases);
  tc_config_fini(&config);
}

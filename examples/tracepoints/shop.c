/* SPDX-License-Identifier: Apache-2.0 */
/* shop [SERVER CERTS]: customers at one till, looked on from outside of it.
 *
 * Four ways to look at another module's events: a function of one's own, a file for ui.perfetto.dev (shop.json), a
 * profile of who leads to refusals (shop.pb.gz, for go tool pprof), and the trace that goes to a collector, of which
 * `tracectl query --saved tracepoints --pprof` makes such a profile later. */
#include <stdio.h>
#include <stdlib.h>

#include "shop.trace.h"
#include "till.h"

//trace:import "till"

enum { CUSTOMERS = 3, SALES = 20 };

static struct till till = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void buy(const char *who) {
  for (unsigned i = 1; i <= SALES; i++) till_sell(&till, who, i);
}

static void return_all(const char *who) {
  till_refund(&till, who, 1000000);
}

static void *visit(void *who) {
  buy(who);
  return_all(who);
  return NULL;
}

static void on_refused(void *count, const char *customer, unsigned wanted, unsigned in_till) {
  (void)customer, (void)wanted, (void)in_till;
  __atomic_add_fetch((unsigned *)count, 1, __ATOMIC_RELAXED);
}

static void check(const char *what, int error) {
  if (error == TA_OK) return;
  fprintf(stderr, "shop: %s: %s\n", what, ta_strerror(error));
  exit(1);
}

int main(int argc, char **argv) {
  static struct ta_probe counts, begins, ends, profiled, recorded[2];
  static const char *const names[CUSTOMERS] = { "Ada", "Bob", "Cyd" };
  struct ta_probe_group group = { 0 };
  pthread_t customer[CUSTOMERS];
  ta_profile *profile;
  ta_chrome *chrome;
  unsigned refusals = 0;

  if (argc == 3) {
    struct ta_forward_config where = { .server = argv[1], .certs = argv[2], .service = "shop" };
    struct ta_emit_config stacks = { .stack_depth = 16, .stack_tables = 1 };
    check("start", ta_emit_start(&where, &stacks));
  }
  check("shop.pb.gz", ta_profile_open(0, &profile));
  check("shop.json", ta_chrome_open("shop.json", &chrome));

  ta_lock();
  till_refused_attach(&group, &counts, on_refused, &refusals);
  ta_chrome_attach(&group, till_saleBegin_point(), &begins, chrome);
  ta_chrome_attach(&group, till_saleEnd_point(), &ends, chrome);
  ta_profile_attach(&group, till_refused_point(), &profiled, profile);
  ta_record_attach(&group, till_saleEnd_point(), &recorded[0]);
  ta_record_attach(&group, till_refused_point(), &recorded[1]);
  ta_unlock();

  for (int i = 0; i < CUSTOMERS; i++)
    pthread_create(&customer[i], NULL, visit, (void *)(uintptr_t)names[i]);
  for (int i = 0; i < CUSTOMERS; i++) pthread_join(customer[i], NULL);

  ta_probe_group_done(&group); /* from here on no probe runs */
  printf("%u cents in the till, %u refused\n", till.cents, refusals);
  check("shop.pb.gz", ta_profile_write(profile, "shop.pb.gz"));
  check("shop.json", ta_chrome_close(chrome));
  ta_profile_close(profile);
  if (argc == 3) check("stop", ta_emit_stop(60000));
  return 0;
}

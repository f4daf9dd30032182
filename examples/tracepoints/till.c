/* SPDX-License-Identifier: Apache-2.0 */
/* A library that traces what it does, for any probe. None is attached: each of its events is a load, a compare, and a
 * branch that is not taken. */
#include "till.h"

#include "till.trace.h" /* made of the lines below; see CMakeLists.txt */

//trace:event saleBegin(const char *customer, unsigned cents)
//trace:event saleEnd(const char *customer, unsigned in_till)
//trace:event refused(const char *customer, unsigned wanted, unsigned in_till)

void till_sell(struct till *till, const char *customer, unsigned cents) {
  saleBegin(customer, cents);
  pthread_mutex_lock(&till->lock);
  till->cents += cents;
  unsigned now = till->cents;
  pthread_mutex_unlock(&till->lock);
  saleEnd(customer, now);
}

bool till_refund(struct till *till, const char *customer, unsigned cents) {
  pthread_mutex_lock(&till->lock);
  unsigned before = till->cents;
  bool enough = before >= cents;
  if (enough) till->cents = before - cents;
  pthread_mutex_unlock(&till->lock);
  if (!enough) refused(customer, cents, before);
  return enough;
}

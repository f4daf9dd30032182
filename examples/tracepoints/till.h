/* SPDX-License-Identifier: Apache-2.0 */
/* A till that customers share. */
#ifndef TILL_H
#define TILL_H

#include <pthread.h>
#include <stdbool.h>

struct till {
  pthread_mutex_t lock;
  unsigned cents;
};

void till_sell(struct till *till, const char *customer, unsigned cents);
bool till_refund(struct till *till, const char *customer,
                 unsigned cents); /* false: too little is in it */

#endif

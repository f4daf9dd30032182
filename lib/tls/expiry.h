/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TC_TLS_EXPIRY_H
#define TC_TLS_EXPIRY_H

#include <stdbool.h>
#include <stdint.h>

/* A warning is logged this long before a certificate expires. */
enum { TC_EXPIRY_DAYS = 30 };

/* expires_s: Unix time; 0: none. */
static inline bool tc_expiry_is_near(uint64_t expires_s, uint64_t now_wall_ns, int *out_days) {
  uint64_t now_s = now_wall_ns / 1000000000,
           days = expires_s > now_s ? (expires_s - now_s) / 86400 : 0;

  *out_days = days < TC_EXPIRY_DAYS ? (int)days : TC_EXPIRY_DAYS;
  return expires_s != 0 && days < TC_EXPIRY_DAYS;
}

#endif

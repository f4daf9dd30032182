/* SPDX-License-Identifier: Apache-2.0 */
/* A cap on bytes a second.
 *
 * Each frame moves the time `due_ns` forward by its cost; the remainder of the division is carried over, so the rate is
 * exact. A frame of any size may be sent once that time has come; an idle sender saves up at most TA_RATE_BURST_MS.
 *
 * Time      in: monotonic nanoseconds.
 */
#ifndef TA_HOST_RATE_H
#define TA_HOST_RATE_H

#include <stdbool.h>
#include <stdint.h>

enum { TA_RATE_BURST_MS = 50 };

struct ta_rate_cap {
  uint64_t bytes_s; /* 0: no cap */
  uint64_t due_ns;  /* when the next frame may be sent */
  uint64_t rest;    /* remainder of the last division, in bytes x ns */
};

static inline struct ta_rate_cap ta_rate_of(uint64_t bytes_s) {
  /* Cost plus rest must fit 64 bits; a cap above INT64_MAX is as good as none. */
  return (struct ta_rate_cap){ .bytes_s = bytes_s > INT64_MAX ? 0 : bytes_s };
}

static inline bool ta_rate_allows(struct ta_rate_cap *r, uint64_t now_ns) {
  const uint64_t burst_ns = TA_RATE_BURST_MS * UINT64_C(1000000);

  if (r->due_ns + burst_ns < now_ns) {
    r->due_ns = now_ns - burst_ns;
    r->rest = 0;
  }
  return r->due_ns <= now_ns;
}

static inline void ta_rate_charge(struct ta_rate_cap *r, uint64_t bytes) {
  if (r->bytes_s == 0) return;
  uint64_t cost = bytes * UINT64_C(1000000000) + r->rest;
  r->due_ns += cost / r->bytes_s;
  r->rest = cost % r->bytes_s;
}

#endif

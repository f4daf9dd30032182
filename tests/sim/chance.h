/* SPDX-License-Identifier: Apache-2.0 */
/* The only random source of a simulation: the same seed gives the same numbers. */
#ifndef SIM_CHANCE_H
#define SIM_CHANCE_H

#include <stdbool.h>
#include <stdint.h>

struct sim_chance {
  uint64_t state;
};

/* SplitMix64. */
static inline uint64_t sim_next(struct sim_chance *chance) {
  uint64_t z = chance->state += UINT64_C(0x9e3779b97f4a7c15);

  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

/* Returns a number from 0 to n-1. */
static inline uint64_t sim_below(struct sim_chance *chance, uint64_t n) {
  return sim_next(chance) % n;
}

/* True once in n. */
static inline bool sim_once_in(struct sim_chance *chance, uint64_t n) {
  return sim_below(chance, n) == 0;
}

#endif

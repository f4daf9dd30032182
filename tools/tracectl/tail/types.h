/* SPDX-License-Identifier: Apache-2.0 */
/* The types of a bundle's events: our own table says it, and the bundle itself for a program's own experiments.
 *
 * A bundle may come from any sender: what makes no sense in it is not there.
 *
 * Memory    names are the bundle's.
 */
#ifndef TK_TAIL_TYPES_H
#define TK_TAIL_TYPES_H

#include "proto/archive.pb-c.h"
#include "wire/experiments.h"

struct tk_tail_types {
  struct tw_spec own[TW_OWN_EVENTS_MAX]; /* without name: not reported */
  const char *experiment[TW_OWN_EVENTS_MAX];
};

void tk_tail_types_read(struct tk_tail_types *types, const Tracecollect__V1__EventBundle *b);
/* NULL: no event that we know. */
const struct tw_spec *tk_tail_spec(const struct tk_tail_types *types, uint32_t type);
/* NULL: of none. */
const char *tk_tail_experiment(const struct tk_tail_types *types, uint32_t type);
/* How many arguments it has in a bundle. */
unsigned tk_tail_args(const struct tk_tail_types *types, uint8_t type);

#endif

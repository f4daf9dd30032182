/* SPDX-License-Identifier: Apache-2.0 */
/* The types of a bundle's events: from our own table, or from the bundle for the program's own experiments.
 *
 * A bundle may come from any sender: invalid types are treated as absent.
 *
 * Memory    names belong to the bundle.
 */
#ifndef TK_TAIL_TYPES_H
#define TK_TAIL_TYPES_H

#include "proto/archive.pb-c.h"
#include "wire/experiments.h"

struct tk_tail_types {
  struct tw_spec own[TW_OWN_EVENTS_MAX]; /* without name: invalid */
  const char *experiment[TW_OWN_EVENTS_MAX];
};

void tk_tail_types_read(struct tk_tail_types *types, const Tracecollect__V1__EventBundle *b);
/* Returns NULL if the event is unknown. */
const struct tw_spec *tk_tail_spec(const struct tk_tail_types *types, uint32_t type);
/* Returns NULL if it is not of an experiment. */
const char *tk_tail_experiment(const struct tk_tail_types *types, uint32_t type);
/* Returns the number of its arguments in a bundle. */
unsigned tk_tail_args(const struct tk_tail_types *types, uint8_t type);

#endif

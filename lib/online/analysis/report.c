/* SPDX-License-Identifier: Apache-2.0 */
#include "online/analysis/report.h"

#include <string.h>

const char *to_value_type_name(enum to_value_type type) {
  static const char *const names[] = {
    [TO_VALUE_COUNT] = "count", [TO_VALUE_NS] = "ns",
    [TO_VALUE_TIME] = "time",   [TO_VALUE_BYTES] = "bytes",
    [TO_VALUE_ID] = "id",       [TO_VALUE_SHARE] = "share",
    [TO_VALUE_FLAG] = "flag",   [TO_VALUE_TEXT] = "text",
    [TO_VALUE_STACK] = "stack", [TO_VALUE_DISTRIBUTION] = "distribution",
  };
  return names[type];
}

int to_schema_table(const struct to_schema *schema, const char *name) {
  for (unsigned t = 0; t < schema->tables; t++)
    if (strcmp(schema->table[t].name, name) == 0) return (int)t;
  return -1;
}

int to_fields_find(const struct to_field *field, unsigned n, const char *name) {
  for (unsigned i = 0; i < n; i++)
    if (strcmp(field[i].name, name) == 0) return (int)i;
  return -1;
}

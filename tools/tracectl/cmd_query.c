/* SPDX-License-Identifier: Apache-2.0 */
/* tracectl query FILE 'SQL': a trace as tables. */
#include <string.h>

#include "tools/tracectl/args/options.h"
#include "tools/tracectl/help/commands.h"
#include "tools/tracectl/query/sql.h"
#include "tools/tracectl/term/tracectl.h"

int tk_cmd_query(int argc, char **argv) {
  static const struct option options[] = { { "json", no_argument, NULL, 'j' },
                                           { "csv", no_argument, NULL, 'c' },
                                           { 0 } };
  bool json = false, csv = false;

  for (int c; (c = tk_option_next(argc, argv, "", options)) != -1;) {
    switch (c) {
    case 'j': json = true; break;
    case 'c': csv = true; break;
    default: return tk_usage_hint("query");
    }
  }
  if (json && csv) return tk_usage("query", "--json or --csv, not both");
  if (optind + 2 != argc) return tk_usage("query", "FILE and one statement are wanted");
  if (strcmp(argv[optind], "-") == 0)
    return tk_usage("query", "a file is wanted: it may be read more than once");
  return tk_sql_run(argv[optind], argv[optind + 1],
                    json  ? TK_ROWS_JSON
                    : csv ? TK_ROWS_CSV
                          : TK_ROWS_TEXT);
}

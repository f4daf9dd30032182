/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/report/kinds.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "online/analysis/analysis.h"
#include "online/why/schema.h"
#include "tools/tracectl/names/meant.h"
#include "tools/tracectl/term/tracectl.h"

static bool is_kind(const char *text) {
  enum to_analysis_kind kind;

  return strcmp(text, "all") == 0 || strcmp(text, "why") == 0 || to_analysis_find(text, &kind);
}

bool tk_is_kind(const char *text, const char *next) {
  bool is_path = text[strcspn(text, "/.:")] != '\0' || strcmp(text, "-") == 0;

  if (is_kind(text) || (next != NULL && is_kind(next))) return true;
  return !is_path && access(text, F_OK) != 0;
}

static void list_kinds(void) {
  for (unsigned k = 0; k < TO_ANALYSIS_KINDS; k++)
    fprintf(stderr, "  %-10s %s\n", to_analysis_name((enum to_analysis_kind)k),
            to_analysis_about((enum to_analysis_kind)k));
  fprintf(stderr, "  %-10s %s\n", "why", TO_WHY_ABOUT);
  fprintf(stderr, "  %-10s Each of them.\n", "all");
}

int tk_kind_unknown(const char *text, const char *next) {
  const char *meant = tk_kind_meant(text);

  if (next != NULL && is_kind(next))
    return tk_usage("report", "KIND comes before FILE: tracectl report %s %s", next, text);
  if (meant != NULL)
    return tk_usage("report", "no report and no file \"%s\"; did you mean \"%s\"?", text, meant);
  fprintf(stderr, "tracectl report: no report and no file \"%s\"; there are:\n", text);
  list_kinds();
  return TK_USAGE;
}

bool tk_is_second_kind(const char *text) {
  return is_kind(text) && access(text, F_OK) != 0;
}

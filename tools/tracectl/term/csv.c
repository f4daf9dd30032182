/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/term/csv.h"

#include <string.h>

bool tk_csv_is_plain(const char *text, size_t n) {
  bool plain = true;

  for (size_t i = 0; i < n; i++)
    plain &= text[i] != '"' && text[i] != ',' && text[i] != '\r' && text[i] != '\n';
  return plain;
}

void tk_csv_put(FILE *out, const char *text) {
  if (text == NULL) return;
  if (tk_csv_is_plain(text, strlen(text))) {
    fputs(text, out);
    return;
  }
  fputc('"', out);
  for (; *text != 0; text++) {
    if (*text == '"') fputc('"', out);
    fputc(*text, out);
  }
  fputc('"', out);
}

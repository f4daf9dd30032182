/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/term/csv.h"

#include <string.h>

void tk_csv_put(FILE *out, const char *text) {
  if (text == NULL) return;
  if (strpbrk(text, "\",\r\n") == NULL) {
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

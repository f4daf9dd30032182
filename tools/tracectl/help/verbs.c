/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/help/verbs.h"

#include <string.h>

#include "tools/tracectl/remote/client.h" /* TK_CLIENT_HELP, TK_SELECTOR_HELP */

#define TK_CMD(name, fn, args, about, ...) { name, fn, args, about, "" __VA_ARGS__ },
const struct tk_verb tk_verbs[] = {
#include "tools/tracectl/help/commands.def"
  { NULL, NULL, NULL, NULL, NULL },
};
#undef TK_CMD

#define TK_EXAMPLE(verb, command, about) { verb, command, about },
const struct tk_example tk_examples[] = {
#include "tools/tracectl/help/examples.def"
  { NULL, NULL, NULL },
};
#undef TK_EXAMPLE

const struct tk_verb *tk_verb_find(const char *name) {
  for (const struct tk_verb *v = tk_verbs; v->name != NULL; v++)
    if (strcmp(v->name, name) == 0) return v;
  return NULL;
}

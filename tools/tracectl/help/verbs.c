/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/help/verbs.h"

#include <string.h>

#include "tools/tracectl/remote/client.h"

#define TK_CMD(name, purpose, args, about, notes)                                                  \
  { #name, tk_cmd_##name, TK_##purpose, args, about, notes, tk_##name##_options },
const struct tk_verb tk_verbs[] = {
#include "tools/tracectl/help/commands.def"
  { 0 },
};
#undef TK_CMD

const struct tk_verb tk_help_connect = {
  .name = "connect",
  .purpose = TK_ITSELF,
  .args = "",
  .about = "How a collector is found, by every verb that asks one.",
  .notes =
      "HOST alone is port 7073. A loopback address without a scheme is plain HTTP, all else TLS.\n"
      "The environment has what no option says: TRACECTL_SERVER, TRACECTL_CERTS, TRACECTL_TLS_CA "
      "and so on; then lines of KEY = VALUE in ~/.config/tracectl.conf (TRACECTL_CONFIG names "
      "another file). If nothing names a collector, it is the one of this host: "
      "/run/tracecollect/http.sock, else /var/lib/tracecollect/http.sock, else "
      "./tracecollect-data/http.sock.\n",
  .options = tk_client_options,
};

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

const char *tk_purpose_text(enum tk_purpose purpose) {
  static const char *const texts[] = {
    [TK_FIRST_DAY] = "On a first day", [TK_READ_FILE] = "Read a file", [TK_ASK] = "Ask a collector",
    [TK_RUN] = "Run a collector",      [TK_WRITE] = "Write traces",    [TK_ITSELF] = "",
  };

  return texts[purpose];
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/fetch/firing.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Copied fields of a firing: the reply is lent for a page. */
struct found {
  bool is;
  unsigned char stream[16];
  uint64_t gen, wall_ns;
};

tb_rc tk_firing_check(const struct tk_firing_ask *ask, const struct tk_selector *s,
                      struct tb_diag *diag) {
  if (!tk_firing_is_asked(ask)) return TB_OK;
  if (ask->id != 0 && ask->rule != NULL)
    return tb_fail(diag, TB_BROKEN, "only one of --firing and --trigger can be given");
  if (s->segment != 0 || s->since_wall_ns != 0 || s->until_wall_ns != 0 || s->first_gen != 0 ||
      s->last_gen != 0)
    return tb_fail(diag, TB_BROKEN,
                   "--firing and --trigger choose the generations: only --last says how many");
  return TB_OK;
}

static bool is_of(const struct tk_firing_ask *ask, const struct tk_selector *s,
                  const Tracecollect__V1__Firing *f) {
  if (f->stream.len != sizeof s->stream) return false;
  if (ask->id != 0 && f->id != ask->id) return false;
  if (ask->rule != NULL && strcmp(f->rule, ask->rule) != 0) return false;
  if (s->service != NULL && strcmp(f->service, s->service) != 0) return false;
  if (s->instance != NULL && strcmp(f->instance, s->instance) != 0) return false;
  return !s->has_stream || memcmp(f->stream.data, s->stream, sizeof s->stream) == 0;
}

static tb_rc look(struct tk_client *client, const struct tk_firing_ask *ask,
                  const struct tk_selector *s, struct found *out, struct tb_diag *diag) {
  Tracecollect__V1__FiringsRequest firings = TRACECOLLECT__V1__FIRINGS_REQUEST__INIT;
  const Tracecollect__V1__FiringsReply *reply;

  firings.after = ask->id != 0 ? ask->id - 1 : 0;
  do {
    TB_TRY(tk_client_ask(client, TP_ROUTE_FIRINGS, "", &firings.base, diag, &reply));
    for (size_t i = 0; i < reply->n_firings; i++) {
      const Tracecollect__V1__Firing *f = reply->firings[i];
      firings.after = f->id;
      if (!is_of(ask, s, f)) continue;
      *out = (struct found){ .is = true, .gen = f->gen, .wall_ns = f->wall_ns };
      memcpy(out->stream, f->stream.data, sizeof out->stream);
    }
  } while (reply->more && !(ask->id != 0 && firings.after >= ask->id));
  return TB_OK;
}

tb_rc tk_firing_select(struct tk_client *client, const struct tk_firing_ask *ask,
                       struct tk_selector *s, struct tb_diag *diag) {
  struct found found = { .is = false };

  TB_TRY(look(client, ask, s, &found, diag));
  if (!found.is && ask->id != 0)
    return tb_fail(diag, TB_NOTFOUND,
                   "nothing with the id %" PRIu64 " is in the history of what fired", ask->id);
  if (!found.is)
    return tb_fail(diag, TB_NOTFOUND, "the history of what fired has nothing of the rule \"%.60s\"",
                   ask->rule);
  if (s->last_ns != 0 && found.wall_ns == 0)
    return tb_fail(
        diag, TB_NOTFOUND,
        "--last: the time of that firing is not known; without it the generation and the "
        "one before it are fetched");
  memcpy(s->stream, found.stream, sizeof s->stream);
  s->has_stream = true;
  s->service = s->instance = NULL;
  s->last_gen = found.gen;
  s->first_gen = s->last_ns != 0 ? 0 : found.gen > 1 ? found.gen - 1 : found.gen;
  if (s->last_ns != 0)
    s->since_wall_ns = found.wall_ns > s->last_ns ? found.wall_ns - s->last_ns : 1;
  s->last_ns = 0;
  return TB_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Creates and frees the sealer, and connects its parts: seal/, catalog/, retention/, verdicts/, checkpoint/. The thread is
 * in thread.c. */
#include "collector/sealer/sealer.h"

#include <stdlib.h>
#include <sys/resource.h>

#include "collector/sealer/private.h"
#include "collector/sealer/seal/rests.h"

enum {
  DESCRIPTORS_PART = 4, /* segments may use a quarter of RLIMIT_NOFILE */
  DESCRIPTORS_MAX = 16384,
};

static tb_rc set_up(struct tc_sealer *sealer, struct tb_diag *diag) {
  struct tc__env *env = &sealer->env;

  env->hash_kind = tc_hash_of_name(env->opt.config->archive_hash);
  TB_TRY(tc_keys_read_signer(env->opt.config->archive_sign, diag, &env->signer));
  TB_TRY(tc_wakeup_init(&sealer->wakeup, diag));
  if (tc_reply_queue_init(&sealer->seal.outbox.replies, env->opt.sink, TC_FROM_SEGMENT,
                          env->opt.loops) != TB_OK)
    return tb_fail(diag, TB_NOMEM, "archive: no memory");
  return tc__catalog_open(&sealer->catalog, diag);
}

static size_t descriptors_max(void) {
  struct rlimit limit;

  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return DESCRIPTORS_MAX;
  uint64_t part = limit.rlim_cur / DESCRIPTORS_PART;
  return part == 0 ? 1 : part < DESCRIPTORS_MAX ? (size_t)part : DESCRIPTORS_MAX;
}

static void init_seal(struct tc_sealer *sealer) {
  struct tc__seal *seal = &sealer->seal;

  seal->env = seal->aside.env = seal->verdicts.env = &sealer->env;
  seal->catalog = seal->verdicts.catalog = &sealer->catalog;
  seal->verdicts.files = &seal->queue;
  seal->verdicts.tail = &seal->verdicts.first;
  tc__streams_init(&seal->streams, &sealer->env);
  tc__queue_init(&seal->queue);
  tc__outbox_init(&seal->outbox, sealer->env.opt.wake_commit, sealer->env.opt.wake_self);
  tc_descriptors_init(&seal->descriptors, descriptors_max());
}

static void init_retention(struct tc_sealer *sealer) {
  const struct tc_sealer_options *opt = &sealer->env.opt;
  struct tc__retaining *retaining = &sealer->retaining;

  retaining->env = sealer->missing.env = &sealer->env;
  retaining->catalog = &sealer->catalog;
  retaining->streams = sealer->missing.streams = &sealer->seal.streams;
  retaining->files = &sealer->seal.queue;
  retaining->reserve = &sealer->reserve;
  retaining->aside = &sealer->seal.aside;
  sealer->missing.catalog = &sealer->catalog;
  tc_reserve_init(&sealer->reserve, opt->dirs->state, opt->config->disk_reserve_bytes);
  tc__retaining_init(retaining);
}

tb_rc tc_sealer_new(const struct tc_sealer_options *options, struct tb_diag *diag,
                    struct tc_sealer **out) {
  struct tc_sealer *sealer = calloc(1, sizeof *sealer);

  if (sealer == NULL) return tb_fail(diag, TB_NOMEM, "archive: no memory");
  sealer->env.opt = *options;
  sealer->wakeup.fd = -1;
  sealer->catalog.env = &sealer->env;
  tc__readers_init(&sealer->readers);
  sealer->work.tail = &sealer->work.first;
  sealer->work.barriers_tail = &sealer->work.barriers;
  tc_spsc_queue_init(&sealer->inbox, tc_wakeup_wake, &sealer->wakeup);
  init_seal(sealer);
  init_retention(sealer);
  sealer->recovery =
      (struct tc__recovery){ .seal = &sealer->seal, .folding = &sealer->retaining.folding };
  tb_rc rc = set_up(sealer, diag);
  if (rc != TB_OK) {
    tc_sealer_free(sealer);
    return rc;
  }
  *out = sealer;
  return TB_OK;
}

static void free_chain(struct tc_work *work) {
  for (struct tc_work *next; work != NULL; work = next) {
    next = work->next;
    tc_work_free(work);
  }
}

static void free_seal(struct tc__seal *seal) {
  tc__rests_fini(seal);
  tc__queue_fini(&seal->queue);
  tc__outbox_fini(&seal->outbox);
  tc__streams_fini(&seal->streams);
  free(seal->dirty.items);
}

void tc_sealer_free(struct tc_sealer *sealer) {
  if (sealer == NULL) return;
  for (struct tc_work *chain; (chain = tc_spsc_queue_take(&sealer->inbox)) != NULL;)
    free_chain(chain);
  free_chain(sealer->work.first);
  free_chain(sealer->work.barriers);
  tc__retaining_fini(&sealer->retaining);
  free_seal(&sealer->seal);
  tc__catalog_close(&sealer->catalog);
  tc_keys_free(sealer->env.signer);
  tc_wakeup_fini(&sealer->wakeup);
  tc__readers_fini(&sealer->readers);
  free(sealer);
}

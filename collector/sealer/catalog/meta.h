/* SPDX-License-Identifier: Apache-2.0 */
/* The content of a meta, made from a file that is about to be published, and changed where it already lies. */
#ifndef TC_SEALER_CATALOG_META_H
#define TC_SEALER_CATALOG_META_H

#include "collector/sealer/base/stream.h"
#include "collector/sealer/catalog/sync.h"

/* Strings and bytes are borrowed from the stream and the file. */
tc_meta *tc__build_meta(const struct tc__env *env, struct tc__file *file);
/* Of these of its generations only; the file's losses are with the first one. */
tc_meta *tc__build_meta_of(const struct tc__env *env, struct tc__file *file, size_t from,
                           size_t upto);
void tc__free_meta(tc_meta *meta); /* of tc__build_meta() */
/* Reads a meta that is to be changed. *out_signer: signs it again; NULL where its signature is none of ours, as what is
 * not ours must not become ours by being changed. */
TB_MUST tb_rc tc__read_to_change(const struct tc__env *env, int dir_fd, const char *name,
                                 struct tb_diag *diag, tc_meta **out,
                                 const struct tc_keys **out_signer);
typedef tb_rc tc__meta_change_fn(void *self, tc_meta *meta); /* an error: it stays as it was */
/* Changes of names in the folder reach the disk. */
TB_MUST tb_rc tc__sync_name(const struct tc__env *env, int dir_fd, const char *name,
                            struct tb_diag *diag);
/* Changes a stream's meta, and puts it into the catalog, too. Its new name is on the disk then; with
 * out_dir_fd that is left to the caller, which gets the folder to sync and close (-1 after a failure), and
 * syncs it before the catalog is committed. */
TB_MUST tb_rc tc__amend(struct tc__catalog_sync *sync, const char *stream_hex, const char *day,
                        uint64_t first_gen, tc__meta_change_fn *change, void *self, int *out_dir_fd,
                        struct tb_diag *diag);

#endif

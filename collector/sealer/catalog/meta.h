/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the meta of a file that is about to be published, and changes metas that are published. */
#ifndef TC_SEALER_CATALOG_META_H
#define TC_SEALER_CATALOG_META_H

#include "collector/sealer/base/stream.h"
#include "collector/sealer/catalog/sync.h"

/* Borrows strings and bytes from the stream and the file. Returns NULL if memory cannot be allocated. */
tc_meta *tc__build_meta(const struct tc__env *env, struct tc__file *file);
/* Builds a meta of generations [from, upto) only; the file's losses are with generation 0. */
tc_meta *tc__build_meta_of(const struct tc__env *env, struct tc__file *file, size_t from,
                           size_t upto);
void tc__free_meta(tc_meta *meta); /* takes the result of tc__build_meta() */
/* Reads a meta that is to be changed. *out_signer signs it again; NULL if it has no valid signature of ours, as a
 * change must not turn a foreign meta into ours. */
TB_MUST tb_rc tc__read_to_change(const struct tc__env *env, int dir_fd, const char *name,
                                 struct tb_diag *diag, tc_meta **out,
                                 const struct tc_keys **out_signer);
typedef tb_rc tc__meta_change_fn(void *self, tc_meta *meta); /* an error drops the change */
/* Syncs the folder; `name` is for the error's text. */
TB_MUST tb_rc tc__sync_name(const struct tc__env *env, int dir_fd, const char *name,
                            struct tb_diag *diag);
/* Changes a stream's meta and its row in the catalog, and syncs the folder. With out_dir_fd the caller gets the folder
 * instead (-1 after an error), and must sync it before the catalog is committed, and close it. */
TB_MUST tb_rc tc__amend(struct tc__catalog_sync *sync, const char *stream_hex, const char *day,
                        uint64_t first_gen, tc__meta_change_fn *change, void *self, int *out_dir_fd,
                        struct tb_diag *diag);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The .meta beside each segment: "TCMETA1\n", u32 length, SegmentMeta, u32 CRC32C of the message. A signature is the
 * message's last field and covers all bytes of the file before it.
 *
 * Memory    a read message is freed with tc_meta_free().
 * Threads   safe from any thread on different names.
 * Errors    read: TB_NOTFOUND, TB_CORRUPT, or as tc_errno_rc() says, with the name in diag.
 */
#ifndef TC_ARCHIVE_META_H
#define TC_ARCHIVE_META_H

#include "archive/content_hash.h"
#include "archive/signature.h"
#include "base/result.h"
#include "proto/meta.pb-c.h"

typedef Tracecollect__V1__SegmentMeta tc_meta;

enum { TC_META_BYTES_MAX = 64 << 20 };

TB_MUST tb_rc tc_meta_read(int dir_fd, const char *name, struct tb_diag *diag, tc_meta **out);
/* Reads a meta and, unless keys is NULL, checks the signature. */
TB_MUST tb_rc tc_meta_read_signed(int dir_fd, const char *name, const struct tc_keys *keys,
                                  struct tb_diag *diag, tc_meta **out, enum tc_signed *out_signed);
void tc_meta_free(tc_meta *meta);

/* Returns the bytes of a .meta file; the caller frees *out_bytes. TB_NOMEM. */
TB_MUST tb_rc tc_meta_pack(const tc_meta *meta, const struct tc_keys *signer,
                           unsigned char **out_bytes, size_t *out_n);
/* Unpacks a meta at the beginning of bytes; *out_n: its length. TB_CORRUPT: there is none. name: for messages. */
TB_MUST tb_rc tc_meta_unpack_first(const unsigned char *bytes, size_t n, const char *name,
                                   const struct tc_keys *keys, struct tb_diag *diag, tc_meta **out,
                                   size_t *out_n, enum tc_signed *out_signed);
/* Returns the length of a meta at the beginning of bytes whose mark, length and checksum are valid, even if the message
 * is not understood; 0: there is none. */
size_t tc_meta_frame(const unsigned char *bytes, size_t n);
/* Returns the highest sequence number in the meta's generations and losses. */
uint64_t tc_meta_last_seq(const tc_meta *meta);

/* Writes name.new in dir_fd (sync: with fsync; else call tc_meta_sync() later); tc_meta_publish() renames it to name.
 * The signature is made by signer (NULL: none); a signature that meta has already is not written. */
TB_MUST tb_rc tc_meta_write(int dir_fd, const char *name, const tc_meta *meta,
                            const struct tc_keys *signer, bool sync, struct tb_diag *diag);
TB_MUST tb_rc tc_meta_sync(int dir_fd, const char *name,
                           struct tb_diag *diag); /* TB_NOTFOUND: there is no name.new */
TB_MUST tb_rc tc_meta_publish(int dir_fd, const char *name, struct tb_diag *diag);

void tc_meta_name(uint64_t first_gen, char out[32]);  /* <gen16>.meta */
void tc_trace_name(uint64_t first_gen, char out[32]); /* <gen16>.trace */

/* Return the segment's content hash, and that of the stream's previous segment. */
struct tc_content_hash tc_meta_hash(const tc_meta *meta);
struct tc_content_hash tc_meta_previous(const tc_meta *meta);

/* Returns one code for all generations: pending if one is, else the first that is not OK. */
unsigned tc_meta_verdict(const tc_meta *meta, const char **out_reason);

#endif

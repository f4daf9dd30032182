/* SPDX-License-Identifier: Apache-2.0 */
/* CRC32C (Castagnoli, reflected polynomial 0x82F63B78), as in RFC 3720 appendix B.4.
 *
 * tb_crc32c(0, bytes, n) is the checksum of bytes; with a previous result as crc it continues that
 * checksum. tb_crc32c_join() computes the checksum of A followed by B from the checksums of A and B,
 * so one pass over a payload serves every checksum that covers it.
 *
 * Uses the processor's instruction if there is one. Safe from any thread.
 */
#ifndef TB_CRC32C_H
#define TB_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t tb_crc32c(uint32_t crc, const void *bytes, size_t n);
uint32_t tb_crc32c_join(uint32_t crc_a, uint32_t crc_b, uint64_t b_bytes);

#endif

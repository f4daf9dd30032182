/* SPDX-License-Identifier: Apache-2.0 */
/* CRC32C (Castagnoli, reflected polynomial 0x82F63B78), as in RFC 3720 appendix B.4.
 *
 * tb_crc32c(0, bytes, n) is the checksum of bytes; feeding a previous answer as crc goes on where it
 * ended. tb_crc32c_join() answers the checksum of A followed by B from those of A and B, without
 * their bytes, so that one pass over a payload serves every checksum it is part of.
 *
 * Uses the processor's instruction where it has one. Safe from any thread.
 */
#ifndef TB_CRC32C_H
#define TB_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t tb_crc32c(uint32_t crc, const void *bytes, size_t n);
uint32_t tb_crc32c_join(uint32_t crc_a, uint32_t crc_b, uint64_t b_bytes);

#endif

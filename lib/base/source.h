/* SPDX-License-Identifier: Apache-2.0 */
/* Identifies the peer of a connected socket for limits, without a certificate: by IPv4 address, by IPv6 /64 (whoever has one
 * address of it has all), or by the user at the other end of a unix socket. Unknown peers share the number 0. */
#ifndef TB_BASE_SOURCE_H
#define TB_BASE_SOURCE_H

#include <stdint.h>

uint64_t tb_source_of(int fd);

#endif

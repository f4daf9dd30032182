/* SPDX-License-Identifier: Apache-2.0 */
/* Who a connected socket's peer is, as far as limits can tell peers apart without a certificate: an IPv4 address, an IPv6
 * /64 (an owner of one address of it has them all), the user at the other end of a unix socket. 0: not known; all of
 * these are one. */
#ifndef TB_BASE_SOURCE_H
#define TB_BASE_SOURCE_H

#include <stdint.h>

uint64_t tb_source_of(int fd);

#endif

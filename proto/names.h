/* SPDX-License-Identifier: Apache-2.0 */
/* How long the names of a stream may be. docs/PROTOCOL.md has their alphabet. */
#ifndef TP_NAMES_H
#define TP_NAMES_H

enum { TC_STREAM_BYTES = 16, TC_NAME_MAX = 64, TC_IDENTITY_MAX = 128 };

#endif

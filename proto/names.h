/* SPDX-License-Identifier: Apache-2.0 */
/* Maximum lengths of a stream's names. docs/PROTOCOL.md defines their alphabet. */
#ifndef TP_NAMES_H
#define TP_NAMES_H

enum { TC_STREAM_BYTES = 16, TC_NAME_MAX = 64, TC_IDENTITY_MAX = 128 };

#endif

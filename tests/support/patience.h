/* SPDX-License-Identifier: Apache-2.0 */
/* How long a test waits for what must come: only a failure takes so long, and a busy machine is none. */
#ifndef TT_PATIENCE_H
#define TT_PATIENCE_H

enum { TT_PATIENCE_S = 90, TT_PATIENCE_MS = TT_PATIENCE_S * 1000 };

#endif

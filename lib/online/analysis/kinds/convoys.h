/* SPDX-License-Identifier: Apache-2.0 */
/* Convoys: queues that stay long, as findings. Private to this room. */
#ifndef TO_ANALYSIS_CONVOYS_H
#define TO_ANALYSIS_CONVOYS_H

#include "online/analysis/kinds/chain_tables.h"
#include "online/spans/queues.h"

struct to__convoys {
  const struct to_queues *queues;
  bool are_locks; /* queues are by lock, not by stack */
  uint64_t reasons;
  const struct to__generation_begins *begins;
};

/* Returns true if the queue is a convoy now, for a reason of which there are convoys. */
bool to__convoy_goes_on(const struct to_queues *queues, const struct to_queue *queue);
/* queues: by stack. False if nothing ever waited there, or if what waits has nothing to do. */
TB_MUST tb_rc to__queue_is_busy(struct to_analyses *a, const struct to_queues *queues,
                                uint32_t stack, bool *out);
TB_MUST tb_rc to__convoy_findings(struct to_analyses *a, const struct to__convoys *convoys,
                                  const struct to_finding_sink *sink);

#endif

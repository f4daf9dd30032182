/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "collector/sealer/base/work.h"

void tc_settled_free(struct tc_settled *settled) {
  if (settled != NULL) free(settled->checkpoint);
  free(settled);
}

struct tc_work *tc_work_new(enum tc_work_kind kind, uint32_t stream) {
  struct tc_work *work = calloc(1, sizeof *work);

  if (work == NULL) return NULL;
  work->kind = kind;
  work->stream = stream;
  work->magic = TC_WORK_MAGIC;
  return work;
}

void tc_work_free(struct tc_work *work) {
  if (work == NULL) return;
  TB_MAGIC_END(work, TC_WORK_MAGIC);
  if (work->kind == TC_WORK_RECORDS)
    for (struct tc_record *record = work->records.head, *next; record != NULL; record = next) {
      next = record->next;
      record->free(record);
    }
  if (work->kind == TC_WORK_STREAM) free(work->intro);
  if (work->kind == TC_WORK_VERDICT) free(work->verdict);
  free(work);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/actions/waiting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node {
  struct ac_task task;
  struct node *next;
};

/* Exists while a firing of the rule waits or is under way. */
struct ac_queue {
  char rule[AC_RULE_MAX + 1];
  struct node *first, **last;
  struct node *under_way; /* NULL: none */
  size_t n;
  uint64_t turn, due_ns; /* the lowest turn is served first */
  struct ac_queue *next;
};

static struct ac_queue *find_queue(const struct ac_waiting *waiting, const char *rule) {
  struct ac_queue *queue = waiting->queues;

  while (queue != NULL && strcmp(queue->rule, rule) != 0) queue = queue->next;
  return queue;
}

/* Returns NULL if memory cannot be allocated. */
static struct ac_queue *find_or_make(struct ac_waiting *waiting, const char *rule) {
  struct ac_queue *queue = find_queue(waiting, rule);

  if (queue != NULL || (queue = calloc(1, sizeof *queue)) == NULL) return queue;
  snprintf(queue->rule, sizeof queue->rule, "%s", rule);
  queue->last = &queue->first;
  queue->turn = ++waiting->turns;
  queue->next = waiting->queues;
  waiting->queues = queue;
  return queue;
}

static void free_if_empty(struct ac_waiting *waiting, struct ac_queue *queue) {
  struct ac_queue **at = &waiting->queues;

  if (queue->n > 0 || queue->under_way != NULL) return;
  while (*at != queue) at = &(*at)->next;
  *at = queue->next;
  free(queue);
}

static struct node *take_first(struct ac_waiting *waiting, struct ac_queue *queue) {
  struct node *node = queue->first;

  queue->first = node->next;
  if (queue->first == NULL) queue->last = &queue->first;
  queue->n--;
  waiting->n--;
  return node;
}

static struct ac_queue *longest(const struct ac_waiting *waiting) {
  struct ac_queue *found = waiting->queues;

  for (struct ac_queue *queue = found->next; queue != NULL; queue = queue->next)
    if (queue->n > found->n) found = queue;
  return found;
}

/* Its retry time is dropped, too. */
static void give_up_oldest(struct ac_waiting *waiting, struct ac_task *out) {
  struct ac_queue *queue = longest(waiting);
  struct node *node = take_first(waiting, queue);

  *out = node->task;
  queue->due_ns = 0;
  free(node);
  free_if_empty(waiting, queue);
}

tb_rc ac_waiting_put(struct ac_waiting *waiting, const struct ac_task *task,
                     struct ac_task *out_given_up) {
  struct node *node = malloc(sizeof *node);

  *out_given_up = (struct ac_task){ .text = NULL };
  if (node == NULL) return TB_NOMEM;
  if (waiting->n >= AC_WAITING_MAX) give_up_oldest(waiting, out_given_up);
  struct ac_queue *queue = find_or_make(waiting, task->rule);
  if (queue == NULL) {
    free(node);
    return TB_NOMEM;
  }
  *node = (struct node){ .task = *task };
  *queue->last = node;
  queue->last = &node->next;
  queue->n++;
  waiting->n++;
  return TB_OK;
}

static bool is_ready(const struct ac_queue *queue) {
  return queue->n > 0 && queue->under_way == NULL;
}

bool ac_waiting_take(struct ac_waiting *waiting, uint64_t now_ns, struct ac_task *out) {
  struct ac_queue *found = NULL;

  for (struct ac_queue *queue = waiting->queues; queue != NULL; queue = queue->next)
    if (is_ready(queue) && queue->due_ns <= now_ns && (found == NULL || queue->turn < found->turn))
      found = queue;
  if (found == NULL) return false;
  found->turn = ++waiting->turns;
  found->under_way = take_first(waiting, found);
  *out = found->under_way->task;
  return true;
}

void ac_waiting_over(struct ac_waiting *waiting, struct ac_task *task) {
  struct ac_queue *queue = find_queue(waiting, task->rule);

  free(TB_MOVE(task->text));
  free(TB_MOVE(queue->under_way));
  queue->due_ns = 0;
  free_if_empty(waiting, queue);
}

void ac_waiting_later(struct ac_waiting *waiting, const struct ac_task *task, uint64_t due_ns) {
  struct ac_queue *queue = find_queue(waiting, task->rule);
  struct node *node = TB_MOVE(queue->under_way);

  node->task = *task;
  node->next = queue->first;
  if (queue->first == NULL) queue->last = &node->next;
  queue->first = node;
  queue->due_ns = due_ns;
  queue->n++;
  waiting->n++;
}

uint64_t ac_waiting_due(const struct ac_waiting *waiting) {
  uint64_t due_ns = UINT64_MAX;

  for (const struct ac_queue *queue = waiting->queues; queue != NULL; queue = queue->next)
    if (is_ready(queue) && queue->due_ns < due_ns) due_ns = queue->due_ns;
  return due_ns;
}

void ac_waiting_fini(struct ac_waiting *waiting) {
  for (struct ac_queue *queue; (queue = waiting->queues) != NULL;) {
    while (queue->n > 0) {
      struct node *node = take_first(waiting, queue);
      free(node->task.text);
      free(node);
    }
    if (queue->under_way != NULL) free(queue->under_way->task.text);
    free(TB_MOVE(queue->under_way));
    free_if_empty(waiting, queue);
  }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A program's own experiments, as text: in a file, at registration, and in the trace itself.
 *
 *   experiment Cache
 *   event Hit key_string bytes_value           # needs a thread, a proc and a goroutine
 *   event Evict ctx=M lru lru_seq bytes_value  # needs a thread; lru's events follow each other by number
 *
 * An argument is name(_type)?. The type is one of string, g, stack, value (the default), seq, m, p, task, pstatus, gstatus. ctx
 * is MPG (the default), MP, M or any. An argument X_seq orders the events that have it: number 1 of X comes before number 2,
 * whatever the clocks say. If the event also has an argument X or X_type, its value identifies the X that the number belongs
 * to; otherwise the experiment has only one X. Numbers begin with 1 in each generation.
 *
 * In a trace every experiment and event also has its number (id=2, id=137). The text is in experimental batches of experiment
 * TW_EXPERIMENT_SPECS, after the line TW_EXPERIMENTS_MAGIC, in each generation that has such events: so each generation can be
 * read alone. A repeated declaration must equal the first one.
 *
 * Memory    one object of fixed size; texts are copied into it.
 * Errors    TB_BROKEN, with line and reason in diag. Earlier declarations stay.
 */
#ifndef TW_EXPERIMENTS_H
#define TW_EXPERIMENTS_H

#include "base/result.h"
#include "wire/spec.h"

enum {
  TW_EXPERIMENT_FIRST = 2,   /* numbers of experiments: 1 is AllocFree */
  TW_EXPERIMENT_SPECS = 255, /* not an experiment: its batches declare the others */
  TW_OWN_EVENT_FIRST = 137,  /* numbers of events: those below are Go's */
  TW_OWN_EVENTS_MAX = 256 - TW_OWN_EVENT_FIRST,
  TW_EXPERIMENTS_MAX = 32, /* in a trace */
  TW_EXPERIMENT_NAME_MAX = 48,
  TW_ARG_LABEL_MAX = 32,
  TW_SEQUENCES_MAX = 16,
  TW_EXPERIMENTS_TEXT_MAX = 16 << 10, /* all names together */
  TW_EXPERIMENT_LINE_MAX = 320,       /* maximum of tw_experiment_write() */
};
#define TW_EXPERIMENTS_MAGIC "tracecollect experiments 1\n"

/* Returns an argument's type by the part of the label after the last underscore, or by the whole label. */
enum tw_arg_type tw_arg_type_of(const char *label);
const char *tw_arg_type_name(enum tw_arg_type type); /* "value" */

enum tw_context { TW_CTX_MPG, TW_CTX_MP, TW_CTX_M, TW_CTX_ANY, TW_CONTEXTS };
const char *tw_context_name(enum tw_context context);

struct tw_own_event {
  struct tw_spec spec; /* like that of Go's events; kind TW_KIND_EXPERIMENT */
  uint8_t type;        /* its number; 0: none yet */
  uint8_t experiment;  /* index */
  uint8_t context;     /* enum tw_context */
  uint8_t sequence;    /* index, if seq_arg is not -1 */
  int8_t seq_arg;      /* index of the argument X_seq; -1: none */
  int8_t of_arg;       /* index of the argument that identifies the X; -1: none */
};

struct tw_experiments {
  struct {
    const char *name;
    uint8_t number; /* 0: none yet */
  } experiment[TW_EXPERIMENTS_MAX];
  struct {
    const char *name;
    uint8_t experiment; /* index */
  } sequence[TW_SEQUENCES_MAX];
  struct tw_own_event event[TW_OWN_EVENTS_MAX];
  uint8_t place[TW_OWN_EVENTS_MAX]; /* by number: index + 1; 0: none such */
  unsigned experiments, sequences, events;
  size_t text_bytes;
  char text[TW_EXPERIMENTS_TEXT_MAX];
};

void tw_experiments_init(struct tw_experiments *x);
/* Adds the declarations of text. numbered: every line must have its number; otherwise none may. */
TB_MUST tb_rc tw_experiments_read(struct tw_experiments *x, const char *text, size_t len,
                                  bool numbered, struct tb_diag *diag);

/* Finds the text in a batch of this experiment. Returns false if there is none. */
bool tw_experiments_text(uint8_t experiment, const unsigned char *data, size_t len,
                         const char **out_text, size_t *out_len);

/* Returns NULL if there is no event of that number. */
static inline const struct tw_own_event *tw_own_event(const struct tw_experiments *x,
                                                      uint8_t type) {
  if (x == NULL || type < TW_OWN_EVENT_FIRST) return NULL;
  uint8_t place = x->place[type - TW_OWN_EVENT_FIRST];
  return place == 0 ? NULL : &x->event[place - 1];
}

/* Write an experiment or an event as a line with newline; return the length, less than TW_EXPERIMENT_LINE_MAX. */
size_t tw_experiment_write(const struct tw_experiments *x, unsigned experiment,
                           char out[TW_EXPERIMENT_LINE_MAX]);
size_t tw_own_event_write(const struct tw_own_event *event, char out[TW_EXPERIMENT_LINE_MAX]);

#endif

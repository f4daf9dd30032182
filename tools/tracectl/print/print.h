/* SPDX-License-Identifier: Apache-2.0 */
/* The forms of `tracectl cat`: parsed and json print ordered events, wire and footprint events in the order of the file.
 *
 * parsed, wire and footprint are byte for byte the output of Go 1.26's `go tool trace -d=MODE`; docs/FORMAT.md has the
 * pitfalls. On a terminal, unprintable characters in names of frames are shown as '?'.
 */
#ifndef TK_PRINT_PRINT_H
#define TK_PRINT_PRINT_H

#include "base/buf.h"
#include "online/event/allocfree.h"
#include "online/event/view.h"
#include "tools/tracectl/term/out.h"
#include "tools/tracectl/trace_file/input.h"

/* Properties of event types for parsed.c, and cached words. */
enum { TK_STATES = 8, TK_REASONS = 32 };
struct tk_parsed_words {
  bool known;
  uint8_t kind[256];      /* enum to_event_kind */
  uint8_t stack_arg[256]; /* index of the stack argument; none: beyond the last */
  struct tk_word kinds[TO_KIND_EXPERIMENTAL + 1];
  struct tk_word from[2][TK_STATES], to[2][TK_STATES]; /* of goroutines, of procs */
  struct {
    uint64_t id;         /* a string's */
    struct tk_word text; /* empty: none yet */
  } reasons[TK_REASONS]; /* quoted, of one generation, indexed by low bits of the id */
};

/* Prints ordered events; its events() is a to_event_sink's. */
struct tk_printer {
  struct tk_out *out;
  struct tb_diag *diag;          /* receives an error of printing */
  struct tk_stack_texts *stacks; /* texts of one generation's stacks: events share few */
  uint64_t gen;                  /* the generation's number; 0: none yet */
  struct tk_parsed_words words;
  struct to_allocfree heap; /* of the generation heap_gen, 0: none yet */
  uint64_t heap_gen;
};

TB_MUST tb_rc tk_printer_init(struct tk_printer *printer, struct tb_mem *mem, struct tk_out *out,
                              struct tb_diag *diag);
void tk_printer_fini(struct tk_printer *printer);
tb_rc tk_print_parsed(void *self, const struct to_generation *gen, const struct to_event *events,
                      size_t n);
tb_rc tk_print_json(void *self, const struct to_generation *gen, const struct to_event *events,
                    size_t n);

/* Resolves ids of an event: by its generation's tables, or those of a leased bundle. */
typedef void tk_frame_fn(void *self, const struct to_frame *frame);
struct tk_names {
  const void *self;
  const struct to_generation *gen; /* NULL: there is none */
  struct to_string (*string)(const void *self, uint64_t id);
  struct to_string (*task_type)(const void *self,
                                uint64_t id); /* returns the type of a UserTaskEnd */
  bool (*knows_stack)(const void *self, uint64_t id);
  void (*stack)(const void *self, uint64_t id, tk_frame_fn *each, void *arg);
  const struct tw_spec *(*spec)(const void *self, uint8_t type);
  const char *(*experiment)(const void *self, uint8_t type);                    /* NULL: of none */
  struct to_string (*object_type)(const void *self, const struct to_event *ev); /* "": unknown */
};
/* Writes the fields of an event's JSON object, without braces. */
void tk_event_json(struct tk_out *out, const struct tk_names *names, const struct to_event *ev);

/* Writes the fields specific to its kind, each with a comma before it. heap knows the generation's
 * types. */
void tk_event_details_json(struct tk_out *out, const struct to_generation *gen,
                           const struct to_allocfree *heap, const struct to_event *ev);

/* Call for a new generation: its ids have other texts. */
void tk_stack_texts_forget(struct tk_printer *printer);
/* Formats a stack like Go, "\tFUNC @ 0xPC\n\t\tFILE:LINE\n" a frame; lent until the next call. TB_NOTFOUND:
 * the generation has no such stack. */
TB_MUST tb_rc tk_stack_text(struct tk_printer *printer, const struct to_generation *gen,
                            uint64_t id, const unsigned char **out_text, size_t *out_len);

/* These read the input themselves. Return TB_OK, or an error with diag. */
tb_rc tk_print_wire(struct tk_input *in, struct tk_out *out, struct tb_mem *mem,
                    struct tb_diag *diag);
tb_rc tk_print_footprint(struct tk_input *in, struct tk_out *out, struct tb_mem *mem,
                         struct tb_diag *diag);

#endif

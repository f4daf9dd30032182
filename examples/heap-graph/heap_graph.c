/* SPDX-License-Identifier: Apache-2.0 */
/* heap-graph TRACE: what a garbage collector left in the heap, and which spans its scan led to.
 *
 *   cc heap_graph.c $(pkg-config --cflags --libs traceonline) -o heap-graph
 *
 * The program traced writes two blobs a cycle, each held by one log, where single events would be millions:
 *   heap.spans     at sweep termination, for each span: pages, live objects, bytes an object (LEB128)
 *   heap.pointers  during the scan, for each pointer followed: span it stands in, span it leads to, counted from 0
 * online/trace/substreams.h gives them out joined and whole, with their generation; what is broken is said and left out. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "online/trace/reader.h"
#include "online/trace/substreams.h"
#include "wire/varint.h"

enum { PAGE_BYTES = 8192 };

struct analysis {
  struct to_substreams *s;
  const char *path;
  uint64_t *leads_to; /* by span of the last heap.spans: pointers followed into it */
  uint64_t spans;
};

static void complain(void *self, const struct tb_diag *fault) {
  const struct analysis *a = self;
  char text[300];

  tb_diag_format(fault, text, sizeof text);
  fprintf(stderr, "%s: %s\n", a->path, text);
}

static bool read_row(struct to_bytes *from, uint64_t *row, int n) {
  for (int i = 0; i < n; i++) {
    int used = tw_varint_read(from->data, from->data + from->len, &row[i]);
    if (used <= 0) return false;
    from->data += used;
    from->len -= (size_t)used;
  }
  return true;
}

static tb_rc take_spans(struct analysis *a, const struct to_event *ev, struct to_bytes blob) {
  uint64_t row[3], spans = 0, pages = 0, live = 0;

  for (; read_row(&blob, row, 3); spans++) pages += row[0], live += row[1] * row[2];
  free(a->leads_to);
  a->leads_to = calloc(spans + 1, sizeof *a->leads_to);
  a->spans = spans;
  printf("%" PRId64 ": %" PRIu64 " spans of %" PRIu64 " KiB, %" PRIu64 " KiB of it live\n",
         ev->time, spans, pages * PAGE_BYTES / 1024, live / 1024);
  return a->leads_to == NULL ? TB_NOMEM : TB_OK;
}

static void take_pointers(struct analysis *a, const struct to_event *ev, struct to_bytes blob) {
  uint64_t row[2], followed = 0, within = 0, most = 0, unreached = a->spans;

  for (; read_row(&blob, row, 2); followed++) {
    within += row[0] == row[1];
    if (row[1] < a->spans && a->leads_to[row[1]]++ == 0) unreached--;
  }
  for (uint64_t i = 0; i < a->spans; i++)
    if (a->leads_to[i] > a->leads_to[most]) most = i;
  printf("%" PRId64 ": %" PRIu64 " pointers followed, %" PRIu64 " within a span; most (%" PRIu64
         ") into span %" PRIu64 "; none into %" PRIu64 "\n",
         ev->time, followed, within, a->spans == 0 ? 0 : a->leads_to[most], most, unreached);
}

static tb_rc take_blob(struct analysis *a, const struct to_event *ev, uint64_t id) {
  struct tb_diag diag = { 0 };
  struct to_bytes bytes;
  tb_rc rc = to_blob_read(a->s, id, &diag, &bytes);

  if (rc == TB_NOTFOUND)
    complain(a, &diag); /* one that is broken was reported with its generation */
  if (rc != TB_OK) return tb_rc_class(rc) == TB_HOST ? rc : TB_OK;
  struct to_string name = to_blob_find(a->s, id)->substream->name;
  if (name.len == 10 && memcmp(name.data, "heap.spans", 10) == 0) return take_spans(a, ev, bytes);
  if (name.len == 13 && memcmp(name.data, "heap.pointers", 13) == 0) take_pointers(a, ev, bytes);
  return TB_OK;
}

static tb_rc events(void *self, const struct to_generation *gen, const struct to_event *ev,
                    size_t n) {
  struct analysis *a = self;
  uint64_t id;

  for (; n > 0; n--, ev++) {
    if (ev->type == TW_EV_SYNC && gen != NULL) TB_TRY(to_substreams_generation(a->s, gen));
    if ((id = to_event_blob(gen, ev)) != 0) TB_TRY(take_blob(a, ev, id));
  }
  return TB_OK;
}

int main(int argc, char **argv) {
  struct analysis a = { .path = argc == 2 ? argv[1] : "" };
  int fd = open(a.path, O_RDONLY | O_CLOEXEC);
  struct tb_diag diag = { 0 };
  struct to_reader *reader;
  struct tb_mem mem;
  struct stat st;

  if (fd < 0 || fstat(fd, &st) != 0) return fprintf(stderr, "usage: heap-graph TRACE\n"), 2;
  const unsigned char *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (bytes == MAP_FAILED) return perror(a.path), 1;
  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  if (to_substreams_new(&mem, (struct to_fault_sink){ &a, complain }, &a.s) != TB_OK ||
      to_reader_new(&mem, NULL, TO_READER_BYTES_STAY, (struct to_event_sink){ &a, events }, &diag,
                    &reader) != TB_OK)
    return fprintf(stderr, "out of memory\n"), 1;

  tb_rc rc = to_reader_read(reader, bytes, (size_t)st.st_size);
  to_reader_free(reader);
  to_substreams_free(a.s);
  free(a.leads_to);
  if (rc != TB_OK) complain(&a, &diag);
  return rc == TB_OK ? 0 : 1;
}

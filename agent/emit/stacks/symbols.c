/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/emit/stacks/symbols.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "agent/emit/core/cut.h"
#include "agent/emit/stacks/dwarf.h"
#include "agent/host/clock.h"
#include "agent/host/process.h"
#include "agent/host/spawn.h"

enum {
  SYMBOLS_LOG2 = 14,
  SYMBOLS = 1 << SYMBOLS_LOG2,
  SYMBOLS_FULL = SYMBOLS / 4 * 3,
  TEXTS = SYMBOLS,
  TEXT_BYTES = 1 << 20,
  END_MS = 200,
};

enum state { FREE, WANTED, KNOWN };

struct memory {
  struct ta_symbol symbols[SYMBOLS]; /* hash table by pc */
  uint32_t texts[TEXTS];             /* hash table by text: index in bytes; 0: free */
  uint64_t bytes[TEXT_BYTES / 8];
};

static struct memory *memory;
/* Guards memory and the variables below. */
static TA_AT_FORK pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static uint32_t used, texts_used, bytes_used; /* bytes_used in words */
static uint32_t wanted, epoch;
static bool full, running, stopping;
static pthread_t thread;
static bool to_be_joined; /* `thread` was started and not joined yet */

/* Texts, each stored once. */

static uint32_t hash_text(const char *bytes, size_t n) {
  uint32_t hash = 2166136261u;

  for (size_t i = 0; i < n; i++) hash = (hash ^ (unsigned char)bytes[i]) * 16777619u;
  return hash;
}

static struct ta_text *text_of(const char *bytes) {
  size_t n = ta_cut(bytes, strlen(bytes)), words = (sizeof(struct ta_text) + n + 7) / 8;
  uint32_t at = hash_text(bytes, n) % TEXTS;

  for (; memory->texts[at] != 0; at = (at + 1) % TEXTS) {
    struct ta_text *kept = (struct ta_text *)&memory->bytes[memory->texts[at]];
    if (kept->len == n && memcmp(kept->bytes, bytes, n) == 0) return kept;
  }
  if (texts_used == TEXTS / 2 || words > TEXT_BYTES / 8 - bytes_used) {
    full = true;
    return NULL;
  }
  struct ta_text *text = (struct ta_text *)&memory->bytes[bytes_used];
  memory->texts[at] = bytes_used;
  bytes_used += (uint32_t)words;
  texts_used++;
  *text = (struct ta_text){ .len = (uint32_t)n };
  memcpy(text->bytes, bytes, n);
  return text;
}

/* Symbols. */

static struct ta_symbol *place_of(uint64_t pc) {
  uint64_t hash = pc * UINT64_C(0x9e3779b97f4a7c15);
  uint32_t at = (uint32_t)(hash >> (64 - SYMBOLS_LOG2));

  while (memory->symbols[at].pc != pc && memory->symbols[at].state != FREE) at = (at + 1) % SYMBOLS;
  return &memory->symbols[at];
}

static void empty_tables(void) {
  if (bytes_used > 1) {
    memset(memory->symbols, 0, sizeof memory->symbols);
    memset(memory->texts, 0, sizeof memory->texts);
  }
  used = texts_used = wanted = 0;
  bytes_used = 1;
  full = false;
  epoch++;
}

static const char *program;

void ta_symbols_program(const char *name) {
  program = name;
}

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');

  if (strcmp(path, "/proc/self/exe") == 0)
    return program != NULL ? program : program_invocation_short_name;
  return slash != NULL ? slash + 1 : path;
}

/* Returns the name to use while no other is known. */
static struct ta_text *by_offset(const struct ta_module *module, uint64_t pc) {
  char text[300];

  snprintf(text, sizeof text, "%.256s+0x%llx", base_name(module->path),
           (unsigned long long)(pc - module->bias));
  return text_of(text);
}

/* The thread that looks names up. A fork waits while the thread calls the loader, not while it reads files. */

static struct ta_symbol *next_wanted(uint32_t *at) {
  for (uint32_t i = 0; i < SYMBOLS; i++, *at = (*at + 1) % SYMBOLS)
    if (memory->symbols[*at].state == WANTED) return &memory->symbols[*at];
  return NULL;
}

static void look_up(struct ta_dwarf *dwarf, struct ta_symbol *symbol) {
  static struct ta_found found;
  struct ta_module module = { 0 };
  const struct ta_module *in = ta_modules_find_any(symbol->pc);
  char path[4096];
  uint64_t pc = symbol->pc;
  uint32_t begun = epoch;

  if (in != NULL) {
    module = *in;
    snprintf(path, sizeof path, "%s", in->path);
    module.path = path;
  }
  pthread_mutex_unlock(&lock);
  ta_process_work_begin();
  bool loaded = ta_dwarf_load();
  ta_process_work_end();
  bool known = in != NULL && loaded && ta_dwarf_find(dwarf, &module, pc, &found);
  pthread_mutex_lock(&lock);
  if (epoch != begun) return;
  wanted--;
  symbol->state = KNOWN;
  if (!known) return;
  struct ta_text *function = text_of(found.function);
  if (function == NULL) return;
  symbol->function = function;
  symbol->file = found.file == NULL ? NULL : text_of(found.file);
  symbol->line = found.line;
}

static void *thread_main(void *self) {
  struct ta_dwarf dwarf = { 0 };
  uint32_t at = 0;

  pthread_mutex_lock(&lock);
  while (!stopping) {
    uint32_t begun = epoch;
    struct ta_symbol *symbol = wanted > 0 ? next_wanted(&at) : NULL;
    if (symbol != NULL) {
      look_up(&dwarf, symbol);
      if (epoch == begun && wanted > 0) continue;
    }
    /* libdw's data takes memory, and may be out of date when the next name is requested. */
    ta_dwarf_close(&dwarf);
    if (wanted > 0) continue;
    pthread_cond_broadcast(&changed);
    pthread_cond_wait(&changed, &lock);
  }
  ta_dwarf_close(&dwarf);
  running = false;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  return self;
}

/* Calls of the flusher. */

/* Called once for all sessions: the previous session's thread may still use the condition. */
static void init_changed(void) {
  ta_cond_init(&changed);
}

void ta_symbols_open(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;

  pthread_once(&once, init_changed);
  pthread_mutex_lock(&lock);
  stopping = false;
  pthread_mutex_unlock(&lock);
}

/* Waits for the thread to end, because the program may unload this library next. A thread in the middle of a large file is
 * detached after END_MS and ends when it has read the file. */
void ta_symbols_close(void) {
  struct timespec until = ta_timespec(ta_mono_ns() + END_MS * UINT64_C(1000000));

  pthread_mutex_lock(&lock);
  stopping = true;
  pthread_cond_broadcast(&changed);
  while (running)
    if (pthread_cond_timedwait(&changed, &lock, &until) != 0) break;
  bool ours = to_be_joined, ended = !running;
  to_be_joined = false;
  pthread_mutex_unlock(&lock);
  if (ours && ended)
    pthread_join(thread, NULL);
  else if (ours)
    pthread_detach(thread);
}

static TA_AT_FORK bool forks; /* the forking thread holds the lock */
static TA_AT_FORK bool torn;  /* another thread was changing memory at the fork() */

TA_CODE_AT_FORK void ta_symbols_fork(void) {
  forks = pthread_mutex_trylock(&lock) == 0;
}

TA_CODE_AT_FORK void ta_symbols_forked(void) {
  if (forks) pthread_mutex_unlock(&lock);
}

TA_CODE_AT_FORK void ta_symbols_forked_child(void) {
  if (!forks) torn = true;
  lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

/* The parent's names are valid in the child, unless a thread was changing the tables. The child looks up those still pending. */
void ta_symbols_keep_or_forget(void) {
  ta_cond_init(&changed);
  running = to_be_joined = false;
  if (torn && memory != NULL) {
    munmap(memory, sizeof *memory);
    memory = NULL;
  }
  torn = false;
}

static bool make_memory(void) {
  if (memory != NULL) return true;
  void *map = mmap(NULL, sizeof *memory, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) return false;
  memory = map;
  bytes_used = 1;
  empty_tables();
  return true;
}

/* Calls the loader only while no fork is under way: the loader's lock would stay locked in the child. */
void ta_symbols_begin(void) {
  ta_process_work_begin();
  pthread_mutex_lock(&lock);
  bool moved = ta_modules_look();
  ta_process_work_end();
  if (memory != NULL && (moved || full)) empty_tables();
}

static void want_in(const struct ta_module *module, uint64_t pc) {
  if (module == NULL || !make_memory()) return;
  struct ta_symbol *symbol = place_of(pc);
  if (symbol->state != FREE) return;
  full |= used == SYMBOLS_FULL;
  struct ta_text *text = full ? NULL : by_offset(module, pc);
  if (text == NULL) return;
  *symbol = (struct ta_symbol){ .pc = pc, .function = text, .state = WANTED };
  used++;
  wanted++;
}

void ta_symbols_want(uint64_t pc) {
  want_in(ta_modules_find(pc), pc);
}

void ta_symbols_want_data(uint64_t at) {
  want_in(ta_modules_find_any(at), at);
}

/* Sets the stack's size, because the default is the program's limit for the first thread's stack. */
static bool start_thread(void) {
  enum { STACK_BYTES = 1 << 20 };

  return ta_spawn(&thread, "traceagent-name", STACK_BYTES, thread_main, NULL) == 0;
}

void ta_symbols_hold(uint64_t until_ns) {
  struct timespec until = ta_timespec(until_ns);

  if (wanted == 0) return;
  if (!running) running = to_be_joined = start_thread();
  pthread_cond_broadcast(&changed);
  while (running && wanted > 0)
    if (pthread_cond_timedwait(&changed, &lock, &until) != 0) break;
}

struct ta_symbol *ta_symbols_of(uint64_t pc) {
  if (memory == NULL) return NULL;
  struct ta_symbol *symbol = place_of(pc);
  return symbol->state == FREE ? NULL : symbol;
}

void ta_symbols_release(void) {
  pthread_mutex_unlock(&lock);
}

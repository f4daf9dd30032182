/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that execute another program in their place. The session ends before, and its stream states why; if the call fails,
 * the program continues with a new session.
 *
 * Only the process that owns the session ends it: a child of vfork() calls these functions in its parent's memory. If a path is
 * given, it is checked first, so that a file that cannot be executed ends no session. */
#include <stdarg.h>
#include <string.h>

#include "agent/preload/preload.h"

enum { ARGS_AT_ONCE = 128 };

static bool can_run(const char *path) {
  int before = errno;
  bool can = faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0;

  errno = before;
  return can;
}

/* path: NULL if it is not known. */
static bool ends_session(const char *path) {
  if (ta_agent_runs() || !ta_preload_is_on()) return false;
  if (path != NULL && !can_run(path)) return false;
  ta_preload_leave("exec");
  return true;
}

static const char *path_of(const char *file) {
  return strchr(file, '/') != NULL ? file : NULL;
}

/* Reached only if the call has failed. */
static int stay(bool ended, int answer) {
  if (ended) ta_preload_stay();
  return answer;
}

TA_API int execve(const char *path, char *const args[], char *const env[]) {
  bool ended = ends_session(path);

  return stay(ended, TA_REAL(execve)(path, args, env));
}

TA_API int execv(const char *path, char *const args[]) {
  bool ended = ends_session(path);

  return stay(ended, TA_REAL(execv)(path, args));
}

TA_API int execvpe(const char *file, char *const args[], char *const env[]) {
  bool ended = ends_session(path_of(file));

  return stay(ended, TA_REAL(execvpe)(file, args, env));
}

TA_API int execvp(const char *file, char *const args[]) {
  bool ended = ends_session(path_of(file));

  return stay(ended, TA_REAL(execvp)(file, args));
}

TA_API int fexecve(int fd, char *const args[], char *const env[]) {
  bool ended = ends_session(NULL);

  return stay(ended, TA_REAL(fexecve)(fd, args, env));
}

TA_API int execveat(int folder, const char *path, char *const args[], char *const env[],
                    int flags) {
  bool ended = ends_session(NULL);

  return stay(ended, TA_REAL(execveat)(folder, path, args, env, flags));
}

/* Arguments one by one. A long list is stored in a mapping: a child of vfork() must not allocate. */

struct list {
  char **args, *few[ARGS_AT_ONCE];
  size_t mapped_bytes;
};

/* Returns false if memory cannot be allocated. */
static bool collect(struct list *l, const char *first, va_list more) {
  size_t n = first != NULL;
  va_list again;

  va_copy(again, more);
  while (n > 0 && va_arg(again, char *) != NULL) n++;
  va_end(again);
  l->args = l->few;
  l->mapped_bytes = n < ARGS_AT_ONCE ? 0 : (n + 1) * sizeof *l->args;
  if (l->mapped_bytes != 0) {
    void *map =
        mmap(NULL, l->mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) return false;
    l->args = map;
  }
  l->args[0] = (char *)(uintptr_t)first;
  for (size_t i = 1; i <= n; i++) l->args[i] = va_arg(more, char *);
  return true;
}

static int done(struct list *l, int answer) {
  int before = errno;

  if (l->mapped_bytes != 0) munmap(l->args, l->mapped_bytes);
  errno = before;
  return answer;
}

#define EXEC_LIST(name, path, first, then)                                                         \
  TA_API int name(const char *path, const char *first, ...) {                                      \
    struct list l;                                                                                 \
    va_list more;                                                                                  \
    va_start(more, first);                                                                         \
    bool collected = collect(&l, first, more);                                                     \
    char *const *env = environ;                                                                    \
    then;                                                                                          \
    va_end(more);                                                                                  \
    return collected ? done(&l, CALL_##name(path, l.args, env)) : -1;                              \
  }
#define CALL_execl(path, args, env)  execve(path, args, env)
#define CALL_execlp(path, args, env) execvpe(path, args, env)
#define CALL_execle(path, args, env) execve(path, args, env)

EXEC_LIST(execl, path, arg, (void)0)
EXEC_LIST(execlp, file, arg, (void)0)
EXEC_LIST(execle, path, arg, if (collected) env = va_arg(more, char *const *))

/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_host PLUGIN SERVER CERTS DEADLINE_MS: loads the plugin, lets threads call it, stops and
 * unloads it. Then the threads end, the signal of the plugin's samples arrives, and the process
 * forks. The host does all of this twice, and exits. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 8, ROUNDS = 2, EVENTS = 1000, HZ = 1000 };

static pthread_barrier_t called, unloaded;
static void (*event)(void);

static void *thread_main(void *self) {
  for (int i = 0; i < EVENTS; i++) event();
  pthread_barrier_wait(&called);
  pthread_barrier_wait(&unloaded);
  return self;
}

static void *need(void *library, const char *name) {
  void *found = dlsym(library, name);

  if (found == NULL) fprintf(stderr, "%s\n", dlerror()), exit(2);
  return found;
}

static void round_of(char **argv) {
  void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  pthread_t thread[THREADS];

  if (plugin == NULL) fprintf(stderr, "%s\n", dlerror()), exit(2);
  int (*begin)(const char *, const char *, int), (*end)(int);
  *(void **)&begin = need(plugin, "plugin_begin");
  *(void **)&event = need(plugin, "plugin_event");
  *(void **)&end = need(plugin, "plugin_end");
  int error = begin(argv[2], argv[3], HZ);
  if (error != 0) fprintf(stderr, "plugin_begin: %d\n", error), exit(2);
  for (int i = 0; i < THREADS; i++) pthread_create(&thread[i], NULL, thread_main, NULL);
  event();
  pthread_barrier_wait(&called);
  end(atoi(argv[4]));
  dlclose(plugin);
  pthread_barrier_wait(&unloaded);
  for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
  raise(SIGURG);
  int status = 0;
  pid_t child = fork();
  if (child == 0) exit(0);
  if (waitpid(child, &status, 0) != child || status != 0)
    fprintf(stderr, "the child ended with %d\n", status), exit(3);
}

int main(int argc, char **argv) {
  if (argc != 5) return 2;
  pthread_barrier_init(&called, NULL, THREADS + 1);
  pthread_barrier_init(&unloaded, NULL, THREADS + 1);
  for (int i = 0; i < ROUNDS; i++) round_of(argv);
  puts("done");
  return 0;
}

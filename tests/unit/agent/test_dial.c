/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing of the addresses that users write, and hosts with more than one address. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/net/dial.h"
#include "tests/unit/agent/forward_scene.h"

static const char *complaint(const char *server, struct tb_diag *diag) {
  tb_diag_clear(diag);
  return ta_dial_check(server, diag) == TB_OK ? NULL : diag->text;
}

Test(dial, what_is_no_address_is_said_to_be_none) {
  static const char *const good[] = { "a:1", "collector.example:65535", "[::1]:7070",
                                      "10.0.0.1:7070", "@f" };
  static const char *const bad[] = { "",        "a",    ":1",   "a:",   "a:0",          "a:65536",
                                     "a:+1",    "a: 1", "a:1x", "[]:1", "[::1].evil:1", "[::1]]:1",
                                     "x[::1]:1" };
  struct tb_diag diag;

  for (size_t i = 0; i < sizeof good / sizeof *good; i++)
    cr_assert_null(complaint(good[i], &diag), "%s", good[i]);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char words[100];
    snprintf(words, sizeof words,
             "\"%s\" is not HOST:PORT (a collector's port for agents is 7070 unless configured)",
             bad[i]);
    cr_assert_str_eq(complaint(bad[i], &diag), words);
  }
  cr_assert_str_eq(complaint("@", &diag), "@ without a file name");
}

Test(dial, a_ready_file_that_is_a_pipe_or_a_device_is_refused_at_once) {
  char folder[] = "/tmp/tt-dial-XXXXXX", pipe[32], server[40];
  struct ta_addresses found;
  struct tb_diag diag;

  cr_assert_not_null(mkdtemp(folder));
  snprintf(pipe, sizeof pipe, "%s/pipe", folder);
  cr_assert_eq(mkfifo(pipe, 0600), 0);
  for (int i = 0; i < 2; i++) {
    snprintf(server, sizeof server, "@%s", i == 0 ? pipe : "/dev/zero");
    tb_diag_clear(&diag);
    cr_assert_eq(ta_dial_find(server, &diag, &found), TB_NOTFOUND);
    cr_assert_not_null(strstr(diag.text, "not a regular file"), "%s", diag.text);
  }
  unlink(pipe);
  rmdir(folder);
}

Test(dial, a_ready_file_is_asked_for_its_line) {
  char path[] = "/tmp/tt-dial-XXXXXX", server[40];
  struct ta_addresses found;
  struct tb_diag diag;
  int fd = mkstemp(path);

  snprintf(server, sizeof server, "@%s", path);
  tb_diag_clear(&diag);
  cr_assert_eq(ta_dial_find(server, &diag, &found), TB_NOTFOUND);
  cr_assert_not_null(strstr(diag.text, "has no line agents=HOST:PORT"));
  dprintf(fd, "pid=1\nagents=[127.0.0.1]:7070\nhttp=127.0.0.1:1\n");
  cr_assert_eq(ta_dial_find(server, NULL, &found), TB_OK);
  cr_assert_str_eq(found.host, "127.0.0.1");
  cr_assert_str_eq(found.port, "7070");
  cr_assert_eq(found.n, 1);
  close(fd);
  unlink(path);
}

Test(dial, nothing_is_paced_within_one_machine) {
  struct ta_addresses found;
  struct tb_diag diag;
  char name[16] = "";
  socklen_t len = sizeof name;
  int fd;

  tb_diag_clear(&diag);
  cr_assert_eq(ta_dial_find("127.0.0.1:1", &diag, &found), TB_OK);
  cr_assert_eq(ta_dial_next(&found, &diag, &fd), TB_OK);
  cr_assert_eq(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &len), 0);
  cr_assert_str_eq(name, "reno");
  close(fd);
}

/* A collector that holds us back for a minute closes its window and sends heartbeats: with
 * TCP_USER_TIMEOUT the kernel ended such a connection after 15 s (fault row 13, longer than 40
 * s). */
Test(dial, only_silence_ends_a_connection) {
  struct ta_addresses found;
  struct tb_diag diag;
  int timeout_ms = -1, fd;
  socklen_t len = sizeof timeout_ms;

  tb_diag_clear(&diag);
  cr_assert_eq(ta_dial_find("127.0.0.1:1", &diag, &found), TB_OK);
  cr_assert_eq(ta_dial_next(&found, &diag, &fd), TB_OK);
  cr_assert_eq(getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, &len), 0);
  cr_assert_eq(timeout_ms, 0);
  close(fd);
}

/* A resolver whose name server answers only when the test allows it. */

static atomic_int asked;
static sem_t lets_go;

static int hang(void) {
  atomic_fetch_add(&asked, 1);
  while (sem_wait(&lets_go) != 0) continue;
  return EAI_AGAIN;
}

/* Replaces the resolver's, for two hosts of our own. two.test is 127.0.0.2, then 127.0.0.1. */

static struct sockaddr_in two_at[2];
static struct addrinfo two[2];

int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
                struct addrinfo **out) {
  int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);

  if (strcmp(host, "hang.test") == 0) return hang();
  if (strcmp(host, "two.test") != 0) {
    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    return real(host, port, hints, out);
  }
  for (int i = 0; i < 2; i++) {
    two_at[i] = (struct sockaddr_in){ .sin_family = AF_INET,
                                      .sin_port = htons((uint16_t)atoi(port)),
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 - (unsigned)i) };
    two[i] = (struct addrinfo){ .ai_family = AF_INET,
                                .ai_addr = (struct sockaddr *)&two_at[i],
                                .ai_addrlen = sizeof two_at[i],
                                .ai_next = i == 0 ? &two[1] : NULL };
  }
  *out = two;
  return 0;
}

void freeaddrinfo(struct addrinfo *list) {
  void (*real)(struct addrinfo *);

  if (list == two) return;
  *(void **)&real = dlsym(RTLD_NEXT, "freeaddrinfo");
  real(list);
}

/* Listens at 127.0.0.2, accepts no connection and lets no further one through: its queue is
 * full. */
struct swallower {
  int fd, call;
};

static struct swallower swallow(int port) {
  struct sockaddr_in at = { .sin_family = AF_INET,
                            .sin_port = htons((uint16_t)port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1) };
  struct swallower w = { socket(AF_INET, SOCK_STREAM, 0), socket(AF_INET, SOCK_STREAM, 0) };

  cr_assert_eq(bind(w.fd, (struct sockaddr *)&at, sizeof at), 0);
  cr_assert_eq(listen(w.fd, 0), 0);
  cr_assert_eq(connect(w.call, (struct sockaddr *)&at, sizeof at), 0);
  return w;
}

static bool is_streaming(const struct ta_forward_status *status, const char *unused) {
  (void)unused;
  return status->state == TA_STATE_STREAMING;
}

Test(dial, a_host_whose_first_address_does_not_answer_is_called_at_the_next) {
  struct scene s = scene_begin((struct tt_collector_rules){ 0 }, 0);
  struct swallower w = swallow(tt_collector_port(s.collector));
  struct ta_forward_config config = { .certs = s.dir, .service = "shop" };
  char server[32];

  ta_forward_close(s.f, TT_PATIENCE_MS);
  snprintf(server, sizeof server, "two.test:%d", tt_collector_port(s.collector));
  config.server = server;
  cr_assert_eq(ta_forward_open(&config, &s.f), 0);
  /* after the 10 s that an attempt to connect may take */
  cr_assert(until(s.f, is_streaming, NULL));
  cr_assert_eq(status_of(s.f).connects, 1); /* both addresses were one attempt */
  cr_assert_eq(ta_forward_close(s.f, TT_PATIENCE_MS), 0);
  close(w.call);
  close(w.fd);
  scene_end(&s);
}

static struct scene hanging_scene(const char *spool_dir) {
  struct scene s = scene_begin((struct tt_collector_rules){ 0 }, 0);
  struct ta_forward_config config = { .size = sizeof config,
                                      .server = "hang.test:1",
                                      .certs = s.dir,
                                      .service = "shop",
                                      .spool_dir = spool_dir };

  cr_assert_eq(sem_init(&lets_go, 0, 0), 0);
  cr_assert_eq(ta_forward_close(s.f, TT_PATIENCE_MS), 0);
  cr_assert_eq(ta_forward_open(&config, &s.f), 0, "%s", ta_strerror(TA_E_CONFIG));
  TT_WAIT_UNTIL(atomic_load(&asked) == 1);
  return s;
}

static long now_ms(void) {
  struct timespec now;

  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static long fork_ms(void) {
  long began_ms = now_ms();
  pid_t child = fork();

  if (child == 0) _exit(0);
  long ms = now_ms() - began_ms;
  cr_assert_eq(waitpid(child, NULL, 0), child);
  return ms;
}

Test(dial, neither_fork_nor_close_waits_for_a_resolver_that_hangs) {
  enum { TIMES = 10 };
  struct scene s = hanging_scene(NULL);
  long quickest_ms = fork_ms(); /* a busy machine may have slowed the other tries */

  for (int i = 1; i < TIMES; i++) {
    long ms = fork_ms();
    if (ms < quickest_ms) quickest_ms = ms;
  }
  cr_assert_lt(quickest_ms, 100, "a fork took %ld ms at least", quickest_ms);
  long began_ms = now_ms();
  ta_forward_close(s.f, 0);
  cr_assert_lt(now_ms() - began_ms, TT_PATIENCE_MS);
  cr_assert_eq(atomic_load(&asked), 1);
  sem_post(&lets_go);
  scene_end(&s);
}

Test(dial, what_is_written_goes_to_disk_while_a_resolver_hangs) {
  char spool[] = "/tmp/tt-hang-XXXXXX", command[64];
  cr_assert_not_null(mkdtemp(spool));
  struct scene s = hanging_scene(spool);
  struct tt_stream t = tt_stream_make(26, 2, 4, 1000);
  int error = TA_E_TIMEOUT;

  write_all(s.f, &t, t.n);
  for (long end_ms = now_ms() + TT_PATIENCE_MS; error == TA_E_TIMEOUT && now_ms() < end_ms;)
    error = ta_forward_sync(s.f, 200);
  cr_assert_eq(error, TA_E_KEPT);
  cr_assert_eq(atomic_load(&asked), 1);
  sem_post(&lets_go);
  ta_forward_close(s.f, 0);
  snprintf(command, sizeof command, "rm -r %s", spool);
  cr_assert_eq(system(command), 0);
  tt_stream_free(&t);
  scene_end(&s);
}

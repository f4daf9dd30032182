/* SPDX-License-Identifier: Apache-2.0 */
/* Loads a server that answers the same request with the same number of bytes each time (HTTP, memcached, redis).
 *
 * load PORT CLIENTS COUNT REQUEST END: so many connections to 127.0.0.1 send REQUEST and wait for the answer, COUNT
 * times all together; \r, \n in REQUEST and END have their meaning in C. The first answer ends with END, all others
 * have its length. Prints requests a second. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CLIENTS_MAX = 256, ANSWER_MAX = 64 << 10 };

struct client {
  int fd;
  size_t got;
};

static void must(bool done, const char *what) {
  if (done) return;
  perror(what);
  exit(1);
}

static double now_s(void) {
  struct timespec now;

  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static size_t unescape(char *text) {
  char *to = text;

  for (const char *from = text; *from != 0; from++) {
    if (from[0] == '\\' && (from[1] == 'r' || from[1] == 'n'))
      *to++ = *++from == 'r' ? '\r' : '\n';
    else
      *to++ = *from;
  }
  *to = 0;
  return (size_t)(to - text);
}

static int dial(uint16_t port) {
  struct sockaddr_in to = { .sin_family = AF_INET,
                            .sin_port = htons(port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

  must(fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0, "connect");
  must(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0, "setsockopt");
  return fd;
}

static void ask(const struct client *client, const char *request, size_t n) {
  must(send(client->fd, request, n, MSG_NOSIGNAL) == (ssize_t)n, "send");
}

/* Reads one whole answer, to learn its length. */
static size_t learn(struct client *client, const char *end, size_t n) {
  static char answer[ANSWER_MAX];
  size_t got = 0;

  while (got < n || memcmp(answer + got - n, end, n) != 0) {
    ssize_t more = recv(client->fd, answer + got, sizeof answer - got, 0);
    must(more > 0, "the answer's end");
    got += (size_t)more;
  }
  return got;
}

int main(int argc, char **argv) {
  static struct client clients[CLIENTS_MAX];
  static char sink[ANSWER_MAX];
  int many = argc == 6 ? atoi(argv[2]) : 0;
  long count = argc == 6 ? atol(argv[3]) : 0, asked, answered = 0;

  if (many < 1 || many > CLIENTS_MAX || count < many) return 2;
  size_t request_bytes = unescape(argv[4]), end_bytes = unescape(argv[5]), answer_bytes = 0;
  int loop = epoll_create1(EPOLL_CLOEXEC);
  must(loop >= 0, "epoll_create1");
  for (int i = 0; i < many; i++) {
    clients[i].fd = dial((uint16_t)atoi(argv[1]));
    struct epoll_event want = { .events = EPOLLIN, .data.ptr = &clients[i] };
    must(epoll_ctl(loop, EPOLL_CTL_ADD, clients[i].fd, &want) == 0, "epoll_ctl");
    if (i > 0) continue;
    ask(&clients[0], argv[4], request_bytes);
    answer_bytes = learn(&clients[0], argv[5], end_bytes);
  }

  double began = now_s();
  for (asked = 0; asked < many; asked++) ask(&clients[asked], argv[4], request_bytes);
  while (answered < count) {
    struct epoll_event ready[64];
    int n = epoll_wait(loop, ready, 64, 10000);
    must(n > 0, "no answer for 10 s");
    for (int i = 0; i < n; i++) {
      struct client *client = ready[i].data.ptr;
      ssize_t got = recv(client->fd, sink, sizeof sink, 0);
      must(got > 0, "recv");
      client->got += (size_t)got;
      if (client->got < answer_bytes) continue;
      must(client->got == answer_bytes, "an answer of another length");
      client->got = 0;
      answered++;
      if (asked < count) {
        ask(client, argv[4], request_bytes);
        asked++;
      }
    }
  }
  printf("%.0f\n", (double)count / (now_s() - began));
  return 0;
}

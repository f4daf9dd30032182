/* SPDX-License-Identifier: Apache-2.0 */
#include "nng/stream.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include "nng/clock.h"

typedef void (*stream_call)(nng_stream *stream, nng_aio *aio);
typedef ssize_t (*send_call)(int fd, const struct msghdr *message, int flags);

static stream_call real_send, real_recv;
static send_call real_sendmsg;
static bool loses; /* does this version of nng lose refused operations? */
static _Thread_local nng_aio *last_recv;

static void find_calls(void) {
  *(void **)&real_send = dlsym(RTLD_NEXT, "nng_stream_send");
  *(void **)&real_recv = dlsym(RTLD_NEXT, "nng_stream_recv");
  *(void **)&real_sendmsg = dlsym(RTLD_NEXT, "sendmsg");
  loses = strncmp(nng_version(), "1.", 2) == 0;
  tc__clock_init();
}

void tc_nng_streams_init(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;

  pthread_once(&once, find_calls);
}

/* An operation that nng refuses gets NNG_ECANCELED at once, and no callback. A started operation cannot have this result yet:
 * the result starts as 0, and only a close by the owner cancels the operation, after waiting for the message. No later
 * operation of the same aio can get here meanwhile, because every caller in nng holds the lock that the callback takes.
 *
 * Never use NNG_ECLOSED: nng's listeners would treat it as their own close. */
static void end_refused(nng_aio *aio) {
  if (loses && nng_aio_result(aio) == NNG_ECANCELED) nng_aio_finish(aio, NNG_ECONNRESET);
}

void nng_stream_send(nng_stream *stream, nng_aio *aio) {
  tc_nng_streams_init();
  real_send(stream, aio);
  end_refused(aio);
}

void nng_stream_recv(nng_stream *stream, nng_aio *aio) {
  tc_nng_streams_init();
  last_recv = aio;
  real_recv(stream, aio);
  end_refused(aio);
}

/* Weak: a test replaces it to count calls. */
__attribute__((weak)) ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
  tc_nng_streams_init();
  ssize_t sent = real_sendmsg(fd, message, flags);
  if (sent < 0 && errno == EPIPE) errno = ECONNRESET;
  return sent;
}

nng_aio *tc_nng_stream_last_recv(void) {
  return last_recv;
}

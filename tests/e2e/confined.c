/* SPDX-License-Identifier: Apache-2.0 */
/* confined kill|trap|fail CALL,... PROGRAM ARG...: runs the program under a seccomp filter that
 * takes this action for these system calls, given by number. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { CODE_MAX = 128 };

int main(int argc, char **argv) {
  struct sock_filter code[CODE_MAX];
  unsigned short n = 0;

  if (argc < 4) return 2;
  unsigned action = strcmp(argv[1], "kill") == 0   ? SECCOMP_RET_KILL_PROCESS
                    : strcmp(argv[1], "trap") == 0 ? SECCOMP_RET_TRAP
                                                   : SECCOMP_RET_ERRNO | EPERM;
  code[n++] =
      (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  for (char *call = strtok(argv[2], ","); call != NULL && n < CODE_MAX - 3;
       call = strtok(NULL, ",")) {
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)atoi(call), 0, 1);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action);
  }
  code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  struct sock_fprog program = { n, code };
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    perror("confined");
    return 125;
  }
  const char *preload = getenv("CONFINED_PRELOAD"); /* preloaded into the program only */
  if (preload != NULL) setenv("LD_PRELOAD", preload, 1);
  execv(argv[3], argv + 3);
  perror(argv[3]);
  return 126;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/pem_fault.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/small_file.h"

const char *tc_pem_unfit(const char *path) {
  int fd = tb_small_file_open(AT_FDCWD, path);

  if (fd < 0) return tb_small_file_fault(errno);
  close(fd);
  return NULL;
}

static bool is_no_pem(unsigned long error) {
  int lib = ERR_GET_LIB(error), reason = ERR_GET_REASON(error);

  return error == 0 || reason == ERR_R_UNSUPPORTED ||
         (lib == ERR_LIB_PEM && reason == PEM_R_NO_START_LINE) ||
         (lib == ERR_LIB_X509 && reason == X509_R_NO_CERTIFICATE_OR_CRL_FOUND);
}

const char *tc_pem_fault(const char *path, const char *wanted) {
  unsigned long error = ERR_peek_error();
  const char *why = ERR_reason_error_string(error);
  bool is_key = strcmp(wanted, "private key") == 0;
  const char *unfit = tc_pem_unfit(path);

  ERR_clear_error();
  if (unfit != NULL) return unfit;
  if (is_no_pem(error)) return is_key ? "no private key in PEM" : "no certificate in PEM";
  if (ERR_GET_LIB(error) == ERR_LIB_X509 && ERR_GET_REASON(error) == X509_R_KEY_VALUES_MISMATCH)
    return "does not fit the certificate";
  return why != NULL ? why : "cannot be used";
}

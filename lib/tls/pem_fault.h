/* SPDX-License-Identifier: Apache-2.0 */
/* Error texts for certificate files that OpenSSL refused. OpenSSL's own texts hide the cause: a folder instead of a file,
 * a file of another kind and a key of another certificate are "no start line", "unsupported" and "system lib".
 *
 * Threads   any; reads and clears the thread's queue of OpenSSL errors. */
#ifndef TC_TLS_PEM_FAULT_H
#define TC_TLS_PEM_FAULT_H

/* Returns why the file must not be read, or NULL. Call it before OpenSSL opens a file: OpenSSL would wait for a FIFO and read
 * a device forever. */
const char *tc_pem_unfit(const char *path);

const char *tc_pem_fault(const char *path,
                         const char *wanted); /* wanted: "certificate", "private key" */

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Words for a certificate, key or CA that OpenSSL would not take from a file.
 *
 * OpenSSL's own blur what a person can mend: a folder in the place of a file, a file of something else, and a key of another
 * certificate are "no start line", "unsupported" and "system lib".
 *
 * Threads   any; of the thread's queue of OpenSSL errors, which it leaves empty. */
#ifndef TC_TLS_PEM_FAULT_H
#define TC_TLS_PEM_FAULT_H

/* Ask before OpenSSL opens a file, which waits for a FIFO and reads a device for ever. NULL, or why it is not to be read. */
const char *tc_pem_unfit(const char *path);

const char *tc_pem_fault(const char *path,
                         const char *wanted); /* wanted: "certificate", "private key" */

#endif

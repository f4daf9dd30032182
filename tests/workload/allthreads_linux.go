// SPDX-License-Identifier: Apache-2.0

package main

import "syscall"

// allThreads asks for a stop-the-world that runs a syscall on every thread. It
// is not available in a cgo build, where it returns ENOTSUP.
func allThreads() {
	syscall.AllThreadsSyscall(syscall.SYS_PRCTL, 3 /* PR_GET_DUMPABLE */, 0, 0)
}

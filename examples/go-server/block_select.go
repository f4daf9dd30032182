// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package main

import (
	"syscall"
	"time"
)

// blockInCall makes a system call that keeps its thread: the scheduler takes the P away.
func blockInCall(d time.Duration) {
	timeout := syscall.NsecToTimeval(d.Nanoseconds())
	syscall.Select(0, nil, nil, nil, &timeout)
}

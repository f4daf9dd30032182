// SPDX-License-Identifier: Apache-2.0

//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package main

import "time"

func blockInCall(d time.Duration) { time.Sleep(d) }

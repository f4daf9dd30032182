// SPDX-License-Identifier: Apache-2.0

//go:build traceagent_go || !(cgo && amd64)

package traceagent

import (
	"os"
	"syscall"
)

// The modes of fallocate(2).
const (
	keepSize   = 1
	punchHoles = 2
)

// reserve takes room on the disk ahead, where the file system can promise that.
func reserve(file *os.File, bytes int64) { syscall.Fallocate(int(file.Fd()), 0, 0, bytes) }

func punchHole(file *os.File, at, bytes int64) bool {
	return syscall.Fallocate(int(file.Fd()), keepSize|punchHoles, at, bytes) == nil
}

// SPDX-License-Identifier: Apache-2.0

//go:build !(linux || darwin || freebsd || openbsd || netbsd || dragonfly || windows)

package traceagent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

const (
	doesNotWait        = 0
	filesOnly          = 0
	renamesOpenFolders = false
	removesOpenFiles   = false
)

func lock(file *os.File) error { return errors.ErrUnsupported }

func diskBytes(info fs.FileInfo) uint64 { return uint64(info.Size()) }

// checkOwner refuses every folder: without file locks it cannot be shared.
func checkOwner(path string, info fs.FileInfo) error {
	return fmt.Errorf("no file locks on this system: %w", errors.ErrUnsupported)
}

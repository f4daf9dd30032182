// SPDX-License-Identifier: Apache-2.0

package traceagent

import (
	"io/fs"
	"os"
	"syscall"
	"unsafe"
)

const (
	doesNotWait        = 0
	filesOnly          = 0
	renamesOpenFolders = false
	removesOpenFiles   = false
)

var lockFileEx = syscall.NewLazyDLL("kernel32.dll").NewProc("LockFileEx")

// lock locks a byte far after the file's end: on Windows others cannot read locked bytes.
func lock(file *os.File) error {
	const failImmediately, exclusive, errorLockViolation = 1, 2, syscall.Errno(33)
	at := syscall.Overlapped{OffsetHigh: 1 << 30}
	taken, _, err := lockFileEx.Call(file.Fd(), failImmediately|exclusive, 0, 1, 0, uintptr(unsafe.Pointer(&at)))
	switch {
	case taken != 0:
		return nil
	case err == errorLockViolation:
		return errLocked
	}
	return err
}

func diskBytes(info fs.FileInfo) uint64 { return uint64(info.Size()) }

// checkOwner accepts every folder: on Windows a folder inherits its parent's rights.
func checkOwner(path string, info fs.FileInfo) error { return nil }

// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin || freebsd || openbsd || netbsd || dragonfly

package traceagent

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

const (
	doesNotWait        = syscall.O_NONBLOCK | syscall.O_NOCTTY // for the other end of a named pipe
	filesOnly          = syscall.O_NOFOLLOW | doesNotWait      // a link is refused
	renamesOpenFolders = true
	removesOpenFiles   = true
)

func lock(file *os.File) error {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == syscall.EWOULDBLOCK {
		return errLocked
	}
	return err
}

func diskBytes(info fs.FileInfo) uint64 {
	if stat, isOne := info.Sys().(*syscall.Stat_t); isOne {
		return uint64(stat.Blocks) * 512
	}
	return uint64(info.Size())
}

func checkOwner(path string, info fs.FileInfo) error {
	const write, search = 2, 1
	if stat, isOne := info.Sys().(*syscall.Stat_t); isOne && int(stat.Uid) != os.Geteuid() && stat.Uid != 0 {
		return fmt.Errorf("%.60s belongs to another user", path)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("others may write to %.60s", path)
	}
	if err := syscall.Access(path, write|search); err != nil {
		return faultOf("writing to", path, err)
	}
	return nil
}

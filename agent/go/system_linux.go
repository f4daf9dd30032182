// SPDX-License-Identifier: Apache-2.0

package traceagent

import (
	"os"
	"runtime"
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

// mapping is memory for a spool's pages beside the heap: records that wait neither count in the pace of the program's
// garbage collector nor are looked at by it, and the memory goes back to the system page by page. It takes no memory before it is
// used. It lives as long as its spool is reachable.
type mapping struct{ bytes []byte }

func newMapping(pages int) *mapping {
	if os.Getpagesize() > pageBytes { // a page of ours could not go back alone
		return &mapping{}
	}
	bytes, err := syscall.Mmap(-1, 0, pages*pageBytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
	m := &mapping{}
	if err == nil { // else the heap has pages
		m.bytes = bytes
		runtime.SetFinalizer(m, func(m *mapping) { syscall.Munmap(m.bytes) })
	}
	return m
}

func (m *mapping) page(i int) []byte {
	if m.bytes == nil {
		return make([]byte, pageBytes)
	}
	return m.bytes[i*pageBytes : (i+1)*pageBytes : (i+1)*pageBytes]
}

// release gives the memory of a page back, which may be used again. False: the heap's pages go by themselves.
func (m *mapping) release(page []byte) bool {
	if m.bytes != nil {
		syscall.Madvise(page, syscall.MADV_DONTNEED)
	}
	return m.bytes != nil
}

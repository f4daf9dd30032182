// SPDX-License-Identifier: Apache-2.0

package traceagent

import (
	"os"
	"runtime"
	"syscall"
)

// Modes of fallocate(2).
const (
	keepSize   = 1
	punchHoles = 2
)

// reserve allocates disk space in advance, if the file system supports that.
func reserve(file *os.File, bytes int64) { syscall.Fallocate(int(file.Fd()), 0, 0, bytes) }

func punchHole(file *os.File, at, bytes int64) bool {
	return syscall.Fallocate(int(file.Fd()), keepSize|punchHoles, at, bytes) == nil
}

// mapping is memory for a spool's pages outside the heap: waiting records do not affect the program's garbage
// collector, and pages are returned to the system one by one. Unused pages take no memory. The mapping lives as long as its
// spool is reachable.
type mapping struct{ bytes []byte }

func newMapping(pages int) *mapping {
	if os.Getpagesize() > pageBytes { // a single page of ours could not be returned
		return &mapping{}
	}
	bytes, err := syscall.Mmap(-1, 0, pages*pageBytes, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
	m := &mapping{}
	if err == nil { // on an error pages are on the heap
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

// release returns the memory of a page to the system; the page may be used again. It returns false for a page on the heap, which
// the garbage collector frees.
func (m *mapping) release(page []byte) bool {
	if m.bytes != nil {
		syscall.Madvise(page, syscall.MADV_DONTNEED)
	}
	return m.bytes != nil
}

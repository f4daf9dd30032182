// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package traceagent

import "os"

func reserve(file *os.File, bytes int64) {}

func punchHole(file *os.File, at, bytes int64) bool { return false }

// mapping makes a spool's pages on the heap.
type mapping struct{}

func newMapping(pages int) *mapping { return nil }

func (m *mapping) page(i int) []byte { return make([]byte, pageBytes) }

func (m *mapping) release(page []byte) bool { return false }

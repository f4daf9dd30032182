// SPDX-License-Identifier: Apache-2.0

package traceagent

import (
	"bytes"
	"encoding/binary"
)

const (
	batchBytesMax  = 64 << 10
	traceHeadBytes = 16
	endMarkVersion = 26 // since Go 1.26 a mark ends a generation
)

// Events between batches.
const (
	eventBatch             = 1
	eventExperimentalBatch = 49
	eventEndOfGeneration   = 52
)

type unitKind int

const (
	unitHeader unitKind = iota
	unitBatch
	unitEndMark
	unitRaw // after invalid bytes, or cut off by the end
)

// splitter cuts a trace into header, batches and end marks. No byte is lost: the units together are the trace.
type splitter struct {
	carry   []byte // begin of a unit from earlier writes
	version int    // of the trace, 26 for Go 1.26; 0 before its header
	isRaw   bool   // invalid bytes were found: everything after is raw
}

// feed passes each whole unit to take. The bytes are lent.
func (s *splitter) feed(p []byte, take func(kind unitKind, gen uint64, unit []byte)) {
	if len(s.carry) == 0 {
		s.carry = append(s.carry, s.cut(p, take)...)
		return
	}
	s.carry = append(s.carry, p...)
	rest := s.cut(s.carry, take)
	s.carry = s.carry[:copy(s.carry, rest)]
}

func (s *splitter) finish(take func(kind unitKind, gen uint64, unit []byte)) {
	if len(s.carry) > 0 {
		take(unitRaw, 0, s.carry)
	}
	s.carry = nil
}

// cut passes on whole units, and returns the begin of an incomplete one.
func (s *splitter) cut(p []byte, take func(kind unitKind, gen uint64, unit []byte)) []byte {
	for len(p) > 0 {
		kind, gen, n, isWhole := s.unit(p)
		if !isWhole {
			return p
		}
		take(kind, gen, p[:n])
		p = p[n:]
	}
	return nil
}

// unit reads the unit at the begin of p; isWhole is false if more bytes are needed.
func (s *splitter) unit(p []byte) (kind unitKind, gen uint64, n int, isWhole bool) {
	switch {
	case s.isRaw:
		return unitRaw, 0, len(p), true
	case s.version == 0:
		return s.header(p)
	case p[0] == eventEndOfGeneration:
		return unitEndMark, 0, 1, true
	}
	gen, n, isBatch := batchLength(p)
	if !isBatch {
		s.isRaw = true
		return unitRaw, 0, len(p), true
	}
	return unitBatch, gen, n, n > 0 && n <= len(p)
}

// header reads "go 1.NN trace" and three zero bytes, as written by the runtime.
func (s *splitter) header(p []byte) (kind unitKind, gen uint64, n int, isWhole bool) {
	if len(p) < traceHeadBytes {
		return unitHeader, 0, 0, false
	}
	isDigit := func(c byte) bool { return '0' <= c && c <= '9' }
	if !bytes.HasPrefix(p, []byte("go 1.")) || !isDigit(p[5]) || !isDigit(p[6]) || !bytes.Equal(p[7:traceHeadBytes], []byte(" trace\x00\x00\x00")) {
		s.isRaw = true
		return unitRaw, 0, len(p), true
	}
	s.version = int(p[5]-'0')*10 + int(p[6]-'0')
	return unitHeader, 0, traceHeadBytes, true
}

// batchLength returns the generation and length of the batch at the begin of p; length 0: more bytes are needed.
func batchLength(p []byte) (gen uint64, n int, isBatch bool) {
	switch p[0] {
	case eventBatch:
		n = 1
	case eventExperimentalBatch:
		n = 2
	default:
		return 0, 0, false
	}
	var fields [4]uint64 // generation, thread, time, size
	for i := range fields {
		if n >= len(p) {
			return 0, 0, true
		}
		value, used := binary.Uvarint(p[n:])
		if used < 0 {
			return 0, 0, false
		}
		if used == 0 {
			return 0, 0, true
		}
		fields[i] = value
		n += used
	}
	if fields[3] > batchBytesMax {
		return 0, 0, false
	}
	return fields[0], n + int(fields[3]), true
}

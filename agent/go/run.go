// SPDX-License-Identifier: Apache-2.0

package traceagent

import (
	"hash/crc32"
	"time"
)

type runKind int

const (
	runHeader runKind = iota
	runGeneration
	runLoss
	runClose
)

// run has the records of a generation, or one record outside of generations.
type run struct {
	next         *run
	kind         runKind
	gen, lastGen uint64
	isOpen       bool // more records may follow
	isAbandoned  bool // its LOSS is the next run
	isHeld       bool // by the recorder
	isSaid       bool // a LOSS whose record is written

	pages [][]byte // beginning with the page of byte `freed`
	freed int      // bytes of released pages at the run's begin
	bytes int      // of all frames
	small []byte   // instead of pages

	order                                uint64 // number of records before this run
	records, sealedRecords, ackedRecords uint64
	all, sealed, acked                   count
	sum                                  uint32 // checksum over the batches' checksums
	firstWall, lastWall                  uint64
	endedAt                              time.Time
	reason                               lossReason

	id, covers          uint64 // on disk: its file, and the last file that it replaces
	keptCovers          uint64 // the replaced files up to this one are deleted
	keptFrom, keptBytes int    // bytes from keptFrom to keptBytes are on disk
	isUnsaved           bool   // changed since its last write to disk
}

// place is a position before a record, or after the last record of its run. A nil run: before the first record.
type place struct {
	run *run
	at  int
}

// view returns at most n bytes from at, up to the end of their page.
func (r *run) view(at, n int) []byte {
	from := r.small
	if r.small == nil {
		from = r.pages[(at-r.freed)/pageBytes]
		at %= pageBytes
	}
	from = from[at:]
	if len(from) > n {
		from = from[:n]
	}
	return from
}

func (r *run) read(at int, out []byte) {
	for len(out) > 0 {
		n := copy(out, r.view(at, len(out)))
		out, at = out[n:], at+n
	}
}

func (r *run) write(at int, in []byte) {
	for len(in) > 0 {
		n := copy(r.view(at, len(in)), in)
		in, at = in[n:], at+n
	}
}

// writeSummed writes, and returns the checksum, read from the page, which is in the processor's cache now.
func (r *run) writeSummed(at int, in []byte) (sum uint32) {
	for len(in) > 0 {
		part := r.view(at, len(in))
		copy(part, in)
		sum = crc32.Update(sum, castagnoliTable, part)
		in, at = in[len(part):], at+len(part)
	}
	return sum
}

func (r *run) frameAt(at int) frame {
	var head [headBytes]byte
	r.read(at, head[:])
	return readWaiting(&head)
}

// pagesWanted returns how many more pages n more bytes need.
func (r *run) pagesWanted(n int) int {
	has := r.freed/pageBytes + len(r.pages)
	return (r.bytes+n+pageBytes-1)/pageBytes - has
}

// setSmall writes the record of a run that has only one.
func (r *run) setSmall(kind byte, payload []byte) {
	var head [headBytes]byte
	frame{kind: kind, len: uint32(len(payload)), sum: crc32.Checksum(payload, castagnoliTable)}.putWaiting(&head)
	r.small = append(head[:], payload...)
	r.bytes = len(r.small)
	r.records = 1
}

// isPast returns whether a run has no record after at, and will get none.
func (r *run) isPast(at int) bool {
	return !r.isOpen && at == r.bytes && (r.kind != runLoss || r.isSaid)
}

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

// run is the records of a generation, or one record that is not of any.
type run struct {
	next         *run
	kind         runKind
	gen, lastGen uint64
	isOpen       bool // more may come
	isAbandoned  bool // its LOSS comes behind it
	isHeld       bool // by the recorder
	isSaid       bool // of a LOSS: it has its bytes

	pages [][]byte // from the page of byte freed on
	freed int      // bytes in pages at its begin that were given back
	bytes int      // frames, one behind another
	small []byte   // instead of pages

	order                                uint64 // records that were put before it
	records, sealedRecords, ackedRecords uint64
	all, sealed, acked                   count
	sum                                  uint32 // over its batches' checksums
	firstWall, lastWall                  uint64
	endedAt                              time.Time
	reason                               lossReason

	id, covers          uint64 // on disk: its file, and the last one that it takes the place of
	keptCovers          uint64 // up to there those files are gone
	keptFrom, keptBytes int    // bytes from there up to there are on disk
	isUnsaved           bool   // changed since it was last written there
}

// place is before a record, or behind the last one of its run. A nil run: before all there will be.
type place struct {
	run *run
	at  int
}

// view answers the bytes from at on, as many as lie together, at most n.
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

// writeSummed writes, and answers the checksum of what it wrote: out of the page, which the processor's cache has now.
func (r *run) writeSummed(at int, in []byte) (sum uint32) {
	for len(in) > 0 {
		part := r.view(at, len(in))
		copy(part, in)
		sum = crc32.Update(sum, castagnoliTable, part)
		in, at = in[len(part):], at+len(part)
	}
	return sum
}

// frameAt reads the head of the frame there.
func (r *run) frameAt(at int) frame {
	var head [headBytes]byte
	r.read(at, head[:])
	return readWaiting(&head)
}

// pagesWanted answers how many pages n bytes more take.
func (r *run) pagesWanted(n int) int {
	has := r.freed/pageBytes + len(r.pages)
	return (r.bytes+n+pageBytes-1)/pageBytes - has
}

// setSmall gives a run of one record its bytes.
func (r *run) setSmall(kind byte, payload []byte) {
	var head [headBytes]byte
	frame{kind: kind, len: uint32(len(payload)), sum: crc32.Checksum(payload, castagnoliTable)}.putWaiting(&head)
	r.small = append(head[:], payload...)
	r.bytes = len(r.small)
	r.records = 1
}

// isPast says whether nothing of a run comes behind at.
func (r *run) isPast(at int) bool {
	return !r.isOpen && at == r.bytes && (r.kind != runLoss || r.isSaid)
}

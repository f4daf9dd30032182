// SPDX-License-Identifier: Apache-2.0

package traceagent

import (
	"encoding/binary"
	"hash/crc32"
	"math"
)

// This file converts a spool into pieces for the disk, and pieces into a spool.
//
// Out: the disk asks for one unsaved piece after the other. While isKeeping, the spool sends only records that were
// passed to the disk.
//
// In: a successor begins with the accounting, adds the runs of the files in their order, and ends. The numbers of records
// follow from the accounting and that order, because only records without a number are ever dropped.

const (
	pieceBytes    = 128 << 10 // limit of a piece's frames; the largest frame fits
	keptHeadBytes = 32        // before each frame, as many as on the wire: so places in memory and on disk are equal
	keptSmallMax  = 128       // of a record outside of generations
)

type piece struct {
	run    runImage
	at     uint64 // place of frames among the run's frames on disk
	frames []byte
	kept   uint64 // replaced files up to this one are removed already
}

// accounting counts the acknowledged records, and says where the others begin.
type accounting struct {
	frontID              uint64 // run of the oldest unacknowledged record
	frontBytes           uint64 // acknowledged bytes of its frames on disk
	isFrontDone          bool   // the front is a single record, and acknowledged
	ackedSeq, givenSeq   uint64 // last number acknowledged; last number given
	ackedGenerations     uint64
	lostGenerations      uint64
	settled, settledLost count
	gone                 span
	headerBytes          uint64
	header               [keptSmallMax]byte
}

func (a *accounting) encode(p []byte) []byte {
	p = appendNumbers(p, a.frontID, a.frontBytes, uint64(flag(a.isFrontDone)), a.ackedSeq, a.givenSeq, a.ackedGenerations, a.lostGenerations,
		a.settled.batches, a.settled.bytes, a.settledLost.batches, a.settledLost.bytes,
		a.gone.firstGen, a.gone.lastGen, a.gone.firstWall, a.gone.lastWall, a.headerBytes)
	return append(p, a.header[:]...)
}

func (a *accounting) decode(f *fields) {
	a.frontID, a.frontBytes, a.isFrontDone = f.number(), f.number(), f.number() != 0
	a.ackedSeq, a.givenSeq, a.ackedGenerations, a.lostGenerations = f.number(), f.number(), f.number(), f.number()
	a.settled, a.settledLost = f.count(), f.count()
	a.gone = span{f.number(), f.number(), f.number(), f.number()}
	a.headerBytes = min(f.number(), keptSmallMax)
	copy(a.header[:], f.take(keptSmallMax))
}

// --- out ---

// keep begins a new spool on disk: no run is on disk yet.
func (s *spool) keep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isKeeping = true
	s.keptRecords = 0
	for r := s.first; r != nil; r = r.next {
		s.lastID++
		r.id, r.covers, r.keptCovers, r.isUnsaved = s.lastID, s.lastID, s.lastID, true
		r.keptFrom = 0
		if s.acked.run == r {
			r.keptFrom = s.acked.at
		}
		r.keptBytes = r.keptFrom
	}
}

// keepNot ends the spool on disk.
func (s *spool) keepNot() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isKeeping = false
}

// unsaved returns the next piece, if there is one. Its frames are in room, with checksums that begin with salt.
func (s *spool) unsaved(salt uint32, room []byte) (p piece, isOne bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.first
	for r != nil && !r.isUnsaved {
		r = r.next
	}
	if r == nil {
		s.keptRecords = s.records
		return p, false
	}
	from := 0
	if r.kind == runGeneration {
		if s.acked.run == r && r.keptBytes < s.acked.at { // acknowledged while there was no spool on disk
			r.keptFrom, r.keptBytes = s.acked.at, s.acked.at
		}
		from = r.keptBytes
		p.at = uint64(from - r.keptFrom)
	}
	if r.kind != runLoss { // a LOSS has only an image
		p.frames = r.copyFrames(from, salt, room)
	}
	if r.kind == runGeneration {
		r.keptBytes += len(p.frames)
	}
	p.run = r.image()
	p.kept, r.keptCovers = r.keptCovers, r.covers
	if r.kind != runGeneration {
		p.run.endBytes = uint64(len(p.frames))
	}
	r.isUnsaved = r.kind == runGeneration && r.keptBytes < r.bytes
	return p, true
}

func (r *run) image() runImage {
	return runImage{
		id: r.id, covers: r.covers, kind: r.kind, reason: r.reason, isOpen: r.isOpen, isAbandoned: r.isAbandoned,
		gen: r.gen, lastGen: r.lastGen, endBytes: uint64(r.keptBytes - r.keptFrom), all: r.all, sealed: r.sealed,
		firstWall: r.firstWall, lastWall: r.lastWall,
	}
}

// copyFrames copies as many whole frames as fit into room.
func (r *run) copyFrames(at int, salt uint32, room []byte) []byte {
	out := room[:0]
	for at < r.bytes {
		f := r.frameAt(at)
		n := int(f.len)
		if len(out)+keptHeadBytes+n > cap(out) {
			break
		}
		if f.seq != 0 { // the head of a numbered frame has the checksum for the wire
			f.sum = r.payloadSum(at+headBytes, n)
		}
		out = f.appendKeptHead(out, salt)
		out = out[:len(out)+n]
		r.read(at+headBytes, out[len(out)-n:])
		at += headBytes + n
	}
	return out
}

func (f frame) appendKeptHead(out []byte, salt uint32) []byte {
	from := len(out)
	out = binary.LittleEndian.AppendUint64(out, f.gen)
	for _, word := range []uint32{uint32(f.kind), f.len, f.sum, 0, 0} {
		out = binary.LittleEndian.AppendUint32(out, word)
	}
	return binary.LittleEndian.AppendUint32(out, crc32.Update(salt, castagnoliTable, out[from:]))
}

// unsavedAgain returns a piece that could not be written. If its run was dropped or merged meanwhile, the LOSS in its place is
// unsaved anyway.
func (s *spool) unsavedAgain(p *piece) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r := s.first; r != nil; r = r.next {
		if r.id != p.run.id {
			continue
		}
		if before := r.keptFrom + int(p.at); r.kind == runGeneration && len(p.frames) > 0 && r.keptBytes > before {
			r.keptBytes = before
		}
		r.keptCovers, r.isUnsaved = p.kept, true
	}
}

// isKept returns whether the record at a place is on disk. Only such records are sent: a successor must know all numbered
// records.
func (r *run) isKept(at int) bool {
	if r.kind == runGeneration {
		return at < r.keptBytes
	}
	return !r.isUnsaved
}

// hasKept returns whether the disk has unacknowledged records, which a successor would send.
func (s *spool) hasKept() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r := s.first; s.isKeeping && r != nil; r = r.next {
		if r.kind != runGeneration {
			if !r.isUnsaved && r.ackedRecords == 0 {
				return true
			}
			continue
		}
		from := r.keptFrom
		if s.acked.run == r {
			from = max(from, s.acked.at)
		}
		if r.keptBytes > from {
			return true
		}
	}
	return false
}

// isGivenKept returns whether all numbered records are on disk, so that a successor can continue.
func (s *spool) isGivenKept() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle(&s.sealed)
	for r := s.first; s.isKeeping && r != nil; r = r.next {
		switch {
		case r == s.sealed.run:
			return s.sealed.at == 0 || r.isKept(s.sealed.at-1)
		case r.isUnsaved:
			return false
		}
	}
	return s.isKeeping
}

func (s *spool) account() accounting {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := accounting{
		frontID: s.lastID + 1, ackedSeq: s.ackedSeq, givenSeq: s.seq, ackedGenerations: s.counters.ackedGenerations,
		lostGenerations: s.counters.lostGenerations, settled: s.settledCount, settledLost: s.settledLost, gone: s.gone,
	}
	if r := s.first; r != nil {
		a.frontID = r.id
		a.isFrontDone = r.kind != runGeneration && r.ackedRecords > 0
		if s.acked.run == r && s.acked.at > r.keptFrom {
			a.frontBytes = uint64(s.acked.at - r.keptFrom)
		}
	}
	a.headerBytes = uint64(copy(a.header[:], s.header))
	return a
}

// --- in ---

// keptFrame reads the frame at the begin of a piece; n: its bytes, 0 if it is cut off. It returns errDamaged if a checksum or
// length is wrong.
func keptFrame(salt uint32, bytes []byte) (f frame, payload []byte, n int, err error) {
	if len(bytes) < keptHeadBytes {
		return f, nil, 0, nil
	}
	head := fields(bytes)
	f.gen = head.number()
	kind := head.word()
	f.kind, f.len, f.sum = byte(kind), head.word(), head.word()
	sum := binary.LittleEndian.Uint32(bytes[keptHeadBytes-4:])
	if crc32.Update(salt, castagnoliTable, bytes[:keptHeadBytes-4]) != sum || kind >= kindLimit || f.len > pieceBytes-keptHeadBytes {
		return f, nil, 0, errDamaged
	}
	n = keptHeadBytes + int(f.len)
	if len(bytes) < n {
		return f, nil, 0, nil
	}
	payload = bytes[keptHeadBytes:n]
	if crc32.Checksum(payload, castagnoliTable) != f.sum {
		return f, nil, 0, errDamaged
	}
	return f, payload, n, nil
}

// inherit begins a spool without a writer, from the files of an earlier process.
func (s *spool) inherit(a *accounting) {
	s.isInherited = true
	s.inheritedSeq = a.givenSeq
	s.seq, s.ackedSeq = a.ackedSeq, a.ackedSeq
	s.settledCount, s.settledLost, s.gone = a.settled, a.settledLost, a.gone
	s.header = append([]byte(nil), a.header[:a.headerBytes]...)
	s.counters = counters{
		produced: a.settled, reported: a.settled, reportedSeq: a.ackedSeq, lost: a.settledLost,
		ackedGenerations: a.ackedGenerations, lostGenerations: a.lostGenerations,
	}
}

func (s *spool) inheritRun(image *runImage) {
	before := s.last
	r := s.appendRun(image.kind, image.gen)
	r.lastGen, r.reason, r.firstWall, r.lastWall = image.lastGen, image.reason, image.firstWall, image.lastWall
	if image.kind != runLoss {
		return
	}
	if image.sealed.batches > 0 && before != nil && before.kind == runGeneration { // it was abandoned: this is its LOSS
		before.isAbandoned = true
		s.counters.spooled.sub(before.all)
	}
	r.all, r.sealed = image.all, image.sealed
	s.records++
	s.counters.lost.add(image.all)
	s.counters.produced.add(image.all)
	s.counters.produced.sub(image.sealed) // sealed batches are counted as frames
}

func (s *spool) inheritFrame(f frame, payload []byte) error {
	r := s.last
	s.records++
	if r.kind != runGeneration {
		if r.bytes > 0 || len(payload) > keptSmallMax {
			return errDamaged
		}
		r.setSmall(f.kind, payload)
		s.isFinished = s.isFinished || f.kind == kindClose
		return nil
	}
	if r.pagesWanted(keptHeadBytes+len(payload)) > s.freePages() {
		return errNotNow // the files have changed since memoryWanted
	}
	s.appendFrame(r, f, payload)
	if f.kind == kindBatch {
		one := count{1, uint64(f.len)}
		r.all.add(one)
		s.counters.spooled.add(one)
		s.counters.produced.add(one)
	}
	return nil
}

// inherited completes the spool. Records that may have been sent get their numbers again, so that they can be acknowledged.
func (s *spool) inherited() {
	s.runsMax = s.runs + 2*runsSpare
	c := &s.counters
	c.acked = c.produced
	c.acked.sub(c.lost)
	c.acked.sub(c.spooled)
	c.spooledPeak = c.spooled
	for s.seq < s.inheritedSeq {
		if g, _ := s.grant(math.MaxUint64); g.bytes == 0 {
			return
		}
	}
}

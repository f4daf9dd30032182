// SPDX-License-Identifier: Apache-2.0

package traceagent

import (
	"encoding/binary"
	"hash/crc32"
	"math"
)

// The parts of a spool that are not on disk yet, piece by piece; and the way back, a spool made of such pieces.
//
// Out: the disk asks for one piece after the other; each is given once. While keeping, the spool lets no
// record go out that was not given.
//
// In: a successor of a process that died begins with the accounting, adds what it finds, run by run in order, and ends.
// Numbers follow from the accounting and that order, since only what has none yet is ever dropped.

const (
	pieceBytes    = 128 << 10 // of frames, at most; the largest fits
	keptHeadBytes = 32        // in front of each frame, as many as on the wire: a place in a run is one on disk
	keptSmallMax  = 128       // of a record that stands alone
)

type piece struct {
	run    runImage
	at     uint64 // of the frames among those of the run that are on disk
	frames []byte
	kept   uint64 // of the files that the run takes the place of, those up to there went before
}

// accounting is that of acknowledged records, and where the others begin.
type accounting struct {
	frontID              uint64 // the run of the oldest record that is not acknowledged
	frontBytes           uint64 // so many bytes of its frames that are on disk are
	isFrontDone          bool   // it is a record that stands alone, and acknowledged
	ackedSeq, givenSeq   uint64 // numbers up to there are acknowledged, are given
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

// keep says that from now on nothing that is there is on disk.
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

// keepNot says that there is no disk any more.
func (s *spool) keepNot() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isKeeping = false
}

// unsaved answers the next piece, its frames in room; salt goes into their checksums. False: there is none.
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
		if s.acked.run == r && r.keptBytes < s.acked.at { // went to the collector while there was no disk
			r.keptFrom, r.keptBytes = s.acked.at, s.acked.at
		}
		from = r.keptBytes
		p.at = uint64(from - r.keptFrom)
	}
	if r.kind != runLoss { // its image says it all
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

// copyFrames copies as many whole frames as there is room for.
func (r *run) copyFrames(at int, salt uint32, room []byte) []byte {
	out := room[:0]
	for at < r.bytes {
		f := r.frameAt(at)
		n := int(f.len)
		if len(out)+keptHeadBytes+n > cap(out) {
			break
		}
		if f.seq != 0 { // the head of one that has its number does not say what its payload sums up to
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

// unsavedAgain: a piece could not be written, and is given again. Since it was given its run may have been dropped, or
// become part of another: that is given in any case.
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

// isKept says whether what is at a place in a run is on disk. Nothing else goes out: a successor must know all that has a
// number.
func (r *run) isKept(at int) bool {
	if r.kind == runGeneration {
		return at < r.keptBytes
	}
	return !r.isUnsaved
}

// hasKept says whether something on disk is not acknowledged yet: our successor would send it.
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

// isGivenKept says whether all that has a number is: a successor can go on where we are.
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

// keptFrame reads a frame out of a piece; n: the bytes that it takes. errDamaged. n 0: it is cut short.
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

// inherit begins a spool that has no writer: what an earlier process left.
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
	if image.sealed.batches > 0 && before != nil && before.kind == runGeneration { // it was given up: this reports it
		before.isAbandoned = true
		s.counters.spooled.sub(before.all)
	}
	r.all, r.sealed = image.all, image.sealed
	s.records++
	s.counters.lost.add(image.all)
	s.counters.produced.add(image.all)
	s.counters.produced.sub(image.sealed) // these are counted, by themselves
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
		return errNotNow // the files are not what they were a moment before
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

// inherited says that this was all. A record that may have gone out has its number again, so that it can be acknowledged.
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

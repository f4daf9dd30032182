// SPDX-License-Identifier: Apache-2.0

package traceagent

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"sync"
	"time"
)

// spool stores the records that are not acknowledged yet, in bounded memory. One writer puts records in;
// one sender takes them out as ready frames, and can begin again at the first unacknowledged one. A record gets its
// sequence number when it is first sent (sealed).
//
//	acked <= sent <= sealed <= written          (places in the order of records)
//
// If it is full, whole generations are dropped (losses.go). The bytes of a sent record do not move until the ack, so they are
// written to the connection without the lock.
type spool struct {
	mu      sync.Mutex
	changed chan struct{} // closed and replaced after acks, and when nothing more will be sent
	wake    chan struct{} // wakes a sleeping sender

	mapping     *mapping // source of pages
	pages, cold [][]byte // free pages; free pages whose memory was returned to the system
	made, limit int      // number of pages, and its limit

	first, last         *run
	runs, runsMax       int // number of runs in the list, and its limit
	acked, sent, sealed place
	seq, ackedSeq       uint64 // last number given; last number acknowledged
	writtenSeq          uint64 // last record that was written to the connection as a whole
	wantedAck           uint64 // ack received while its record was still being written
	records             uint64 // number of records so far, including lost ones
	gone                span   // generations freed since the spool was created
	settledCount        count  // part of produced that acknowledged records report,
	settledLost         count  // counted in lost, too
	header              []byte
	isFinished          bool // CLOSE is in the list
	isOver              bool // nothing more will be sent
	isCapped            bool // the rate cap delays the sender: used as the reason of a loss
	isResting           bool // the sender rests until isMuch
	counters            counters
	recorder            recorder

	isKeeping    bool   // there is a spool on disk (serializer.go): only records on disk are sent
	keptRecords  uint64 // value of records when the disk last had all of them
	lastID       uint64 // of a run
	isInherited  bool   // a spool without a writer, from an earlier process's files
	inheritedSeq uint64 // last number that the earlier process may have sent
	hasAgreed    bool   // at the first connection the collector had no record above inheritedSeq
	isSuperseded bool   // the collector had more: the process continued without its disk, or a file is damaged
}

type count struct{ batches, bytes uint64 }

func (c *count) add(other count) { c.batches += other.batches; c.bytes += other.bytes }
func (c *count) sub(other count) { c.batches -= other.batches; c.bytes -= other.bytes }

type counters struct {
	produced, acked, lost, spooled, spooledPeak      count
	ackedGenerations, lostGenerations, resentBatches uint64
	// Part of produced that the records up to reportedSeq report: each batch once, lost or not.
	reported    count
	reportedSeq uint64
	lastLoss    lossReason // why the newest of lostGenerations was lost
}

// span is a range of generations, with the times of writing. firstGen 0: none.
type span struct{ firstGen, lastGen, firstWall, lastWall uint64 }

const (
	pageBytes     = 16 << 10 // one TLS record, so that TLS encrypts directly from the page
	spoolBytesMin = 1 << 20
	grantBytes    = 256 << 10 // taken at one time under the lock, or one larger frame
	genEndRoom    = headBytes + 64
	runsMin       = 256
	runsSpare     = 8 // reserved for LOSS, CLOSE and a restart of the stream
)

func newSpool(bytes uint64) *spool {
	pages := int(max(bytes, spoolBytesMin) / pageBytes)
	return &spool{mapping: newMapping(pages), limit: pages, runsMax: max(runsMin, pages), changed: make(chan struct{}), wake: make(chan struct{}, 1)}
}

// --- memory ---

func (s *spool) freePages() int { return len(s.pages) + len(s.cold) + s.limit - s.made }

func (s *spool) takePage() []byte {
	for _, free := range []*[][]byte{&s.pages, &s.cold} {
		if n := len(*free); n > 0 {
			page := (*free)[n-1]
			*free = (*free)[:n-1]
			return page
		}
	}
	s.made++
	return s.mapping.page(s.made - 1)
}

func (s *spool) givePages(pages [][]byte) { s.pages = append(s.pages, pages...) }

// trim returns the memory of half of the free pages to the system; isLast: of all.
func (s *spool) trim(isLast bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	keep := len(s.pages) / 2
	if isLast {
		keep = 0
	}
	for i, page := range s.pages[keep:] {
		if s.mapping.release(page) {
			s.cold = append(s.cold, page)
		} else {
			s.made--
		}
		s.pages[keep+i] = nil
	}
	s.pages = s.pages[:keep]
}

// takePages adds the pages for n more bytes to a run; the caller has checked that they are free.
func (s *spool) takePages(r *run, n int) {
	for n := r.pagesWanted(n); n > 0; n-- {
		r.pages = append(r.pages, s.takePage())
	}
}

// appendFrame appends a frame to a run that has room for it, and returns the payload's checksum.
func (s *spool) appendFrame(r *run, f frame, payload []byte) uint32 {
	var head [headBytes]byte
	s.takePages(r, headBytes+len(payload))
	f.len = uint32(len(payload))
	f.sum = r.writeSummed(r.bytes+headBytes, payload)
	f.putWaiting(&head)
	r.write(r.bytes, head[:])
	r.bytes += headBytes + len(payload)
	r.records++
	return f.sum
}

// --- runs ---

func (s *spool) appendRun(kind runKind, gen uint64) *run {
	now := wallNow()
	s.lastID++
	s.runs++
	r := &run{kind: kind, gen: gen, lastGen: gen, order: s.records, firstWall: now, lastWall: now, id: s.lastID, covers: s.lastID, keptCovers: s.lastID, isUnsaved: true}
	if s.last == nil {
		s.first = r
	} else {
		s.last.next = r
	}
	s.last = r
	return r
}

// writing returns the generation that is being written, or the LOSS in its place; nil: none.
func (s *spool) writing() *run {
	if s.last == nil || !s.last.isOpen {
		return nil
	}
	return s.last
}

// settle moves a place at the end of a run to the begin of the next one.
func (s *spool) settle(p *place) {
	if p.run == nil {
		*p = place{run: s.first}
	}
	for p.run != nil && p.run.isPast(p.at) && p.run.next != nil {
		*p = place{run: p.run.next}
	}
}

func wallNow() uint64 { return uint64(time.Now().UnixNano()) }

var started = time.Now()

// monoNow returns nanoseconds of a clock that never goes back.
func monoNow() uint64 { return uint64(time.Since(started)) + 1 }

// --- writing ---

func (s *spool) putHeader(p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.header = append([]byte(nil), p...)
	s.appendRun(runHeader, 0).setSmall(kindHeader, s.header)
	s.records++
	s.wakeSender()
}

// put adds a batch to the generation that is being written, or begins generation gen with it.
func (s *spool) put(gen uint64, batch []byte) {
	one := count{1, uint64(len(batch))}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writing() == nil {
		s.beginGeneration(gen)
	}
	r := s.makeRoom(headBytes + len(batch))
	if r != nil {
		sum := s.appendFrame(r, frame{kind: kindBatch, gen: gen}, batch)
		r.sum = crc32.Update(r.sum, castagnoliTable, binary.LittleEndian.AppendUint32(nil, sum))
		if !r.isHeld {
			s.counters.spooled.add(one)
			s.notePeak()
		}
	} else if r = s.writing(); !r.isHeld {
		s.counters.lost.add(one)
	}
	r.all.add(one)
	r.lastWall = wallNow()
	r.isUnsaved = true
	if !r.isHeld {
		s.counters.produced.add(one)
		s.records++
		if !s.isResting || s.isMuch() {
			s.wakeSender()
		}
	}
}

func (s *spool) notePeak() {
	if s.counters.spooled.bytes > s.counters.spooledPeak.bytes {
		s.counters.spooledPeak = s.counters.spooled
	}
}

func (s *spool) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.writing()
	if r == nil {
		return
	}
	if r = s.makeRoom(genEndRoom); r != nil {
		var p pack
		p.number(1, r.all.batches)
		p.number(2, r.all.bytes)
		p.fixed32(3, r.sum)
		p.number(4, wallNow())
		p.number(5, monoNow())
		s.appendFrame(r, frame{kind: kindGenerationEnd, gen: r.gen}, p)
		if !r.isHeld {
			s.records++
		}
	}
	r = s.writing()
	r.isOpen, r.isUnsaved = false, true
	if s.recorderEnded(r) {
		s.wakeSender()
	}
}

func (s *spool) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recorderFinish()
	s.sayClose(s.appendRun(runClose, 0))
	s.records++
	s.isFinished = true
	s.wakeSender()
}

func (s *spool) sayClose(r *run) {
	var p pack
	p.bytes(1, s.counters.pack(false))
	p.text(2, "closed")
	r.setSmall(kindClose, p)
}

func (s *spool) wakeSender() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// --- sending ---

// granted is a part of the spool to be sent. Its bytes do not change until they are acknowledged.
type granted struct {
	parts [][]byte // one for each page
	bytes int
	seq   uint64 // of its last record
	end   place  // after its last record
}

// grant returns whole frames of at most room bytes. need: the size of the next frame, if it alone does not fit.
func (s *spool) grant(room uint64) (g granted, need uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		r, f, isFresh := s.nextFrame()
		if r == nil || (isFresh && s.isKeeping && !r.isKept(s.sent.at)) {
			return g, 0
		}
		n := headBytes + int(f.len)
		if g.bytes > 0 && g.bytes+n > grantBytes {
			return g, 0
		}
		if uint64(n) > room-uint64(g.bytes) {
			if g.bytes == 0 {
				need = uint64(n)
			}
			return g, need
		}
		if isFresh {
			s.seal(r, s.sent.at, f)
		} else if f.kind == kindBatch {
			s.counters.resentBatches++
		}
		g.seq = r.frameAt(s.sent.at).seq
		g.add(r, s.sent.at, n)
		s.sent.at += n
		if isFresh {
			s.sealed = s.sent
		}
	}
}

func (g *granted) add(r *run, at, n int) {
	g.bytes += n
	for n > 0 {
		part := r.view(at, n)
		if g.end == (place{r, at}) && r.small == nil && at%pageBytes != 0 {
			last := &g.parts[len(g.parts)-1]
			*last = (*last)[:len(*last)+len(part)]
		} else {
			g.parts = append(g.parts, part)
		}
		at, n = at+len(part), n-len(part)
		g.end = place{r, at}
	}
}

// nextFrame returns the next frame that may be sent, and whether it was never sent before.
func (s *spool) nextFrame() (r *run, f frame, isFresh bool) {
	s.settle(&s.sent)
	s.settle(&s.sealed)
	r = s.sent.run
	if r == nil || r.isHeld || (r.kind == runLoss && !r.isSaid && !s.sayLoss(r)) || s.sent.at == r.bytes {
		return nil, frame{}, false
	}
	return r, r.frameAt(s.sent.at), s.sent == s.sealed
}

// seal gives a frame its number, and its head for the wire.
func (s *spool) seal(r *run, at int, f frame) {
	var head [headBytes]byte
	s.seq++
	f.seq = s.seq
	f.put(&head)
	r.write(at, head[:])
	r.sealedRecords++
	if f.kind == kindBatch {
		r.sealed.add(count{1, uint64(f.len)})
	}
	s.countReported(r, f)
}

// countReported adds the part of produced that the newest numbered record reports.
func (s *spool) countReported(r *run, f frame) {
	s.counters.reportedSeq = s.seq
	switch f.kind {
	case kindBatch:
		s.counters.reported.add(count{1, uint64(f.len)})
	case kindLoss: // the sent batches of an abandoned generation were reported before
		s.counters.reported.add(r.all)
		s.counters.reported.sub(r.sealed)
	}
}

// wrote notes that all records up to seq are written to the connection.
func (s *spool) wrote(seq uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if seq > s.writtenSeq {
		s.writtenSeq = seq
	}
	if wanted := s.wantedAck; wanted > s.ackedSeq && wanted <= s.writtenSeq {
		s.wantedAck = 0
		s.ackUpTo(wanted)
	}
}

// hasMuch returns whether the sender must not rest: a generation is complete, many bytes wait, or half of the memory
// is in use, so acks must free some.
func (s *spool) hasMuch() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isMuch()
}

func (s *spool) isMuch() bool {
	next, _, _ := s.nextFrame()
	isComplete := next != nil && !next.isOpen
	unsent := s.counters.produced.bytes - s.counters.reported.bytes
	return isComplete || unsent >= restBytes || s.freePages() <= s.limit/2
}

// --- acks ---

// ack frees the records up to seq.
func (s *spool) ack(seq uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if seq > s.seq {
		return fmt.Errorf("collector acks record %d, sent are %d", seq, s.seq)
	}
	if seq > s.writtenSeq {
		s.wantedAck = seq // the connection may still be reading the record's bytes
		seq = s.writtenSeq
	}
	s.ackUpTo(seq)
	return nil
}

func (s *spool) ackUpTo(seq uint64) {
	for s.ackedSeq < seq {
		s.release()
		s.ackFrame(s.acked.run.frameAt(s.acked.at))
	}
	s.release()
	s.broadcast()
}

func (s *spool) ackFrame(f frame) {
	r, one := s.acked.run, count{1, uint64(f.len)}
	s.ackedSeq = f.seq
	r.ackedRecords++
	switch f.kind {
	case kindGenerationEnd:
		s.counters.ackedGenerations++
	case kindBatch:
		r.acked.add(one)
		s.settledCount.add(one)
		if !r.isAbandoned {
			s.counters.acked.add(one)
			s.counters.spooled.sub(one)
		}
	case kindLoss:
		s.settledCount.add(r.all)
		s.settledCount.sub(r.sealed)
		s.settledLost.add(r.all)
	}
	s.acked.at += headBytes + int(f.len)
	for r.small == nil && s.acked.at-r.freed >= pageBytes { // pages that no place needs any more
		s.pages = append(s.pages, r.pages[0])
		r.pages = r.pages[1:]
		r.freed += pageBytes
	}
}

// release frees the runs that are acknowledged as a whole.
func (s *spool) release() {
	if s.acked.run == nil {
		s.acked = place{run: s.first}
	}
	for r := s.acked.run; r != nil && r.isPast(s.acked.at) && r.next != nil; r = s.acked.run {
		s.acked = place{run: r.next}
		s.settle(&s.sent)
		s.settle(&s.sealed)
		s.free(r)
	}
}

// free removes the first run.
func (s *spool) free(r *run) {
	if r.kind == runGeneration || r.kind == runLoss {
		if s.gone.firstGen == 0 {
			s.gone.firstGen, s.gone.firstWall = r.gen, r.firstWall
		}
		s.gone.lastGen, s.gone.lastWall = r.lastGen, r.lastWall
	}
	s.givePages(r.pages)
	r.pages = nil
	s.runs--
	s.first = r.next
	if s.first == nil {
		s.last = nil
	}
}

// knownSeq returns the last record that an earlier process may have sent, by its files. After the collector has once had no
// more than that, all later records are from this process.
func (s *spool) knownSeq() uint64 {
	if !s.isInherited || s.hasAgreed {
		return math.MaxUint64
	}
	return min(s.inheritedSeq, s.seq) // s.seq is lower if files are damaged
}

// resume frees the records that the collector has, and continues after them. errForgot: the collector has fewer than it
// acknowledged.
func (s *spool) resume(durable uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wantedAck = 0
	switch known := s.knownSeq(); {
	case durable > known:
		s.isSuperseded = true
		return refusal{forGood: true, text: fmt.Sprintf("collector has records up to %d, the spool on disk knows of %d that were sent", durable, known)}
	case durable > s.seq:
		return fmt.Errorf("collector acks record %d, sent are %d", durable, s.seq)
	case durable < s.ackedSeq:
		return fmt.Errorf("%w: collector has records up to %d of this stream, but acked %d", errForgot, durable, s.ackedSeq)
	}
	s.writtenSeq = durable
	s.ackUpTo(durable)
	s.sent = s.acked
	s.hasAgreed = true
	return nil
}

// --- waiting ---

func (s *spool) broadcast() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// settled returns how many of the first records are acknowledged or counted as lost.
func (s *spool) settled() uint64 {
	s.release()
	r := s.acked.run
	if r == nil || r.isHeld || (r == s.last && s.acked.at == r.bytes && (r.bytes > 0 || r.isOpen)) {
		return s.records
	}
	return r.order + r.ackedRecords
}

func (s *spool) isDone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return (s.isFinished || s.isInherited) && s.settled() == s.records
}

// over ends all waits: nothing more will be sent.
func (s *spool) over() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isOver = true
	s.broadcast()
}

// wait waits until every record put before the call is acknowledged or reported as lost; with a recorder, every released
// record. After patience it returns errNotAcked, or errOnlyKept if all of them are on disk.
func (s *spool) wait(patience time.Duration) error {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	target := s.records
	for isUp := false; s.isAwaited(target); {
		if s.isOver {
			return errOver
		}
		if isUp && s.isKeeping && s.keptRecords >= target {
			return errOnlyKept
		}
		if isUp {
			return errNotAcked
		}
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-timer.C:
			isUp = true
		}
		s.mu.Lock()
	}
	return nil
}

func (s *spool) isAwaited(target uint64) bool {
	if s.recorder.keep > 0 {
		target = s.records
	}
	return s.recorder.tail > 0 || s.settled() < target
}

func (s *spool) count() counters {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counters
}

func (s *spool) setResting(isResting bool) {
	s.mu.Lock()
	s.isResting = isResting
	s.mu.Unlock()
}

func (s *spool) setCapped(isCapped bool) {
	s.mu.Lock()
	s.isCapped = isCapped
	s.mu.Unlock()
}

func (s *spool) isOverNow() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isOver
}

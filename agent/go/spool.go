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

// A spool has the records that were written and are not acknowledged yet, in bounded memory. One writer puts records in;
// one sender takes them out as ready frames, keeps them until they are acknowledged, and can begin again at the first
// that is not. Sequence numbers are given when a record is first sent.
//
//	acked <= sent <= sealed <= written          (places in the order of records)
//
// When it is full, whole generations go (losses.go). What is sent stays where it is until it is acknowledged, so it is
// written to the connection without the lock.
type spool struct {
	mu      sync.Mutex
	changed chan struct{} // closed and replaced when acks come, or when waiting is over
	wake    chan struct{} // for a sender that sleeps

	mapping     *mapping // where pages come from
	pages, cold [][]byte // free ones, and those whose memory the system has back
	made, limit int      // pages there are, and may be

	first, last         *run
	runs, runsMax       int // in the list, and so many may be
	acked, sent, sealed place
	seq, ackedSeq       uint64 // the last that was given; the last that was acknowledged
	writtenSeq          uint64 // the last that the connection has taken whole
	wantedAck           uint64 // one that came while its record was still being written
	records             uint64 // put so far, lost ones included
	gone                span   // what was freed since the spool was made
	settledCount        count  // what the acknowledged records report of produced,
	settledLost         count  // and of lost
	header              []byte
	isFinished          bool // CLOSE is in
	isOver              bool // nothing will be sent any more
	isCapped            bool // the rate cap holds the sender back: the reason of a loss
	isResting           bool // the sender waits until there is much
	counters            counters
	recorder            recorder

	isKeeping    bool   // there is a spool on disk, serializer.go: what is not there yet waits
	keptRecords  uint64 // of records: so many were put when the disk last had all of them
	lastID       uint64 // of a run on disk
	isInherited  bool   // there is no writer: what an earlier process left on disk
	inheritedSeq uint64 // the last it may have sent
	hasAgreed    bool   // the collector had no more than that when we first asked
	isSuperseded bool   // it had more: the process went on without its disk, or a file is damaged
}

type count struct{ batches, bytes uint64 }

func (c *count) add(other count) { c.batches += other.batches; c.bytes += other.bytes }
func (c *count) sub(other count) { c.batches -= other.batches; c.bytes -= other.bytes }

type counters struct {
	produced, acked, lost, spooled, spooledPeak      count
	ackedGenerations, lostGenerations, resentBatches uint64
	// The part of produced that the numbered records, up to reportedSeq, report: each batch once, lost or not.
	reported    count
	reportedSeq uint64
	lastLoss    lossReason // of the newest of lostGenerations
}

// span is of generations, and when they were written. firstGen 0: none.
type span struct{ firstGen, lastGen, firstWall, lastWall uint64 }

const (
	pageBytes     = 16 << 10 // a record of TLS, so that it is encrypted out of the page
	spoolBytesMin = 1 << 20
	grantBytes    = 256 << 10 // that are taken at one time under the lock, or one frame that is larger
	genEndRoom    = headBytes + 64
	runsMin       = 256
	runsSpare     = 8 // always left for LOSS, CLOSE and a stream that restarts
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

// trim gives the memory of half of what is not in use back to the system; isLast: of all of it.
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

// takePages takes what n bytes more need at the end of a run that has room for them.
func (s *spool) takePages(r *run, n int) {
	for n := r.pagesWanted(n); n > 0; n-- {
		r.pages = append(r.pages, s.takePage())
	}
}

// appendFrame puts a frame at the end of a run that has room for it, and answers its payload's checksum.
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

// writing is the generation that is being written, or the LOSS that stands for it; nil: none is.
func (s *spool) writing() *run {
	if s.last == nil || !s.last.isOpen {
		return nil
	}
	return s.last
}

// settle steps from the end of a run to the begin of the next one.
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

// monoNow is a clock that only goes on, in nanoseconds.
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

// put takes a batch of the generation that is being written, or of the next one.
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

// end says that the generation that is being written is complete.
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

// finish writes the last record.
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

// granted is a part of the spool that goes out; its bytes stay as they are until they are acknowledged.
type granted struct {
	parts [][]byte // one a page
	bytes int
	seq   uint64 // of the last record
	end   place  // behind it
}

// grant lets whole frames of at most room bytes out. need: what the next frame takes, where there is none in it.
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

// nextFrame answers the next one that may go out, and whether it never did.
func (s *spool) nextFrame() (r *run, f frame, isFresh bool) {
	s.settle(&s.sent)
	s.settle(&s.sealed)
	r = s.sent.run
	if r == nil || r.isHeld || (r.kind == runLoss && !r.isSaid && !s.sayLoss(r)) || s.sent.at == r.bytes {
		return nil, frame{}, false
	}
	return r, r.frameAt(s.sent.at), s.sent == s.sealed
}

// seal gives a frame its number, and its head as it goes out.
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

// countReported counts what the newest numbered record reports of produced.
func (s *spool) countReported(r *run, f frame) {
	s.counters.reportedSeq = s.seq
	switch f.kind {
	case kindBatch:
		s.counters.reported.add(count{1, uint64(f.len)})
	case kindLoss: // what was sent of an abandoned generation was reported then
		s.counters.reported.add(r.all)
		s.counters.reported.sub(r.sealed)
	}
}

// wrote says that the connection has taken all records up to seq.
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

// hasMuch says whether the sender takes no rest: a generation is complete, much waits to be sent, or memory that acks
// would free must not wait.
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
		s.wantedAck = seq // it may be on its way: its bytes are still being read
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
	for r.small == nil && s.acked.at-r.freed >= pageBytes { // pages behind every place
		s.pages = append(s.pages, r.pages[0])
		r.pages = r.pages[1:]
		r.freed += pageBytes
	}
}

// release frees the runs that are acknowledged whole.
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

// free gives the first run back.
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

// knownSeq is the last record of which the files of a spool on disk know that it may have been sent. Once the collector has
// agreed, what it has is what this process sends.
func (s *spool) knownSeq() uint64 {
	if !s.isInherited || s.hasAgreed {
		return math.MaxUint64
	}
	return min(s.inheritedSeq, s.seq) // fewer, if they are damaged
}

// resume frees what the collector has of the stream, and begins again behind it. errForgot: it has less than it
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

// settled answers how many of the records that were put, in their order, are acknowledged or counted as lost.
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

// over ends all waiting: nothing more will be sent.
func (s *spool) over() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isOver = true
	s.broadcast()
}

// wait waits until every record that was put before the call is acknowledged or reported as lost, of a recorder what it
// lets out. errNotAcked: the time is up; errOnlyKept: it is, but all of them are on disk.
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

// setCapped says whether the rate cap holds the sender back.
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

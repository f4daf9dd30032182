// SPDX-License-Identifier: Apache-2.0

package traceagent

import "hash/crc32"

// If the spool is full, this is dropped, in this order: the runs that a recorder holds; the oldest generation of which nothing
// was sent; the unsent and all later records of the generation that is being written. Each leaves a LOSS in its place;
// neighbours that are not written as records yet are merged. The lock is held in every call.

type lossReason uint64

const (
	lossSpoolFull lossReason = 1
	lossRateCap   lossReason = 3
	lossForgotten lossReason = 6
)

var lossTexts = map[lossReason]string{
	lossSpoolFull: "the agent's spool was full: raise SpoolBytes, or look at network and collector",
	lossRateCap:   "above the agent's rate cap: raise RateBytesPerSecond",
	lossForgotten: "acked, and lost by the collector",
}

func (s *spool) setReason(loss *run) {
	loss.reason = lossSpoolFull
	if s.isCapped {
		loss.reason = lossRateCap
	}
	s.counters.lastLoss = loss.reason
}

// makeRoom returns the generation that is being written, with room for n more bytes; nil: it was dropped itself.
func (s *spool) makeRoom(n int) *run {
	for {
		r := s.writing()
		if r.kind != runGeneration {
			return nil
		}
		if r.pagesWanted(n) <= s.freePages() {
			return r
		}
		if s.recorderForget() {
			continue
		}
		if r.isHeld {
			s.makeLoss(r)
		} else if victim, before := s.oldestUnsent(); victim != nil {
			s.dropWhole(victim, before)
		} else {
			s.abandon(r)
		}
	}
}

func (s *spool) beginGeneration(gen uint64) {
	for s.runs >= s.runsMax-runsSpare {
		if s.recorderForget() {
			continue
		}
		victim, before := s.oldestUnsent()
		if victim == nil {
			s.beginLost(gen)
			return
		}
		s.dropWhole(victim, before)
	}
	r := s.appendRun(runGeneration, gen)
	r.isOpen = true
	s.recorderBegan(r)
}

// beginLost begins a generation that is dropped as it is written: without acks all runs are in use.
func (s *spool) beginLost(gen uint64) {
	r := s.last
	if r.kind != runLoss || r.isSaid {
		r = s.appendRun(runLoss, gen)
	}
	r.isOpen, r.lastGen, r.isUnsaved = true, gen, true
	s.setReason(r)
	s.counters.lostGenerations++
}

// oldestUnsent returns the oldest generation of which nothing was sent, and the run before it. Complete ones are before the one
// being written.
func (s *spool) oldestUnsent() (victim, before *run) {
	s.settle(&s.sealed)
	for r := s.sealed.run; r != nil; before, r = r, r.next {
		if r.kind == runGeneration && r.sealedRecords == 0 && !r.isAbandoned {
			return r, before
		}
	}
	return nil, nil
}

// dropWhole turns a generation of which nothing was sent into a LOSS. If the run before it is a LOSS whose record is not
// written yet, the two are merged.
func (s *spool) dropWhole(r, before *run) {
	if !r.isOpen {
		s.recorderLost(r)
	}
	s.counters.lost.add(r.all)
	s.counters.spooled.sub(r.all)
	s.counters.lostGenerations++
	s.makeLoss(r)
	if before == nil || before.kind != runLoss || before.isSaid {
		return
	}
	before.all.add(r.all)
	before.lastGen, before.lastWall = r.gen, r.lastWall
	before.isOpen = r.isOpen
	before.covers, before.isUnsaved = r.covers, true
	before.next = r.next
	s.runs--
	if s.last == r {
		s.last = before
	}
	for _, p := range []*place{&s.acked, &s.sent, &s.sealed} {
		if p.run == r {
			*p = place{run: before}
		}
	}
}

func (s *spool) makeLoss(r *run) {
	s.givePages(r.pages)
	r.kind, r.pages, r.bytes, r.freed, r.records, r.isUnsaved = runLoss, nil, 0, 0, 0, true
	s.setReason(r)
}

// abandon drops the unsent part of the generation that is being written. Its LOSS follows it.
func (s *spool) abandon(r *run) {
	end := s.sealed.at
	keep := (end - r.freed + pageBytes - 1) / pageBytes
	s.givePages(r.pages[keep:])
	r.pages = r.pages[:keep]
	r.bytes, r.records = end, r.sealedRecords
	r.isOpen, r.isAbandoned, r.isUnsaved = false, true, true
	r.keptBytes = min(r.keptBytes, r.bytes)
	s.counters.lost.add(r.all)
	s.counters.spooled.sub(r.all)
	s.counters.spooled.add(r.acked)
	s.counters.acked.sub(r.acked)
	s.counters.lostGenerations++
	loss := s.appendRun(runLoss, r.gen)
	loss.order = r.order + r.sealedRecords
	loss.isOpen = true
	loss.all, loss.sealed = r.all, r.sealed
	loss.firstWall = r.firstWall
	s.setReason(loss)
}

// sayLoss writes the record of a LOSS whose turn has come. It returns false while the generation may lose more, and while
// there are so many runs that the next LOSS must be merged into this one.
func (s *spool) sayLoss(r *run) bool {
	if r.isOpen || s.runs > s.runsMax-runsSpare/2 {
		return false
	}
	r.say()
	return true
}

func (r *run) say() {
	var p pack
	p.number(1, r.gen)
	p.number(2, r.lastGen)
	p.number(3, r.all.batches)
	p.number(4, r.all.bytes)
	p.number(5, uint64(r.reason))
	p.number(6, r.firstWall)
	p.number(7, r.lastWall)
	p.number(8, r.sealed.batches)
	p.number(9, r.sealed.bytes)
	r.setSmall(kindLoss, p)
	r.isSaid = true
}

// --- after the collector lost acknowledged records ---

// restart turns the spool's content into another stream: HEADER, one LOSS for everything freed, whole generations. A
// generation with acknowledged records is dropped. It is called between two connections.
func (s *spool) restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	order := s.settled()
	isOpen := s.removeFront()
	var whole, reported count
	for r := s.first; r != nil && !r.isHeld; r = r.next {
		switch {
		case r.kind == runGeneration && !r.isAbandoned:
			whole.add(r.all)
		case r.kind == runLoss:
			reported.add(r.all)
		}
	}
	s.settledCount, s.settledLost = count{}, count{}
	c := &s.counters
	c.spooled = whole
	c.lost = c.produced
	c.lost.sub(whole)
	c.acked = count{}
	c.lostGenerations += c.ackedGenerations
	c.ackedGenerations = 0
	if s.gone.firstGen != 0 {
		s.prependForgotten(order, isOpen, reported)
	}
	header := s.prepend(runHeader, order)
	header.setSmall(kindHeader, s.header)
	if s.isFinished {
		s.sayClose(s.last)
		s.last.sealedRecords = 0
	}
	s.numberAgain()
}

// removeFront frees the runs that are not part of the new stream, and returns whether the last of them is still being written.
func (s *spool) removeFront() (isOpen bool) {
	for r := s.first; r != nil && !r.isHeld && r.kind != runClose; r = s.first {
		if r.kind == runGeneration && r.ackedRecords == 0 && !r.isAbandoned {
			break
		}
		isWhole := !r.isOpen && s.acked.run == r && s.acked.at == r.bytes
		if r.kind == runGeneration && !r.isAbandoned && !isWhole {
			s.counters.lostGenerations++ // one with an acknowledged end is counted already
		}
		isOpen = r.isOpen
		s.free(r)
		if s.acked.run == r {
			s.acked = place{}
		}
	}
	return isOpen
}

func (s *spool) prepend(kind runKind, order uint64) *run {
	r := &run{kind: kind, next: s.first, order: order, firstWall: wallNow(), lastWall: wallNow()}
	s.runs++
	s.first = r
	if s.last == nil {
		s.last = r
	}
	return r
}

func (s *spool) prependForgotten(order uint64, isOpen bool, reported count) {
	r := s.prepend(runLoss, order)
	r.gen, r.lastGen = s.gone.firstGen, s.gone.lastGen
	r.firstWall, r.lastWall = s.gone.firstWall, s.gone.lastWall
	r.reason = lossForgotten
	s.counters.lastLoss = lossForgotten
	r.isOpen = isOpen
	r.all = s.counters.lost
	r.all.sub(reported)
}

// numberAgain resets all records to never sent.
func (s *spool) numberAgain() {
	s.seq, s.ackedSeq, s.writtenSeq, s.wantedAck = 0, 0, 0, 0
	s.counters.reportedSeq, s.counters.reported = 0, count{}
	for r := s.first; r != nil; r = r.next {
		r.sealedRecords, r.ackedRecords = 0, 0
		switch r.kind {
		case runGeneration:
			r.sealed, r.acked = count{}, count{}
			r.unseal()
		case runLoss: // write the record again now if it follows HEADER or was written before: near runsMax sayLoss would refuse
			isSaid := (r.isSaid || r == s.first.next) && !r.isOpen
			r.small, r.bytes, r.records, r.isSaid = nil, 0, 0, false
			if isSaid {
				r.say()
			}
		}
	}
	s.acked = place{run: s.first}
	s.sent, s.sealed = s.acked, s.acked
}

// unseal removes the numbers from the frames of a run without acknowledged records.
func (r *run) unseal() {
	var head [headBytes]byte
	for at := 0; at < r.bytes; {
		f := r.frameAt(at)
		if f.seq == 0 {
			return
		}
		f.seq = 0
		f.sum = r.payloadSum(at+headBytes, int(f.len))
		f.putWaiting(&head)
		r.write(at, head[:])
		at += headBytes + int(f.len)
	}
}

func (r *run) payloadSum(at, n int) (sum uint32) {
	for n > 0 {
		part := r.view(at, n)
		sum = crc32.Update(sum, castagnoliTable, part)
		at, n = at+len(part), n-len(part)
	}
	return sum
}

// SPDX-License-Identifier: Apache-2.0

package traceagent

import (
	"errors"
	"time"
)

// recorder makes the spool hold its newest generations back until a request (a snap). Held generations are after all others
// in the list, have no numbers, and are in no counter. One that is too old, or whose memory is needed, is dropped. That is not a
// loss: the agent has not promised to send it. A snap releases the held generations of its time, and all that is written
// until the open generation has ended.
type recorder struct {
	keep      time.Duration // 0: nothing is held
	ends      int           // generation ends that a snap waits for: 2 if an end is known only when the next generation begins
	tail      int           // remaining ends before generations are held again
	first     *run          // oldest held run
	endedWall uint64        // end of the last generation, or begin of the stream: begin of the next generation
	forgotten uint64
	snaps     uint64
	asked     [snapsMax]snap
}

const snapsMax = 4

// snapped is the result of a snap, once all its records are acknowledged or reported as lost.
type snapped struct {
	id                           uint64
	firstGen, lastGen            uint64 // firstGen 0: nothing
	generations, lostGenerations uint64
	all                          count // of whole generations
	fromWall, toWall             uint64
	isBusy                       bool // refused because of too many snaps
}

type snap struct {
	snapped        // id 0: unused
	ends    int    // remaining generation ends to wait for
	records uint64 // the snap is done when this many records of the spool are settled
}

var (
	errTooManySnaps = errors.New("too many snaps at a time")
	errForgot       = errors.New("the collector forgot") // never shown: the rest of the wrapped text is the reason
	errOver         = errors.New("traceagent: nothing more is sent")
)

func (s *spool) record(keep time.Duration) {
	s.recorder.keep, s.recorder.ends, s.recorder.endedWall = keep, 1, wallNow()
}

func (s *spool) recordEnds(ends int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recorder.ends = ends
}

// --- what is held ---

func (s *spool) forgetFirst() {
	r := s.recorder.first
	var before *run
	for at := s.first; at != r; at = at.next {
		before = at
	}
	stand := place{run: r.next} // for a sender that has passed everything before r
	if r.next == nil && before != nil {
		stand = place{run: before, at: before.bytes}
	}
	for _, p := range []*place{&s.acked, &s.sent, &s.sealed} {
		if p.run == r {
			*p = stand
		}
	}
	if before != nil {
		before.next = r.next
	} else {
		s.first = r.next
	}
	if s.last == r {
		s.last = before
	}
	s.recorder.first = r.next
	s.recorder.forgotten++
	s.runs--
	s.givePages(r.pages)
	r.pages = nil
}

// recorderForget drops the oldest held run if it is complete.
func (s *spool) recorderForget() bool {
	r := s.recorder.first
	if r == nil || r.isOpen {
		return false
	}
	s.forgetFirst()
	return true
}

func (s *spool) forgetBefore(t time.Time) {
	for r := s.recorder.first; r != nil && !r.isOpen && r.endedAt.Before(t); r = s.recorder.first {
		s.forgetFirst()
	}
}

// letOutFirst puts the oldest held run into the stream, as if it had been written just now.
func (s *spool) letOutFirst(of *snap) {
	r := s.recorder.first
	r.isHeld = false
	r.order = s.records
	s.counters.produced.add(r.all)
	if r.kind == runLoss {
		s.records += r.all.batches
		s.counters.lost.add(r.all)
		s.counters.lostGenerations++
	} else {
		s.records += r.records
		s.counters.spooled.add(r.all)
		s.notePeak()
	}
	if of != nil && !r.isOpen {
		of.note(r)
	}
	s.recorder.first = r.next
}

// --- snaps ---

// snap releases the generations that ended within the last time span, 0: all. id 0: nobody asks for the result.
func (s *spool) snap(last time.Duration, id uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	rec := &s.recorder
	if rec.keep == 0 {
		return errNoRecords
	}
	var of *snap
	if id != 0 {
		for i := range rec.asked {
			if rec.asked[i].id == 0 {
				of = &rec.asked[i]
				break
			}
		}
		if of == nil {
			return errTooManySnaps
		}
	}
	ends := rec.ends
	if s.isFinished {
		ends = 0
	}
	if of != nil {
		*of = snap{snapped: snapped{id: id}, ends: ends}
	}
	if last > 0 {
		s.forgetBefore(time.Now().Add(-last))
	}
	for rec.first != nil {
		s.letOutFirst(of)
	}
	if rec.tail < ends {
		rec.tail = ends
	}
	if of != nil {
		of.records = s.records
	}
	rec.snaps++
	s.wakeSender()
	return nil
}

// takeSnapped returns a completed snap, each once.
func (s *spool) takeSnapped() (snapped, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.recorder.asked {
		of := &s.recorder.asked[i]
		if of.id == 0 || of.ends > 0 || s.settled() < of.records {
			continue
		}
		done := of.snapped
		*of = snap{}
		return done, true
	}
	return snapped{}, false
}

// unask drops the requests after the collector that waited for them has disconnected.
func (s *spool) unask() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recorder.asked = [snapsMax]snap{}
}

func (of *snap) note(r *run) {
	if of.firstGen == 0 {
		of.firstGen = r.gen
		of.fromWall, of.toWall = r.firstWall, r.firstWall
	}
	of.lastGen = r.lastGen
	if r.lastWall > of.toWall {
		of.toWall = r.lastWall
	}
	if r.kind == runLoss {
		of.lostGenerations++
		return
	}
	of.generations++
	of.all.add(r.all)
}

// --- the writer's ---

func (s *spool) recorderBegan(r *run) {
	if s.recorder.keep == 0 {
		return
	}
	r.firstWall = s.recorder.endedWall
	r.isHeld = s.recorder.tail == 0
	if r.isHeld && s.recorder.first == nil {
		s.recorder.first = r
	}
}

// recorderEnded returns whether a generation that has ended may be sent.
func (s *spool) recorderEnded(r *run) bool {
	rec := &s.recorder
	if rec.keep == 0 {
		return true
	}
	r.endedAt = time.Now()
	rec.endedWall = r.lastWall
	if r.isHeld {
		s.forgetBefore(r.endedAt.Add(-rec.keep))
		return false
	}
	if rec.tail > 0 {
		rec.tail--
	}
	for i := range rec.asked {
		of := &rec.asked[i]
		if of.id != 0 && of.ends > 0 {
			of.note(r)
			of.ends--
			of.records = s.records
		}
	}
	s.broadcast()
	return true
}

// recorderLost counts a complete generation of a snap as lost.
func (s *spool) recorderLost(r *run) {
	for i := range s.recorder.asked {
		of := &s.recorder.asked[i]
		if of.id != 0 && of.firstGen != 0 && of.firstGen <= r.gen && r.gen <= of.lastGen {
			of.generations--
			of.lostGenerations++
			of.all.sub(r.all)
		}
	}
}

func (s *spool) recorderFinish() {
	for s.recorderForget() {
	}
	s.recorder.tail = 0
	for i := range s.recorder.asked {
		s.recorder.asked[i].ends = 0
		s.recorder.asked[i].records = s.records
	}
}

func (s *spool) recorded() (generations, bytes, forgotten, snaps uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r := s.recorder.first; r != nil; r = r.next {
		if r.kind == runGeneration {
			bytes += r.all.bytes
			if !r.isOpen {
				generations++
			}
		}
	}
	return generations, bytes, s.recorder.forgotten, s.recorder.snaps
}

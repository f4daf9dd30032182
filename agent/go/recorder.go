// SPDX-License-Identifier: Apache-2.0

package traceagent

import (
	"errors"
	"time"
)

// A recorder is a spool that holds its newest generations back until a request comes. What it holds stands behind
// everything else, has no number, and is in no counter. A generation that grows too old or has to make room is forgotten.
// That is no loss: the agent has not promised to send it. A snap lets out what is held of its time, and what comes next until
// the generation that was being written has ended.
type recorder struct {
	keep      time.Duration // 0: nothing is held
	ends      int           // of generations after which a snap has its moment: 2 where only the next generation shows an end
	tail      int           // ends still to come before generations are held again
	first     *run          // the oldest that is held
	endedWall uint64        // the last generation did, or the stream began: then the next one did
	forgotten uint64
	snaps     uint64
	asked     [snapsMax]snap
}

const snapsMax = 4

// snapped is the result of a snap: all of it is acknowledged, or reported as lost.
type snapped struct {
	id                           uint64
	firstGen, lastGen            uint64 // firstGen 0: nothing
	generations, lostGenerations uint64
	all                          count // of whole ones
	fromWall, toWall             uint64
	isBusy                       bool // of a refusal: there are too many
}

type snap struct {
	snapped        // id 0: there is none
	ends    int    // of generations that are waited for
	records uint64 // of the spool: with so many settled it is done
}

var (
	errTooManySnaps = errors.New("too many snaps at a time")
	errForgot       = errors.New("the collector forgot") // never shown: what is behind it says more
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
	stand := place{run: r.next} // of a sender that has walked all that is before it
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

// recorderForget makes the oldest that is held and complete go.
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

// letOutFirst makes the oldest that is held a part of the stream, as if it had been put just now.
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

// snap lets out what ended within the last so long, 0: all. id 0: its result will not be asked for.
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

// takeSnapped answers one that is done, once.
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

// unask forgets the requests: no collector waits for their results any more.
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

// recorderEnded says whether a generation that has ended may go out.
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

// recorderLost says that a complete generation that was let out is given up after all.
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

// recorded answers what is kept now.
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

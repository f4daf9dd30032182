// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"

	"golang.org/x/exp/trace"
)

// life has the times of a goroutine, counted as on the goroutines page of go tool trace. But if an id is used again, the
// second goroutine counts separately.
type life struct {
	entry                                        string
	born, since, lost                            trace.Time
	state                                        trace.GoState
	proc                                         trace.ProcID // where its call began
	total, running, runnable, waiting, call, cut int64
	ranges                                       map[string]int64      // by the first word of its name
	active                                       map[string]trace.Time // since when, by name
}

type lives struct {
	open map[trace.GoID]*life
	all  []*life
	call map[trace.ProcID]*life // the last call that began on a P
	on   map[string]*life       // what ran on a P when its range began, by P and name
	sync trace.Time
	last trace.Time
}

// leave adds the time since the state began to its sum. cut: for a system call, the part without
// its P.
func (l *life) leave(now trace.Time, s *lives) {
	ns := int64(now - l.since)
	switch l.state {
	case trace.GoRunning:
		l.running += ns
	case trace.GoRunnable:
		l.runnable += ns
	case trace.GoWaiting:
		l.waiting += ns
	case trace.GoSyscall:
		if l.lost != 0 {
			l.cut += int64(now - l.lost)
			ns -= int64(now - l.lost)
		}
		l.call += ns
		delete(s.call, l.proc)
	}
}

// stop adds the time of the open state. An open call counts as a whole; its part without a P counts as a wait for a P, too.
func (l *life) stop(now trace.Time) {
	ns := int64(now - l.since)
	switch l.state {
	case trace.GoRunning:
		l.running += ns
	case trace.GoRunnable:
		l.runnable += ns
	case trace.GoWaiting:
		l.waiting += ns
	case trace.GoSyscall:
		l.call += ns
		if l.lost != 0 {
			l.runnable += int64(now - l.lost)
		}
	}
	l.end(now)
}

func (l *life) end(now trace.Time) {
	l.total = int64(now - l.born)
	for name := range l.active {
		l.leaveRange(name, now)
	}
}

func (l *life) leaveRange(name string, now trace.Time) {
	if since, ok := l.active[name]; ok {
		short, _, _ := strings.Cut(name, " (")
		l.ranges[short] += int64(now - since)
		delete(l.active, name)
	}
}

// rangeEvent counts a range for its goroutine. A range of a P counts for a goroutine that was on the P at the range's begin
// and at its end.
func (s *lives) rangeEvent(ev trace.Event) {
	r := ev.Range()
	of := s.open[ev.Goroutine()]
	key := r.Scope.String() + " " + r.Name
	switch r.Scope.Kind {
	case trace.ResourceGoroutine:
		of = s.open[r.Scope.Goroutine()]
	case trace.ResourceProc:
		if ev.Kind() != trace.EventRangeEnd {
			s.on[key] = of
		} else if was := s.on[key]; was != of {
			of = nil
		}
	default:
		of = nil
	}
	switch {
	case of == nil:
	case ev.Kind() == trace.EventRangeEnd:
		of.leaveRange(r.Name, ev.Time())
	case ev.Kind() == trace.EventRangeActive:
		of.leaveRange(r.Name, s.sync)
		of.active[r.Name] = s.sync
	default:
		of.active[r.Name] = ev.Time()
	}
}

func (s *lives) begin(id trace.GoID, born trace.Time) *life {
	l := &life{born: born, ranges: map[string]int64{}, active: map[string]trace.Time{}}
	s.open[id] = l
	s.all = append(s.all, l)
	return l
}

// state records that the goroutine has been in this state since the trace began; a call that is first reported without a P
// has had none since then.
func (s *lives) state(ev trace.Event, id trace.GoID, to trace.GoState) *life {
	l := s.begin(id, s.sync)
	before := int64(ev.Time() - s.sync)
	switch to {
	case trace.GoRunning:
		l.running = before
	case trace.GoRunnable:
		l.runnable = before
	case trace.GoWaiting:
		l.waiting = before
	case trace.GoSyscall:
		if ev.Proc() == trace.NoProc {
			l.cut = before
		} else {
			l.call = before
		}
	}
	return l
}

func (s *lives) goroutine(ev trace.Event, t trace.StateTransition) {
	id := t.Resource.Goroutine()
	from, to := t.Goroutine()
	if from == to {
		return
	}
	l := s.open[id]
	switch from {
	case trace.GoUndetermined:
		l = s.state(ev, id, to)
	case trace.GoNotExist:
		l = s.begin(id, ev.Time())
	default:
		l.leave(ev.Time(), s)
	}
	if l.entry == "" {
		for frame := range t.Stack.Frames() {
			l.entry = frame.Func
		}
	}
	l.state, l.since, l.lost = to, ev.Time(), 0
	switch {
	case to == trace.GoNotExist, to == trace.GoWaiting && t.Reason == "forever":
		l.end(ev.Time())
		delete(s.open, id)
	case to == trace.GoSyscall:
		l.proc = ev.Proc()
		s.call[l.proc] = l
	}
}

func (s *lives) take(ev trace.Event) {
	s.last = ev.Time()
	if s.sync == 0 || ev.Kind() == trace.EventSync {
		s.sync = ev.Time()
	}
	switch ev.Kind() {
	case trace.EventStateTransition:
		s.transition(ev)
	case trace.EventRangeBegin, trace.EventRangeActive, trace.EventRangeEnd:
		s.rangeEvent(ev)
	}
}

func (s *lives) transition(ev trace.Event) {
	t := ev.StateTransition()
	switch t.Resource.Kind {
	case trace.ResourceGoroutine:
		s.goroutine(ev, t)
	case trace.ResourceProc:
		from, to := t.Proc()
		if l := s.call[t.Resource.Proc()]; l != nil && from != to && to == trace.ProcIdle {
			l.lost = ev.Time()
			delete(s.call, t.Resource.Proc())
		}
	}
}

func readLives(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	reader, err := trace.NewReader(bufio.NewReaderSize(file, 1<<20))
	s := lives{open: map[trace.GoID]*life{}, call: map[trace.ProcID]*life{}, on: map[string]*life{}}
	for err == nil {
		var ev trace.Event
		if ev, err = reader.ReadEvent(); err == nil {
			s.take(ev)
		}
	}
	for _, l := range s.open {
		l.stop(s.last)
	}
	sums := map[string][10]int64{}
	for _, l := range s.all {
		sum := sums[l.entry]
		for i, n := range []int64{1, l.total, l.running, l.runnable, l.waiting, l.call, l.cut,
			l.ranges["GC mark assist"], l.ranges["GC incremental sweep"], l.ranges["stop-the-world"]} {
			sum[i] += n
		}
		sums[l.entry] = sum
	}
	var lines []string
	for entry, n := range sums {
		line := entry
		for _, one := range n {
			line += fmt.Sprintf("\t%d", one)
		}
		lines = append(lines, line)
	}
	sort.Strings(lines)
	for _, line := range lines {
		fmt.Println(line)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return err
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"

	"golang.org/x/exp/trace"
)

// Each goroutine, as go tool trace's page of goroutines counts its time; but a goroutine whose id another one had before is
// one of its own.
type life struct {
	entry                                        string
	born, since, lost                            trace.Time
	state                                        trace.GoState
	proc                                         trace.ProcID // where its call began
	total, running, runnable, waiting, call, cut int64
}

type lives struct {
	open map[trace.GoID]*life
	all  []*life
	call map[trace.ProcID]*life // the last call that began on a P
	sync trace.Time
	last trace.Time
}

// What has passed since it is in its state. cut: of a call, the part without its P.
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

// A call that is still open counts whole; what it lacks its P for counts as a wait for one, too.
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
	l.total = int64(now - l.born)
}

func (s *lives) begin(id trace.GoID, born trace.Time) *life {
	l := &life{born: born}
	s.open[id] = l
	s.all = append(s.all, l)
	return l
}

// It was in this state since the trace began; a call that is stated without a P had none so far.
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
		l.total = int64(ev.Time() - l.born)
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
	if ev.Kind() != trace.EventStateTransition {
		return
	}
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
	s := lives{open: map[trace.GoID]*life{}, call: map[trace.ProcID]*life{}}
	for err == nil {
		var ev trace.Event
		if ev, err = reader.ReadEvent(); err == nil {
			s.take(ev)
		}
	}
	for _, l := range s.open {
		l.stop(s.last)
	}
	sums := map[string][7]int64{}
	for _, l := range s.all {
		sum := sums[l.entry]
		for i, n := range []int64{1, l.total, l.running, l.runnable, l.waiting, l.call, l.cut} {
			sum[i] += n
		}
		sums[l.entry] = sum
	}
	var lines []string
	for entry, n := range sums {
		lines = append(lines, fmt.Sprintf("%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d", entry, n[0], n[1], n[2], n[3], n[4], n[5], n[6]))
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

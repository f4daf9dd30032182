// SPDX-License-Identifier: Apache-2.0

// Span-sums adds up how long goroutines, Ps and ranges were in which state, in the plainest way, on Go's own public reader: the
// truth that our spans are compared with. It prints "kind state reason count ns", tab-separated and sorted, of the spans
// whose begin and end the trace shows. With --goroutines: "entry count total running runnable waiting syscall syscall-without-P
// mark-assist sweep stop-the-world", by entry function.
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

type key struct{ kind, state, reason string }

type sum struct{ count, ns int64 }

type open struct {
	key   key
	since trace.Time
	known bool
}

type spans struct {
	sums map[key]sum
	open map[string]open // by what it is about
}

func (s *spans) end(subject string, at trace.Time) {
	if o, ok := s.open[subject]; ok && o.known {
		was := s.sums[o.key]
		s.sums[o.key] = sum{was.count + 1, was.ns + int64(at-o.since)}
	}
	delete(s.open, subject)
}

func (s *spans) move(subject string, kind, from, to, reason string, at trace.Time) {
	if from == to {
		return // a status: it was so before
	}
	known := from != "Undetermined"
	if !known {
		delete(s.open, subject)
	} else {
		s.end(subject, at)
	}
	if to == "NotExist" {
		return
	}
	if to != "Waiting" {
		reason = ""
	}
	s.open[subject] = open{key{kind, to, reason}, at, known}
}

func (s *spans) transition(ev trace.Event) {
	t := ev.StateTransition()
	switch t.Resource.Kind {
	case trace.ResourceGoroutine:
		from, to := t.Goroutine()
		s.move(t.Resource.String(), "goroutine", from.String(), to.String(), t.Reason, ev.Time())
	case trace.ResourceProc:
		from, to := t.Proc()
		s.move(t.Resource.String(), "proc", from.String(), to.String(), "", ev.Time())
	}
}

func (s *spans) take(ev trace.Event) {
	switch ev.Kind() {
	case trace.EventStateTransition:
		s.transition(ev)
	case trace.EventRangeBegin, trace.EventRangeActive:
		r := ev.Range()
		name, _, _ := strings.Cut(r.Name, " (")
		subject := name + " " + r.Scope.String()
		if _, active := s.open[subject]; active && ev.Kind() == trace.EventRangeActive {
			return
		}
		s.open[subject] = open{key{"range", name, ""}, ev.Time(), ev.Kind() == trace.EventRangeBegin}
	case trace.EventRangeEnd:
		r := ev.Range()
		name, _, _ := strings.Cut(r.Name, " (")
		s.end(name+" "+r.Scope.String(), ev.Time())
	}
}

func read(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	reader, err := trace.NewReader(bufio.NewReaderSize(file, 1<<20))
	s := spans{map[key]sum{}, map[string]open{}}
	for err == nil {
		var ev trace.Event
		if ev, err = reader.ReadEvent(); err == nil {
			s.take(ev)
		}
	}
	var lines []string
	for k, v := range s.sums {
		lines = append(lines, fmt.Sprintf("%s\t%s\t%s\t%d\t%d", k.kind, k.state, k.reason, v.count, v.ns))
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

func main() {
	names, sums := os.Args[1:], read
	if len(names) > 0 && names[0] == "--goroutines" {
		names, sums = names[1:], readLives
	}
	for _, name := range names {
		if err := sums(name); err != nil {
			fmt.Fprintln(os.Stderr, "span-sums:", name, err)
			os.Exit(1)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package traceagent

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime/trace"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A program whose trace.Start fails while the agent traces may still call trace.Stop(), which silently ends the agent's
// trace. The watch notices that, and begins a new trace. A new trace has another header, so it is another stream.

const (
	watchTime   = time.Second
	silentLooks = 3                // a generation takes at most 2.1 seconds: after this many looks without a write the trace is not ours
	formerTime  = 10 * time.Second // for the acks of the ended trace's rest
	shortTime   = time.Minute      // a trace that the program ends sooner is restarted after a pause
	pauseMin    = 10 * time.Second
	pauseMax    = 10 * time.Minute
)

// writer receives one trace from runtime/trace, one call for each batch.
type writer struct {
	tee io.Writer

	mu      sync.Mutex
	stream  *stream // nil after end
	inside  int     // running calls of Write: Tee may block
	writes  uint64
	version int  // of the trace, 26 for Go 1.26; 0 before its header
	isAtEnd bool // the newest write ended a generation, as the last write of a trace does
}

func (w *writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	w.writes++
	w.isAtEnd = w.endsGeneration(p)
	if w.stream != nil && len(p) > 0 {
		w.stream.write(p)
	}
	if w.tee == nil {
		w.mu.Unlock()
		return len(p), nil
	}
	w.inside++
	w.mu.Unlock()
	defer w.leave()
	return w.tee.Write(p)
}

func (w *writer) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inside--
	w.writes++
}

// endsGeneration returns whether a write may end a generation. Since Go 1.26 this is a mark, written alone. Before, the last
// batch has strings, but earlier batches may have some too.
func (w *writer) endsGeneration(p []byte) bool {
	const batch, strings, mark = 1, 4, 52 // events of the format
	switch {
	case w.version == 0:
		if _, err := fmt.Sscanf(string(p), "go 1.%d trace", &w.version); err != nil {
			w.version = math.MaxInt // of an unknown Go
		}
		return false
	case w.version >= 26:
		return len(p) == 1 && p[0] == mark
	case len(p) == 0 || p[0] != batch:
		return false
	}
	at := 1
	for range 4 { // generation, thread, time, size
		_, n := binary.Uvarint(p[at:])
		at += max(n, 0)
	}
	return at < len(p) && p[at] == strings
}

func (w *writer) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stream = nil
}

// state returns the number of writes, whether one is running, and whether the trace may have ended with the last one. If it
// may not, the trace still runs, because trace.Stop() returns only after the last write.
func (w *writer) state() (writes uint64, isInside, mayBeOver bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writes, w.inside > 0, w.isAtEnd && w.inside == 0
}

// endTrace ends the writer's own trace. Between two generations it is unknown whether our trace still runs, or another one has
// replaced it. Then endTrace waits for a write; since Go 1.25 there is one at once. Before, a quiet program writes a
// generation in one go, and the next look is between two generations again: so any new write proves that our trace runs.
func (w *writer) endTrace() {
	before, isKnown := uint64(0), false
	for until := time.Now().Add(silentTime(godebugAtStart)); time.Now().Before(until); time.Sleep(time.Millisecond) {
		isTraced := hasTrace() // waits for a running trace.Stop()
		writes, _, mayBeOver := w.state()
		switch {
		case isTraced && (!mayBeOver || (isKnown && writes != before)):
			trace.Stop()
			return
		case !isTraced && mayBeOver:
			return
		}
		before, isKnown = writes, true
	}
}

// hasTrace returns whether any trace runs. Go's flight recorder does not count: a trace can begin beside it.
func hasTrace() bool {
	if !trace.IsEnabled() {
		return false
	}
	if trace.Start(io.Discard) != nil {
		return true
	}
	trace.Stop()
	return false
}

// --- the goroutine ---

const (
	endedByProgram = "the program ended the trace with a trace.Stop() of its own, perhaps after a trace.Start whose error it ignored"
	othersTrace    = endedByProgram + "; another trace runs now, and this one begins again after it"
)

func (a *Agent) isTraced() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.unasked == ""
}

// setUntraced stores why nothing is traced ("": it is), and ends all waits for the trace.
func (a *Agent) setUntraced(why string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.setUntracedLocked(why)
}

func (a *Agent) setUntracedLocked(why string) {
	a.unasked = why
	if why != "" {
		a.endTraced(errors.New(why))
	} else if a.traced == nil || a.traced.Err() != nil {
		a.traced, a.endTraced = context.WithCancelCause(context.Background())
	}
}

// silentTime is the longest time without a write after which a trace is still ours: GODEBUG may make generations longer.
func silentTime(setting godebug) time.Duration {
	longest := silentLooks * watchTime
	for _, one := range strings.Split(string(setting), ",") {
		if value, is := strings.CutPrefix(one, "traceadvanceperiod="); is {
			if ns, err := strconv.ParseInt(value, 10, 64); err == nil && ns > 0 && ns < int64(pauseMax)*1000 {
				longest = max(longest, time.Duration(ns)*2+watchTime)
			}
		}
	}
	return longest
}

// watch checks once a second whether our trace still runs.
type watch struct {
	agent  *Agent
	looks  int // after this many looks without a write the trace is not ours
	writes uint64
	silent int // looks without a write
	said   string

	isEnded bool
	begun   time.Time // when the present trace was restarted
	pause   time.Duration
	due     time.Time // when to restart
}

func newWatch(a *Agent) *watch {
	return &watch{agent: a, looks: int(silentTime(godebugAtStart) / watchTime)}
}

func (w *watch) run() {
	ticker := time.NewTicker(watchTime)
	defer ticker.Stop()
	for {
		select {
		case <-w.agent.live.Done():
			return
		case now := <-ticker.C:
			w.look(now)
		}
	}
}

func (w *watch) look(now time.Time) {
	a := w.agent
	writes, isInside, mayBeOver := a.writer.state() // only this goroutine changes the writer
	isSilent := writes == w.writes && !isInside
	w.writes = writes
	if w.silent++; !isSilent {
		w.silent = 0
	}
	switch {
	case a.live.Err() != nil: // Stop ended the trace
	case w.isEnded && !isSilent && trace.IsEnabled():
		a.writer.endTrace() // writes still arrive: our trace, taken to be over, runs
	case w.isEnded:
		w.begin(now)
	case w.isOver(mayBeOver) && a.endStream():
		w.isEnded = true
		if w.pause = pauseAfter(w.begun, now, w.pause); w.pause > 0 {
			w.due = now.Add(w.pause)
			w.say(fmt.Sprintf("%s; it begins again after a pause of %v", endedByProgram, w.pause))
			return
		}
		w.begin(now)
	}
}

// isOver returns whether our trace has ended. A running trace that does not reach us belongs to another, or to a flight recorder.
func (w *watch) isOver(mayBeOver bool) bool {
	if trace.IsEnabled() {
		return mayBeOver && w.silent >= w.looks
	}
	return mayBeOver || w.silent > 0
}

// begin restarts the trace if it is due and no other trace runs.
func (w *watch) begin(now time.Time) {
	if now.Before(w.due) {
		return
	}
	what, former := w.agent.again()
	switch {
	case former != nil:
		if w.pause == 0 {
			warn(w.agent.config, what)
		}
		w.agent.finish(former)
		w.writes, w.silent, w.said, w.isEnded, w.begun = 0, 0, "", false, now
	case what != "":
		w.say(what)
		if what != othersTrace {
			w.due = now.Add(formerTime)
		}
	}
}

// say reports why nothing is traced, each reason once.
func (w *watch) say(why string) {
	w.agent.setUntraced(why)
	if why != w.said {
		warn(w.agent.config, why)
		w.said = why
	}
}

// pauseAfter returns how long to wait before the restart, because a program may end each trace.
func pauseAfter(begun, ended time.Time, before time.Duration) time.Duration {
	if begun.IsZero() || ended.Sub(begun) >= shortTime {
		return 0
	}
	return min(max(2*before, pauseMin), pauseMax)
}

// endStream ends the stream of an ended trace, after a running Snap. It returns false after Stop.
func (a *Agent) endStream() bool {
	a.setUntraced(endedByProgram)
	a.stopping.Lock()
	defer a.stopping.Unlock()
	if a.stream == nil {
		return false
	}
	a.writer.end() // runtime/trace has ended it
	a.stream.finish()
	return true
}

// again restarts the trace, unless another trace runs. It returns a message, and the stream to be finished.
// trace.Start may wait for another's trace.Stop, so it is called without the lock.
func (a *Agent) again() (what string, former *stream) {
	if hasTrace() {
		return othersTrace, nil
	}
	stream, err := open(a.config)
	if err != nil {
		return endedByProgram + ", and it cannot begin again: " + err.Error(), nil
	}
	next := &writer{stream: stream, tee: a.config.Tee}
	if trace.Start(next) != nil {
		return othersTrace, nil
	}
	if !a.stopping.TryLock() { // Stop; or Snap, for a moment
		next.endTrace()
		next.end()
		return "", nil
	}
	defer a.stopping.Unlock()
	return endedByProgram + ": begun again as another stream", a.replace(stream, next)
}

func (a *Agent) replace(stream *stream, next *writer) (former *stream) {
	stream.run()
	a.mu.Lock()
	defer a.mu.Unlock()
	former, a.former, a.stream, a.writer = a.stream, a.stream, stream, next
	a.finished = make(chan struct{})
	a.past.Restarts++
	a.setUntracedLocked("")
	return former
}

func (a *Agent) finish(former *stream) {
	ctx, cancel := context.WithTimeout(a.patient, formerTime)
	defer cancel()
	wait(ctx, former)
	a.mu.Lock()
	a.past = former.status().after(a.past)
	a.former = nil
	close(a.finished)
	a.mu.Unlock()
	former.close(goodbye)
}

// waitForFormer waits until the former stream has sent everything, or ctx ends.
func (a *Agent) waitForFormer(ctx context.Context) {
	a.mu.Lock()
	finished := a.finished
	a.mu.Unlock()
	if finished != nil {
		select {
		case <-finished:
		case <-ctx.Done():
		}
	}
	a.endPatience()
}

// status returns the sum over all streams.
func (a *Agent) status() Status {
	past := a.past
	if a.former != nil {
		past = a.former.status().after(past)
	}
	return a.stream.status().after(past)
}

func (s Status) after(past Status) Status {
	for _, of := range []struct {
		sum   *uint64
		count uint64
	}{
		{&s.ProducedBatches, past.ProducedBatches}, {&s.ProducedBytes, past.ProducedBytes},
		{&s.AckedBatches, past.AckedBatches}, {&s.AckedBytes, past.AckedBytes}, {&s.AckedGenerations, past.AckedGenerations},
		{&s.LostBatches, past.LostBatches}, {&s.LostBytes, past.LostBytes}, {&s.LostGenerations, past.LostGenerations},
		{&s.Connects, past.Connects}, {&s.Reconnects, past.Reconnects}, {&s.ResentBatches, past.ResentBatches},
		{&s.BegunAnew, past.BegunAnew}, {&s.Restarts, past.Restarts}, {&s.DiskFaults, past.DiskFaults},
		{&s.OldStreamsSent, past.OldStreamsSent}, {&s.ForgottenGenerations, past.ForgottenGenerations}, {&s.Snaps, past.Snaps},
	} {
		*of.sum += of.count
	}
	s.SpoolBytesPeak = max(s.SpoolBytesPeak, past.SpoolBytesPeak)
	if s.LastLoss == "" {
		s.LastLoss = past.LastLoss
	}
	return s
}

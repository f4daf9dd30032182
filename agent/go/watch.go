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

// A program whose trace.Start fails while the agent traces may still call trace.Stop(), which ends the agent's trace without a
// word. The watch notices that, and begins again: with another header, so as another stream.

const (
	watchTime   = time.Second
	silentLooks = 3                // a generation is 2.1 seconds at most: so long without a write, and the trace is not ours
	formerTime  = 10 * time.Second // for what the ended trace has left to be acknowledged
	shortTime   = time.Minute      // a trace that the program ends sooner begins again with a pause
	pauseMin    = 10 * time.Second
	pauseMax    = 10 * time.Minute
)

// writer is what runtime/trace writes one trace to: one call a batch.
type writer struct {
	tee io.Writer

	mu      sync.Mutex
	stream  *stream // nil: no more
	inside  int     // calls that have not returned: Tee may hold them up
	writes  uint64
	version int  // of the trace, 26 for Go 1.26; 0 before its header
	isAtEnd bool // a generation ended with the newest write, as it does with the last one of a trace
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

// endsGeneration: from Go 1.26 on a mark does, by itself. Before, the strings come last; some may come earlier.
func (w *writer) endsGeneration(p []byte) bool {
	const batch, strings, mark = 1, 4, 52 // events of the format
	switch {
	case w.version == 0:
		if _, err := fmt.Sscanf(string(p), "go 1.%d trace", &w.version); err != nil {
			w.version = math.MaxInt // of no Go that is known
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

// end: no write reaches the stream any more.
func (w *writer) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stream = nil
}

// state says how much was written, whether something is just now, and whether the trace may have ended with that: else
// it has not, because trace.Stop() returns only after the last write.
func (w *writer) state() (writes uint64, isInside, mayBeOver bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writes, w.inside > 0, w.isAtEnd && w.inside == 0
}

// endTrace ends the writer's own trace. Between two generations it is not known whether that still runs, or another has
// taken its place: then a write has to come, which it does at once from Go 1.25 on. Before, a program that does little writes
// a generation in one go, and the next look finds it between two again: so what counts is that something came.
func (w *writer) endTrace() {
	before, isKnown := uint64(0), false
	for until := time.Now().Add(silentTime(godebugAtStart)); time.Now().Before(until); time.Sleep(time.Millisecond) {
		isTraced := hasTrace() // waits for a trace.Stop() that has begun
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

// hasTrace says whether a trace of anybody's runs. A flight recorder, beside which one can begin, is none.
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

// setUntraced says why nothing is traced, and ends what waits for the trace; "": it is traced.
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

// silentTime is how long no write comes of a trace that is ours: GODEBUG may make the generations longer.
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

// watch looks once a second whether the trace is still ours.
type watch struct {
	agent  *Agent
	looks  int // so many without a write, and the trace is not ours
	writes uint64
	silent int // looks
	said   string

	isEnded bool
	begun   time.Time // again
	pause   time.Duration
	due     time.Time // when it begins again
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
	writes, isInside, mayBeOver := a.writer.state() // the writer is changed by this goroutine alone
	isSilent := writes == w.writes && !isInside
	w.writes = writes
	if w.silent++; !isSilent {
		w.silent = 0
	}
	switch {
	case a.live.Err() != nil: // it was Stop
	case w.isEnded && !isSilent && trace.IsEnabled():
		a.writer.endTrace() // it was ours after all
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

// isOver: without any trace ours was ended. With one that does not reach us it may be another's, or a flight recorder goes on.
func (w *watch) isOver(mayBeOver bool) bool {
	if trace.IsEnabled() {
		return mayBeOver && w.silent >= w.looks
	}
	return mayBeOver || w.silent > 0
}

// begin begins another trace once it is due, and none runs.
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

// say says why nothing is traced.
func (w *watch) say(why string) {
	w.agent.setUntraced(why)
	if why != w.said {
		warn(w.agent.config, why)
		w.said = why
	}
}

// pauseAfter answers how long to wait before another trace begins: a program may end each.
func pauseAfter(begun, ended time.Time, before time.Duration) time.Duration {
	if begun.IsZero() || ended.Sub(begun) >= shortTime {
		return 0
	}
	return min(max(2*before, pauseMin), pauseMax)
}

// endStream ends the stream of a trace that has ended, once Snap has ended, too. After Stop there is none.
func (a *Agent) endStream() bool {
	a.setUntraced(endedByProgram)
	a.stopping.Lock()
	defer a.stopping.Unlock()
	if a.stream == nil {
		return false
	}
	a.writer.end() // runtime/trace is done with it
	a.stream.finish()
	return true
}

// again begins another trace, if none runs. It answers what is to be said of that, and the stream that is to be finished.
// No stream is opened beside another's trace. trace.Start may wait for another's trace.Stop, so it is called without the lock.
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

// finish sends what the former stream still has.
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

// waitForFormer waits until the former stream has sent what it has, or ctx ends.
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

// status is that of all the streams.
func (a *Agent) status() Status {
	past := a.past
	if a.former != nil {
		past = a.former.status().after(past)
	}
	return a.stream.status().after(past)
}

// after adds the counters of the streams before.
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

// SPDX-License-Identifier: Apache-2.0

package traceagent

import (
	"context"
	"errors"
	"io"
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

	mu     sync.Mutex
	stream *stream // nil: no more
	inside int     // calls that have not returned: Tee may hold them up
	writes uint64
}

func (w *writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	w.writes++
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

// end: no write reaches the stream any more.
func (w *writer) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stream = nil
}

// count says how much was written, and whether something is just now.
func (w *writer) count() (writes uint64, isInside bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writes, w.inside > 0
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

// watch looks once a second whether the trace is still ours. Without any it was ended. With one that does not reach us it may
// be another's, or a flight recorder goes on: only runtime/trace knows, which refuses a second trace.
func (a *Agent) watch() {
	ticker := time.NewTicker(watchTime)
	defer ticker.Stop()
	looks := int(silentTime(godebugAtStart) / watchTime)
	writes, silent, said := uint64(0), 0, ""
	isEnded, begun, pause := false, time.Time{}, time.Duration(0)
	for due := (time.Time{}); ; {
		select {
		case <-a.live.Done():
			return
		case <-ticker.C:
		}
		silent++
		if now, isInside := a.writer.count(); now != writes || isInside { // the writer is changed by this goroutine alone
			writes, silent = now, 0
		}
		a.looked.Store(writes)
		isEnabled := trace.IsEnabled()
		if isEnabled && silent < looks {
			if silent == 0 && !isEnded { // else it is not known
				a.setUntraced("")
				said = ""
			}
			continue
		}
		if a.live.Err() != nil { // it was Stop
			return
		}
		if !isEnded && !isEnabled {
			isEnded = true
			if pause = pauseAfter(begun, time.Now(), pause); pause > 0 {
				due = time.Now().Add(pause)
			}
		}
		if a.isTraced() {
			a.setUntraced(endedByProgram) // which ends a Snap; no other begins
		}
		if time.Now().Before(due) {
			continue
		}
		what, former := a.again()
		if what != "" && what != said && (former == nil || pause == 0) {
			warn(a.config, what)
			said = what
		}
		switch {
		case former != nil:
			a.finish(former)
			writes, silent, said, isEnded, begun = 0, 0, "", false, time.Now()
		case what != "" && what != othersTrace:
			due = time.Now().Add(formerTime)
		}
	}
}

// pauseAfter answers how long to wait before another trace begins: a program may end each.
func pauseAfter(begun, ended time.Time, before time.Duration) time.Duration {
	if begun.IsZero() || ended.Sub(begun) >= shortTime {
		return 0
	}
	return min(max(2*before, pauseMin), pauseMax)
}

// again begins another trace, if none runs. It answers what is to be said of that, and the stream that is to be finished.
func (a *Agent) again() (what string, former *stream) {
	if !a.stopping.TryLock() {
		return "", nil // Snap, which ends now, or Stop
	}
	a.stopping.Unlock()
	stream, err := open(a.config)
	if err != nil || stream == nil {
		what = endedByProgram + ", and it cannot begin again"
		if err != nil {
			what += ": " + err.Error()
		}
		a.setUntraced(what)
		return what, nil
	}
	next := &writer{stream: stream, tee: a.config.Tee}
	if trace.Start(next) != nil { // it may wait for another's trace.Stop, so without the lock
		stream.discard()
		a.setUntraced(othersTrace)
		return othersTrace, nil
	}
	a.stopping.Lock()
	defer a.stopping.Unlock()
	if a.stream == nil {
		trace.Stop()
		next.end()
		stream.discard()
		return "", nil
	}
	return endedByProgram + ": begun again as another stream", a.replace(stream, next)
}

func (a *Agent) replace(stream *stream, next *writer) (former *stream) {
	a.writer.end() // runtime/trace is done with it: it has begun another trace
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
	former.finish()
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

// SPDX-License-Identifier: Apache-2.0

package traceagent

import (
	"context"
	"io"
	"runtime/trace"
	"sync"
	"time"
)

// A program whose trace.Start fails while the agent traces may still call trace.Stop(), which ends the agent's trace without a
// word. The watch notices that, and begins again: with another header, so as another stream.

const (
	watchTime     = time.Second
	silentLooks   = 3                // a generation is 2.1 seconds at most: so long without a write, and the trace is not ours
	formerTime    = 10 * time.Second // for what the ended trace has left to be acknowledged
	earlyBytesMax = 4 << 20
)

// writer is what runtime/trace writes one trace to: one call a batch.
type writer struct {
	tee io.Writer

	mu     sync.Mutex
	stream *stream // nil: not yet, or no more
	early  [][]byte
	bytes  int // in early
	ended  bool
	writes uint64
}

func (w *writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	w.writes++
	switch {
	case w.ended || len(p) == 0:
	case w.stream != nil:
		w.stream.write(p)
	case w.bytes < earlyBytesMax:
		w.early = append(w.early, append([]byte(nil), p...))
		w.bytes += len(p)
	}
	w.mu.Unlock()
	if w.tee != nil {
		return w.tee.Write(p)
	}
	return len(p), nil
}

// begin hands a stream what was written so far, and all that follows.
func (w *writer) begin(s *stream) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.early {
		s.write(p)
	}
	w.stream, w.early = s, nil
}

// end: no write reaches the stream any more.
func (w *writer) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stream, w.early, w.ended = nil, nil, true
}

func (w *writer) count() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writes
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

func (a *Agent) setUntraced(why string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unasked = why
}

// watch looks once a second whether the trace is still ours. Without any it was ended. With one that does not reach us it may
// be another's, or a flight recorder goes on: only runtime/trace knows, which refuses a second trace.
func (a *Agent) watch() {
	ticker := time.NewTicker(watchTime)
	defer ticker.Stop()
	writes, silent, said := uint64(0), 0, ""
	for due := (time.Time{}); ; {
		select {
		case <-a.live.Done():
			return
		case <-ticker.C:
		}
		silent++
		if now := a.writer.count(); now != writes { // the writer is changed by this goroutine alone
			writes, silent = now, 0
		}
		if trace.IsEnabled() && silent < silentLooks {
			if silent == 0 { // else it is not known
				a.setUntraced("")
				said = ""
			}
			continue
		}
		if time.Now().Before(due) {
			continue
		}
		what, former := a.again()
		if what != "" && what != said {
			warn(a.config, what)
			said = what
		}
		switch {
		case former != nil:
			a.finish(former)
			writes, silent, said = 0, 0, ""
		case what != "" && what != othersTrace:
			due = time.Now().Add(formerTime)
		}
	}
}

// again begins another trace, if none runs. It answers what is to be said of that, and the stream that is to be finished.
func (a *Agent) again() (what string, former *stream) {
	if !a.stopping.TryLock() {
		return "", nil // Snap, which will end
	}
	if a.isTraced() {
		a.setUntraced(endedByProgram) // no other Snap begins
	}
	a.stopping.Unlock()
	next := &writer{tee: a.config.Tee}
	if trace.Start(next) != nil { // it may wait for another's trace.Stop, so without the lock
		a.setUntraced(othersTrace)
		return othersTrace, nil
	}
	a.stopping.Lock()
	defer a.stopping.Unlock()
	if a.stream == nil {
		trace.Stop()
		return "", nil
	}
	stream, err := open(a.config)
	if err != nil || stream == nil {
		trace.Stop()
		what = endedByProgram + ", and it cannot begin again"
		if err != nil {
			what += ": " + err.Error()
		}
		a.setUntraced(what)
		return what, nil
	}
	return endedByProgram + ": begun again as another stream", a.replace(stream, next)
}

func (a *Agent) replace(stream *stream, next *writer) (former *stream) {
	a.writer.end() // runtime/trace is done with it: it has begun another trace
	stream.run()
	next.begin(stream)
	a.mu.Lock()
	defer a.mu.Unlock()
	former, a.former, a.stream, a.writer = a.stream, a.stream, stream, next
	a.finished = make(chan struct{})
	a.past.Restarts++
	a.unasked = ""
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

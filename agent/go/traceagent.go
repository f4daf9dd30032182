// SPDX-License-Identifier: Apache-2.0

// Package traceagent streams this program's execution trace to a tracecollectd, live, over mutual TLS.
//
//	agent, err := traceagent.Start(traceagent.Config{
//		Server: "collector:7070", Certs: "/etc/shop/trace", Service: "shop",
//	})
//	...
//	agent.Stop(ctx) // ends the trace, waits until all of it is acknowledged or ctx ends
//
// The program never waits for the network: batches go into a bounded spool. What cannot be kept is dropped as
// whole generations, counted, and reported to the collector. With TRACEAGENT_DISABLE=1 in the environment Start
// does nothing and returns an Agent whose State is "off".
//
// The agent is written in Go and needs nothing but the standard library.
//
// A collector that cannot be reached, or that refuses the program, is reported with one line on stderr, or to
// Config.Logger.
package traceagent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"runtime/trace"
	"sync"
	"time"
)

// Config says where the trace goes and how much it may cost. Fields left zero take the C agent's
// defaults; Server, Certs, Service, Instance and SpoolDir may also come from TRACEAGENT_SERVER and so on.
type Config struct {
	Server   string // HOST:PORT, or @FILE: a collector's --ready-file
	Certs    string // folder with ca.pem, agent.pem and agent.key
	Service  string // what this program is: 1 to 64 of A-Z a-z 0-9 . _ : -
	Instance string // which one of them; default HOST:PID

	SpoolBytes         uint64 // memory for what is not acknowledged yet; default 16 MiB
	RateBytesPerSecond uint64 // cap on what is sent; default none

	// SpoolDir is a folder for what is not acknowledged yet, so that it outlives this program: the next one of the
	// same service and with the same folder sends it. Made if missing; no other user may write to it. Default none.
	SpoolDir      string
	SpoolDirBytes uint64 // what it may hold; default 4 times SpoolBytes

	// Record makes a flight recorder of it: so much of the trace, as far as it fits into SpoolBytes, stays in memory, and
	// nothing is sent before Snap or `tracectl snap` asks for it. Not together with SpoolDir. Default: all is sent.
	Record time.Duration

	// AllowFaultyGo traces a program of a version of Go that is known to end traced programs, too. Else Start answers an Agent
	// that is off, with the reason in its Status. TRACEAGENT_ALLOW_FAULTY_GO=1 in the environment does the same.
	AllowFaultyGo bool

	// Tee gets the trace as well, if set. After a trace.Stop() of the program itself a second trace follows the first.
	Tee io.Writer

	// Logger gets a line when the connection to the collector is made, is lost or is refused, with the reason, and when
	// trace is lost. Default: a line on stderr when the collector cannot be reached or refuses. The same reason is
	// not repeated, and after a few lines there is one in ten seconds at most.
	Logger *slog.Logger
}

// Status is what the agent has done since Start.
type Status struct {
	State                                      string // connecting, streaming, waiting, refused, closed, off
	ProducedBatches, ProducedBytes             uint64
	AckedBatches, AckedBytes, AckedGenerations uint64
	LostBatches, LostBytes, LostGenerations    uint64
	SpoolBytes, SpoolBytesPeak                 uint64
	Connects, Reconnects, ResentBatches        uint64
	BegunAnew                                  uint64 // times the collector no longer had what it had acknowledged
	Restarts                                   uint64 // times a trace.Stop() of the program itself ended the trace, and another stream began
	DiskBytes, DiskFaults                      uint64 // in SpoolDir, of this trace; how often it could not be used
	OldStreams, OldStreamsSent                 uint64 // that earlier programs left there: still to be sent, sent by now
	RecordedGenerations, RecordedBytes         uint64 // of a recorder: kept in memory now
	ForgottenGenerations, Snaps                uint64 // let go unsent; how often it was asked
	Stream                                     string // id under which the collector knows the trace
	LastError                                  string // why nothing is traced, or acknowledgements do not come: unreachable, refused, a full disk, a limit; "" while they come
	LastLoss                                   string // why the newest of LostGenerations was lost, and the setting to change
}

// Agent is a running trace. Its methods may be called from any goroutine, and on a nil Agent, which Start answers with
// an error: it is an Agent that is off, so that a deferred Stop needs no check.
type Agent struct {
	config      Config
	live        context.Context // until Stop: it ends what waits in Snap
	endLive     context.CancelFunc
	patient     context.Context // until Stop has waited: it ends what the former stream waits for
	endPatience context.CancelFunc
	stopping    sync.Mutex // held by Stop, by Snap, and while the trace is begun again
	writer      *writer    // the newest; changed under stopping and mu

	mu       sync.Mutex    // for what follows
	stream   *stream       // nil: off, or stopped
	former   *stream       // still sends what a trace.Stop() of the program has ended
	finished chan struct{} // closed once it has; nil: there was none
	past     Status        // counters of the streams before
	last     Status        // once stream is nil
	unasked  string        // why nothing is traced though it should be; "": it is traced

	traced    context.Context // ends with the trace
	endTraced context.CancelCauseFunc
}

const (
	step    = 50 * time.Millisecond  // how often Stop looks whether ctx has ended while it waits for the collector
	goodbye = 100 * time.Millisecond // how long Stop waits for the thread's good-bye after everything is acknowledged or given up
	ending  = time.Second            // how long Stop waits for the runtime's last generation, though ctx has ended
)

// ErrTraced is what Start returns while a trace is being written: by an Agent, by trace.Start, or by net/http/pprof.
var ErrTraced = errors.New("the program is being traced already")

var (
	errOff       = errors.New("traceagent: the trace is off")
	errNotAcked  = errors.New("not all was acknowledged")
	errOnlyKept  = errors.New("not all was acknowledged, the rest is in SpoolDir")
	errStopsNow  = errors.New("the agent stops")
	errNoRecords = errors.New("traceagent: not a flight recorder: Config.Record is not set")
)

// Start opens a stream to the collector and begins to trace into it. A collector that is not there is
// no error: the agent keeps trying. Start fails if the configuration or a certificate is wrong, and with
// ErrTraced if the program is being traced already. A version of Go that is known to end traced programs is no error, but
// not traced: see Config.AllowFaultyGo.
func Start(config Config) (*Agent, error) {
	agent, err := start(config)
	if err == nil && agent.stream != nil {
		go newWatch(agent).run()
	}
	return agent, err
}

func start(config Config) (*Agent, error) {
	agent := &Agent{config: config, last: Status{State: "off"}}
	agent.live, agent.endLive = context.WithCancel(context.Background())
	agent.patient, agent.endPatience = context.WithCancel(context.Background())
	isAllowed := config.AllowFaultyGo || os.Getenv("TRACEAGENT_ALLOW_FAULTY_GO") == "1"
	refusal, warnings := faultsHere(runtime.Version(), runtime.GOARCH, godebugAtStart, isAllowed)
	switch {
	case isDisabled():
		agent.last.LastError = "TRACEAGENT_DISABLE=1 in the environment turns the agent off"
		return agent, nil
	case refusal != "":
		agent.last.LastError = refusal
		warn(config, refusal)
		return agent, nil
	}
	for _, text := range warnings {
		warn(config, text)
	}
	agent.setUntraced("")
	if hasTrace() { // then nothing is opened
		return nil, fmt.Errorf("traceagent: %w", ErrTraced)
	}
	stream, err := open(config)
	if err != nil {
		return nil, fmt.Errorf("traceagent: %w", err)
	}
	agent.stream, agent.writer = stream, &writer{stream: stream, tee: config.Tee}
	if err := trace.Start(agent.writer); err != nil {
		return nil, fmt.Errorf("traceagent: %w", ErrTraced)
	}
	stream.run()
	return agent, nil
}

func isDisabled() bool { return os.Getenv("TRACEAGENT_DISABLE") == "1" }

// Stop ends the trace and waits until the collector has acknowledged all of it or ctx ends; what is
// not acknowledged by then is given up, or with a SpoolDir left to the next program. Stopping twice does no harm.
//
// Stop ends the agent's own trace. Where the program has ended that with a trace.Stop() of its own and begun another, Stop leaves
// the other one alone. runtime/trace cannot be asked whose trace runs: the agent looks what it has written last, and in the
// moment between this look and the agent's trace.Stop() the program's two calls would go unseen. With Go 1.24 and before that
// may be a millisecond. If another trace has just taken the place of the agent's, Stop takes 3 s, or until a second after
// ctx is done.
func (a *Agent) Stop(ctx context.Context) error {
	if a == nil {
		return nil
	}
	a.endLive()
	a.stopping.Lock()
	defer a.stopping.Unlock()
	stream := a.stream
	if stream == nil {
		return nil
	}
	if a.isTraced() {
		endTrace(ctx, a.writer)
	}
	a.writer.end()
	stream.finish()
	err := wait(ctx, stream)
	a.waitForFormer(ctx)

	a.mu.Lock()
	a.last = a.status()
	a.last.State = "closed"
	a.stream = nil
	a.mu.Unlock()
	stream.close(goodbye) // unlocked: a logger may ask for the status
	if err != nil && a.last.LastError != "" {
		err = fmt.Errorf("%w (%s)", err, a.last.LastError)
	}
	return err
}

// endTrace: the runtime writes the last generation, and Tee may hold it up.
func endTrace(ctx context.Context, of *writer) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		of.endTrace()
	}()
	select {
	case <-ended:
		return
	case <-ctx.Done():
	}
	select {
	case <-ended:
	case <-time.After(ending):
	}
}

// Snap sends the newest part of what a recorder keeps, 0: all of it, and waits until the collector has acknowledged it
// or ctx ends; Stop ends it, too. The trace is cut where the runtime ends a generation: up to two seconds pass.
func (a *Agent) Snap(ctx context.Context, last time.Duration) error {
	if a == nil {
		return errOff
	}
	a.stopping.Lock()
	defer a.stopping.Unlock()
	a.mu.Lock()
	traced, why := a.traced, a.unasked
	a.mu.Unlock()
	switch {
	case a.stream == nil:
		return errOff
	case why != "":
		return fmt.Errorf("%w: %s", errOff, why)
	}
	if err := a.stream.snap(last); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(a.live, func() { cancel(errStopsNow) })()
	defer context.AfterFunc(traced, func() { cancel(context.Cause(traced)) })()
	return wait(ctx, a.stream)
}

// Status tells how the stream is doing; after Stop, how it ended.
func (a *Agent) Status() Status {
	if a == nil {
		return Status{State: "off"}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stream == nil {
		return a.last
	}
	status := a.status()
	if a.unasked != "" {
		status.State, status.LastError = "off", a.unasked
	}
	return status
}

func wait(ctx context.Context, stream *stream) error {
	for {
		err := stream.sync(step)
		if err != errNotAcked && err != errOnlyKept {
			return err
		}
		if ended := context.Cause(ctx); ended != nil {
			return fmt.Errorf("traceagent: %w: %w", err, ended)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

// Package traceagent streams this program's execution trace to a tracecollectd, live, over mutual TLS.
//
//	agent, err := traceagent.Start(traceagent.Config{
//		Server: "collector:7070", Certs: "/etc/shop/trace", Service: "shop",
//	})
//	...
//	agent.Stop(ctx) // ends the trace, waits until all of it is acknowledged or ctx ends
//
// The program never waits for the network: batches are stored in a bounded spool. If the spool is full, whole generations are
// dropped, counted, and reported to the collector. With TRACEAGENT_DISABLE=1 in the environment Start
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

// Config is the destination of the trace and its limits. Zero fields get the C agent's
// defaults; Server, Certs, Service, Instance and SpoolDir may also be set in the environment (TRACEAGENT_SERVER and so on).
type Config struct {
	Server   string // HOST:PORT, or @FILE: a collector's --ready-file
	Certs    string // folder with ca.pem, agent.pem and agent.key, or ca.crt, tls.crt and tls.key
	Service  string // the program's name: 1 to 64 of A-Z a-z 0-9 . _ : -
	Instance string // one process of the service; default HOST:PID

	SpoolBytes         uint64 // memory for records that are not acknowledged yet; default 16 MiB
	RateBytesPerSecond uint64 // cap on the sending rate; default none

	// SpoolDir is a folder for records that are not acknowledged yet. They outlive this program: the next program of the
	// same service with the same folder sends them. Created if missing; no other user may write to it. Default none.
	SpoolDir      string
	SpoolDirBytes uint64 // limit of SpoolDir; default 4 times SpoolBytes

	// Record turns the agent into a flight recorder: this much of the newest trace stays in memory, as far as it fits into
	// SpoolBytes, and is sent only after Snap or `tracectl snap`. Not together with SpoolDir. Default: all is sent.
	Record time.Duration

	// AllowFaultyGo also traces with a version of Go that is known to end traced programs. Without it Start returns an Agent
	// that is off, with the reason in its Status. TRACEAGENT_ALLOW_FAULTY_GO=1 in the environment does the same.
	AllowFaultyGo bool

	// Tee also receives the trace, if set. If the program itself calls trace.Stop(), a second trace follows the first.
	Tee io.Writer

	// Logger receives a line, with the reason, when the connection to the collector is made, lost or refused, and when
	// parts of the trace are lost. Default: a line on stderr if the collector cannot be reached or refuses. A reason is
	// not repeated, and after a few lines there is at most one in ten seconds.
	Logger *slog.Logger
}

// Status has the agent's state and its counters since Start.
type Status struct {
	State                                      string // connecting, streaming, waiting, refused, closed, off
	ProducedBatches, ProducedBytes             uint64
	AckedBatches, AckedBytes, AckedGenerations uint64
	LostBatches, LostBytes, LostGenerations    uint64
	SpoolBytes, SpoolBytesPeak                 uint64
	Connects, Reconnects, ResentBatches        uint64
	BegunAnew                                  uint64 // how often the collector had lost records that it had acknowledged
	Restarts                                   uint64 // how often a trace.Stop() of the program itself ended the trace, and another stream began
	DiskBytes, DiskFaults                      uint64 // this trace's bytes in SpoolDir; how often SpoolDir could not be used
	OldStreams, OldStreamsSent                 uint64 // streams of earlier programs in SpoolDir: still to be sent; already sent
	RecordedGenerations, RecordedBytes         uint64 // flight recorder: held in memory now
	ForgottenGenerations, Snaps                uint64 // dropped unsent; number of snaps
	Stream                                     string // id of the trace at the collector
	LastError                                  string // why nothing is traced or acknowledged (unreachable, refused, a full disk, a limit); "": no error
	LastLoss                                   string // why the newest of LostGenerations was lost, and the setting to change
}

// Agent is a running trace. Its methods may be called from any goroutine. A nil Agent, which Start returns with an error,
// behaves like an Agent that is off, so a deferred Stop needs no check.
type Agent struct {
	config      Config
	live        context.Context // done at the begin of Stop: ends a waiting Snap
	endLive     context.CancelFunc
	patient     context.Context // done after Stop has waited: ends the former stream's wait
	endPatience context.CancelFunc
	stopping    sync.Mutex // held by Stop, by Snap, and while the trace is restarted
	writer      *writer    // the newest; changed under stopping and mu

	mu       sync.Mutex    // protects the fields below
	stream   *stream       // nil: off, or stopped
	former   *stream       // still sends the trace that the program ended with trace.Stop()
	finished chan struct{} // closed once former has sent all; nil: there was no former
	past     Status        // counters of earlier streams
	last     Status        // valid once stream is nil
	unasked  string        // why nothing is traced although it should be; "": the program is traced

	traced    context.Context // ends with the trace
	endTraced context.CancelCauseFunc
}

const (
	step    = 50 * time.Millisecond  // how often Stop checks ctx while it waits for the collector
	goodbye = 100 * time.Millisecond // how long Stop waits for the connection to close after everything is acknowledged or given up
	ending  = time.Second            // how long Stop waits for the runtime's last generation after ctx has ended
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

// Start opens a stream to the collector and begins to trace into it. An unreachable collector is
// not an error: the agent keeps trying. Start fails if the configuration or a certificate is wrong, and with
// ErrTraced if the program is being traced already. With a version of Go that is known to end traced programs Start returns
// an Agent that is off: see Config.AllowFaultyGo.
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
	if hasTrace() { // before anything is opened
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

// Stop ends the trace and waits until the collector has acknowledged all of it or ctx ends. The rest is given up, or with a
// SpoolDir left to the next program. Stopping twice is harmless.
//
// Stop ends only the agent's own trace. If the program has ended that with its own trace.Stop() and begun another trace, the
// other trace continues. runtime/trace does not say whose trace runs: the agent checks the last write of its own trace, and
// misses the program's two calls if they are made between this check and the agent's trace.Stop(). With Go 1.24 and before
// this gap may be a millisecond. If another trace has just replaced the agent's, Stop takes 3 s, or until a second after ctx
// is done.
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

// endTrace ends the trace and waits at most a second longer than ctx: the runtime writes the last generation, and Tee may block.
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

// Snap sends the newest part of a flight recorder's trace (last 0: all), and waits until the collector has acknowledged
// this part, or until ctx ends or Stop is called. The part ends with a generation of the runtime: that takes up to two seconds.
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

// Status returns the state and counters of the stream; after Stop, the last ones.
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

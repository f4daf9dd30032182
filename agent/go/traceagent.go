// SPDX-License-Identifier: Apache-2.0

// Package traceagent streams this program's execution trace to a tracecollectd, live, over mutual TLS.
//
//	agent, err := traceagent.Start(traceagent.Config{
//		Server: "collector:7070", Certs: "/etc/shop/trace", Service: "shop",
//	})
//	...
//	agent.Stop(ctx) // ends the trace, waits until all of it is acknowledged or ctx ends
//
// It is a thin layer over libtraceagent, found with pkg-config. The program never waits for the
// network: batches go into a bounded spool, one cgo call each, and what cannot be kept is dropped as
// whole generations and told to the collector. With TRACEAGENT_DISABLE=1 in the environment Start does
// nothing and answers an Agent whose State is "off".
package traceagent

/*
#cgo pkg-config: traceagent
#include <stdlib.h>
#include <traceagent.h>
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/trace"
	"sync"
	"time"
	"unsafe"
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
	// same service and with the same folder sends it. Made if missing; nobody else may write to it. Default none.
	SpoolDir      string
	SpoolDirBytes uint64 // what it may hold; default 4 times SpoolBytes

	// Record makes a flight recorder of it: so much of the trace, as far as it fits into SpoolBytes, stays in memory, and
	// nothing is sent before Snap or `tracectl snap` asks for it. Not together with SpoolDir. Default: all is sent.
	Record time.Duration

	Tee io.Writer // if set, gets the trace as well
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
	DiskBytes, DiskFaults                      uint64 // in SpoolDir, of this trace; how often it could not be used
	OldStreams, OldStreamsSent                 uint64 // that earlier programs left there: still to be sent, sent by now
	RecordedGenerations, RecordedBytes         uint64 // of a recorder: kept in memory now
	ForgottenGenerations, Snaps                uint64 // let go unsent; how often it was asked
	Stream                                     string // id under which the collector knows the trace
	LastError                                  string // of the last refusal or lost connection
	LastLoss                                   string // why the newest of LostGenerations was lost, and what to change
}

// Agent is a running trace. Its methods may be called from any goroutine, and on a nil Agent, which Start answers with
// an error: it is an Agent that is off, so that a deferred Stop needs no check.
type Agent struct {
	stopping sync.Mutex    // held by Stop
	mu       sync.Mutex    // of stream and last
	stream   *C.ta_forward // nil: off, or stopped
	last     Status        // once stream is nil
	tee      io.Writer
}

// How often Stop looks whether ctx has ended while it waits for the collector.
const step = 50 * time.Millisecond

// How long Stop waits for the thread's good-bye after everything is acknowledged or given up.
const goodbye = 100 * time.Millisecond

var errOff = errors.New("traceagent: the trace is off")

var states = map[C.enum_ta_state]string{
	C.TA_STATE_CONNECTING: "connecting",
	C.TA_STATE_STREAMING:  "streaming",
	C.TA_STATE_WAITING:    "waiting",
	C.TA_STATE_REFUSED:    "refused",
	C.TA_STATE_CLOSED:     "closed",
	C.TA_STATE_OFF:        "off",
}

// Start opens a stream to the collector and begins to trace into it. A collector that is not there is
// no error: the agent keeps trying. Start fails if the configuration or a certificate is wrong, or if
// the program is being traced already.
func Start(config Config) (*Agent, error) {
	stream, err := open(config)
	if err != nil {
		return nil, err
	}
	agent := &Agent{stream: stream, tee: config.Tee, last: Status{State: "off"}}
	if stream == nil {
		return agent, nil
	}
	if err := trace.Start((*writer)(agent)); err != nil {
		C.ta_forward_close(stream, 0)
		return nil, fmt.Errorf("traceagent: %w", err)
	}
	return agent, nil
}

// Stop ends the trace and waits until the collector has acknowledged all of it or ctx ends; what is
// not acknowledged by then is given up, or with a SpoolDir left to the next program. Stopping twice does no harm.
func (a *Agent) Stop(ctx context.Context) error {
	if a == nil {
		return nil
	}
	a.stopping.Lock()
	defer a.stopping.Unlock()
	stream := a.stream
	if stream == nil {
		return nil
	}
	trace.Stop() // writes the last generation
	C.ta_forward_finish(stream)
	err := wait(ctx, stream)

	a.mu.Lock()
	defer a.mu.Unlock()
	a.last = read(stream)
	a.last.State = "closed"
	a.stream = nil
	C.ta_forward_close(stream, C.int64_t(goodbye.Milliseconds()))
	if err != nil && a.last.LastError != "" {
		err = fmt.Errorf("%w (%s)", err, a.last.LastError)
	}
	return err
}

// Snap sends the newest part of what a recorder keeps, 0: all of it, and waits until the collector has acknowledged it
// or ctx ends. The trace is cut where the runtime ends a generation: up to two seconds pass.
func (a *Agent) Snap(ctx context.Context, last time.Duration) error {
	if a == nil {
		return errOff
	}
	a.stopping.Lock()
	defer a.stopping.Unlock()
	if a.stream == nil {
		return errOff
	}
	ms := C.uint64_t((last + time.Millisecond - 1) / time.Millisecond)
	if code := C.ta_forward_snap(a.stream, ms); code == C.TA_E_CONFIG {
		return errors.New("traceagent: not a flight recorder: Config.Record is not set")
	} else if code != C.TA_OK {
		return fault(code)
	}
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
	return read(a.stream)
}

// writer is what runtime/trace writes to: one call a batch.
type writer Agent

func (w *writer) Write(p []byte) (int, error) {
	if len(p) > 0 {
		C.ta_forward_write(w.stream, unsafe.Pointer(unsafe.SliceData(p)), C.size_t(len(p)))
	}
	if w.tee != nil {
		return w.tee.Write(p)
	}
	return len(p), nil
}

func open(config Config) (*C.ta_forward, error) {
	var kept []unsafe.Pointer
	defer func() {
		for _, p := range kept {
			C.free(p)
		}
	}()
	text := func(s string) *C.char {
		if s == "" {
			return nil
		}
		p := C.CString(s)
		kept = append(kept, unsafe.Pointer(p))
		return p
	}
	c := C.struct_ta_forward_config{
		server:       text(config.Server),
		certs:        text(config.Certs),
		service:      text(config.Service),
		instance:     text(config.Instance),
		spool_bytes:  C.uint64_t(config.SpoolBytes),
		rate_bytes_s: C.uint64_t(config.RateBytesPerSecond),

		spool_dir:       text(config.SpoolDir),
		spool_dir_bytes: C.uint64_t(config.SpoolDirBytes),
		record_ms:       C.uint64_t(config.Record / time.Millisecond),
	}
	c.size = C.size_t(unsafe.Sizeof(c))

	runtime.LockOSThread() // the words for an error belong to the thread
	defer runtime.UnlockOSThread()
	var stream *C.ta_forward
	switch code := C.ta_forward_open(&c, &stream); code {
	case C.TA_OK, C.TA_E_OFF:
		return stream, nil
	default:
		return nil, fault(code)
	}
}

func fault(code C.int) error { return errors.New("traceagent: " + C.GoString(C.ta_strerror(code))) }

func wait(ctx context.Context, stream *C.ta_forward) error {
	for {
		code := C.ta_forward_sync(stream, C.int64_t(step.Milliseconds()))
		if code == C.TA_OK {
			return nil
		}
		if code != C.TA_E_TIMEOUT && code != C.TA_E_KEPT {
			return fault(code)
		}
		if err := ctx.Err(); err != nil {
			if code == C.TA_E_KEPT {
				return fmt.Errorf("traceagent: not all was acknowledged, the rest is in SpoolDir: %w", err)
			}
			return fmt.Errorf("traceagent: not all was acknowledged: %w", err)
		}
	}
}

func read(stream *C.ta_forward) Status {
	var s C.struct_ta_forward_status
	s.size = C.size_t(unsafe.Sizeof(s))
	if C.ta_forward_status(stream, &s) != C.TA_OK {
		return Status{State: "off"}
	}
	return Status{
		State:            states[s.state],
		ProducedBatches:  uint64(s.produced_batches),
		ProducedBytes:    uint64(s.produced_bytes),
		AckedBatches:     uint64(s.acked_batches),
		AckedBytes:       uint64(s.acked_bytes),
		AckedGenerations: uint64(s.acked_generations),
		LostBatches:      uint64(s.lost_batches),
		LostBytes:        uint64(s.lost_bytes),
		LostGenerations:  uint64(s.lost_generations),
		SpoolBytes:       uint64(s.spool_bytes),
		SpoolBytesPeak:   uint64(s.spool_bytes_peak),
		Connects:         uint64(s.connects),
		Reconnects:       uint64(s.reconnects),
		ResentBatches:    uint64(s.resent_batches),
		BegunAnew:        uint64(s.begun_anew),
		DiskBytes:        uint64(s.disk_bytes),
		DiskFaults:       uint64(s.disk_faults),
		OldStreams:       uint64(s.old_streams),
		OldStreamsSent:   uint64(s.old_streams_sent),

		RecordedGenerations:  uint64(s.recorded_generations),
		RecordedBytes:        uint64(s.recorded_bytes),
		ForgottenGenerations: uint64(s.forgotten_generations),
		Snaps:                uint64(s.snaps),

		Stream:    C.GoString(&s.stream[0]),
		LastError: C.GoString(&s.last_error[0]),
		LastLoss:  C.GoString(&s.last_loss[0]),
	}
}

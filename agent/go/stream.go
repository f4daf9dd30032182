// SPDX-License-Identifier: Apache-2.0

package traceagent

import (
	"encoding/hex"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

const (
	agentVersion   = "0.1.0"
	linesWaiting   = 64
	loggerPatience = time.Second // how long close and warn wait for a logger
)

// stream sends one trace: a splitter, a spool and a client; with a SpoolDir also the spool's files, and the sender of
// streams of earlier programs.
type stream struct {
	split    splitter
	spool    *spool
	client   *client
	recovery *recovery // nil: no SpoolDir
	lines    chan line // of client and recovery, for the logger
	logger   *lines
	ended    chan struct{} // closed once client and recovery have ended
	logged   chan struct{} // closed once the last line is logged
	gen      uint64        // generation that is being written; 0: none
	lastGen  uint64
	hasHead  bool
	closed   atomic.Bool
}

func open(config Config) (*stream, error) {
	settings, err := config.settle()
	if err != nil {
		return nil, err
	}
	s := &stream{
		spool: newSpool(settings.spoolBytes), lines: make(chan line, linesWaiting),
		ended: make(chan struct{}), logged: make(chan struct{}),
	}
	s.spool.record(settings.record)
	if s.client, err = newClient(settings, s.spool, s.lines); err != nil {
		return nil, err
	}
	if settings.spoolDir != "" {
		s.client.disk = newDisk(settings, s.spool, s.client.log)
		s.recovery = newRecovery(settings, s.lines)
	}
	s.logger = newLines(config)
	return s, nil
}

func (s *stream) run() {
	if s.recovery != nil {
		go s.client.disk.run(s.client.ended)
		go s.recovery.run(s.client.disk.begun)
	}
	go s.client.run()
	go s.noteEnd()
	go s.followLines(s.logger)
}

func (s *stream) noteEnd() {
	<-s.client.ended
	if s.recovery != nil {
		<-s.recovery.ended
	}
	close(s.ended)
}

// followLines passes lines to the logger, so that the client never waits for one.
func (s *stream) followLines(lines *lines) {
	defer close(s.logged)
	defer lines.end()
	for {
		select {
		case said := <-s.lines:
			lines.take(said.level, said.text)
		case <-s.ended:
			for len(s.lines) > 0 {
				said := <-s.lines
				lines.take(said.level, said.text)
			}
			return
		}
	}
}

// --- the writer ---

func (s *stream) write(p []byte) {
	if !s.spool.isOverNow() {
		s.split.feed(p, s.take)
	}
}

func (s *stream) take(kind unitKind, gen uint64, unit []byte) {
	switch kind {
	case unitHeader:
		s.putHeader(unit)
	case unitBatch:
		s.enter(gen)
		s.spool.put(s.gen, unit)
	case unitEndMark:
		s.enterAny()
		s.spool.put(s.gen, unit)
		s.leave()
	case unitRaw:
		s.putRaw(unit)
	}
}

// putHeader stores the trace header. Without end marks (before Go 1.26) a generation's end is known only when the next one
// begins, so a snap waits for two ends.
func (s *stream) putHeader(p []byte) {
	s.hasHead = true
	if s.split.version < endMarkVersion {
		s.spool.recordEnds(2)
	}
	s.spool.putHeader(p)
}

// enter begins a generation. A batch whose number does not rise stays in the open generation; the collector judges it.
func (s *stream) enter(gen uint64) {
	if s.gen != 0 && gen <= s.gen {
		return
	}
	if s.gen != 0 {
		s.spool.end()
	}
	s.gen = max(gen, s.lastGen+1)
	s.lastGen = s.gen
}

func (s *stream) enterAny() {
	if s.gen == 0 {
		s.enter(s.lastGen + 1)
	}
}

func (s *stream) leave() {
	if s.gen != 0 {
		s.spool.end()
	}
	s.gen = 0
}

// putRaw stores bytes that are not a batch unchanged in the open generation. If there was no header yet, the first bytes are
// stored as the header.
func (s *stream) putRaw(p []byte) {
	if !s.hasHead {
		n := min(len(p), traceHeadBytes)
		s.putHeader(p[:n])
		p = p[n:]
	}
	for len(p) > 0 {
		n := min(len(p), batchBytesMax)
		s.enterAny()
		s.spool.put(s.gen, p[:n])
		p = p[n:]
	}
}

func (s *stream) finish() {
	if s.closed.Swap(true) {
		return
	}
	s.split.finish(s.take)
	s.leave()
	s.spool.finish()
}

// --- waiting and ending ---

// sync waits for acks. After errNotAcked or errOnlyKept the caller may try again.
func (s *stream) sync(patience time.Duration) error {
	s.client.hurry(1)
	defer s.client.hurry(-1)
	err := s.spool.wait(patience)
	if errors.Is(err, errOver) {
		return s.whyOver()
	}
	return err
}

func (s *stream) whyOver() error {
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	if s.client.isRefused {
		return fmt.Errorf("traceagent: the collector refused for good")
	}
	return errOff
}

func (s *stream) snap(last time.Duration) error { return s.spool.snap(last, 0) }

// close ends the goroutines within patience, byePatience and loggerPatience. Records not acknowledged by then are given up.
func (s *stream) close(patience time.Duration) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	if s.spool.isDone() {
		select {
		case <-s.client.ended:
		case <-timer.C:
		}
	}
	s.client.giveUp()
	if s.recovery != nil {
		s.recovery.giveUp()
	}
	select {
	case <-s.ended:
	case <-time.After(byePatience):
	}
	select {
	case <-s.logged:
	case <-time.After(loggerPatience):
	}
}

func (s *stream) status() Status {
	c := s.spool.count()
	status := Status{
		ProducedBatches: c.produced.batches, ProducedBytes: c.produced.bytes,
		AckedBatches: c.acked.batches, AckedBytes: c.acked.bytes, AckedGenerations: c.ackedGenerations,
		LostBatches: c.lost.batches, LostBytes: c.lost.bytes, LostGenerations: c.lostGenerations,
		SpoolBytes: c.spooled.bytes, SpoolBytesPeak: c.spooledPeak.bytes, ResentBatches: c.resentBatches,
	}
	status.RecordedGenerations, status.RecordedBytes, status.ForgottenGenerations, status.Snaps = s.spool.recorded()
	if s.recovery != nil {
		status.DiskBytes, status.DiskFaults = s.client.disk.bytes.Load(), s.client.disk.faults.Load()
		status.OldStreams, status.OldStreamsSent = s.recovery.reported()
	}
	if c.lostGenerations > 0 {
		status.LastLoss = lossTexts[c.lastLoss]
	}
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	status.State = s.client.state
	status.Connects = s.client.connects
	if s.client.welcomes > 0 {
		status.Reconnects = s.client.welcomes - 1
	}
	status.BegunAnew = s.client.begunAnew
	status.Stream = hex.EncodeToString(s.client.stream[:])
	status.LastError = s.client.lastError
	return status
}

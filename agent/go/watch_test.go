// SPDX-License-Identifier: Apache-2.0

package traceagent

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"runtime/trace"
	"strings"
	"testing"
	"time"
)

// startHeard starts an agent whose lines are heard.
func startHeard(t *testing.T, cfg Config) (*Agent, heard) {
	t.Helper()
	lines := make(heard, 1000)
	cfg.Logger = slog.New(slog.NewTextHandler(lines, nil))
	agent, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return agent, lines
}

func waitFor(t *testing.T, agent *Agent, what string, is func(Status) bool) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); !is(agent.Status()); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not %s: %+v", what, agent.Status())
		}
	}
}

// A program that ignores the error of its trace.Start ends our trace with its trace.Stop.
func TestATraceThatTheProgramEndsBeginsAgain(t *testing.T) {
	certs := certificates(t)
	c := listen(t, certs)
	cfg := config(c.listener.Addr().String(), certs)
	var tee bytes.Buffer
	cfg.Tee = &tee
	agent, lines := startHeard(t, cfg)
	first := agent.Status().Stream
	if trace.Start(io.Discard) == nil {
		t.Fatal("a second trace beside ours")
	}
	busy(1000)
	trace.Stop()
	lines.expect(t, "level=WARN", "trace.Stop()", "begun again")
	between := agent.Status()
	if between.Restarts != 1 || between.State == "off" || between.Stream == first || between.ProducedBytes == 0 {
		t.Errorf("begun again: %+v", between)
	}
	busy(1000)
	if err := agent.Stop(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	s := agent.Status()
	if s.AckedBytes != s.ProducedBytes || s.ProducedBytes <= between.ProducedBytes || s.Restarts != 1 {
		t.Errorf("status %+v", s)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fault != nil || c.closed != 2 || len(c.seqs) != 2 || c.trace.Len() != tee.Len() {
		t.Errorf("fault %v, %d streams, %d closed, %d bytes came of %d", c.fault, len(c.seqs), c.closed, c.trace.Len(), tee.Len())
	}
}

// Another trace may take the place of ours before we look.
func TestAnotherTraceIsSaidAndWaitedFor(t *testing.T) {
	certs := certificates(t)
	c := listen(t, certs)
	agent, lines := startHeard(t, config(c.listener.Addr().String(), certs))
	var other bytes.Buffer
	trace.Stop()
	if err := trace.Start(&other); err != nil {
		t.Fatal(err)
	}
	lines.expect(t, "level=WARN", "trace.Stop()", "another trace runs")
	if s := agent.Status(); s.State != "off" || !strings.Contains(s.LastError, "another trace runs") {
		t.Errorf("status %+v", s)
	}
	if err := agent.Snap(within(t, time.Minute), 0); err == nil {
		t.Error("Snap of no trace succeeds")
	}
	trace.Stop()
	if other.Len() == 0 {
		t.Error("the other trace is empty")
	}
	waitFor(t, agent, "begun again", func(s Status) bool { return s.Restarts == 1 && s.State != "off" })
	if err := agent.Stop(within(t, time.Minute)); err != nil {
		t.Error(err)
	}
	if trace.IsEnabled() {
		t.Error("the program is traced still")
	}
}

func TestStopLeavesAnothersTraceAlone(t *testing.T) {
	agent, lines := startHeard(t, config(closedPort(t), certificates(t)))
	trace.Stop()
	if err := trace.Start(io.Discard); err != nil {
		t.Fatal(err)
	}
	defer trace.Stop()
	lines.expect(t, "another trace runs")
	agent.Stop(within(t, time.Millisecond))
	if !trace.IsEnabled() {
		t.Error("Stop has ended another's trace")
	}
}

// blocked is a Tee that takes nothing before it is told so.
type blocked chan bool

func (b blocked) Write(p []byte) (int, error) {
	<-b
	return len(p), nil
}

func TestATeeThatHangsDoesNotHoldStopUp(t *testing.T) {
	cfg := config(closedPort(t), certificates(t))
	tee := make(blocked)
	cfg.Tee = tee
	agent, _ := startHeard(t, cfg)
	stopped := make(chan bool)
	go func() {
		agent.Stop(within(t, 10*time.Millisecond))
		close(stopped)
	}()
	select {
	case <-stopped:
	case <-time.After(time.Minute):
		t.Error("Stop hangs")
	}
	close(tee)
	for trace.IsEnabled() {
		time.Sleep(time.Millisecond)
	}
}

func TestASnapEndsWithTheTraceThatTheProgramEnds(t *testing.T) {
	certs := certificates(t)
	c := listen(t, certs)
	cfg := config(c.listener.Addr().String(), certs)
	cfg.Record = time.Minute
	agent, lines := startHeard(t, cfg)
	trace.Stop()
	if err := agent.Snap(context.Background(), 0); err == nil || !strings.Contains(err.Error(), "trace.Stop()") {
		t.Errorf("Snap of a trace that has ended: %v", err)
	}
	lines.expect(t, "begun again")
	agent.Stop(within(t, time.Minute))
}

func TestAfterShortTracesItBeginsAgainWithPauses(t *testing.T) {
	now, pause := time.Now(), time.Duration(0)
	if pauseAfter(time.Time{}, now, 0) != 0 || pauseAfter(now.Add(-shortTime), now, pauseMax) != 0 {
		t.Error("a pause after a long trace")
	}
	for _, want := range []int{10, 20, 40, 80, 160, 320, 600, 600} {
		if pause = pauseAfter(now, now, pause); pause != time.Duration(want)*time.Second {
			t.Errorf("pause %v, not %d s", pause, want)
		}
	}
}

func TestLongGenerationsAreNotSilence(t *testing.T) {
	if silentTime("") != 3*time.Second || silentTime("x=1,traceadvanceperiod=10000000000") != 21*time.Second {
		t.Error("silence")
	}
}

func TestATeeThatHoldsTheTraceUpIsNotSilence(t *testing.T) {
	cfg := config(closedPort(t), certificates(t))
	tee := make(blocked)
	cfg.Tee = tee
	agent, _ := startHeard(t, cfg)
	time.Sleep((silentLooks + 2) * watchTime)
	if s := agent.Status(); s.State == "off" {
		t.Errorf("status %+v", s)
	}
	close(tee)
	agent.Stop(within(t, time.Second))
	if trace.IsEnabled() {
		t.Error("the program is traced still")
	}
}

// SPDX-License-Identifier: Apache-2.0

package traceagent

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"runtime/trace"
	"strings"
	"testing"
	"time"
)

// startHeard starts an agent whose log lines the test reads.
func startHeard(t *testing.T, cfg Config) (*Agent, heard) {
	t.Helper()
	return heardFrom(t, cfg, Start)
}

func heardFrom(t *testing.T, cfg Config, start func(Config) (*Agent, error)) (*Agent, heard) {
	t.Helper()
	lines := make(heard, 1000)
	cfg.Logger = slog.New(slog.NewTextHandler(lines, nil))
	agent, err := start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return agent, lines
}

// looking is an agent whose watch looks only when the test calls it, with a time that the test gives.
type looking struct {
	*Agent
	*watch
	now time.Time
}

func startLooking(t *testing.T, cfg Config) (*looking, heard) {
	t.Helper()
	agent, lines := heardFrom(t, cfg, start)
	return &looking{agent, newWatch(agent), time.Now()}, lines
}

// after makes the watch look once for each second, as it does by itself.
func (l *looking) after(seconds int) {
	for range seconds {
		l.now = l.now.Add(watchTime)
		l.look(l.now)
	}
}

func waitFor(t *testing.T, agent *Agent, what string, is func(Status) bool) {
	t.Helper()
	for deadline := time.Now().Add(patience()); !is(agent.Status()); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not %s: %+v", what, agent.Status())
		}
	}
}

// If a program ignores the error of its trace.Start, its trace.Stop ends the agent's trace.
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
	if err := agent.Stop(within(t, patience())); err != nil {
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

// Another trace may replace the agent's before the watch looks.
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
	if err := agent.Snap(within(t, patience()), 0); err == nil {
		t.Error("Snap of no trace succeeds")
	}
	trace.Stop()
	if other.Len() == 0 {
		t.Error("the other trace is empty")
	}
	waitFor(t, agent, "begun again", func(s Status) bool { return s.Restarts == 1 && s.State != "off" })
	if err := agent.Stop(within(t, patience())); err != nil {
		t.Error(err)
	}
	if trace.IsEnabled() {
		t.Error("the program is traced still")
	}
}

// Stop waits for the first write of the next generation, which does not come.
func TestStopLeavesATraceAloneThatHasJustTakenThePlaceOfOurs(t *testing.T) {
	certs := certificates(t)
	agent, _ := startLooking(t, config(listen(t, certs).listener.Addr().String(), certs))
	busy(1000)
	var other bytes.Buffer
	trace.Stop()
	if err := trace.Start(&other); err != nil {
		t.Fatal(err)
	}
	if err := agent.Stop(within(t, patience())); err != nil {
		t.Error(err)
	}
	if !trace.IsEnabled() {
		t.Error("Stop has ended another's trace")
	}
	if trace.Stop(); other.Len() == 0 {
		t.Error("the other trace is empty")
	}
}

// However long generations are, Stop waits no longer than its context and a second for that write.
func TestStopEndsWithItsContextThoughAnotherTraceHasTakenThePlaceOfOurs(t *testing.T) {
	before := godebugAtStart
	defer func() { godebugAtStart = before }()
	godebugAtStart += ",traceadvanceperiod=600000000000"
	agent, _ := startLooking(t, config(closedPort(t), certificates(t)))
	trace.Stop()
	if err := trace.Start(io.Discard); err != nil {
		t.Fatal(err)
	}
	stopped := make(chan bool)
	go func() {
		agent.Stop(within(t, time.Millisecond))
		close(stopped)
	}()
	select {
	case <-stopped:
	case <-time.After(patience()):
		t.Error("Stop hangs")
	}
	if !trace.IsEnabled() {
		t.Error("Stop has ended another's trace")
	}
	trace.Stop()
}

func TestOursIsEndedBetweenTwoGenerations(t *testing.T) {
	var ours writer
	if err := trace.Start(&ours); err != nil {
		t.Fatal(err)
	}
	for writes := uint64(0); writes == 0; writes, _, _ = ours.state() {
		time.Sleep(time.Millisecond)
	}
	ours.mu.Lock()
	ours.isAtEnd = true // as when a generation has ended, and the next one is not written yet
	ours.mu.Unlock()
	ours.endTrace()
	if _, _, mayBeOver := ours.state(); trace.IsEnabled() || !mayBeOver {
		t.Errorf("the trace goes on %v, its end is seen %v", trace.IsEnabled(), mayBeOver)
	}
}

func TestNothingIsOpenedBesideAnothersTrace(t *testing.T) {
	certs := certificates(t)
	agent, lines := startLooking(t, config(listen(t, certs).listener.Addr().String(), certs))
	trace.Stop()
	if err := trace.Start(io.Discard); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(certs); err != nil { // a new stream is refused
		t.Fatal(err)
	}
	agent.after(silentLooks + 3)
	lines.expect(t, "another trace runs")
	if s := agent.Status(); s.State != "off" || s.LastError != othersTrace {
		t.Errorf("status %+v", s)
	}
	trace.Stop()
	agent.after(1)
	if s := agent.Status(); !strings.Contains(s.LastError, "cannot begin again") {
		t.Errorf("status %+v", s)
	}
	agent.Stop(within(t, patience()))
}

// The trace that seemed to be another's is the agent's: the runtime wrote nothing for a long time.
func TestATraceOfOursThatSeemedToHaveEndedEndsAndBeginsAgain(t *testing.T) {
	certs := certificates(t)
	agent, _ := startLooking(t, config(listen(t, certs).listener.Addr().String(), certs))
	agent.isEnded = agent.endStream()
	waitFor(t, agent.Agent, "written to", func(Status) bool {
		writes, _, _ := agent.writer.state()
		return writes != agent.writes
	})
	agent.after(1)
	if trace.IsEnabled() {
		t.Error("the trace goes on, and nobody gets it")
	}
	agent.after(2)
	if s := agent.Status(); s.Restarts != 1 || s.State == "off" {
		t.Errorf("status %+v", s)
	}
	if err := agent.Stop(within(t, patience())); err != nil || trace.IsEnabled() {
		t.Errorf("%v, or the program is traced still", err)
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

// blocked is a Tee that blocks until the test lets it continue.
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
	case <-time.After(patience()):
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
	agent.Stop(within(t, patience()))
}

// For an hour, the program ends each trace within a second of its begin.
func TestAFlappingProgramsTraceBeginsAgainWithPauses(t *testing.T) {
	certs := certificates(t)
	c := listen(t, certs)
	agent, lines := startLooking(t, config(c.listener.Addr().String(), certs))
	streams := map[string]bool{}
	for i, pause := range []int{0, 10, 20, 40, 80, 160, 320, 600, 600} {
		if s := agent.Status(); s.State == "off" || s.Restarts != uint64(i) || streams[s.Stream] {
			t.Fatalf("before pause %d: %+v", i, s)
		} else {
			streams[s.Stream] = true
		}
		trace.Stop()
		agent.after(1)
		if pause == 0 {
			lines.expect(t, "level=WARN", "trace.Stop()", "begun again")
			continue
		}
		text := "again after a pause of " + (time.Duration(pause) * time.Second).String()
		if i < 8 { // the same line is not logged twice
			lines.expect(t, "level=WARN", text)
		}
		c.waitForClosed(t, i+1) // the stream does not wait for the next trace
		agent.after(pause - 1)
		if s := agent.Status(); s.State != "off" || !strings.HasSuffix(s.LastError, text) || trace.IsEnabled() {
			t.Errorf("in pause %d: %+v", i, s)
		}
		agent.after(1)
	}
	agent.after(int(shortTime / time.Second))
	trace.Stop()
	agent.after(1)
	if s := agent.Status(); s.State == "off" || s.Restarts != 10 {
		t.Errorf("after a long trace: %+v", s)
	}
	if err := agent.Stop(within(t, patience())); err != nil {
		t.Error(err)
	}
	if s := agent.Status(); s.AckedBytes != s.ProducedBytes || s.LostGenerations != 0 {
		t.Errorf("status %+v", s)
	}
	c.waitForClosed(t, 11)
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

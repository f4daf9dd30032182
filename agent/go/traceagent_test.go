// SPDX-License-Identifier: Apache-2.0

package traceagent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"expvar"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/pprof"
	"os"
	"path/filepath"
	"reflect"
	"runtime/trace"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func config(server, certs string) Config {
	return Config{Server: server, Certs: certs, Service: "test", Instance: "one"}
}

// busy makes something to trace: goroutines that wake each other.
func busy(passes int) {
	there, back := make(chan bool), make(chan bool)
	go func() {
		for range there {
			back <- true
		}
		close(back)
	}()
	for i := 0; i < passes; i++ {
		there <- true
		<-back
	}
	close(there)
	<-back
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestTheCollectorGetsTheBytesThatWereWritten(t *testing.T) {
	certs := certificates(t)
	c := listen(t, certs)
	var tee bytes.Buffer
	cfg := config(c.listener.Addr().String(), certs)
	cfg.Tee = &tee
	agent, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	busy(20000)
	if err := agent.Stop(within(t, patience())); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fault != nil {
		t.Fatal(c.fault)
	}
	if c.closed != 1 {
		t.Error("no CLOSE came")
	}
	if tee.Len() == 0 || !bytes.Equal(tee.Bytes(), c.trace.Bytes()) {
		t.Errorf("%d bytes were written, %d came, or others", tee.Len(), c.trace.Len())
	}
	s := agent.Status()
	if s.State != "closed" || s.AckedBytes != s.ProducedBytes || s.AckedGenerations == 0 || s.LostBatches != 0 {
		t.Errorf("status %+v", s)
	}
	if err := agent.Stop(context.Background()); err != nil {
		t.Errorf("a second Stop: %v", err)
	}
}

// heard is a slog.Handler's output, line by line.
type heard chan string

func (h heard) Write(p []byte) (int, error) {
	h <- string(p)
	return len(p), nil
}

// expect waits for a line with all these words.
func (h heard) expect(t *testing.T, words ...string) {
	t.Helper()
	var line string
	for deadline := time.After(patience()); ; {
		select {
		case line = <-h:
		case <-deadline:
			t.Fatalf("no line with %q, the last one is %q", words, line)
		}
		if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(line, word) }) {
			return
		}
	}
}

func closedPort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func TestAWrongPortIsSaidOnStderr(t *testing.T) {
	before := os.Stderr
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	os.Stderr = to
	server := closedPort(t)
	agent, err := Start(config(server, certificates(t)))
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(from)
	line, err := lines.ReadString('\n')                 // written while the program runs
	for err == nil && !strings.Contains(line, server) { // skips lines about the build and its Go version
		line, err = lines.ReadString('\n')
	}
	agent.Stop(within(t, time.Millisecond))
	os.Stderr = before
	to.Close()
	if want := "traceagent: " + server + ": Connection refused\n"; err != nil || line != want {
		t.Errorf("line %q, %v, want %q", line, err, want)
	}
}

func TestALoggerHearsOfTheConnection(t *testing.T) {
	certs := certificates(t)
	c := listen(t, certs)
	lines := make(heard, 100)
	cfg := config(c.listener.Addr().String(), certs)
	cfg.Logger = slog.New(slog.NewTextHandler(lines, nil))
	agent, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	lines.expect(t, "level=INFO", "connected", "service=test", "server="+cfg.Server)
	if err := agent.Stop(within(t, patience())); err != nil {
		t.Error(err)
	}
}

func TestALoggerHearsOfAWrongCA(t *testing.T) {
	certs := certificates(t)
	c := listen(t, certificates(t))
	lines := make(heard, 100)
	cfg := config(c.listener.Addr().String(), certs)
	cfg.Logger = slog.New(slog.NewTextHandler(lines, nil))
	agent, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	lines.expect(t, "level=WARN", "collector's certificate", certs+"/ca.pem")
	if s := agent.Status(); !strings.Contains(s.LastError, certs+"/ca.pem") {
		t.Errorf("status %+v", s)
	}
	agent.Stop(within(t, time.Millisecond))
}

func TestAnExpiredCertificateIsNamedWithItsFile(t *testing.T) {
	for expired, words := range map[string][]string{
		"agent":  {"collector refuses certificate", "/agent.pem", "expired"},
		"server": {"collector's certificate", "expired"},
		"ca":     {"collector's authority", "expired", "/ca.pem"},
	} {
		certs := certificates(t, expired)
		c := listen(t, certs)
		lines := make(heard, 100)
		cfg := config(c.listener.Addr().String(), certs)
		cfg.Logger = slog.New(slog.NewTextHandler(lines, nil))
		agent, err := Start(cfg)
		if err != nil {
			t.Fatal(err)
		}
		lines.expect(t, words...)
		agent.Stop(within(t, time.Millisecond))
	}
}

func TestLastErrorSaysWhyNothingIsAcked(t *testing.T) {
	certs := certificates(t)
	c := listen(t, certs)
	const notYetKnown, diskFull = 99, 6
	hold := func(why uint64) {
		c.mu.Lock()
		c.hold = why
		c.mu.Unlock()
	}
	hold(diskFull)
	lines := make(heard, 100)
	cfg := config(c.listener.Addr().String(), certs)
	cfg.Logger = slog.New(slog.NewTextHandler(lines, nil))
	agent, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	lines.expect(t, "level=WARN", "collector stores nothing: its disk is full")
	if s := agent.Status(); s.LastError != "collector stores nothing: its disk is full" {
		t.Errorf("status %+v", s)
	}
	hold(notYetKnown)
	for agent.Status().ProducedBytes == 0 {
		busy(1000)
	}
	hold(0)
	for agent.Status().LastError != "" { // one generation per second is acked
		time.Sleep(10 * time.Millisecond)
	}
	lines.expect(t, "level=INFO", "acks come again")
	if err := agent.Stop(within(t, patience())); err != nil {
		t.Error(err)
	}
}

// A handler that hangs delays Stop by a second, and does not harm the trace.
func TestALoggerThatHangsHoldsNothingUp(t *testing.T) {
	certs := certificates(t)
	c := listen(t, certs)
	lines := make(heard) // without a reader
	cfg := config(c.listener.Addr().String(), certs)
	cfg.Logger = slog.New(slog.NewTextHandler(lines, nil))
	agent, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	busy(1000)
	if err := agent.Stop(within(t, patience())); err != nil {
		t.Error(err)
	}
	if s := agent.Status(); s.AckedBytes != s.ProducedBytes {
		t.Errorf("status %+v", s)
	}
	<-lines // lets the handler continue
}

func TestTheProgramGoesOnWithoutACollector(t *testing.T) {
	agent, err := Start(config("127.0.0.1:9", certificates(t)))
	if err != nil {
		t.Fatal(err)
	}
	busy(1000)
	err = agent.Stop(within(t, 200*time.Millisecond))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Stop: %v", err)
	}
	if err == nil || !strings.Contains(err.Error(), "127.0.0.1:9") {
		t.Errorf("Stop does not say why: %v", err)
	}
	if s := agent.Status(); s.ProducedBytes == 0 || s.AckedBytes != 0 {
		t.Errorf("status %+v", s)
	}
}

func TestMistakesAreNamed(t *testing.T) {
	certs := certificates(t)
	for name, c := range map[string]struct {
		config Config
		want   string
	}{
		"no server":     {Config{Certs: certs, Service: "s"}, "server"},
		"no port":       {config("collector", certs), "HOST:PORT"},
		"no address":    {config("[::1].evil.com:7070", certs), "HOST:PORT"},
		"no service":    {Config{Server: "c:1", Certs: certs}, "service"},
		"bad service":   {Config{Server: "c:1", Certs: certs, Service: "a b"}, `service "a b"`},
		"no such files": {config("c:1", "/nowhere"), "/nowhere/ca.pem"},
		"tiny spool":    {Config{Server: "c:1", Certs: certs, Service: "s", SpoolBytes: 1000}, "spool_bytes"},
	} {
		if _, err := Start(c.config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
	if trace.IsEnabled() {
		t.Error("a failed Start leaves the trace on")
	}
}

func TestATracedProgramIsToldSo(t *testing.T) {
	if err := trace.Start(io.Discard); err != nil {
		t.Skip(err)
	}
	defer trace.Stop()
	if _, err := Start(config("127.0.0.1:9", certificates(t))); err == nil {
		t.Error("two traces at a time")
	}
}

func TestTheOffSwitch(t *testing.T) {
	t.Setenv("TRACEAGENT_DISABLE", "1")
	agent, err := Start(Config{})
	if err != nil {
		t.Fatal(err)
	}
	if s := agent.Status(); s.State != "off" || !strings.Contains(s.LastError, "TRACEAGENT_DISABLE=1") {
		t.Errorf("status %+v", s)
	}
	if trace.IsEnabled() {
		t.Error("the program is traced")
	}
	if err := agent.Stop(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestStatusAndStopFromManyGoroutines(t *testing.T) {
	certs := certificates(t)
	c := listen(t, certs)
	agent, err := Start(config(c.listener.Addr().String(), certs))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := 0; i < 8; i++ {
		wg.Add(1)
		go func(i int) {
			defer wg.Done()
			for j := 0; j < 100; j++ {
				agent.Status()
			}
			if i >= 6 {
				if err := agent.Stop(within(t, patience())); err != nil {
					t.Error(err)
				}
			}
			agent.Status()
		}(i)
	}
	wg.Wait()
}

func TestARecorderSendsOnlyWhatItIsAskedFor(t *testing.T) {
	certs := certificates(t)
	c := listen(t, certs)
	cfg := config(c.listener.Addr().String(), certs)
	cfg.Record = time.Minute
	agent, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	busy(2000)
	if s := agent.Status(); s.ProducedBytes != 0 {
		t.Errorf("before it was asked: %+v", s)
	}
	if err := agent.Snap(within(t, patience()), 10*time.Second); err != nil {
		t.Fatal(err)
	}
	asked := agent.Status()
	if asked.Snaps != 1 || asked.AckedGenerations == 0 || asked.AckedBytes != asked.ProducedBytes {
		t.Errorf("after it was asked: %+v", asked)
	}
	busy(2000)
	if err := agent.Stop(within(t, patience())); err != nil {
		t.Fatal(err)
	}
	if s := agent.Status(); s.ProducedBytes != asked.ProducedBytes || s.ForgottenGenerations == 0 || s.LostBatches != 0 {
		t.Errorf("at its end: %+v", s)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fault != nil || c.closed != 1 {
		t.Errorf("fault %v, closed %v", c.fault, c.closed)
	}
}

func TestWhoDoesNotRecordCannotBeAsked(t *testing.T) {
	agent, err := Start(config("127.0.0.1:9", certificates(t)))
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Snap(context.Background(), 0); err == nil || !strings.Contains(err.Error(), "Config.Record") {
		t.Errorf("Snap: %v", err)
	}
	agent.Stop(within(t, time.Millisecond))
	if err := agent.Snap(context.Background(), 0); err == nil {
		t.Error("Snap after Stop")
	}
}

// Start returns nil with an error, and the example in the README defers Stop even then.
func TestEveryMethodAcceptsANilAgent(t *testing.T) {
	var none *Agent
	off := map[string]func(){
		"Stop": func() {
			if err := none.Stop(context.Background()); err != nil {
				t.Errorf("Stop: %v", err)
			}
		},
		"Snap": func() {
			if err := none.Snap(context.Background(), 0); err == nil {
				t.Error("Snap of no trace succeeds")
			}
		},
		"Status": func() {
			if s := none.Status(); s.State != "off" {
				t.Errorf("status %+v", s)
			}
		},
		"String": func() {
			if text := none.String(); !strings.Contains(text, `"state":"off"`) {
				t.Errorf("string %s", text)
			}
		},
	}
	methods := reflect.TypeOf(none)
	for i := 0; i < methods.NumMethod(); i++ {
		name := methods.Method(i).Name
		if call, ok := off[name]; ok {
			call()
		} else {
			t.Errorf("%s is not tried on a nil Agent", name)
		}
	}
}

// The interval of heartbeats has 32 bits. A collector that sends a larger number must not harm the program.
func TestAHeartbeatOfAnyLengthIsBorne(t *testing.T) {
	for _, beat := range []uint64{0, 1<<32 - 1, 1 << 58, 1e13, 1<<64 - 1} {
		certs := certificates(t)
		c := listen(t, certs)
		c.beat = beat
		agent, err := Start(config(c.listener.Addr().String(), certs))
		if err != nil {
			t.Fatal(err)
		}
		busy(100)
		if err := agent.Stop(within(t, patience())); err != nil {
			t.Errorf("%d ms: %v", beat, err)
		}
	}
}

func TestTheStatusCanBePublishedAndLogged(t *testing.T) {
	certs := certificates(t)
	agent, err := Start(config(listen(t, certs).listener.Addr().String(), certs))
	if err != nil {
		t.Fatal(err)
	}
	busy(100)
	if err := agent.Stop(within(t, patience())); err != nil {
		t.Fatal(err)
	}
	var published struct {
		State         string
		ProducedBytes uint64  `json:"produced_bytes"`
		AckedBytes    uint64  `json:"acked_bytes"`
		LastError     *string `json:"last_error"`
	}
	var variable expvar.Var = agent
	if err := json.Unmarshal([]byte(variable.String()), &published); err != nil {
		t.Fatal(err)
	}
	if published.State != "closed" || published.ProducedBytes == 0 || published.AckedBytes != published.ProducedBytes || published.LastError == nil {
		t.Errorf("published: %s", variable)
	}
	var logged bytes.Buffer
	slog.New(slog.NewTextHandler(&logged, nil)).Info("trace", "agent", agent.Status())
	if want := fmt.Sprintf("agent.acked_bytes=%d", published.AckedBytes); !strings.Contains(logged.String(), want) {
		t.Errorf("%s is not in %s", want, &logged)
	}
}

func TestWhatIsNotAcknowledgedIsLeftInSpoolDir(t *testing.T) {
	cfg := config("127.0.0.1:9", certificates(t))
	cfg.SpoolDir = filepath.Join(t.TempDir(), "spool")
	agent, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	busy(1000)
	err = agent.Stop(within(t, 2*time.Second))
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "SpoolDir") {
		t.Errorf("Stop: %v", err)
	}
	left, err := os.ReadDir(cfg.SpoolDir)
	if err != nil || len(left) != 1 || left[0].Name() != agent.Status().Stream {
		t.Errorf("left: %v, %v", left, err)
	}
}

// While any other trace runs, Start returns an error that names it, and the other trace continues.
func TestASecondTraceIsRefusedByName(t *testing.T) {
	cfg := config("127.0.0.1:9", certificates(t))
	cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	first, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Start(cfg); !errors.Is(err, ErrTraced) || err.Error() != "traceagent: the program is being traced already" {
		t.Errorf("Start twice: %v", err)
	}
	answer := httptest.NewRecorder()
	pprof.Trace(answer, httptest.NewRequest("GET", "/debug/pprof/trace?seconds=0.1", nil))
	if answer.Code != http.StatusInternalServerError {
		t.Errorf("pprof's trace beside ours: %d", answer.Code)
	}
	busy(100)
	before := first.Status().ProducedBytes
	first.Stop(within(t, 100*time.Millisecond))
	if after := first.Status().ProducedBytes; after <= before {
		t.Errorf("%d bytes produced, %d after the others", before, after)
	}
	again, err := Start(cfg) // after Stop there is no trace
	if err != nil {
		t.Fatal(err)
	}
	again.Stop(within(t, 100*time.Millisecond))
}

func TestStartBesideAnotherTraceLeavesThatAlone(t *testing.T) {
	cfg := config("127.0.0.1:9", certificates(t))
	cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	var plain bytes.Buffer
	if err := trace.Start(&plain); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(cfg); !errors.Is(err, ErrTraced) {
		t.Errorf("beside trace.Start: %v", err)
	}
	busy(100)
	trace.Stop()
	answer, asked := httptest.NewRecorder(), make(chan bool)
	go func() {
		pprof.Trace(answer, httptest.NewRequest("GET", "/debug/pprof/trace?seconds=1", nil))
		close(asked)
	}()
	for !trace.IsEnabled() {
		time.Sleep(time.Millisecond)
	}
	if _, err := Start(cfg); !errors.Is(err, ErrTraced) {
		t.Errorf("beside pprof's: %v", err)
	}
	<-asked
	for name, bytes := range map[string][]byte{"trace.Start": plain.Bytes(), "pprof": answer.Body.Bytes()} {
		if len(bytes) < 100 || string(bytes[:4]) != "go 1" {
			t.Errorf("%s wrote %d bytes", name, len(bytes))
		}
	}
}

func TestNamesOfAnyLengthAreTraced(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	if err := trace.Start(io.Discard); err != nil {
		t.Fatal(err)
	}
	ctx, task := NewTask(context.Background(), long)
	StartRegion(ctx, long).End()
	ran := false
	WithRegion(ctx, long, func() { ran = true })
	Log(ctx, long, long)
	task.End()
	trace.Stop() // up to Go 1.26, this would have ended the program
	if !ran {
		t.Error("the region's function did not run")
	}
	for name, kept := range map[string]int{"": 0, "short": 5, long: 1024, strings.Repeat("\u00e4", 600): 1024, "x" + strings.Repeat("\u00e4", 600): 1023} {
		if got := Name(name); len(got) != kept || !strings.HasPrefix(name, got) {
			t.Errorf("%d bytes kept of %.4q..., not %d", len(got), name, kept)
		}
	}
}

func TestVersionsOfGoThatEndProgramsAreNamed(t *testing.T) {
	const none, warns, refuses = 0, 1, 2
	for _, of := range []struct {
		version, processor string
		godebug            godebug
		want               int
	}{
		{"go1.26.8", "amd64", "gctrace=1,traceallocfree=1", warns}, {"go1.25.14", "arm64", "traceallocfree=1", warns},
		{"go1.26.8", "amd64", "", none}, {"go1.26.8", "amd64", "traceallocfree=0", none},
		{"go1.26.8", "amd64", "traceallocfree=1,traceallocfree=0", none}, {"go1.27.3", "amd64", "traceallocfree=1", none},
		{"go1.22", "amd64", "", refuses}, {"go1.22.12 X:nocoverageredesign", "amd64", "", refuses}, {"go1.23.8", "arm64", "", refuses},
		{"go1.23.8", "riscv64", "", none}, {"go1.24rc1", "amd64", "", refuses}, {"go1.24.13", "amd64", "", refuses},
		{"go1.25.11", "amd64", "", refuses}, {"go1.25.14", "amd64", "", none},
		{"go1.26.5", "amd64", "", refuses}, {"go1.26.6", "amd64", "", none},
		{"go1.23.8", "amd64", "gctrace=1,tracefpunwindoff=1", none}, {"go1.23.8", "amd64", "tracefpunwindoff=0", refuses},
		{"devel go1.24-0123456789 Tue", "amd64", "", none}, {"", "amd64", "", none},
	} {
		refusal, warnings := faultsHere(of.version, of.processor, of.godebug, false)
		got := len(warnings)
		if refusal != "" {
			got = refuses
		}
		if got != of.want {
			t.Errorf("%v: %q, %q", of, refusal, warnings)
		}
	}
	refusal, warnings := faultsHere("go1.23.8", "amd64", "", true)
	if refusal != "" || len(warnings) != 2 {
		t.Fatalf("allowed: %q, %q", refusal, warnings)
	}
	for _, text := range warnings {
		if !strings.HasPrefix(text, "traced at risk: go1.23.8 ends a traced program ") {
			t.Error(text)
		}
	}
}

func TestTheRemedyNamesVersionsWithoutAnyFault(t *testing.T) {
	for _, of := range []struct {
		version, processor string
		godebug            godebug
		want               string
	}{
		{"go1.22.12", "amd64", "", "go1.25.14, go1.26.6, go1.27 or later"}, {"go1.24.13", "arm64", "", "go1.25.14, go1.26.6, go1.27 or later"},
		{"go1.26.0", "amd64", "", "go1.26.6, go1.27 or later"}, {"go1.23.8", "amd64", "traceallocfree=1", "go1.27 or later"},
		{"go1.26.8", "amd64", "traceallocfree=1", "go1.27 or later"},
	} {
		refusal, warnings := faultsHere(of.version, of.processor, of.godebug, false)
		for _, text := range append(warnings, refusal) {
			if text != "" && !strings.Contains(text, "or build with "+of.want) {
				t.Errorf("%v: %s", of, text)
			}
		}
		if refusal != "" && !strings.Contains(refusal, "separated by commas") {
			t.Error(refusal)
		}
	}
}

// Snap waits for a collector that never comes. Stop ends that wait, and itself ends in time.
func TestStopEndsASnapThatWaits(t *testing.T) {
	cfg := config("127.0.0.1:9", certificates(t))
	cfg.Record = time.Minute
	cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	agent, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	snapped := make(chan error)
	go func() { snapped <- agent.Snap(context.Background(), 0) }()
	for agent.Status().Snaps == 0 {
		time.Sleep(time.Millisecond)
	}
	stopped := make(chan error)
	go func() { stopped <- agent.Stop(within(t, 100*time.Millisecond)) }()
	for waiting := 2; waiting > 0; waiting-- {
		select {
		case err = <-snapped:
			if err == nil || !strings.Contains(err.Error(), "the agent stops") {
				t.Errorf("Snap: %v", err)
			}
		case <-stopped:
		case <-time.After(patience()):
			t.Fatal("Stop hangs behind Snap")
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

//go:build go1.25

package traceagent

import (
	"runtime/trace"
	"testing"
	"time"
)

// While the program's flight recorder runs, runtime/trace reports that tracing is on.
func TestATraceThatTheProgramEndsBesideAFlightRecorderBeginsAgain(t *testing.T) {
	recorder := trace.NewFlightRecorder(trace.FlightRecorderConfig{})
	if err := recorder.Start(); err != nil {
		t.Fatal(err)
	}
	defer recorder.Stop()
	certs := certificates(t)
	c := listen(t, certs)
	agent, lines := startHeard(t, config(c.listener.Addr().String(), certs))
	trace.Stop()
	lines.expect(t, "begun again")
	if err := agent.Stop(within(t, patience())); err != nil {
		t.Error(err)
	}
	if s := agent.Status(); s.Restarts != 1 || s.AckedBytes != s.ProducedBytes {
		t.Errorf("status %+v", s)
	}
}

func TestStopBeforeTheWatchHasLookedLeavesAFlightRecorderAlone(t *testing.T) {
	recorder := trace.NewFlightRecorder(trace.FlightRecorderConfig{})
	if err := recorder.Start(); err != nil {
		t.Fatal(err)
	}
	defer recorder.Stop()
	agent, _ := startHeard(t, config(closedPort(t), certificates(t)))
	trace.Stop()
	agent.Stop(within(t, time.Millisecond))
	if !recorder.Enabled() || !trace.IsEnabled() {
		t.Error("Stop has ended the flight recorder")
	}
}

// SPDX-License-Identifier: Apache-2.0

//go:build go1.25

package traceagent

import (
	"bytes"
	"context"
	"fmt"
	"runtime/trace"
	"testing"
	"time"
)

// The agent begins a trace for a moment, and ends it, to learn whether one runs. A flight recorder then begins a new generation, and
// loses no event.
func TestTheProgramsFlightRecorderKeepsAll(t *testing.T) {
	recorder := trace.NewFlightRecorder(trace.FlightRecorderConfig{MinAge: time.Hour, MaxBytes: 1 << 30})
	if err := recorder.Start(); err != nil {
		t.Fatal(err)
	}
	defer recorder.Stop()
	var marks []string
	mark := func() {
		marks = append(marks, fmt.Sprintf("mark %d.", len(marks)))
		trace.Log(context.Background(), "marks", marks[len(marks)-1])
		busy(100)
	}
	mark()
	for range 5 {
		if hasTrace() {
			t.Fatal("a flight recorder is taken for a trace")
		}
		mark()
	}
	agent, _ := startHeard(t, config(closedPort(t), certificates(t)))
	mark()
	agent.Stop(within(t, time.Millisecond))
	mark()

	var kept bytes.Buffer
	if _, err := recorder.WriteTo(&kept); err != nil {
		t.Fatal(err)
	}
	for _, text := range marks {
		if !bytes.Contains(kept.Bytes(), []byte(text)) {
			t.Errorf("%q is not in its file", text)
		}
	}
	var first, last uint64
	var of splitter
	each := func(kind unitKind, gen uint64, unit []byte) {
		switch {
		case kind == unitRaw:
			t.Error("its file is no trace")
		case kind == unitBatch && first == 0:
			first, last = gen, gen
		case kind == unitBatch && gen != last && gen != last+1:
			t.Errorf("generation %d follows generation %d", gen, last)
		case kind == unitBatch:
			last = gen
		}
	}
	of.feed(kept.Bytes(), each)
	of.finish(each)
	if last-first < 5 {
		t.Errorf("generations %d to %d", first, last)
	}
}

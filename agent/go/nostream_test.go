// SPDX-License-Identifier: Apache-2.0

//go:build !(cgo && linux && amd64)

package traceagent

import (
	"context"
	"errors"
	"runtime/trace"
	"testing"
)

func TestStartSaysThatThereIsNoAgent(t *testing.T) {
	agent, err := Start(Config{Server: "collector:7070", Certs: "/nowhere", Service: "test"})
	if !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Start: %v", err)
	}
	if trace.IsEnabled() {
		t.Error("the program is traced")
	}
	if err := agent.Stop(context.Background()); err != nil {
		t.Errorf("Stop: %v", err)
	}
	if err := agent.Snap(context.Background(), 0); err == nil {
		t.Error("Snap of no trace succeeds")
	}
	if s := agent.Status(); s.State != "off" {
		t.Errorf("status %+v", s)
	}
}

func TestAProgramThatIsNotToBeTracedHasNoError(t *testing.T) {
	t.Setenv("TRACEAGENT_DISABLE", "1")
	agent, err := Start(Config{})
	if err != nil || agent.Status().State != "off" {
		t.Errorf("Start: %v, status %+v", err, agent.Status())
	}
}

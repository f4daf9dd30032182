// SPDX-License-Identifier: Apache-2.0

//go:build cgo && linux && amd64 && !traceagent_go

package traceagent

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

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

// SPDX-License-Identifier: Apache-2.0

//go:build !(cgo && linux && amd64)

package traceagent

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"
)

// stream is none: open always fails.
type stream struct{}

func open(Config) (*stream, error) {
	if os.Getenv("TRACEAGENT_DISABLE") == "1" {
		return nil, nil
	}
	why := "this program was built without cgo (CGO_ENABLED=0, or no C compiler)"
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		why = "not on " + runtime.GOOS + "/" + runtime.GOARCH
	}
	return nil, fmt.Errorf("the agent runs on linux/amd64 with cgo; %s: %w", why, errors.ErrUnsupported)
}

func (*stream) write([]byte)             {}
func (*stream) finish()                  {}
func (*stream) sync(time.Duration) error { return errOff }
func (*stream) snap(time.Duration) error { return errOff }
func (*stream) close(time.Duration)      {}
func (*stream) status() Status           { return Status{State: "off"} }

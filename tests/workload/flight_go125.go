// SPDX-License-Identifier: Apache-2.0

//go:build go1.25

package main

import (
	"context"
	"io"
	"runtime/trace"
	"sync"
	"time"
)

func init() {
	register(scenario{name: "flight", about: "flight recorder: a snapshot out of the middle of a run",
		own: func(e *env, w io.Writer) error {
			fr := trace.NewFlightRecorder(trace.FlightRecorderConfig{MinAge: e.dur / 2, MaxBytes: 2 << 20})
			if err := fr.Start(); err != nil {
				return err
			}
			var wg sync.WaitGroup
			for _, f := range []func(context.Context, *env){runChan, runSleep, runLong} {
				wg.Add(1)
				go func() { defer wg.Done(); f(context.Background(), e) }()
			}
			time.Sleep(e.dur * 3 / 4)
			if w == nil {
				w = io.Discard
			}
			_, err := fr.WriteTo(w)
			wg.Wait()
			fr.Stop()
			return err
		}})
}

// SPDX-License-Identifier: Apache-2.0

//go:build go1.24

package main

import (
	"context"
	"runtime"
	"sync"
	"time"
	"weak"
)

func init() {
	register(scenario{name: "weak", about: "weak pointers, cleanups and finalizers while the collector runs", run: runWeak})
}

func runWeak(ctx context.Context, e *env) {
	var wg sync.WaitGroup
	for g := 0; g < 4; g++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := 0; e.more() && e.left() > 0; i++ {
				n := tree(6)
				w := weak.Make(n)
				runtime.AddCleanup(n, func(int) {}, i)
				f := &small{}
				runtime.SetFinalizer(f, func(*small) {})
				for j := 0; j < 50; j++ {
					if p := w.Value(); p == nil {
						break
					}
				}
				runtime.KeepAlive(n)
				time.Sleep(10 * time.Microsecond)
			}
		}()
	}
	for e.more() && e.left() > 0 {
		runtime.GC()
	}
	wg.Wait()
}

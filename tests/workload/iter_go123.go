// SPDX-License-Identifier: Apache-2.0

//go:build go1.23

package main

import (
	"context"
	"iter"
	"sync"
)

func init() {
	register(scenario{name: "iter", about: "iter.Pull: coroutine switches, early stop, never started", run: runIter})
}

func count(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := 0; i < n; i++ {
			if !yield(i) {
				return
			}
		}
	}
}

func runIter(ctx context.Context, e *env) {
	var wg sync.WaitGroup
	for g := 0; g < 2; g++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := 0; e.more(); i++ {
				next, stop := iter.Pull(count(10))
				for j := 0; ; j++ {
					if _, ok := next(); !ok || j > 5+i%20 {
						break
					}
				}
				stop()
				_, unused := iter.Pull(count(3))
				unused()
			}
		}()
	}
	// A coroutine that outlives generations.
	next, stop := iter.Pull(count(1 << 30))
	for e.more() {
		next()
	}
	stop()
	wg.Wait()
}

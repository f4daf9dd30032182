// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"runtime/pprof"
	"sync"
	"time"
)

func init() {
	register(scenario{name: "gc", about: "linked structures, mark assists, sweeping, forced collections", run: runGC})
	register(scenario{name: "gcdeep", about: "allocation from many deep stacks", run: runGCDeep})
	register(scenario{name: "bigsweep", about: "large allocations that owe much sweeping, so a sweep can cross a generation boundary", run: runBigSweep})
	register(scenario{name: "stw", about: "every stop-the-world user code can ask for", run: runSTW})
	register(scenario{name: "alloc", about: "small mixed allocations (for GODEBUG=traceallocfree=1)", run: runAlloc})
}

type node struct {
	l, r *node
	pad  [6]uintptr
}

func tree(d int) *node {
	if d == 0 {
		return &node{}
	}
	return &node{l: tree(d - 1), r: tree(d - 1)}
}

var keep [16]*node

func runGC(ctx context.Context, e *env) {
	old := debug.SetGCPercent(20)
	defer debug.SetGCPercent(old)
	var wg sync.WaitGroup
	for i := 0; i < 4*e.procs; i++ {
		wg.Add(1)
		go func(i int) {
			defer wg.Done()
			for j := 0; e.more(); j++ {
				keep[(i+j)%len(keep)] = tree(12)
				b := make([]byte, 1<<16)
				sink.Store(&b)
			}
		}(i)
	}
	wg.Add(1)
	go func() {
		defer wg.Done()
		for e.more() && e.left() > 0 {
			time.Sleep(20 * time.Millisecond)
			runtime.GC()
		}
	}()
	wg.Wait()
	for i := range keep {
		keep[i] = nil
	}
}

func runGCDeep(ctx context.Context, e *env) {
	old := debug.SetGCPercent(20)
	defer debug.SetGCPercent(old)
	var wg sync.WaitGroup
	for i := 0; i < 2*e.procs; i++ {
		wg.Add(1)
		go func(i int) {
			defer wg.Done()
			c := make(chan int)
			go func() {
				for range c {
				}
			}()
			seed := uint64(i)*7919 + 1
			for j := 0; e.more(); j++ {
				seed = seed*6364136223846793005 + 1442695040888963407
				descend(uint(seed>>16), 20+int(seed>>58), func() {
					keep[(i+j)%len(keep)] = tree(5)
					c <- j
				})
			}
			close(c)
		}(i)
	}
	wg.Wait()
}

func runSTW(ctx context.Context, e *env) {
	var ms runtime.MemStats
	buf := make([]byte, 1<<16)
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	check(err)
	defer null.Close()
	for i := 0; e.more(); i++ {
		runtime.ReadMemStats(&ms)
		runtime.Stack(buf, true)
		pprof.Lookup("goroutine").WriteTo(io.Discard, 0)
		if i%4 == 0 {
			n := runtime.GOMAXPROCS(0)
			runtime.GOMAXPROCS(n + 1)
			runtime.GOMAXPROCS(n)
			debug.SetGCPercent(100 + i%7)
			debug.SetMemoryLimit(1<<40 + int64(i))
		}
		if i%16 == 0 {
			debug.FreeOSMemory()
			debug.WriteHeapDump(null.Fd())
			pprof.Lookup("heap").WriteTo(io.Discard, 0)
			metrics.Read([]metrics.Sample{{Name: "/gc/heap/live:bytes"}})
		}
		allThreads()
	}
}

type small struct {
	p *small
	n int
}

func runAlloc(ctx context.Context, e *env) {
	var wg sync.WaitGroup
	for i := 0; i < 2; i++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			var head *small
			for j := 0; e.more(); j++ {
				head = &small{p: head, n: j}
				if j%100 == 0 {
					head = nil
				}
				b := make([]byte, j%700)
				sink.Store(&b)
				if j%500 == 0 {
					big := make([]byte, 200<<10)
					sink.Store(&big)
					wait := make(chan int)
					go func() {
						var a [9000]byte
						touch(a[:], j)
						close(wait)
					}()
					<-wait
				}
				if j%1000 == 999 {
					runtime.GC()
				}
			}
		}()
	}
	wg.Wait()
}

//go:noinline
func touch(b []byte, j int) { b[j%len(b)] = 1 }

// runBigSweep keeps many small spans to sweep and then asks for large objects:
// each must sweep a share of the heap before it gets its pages, which makes
// long sweep ranges.
func runBigSweep(ctx context.Context, e *env) {
	old := debug.SetGCPercent(400)
	defer debug.SetGCPercent(old)
	for e.more() {
		for i := range keep {
			keep[i] = tree(13)
		}
		for i := 0; i < 12 && e.more(); i++ {
			b := make([]byte, 8<<20)
			sink.Store(&b)
		}
	}
}

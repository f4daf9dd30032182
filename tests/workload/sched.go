// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"math/rand"
	"runtime"
	"sync"
	"time"
)

func init() {
	register(scenario{name: "chan", about: "unbuffered ping-pong and a buffered fan-in", run: runChan})
	register(scenario{name: "select", about: "select over channels, a ticker and a done channel", run: runSelect})
	register(scenario{name: "mutex", about: "contended Mutex, RWMutex, Cond, WaitGroup, Once", run: runMutex})
	register(scenario{name: "sleep", about: "sleepers, timers, AfterFunc, tickers", run: runSleep})
	register(scenario{name: "gosched", about: "Gosched, busy goroutines that get preempted, LockOSThread", run: runGosched})
	register(scenario{name: "manyg", about: "thousands of short goroutines", run: runManyG})
	register(scenario{name: "manyp", about: "work spread on 32 Ps", before: func(e *env) func() {
		old := runtime.GOMAXPROCS(32)
		return func() { runtime.GOMAXPROCS(old) }
	}, run: runManyP})
	register(scenario{name: "deep", about: "chan ops under deep recursion with many distinct stacks", run: runDeep})
	register(scenario{name: "midstart", about: "trace starts while goroutines already block, run, sleep and sit in syscalls",
		before: beforeMid, run: runMid})
	register(scenario{name: "nilwait", about: "goroutines that block forever, and panics that end goroutines", run: runForever})
}

func runChan(ctx context.Context, e *env) {
	var wg sync.WaitGroup
	for i := 0; i < 3; i++ {
		a, b := make(chan int), make(chan int)
		wg.Add(2)
		go func() {
			defer wg.Done()
			defer close(a)
			for e.more() {
				a <- 1
				<-b
			}
		}()
		go func() {
			defer wg.Done()
			for v := range a {
				b <- v
			}
		}()
	}
	fan := make(chan int, 4)
	var pw sync.WaitGroup
	for i := 0; i < 3; i++ {
		pw.Add(1)
		go func() {
			defer pw.Done()
			for e.more() {
				fan <- 1
			}
		}()
	}
	go func() { pw.Wait(); close(fan) }()
	for range fan {
	}
	wg.Wait()
}

func runSelect(ctx context.Context, e *env) {
	done := make(chan struct{})
	in := make(chan int)
	alt := make(chan string, 1)
	var wg sync.WaitGroup
	for i := 0; i < 4; i++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			tick := time.NewTicker(3 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-in:
				case s := <-alt:
					_ = s
				case <-tick.C:
				case <-done:
					return
				}
			}
		}()
	}
	for e.more() {
		select {
		case in <- 1:
		case alt <- "x":
		}
	}
	close(done)
	wg.Wait()
}

func runMutex(ctx context.Context, e *env) {
	var mu sync.Mutex
	var rw sync.RWMutex
	var wg sync.WaitGroup
	shared := 0
	for i := 0; i < 8; i++ {
		wg.Add(1)
		go func(i int) {
			defer wg.Done()
			r := rand.New(rand.NewSource(int64(i)))
			for e.more() {
				mu.Lock()
				shared++
				if r.Intn(4) == 0 {
					runtime.Gosched()
				}
				mu.Unlock()
				if r.Intn(5) == 0 {
					rw.Lock()
					runtime.Gosched()
					rw.Unlock()
				} else {
					rw.RLock()
					_ = shared
					rw.RUnlock()
				}
			}
		}(i)
	}
	var cmu sync.Mutex
	cond := sync.NewCond(&cmu)
	gen, stop := 0, false
	for i := 0; i < 3; i++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			cmu.Lock()
			defer cmu.Unlock()
			seen := 0
			for !stop {
				for gen == seen && !stop {
					cond.Wait()
				}
				seen = gen
			}
		}()
	}
	for e.more() {
		cmu.Lock()
		gen++
		cmu.Unlock()
		if gen%3 == 0 {
			cond.Broadcast()
		} else {
			cond.Signal()
		}
		runtime.Gosched()
	}
	cmu.Lock()
	stop = true
	cmu.Unlock()
	cond.Broadcast()
	wg.Wait()
}

func runSleep(ctx context.Context, e *env) {
	var wg sync.WaitGroup
	for i := 0; i < 6; i++ {
		wg.Add(1)
		go func(i int) {
			defer wg.Done()
			for e.more() {
				time.Sleep(time.Duration(50*(i+1)) * time.Microsecond)
			}
		}(i)
	}
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for e.more() {
		fired := make(chan struct{})
		time.AfterFunc(300*time.Microsecond, func() { close(fired) })
		<-fired
		<-tick.C
		c, cancel := context.WithTimeout(ctx, 200*time.Microsecond)
		<-c.Done()
		cancel()
	}
	wg.Wait()
}

//go:noinline
func burn(n int) int {
	x := 1
	for i := 0; i < n; i++ {
		x = x*1103515245 + 12345
	}
	return x
}

func runGosched(ctx context.Context, e *env) {
	var wg sync.WaitGroup
	for i := 0; i < 2*e.procs; i++ {
		wg.Add(1)
		go func(i int) {
			defer wg.Done()
			if i%2 == 0 {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
			}
			for e.more() {
				if i%2 == 0 {
					runtime.Gosched()
				}
				burn(40000)
			}
		}(i)
	}
	// A locked thread that exits with its goroutine.
	wg.Add(1)
	go func() {
		defer wg.Done()
		runtime.LockOSThread()
		time.Sleep(time.Millisecond)
	}()
	wg.Wait()
}

func runManyG(ctx context.Context, e *env) {
	const wave = 2000
	for e.more() {
		var wg sync.WaitGroup
		gate := make(chan struct{})
		for i := 0; i < wave; i++ {
			wg.Add(1)
			go func() {
				defer wg.Done()
				<-gate
			}()
			if i%64 == 0 && !e.more() {
				break
			}
		}
		close(gate)
		wg.Wait()
	}
}

func runManyP(ctx context.Context, e *env) {
	var wg sync.WaitGroup
	for i := 0; i < 64; i++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			c := make(chan int, 1)
			for e.more() {
				go func() { burn(2000); c <- 1 }()
				<-c
			}
		}()
	}
	wg.Wait()
}

//go:noinline
func descend(path uint, depth int, f func()) {
	if depth == 0 {
		f()
		return
	}
	// Different call sites give different PCs, so the path makes the stack.
	switch path & 3 {
	case 0:
		descend(path>>2, depth-1, f)
	case 1:
		descend(path>>2|1<<40, depth-1, f)
	case 2:
		descend(path>>2, depth-1, f)
	default:
		descend(path>>2, depth-1, f)
	}
}

func runDeep(ctx context.Context, e *env) {
	c := make(chan int)
	go func() {
		for range c {
		}
	}()
	r := rand.New(rand.NewSource(7))
	for e.more() {
		descend(uint(r.Uint64()), 2+r.Intn(160), func() { c <- 1 })
	}
	close(c)
}

var midStop = make(chan struct{})

func beforeMid(e *env) func() {
	e.start = time.Now()
	rd, wr := blockingPipe()
	go readPipe(rd)                       // in a syscall when the trace starts
	go func() { <-midStop }()             // chan receive
	go func() { time.Sleep(time.Hour) }() // sleep
	go func() { select {} }()
	var mu sync.Mutex
	mu.Lock()
	go func() { mu.Lock(); mu.Unlock() }()
	for i := 0; i < e.procs; i++ { // running, and runnable behind it
		go func() {
			for {
				select {
				case <-midStop:
					return
				default:
					burn(100000)
				}
			}
		}()
	}
	go func() {
		runtime.LockOSThread()
		<-midStop
	}()
	time.Sleep(20 * time.Millisecond)
	go func() {
		time.Sleep(e.dur / 2)
		writePipe(wr) // the syscall ends within the trace
		mu.Unlock()
	}()
	return nil
}

func runMid(ctx context.Context, e *env) {
	for e.more() && e.left() > 0 {
		time.Sleep(time.Millisecond)
	}
	close(midStop)
}

func runForever(ctx context.Context, e *env) {
	go func() { select {} }()
	go func() { var c chan int; <-c }()
	go func() { var c chan int; c <- 1 }()
	go func() { runtime.Goexit() }()
	var wg sync.WaitGroup
	for e.more() {
		wg.Add(1)
		go func() {
			defer wg.Done()
			defer func() { recover() }()
			panic("on purpose")
		}()
		wg.Wait()
		time.Sleep(200 * time.Microsecond)
	}
}

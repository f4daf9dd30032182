// SPDX-License-Identifier: Apache-2.0

// Planted works as a small shop does, and then has one fault that is known: which goroutines it is about, where in the
// source it lies, how long it takes. Reports and explanations must name it (tests/e2e/test_planted.py).
//
//	planted -fault NAME -good DURATION -lasts DURATION -out TRACE
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/trace"
	"sync"
	"syscall"
	"time"
)

// A fault is planted while requests go on.
var faults = map[string]func(*shop){
	"none":     func(*shop) {},
	"slow":     (*shop).plantSlow,
	"convoy":   (*shop).plantConvoy,
	"leak":     (*shop).plantLeak,
	"deadlock": (*shop).plantDeadlock,
	"assist":   (*shop).plantAssist,
	"starved":  (*shop).plantStarved,
}

type job struct {
	work time.Duration
	done chan struct{}
}

type shop struct {
	stock sync.Mutex
	jobs  chan job
	lasts time.Duration // a fault that goes on
}

func main() {
	fault := flag.String("fault", "none", "which one is planted")
	good := flag.Duration("good", time.Second, "how long all is well before")
	lasts := flag.Duration("lasts", 500*time.Millisecond, "how long a fault goes on that ends")
	out := flag.String("out", "", "the trace")
	flag.Parse()
	plant, ok := faults[*fault]
	if !ok || *out == "" {
		flag.Usage()
		os.Exit(2)
	}
	file, err := os.Create(*out)
	if err == nil {
		err = trace.Start(file)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	s := &shop{jobs: make(chan job), lasts: *lasts}
	go s.worker()
	until := time.Now().Add(*good)
	for time.Now().Before(until) {
		s.checkout(100 * time.Microsecond)
		time.Sleep(2 * time.Millisecond)
	}
	plant(s)
	trace.Stop()
	file.Close()
}

// One request: what is asked of the worker takes so long.
func (s *shop) checkout(work time.Duration) {
	ctx, task := trace.NewTask(context.Background(), "checkout")
	defer task.End()
	defer trace.StartRegion(ctx, "reserve").End()
	j := job{work, make(chan struct{})}
	s.jobs <- j
	<-j.done
}

func (s *shop) worker() {
	for j := range s.jobs {
		s.reserve(j.work)
		close(j.done)
	}
}

func (s *shop) reserve(work time.Duration) {
	s.stock.Lock()
	defer s.stock.Unlock()
	spin(work)
}

//go:noinline
func spin(long time.Duration) {
	for until := time.Now().Add(long); time.Now().Before(until); {
	}
}

// A system call that holds the stock: the disk is slow.
//
//go:noinline
func (s *shop) flush(long time.Duration, locked chan<- struct{}) {
	s.stock.Lock()
	defer s.stock.Unlock()
	close(locked)
	pause := syscall.NsecToTimespec(int64(long))
	syscall.Nanosleep(&pause, nil)
}

// slow: one request needs 20 ms of the worker, which waits for the stock; a flush has that for 120 ms.
func (s *shop) plantSlow() {
	locked := make(chan struct{})
	go s.flush(120*time.Millisecond, locked)
	<-locked
	s.checkout(20 * time.Millisecond)
}

// convoy: eight clerks take the stock for 2 ms each, in turn.
func (s *shop) plantConvoy() {
	var all sync.WaitGroup
	for i := 0; i < 8; i++ {
		all.Add(1)
		go s.clerk(&all)
	}
	all.Wait()
}

func (s *shop) clerk(all *sync.WaitGroup) {
	defer all.Done()
	for until := time.Now().Add(s.lasts); time.Now().Before(until); {
		s.reserve(2 * time.Millisecond)
	}
}

// leak: two hundred goroutines wait for answers that never come.
func (s *shop) plantLeak() {
	for i := 0; i < 200; i++ {
		go s.forgotten(make(chan int))
		time.Sleep(2 * time.Millisecond)
	}
}

func (s *shop) forgotten(answer chan int) {
	<-answer
}

// deadlock: three goroutines each hold one lock and want the next one's. Before that they take turns without harm.
func (s *shop) plantDeadlock() {
	var locks [3]sync.Mutex
	var held sync.WaitGroup
	for i := range locks {
		locks[i].Lock()
		time.Sleep(time.Millisecond)
		locks[i].Unlock()
	}
	held.Add(3)
	for i := range locks {
		go embrace(&locks[i], &locks[(i+1)%3], &held)
	}
	time.Sleep(s.lasts)
}

func embrace(mine, next *sync.Mutex, held *sync.WaitGroup) {
	mine.Lock()
	held.Done()
	held.Wait()
	next.Lock()
}

// assist: a heap that may hardly grow makes each allocation help the collector.
func (s *shop) plantAssist() {
	keep := make([][]byte, 0, 1<<16)
	debug.SetGCPercent(5)
	for until := time.Now().Add(s.lasts); time.Now().Before(until); {
		keep = append(keep, hoard())
		if len(keep) == cap(keep) {
			keep = keep[:0]
		}
	}
	debug.SetGCPercent(100)
	runtime.KeepAlive(keep)
}

//go:noinline
func hoard() []byte {
	return make([]byte, 4096)
}

// starved: goroutines that only compute have every P, and a request waits for one.
func (s *shop) plantStarved() {
	var all sync.WaitGroup
	for i := 0; i < 4*runtime.GOMAXPROCS(0); i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			spin(s.lasts)
		}()
	}
	for i := 0; i < 20; i++ {
		s.checkout(100 * time.Microsecond)
	}
	all.Wait()
}

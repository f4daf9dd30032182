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
	"sync/atomic"
	"syscall"
	"time"
)

// A fault is planted while requests go on.
var faults = map[string]func(*shop){
	"none":      func(*shop) {},
	"slow":      (*shop).plantSlow,
	"convoy":    (*shop).plantConvoy,
	"leak":      (*shop).plantLeak,
	"deadlock":  (*shop).plantDeadlock,
	"fsync":     (*shop).plantFsync,
	"assist":    (*shop).plantAssist,
	"starved":   (*shop).plantStarved,
	"misnested": (*shop).plantMisnested,
}

type job struct {
	work  time.Duration
	begun []func() // called before the worker waits for the stock
	done  chan struct{}
}

type shop struct {
	stock sync.Mutex
	jobs  chan job
	lasts time.Duration // how long a lasting fault lasts
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
		err = trace.Start(&written{file: file})
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
}

// checkout serves one request; the worker needs `work` for its part.
func (s *shop) checkout(work time.Duration, begun ...func()) {
	ctx, task := trace.NewTask(context.Background(), "checkout")
	defer task.End()
	defer trace.StartRegion(ctx, "reserve").End()
	j := job{work, begun, make(chan struct{})}
	s.jobs <- j
	<-j.done
}

func (s *shop) worker() {
	for j := range s.jobs {
		for _, call := range j.begun {
			call()
		}
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

// A pipe: a call that reads a byte from it does not return before letGo() is called.
type disk [2]int

func newDisk() (d disk) {
	if err := syscall.Pipe(d[:]); err != nil {
		panic(err)
	}
	return d
}

func (d disk) letGo() { syscall.Write(d[1], []byte{0}) }

// A system call that holds the stock: the disk is slow.
//
//go:noinline
func (s *shop) flush(slow disk, locked chan<- struct{}) {
	s.stock.Lock()
	defer s.stock.Unlock()
	close(locked)
	syscall.Read(slow[0], make([]byte, 1))
}

// slow: one request needs 20 ms of the worker, which first waits for the stock. From then on a flush holds the stock for
// s.lasts.
func (s *shop) plantSlow() {
	slow, locked := newDisk(), make(chan struct{})
	go s.flush(slow, locked)
	<-locked
	s.checkout(20*time.Millisecond, func() { time.AfterFunc(s.lasts, slow.letGo) })
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
	for goesOn := s.fault(); goesOn(); {
		s.reserve(2 * time.Millisecond)
	}
}

// leak: ever more goroutines wait for answers that never come.
func (s *shop) plantLeak() {
	for until := time.Now().Add(s.lasts); time.Now().Before(until); {
		go s.forgotten(make(chan int))
		time.Sleep(50 * time.Millisecond)
	}
}

func (s *shop) forgotten(answer chan int) {
	<-answer
}

// deadlock: three goroutines each hold one lock and want the next one's. Before that they do so without harm, two at a time, so that
// each has waited for its neighbour and got its lock.
func (s *shop) plantDeadlock() {
	var locks [3]sync.Mutex
	var turns [len(locks)]chan func()
	var held sync.WaitGroup
	done := make(chan struct{})
	for i := range locks {
		turns[i] = make(chan func())
		go embrace(&locks[i], &locks[(i+1)%len(locks)], turns[i], done)
	}
	for turn := 0; turn < 60; turn++ {
		turns[(turn+1)%len(locks)] <- func() { time.Sleep(3 * time.Millisecond) }
		turns[turn%len(locks)] <- func() { time.Sleep(time.Millisecond) }
		<-done
		<-done
	}
	held.Add(len(locks))
	for i := range turns {
		turns[i] <- func() {
			held.Done()
			held.Wait()
		}
	}
	for goesOn := s.fault(); goesOn(); {
		time.Sleep(time.Millisecond)
	}
}

func embrace(mine, next *sync.Mutex, turns <-chan func(), done chan<- struct{}) {
	for between := range turns {
		take(mine, next, between)
		done <- struct{}{}
	}
}

func take(mine, next *sync.Mutex, between func()) {
	mine.Lock()
	between()
	next.Lock()
	next.Unlock()
	mine.Unlock()
}

// fsync: the ledger is flushed with the stock locked. It takes no time, until the disk is slow.
func (s *shop) plantFsync() {
	ledger, err := os.CreateTemp("", "planted")
	if err != nil {
		panic(err)
	}
	defer os.Remove(ledger.Name())
	slow, flush, locked := newDisk(), make(chan struct{}), make(chan struct{})
	go s.flusher(ledger, slow, flush, locked)
	for i := 0; i < 100; i++ {
		flush <- struct{}{}
		<-locked
		time.AfterFunc(time.Millisecond, slow.letGo)
		s.checkout(100 * time.Microsecond)
	}
	flush <- struct{}{}
	<-locked
	go func() {
		for goesOn := s.fault(); goesOn(); {
			time.Sleep(time.Millisecond)
		}
		slow.letGo()
	}()
	s.checkout(100 * time.Microsecond)
}

func (s *shop) flusher(ledger *os.File, slow disk, flush <-chan struct{}, locked chan<- struct{}) {
	for range flush {
		s.stock.Lock()
		locked <- struct{}{}
		slowSync(ledger, slow)
		s.stock.Unlock()
	}
}

//go:noinline
func slowSync(ledger *os.File, slow disk) {
	ledger.Sync()
	syscall.Read(slow[0], make([]byte, 1))
}

// assist: a heap that may hardly grow makes each allocation help the collector. There are so many allocating goroutines that
// none of the runtime's own goroutines, which also have to help, helps the most of all.
func (s *shop) plantAssist() {
	var all sync.WaitGroup
	debug.SetGCPercent(5)
	for i := 0; i < 8; i++ {
		all.Add(1)
		go s.hoarder(&all)
	}
	all.Wait()
	debug.SetGCPercent(100)
}

func (s *shop) hoarder(all *sync.WaitGroup) {
	defer all.Done()
	keep := make([]*page, 1<<11)
	var worked debug.GCStats
	for i, goesOn := 0, s.fault(); goesOn() || worked.NumGC < 8; i++ { // on a slow machine that takes longer
		keep[i%len(keep)] = hoard()
		if i%1024 == 0 {
			debug.ReadGCStats(&worked)
		}
	}
	runtime.KeepAlive(keep)
}

// A page of pointers: the collector has to look at each of them.
type page [512]*page

//go:noinline
func hoard() *page {
	return new(page)
}

// starved: goroutines that only compute have every P, and a request waits for one.
func (s *shop) plantStarved() {
	var all sync.WaitGroup
	for i := 0; i < 4*runtime.GOMAXPROCS(0); i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for goesOn := s.fault(); goesOn(); {
				spin(time.Millisecond)
			}
		}()
	}
	for i := 0; i < 20; i++ {
		s.checkout(100 * time.Microsecond)
	}
	all.Wait()
}

// misnested: two requests that one goroutine sends have a region of one name, and end in another order than they began. Go's
// reader refuses the trace from there on.
func (s *shop) plantMisnested() {
	first, one := trace.NewTask(context.Background(), "first")
	second, other := trace.NewTask(context.Background(), "second")
	s.dispatch(first, second)
	one.End()
	other.End()
	s.checkout(100 * time.Microsecond)
}

//go:noinline
func (s *shop) dispatch(first, second context.Context) {
	sends, alsoSends := trace.StartRegion(first, "send"), trace.StartRegion(second, "send")
	sends.End()
	alsoSends.End()
}

// A fault that lasts for s.lasts. On a slow machine it lasts for some generations of the trace, if their ends are marked.
func (s *shop) fault() func() bool {
	until, least := time.Now().Add(s.lasts), generations.Load()+5
	return func() bool {
		return time.Now().Before(until) || marksEnds.Load() && generations.Load() < least
	}
}

var (
	generations atomic.Int64 // generations in the trace so far
	marksEnds   atomic.Bool  // from Go 1.26 on, a generation's end is an event, which is written alone
)

// The trace's file.
type written struct{ file *os.File }

func (w *written) Write(bytes []byte) (int, error) {
	if version := ""; len(bytes) >= 16 {
		if n, _ := fmt.Sscanf(string(bytes[:13]), "go 1.%s trace", &version); n == 1 && version >= "26" {
			marksEnds.Store(true)
		}
	}
	if len(bytes) == 1 && bytes[0] == endOfGeneration {
		generations.Add(1)
	}
	return w.file.Write(bytes)
}

const endOfGeneration = 52

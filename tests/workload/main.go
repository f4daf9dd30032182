// SPDX-License-Identifier: Apache-2.0

// Command tracegen runs named scenarios under the Go execution tracer and
// writes the trace to a file. It builds with Go 1.22 and later; scenarios that
// need a newer release live in files with a build constraint.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/trace"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// env is what a scenario sees of the run.
type env struct {
	start time.Time
	dur   time.Duration
	max   int64
	n     atomic.Int64
	procs int
}

// more counts one operation and says whether another may follow. The clock is
// looked at on every call; budget (-ops) bounds the size of a trace.
func (e *env) more() bool {
	n := e.n.Add(1)
	if e.max > 0 && n > e.max {
		return false
	}
	return time.Since(e.start) < e.dur
}

// wait sleeps to the end of the run, for background activity.
func (e *env) left() time.Duration { return e.dur - time.Since(e.start) }

type scenario struct {
	name  string
	about string
	// before runs before the trace starts; it may be nil. Its result is called
	// after the trace has stopped.
	before func(e *env) func()
	run    func(ctx context.Context, e *env)
	// own is set when the scenario writes the trace itself (flight recorder).
	own func(e *env, w io.Writer) error
}

var scenarios = map[string]scenario{}

func register(s scenario) { scenarios[s.name] = s }

var sink atomic.Pointer[[]byte]

func main() {
	name := flag.String("scenario", "", "comma-separated scenarios, run side by side; 'list' prints them")
	secs := flag.Float64("seconds", 0.3, "how long to run")
	ops := flag.Int64("ops", 0, "stop after this many operations (0: no limit)")
	out := flag.String("o", "", "trace file; '-' is stdout, 'discard' counts and drops, 'off' does not trace")
	procs := flag.Int("procs", 0, "GOMAXPROCS (0: leave)")
	stats := flag.Bool("stats", false, "print operations, seconds and trace bytes")
	flag.Parse()

	if *name == "list" || *name == "" {
		var names []string
		for n := range scenarios {
			names = append(names, n)
		}
		sort.Strings(names)
		for _, n := range names {
			fmt.Printf("%-10s %s\n", n, scenarios[n].about)
		}
		return
	}
	if *procs > 0 {
		runtime.GOMAXPROCS(*procs)
	}
	e := &env{dur: time.Duration(*secs * float64(time.Second)), max: *ops, procs: runtime.GOMAXPROCS(0)}
	var list []scenario
	for _, n := range strings.Split(*name, ",") {
		s, ok := scenarios[n]
		if !ok {
			fmt.Fprintf(os.Stderr, "tracegen: scenario %q is not in this build (%s)\n", n, runtime.Version())
			os.Exit(3)
		}
		list = append(list, s)
	}

	var w io.Writer
	cw := &countWriter{}
	switch *out {
	case "", "off":
	case "discard":
		cw.w = io.Discard
		w = cw
	case "-":
		cw.w = os.Stdout
		w = cw
	default:
		f, err := os.Create(*out)
		check(err)
		defer f.Close()
		bw := bufio.NewWriterSize(f, 1<<20)
		defer bw.Flush()
		cw.w = bw
		w = cw
	}

	if list[0].own != nil {
		e.start = time.Now()
		check(list[0].own(e, w))
		return
	}

	var after []func()
	for _, s := range list {
		if s.before != nil {
			if f := s.before(e); f != nil {
				after = append(after, f)
			}
		}
	}
	if w != nil {
		check(trace.Start(w))
	}
	e.start = time.Now()
	var wg sync.WaitGroup
	for _, s := range list {
		wg.Add(1)
		go func(s scenario) {
			defer wg.Done()
			s.run(context.Background(), e)
		}(s)
	}
	wg.Wait()
	took := time.Since(e.start)
	if w != nil {
		trace.Stop()
	}
	for i := len(after) - 1; i >= 0; i-- {
		after[i]()
	}
	if *stats {
		fmt.Fprintf(os.Stderr, "%s ops=%d seconds=%.4f bytes=%d\n", *name, e.n.Load(), took.Seconds(), cw.n)
	}
}

type countWriter struct {
	w io.Writer
	n int64
}

func (c *countWriter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return c.w.Write(p)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "tracegen:", err)
		os.Exit(1)
	}
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"runtime/pprof"
	"runtime/trace"
	"strings"
	"sync"
	"time"
)

func init() {
	register(scenario{name: "annot", about: "tasks, nested tasks, regions, nested regions, logs", run: runAnnot})
	register(scenario{name: "labels", about: "pprof.Do labels and CPU profile samples while tracing", run: runLabels})
	register(scenario{name: "longrun", about: "light load for several generations; tasks and regions stay open across them", run: runLong})
}

var odd = []string{
	"", "plain", "tab\tnewline\nreturn\r", `quote " backslash \`, "nul\x00byte", "bad utf8 \xff\xfe\xc3\x28",
	"snow \u2603 clef \U0001d11e", "del\x7f nbsp\u00a0 zwj\u200d bom\ufeff line\u2028", "\u0085\u0301 combining", strings.Repeat("long ", 400),
}

func runAnnot(ctx context.Context, e *env) {
	var wg sync.WaitGroup
	for g := 0; g < 3; g++ {
		wg.Add(1)
		go func(g int) {
			defer wg.Done()
			for i := 0; e.more(); i++ {
				c, outer := trace.NewTask(ctx, fmt.Sprintf("outer-%d", i%5))
				trace.Log(c, "key", fmt.Sprint("message ", i%20))
				trace.Logf(c, odd[i%len(odd)], "%s", odd[(i/3)%len(odd)])
				trace.Log(context.Background(), "no task", "background")
				trace.WithRegion(c, "work", func() {
					r := trace.StartRegion(c, "inner "+odd[i%len(odd)])
					c2, in := trace.NewTask(c, "inner")
					done := make(chan struct{})
					go func() {
						defer close(done)
						trace.WithRegion(c2, "child goroutine", func() { trace.Log(c2, "where", "child") })
						c3, leaf := trace.NewTask(c2, "leaf")
						trace.Log(c3, "", "empty category")
						if i%7 != 0 {
							leaf.End() // one in seven is never ended
						}
					}()
					<-done
					in.End()
					r.End()
				})
				trace.WithRegion(context.Background(), "no task region", func() {})
				outer.End()
				if i%3 == 0 {
					outer.End() // ended twice
				}
				if i%50 == 49 {
					trace.StartRegion(context.Background(), "left open")
					break
				}
			}
		}(g)
	}
	wg.Wait()
	for e.more() {
		c, t := trace.NewTask(ctx, "tail")
		trace.WithRegion(c, "tail region", func() { time.Sleep(50 * time.Microsecond) })
		t.End()
	}
}

func runLabels(ctx context.Context, e *env) {
	check(pprof.StartCPUProfile(discard{}))
	defer pprof.StopCPUProfile()
	var wg sync.WaitGroup
	for i := 0; i < 3; i++ {
		wg.Add(1)
		go func(i int) {
			defer wg.Done()
			for e.more() {
				pprof.Do(ctx, pprof.Labels("worker", fmt.Sprint(i), "kind", "burn"), func(ctx context.Context) {
					burn(2000000)
					pprof.Do(ctx, pprof.Labels("phase", "two"), func(context.Context) { burn(500000) })
				})
			}
		}(i)
	}
	wg.Wait()
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

func runLong(ctx context.Context, e *env) {
	c, task := trace.NewTask(ctx, "whole run")
	defer task.End()
	reg := trace.StartRegion(c, "whole region")
	defer reg.End()
	rd, wr := blockingPipe()
	go readPipe(rd) // sits in a syscall over generation boundaries
	defer writePipe(wr)
	go func() {
		c2, t := trace.NewTask(c, "sleeper")
		trace.WithRegion(c2, "sleeping", func() { time.Sleep(e.dur * 3 / 4) })
		t.End()
	}()
	ch := make(chan int)
	go func() {
		for range ch {
		}
	}()
	for i := 0; e.more() && e.left() > 0; i++ {
		ch <- i
		trace.Log(c, "tick", fmt.Sprint(i%100))
		if i%10 == 0 {
			keep[i/10%len(keep)] = tree(10)
		}
		time.Sleep(2 * time.Millisecond)
	}
	close(ch)
}

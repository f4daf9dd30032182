// SPDX-License-Identifier: Apache-2.0

// go-faults [-plain] copy|growth|nothing triggers a fault of Go that ends traced programs (the table in agent/go/guard.go),
// traced by the agent, or with -plain by trace.Start alone. It prints the agent's status.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"runtime"
	"runtime/debug"
	"runtime/trace"
	"sync"
	"time"

	"tracecollect.invalid/traceagent"
)

type record [32]int

var (
	mutex sync.Mutex
	sink  int
)

//go:noinline
func load(from *record) record { return *from }

// deref has a frame of its own, and dereferences nil.
//
//go:noinline
func deref() int {
	var nothing *int
	runtime.KeepAlive(&nothing)
	return *nothing
}

//go:noinline
func grow(calls int) int {
	var room [512]byte
	room[calls%len(room)] = 1
	if calls == 0 {
		return int(room[0])
	}
	return grow(calls-1) + int(room[calls%len(room)])
}

// scribble overwrites every word of a new goroutine's stack.
//
// go:noinline
func scribble() (sum uint64) {
	var room [180]uint64
	for i := range room {
		room[i] = 0x4141414141414141
	}
	for _, n := range room {
		sum += n
	}
	return sum
}

// copied recovers from a nil dereference while a large value is copied. The next event needs a stack.
//
// go:noinline
func copied() {
	defer func() {
		recover()
		trace.Log(context.Background(), "handler", "recovered")
	}()
	load(nil)
}

// grown recovers, and then its stack is moved. Other goroutines get the old memory before the next event needs a stack.
//
// go:noinline
func grown() {
	defer func() {
		recover()
		sink += grow(40)
		over, done := make(chan bool), make(chan uint64)
		defer close(over)
		const others = 30
		for range others {
			go func() {
				done <- scribble()
				<-over
			}()
		}
		for range others {
			<-done
		}
		mutex.Lock()
		time.Sleep(50 * time.Microsecond)
		mutex.Unlock()
	}()
	sink += deref()
}

func meet(fault string) {
	switch fault {
	case "copy":
		for range 100 {
			copied()
		}
	case "growth":
		debug.SetGCPercent(20)
		for range 100 {
			var waiting sync.WaitGroup
			for range 20 {
				waiting.Add(1)
				go func() {
					defer waiting.Done()
					grown()
				}()
			}
			waiting.Wait()
		}
	}
}

func main() {
	isPlain := flag.Bool("plain", false, "no agent")
	flag.Parse()
	if *isPlain {
		if err := trace.Start(io.Discard); err != nil {
			log.Fatal(err)
		}
		meet(flag.Arg(0))
		trace.Stop()
		return
	}
	agent, err := traceagent.Start(traceagent.Config{}) // configured by the environment only
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(agent)
	meet(flag.Arg(0))
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	agent.Stop(ctx)
	fmt.Println(agent)
}

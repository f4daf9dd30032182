// SPDX-License-Identifier: Apache-2.0

// Dense-trace writes a Go trace that is nearly all scheduling: pairs of goroutines that pass a token.
// The collector's worst case: the most events per byte and the least work between them.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime/trace"
	"sync"
	"time"
)

func main() {
	out := flag.String("o", "", "trace file")
	passes := flag.Int("passes", 3000000, "times each pair passes its token")
	pairs := flag.Int("pairs", 2, "pairs of goroutines")
	burst := flag.Int("burst", 0, "each pair sleeps a millisecond after so many passes (0: never)")
	flag.Parse()
	if err := run(*out, *passes, *pairs, *burst); err != nil {
		fmt.Fprintln(os.Stderr, "dense-trace:", err)
		os.Exit(1)
	}
}

func run(out string, passes, pairs, burst int) error {
	file, err := os.Create(out)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := trace.Start(file); err != nil {
		return err
	}
	var wg sync.WaitGroup
	for i := 0; i < pairs; i++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			pass(passes, burst)
		}()
	}
	wg.Wait()
	trace.Stop()
	return file.Close()
}

func pass(times, burst int) {
	there, back := make(chan bool), make(chan bool)
	go func() {
		for range there {
			back <- true
		}
		close(back)
	}()
	for i := 0; i < times; i++ {
		there <- true
		<-back
		if burst > 0 && i%burst == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	close(there)
	<-back
}

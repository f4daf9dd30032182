// SPDX-License-Identifier: Apache-2.0

// Go-reader is the peer of our reader: it reads traces with golang.org/x/exp/trace, the published form of
// the toolchain's own reader, and prints for each "FILE<TAB>EVENTS<TAB>CPU SECONDS" of the best round.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/exp/trace"
)

func main() {
	rounds := flag.Int("n", 2, "rounds; the best counts")
	flag.Parse()
	runtime.GOMAXPROCS(1)
	for _, name := range flag.Args() {
		events, best := 0, 0.0
		for i := 0; i < *rounds; i++ {
			start := cpuSeconds()
			n, err := read(name)
			if err != nil {
				fmt.Fprintln(os.Stderr, "go-reader:", name, err)
				os.Exit(1)
			}
			if took := cpuSeconds() - start; i == 0 || took < best {
				events, best = n, took
			}
		}
		fmt.Printf("%s\t%d\t%.3f\n", name, events, best)
	}
}

func read(name string) (events int, err error) {
	file, err := os.Open(name)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	reader, err := trace.NewReader(bufio.NewReaderSize(file, 1<<20))
	for err == nil {
		if _, err = reader.ReadEvent(); err == nil {
			events++
		}
	}
	if err == io.EOF {
		err = nil
	}
	return events, err
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return seconds(usage.Utime) + seconds(usage.Stime)
}

// SPDX-License-Identifier: Apache-2.0

// Quiet-trace writes the Go trace of a server with little to do: an HTTP service with a pool, a lock and a log file,
// and its clients, at a steady rate. One such program is cheap; a fleet has thousands.
package main

import (
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime/trace"
	"sync"
	"time"
)

func main() {
	out := flag.String("o", "", "trace file")
	rate := flag.Int("rate", 120, "requests a second")
	seconds := flag.Int("seconds", 60, "length of the trace")
	flag.Parse()
	if err := run(*out, *rate, time.Duration(*seconds)*time.Second); err != nil {
		fmt.Fprintln(os.Stderr, "quiet-trace:", err)
		os.Exit(1)
	}
}

func run(out string, rate int, length time.Duration) error {
	file, err := os.Create(out)
	if err != nil {
		return err
	}
	defer file.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: newService()}
	go server.Serve(listener)
	defer server.Close()
	if err := trace.Start(file); err != nil {
		return err
	}
	err = load("http://"+listener.Addr().String(), rate, length)
	trace.Stop()
	if err != nil {
		return err
	}
	return file.Close()
}

type service struct {
	jobs chan chan int
	lock sync.Mutex
	hits map[string]int
	log  *os.File
}

func newService() *service {
	log, _ := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	s := &service{jobs: make(chan chan int), hits: map[string]int{}, log: log}
	for i := 0; i < 4; i++ {
		go func() {
			for job := range s.jobs {
				job <- work(2000)
			}
		}()
	}
	return s
}

func work(n int) int {
	sum := 0
	for i := 0; i < n; i++ {
		sum += i * i
	}
	return sum
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, task := trace.NewTask(r.Context(), "request")
	defer task.End()
	answer := make(chan int)
	s.jobs <- answer
	result := <-answer
	trace.WithRegion(ctx, "count", func() {
		s.lock.Lock()
		s.hits[r.URL.Path]++
		s.lock.Unlock()
	})
	fmt.Fprintln(s.log, r.URL.Path)
	fmt.Fprintln(w, result)
}

func load(url string, rate int, length time.Duration) error {
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	for n, end := 0, time.Now().Add(length); time.Now().Before(end); n++ {
		<-tick.C
		answer, err := http.Get(fmt.Sprintf("%s/item/%d", url, n%10))
		if err != nil {
			return err
		}
		io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
	}
	return nil
}

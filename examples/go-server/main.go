// SPDX-License-Identifier: Apache-2.0

// Go-server is a small HTTP server under its own load, traced live: what `make demo` shows and what the
// end-to-end tests run. The tracing is the three lines around traceagent.Start and Stop; the rest gives
// the trace something to tell: requests, file reads, system calls that block, garbage collection.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"tracecollect.invalid/traceagent"
	"tracecollect.invalid/traceagent/tracehttp"
)

var (
	server   = flag.String("server", "", "collector: HOST:PORT, or @FILE written by its --ready-file")
	certs    = flag.String("certs", "", "folder with ca.pem, agent.pem and agent.key")
	service  = flag.String("service", "demo", "name of this service")
	instance = flag.String("instance", "", "name of this process (default HOST:PID)")
	tee      = flag.String("tee", "", "also write the trace to this file")
	spool    = flag.Uint64("spool-bytes", 0, "memory for what is not acknowledged yet (0: the agent's default)")
	seconds  = flag.Float64("seconds", 0, "end after so long (0: at SIGINT or SIGTERM)")
	clients  = flag.Int("clients", 4, "clients that send requests")
	pause    = flag.Duration("pause", 5*time.Millisecond, "each client's pause between requests")
	dense    = flag.Int("dense", 0, "pairs of goroutines that pass a token as fast as they can")
)

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "go-server:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *seconds > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(*seconds*float64(time.Second)))
		defer cancel()
	}

	config := traceagent.Config{Server: *server, Certs: *certs, Service: *service, Instance: *instance, SpoolBytes: *spool}
	if *tee != "" {
		file, err := os.Create(*tee)
		if err != nil {
			return err
		}
		defer file.Close()
		config.Tee = file
	}
	agent, err := traceagent.Start(config)
	if err != nil {
		return err
	}
	workErr := work(ctx, agent)
	deadline, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	stopErr := agent.Stop(deadline)
	report(agent)
	if workErr != nil {
		return workErr
	}
	return stopErr
}

// report prints the agent's counters as one line of JSON.
func report(agent *traceagent.Agent) { json.NewEncoder(os.Stdout).Encode(agent.Status()) }

// work serves requests and sends them until ctx ends, and reports the agent's counters twice a second.
func work(ctx context.Context, agent *traceagent.Agent) error {
	folder, err := os.MkdirTemp("", "go-server")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	handler, err := newHandler(folder)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	web := &http.Server{Handler: tracehttp.Handler(handler, nil)}
	go web.Serve(listener)
	defer web.Close()

	var wg sync.WaitGroup
	for i := 0; i < *clients; i++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			client(ctx, "http://"+listener.Addr().String())
		}()
	}
	for i := 0; i < *dense; i++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			passToken(ctx)
		}()
	}
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
			report(agent)
		}
	}
	wg.Wait()
	return nil
}

// newHandler answers /read, /write, /wait and /allocate, each with another reason to wait.
func newHandler(folder string) (http.Handler, error) {
	data := filepath.Join(folder, "data")
	if err := os.WriteFile(data, make([]byte, 256<<10), 0o600); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/read", func(w http.ResponseWriter, r *http.Request) {
		file, err := os.Open(data)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		defer file.Close()
		io.Copy(w, file)
	})
	mux.HandleFunc("/write", func(w http.ResponseWriter, r *http.Request) {
		file, err := os.CreateTemp(folder, "write")
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		defer os.Remove(file.Name())
		defer file.Close()
		file.Write(make([]byte, 64<<10))
		file.Sync()
	})
	mux.HandleFunc("/wait", func(w http.ResponseWriter, r *http.Request) {
		blockInCall(15 * time.Millisecond)
	})
	mux.HandleFunc("/allocate", func(w http.ResponseWriter, r *http.Request) {
		kept := make([][]byte, 0, 256)
		for i := 0; i < cap(kept); i++ {
			kept = append(kept, make([]byte, 16<<10))
		}
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats) // stops the world
		fmt.Fprintln(w, len(kept), stats.NumGC)
	})
	return mux, nil
}

// client sends one request after the other.
func client(ctx context.Context, url string) {
	paths := []string{"/read", "/write", "/read", "/wait", "/read", "/allocate"}
	for i := 0; ctx.Err() == nil; i++ {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+paths[i%len(paths)], nil)
		if err != nil {
			return
		}
		if response, err := http.DefaultClient.Do(request); err == nil {
			io.Copy(io.Discard, response.Body)
			response.Body.Close()
		}
		select {
		case <-ctx.Done():
		case <-time.After(*pause):
		}
	}
}

// passToken makes about the densest trace a program can: two goroutines that only wake each other.
func passToken(ctx context.Context) {
	there, back := make(chan bool), make(chan bool)
	go func() {
		for range there {
			back <- true
		}
		close(back)
	}()
	for ctx.Err() == nil {
		there <- true
		<-back
	}
	close(there)
	<-back
}

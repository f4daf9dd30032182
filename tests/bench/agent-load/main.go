// SPDX-License-Identifier: Apache-2.0

// Agent-load does a fixed amount of work under trace and prints "CPU SECONDS<TAB>TRACE BYTES<TAB>SECONDS<TAB>PEAK RSS BYTES":
// run it once with the trace thrown away and once through the agent: the difference is the agent's cost.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/trace"
	"sync"
	"syscall"
	"time"

	"tracecollect.invalid/traceagent"
)

func main() {
	server := flag.String("server", "", "collector; empty: the trace is thrown away")
	certs := flag.String("certs", "", "folder of certificates")
	operations := flag.Int("n", 100000, "requests over loopback")
	flag.Parse()
	if err := run(*server, *certs, *operations); err != nil {
		fmt.Fprintln(os.Stderr, "agent-load:", err)
		os.Exit(1)
	}
}

type counter struct{ bytes uint64 }

func (c *counter) Write(p []byte) (int, error) {
	c.bytes += uint64(len(p))
	return len(p), nil
}

func run(server, certs string, operations int) error {
	thrown := &counter{}
	var agent *traceagent.Agent
	var err error
	start := time.Now()
	if server == "" {
		err = trace.Start(thrown)
	} else {
		// The spool has room for the whole trace: dropped data costs nothing, and would make the figure too good.
		agent, err = traceagent.Start(traceagent.Config{Server: server, Certs: certs, Service: "bench", SpoolBytes: 1 << 30})
	}
	if err != nil {
		return err
	}
	if err := requests(operations); err != nil {
		return err
	}
	bytes := thrown.bytes
	if agent == nil {
		trace.Stop()
		bytes = thrown.bytes
	} else {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := agent.Stop(ctx); err != nil {
			return err
		}
		status := agent.Status()
		if bytes = status.ProducedBytes; status.LostBytes > 0 {
			return fmt.Errorf("%d of %d bytes were dropped: nothing is measured", status.LostBytes, bytes)
		}
	}
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return err
	}
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	fmt.Printf("%.3f\t%d\t%.3f\t%d\n", seconds(usage.Utime)+seconds(usage.Stime), bytes, time.Since(start).Seconds(),
		usage.Maxrss*1024)
	return nil
}

// requests sends n small requests over eight loopback connections and waits for each answer.
func requests(n int) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				io.Copy(conn, conn)
			}()
		}
	}()
	const connections = 8
	errs := make([]error, connections)
	var wg sync.WaitGroup
	for c := 0; c < connections; c++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			errs[c] = ask(listener.Addr().String(), n/connections)
		}()
	}
	wg.Wait()
	return errors.Join(errs...)
}

func ask(address string, n int) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	line := make([]byte, 64)
	for i := 0; i < n; i++ {
		if _, err := conn.Write(line); err != nil {
			return err
		}
		if _, err := io.ReadFull(conn, line); err != nil {
			return err
		}
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

//go:build linux

package traceagent

import (
	"fmt"
	"os"
	"syscall"
	"time"
)

// forward is what bench_forward.c is for the C agent:
//
//	seeded_agent_go forward SERVER CERTS TRACE [MS]
//
// It sends a trace to a running collector, one batch a call as Go's runtime does, and prints the CPU of all of it in ms
// per MB of trace. The writer waits while more is unacked than the collector gives credit for: what a full spool drops
// would cost nothing. With MS it writes one batch and then waits so long; the cost of that wait alone is subtracted.
func forward(server, certs, path string, gap time.Duration) error {
	const credit = 4 << 20
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	is, err := file.Stat()
	if err != nil {
		return err
	}
	trace, err := syscall.Mmap(int(file.Fd()), 0, int(is.Size()), syscall.PROT_READ, syscall.MAP_PRIVATE|syscall.MAP_POPULATE)
	if err != nil {
		return err
	}
	var units [][]byte
	var split splitter
	split.feed(trace, func(_ unitKind, _ uint64, unit []byte) { units = append(units, unit[:len(unit):len(unit)]) })
	s, err := begin(Config{Server: server, Certs: certs, Service: "bench"})
	if err != nil {
		return err
	}
	before := cpu()
	for range units {
		time.Sleep(gap)
	}
	waited := cpu() - before
	before = cpu()
	for _, unit := range units {
		s.write(unit)
		time.Sleep(gap)
		for changed := unacked(s.spool, credit); changed != nil; changed = unacked(s.spool, credit) {
			<-changed
		}
	}
	s.finish()
	if err := s.sync(patience()); err != nil {
		return err
	}
	fmt.Printf("%.4f\n", (cpu()-before-waited).Seconds()*1e3/(float64(len(trace))/1e6))
	if lost := s.status().LostBytes; lost > 0 {
		return fmt.Errorf("%d bytes were dropped: nothing is measured", lost)
	}
	s.close(time.Second)
	return nil
}

// unacked returns a channel that is closed when acks arrive, if more than `bytes` are not acknowledged; else nil.
func unacked(s *spool, bytes uint64) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counters.produced.bytes-s.counters.acked.bytes > bytes {
		return s.changed
	}
	return nil
}

func cpu() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

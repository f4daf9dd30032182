// SPDX-License-Identifier: Apache-2.0

//go:build linux

package traceagent

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// overload is what overloaded_agent.c is for the C agent (row 17):
//
//	seeded_agent_go overload ADDRESS CERTS SECONDS MB_S
//
// Eight goroutines, each on a thread of its own and with a stream of its own, write generations of a seed, SECONDS times
// MB_S megabytes together, 16 KiB a call, and no faster than that. When all is written it prints one line of JSON: how long
// a call took, by the wall and by the thread's CPU, and how much memory came to be in use beside what was before. Then the
// streams are closed, after patience at most, and another line says what became of what was written.
const (
	overloadStreams  = 8
	overloadSpool    = 2 << 20
	overloadCall     = 16 << 10
	overloadGenBytes = 500000
)

type overloaded struct {
	stream    *stream
	parts     io.Reader
	part      []byte
	wall, cpu []time.Duration
}

func overload(program, server, certs string, seconds, mbSecond float64) error {
	writers := make([]overloaded, overloadStreams)
	bytesSecond := mbSecond * 1e6 / overloadStreams
	calls := int(bytesSecond*seconds)/overloadCall*2 + 1000
	for i := range writers {
		w := &writers[i]
		var err error
		if w.parts, err = generations(filepath.Join(filepath.Dir(program), "seeded_agent"), strconv.Itoa(i+1), strconv.Itoa(overloadGenBytes)); err != nil {
			return err
		}
		w.part = make([]byte, 2*overloadGenBytes)
		w.wall, w.cpu = make([]time.Duration, 0, calls), make([]time.Duration, 0, calls)
		for _, room := range [][]time.Duration{w.wall[:calls], w.cpu[:calls]} { // so that it is in memory before the measurement
			for at := range room {
				room[at] = 1
			}
		}
		for at := range w.part {
			w.part[at] = 1
		}
	}
	before := resident()
	var all sync.WaitGroup
	for i := range writers {
		var err error
		cfg := Config{Server: server, Certs: certs, Service: "fault", Instance: fmt.Sprintf("i%d", i+1), SpoolBytes: overloadSpool}
		if writers[i].stream, err = begin(cfg); err != nil {
			return err
		}
	}
	for i := range writers {
		all.Add(1)
		go func(w *overloaded) {
			defer all.Done()
			w.run(bytesSecond, seconds)
		}(&writers[i])
	}
	all.Wait()
	report := map[string]any{"memory": max(0, resident()-before), "spools": overloadStreams * overloadSpool}
	for name, of := range map[string]func(*overloaded) []time.Duration{
		"wall": func(w *overloaded) []time.Duration { return w.wall }, "cpu": func(w *overloaded) []time.Duration { return w.cpu },
	} {
		var took []time.Duration
		for i := range writers {
			took = append(took, of(&writers[i])...)
		}
		slices.Sort(took)
		report["calls"] = len(took)
		report[name+"_p50"] = took[(len(took)-1)/2].Nanoseconds()
		report[name+"_p9999"] = took[int(float64(len(took)-1)*0.9999)].Nanoseconds()
	}
	printJSON(report)
	return closeAll(writers)
}

func (w *overloaded) run(bytesSecond, seconds float64) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began, written := time.Now(), 0
	for isHeader := true; isHeader || float64(written) < bytesSecond*seconds; isHeader = false {
		part := nextPart(w.parts, w.part)
		if isHeader {
			w.stream.write(part)
			continue
		}
		for rest := part; len(rest) > 0; {
			n := min(len(rest), overloadCall)
			wall, cpu := time.Now(), threadCPU()
			w.stream.write(rest[:n])
			w.cpu, w.wall = append(w.cpu, threadCPU()-cpu), append(w.wall, time.Since(wall))
			rest = rest[n:]
		}
		written += len(part)
		time.Sleep(time.Until(began.Add(time.Duration(float64(written) / bytesSecond * 1e9))))
	}
}

func closeAll(writers []overloaded) (err error) {
	var sum counters
	for i := range writers {
		writers[i].stream.finish()
	}
	for i := range writers {
		s := writers[i].stream
		if e := s.sync(patience()); e != nil {
			err = e
		}
		c := s.spool.count()
		sum.produced.add(c.produced)
		sum.acked.add(c.acked)
		sum.lost.add(c.lost)
		s.close(0)
	}
	printJSON(map[string]any{"produced_bytes": sum.produced.bytes, "acked_bytes": sum.acked.bytes, "lost_bytes": sum.lost.bytes})
	return err
}

func printJSON(report map[string]any) {
	line, err := json.Marshal(report)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(line))
}

func resident() int {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		panic(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	if err != nil {
		panic(err)
	}
	return pages * os.Getpagesize()
}

func threadCPU() time.Duration {
	const clockThreadCPU = 3
	var now syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockThreadCPU, uintptr(unsafe.Pointer(&now)), 0)
	return time.Duration(now.Nano())
}

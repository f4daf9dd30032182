// SPDX-License-Identifier: Apache-2.0

//go:build linux

package traceagent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The binary of these tests is also the program of the fault rows (tests/fault), as seeded_agent.c is for the C agent:
//
//	seeded_agent_go[_MAJOR.MINOR] send ADDRESS CERTS INSTANCE SEED GENERATION_BYTES MB_S SPOOL_BYTES [SPOOL_DIR]
//
// It writes generation after generation at that rate until SIGTERM, then waits for the acks as long as patience says. Ten times
// a second, and at the end, it prints what the agent says of itself as one line of JSON. The seeded_agent beside it writes
// the trace. With SPOOL_DIR it syncs after each generation, and "safe" is the last of which that said that no kill can lose
// it. A name that ends in a version of the protocol makes an agent of that version. Exit 0: all is acked, and of earlier
// programs in SPOOL_DIR nothing is left.
func TestMain(m *testing.M) {
	os.Setenv("TRACEAGENT_ALLOW_FAULTY_GO", "1") // no test here meets a fault of the Go version that builds the tests
	if len(os.Args) >= 9 && os.Args[1] == "send" {
		os.Exit(seeded(os.Args[0], os.Args[2:]))
	}
	if len(os.Args) >= 5 && os.Args[1] == "forward" {
		gap, _ := strconv.Atoi(append(os.Args, "0")[5])
		if err := forward(os.Args[2], os.Args[3], os.Args[4], time.Duration(gap)*time.Millisecond); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) == 6 && os.Args[1] == "overload" {
		seconds, err1 := strconv.ParseFloat(os.Args[4], 64)
		rate, err2 := strconv.ParseFloat(os.Args[5], 64)
		if err := errors.Join(err1, err2); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		if err := overload(os.Args[0], os.Args[2], os.Args[3], seconds, rate); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const (
	reportTime = 100 * time.Millisecond
	safeTime   = 20 * time.Millisecond // the longest time for a sync
)

// patience is a little less than in tests/support/patience.h, because the test waits that long for the end of this program.
func patience() time.Duration {
	factor, err := strconv.ParseFloat(os.Getenv("TC_PATIENCE"), 64)
	if err != nil {
		factor = 1
	}
	return time.Duration(factor * float64(175*time.Second))
}

func seeded(program string, args []string) int {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	fmt.Sscanf(filepath.Base(program), "seeded_agent_go_%d.%d", &protocolMajor, &protocolMinor)
	rate, err1 := strconv.ParseFloat(args[5], 64)
	spool, err2 := strconv.ParseUint(args[6], 10, 64)
	parts, err3 := generations(filepath.Join(filepath.Dir(program), "seeded_agent"), args[3], args[4])
	if err1 != nil || err2 != nil || err3 != nil {
		fmt.Fprintln(os.Stderr, err1, err2, err3)
		return 3
	}
	cfg := Config{Server: args[0], Certs: args[1], Service: "fault", Instance: args[2], SpoolBytes: spool}
	if len(args) > 7 {
		cfg.SpoolDir = args[7]
	}
	s, err := begin(cfg)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 3
	}
	written, gens := writeParts(s, parts, rate*1e6, ended)
	s.finish()
	for end := time.Now().Add(patience()); time.Now().Before(end); report(s, gens) {
		if err = s.sync(reportTime); err != errNotAcked && err != errOnlyKept {
			if err != nil || s.recovery == nil || s.status().OldStreams == 0 {
				break
			}
			time.Sleep(reportTime) // another goroutine sends the old streams
		}
	}
	report(s, gens)
	if produced := s.status().ProducedBytes; err == nil && produced != written {
		err = fmt.Errorf("%d bytes were written, %d are counted", written, produced)
	}
	s.close(0)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// begin opens a stream that sends.
func begin(cfg Config) (*stream, error) {
	s, err := open(cfg)
	if err == nil {
		s.run()
	}
	return s, err
}

// generations returns the parts of a trace: its header, then one generation after the other.
func generations(writer, seed, bytes string) (io.Reader, error) {
	command := exec.Command(writer, "write", seed, bytes) // ends with this program: its pipe breaks
	command.Stderr = os.Stderr
	parts, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	return parts, err
}

// writeParts returns the number of bytes after the header.
func writeParts(s *stream, parts io.Reader, bytesSecond float64, ended <-chan os.Signal) (written, gens uint64) {
	tick := time.NewTicker(reportTime)
	defer tick.Stop()
	began := time.Now()
	room := make([]byte, 1<<20)
	for isHeader := true; ; isHeader = false {
		part := nextPart(parts, room)
		s.write(part)
		if isHeader {
			continue
		}
		written += uint64(len(part))
		gens++
		if s.recovery != nil {
			makeSafe(s, gens)
		}
		for due := time.After(time.Until(began.Add(time.Duration(float64(written) / bytesSecond * 1e9)))); due != nil; {
			select {
			case <-ended:
				return written, gens
			case <-tick.C:
				report(s, gens)
			case <-due:
				due = nil
			}
		}
	}
}

func nextPart(parts io.Reader, room []byte) []byte {
	var length [4]byte
	if _, err := io.ReadFull(parts, length[:]); err != nil {
		panic(err)
	}
	n := int(binary.LittleEndian.Uint32(length[:]))
	if n > len(room) {
		room = make([]byte, n)
	}
	if _, err := io.ReadFull(parts, room[:n]); err != nil {
		panic(err)
	}
	return room[:n]
}

var safe uint64 // generations

// makeSafe reports as soon as the generation can no longer be lost, however this program ends.
func makeSafe(s *stream, gen uint64) {
	if err := s.sync(safeTime); err == nil || err == errOnlyKept {
		safe = gen
		report(s, gen)
	}
}

var stateNumbers = map[string]int{"connecting": 1, "streaming": 2, "waiting": 3, "refused": 4, "closed": 5, "off": 6}

func report(s *stream, gens uint64) {
	is := s.status()
	printJSON(map[string]any{
		"stream": is.Stream, "state": stateNumbers[is.State], "generations": gens,
		"produced_batches": is.ProducedBatches, "produced_bytes": is.ProducedBytes,
		"acked_batches": is.AckedBatches, "acked_bytes": is.AckedBytes, "acked_generations": is.AckedGenerations,
		"lost_batches": is.LostBatches, "lost_bytes": is.LostBytes, "lost_generations": is.LostGenerations,
		"reconnects": is.Reconnects, "resent_batches": is.ResentBatches, "begun_anew": is.BegunAnew, "faults": 0,
		"safe": safe, "disk_faults": is.DiskFaults, "old_streams": is.OldStreams, "old_streams_sent": is.OldStreamsSent,
		"slowed": strings.HasPrefix(is.LastError, "collector slows"), "last_error": is.LastError,
	})
}

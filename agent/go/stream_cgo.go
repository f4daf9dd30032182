// SPDX-License-Identifier: Apache-2.0

//go:build traceagent_cgo && cgo && linux && amd64

package traceagent

/*
#cgo traceagent_shared pkg-config: traceagent
#cgo !traceagent_shared pkg-config: traceagent-static
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <syslog.h>
#include <unistd.h>
#include <traceagent.h>

// The agent's thread writes its lines into a pipe, so that it never waits for a logger. A thread that outlives its
// stream must not write into the descriptor's next file: hence the lock, and the number of the stream.
static pthread_mutex_t lines_lock = PTHREAD_MUTEX_INITIALIZER;
static int lines_fd = -1;
static uintptr_t lines_of;

static void lines_to(int fd, uintptr_t stream) {
	pthread_mutex_lock(&lines_lock);
	if (lines_fd >= 0) close(lines_fd);
	lines_fd = fd;
	lines_of = stream;
	pthread_mutex_unlock(&lines_lock);
}

static void lines_end(uintptr_t stream) {
	pthread_mutex_lock(&lines_lock);
	if (lines_fd >= 0 && lines_of == stream) {
		close(lines_fd);
		lines_fd = -1;
	}
	pthread_mutex_unlock(&lines_lock);
}

static void on_line(void *self, int level, const char *text) {
	char line[512];
	int n = snprintf(line, sizeof line, "%d %s\n", level, text);

	if (n < 0 || n >= (int)sizeof line) return;
	pthread_mutex_lock(&lines_lock);
	if (lines_fd >= 0 && lines_of == (uintptr_t)self && write(lines_fd, line, (size_t)n) < 0) errno = 0;
	pthread_mutex_unlock(&lines_lock);
}

static void set_lines(struct ta_forward_config *config, uintptr_t stream) {
	config->log = on_line;
	config->log_self = (void *)stream;
}
*/
import "C"

import (
	"bufio"
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// stream is a ta_forward of the C library, and what becomes of its lines.
type stream struct {
	c      *C.ta_forward
	number C.uintptr_t
	logged chan struct{} // closed once the last line is logged; nil: no lines
}

// How long close waits for a logger.
const loggerPatience = time.Second

var streams atomic.Uintptr

var states = map[C.enum_ta_state]string{
	C.TA_STATE_CONNECTING: "connecting",
	C.TA_STATE_STREAMING:  "streaming",
	C.TA_STATE_WAITING:    "waiting",
	C.TA_STATE_REFUSED:    "refused",
	C.TA_STATE_CLOSED:     "closed",
	C.TA_STATE_OFF:        "off",
}

func open(config Config) (*stream, error) {
	var kept []unsafe.Pointer
	defer func() {
		for _, p := range kept {
			C.free(p)
		}
	}()
	toC := func(s string) *C.char {
		if s == "" {
			return nil
		}
		p := C.CString(s)
		kept = append(kept, unsafe.Pointer(p))
		return p
	}
	c := C.struct_ta_forward_config{
		server:       toC(config.Server),
		certs:        toC(config.Certs),
		service:      toC(config.Service),
		instance:     toC(config.Instance),
		spool_bytes:  C.uint64_t(config.SpoolBytes),
		rate_bytes_s: C.uint64_t(config.RateBytesPerSecond),

		spool_dir:       toC(config.SpoolDir),
		spool_dir_bytes: C.uint64_t(config.SpoolDirBytes),
		record_ms:       C.uint64_t(config.Record / time.Millisecond),
	}
	c.size = C.size_t(unsafe.Sizeof(c))
	s := &stream{number: C.uintptr_t(streams.Add(1))}
	lines := newLines(config)
	lines.first = append(lines.first, line{levelWarning, "the agent of cgo goes with the next version: build without -tags traceagent_cgo"})
	s.followLines(&c, lines)

	runtime.LockOSThread() // the words for an error belong to the thread
	defer runtime.UnlockOSThread()
	code := C.ta_forward_open(&c, &s.c)
	if code == C.TA_OK {
		return s, nil
	}
	words := C.GoString(C.ta_strerror(code))
	s.endLines()
	if code == C.TA_E_OFF {
		return nil, nil
	}
	return nil, errors.New(words)
}

func (s *stream) run() {} // it does so already

func (s *stream) discard() { s.close(0) }

// followLines logs what the agent says. Where there is no descriptor for that, the agent works without.
func (s *stream) followLines(c *C.struct_ta_forward_config, lines *lines) {
	var fds [2]int
	if err := syscall.Pipe2(fds[:], syscall.O_CLOEXEC|syscall.O_NONBLOCK); err != nil {
		return
	}
	C.lines_to(C.int(fds[1]), s.number)
	C.set_lines(c, s.number)
	s.logged = make(chan struct{})
	go func(from *os.File) {
		defer close(s.logged)
		defer from.Close()
		defer lines.end()
		lines.begin()
		for scanner := bufio.NewScanner(from); scanner.Scan(); {
			level, text, _ := strings.Cut(scanner.Text(), " ")
			number, _ := strconv.Atoi(level)
			lines.take(number, text)
		}
	}(os.NewFile(uintptr(fds[0]), "traceagent"))
}

func (s *stream) endLines() {
	if s.logged == nil {
		return
	}
	C.lines_end(s.number)
	select {
	case <-s.logged:
	case <-time.After(loggerPatience):
	}
}

func (s *stream) write(p []byte) {
	C.ta_forward_write(s.c, unsafe.Pointer(unsafe.SliceData(p)), C.size_t(len(p)))
}

func (s *stream) finish() { C.ta_forward_finish(s.c) }

// sync answers errNotAcked or errOnlyKept if it is worth another try.
func (s *stream) sync(patience time.Duration) error {
	switch code := C.ta_forward_sync(s.c, C.int64_t(patience.Milliseconds())); code {
	case C.TA_OK:
		return nil
	case C.TA_E_TIMEOUT:
		return errNotAcked
	case C.TA_E_KEPT:
		return errOnlyKept
	default:
		return fault(code)
	}
}

func (s *stream) snap(last time.Duration) error {
	ms := C.uint64_t((last + time.Millisecond - 1) / time.Millisecond)
	switch code := C.ta_forward_snap(s.c, ms); code {
	case C.TA_OK:
		return nil
	case C.TA_E_CONFIG:
		return errNoRecords
	default:
		return fault(code)
	}
}

func (s *stream) close(patience time.Duration) {
	C.ta_forward_close(s.c, C.int64_t(patience.Milliseconds()))
	s.c = nil
	s.endLines()
}

func fault(code C.int) error { return errors.New("traceagent: " + C.GoString(C.ta_strerror(code))) }

func (s *stream) status() Status {
	var c C.struct_ta_forward_status
	c.size = C.size_t(unsafe.Sizeof(c))
	if C.ta_forward_status(s.c, &c) != C.TA_OK {
		return Status{State: "off"}
	}
	return Status{
		State:            states[c.state],
		ProducedBatches:  uint64(c.produced_batches),
		ProducedBytes:    uint64(c.produced_bytes),
		AckedBatches:     uint64(c.acked_batches),
		AckedBytes:       uint64(c.acked_bytes),
		AckedGenerations: uint64(c.acked_generations),
		LostBatches:      uint64(c.lost_batches),
		LostBytes:        uint64(c.lost_bytes),
		LostGenerations:  uint64(c.lost_generations),
		SpoolBytes:       uint64(c.spool_bytes),
		SpoolBytesPeak:   uint64(c.spool_bytes_peak),
		Connects:         uint64(c.connects),
		Reconnects:       uint64(c.reconnects),
		ResentBatches:    uint64(c.resent_batches),
		BegunAnew:        uint64(c.begun_anew),
		DiskBytes:        uint64(c.disk_bytes),
		DiskFaults:       uint64(c.disk_faults),
		OldStreams:       uint64(c.old_streams),
		OldStreamsSent:   uint64(c.old_streams_sent),

		RecordedGenerations:  uint64(c.recorded_generations),
		RecordedBytes:        uint64(c.recorded_bytes),
		ForgottenGenerations: uint64(c.forgotten_generations),
		Snaps:                uint64(c.snaps),

		Stream:    C.GoString(&c.stream[0]),
		LastError: C.GoString(&c.last_error[0]),
		LastLoss:  C.GoString(&c.last_loss[0]),
	}
}

// SPDX-License-Identifier: Apache-2.0

package traceagent

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"
)

// The levels of syslog(3) that the agent uses.
const (
	levelError   = 3
	levelWarning = 4
	levelInfo    = 6
)

// So many lines come at once, then one in each pause, with the newest reason.
const (
	linesAtOnce = 5
	linesPause  = 10 * time.Second
)

// lines is what becomes of the agent's lines: Config.Logger gets them, else stderr what is wrong.
type lines struct {
	write func(level int, text string)
	plain func(level int, text string) // of what is no collector's
	pause time.Duration
	quiet bool // only what is wrong is written, once whatever its numbers, and that it is right again

	mu      sync.Mutex
	budget  int
	wrong   bool   // the last line was a warning
	last    string // that was written
	waiting *line  // for the end of the pause
	left    int    // out
	timer   *time.Timer
	ended   bool
}

type line struct {
	level int
	text  string
}

func newLines(config Config) *lines {
	l := &lines{pause: linesPause, budget: linesAtOnce}
	if config.Logger == nil {
		l.quiet = true
		l.plain = func(_ int, text string) { fmt.Fprintln(os.Stderr, "traceagent:", text) }
		l.write = func(level int, text string) { l.plain(level, withServer(config, text)) }
		return l
	}
	logger := config.Logger.With("service", config.Service, "server", config.Server)
	l.plain = func(level int, text string) {
		logger.Log(context.Background(), slogLevel(level), "traceagent: "+text)
	}
	l.write = l.plain
	return l
}

// warn writes a line of the agent itself. It does not wait for a logger that hangs.
func warn(config Config, text string) {
	said := make(chan struct{})
	go func() {
		defer close(said)
		newLines(config).plain(levelWarning, text)
	}()
	select {
	case <-said:
	case <-time.After(loggerPatience):
	}
}

// withServer puts HOST:PORT in front, where the text does not begin with it or the host.
func withServer(config Config, text string) string {
	server := config.Server
	if server == "" {
		server = os.Getenv("TRACEAGENT_SERVER")
	}
	host := server
	if colon := strings.LastIndexByte(server, ':'); colon > 0 {
		host = server[:colon]
	}
	if strings.HasPrefix(text, host) {
		return text
	}
	return server + ": " + text
}

func slogLevel(level int) slog.Level {
	switch {
	case level <= levelError:
		return slog.LevelError
	case level == levelWarning:
		return slog.LevelWarn
	default:
		return slog.LevelInfo
	}
}

func (l *lines) take(level int, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	wrong := level <= levelWarning
	news := !l.quiet || wrong || l.wrong
	l.wrong = wrong
	if !news {
		return
	}
	if l.waiting != nil {
		l.left++
	}
	l.waiting = &line{level, text}
	if l.budget == 0 {
		return // until the timer says so
	}
	l.budget--
	l.flush()
	if l.timer == nil {
		l.timer = time.AfterFunc(l.pause, l.refill)
	}
}

// flush writes what waits, unless it was the last that was written.
func (l *lines) flush() {
	waiting, left := l.waiting, l.left
	l.waiting, l.left = nil, 0
	if waiting == nil || l.reason(waiting.text) == l.last {
		return
	}
	l.last = l.reason(waiting.text)
	if left > 0 {
		l.write(waiting.level, fmt.Sprintf("%s (%d lines left out)", waiting.text, left))
		return
	}
	l.write(waiting.level, waiting.text)
}

// reason is the text by which lines are compared.
func (l *lines) reason(text string) string {
	if !l.quiet {
		return text
	}
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, text)
}

func (l *lines) refill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	if l.waiting != nil {
		l.flush()
	} else if l.budget < linesAtOnce {
		l.budget++
	}
	l.timer = nil
	if l.budget < linesAtOnce {
		l.timer = time.AfterFunc(l.pause, l.refill)
	}
}

func (l *lines) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	if l.timer != nil {
		l.timer.Stop()
	}
	l.flush()
}

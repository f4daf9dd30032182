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

// At most linesAtOnce lines are written at once, then one in each linesPause, with the newest reason.
const (
	linesAtOnce = 5
	linesPause  = 10 * time.Second
)

// lines writes the agent's lines: all to Config.Logger, or without one only the warnings to stderr.
type lines struct {
	write func(level int, text string)
	plain func(level int, text string) // for lines that are not about a collector
	pause time.Duration
	quiet bool // write only warnings, the same one once even if its numbers differ, and the line that ends a warning

	mu      sync.Mutex
	budget  int
	wrong   bool   // the last line was a warning
	last    string // line written last
	waiting *line  // newest line, written at the end of the pause
	left    int    // number of lines left out
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

// warn writes a line of the agent itself. It waits at most loggerPatience for a logger.
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

// withServer puts HOST:PORT in front of a text that does not begin with HOST.
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
		return // the timer writes the line later
	}
	l.budget--
	l.flush()
	if l.timer == nil {
		l.timer = time.AfterFunc(l.pause, l.refill)
	}
}

// flush writes the waiting line, unless it is the same as the last one.
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

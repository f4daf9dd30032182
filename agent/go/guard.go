// SPDX-License-Identifier: Apache-2.0

package traceagent

import (
	"context"
	"runtime/trace"
	"strings"
	"unicode/utf8"
)

// Go's tracer can end a program. The functions here keep it from that.

// Go up to 1.26 ends a program ("traceRegion: alloc too large") that gives a task, a region or a log's category a name of
// 100 KB. In a trace no more than 1 KiB of a name is kept.
const nameBytesMax = 1 << 10

// Name cuts a text to what a trace keeps of it, where a character ends.
func Name(text string) string {
	if len(text) <= nameBytesMax {
		return text
	}
	end := nameBytesMax
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// NewTask is trace.NewTask, for a name of any length.
func NewTask(ctx context.Context, name string) (context.Context, *trace.Task) {
	return trace.NewTask(ctx, Name(name))
}

// StartRegion is trace.StartRegion, for a name of any length.
func StartRegion(ctx context.Context, name string) *trace.Region {
	return trace.StartRegion(ctx, Name(name))
}

// WithRegion is trace.WithRegion, for a name of any length.
func WithRegion(ctx context.Context, name string, fn func()) { trace.WithRegion(ctx, Name(name), fn) }

// Log is trace.Log, for a category of any length.
func Log(ctx context.Context, category, message string) { trace.Log(ctx, Name(category), message) }

// runtimeFault says what is known to end programs of this version of Go while they are traced; "": nothing.
func runtimeFault(version, godebug string) string {
	for _, faulty := range []string{"go1.24", "go1.25", "go1.26"} {
		if (version == faulty || strings.HasPrefix(version, faulty+".")) && strings.Contains(godebug, "traceallocfree=1") {
			return version + " may end the program while it traces allocations over several generations (golang/go#73664): take traceallocfree=1 out of GODEBUG, or build with Go 1.27"
		}
	}
	return ""
}

// SPDX-License-Identifier: Apache-2.0

package traceagent

import (
	"context"
	goversion "go/version"
	"os"
	"runtime/trace"
	"slices"
	"strconv"
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

// goFault is what some versions of Go do to a program that is traced. tests/e2e/go-faults shows it.
type goFault struct {
	versions   []versions
	processors string // with a space around each; "": all
	when       func(godebug godebug) bool
	isFatal    bool // an ordinary program may meet it, and ends: it is not traced. Else a line warns
	effect     string
	remedy     string
	reference  string // an issue of Go; "": none is known
}

// versions are those from the first on, and before the second.
type versions struct{ from, before string }

// Which versions they are was found by running them, as far as they can be had: 1.23.11, 1.25.12 and 1.25.13 cannot.
var goFaults = []goFault{
	{
		versions:   []versions{{"go1.22", "go1.23.11"}, {"go1.24", "go1.24.5"}},
		processors: " amd64 ",
		when:       unwindsByFramePointers,
		isFatal:    true,
		effect:     "ends a traced program that recovers from a nil dereference in a copy of a large value",
		remedy:     withoutFramePointers,
		reference:  "golang/go#73748",
	},
	{
		versions:   []versions{{"go1.22", "go1.25.14"}, {"go1.26", "go1.26.6"}},
		processors: " amd64 arm64 ",
		when:       unwindsByFramePointers,
		isFatal:    true,
		effect:     "ends a traced program whose stack grows after it has recovered from a nil dereference",
		remedy:     withoutFramePointers,
		reference:  "golang/go#73664",
	},
	{
		versions: []versions{{"go1.24", "go1.27"}},
		when:     func(of godebug) bool { return of.number("traceallocfree") == 1 },
		effect:   "may end a program while it traces allocations over several generations",
		remedy:   "take traceallocfree=1 out of GODEBUG",
	},
}

const withoutFramePointers = "set GODEBUG=tracefpunwindoff=1 in the program's environment (GODEBUG takes several settings, separated by commas)"

// Stacks by frame pointers are what the first two faults are about.
func unwindsByFramePointers(of godebug) bool { return of.number("tracefpunwindoff") == 0 }

// has says whether this Go is one of them, with these settings. What is not a release's name is of none.
func (f goFault) has(version, processor string, settings godebug) bool {
	version, _, _ = strings.Cut(version, " ") // an experiment's name follows
	inRange := slices.ContainsFunc(f.versions, func(of versions) bool {
		return goversion.Compare(version, of.from) >= 0 && goversion.Compare(version, of.before) < 0
	})
	return inRange && (f.processors == "" || strings.Contains(f.processors, " "+processor+" ")) && f.when(settings)
}

// text says what is wrong and what to do; sound lists the versions without any fault.
func (f goFault) text(version, sound string) string {
	text := version + " " + f.effect
	if f.reference != "" {
		text += " (" + f.reference + ")"
	}
	return text + ": " + f.remedy + ", or build with " + sound
}

// soundVersions names newer versions that have none of the faults, where each begins: "go1.25.14, go1.26.6, go1.27 or later".
func soundVersions(version, processor string, settings godebug) string {
	var sound []string
	for _, f := range goFaults {
		for _, of := range f.versions {
			isFaulty := slices.ContainsFunc(goFaults, func(other goFault) bool { return other.has(of.before, processor, settings) })
			if !isFaulty && goversion.Compare(of.before, version) > 0 {
				sound = append(sound, of.before)
			}
		}
	}
	slices.SortFunc(sound, goversion.Compare)
	return strings.Join(slices.Compact(sound), ", ") + " or later"
}

// faultsHere answers why this program is not to be traced, "": for no reason, and what to warn of.
func faultsHere(version, processor string, settings godebug, isAllowed bool) (refusal string, warnings []string) {
	for _, f := range goFaults {
		if !f.has(version, processor, settings) {
			continue
		}
		text := f.text(version, soundVersions(version, processor, settings))
		if f.isFatal && !isAllowed {
			return "not traced: " + text + "; Config.AllowFaultyGo or TRACEAGENT_ALLOW_FAULTY_GO=1 traces it all the same", nil
		}
		warnings = append(warnings, "traced at risk: "+text)
	}
	return "", warnings
}

// godebug is the settings as the environment variable has them.
type godebug string

// godebugAtStart is what Go's runtime has read: what a program sets later does not change these settings.
var godebugAtStart = godebug(os.Getenv("GODEBUG"))

// number is the value of a setting, the last one if there are several; 0: it is not set.
func (g godebug) number(name string) (value int) {
	for _, setting := range strings.Split(string(g), ",") {
		text, isIt := strings.CutPrefix(setting, name+"=")
		if number, err := strconv.Atoi(text); isIt && err == nil {
			value = number
		}
	}
	return value
}

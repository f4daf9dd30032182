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

// Go's tracer can end a program. This file prevents that.

// nameBytesMax is the length of a name in a trace. Go up to 1.26 ends a program ("traceRegion: alloc too large") that gives a
// task, a region or a log's category a name of 100 KB.
const nameBytesMax = 1 << 10

// Name cuts a text at the end of a character to the length that a trace stores.
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

// goFault is a fault of some versions of Go that harms traced programs. tests/e2e/go-faults shows each.
type goFault struct {
	versions   []versions
	processors string // with a space around each; "": all
	when       func(godebug godebug) bool
	isFatal    bool // ends ordinary programs: they are not traced. If false, only a line warns
	effect     string
	remedy     string
	reference  string // Go issue; "": none known
}

// versions is a half-open range.
type versions struct{ from, before string }

// The versions were found by running them, except 1.23.11, 1.25.12 and 1.25.13, which were not available.
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

// unwindsByFramePointers is the condition of the first two faults.
func unwindsByFramePointers(of godebug) bool { return of.number("tracefpunwindoff") == 0 }

// has returns whether a version of Go has the fault with these settings. A version that is not a release has none.
func (f goFault) has(version, processor string, settings godebug) bool {
	version, _, _ = strings.Cut(version, " ") // an experiment's name follows
	inRange := slices.ContainsFunc(f.versions, func(of versions) bool {
		return goversion.Compare(version, of.from) >= 0 && goversion.Compare(version, of.before) < 0
	})
	return inRange && (f.processors == "" || strings.Contains(f.processors, " "+processor+" ")) && f.when(settings)
}

// text names the fault and the remedy; sound lists the versions without any fault.
func (f goFault) text(version, sound string) string {
	text := version + " " + f.effect
	if f.reference != "" {
		text += " (" + f.reference + ")"
	}
	return text + ": " + f.remedy + ", or build with " + sound
}

// soundVersions lists the first newer versions without any of the faults: "go1.25.14, go1.26.6, go1.27 or later".
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

// faultsHere returns why this program must not be traced ("": it may be), and warnings.
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

// godebug is the value of the environment variable GODEBUG.
type godebug string

// godebugAtStart is the value that Go's runtime has read. Later changes by the program do not affect these settings.
var godebugAtStart = godebug(os.Getenv("GODEBUG"))

// number returns the value of a setting, the last one if there are several; 0: it is not set.
func (g godebug) number(name string) (value int) {
	for _, setting := range strings.Split(string(g), ",") {
		text, isIt := strings.CutPrefix(setting, name+"=")
		if number, err := strconv.Atoi(text); isIt && err == nil {
			value = number
		}
	}
	return value
}

// SPDX-License-Identifier: Apache-2.0

package traceagent

import (
	"fmt"
	"reflect"
	"testing"
	"time"
)

// written returns lines whose pause ends only when the test ends it, and the text that they write.
func written(quiet bool) (*lines, *[]string) {
	var all []string
	l := &lines{pause: time.Hour, budget: linesAtOnce, quiet: quiet}
	l.write = func(level int, text string) { all = append(all, fmt.Sprint(level, " ", text)) }
	return l, &all
}

func expectLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("lines %q, want %q", got, want)
	}
}

func TestStderrHearsOfWhatIsWrongOnceAndThatItIsRightAgain(t *testing.T) {
	l, got := written(true)
	l.take(levelInfo, "connected")
	for i := 0; i < 3; i++ {
		l.take(levelWarning, "refused")
	}
	l.take(levelInfo, "connected")
	l.take(levelInfo, "an old stream is sent")
	l.end()
	expectLines(t, *got, "4 refused", "6 connected")
}

func TestTheSameReasonWithOtherNumbersIsNoNewsForStderr(t *testing.T) {
	l, got := written(true)
	for i := 0; i < 100; i++ {
		l.take(levelWarning, fmt.Sprintf("%d generations lost", i))
	}
	l.end()
	expectLines(t, *got, "4 0 generations lost")
}

func TestAFloodOfReasonsIsAFewLinesAndTheNewestOne(t *testing.T) {
	for _, quiet := range []bool{true, false} {
		l, got := written(quiet)
		reason := func(i int) string { return "reason " + string(rune('a'+i%26)) }
		for i := 0; i < 1000; i++ {
			l.take(levelWarning, reason(i))
		}
		l.refill()
		l.refill() // nothing waits any more
		want := []string{}
		for i := 0; i < linesAtOnce; i++ {
			want = append(want, "4 "+reason(i))
		}
		want = append(want, fmt.Sprintf("4 %s (%d lines left out)", reason(999), 1000-linesAtOnce-1))
		expectLines(t, *got, want...)
		l.take(levelWarning, "another") // a pause without lines has allowed one more
		expectLines(t, *got, append(want, "4 another")...)
		l.end()
	}
}

func TestWhatWaitsIsWrittenAtTheEnd(t *testing.T) {
	l, got := written(false)
	l.budget = 0
	l.take(levelInfo, "closing")
	expectLines(t, *got)
	l.end()
	expectLines(t, *got, "6 closing")
}

func TestALineOnStderrNamesTheServerOnce(t *testing.T) {
	for _, c := range []struct{ server, text, want string }{
		{"c:7070", "TLS: wrong version number", "c:7070: TLS: wrong version number"},
		{"c:7070", "c:7070: Connection refused", "c:7070: Connection refused"},
		{"nohost:7070", "nohost: Name or service not known", "nohost: Name or service not known"},
		{"@/run/ready", "ready file /run/ready: No such file or directory", "@/run/ready: ready file /run/ready: No such file or directory"},
	} {
		if got := withServer(Config{Server: c.server}, c.text); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	t.Setenv("TRACEAGENT_SERVER", "e:1")
	if got := withServer(Config{}, "connected"); got != "e:1: connected" {
		t.Errorf("%q", got)
	}
}

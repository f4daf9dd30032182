// SPDX-License-Identifier: Apache-2.0

package tracehttp

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/trace"
	"strings"
	"testing"
)

const (
	traceID  = "4bf92f3577b34da6a3ce929d0e0e4736"
	parentID = "00f067aa0ba902b7"
)

func TestARequestIsATaskWithItsTraceID(t *testing.T) {
	var recorded bytes.Buffer
	if err := trace.Start(&recorded); err != nil {
		t.Fatal(err)
	}
	defer trace.Stop()
	handled := 0
	next := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		trace.Log(r.Context(), "order", "seventeen")
		handled++
	})
	server := httptest.NewServer(Handler(next, func(r *http.Request) string { return "buy " + strings.Repeat("é", 1<<20) }))
	defer server.Close()
	request, err := http.NewRequest("GET", server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("traceparent", "00-"+traceID+"-"+parentID+"-01")
	answer, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, answer.Body)
	answer.Body.Close()
	trace.Stop()
	for _, want := range []string{"buy é", "trace_id", traceID, "parent_id", parentID, "order", "seventeen"} {
		if !bytes.Contains(recorded.Bytes(), []byte(want)) {
			t.Errorf("%q is not in the trace", want)
		}
	}
	if bytes.Contains(recorded.Bytes(), []byte(strings.Repeat("é", 513))) {
		t.Error("the name was not cut")
	}
	if handled != 1 {
		t.Errorf("handled %d times", handled)
	}
}

func TestWithoutATraceItOnlyHandles(t *testing.T) {
	handler := Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusTeapot) }),
		func(*http.Request) string { panic("asked for a name") })
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if w.Code != http.StatusTeapot {
		t.Errorf("answered %d", w.Code)
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct{ method, want string }{{"GET", "GET"}, {"POST", "POST"}, {"BREW", "other"}} {
		r := httptest.NewRequest(c.method, "/pot/17", nil)
		if got := nameOf(r, ""); got != c.want {
			t.Errorf("%s: %s", c.method, got)
		}
	}
}

func TestThePatternsMethodIsTheRequests(t *testing.T) {
	for _, c := range []struct{ method, pattern, want string }{
		{"GET", "GET /pot/{id}", "GET /pot/{id}"},
		{"HEAD", "GET /pot/{id}", "HEAD /pot/{id}"},
		{"BREW", "/pot/", "other /pot/"},
		{"GET", "GET \t tea.example/pot/", "GET tea.example/pot/"},
	} {
		if got := nameOf(httptest.NewRequest(c.method, "/pot/17", nil), c.pattern); got != c.want {
			t.Errorf("%s of %q: %s", c.method, c.pattern, got)
		}
	}
}

func TestAMuxWithinOtherHandlersNamesThem(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/pot/", func(http.ResponseWriter, *http.Request) {})
	logging := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { mux.ServeHTTP(w, r) })
	var recorded bytes.Buffer
	if err := trace.Start(&recorded); err != nil {
		t.Fatal(err)
	}
	Handler(logging, Pattern(mux)).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("PUT", "/pot/17", nil))
	trace.Stop()
	if !bytes.Contains(recorded.Bytes(), []byte("PUT /pot/")) {
		t.Error("the pattern is not in the trace")
	}
}

func TestWithoutAHandlerItIsTheDefaultMux(t *testing.T) {
	http.HandleFunc("/default-of-tracehttp", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusTeapot) })
	w := httptest.NewRecorder()
	Handler(nil, nil).ServeHTTP(w, httptest.NewRequest("GET", "/default-of-tracehttp", nil))
	if w.Code != http.StatusTeapot {
		t.Errorf("answered %d", w.Code)
	}
}

// A report leaves the frames of this package out, which it knows by their names.
func TestItsFramesHaveItsName(t *testing.T) {
	found := false
	next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		pcs := make([]uintptr, 16)
		frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
		for frame, more := frames.Next(); more; frame, more = frames.Next() {
			found = found || strings.HasPrefix(frame.Function, "tracecollect.invalid/traceagent/tracehttp.Handler.func")
		}
	})
	Handler(next, nil).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	if !found {
		t.Error("no frame of Handler")
	}
}

func TestAPatternOfTheMuxIsTheName(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/pot/", func(http.ResponseWriter, *http.Request) {})
	name := nameIn(mux)
	for path, want := range map[string]string{"/pot/17": "GET /pot/", "/nowhere": "GET"} {
		if got := name(httptest.NewRequest("GET", path, nil)); got != want {
			t.Errorf("%s: %s", path, got)
		}
	}
	var recorded bytes.Buffer
	if err := trace.Start(&recorded); err != nil {
		t.Fatal(err)
	}
	Handler(mux, nil).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/pot/17", nil))
	trace.Stop()
	if !bytes.Contains(recorded.Bytes(), []byte("GET /pot/")) {
		t.Error("the pattern is not in the trace")
	}
}

func TestTraceparent(t *testing.T) {
	for header, want := range map[string]bool{
		"00-" + traceID + "-" + parentID + "-01":                  true,
		"cc-" + traceID + "-" + parentID + "-01-more":             true,
		"00-" + traceID + "-" + parentID + "-01-more":             false,
		"ff-" + traceID + "-" + parentID + "-01":                  false,
		"00-" + strings.Repeat("0", 32) + "-" + parentID + "-01":  false,
		"00-" + traceID + "-" + strings.Repeat("0", 16) + "-01":   false,
		"00-" + strings.ToUpper(traceID) + "-" + parentID + "-01": false,
		"00-" + traceID + "-" + parentID + "-0g":                  false,
		"00-" + traceID + "-" + parentID + "-":                    false,
		"00_" + traceID + "-" + parentID + "-01":                  false,
		"":                                                        false,
	} {
		trace, parent, isOne := parse(header)
		if isOne != want || isOne && (trace != traceID || parent != parentID) {
			t.Errorf("%q: %q, %q, %v", header, trace, parent, isOne)
		}
	}
}

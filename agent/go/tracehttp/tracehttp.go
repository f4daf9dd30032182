// SPDX-License-Identifier: Apache-2.0

// Package tracehttp makes a task of each request that a server handles, for runtime/trace and so for traceagent.
//
//	http.ListenAndServe(":8080", tracehttp.Handler(mux, nil))
//
// Reports show the request's goroutines and their waits below its task. Handlers add regions and logs with
// runtime/trace and the request's context. If a request has a W3C traceparent header (as from OpenTelemetry), its task logs
// trace_id and parent_id: they lead from a span to the goroutines that served it, and back.
package tracehttp

import (
	"net/http"
	"runtime/trace"
	"strings"

	"tracecollect.invalid/traceagent"
)

// Handler wraps next; nil is http.DefaultServeMux, as for net/http. name returns the name of a request's task; nil: the
// method, and the pattern that next matches if it is a *http.ServeMux, or that an outer ServeMux has already chosen
// (Go 1.23). If next is a ServeMux within other handlers, name is Pattern(mux). Names should be from a small set: reports
// have a row for each. So the path of a request is never part of one.
//
//go:noinline
func Handler(next http.Handler, name func(*http.Request) string) http.Handler {
	// Inlined, the function below would have a name of the caller's package, and reports would take it for the program's.
	if next == nil {
		next = http.DefaultServeMux
	}
	if name == nil {
		name = nameIn(next)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !trace.IsEnabled() {
			next.ServeHTTP(w, r)
			return
		}
		ctx, task := traceagent.NewTask(r.Context(), name(r)) // cuts a long name
		defer task.End()
		if traceID, parentID, isOne := parse(r.Header.Get("traceparent")); isOne {
			trace.Log(ctx, "trace_id", traceID)
			trace.Log(ctx, "parent_id", parentID)
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// nameIn returns a function for the names of requests to next, whose ServeMux chooses the pattern after the task has begun.
func nameIn(next http.Handler) func(*http.Request) string {
	if mux, isMux := next.(*http.ServeMux); isMux {
		return Pattern(mux)
	}
	return func(r *http.Request) string { return nameOf(r, patternOf(r)) }
}

// Pattern returns a function for Handler's names: the method, and the pattern of mux that a request matches.
//
//	tracehttp.Handler(logging(mux), tracehttp.Pattern(mux))
func Pattern(mux *http.ServeMux) func(*http.Request) string {
	return func(r *http.Request) string {
		_, pattern := mux.Handler(r)
		return nameOf(r, pattern)
	}
}

// nameOf returns method and pattern, the request's method instead of the pattern's: GET also matches HEAD. Unknown methods become "other", so that the set of names stays small.
func nameOf(r *http.Request, pattern string) string {
	method := r.Method
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace:
	default:
		method = "other"
	}
	if blank := strings.IndexAny(pattern, " \t"); blank >= 0 {
		pattern = strings.TrimLeft(pattern[blank:], " \t")
	}
	if pattern == "" {
		return method
	}
	return method + " " + pattern
}

// parse reads a traceparent of any version (https://www.w3.org/TR/trace-context/): VERSION-TRACE-PARENT-FLAGS, all in
// lower hex; later versions may append another dash and more.
func parse(header string) (traceID, parentID string, isOne bool) {
	const traceAt, parentAt, flagsAt, end = 3, 36, 53, 55
	switch {
	case len(header) < end, header[traceAt-1] != '-', header[parentAt-1] != '-', header[flagsAt-1] != '-':
		return "", "", false
	case header[:2] == "ff", header[:2] == "00" && len(header) > end, len(header) > end && header[end] != '-':
		return "", "", false
	}
	traceID, parentID = header[traceAt:parentAt-1], header[parentAt:flagsAt-1]
	isOne = isHex(header[:2]) && isHex(header[flagsAt:end]) && isID(traceID) && isID(parentID)
	return traceID, parentID, isOne
}

func isHex(text string) bool { return strings.Trim(text, "0123456789abcdef") == "" }

// isID returns false for zeros only, as the standard requires.
func isID(text string) bool { return isHex(text) && strings.Trim(text, "0") != "" }

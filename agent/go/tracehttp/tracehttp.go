// SPDX-License-Identifier: Apache-2.0

// Package tracehttp makes a task of each request that a server handles, for runtime/trace and so for traceagent.
//
//	http.ListenAndServe(":8080", tracehttp.Handler(mux, nil))
//
// The request's goroutines, with what they wait for, stand below its task; handlers add regions and logs with
// runtime/trace and the request's context. A request with a W3C traceparent header (OpenTelemetry sends it) logs its
// trace_id and parent_id in the task: they lead from a span to the goroutines that served it, and back.
package tracehttp

import (
	"net/http"
	"runtime/trace"
	"strings"

	"tracecollect.invalid/traceagent"
)

// Handler wraps next. name says what a request's task is called; nil: its method, with the pattern where a ServeMux
// has already chosen one (Go 1.23). A name should come from a small set: reports have a row for each.
func Handler(next http.Handler, name func(*http.Request) string) http.Handler {
	if name == nil {
		name = nameOf
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !trace.IsEnabled() {
			next.ServeHTTP(w, r)
			return
		}
		ctx, task := traceagent.NewTask(r.Context(), name(r)) // a name may come from the request, and be long
		defer task.End()
		if traceID, parentID, isOne := parse(r.Header.Get("traceparent")); isOne {
			trace.Log(ctx, "trace_id", traceID)
			trace.Log(ctx, "parent_id", parentID)
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// nameOf does not repeat a method that the pattern has. One that no standard knows could be anything.
func nameOf(r *http.Request) string {
	pattern := patternOf(r)
	method := r.Method
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace:
	default:
		method = "other"
	}
	switch {
	case pattern == "":
		return method
	case strings.HasPrefix(pattern, method+" "):
		return pattern
	}
	return method + " " + pattern
}

// parse reads a traceparent of any version (https://www.w3.org/TR/trace-context/): VERSION-TRACE-PARENT-FLAGS, all in
// lower hex; later versions may have more behind another dash.
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

// isID: one of zeros alone is none.
func isID(text string) bool { return isHex(text) && strings.Trim(text, "0") != "" }

// SPDX-License-Identifier: Apache-2.0

//go:build go1.23

package tracehttp

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestAPatternIsTheName(t *testing.T) {
	for pattern, want := range map[string]string{"/pot/{id}": "GET /pot/{id}", "GET /pot/{id}": "GET /pot/{id}"} {
		var got string
		mux := http.NewServeMux()
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { got = nameOf(r, patternOf(r)) })
		mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/pot/17", nil))
		if got != want {
			t.Errorf("%s: %s", pattern, got)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

//go:build go1.23

package tracehttp

import "net/http"

func patternOf(r *http.Request) string { return r.Pattern }

// SPDX-License-Identifier: Apache-2.0

//go:build cgo && linux && amd64 && traceagent_shared && !traceagent_go

package traceagent

// #cgo pkg-config: traceagent
import "C"

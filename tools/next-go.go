// SPDX-License-Identifier: Apache-2.0

// Command tracetables prints a Go release's trace format, a row a line: "header 1.26", and "event NUMBER NAME
// SINCE ARGUMENTS". SINCE is the first header version with the event ("-" for events of experiments, whose
// table has no versions). next-go.sh places it in the release's tree by an overlay.
package main

import (
	"fmt"
	"internal/trace/tracev2"
	"internal/trace/version"
	"strings"
)

func main() {
	since := map[int]string{}
	for v := version.Go122; v < 99; v++ {
		if !v.Valid() {
			continue
		}
		fmt.Printf("header 1.%d\n", v)
		for number := range v.Specs() {
			if _, known := since[number]; !known {
				since[number] = fmt.Sprintf("1.%d", v)
			}
		}
	}
	for number, spec := range tracev2.Specs() {
		if spec.Name == "" || spec.Name == "None" {
			continue
		}
		first := since[number]
		if spec.Experiment != 0 {
			first = "-"
		}
		fmt.Printf("event %d %s %s %s\n", number, spec.Name, first, strings.Join(spec.Args, ","))
	}
}

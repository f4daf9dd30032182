// SPDX-License-Identifier: Apache-2.0

// Traces into two files, one after the other; three regions and two tasks begin under the first and end under the second.
package main

import (
	"context"
	"log"
	"os"
	"runtime/trace"
)

func start(path string) *os.File {
	file, err := os.Create(path)
	if err == nil {
		err = trace.Start(file)
	}
	if err != nil {
		log.Fatal(err)
	}
	return file
}

func main() {
	first := start(os.Args[1])
	ctx, outer := trace.NewTask(context.Background(), "outer")
	_, inner := trace.NewTask(ctx, "inner")
	var regions []*trace.Region
	for _, name := range []string{"a", "b", "c"} {
		regions = append(regions, trace.StartRegion(ctx, name))
	}
	trace.Stop()
	first.Close()

	second := start(os.Args[2])
	trace.WithRegion(ctx, "whole", func() {})
	for i := len(regions) - 1; i >= 0; i-- {
		regions[i].End()
	}
	inner.End()
	outer.End()
	trace.Stop()
	second.Close()
}

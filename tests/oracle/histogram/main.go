// SPDX-License-Identifier: Apache-2.0

// Histogram compares three mappings of lengths to the buckets of an exponential histogram of scale 6, bucket i being
// (2^(i/64), 2^((i+1)/64)] seconds: the exact one, by integers of any size; that of Prometheus' client (schema 6, its index
// less 1); and that of OpenTelemetry's SDK. Both are called as programs call them, with time.Duration.Seconds().
//
//	cd tests/oracle/histogram && go run .            compares all, and tests/data/histogram with the result; needs amd64
//	cd tests/oracle/histogram && go run . -write     writes tests/data/histogram anew
//	cd tests/oracle/histogram && go run . -table     prints "index smallest_ns" of Prometheus' buckets, no more
//
// `make soak` may run it: 40 s of one core, exit status 1 if a file is off, or a bound below 10^14 ns. The modules are
// pinned in go.mod: the first run downloads them.
//
// Result: all three agree below 10^14 ns, that is 27 hours. Above, lengths that are within 4e-16 of a bound may be
// mapped to its other side, as the seconds are a float64; moreover, Prometheus' own bounds are up to three floats
// too low (most are the one before times a rounded factor), and OpenTelemetry's logarithm is rounded. Above 2^53 ns
// several lengths are the same float64.
package main

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	longest  = math.MaxInt64 // ns
	agreedNS = 1e14          // bounds below are the same in all three
)

// An indexer maps each length to the index of its bucket.
type indexer func(ns []int64) []int32

func seconds(ns int64) float64 { return time.Duration(ns).Seconds() }

func inSeconds(code func([]float64) []int32) indexer {
	return func(ns []int64) []int32 {
		values := make([]float64, len(ns))
		for i := range ns {
			values[i] = seconds(ns[i])
		}
		return code(values)
	}
}

// Firsts holds for each index from lowIndex to highIndex the smallest length whose index is not below it.
type firsts []int64

// search finds all of them at once, each by bisection.
func search(index indexer) firsts {
	low, high := make(firsts, buckets), make(firsts, buckets)
	middle := make([]int64, buckets)

	for i := range high {
		low[i], high[i] = 1, longest
	}
	for range 64 {
		for i := range middle {
			middle[i] = low[i] + (high[i]-low[i])/2
		}
		for i, found := range index(middle) {
			if found >= lowIndex+int32(i) {
				high[i] = middle[i]
			} else {
				low[i] = min(middle[i]+1, high[i])
			}
		}
	}
	return high
}

// holds tells whether some length is in the bucket.
func (f firsts) holds(i int) bool { return i == len(f)-1 || f[i] < f[i+1] }

func (f firsts) table() string {
	var text strings.Builder
	for i, ns := range f {
		if f.holds(i) {
			fmt.Fprintln(&text, lowIndex+i, ns)
		}
	}
	return text.String()
}

// A tally counts how often the three mappings disagree, and why. One length may have two reasons.
type tally struct {
	lengths, prometheus, otel, each int   // how many; off the exact mapping; differ from each other
	lowest                          int64 // length that is mapped otherwise
	farthest                        float64
	rounded, bounds, logarithm      int // reasons: the float64 of the seconds; Prometheus' table; OpenTelemetry's logarithm
}

func (t *tally) add(ns []int64, prometheus, otel, exact indexer) {
	p, o, e := prometheus(ns), otel(ns), exact(ns)

	t.lengths += len(ns)
	for i, n := range ns {
		if p[i] == e[i] && o[i] == e[i] {
			continue
		}
		if p[i] != e[i] {
			t.prometheus++
		}
		if o[i] != e[i] {
			t.otel++
		}
		if p[i] != o[i] {
			t.each++
		}
		ofFloat := exactOfFloat(seconds(n), e[i])
		if ofFloat != e[i] {
			t.rounded++
		}
		if p[i] != ofFloat {
			t.bounds++
		}
		if o[i] != ofFloat {
			t.logarithm++
		}
		if t.lowest == 0 || n < t.lowest {
			t.lowest = n
		}
		bound := max(p[i], o[i], e[i])
		if bound-min(p[i], o[i], e[i]) != 1 {
			panic(fmt.Sprintf("%d ns is off by more than a bucket", n))
		}
		t.farthest = max(t.farthest, math.Abs(distance(n, bound)))
	}
}

func (t *tally) print(name string) {
	fmt.Printf("%s: %d lengths; off the exact mapping: Prometheus %d, OpenTelemetry %d; off each other %d\n",
		name, t.lengths, t.prometheus, t.otel, t.each)
	if t.lowest > 0 {
		fmt.Printf("  the shortest is %d ns; none is further from the bound than %.3g of it\n", t.lowest, t.farthest)
		fmt.Printf("  reasons: seconds rounded to float64 %d, Prometheus' bounds rounded %d, OpenTelemetry's logarithm rounded %d\n",
			t.rounded, t.bounds, t.logarithm)
	}
}

// compareFloats asks both about the floats next to each bound in one octave. The others have the same ones, as both
// split off the exponent.
func compareFloats() {
	const near = 32
	var values []float64
	for i := range int32(64) {
		bound := math.Exp2(float64(i) / 64)
		for n := -near; n <= near; n++ {
			values = append(values, math.Float64frombits(math.Float64bits(bound)+uint64(n)))
		}
	}
	var wrong, lowest, highest [2]int
	var falls int
	answers := [2][]int32{prometheusIndex(values), otelIndex(values)}
	for i, v := range values {
		step := i%(2*near+1) - near
		exact := exactOfFloat(v, answers[0][i])
		for who, answer := range answers {
			if answer[i] != exact {
				wrong[who]++
				lowest[who], highest[who] = min(lowest[who], step), max(highest[who], step)
			}
			if i > 0 && answer[i] < answer[i-1] {
				falls++
			}
		}
	}
	for who, name := range []string{"Prometheus", "OpenTelemetry"} {
		fmt.Printf("%d floats at the 64 bounds of an octave: %s %d off, from %d to %+d floats from the bound\n",
			len(values), name, wrong[who], lowest[who], highest[who])
	}
	fmt.Printf("  indices that fall while the float rises: %d\n", falls)
}

// rounding lists the bounds that are not the exact ones in one of the two, and tells how many there are.
func rounding(exact, prometheus, otel firsts) string {
	var text strings.Builder
	var below, above struct{ prometheus, otel, each, all int }

	for i := range exact {
		if !exact.holds(i) {
			continue
		}
		count := &below
		if exact[i] > 1<<53 {
			count = &above
		}
		count.all++
		if prometheus[i] != otel[i] {
			count.each++
		}
		if prometheus[i] != exact[i] {
			count.prometheus++
		}
		if otel[i] != exact[i] {
			count.otel++
		}
		if prometheus[i] != exact[i] || otel[i] != exact[i] {
			fmt.Fprintln(&text, lowIndex+i, exact[i], prometheus[i], otel[i])
		}
	}
	fmt.Printf("bounds up to 2^53 ns: %d; off the exact one: Prometheus %d, OpenTelemetry %d; off each other %d\n",
		below.all, below.prometheus, below.otel, below.each)
	fmt.Printf("bounds above: %d; Prometheus %d, OpenTelemetry %d; off each other %d\n",
		above.all, above.prometheus, above.otel, above.each)
	return text.String()
}

func main() {
	write := flag.Bool("write", false, "write the files instead of comparing them")
	table := flag.Bool("table", false, "print the table of Prometheus")
	random := flag.Int("random", 10_000_000, "random lengths")
	seed := flag.Uint64("seed", 1, "of the random lengths")
	folder := flag.String("folder", "../../data/histogram", "where the files are")
	flag.Parse()

	prometheus, otel := inSeconds(prometheusIndex), inSeconds(otelIndex)
	prometheusFirsts := search(prometheus)
	if *table {
		fmt.Print(prometheusFirsts.table())
		return
	}
	exactFirsts := searchExact()
	otelFirsts := search(otel)
	failed := false

	text := rounding(exactFirsts, prometheusFirsts, otelFirsts)
	failed = !keep(*write, filepath.Join(*folder, "bounds.txt"), boundsHead+exactFirsts.table()) || failed
	failed = !keep(*write, filepath.Join(*folder, "rounding.txt"), roundingHead+text) || failed
	for i := range exactFirsts {
		if exactFirsts[i] < agreedNS && (prometheusFirsts[i] != exactFirsts[i] || otelFirsts[i] != exactFirsts[i]) {
			fmt.Printf("bound %d: Prometheus %d, OpenTelemetry %d, exact %d\n",
				lowIndex+i, prometheusFirsts[i], otelFirsts[i], exactFirsts[i])
			failed = true
		}
	}
	compareFloats()

	var atBounds, ofTwo, lengths tally
	for i := range exactFirsts {
		for _, ns := range []int64{prometheusFirsts[i], otelFirsts[i], exactFirsts[i]} {
			atBounds.add([]int64{max(ns-1, 1), ns, min(ns, longest-1) + 1}, prometheus, otel, exactFirsts.index)
		}
	}
	atBounds.print("bounds of the three, and 1 ns to each side")
	for bit := range 63 {
		ofTwo.add([]int64{1 << bit}, prometheus, otel, exactFirsts.index)
	}
	ofTwo.print("powers of two")

	generator := rand.New(rand.NewPCG(*seed, 0))
	const batch = 1000
	ns := make([]int64, batch)
	for done := 0; done < *random; done += batch {
		for i := range ns {
			ns[i] = int64(math.Exp2(generator.Float64() * 63))
		}
		lengths.add(ns, prometheus, otel, exactFirsts.index)
	}
	lengths.print("random")
	if failed {
		os.Exit(1)
	}
}

const (
	boundsHead = "# index smallest_ns: exact, by tests/oracle/histogram. Below 10^14 ns Prometheus and OpenTelemetry have the same; " +
		"above, rounding.txt lists the bounds where one of them has another.\n"
	roundingHead = "# index exact_ns prometheus_ns otel_ns: bounds that one of the two puts elsewhere, as it counts seconds in float64, " +
		"by tests/oracle/histogram. client_golang 1.25.0, otel/sdk/metric 1.47.0, amd64.\n"
)

// keep writes a file, or compares it.
func keep(write bool, path, text string) bool {
	if write {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			panic(err)
		}
		return true
	}
	stored, err := os.ReadFile(path)
	if err == nil && string(stored) == text {
		return true
	}
	if err != nil {
		fmt.Println(err)
	} else {
		fmt.Println(path, "is not what the comparison gives")
	}
	return false
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"math/big"
	"sort"
)

const (
	lowIndex  = -1914 // the bucket of 1 ns
	highIndex = 2118  // that of the longest
	buckets   = highIndex - lowIndex + 1
)

// secondTo64 is (10^9)^64.
var secondTo64 = new(big.Int).Exp(big.NewInt(1e9), big.NewInt(64), nil)

// powers returns ns^64 and (2^(i/64) * 10^9)^64, both times the same power of two, so that they are integers.
func powers(ns int64, i int32) (length, bound *big.Int) {
	length, bound = big.NewInt(ns), new(big.Int).Set(secondTo64)
	for range 6 {
		length.Mul(length, length)
	}
	if i >= 0 {
		bound.Lsh(bound, uint(i))
	} else {
		length.Lsh(length, uint(-i))
	}
	return length, bound
}

// searchExact finds by integers alone what search finds by others' code.
func searchExact() firsts {
	found := make(firsts, buckets)
	for at := range found {
		found[at] = 1 + int64(sort.Search(longest-1, func(n int) bool {
			length, bound := powers(int64(n)+1, lowIndex+int32(at))
			return length.Cmp(bound) > 0
		}))
	}
	return found
}

func (f firsts) index(ns []int64) []int32 {
	indices := make([]int32, len(ns))
	for i, n := range ns {
		indices[i] = lowIndex - 1 + int32(sort.Search(len(f), func(at int) bool { return f[at] > n }))
	}
	return indices
}

// distance returns how far a length is above the lower bound of bucket i, as a share of it. It is for small distances: the
// 64th power has 64 times as much.
func distance(ns int64, i int32) float64 {
	length, bound := powers(ns, i)
	share, _ := new(big.Float).Quo(new(big.Float).SetInt(length.Sub(length, bound)), new(big.Float).SetInt(bound)).Float64()
	return share / 64
}

// exactOfFloat returns the index of a float64, which is within one of near: the float is mantissa * 2^exponent, and
// greater than 2^(i/64) if mantissa^64 is greater than 2^(i - 64 * exponent).
func exactOfFloat(v float64, near int32) int32 {
	fraction, exponent := math.Frexp(v)
	power := big.NewInt(int64(math.Ldexp(fraction, 53)))
	for range 6 {
		power.Mul(power, power)
	}
	for i := near + 1; ; i-- {
		bits := int(i) - 64*(exponent-53)
		if power.Cmp(new(big.Int).Lsh(big.NewInt(1), uint(bits))) > 0 {
			return i
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

//go:build ignore

// Writes unicode_print.def, the runs of code points that Go prints as they are within a quoted string:
//
//	go run tools/tracectl/term/unicode_print.go > tools/tracectl/term/unicode_print.def
package main

import (
	"fmt"
	"runtime"
	"strconv"
	"unicode"
)

func main() {
	fmt.Printf("/* Code points from U+0100 that Go quotes as they are; made by unicode_print.go with %s, Unicode %s.\n"+
		" * TK_PRINTABLE(first, last) */\n/* clang-format off */\n", runtime.Version(), unicode.Version)
	for r := rune(0x100); r <= unicode.MaxRune; r++ {
		if !strconv.IsPrint(r) {
			continue
		}
		first := r
		for r < unicode.MaxRune && strconv.IsPrint(r+1) {
			r++
		}
		fmt.Printf("TK_PRINTABLE(0x%X, 0x%X)\n", first, r)
	}
	fmt.Println("/* clang-format on */")
}

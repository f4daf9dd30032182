// SPDX-License-Identifier: Apache-2.0

// Command oracle reports what Go's own trace reader makes of traces. It reads traces from standard input, each as a
// little-endian u32 length and the bytes. For each it writes 24 bytes: u64 verdict (0 whole, 1 broken, 2 the reader panicked,
// 3 header refused), u64 events delivered, u64 hash over their sequence. build.sh builds it inside the installed Go tree by
// an overlay, because the reader is internal.
package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"internal/trace"
	"internal/trace/version"
	"io"
	"os"
)

const (
	whole = iota
	broken
	panicked
	refused
)

const procStatus = 13 // event type

func mix(h, w uint64) uint64 {
	h = (h ^ w) * 0x9E3779B97F4A7C15
	return h ^ h>>29
}

func read(data []byte, explain bool) (verdict, events, hash uint64) {
	defer func() {
		if r := recover(); r != nil {
			verdict = panicked
			if explain {
				fmt.Fprintln(os.Stderr, "oracle: panic:", r)
			}
		}
	}()
	// Format v1 (headers 1.11 to 1.21) is another format, which Go converts and we refuse.
	if v, err := version.ReadHeader(bytes.NewReader(data)); err != nil || v < version.Go122 {
		return refused, 0, 0
	}
	r, err := trace.NewReader(bytes.NewReader(data))
	if err != nil {
		return refused, 0, 0
	}
	for {
		ev, err := r.ReadEvent()
		if err == io.EOF {
			return whole, events, hash
		}
		if err != nil {
			if explain {
				fmt.Fprintln(os.Stderr, "oracle:", err)
			}
			return broken, events, hash
		}
		typ, time, m, p, g, args := ev.OracleEvent()
		events++
		h := mix(hash, uint64(typ))
		h = mix(h, uint64(time))
		h = mix(h, uint64(m))
		h = mix(h, uint64(p))
		h = mix(h, uint64(g))
		for i, a := range args {
			if typ == procStatus && i == 1 {
				a &= 0xff // the reader checks the low byte only; its printing crashes on more
			}
			h = mix(h, a)
		}
		hash = h
		if explain {
			fmt.Println(typ, time, m, p, g, args)
		}
	}
}

func main() {
	if len(os.Args) > 1 { // oracle FILE...: prints explanations instead
		for _, name := range os.Args[1:] {
			data, err := os.ReadFile(name)
			if err != nil {
				fmt.Fprintln(os.Stderr, "oracle:", err)
				os.Exit(1)
			}
			verdict, events, hash := read(data, true)
			fmt.Printf("%s\t%d\t%d\t%016x\n", name, verdict, events, hash)
		}
		return
	}
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriterSize(os.Stdout, 1<<16)
	var head [4]byte
	var data []byte
	for {
		if in.Buffered() < len(head) {
			out.Flush()
		}
		if _, err := io.ReadFull(in, head[:]); err != nil {
			break
		}
		n := int(binary.LittleEndian.Uint32(head[:]))
		if cap(data) < n {
			data = make([]byte, n)
		}
		data = data[:n]
		if _, err := io.ReadFull(in, data); err != nil {
			break
		}
		var answer [24]byte
		verdict, events, hash := read(data, false)
		binary.LittleEndian.PutUint64(answer[0:], verdict)
		binary.LittleEndian.PutUint64(answer[8:], events)
		binary.LittleEndian.PutUint64(answer[16:], hash)
		out.Write(answer[:])
	}
	out.Flush()
}

// SPDX-License-Identifier: Apache-2.0

// An ordinary web server that knows nothing of tracecollect: it prints its address, and serves until its standard input ends.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
	"sync"
	"time"
)

var stock sync.Mutex

func reserve() {
	stock.Lock()
	defer stock.Unlock()
	time.Sleep(3 * time.Millisecond)
}

func main() {
	http.HandleFunc("/slow", func(http.ResponseWriter, *http.Request) { reserve() })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr())
	for range 4 {
		go func() {
			for {
				reserve()
			}
		}()
	}
	go func() { _ = http.Serve(listener, nil) }()
	_, _ = io.Copy(io.Discard, os.Stdin)
}

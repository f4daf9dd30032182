// SPDX-License-Identifier: Apache-2.0

// Stuck is traced, and has goroutines that will never go on: some send to a channel that nobody receives from, some wait for a
// mutex that nobody unlocks. Meanwhile it runs tasks of a length. It ends when its input does.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"runtime/trace"
	"strconv"
	"sync"
	"time"

	"tracecollect.invalid/traceagent"
)

var (
	nobody = make(chan int)
	held   sync.Mutex
)

func send() { nobody <- 1 }

func lock() { held.Lock() }

func number(i int) int {
	n, err := strconv.Atoi(os.Args[i])
	if err != nil {
		log.Fatal(err)
	}
	return n
}

func checkout(length time.Duration) {
	_, task := trace.NewTask(context.Background(), "checkout")
	defer task.End()
	time.Sleep(length)
}

// stuck SENDERS LOCKERS TASK_MS
func main() {
	agent, err := traceagent.Start(traceagent.Config{})
	if err != nil {
		log.Fatal(err)
	}
	held.Lock()
	for range number(1) {
		go send()
	}
	for range number(2) {
		go lock()
	}
	length := time.Duration(number(3)) * time.Millisecond
	go func() {
		for {
			checkout(length)
			time.Sleep(5 * time.Millisecond)
		}
	}()
	fmt.Println("stuck")
	io.Copy(io.Discard, os.Stdin)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := agent.Stop(ctx); err != nil {
		log.Print(err)
	}
}

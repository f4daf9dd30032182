// SPDX-License-Identifier: Apache-2.0

//go:build cgo && tracegen_cgo

package main

/*
#cgo LDFLAGS: -lpthread
#include <pthread.h>
#include <unistd.h>

extern void goCallback(int);

static void *body(void *arg) {
	int n = *(int *)arg;
	for (int i = 0; i < n; i++) {
		goCallback(i);
		usleep(50);
	}
	return 0;
}

// threads starts C threads that call into Go and end.
static void threads(int count, int calls) {
	pthread_t t[16];
	if (count > 16) count = 16;
	for (int i = 0; i < count; i++) pthread_create(&t[i], 0, body, &calls);
	for (int i = 0; i < count; i++) pthread_join(t[i], 0);
}

static void nap(int us) { usleep(us); }
static void direct(int i) { goCallback(i); }
*/
import "C"

import (
	"context"
	"runtime"
	"sync"
)

func init() {
	register(scenario{name: "cgo", about: "C threads that call into Go, cgo calls short and long", run: runCgo})
}

var cbChan = make(chan int, 64)

//export goCallback
func goCallback(i C.int) {
	if i%3 == 0 {
		runtime.Gosched()
	}
	select {
	case cbChan <- int(i):
	default:
		<-cbChan
	}
}

func runCgo(ctx context.Context, e *env) {
	var wg sync.WaitGroup
	for i := 0; i < 2; i++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for e.more() {
				C.threads(3, 4)
			}
		}()
	}
	wg.Add(1)
	go func() {
		defer wg.Done()
		for i := 0; e.more(); i++ {
			C.nap(C.int(i % 300))
			C.direct(C.int(i))
		}
	}()
	wg.Wait()
}

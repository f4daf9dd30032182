// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

func init() {
	register(scenario{name: "net", about: "TCP and unix-socket echo on the loopback", run: runNet})
	register(scenario{name: "syscall", about: "short syscalls, and reads that block in pipes and fifos", run: runSyscall})
}

func blockingPipe() (rd, wr int) {
	var p [2]int
	check(syscall.Pipe(p[:]))
	return p[0], p[1]
}

func readPipe(fd int) {
	var b [1]byte
	for {
		n, err := syscall.Read(fd, b[:])
		if err == syscall.EINTR {
			continue
		}
		_ = n
		return
	}
}

func writePipe(fd int) { syscall.Write(fd, []byte{1}) }

func echo(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			r := bufio.NewReader(c)
			for {
				line, err := r.ReadSlice('\n')
				if err != nil {
					return
				}
				c.Write(line)
			}
		}()
	}
}

func runNet(ctx context.Context, e *env) {
	dir, err := os.MkdirTemp("", "tracegen")
	check(err)
	defer os.RemoveAll(dir)
	tl, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	ul, err := net.Listen("unix", filepath.Join(dir, "s"))
	check(err)
	go echo(tl)
	go echo(ul)
	var wg sync.WaitGroup
	for i := 0; i < 6; i++ {
		l := tl
		if i%3 == 2 {
			l = ul
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			c, err := net.Dial(l.Addr().Network(), l.Addr().String())
			check(err)
			defer c.Close()
			r := bufio.NewReader(c)
			for e.more() {
				c.SetDeadline(time.Now().Add(time.Second))
				if _, err := c.Write([]byte("hello, world\n")); err != nil {
					return
				}
				if _, err := r.ReadSlice('\n'); err != nil {
					return
				}
			}
		}()
	}
	wg.Wait()
	tl.Close()
	ul.Close()
}

func runSyscall(ctx context.Context, e *env) {
	dir, err := os.MkdirTemp("", "tracegen")
	check(err)
	defer os.RemoveAll(dir)
	var wg sync.WaitGroup
	// Short ones.
	wg.Add(1)
	go func() {
		defer wg.Done()
		var st syscall.Stat_t
		for i := 0; e.more(); i++ {
			syscall.Stat(dir, &st)
			if i%16 == 0 {
				os.WriteFile(filepath.Join(dir, "f"), []byte("data"), 0o600)
				os.ReadFile(filepath.Join(dir, "f"))
			}
		}
	}()
	// Pairs that hand a byte round through blocking pipes: each read blocks its
	// thread in the kernel, and its P is taken away.
	for i := 0; i < 3; i++ {
		r1, w1 := blockingPipe()
		wg.Add(2)
		go func() {
			defer wg.Done()
			for e.more() {
				time.Sleep(100 * time.Microsecond)
				writePipe(w1)
			}
			syscall.Close(w1)
		}()
		go func() {
			defer wg.Done()
			var b [1]byte
			for {
				n, err := syscall.Read(r1, b[:])
				if err == syscall.EINTR {
					continue
				}
				if n <= 0 {
					break
				}
			}
			syscall.Close(r1)
		}()
	}
	// A fifo opened for reading blocks in open(2) until the writer comes.
	for i := 0; i < 4 && e.more(); i++ {
		p := filepath.Join(dir, "fifo")
		check(syscall.Mkfifo(p, 0o600))
		wg.Add(1)
		go func() {
			defer wg.Done()
			fd, err := syscall.Open(p, syscall.O_RDONLY, 0)
			if err == nil {
				readPipe(fd)
				syscall.Close(fd)
			}
		}()
		time.Sleep(5 * time.Millisecond)
		fd, err := syscall.Open(p, syscall.O_WRONLY, 0)
		if err == nil {
			syscall.Write(fd, []byte{1})
			syscall.Close(fd)
		}
		os.Remove(p)
	}
	wg.Wait()
}

// SPDX-License-Identifier: Apache-2.0

package traceagent

import (
	"net"
	"sync"
)

// wire is the socket below TLS. crypto/tls writes each record (at most 16 KiB) separately, and the system call costs
// more than the encryption. While the wire gathers, several records become one write.
type wire struct {
	net.Conn
	mu          sync.Mutex // TLS also writes in the reader's goroutine: alerts, key updates
	isGathering bool
	held        []byte
}

const heldBytesMax = 128 << 10

func (w *wire) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.isGathering {
		return w.Conn.Write(p)
	}
	if len(w.held)+len(p) > heldBytesMax {
		if err := w.flush(); err != nil {
			return 0, err
		}
	}
	w.held = append(w.held, p...)
	return len(p), nil
}

func (w *wire) gather() {
	w.mu.Lock()
	w.isGathering = true
	w.mu.Unlock()
}

func (w *wire) release() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.isGathering = false
	return w.flush()
}

func (w *wire) flush() error {
	if len(w.held) == 0 {
		return nil
	}
	_, err := w.Conn.Write(w.held)
	w.held = w.held[:0]
	return err
}

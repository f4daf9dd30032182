// SPDX-License-Identifier: Apache-2.0

package traceagent

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"math/big"
	"net"
	"sync"
	"time"
)

const (
	dialPatience  = 10 * time.Second
	greetPatience = 10 * time.Second
	leavePatience = 5 * time.Second
	byePatience   = time.Second
	backOffMin    = 100 * time.Millisecond
	backOffMax    = 30 * time.Second
	heartbeatTime = 5 * time.Second // if the collector names none
	trimTime      = time.Second
	lossTime      = 10 * time.Second // between two lines about lost generations
)

// client keeps a connection to the collector and empties the spool into it.
type client struct {
	settings settings
	spool    *spool
	disk     *disk
	lines    chan<- line     // sends to it never block
	started  uint64          // when the stream began, wall clock
	stop     context.Context // when done, give up
	giveUp   context.CancelFunc
	ended    chan struct{}

	mu         sync.Mutex
	state      string
	stream     [16]byte
	lastError  string
	held       string // the newest reason why acks come slowly
	heldAt     time.Time
	connects   uint64
	welcomes   uint64
	begunAnew  uint64
	isRefused  bool
	hurried    int // callers that wait for acks: the sender does not rest meanwhile
	saidLosses uint64
	sayLosses  time.Time // time of the next line, at the earliest
}

func newClient(s settings, spool *spool, lines chan<- line) (*client, error) {
	c := &client{settings: s, spool: spool, lines: lines, started: wallNow(), state: "connecting", ended: make(chan struct{})}
	c.stop, c.giveUp = context.WithCancel(context.Background())
	if _, err := rand.Read(c.stream[:]); err != nil {
		return nil, fmt.Errorf("no random bytes: %w", err)
	}
	return c, nil
}

// --- state for other goroutines ---

// log passes a line on. It is dropped if the logger hangs.
func (c *client) log(level int, text string) {
	select {
	case c.lines <- line{level, text}:
	default:
	}
}

func (c *client) setState(state string) {
	c.mu.Lock()
	c.state = state
	c.mu.Unlock()
}

// fail stores why there are no acks. A reason is logged once.
func (c *client) fail(text string) {
	c.mu.Lock()
	isNews := c.lastError != text
	c.lastError = text
	c.mu.Unlock()
	if isNews {
		c.log(levelWarning, text)
	}
}

// over clears a reason that no longer applies.
func (c *client) over(text string) {
	c.mu.Lock()
	isLast := c.lastError == text
	if isLast {
		c.lastError = ""
	}
	c.mu.Unlock()
	if isLast {
		c.log(levelInfo, "acks come again")
	}
}

func (c *client) sayLost() {
	counters := c.spool.count()
	c.mu.Lock()
	more := counters.lostGenerations - c.saidLosses
	isDue := more > 0 && !time.Now().Before(c.sayLosses)
	if isDue {
		c.saidLosses, c.sayLosses = counters.lostGenerations, time.Now().Add(lossTime)
	}
	c.mu.Unlock()
	if isDue {
		c.log(levelWarning, fmt.Sprintf("%d generations lost, %d in all: %s", more, counters.lostGenerations, lossTexts[counters.lastLoss]))
	}
}

func (c *client) isHurried() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hurried > 0
}

func (c *client) hurry(by int) {
	c.mu.Lock()
	c.hurried += by
	c.mu.Unlock()
	c.disk.hurry()
	c.spool.wakeSender()
}

// --- the goroutine ---

func (c *client) run() {
	defer close(c.ended)
	defer c.leave()
	c.disk.lock()
	c.disk.begin(c.stream, c.started)
	c.disk.unlock()
	for tries := 0; ; tries++ {
		wait, err := c.connect(&tries)
		var no refusal
		switch {
		case err == nil:
			c.end("closed")
			return
		case errors.Is(err, errStopped):
			c.end("off")
			return
		case errors.As(err, &no) && no.forGood:
			c.fail(no.text)
			c.mu.Lock()
			c.isRefused = true
			c.mu.Unlock()
			c.end("refused")
			return
		}
		c.setState("waiting")
		c.fail(err.Error())
		if !c.sleep(wait + jitter(tries)) {
			c.end("off")
			return
		}
	}
}

// leave releases the disk and unused memory.
func (c *client) leave() {
	c.disk.lock()
	defer c.disk.unlock()
	c.disk.end()
	c.spool.trim(true)
}

func (c *client) end(state string) {
	c.spool.over() // first, so that nothing is written after a caller has read "closed"
	c.setState(state)
}

var errStopped = errors.New("stopped")

// sleep returns false if the client must stop.
func (c *client) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	trim := time.NewTicker(trimTime)
	defer trim.Stop()
	for {
		select {
		case <-c.stop.Done():
			return false
		case <-timer.C:
			return true
		case <-trim.C:
			c.spool.trim(false)
			c.sayLost()
		}
	}
}

// jitter returns a random time below a bound that doubles with each try.
func jitter(tries int) time.Duration {
	bound := backOffMax
	if tries < 9 && backOffMin<<tries < bound {
		bound = backOffMin << tries
	}
	n, err := rand.Int(rand.Reader, big.NewInt(int64(bound)))
	if err != nil {
		return bound
	}
	return time.Duration(n.Int64())
}

// connect makes one connection and uses it until it ends. wait: how long the collector asked us to stay away.
func (c *client) connect(tries *int) (wait time.Duration, err error) {
	c.mu.Lock()
	c.state = "connecting"
	c.connects++
	c.mu.Unlock()
	wire, conn, err := c.dial()
	if err != nil {
		return 0, err
	}
	l := &link{client: c, wire: wire, conn: conn, reader: bufio.NewReaderSize(conn, 16<<10), writer: bufio.NewWriter(conn), heartbeat: heartbeatTime}
	defer l.hangUp()
	defer context.AfterFunc(c.stop, func() { wire.Close() })() // ends all waits for the socket
	err = l.greet()
	if err == nil {
		*tries = 0
		err = l.stream()
	}
	if err != nil && c.stop.Err() != nil {
		err = errStopped
	}
	return l.away, err
}

func (c *client) dial() (*wire, *tls.Conn, error) {
	host, hostPort, err := address(c.settings.server)
	if err != nil {
		return nil, nil, err
	}
	config, err := c.settings.files.config(host)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(c.stop, dialPatience)
	defer cancel()
	dialer := net.Dialer{KeepAlive: -1}
	plain, err := dialer.DialContext(ctx, "tcp", hostPort)
	if err != nil {
		return nil, nil, c.dialFault(host, hostPort, err)
	}
	wire := &wire{Conn: plain}
	conn := tls.Client(wire, config)
	greet, cancelGreet := context.WithTimeout(c.stop, greetPatience)
	defer cancelGreet()
	if err = conn.HandshakeContext(greet); err == nil && conn.ConnectionState().NegotiatedProtocol != protocolALPN {
		err = refused("%s does not speak %s (no ALPN)%s", host, protocolALPN, otherPort)
	}
	if err == nil {
		return wire, conn, nil
	}
	plain.Close()
	switch {
	case c.stop.Err() != nil:
		return nil, nil, errStopped
	case greet.Err() != nil:
		return nil, nil, fmt.Errorf("%.100s: no answer while SECURING", host)
	}
	return nil, nil, c.settings.files.lost(err)
}

func (c *client) dialFault(host, hostPort string, err error) error {
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case c.stop.Err() != nil:
		return errStopped
	case errors.As(err, &dns):
		return fmt.Errorf("%.100s: %s", host, dns.Err)
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("%.100s: no answer while CONNECTING", host)
	}
	return fmt.Errorf("%.100s: %s", hostPort, sentence(err))
}

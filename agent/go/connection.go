// SPDX-License-Identifier: Apache-2.0

package traceagent

import (
	"bufio"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"sync"
	"time"
)

// link is one connection. The client's goroutine sends; another one reads, and passes acks to the spool.
type link struct {
	client    *client
	wire      *wire
	conn      *tls.Conn
	reader    *bufio.Reader
	writer    *bufio.Writer // for control frames
	heartbeat time.Duration
	away      time.Duration // GOAWAY: wait this long before the next connection

	mu        sync.Mutex
	credit    uint64 // limit of the record bytes sent on this connection
	ackedSeq  uint64
	isLeaving bool
	fault     error // why the connection ends
	refusals  []snapped
}

// hangUp closes the sending side, and reads on until the peer has closed: closing a socket with unread bytes
// resets it, and a reset loses the last bytes sent.
func (l *link) hangUp() {
	l.client.spool.unask()
	l.client.spool.setCapped(false)
	defer time.AfterFunc(byePatience, func() { l.wire.Close() }).Stop()
	l.conn.SetDeadline(time.Time{})
	l.wire.release()
	if l.conn.CloseWrite() == nil {
		io.Copy(io.Discard, l.conn)
	}
	l.conn.Close()
}

func (l *link) say(kind byte, message pack) error {
	var head [headBytes]byte
	frame{kind: kind, len: uint32(len(message)), sum: crc32.Checksum(message, castagnoliTable)}.put(&head)
	l.writer.Write(head[:])
	l.writer.Write(message)
	return l.writer.Flush()
}

// greet sends HELLO and waits for WELCOME.
func (l *link) greet() error {
	c := l.client
	counters := c.spool.count()
	var hello pack
	hello.number(1, protocolMajor)
	hello.number(2, protocolMinor)
	hello.bytes(4, c.stream[:])
	hello.text(5, c.settings.service)
	hello.text(6, c.settings.instance)
	hello.text(7, "go/"+agentVersion)
	hello.number(8, wallNow())
	hello.number(9, monoNow())
	hello.bytes(10, counters.pack(true))
	hello.number(11, c.started)
	hello.number(12, uint64(c.settings.record))
	l.conn.SetDeadline(time.Now().Add(greetPatience))
	unsaid := l.say(kindHello, hello)
	buffer := make([]byte, inboundMax)
	for {
		f, payload, err := readFrame(l.reader, buffer)
		if _, isAlert := alertOf(err); err != nil && !isAlert && unsaid != nil {
			err = unsaid // no received alert explains it
		}
		if err != nil {
			return l.lost(err)
		}
		if f.kind == kindWelcome {
			l.conn.SetDeadline(time.Time{})
			return l.welcome(payload)
		}
		if f.isActedOn() {
			if err := l.act(f.kind, payload, true); err != nil {
				return err
			}
		}
		if l.isLeaving {
			return l.fault
		}
	}
}

func (l *link) welcome(message []byte) error {
	c := l.client
	w, err := readWelcome(message)
	if err != nil {
		return fmt.Errorf("collector's WELCOME cannot be read")
	}
	if w.major != protocolMajor {
		return fmt.Errorf("collector speaks protocol %d, not %d", w.major, protocolMajor)
	}
	c.mu.Lock() // first, because an ack may end a wait, and its caller then reads the status
	c.welcomes++
	c.lastError, c.held = "", ""
	c.mu.Unlock()
	if err := c.resume(w.durableSeq); err != nil {
		return err
	}
	l.credit, l.ackedSeq = w.creditBytes, w.durableSeq
	if w.heartbeatMS != 0 {
		l.heartbeat = time.Duration(w.heartbeatMS) * time.Millisecond
	}
	c.setState("streaming")
	c.log(levelInfo, "connected")
	return nil
}

// resume continues after the collector's last record, or as another stream.
func (c *client) resume(durable uint64) error {
	c.disk.lock()
	defer c.disk.unlock()
	err := c.spool.resume(durable)
	if errors.Is(err, errForgot) {
		return c.beginAnew(err)
	}
	return err
}

// beginAnew turns the spool into a new stream. This connection belongs to the old stream, so it ends with the returned error.
func (c *client) beginAnew(forgot error) error {
	var stream [16]byte
	why := forgot.Error()[len(errForgot.Error())+len(": "):]
	if _, err := rand.Read(stream[:]); err != nil {
		return fmt.Errorf("%s; no random bytes for a new stream", why)
	}
	c.spool.restart()
	c.started = wallNow()
	c.mu.Lock()
	c.stream = stream
	c.begunAnew++
	c.mu.Unlock()
	c.disk.begin(stream, c.started)
	return fmt.Errorf("%s: goes on as a new stream, what was acked counts as lost", why)
}

// --- reading ---

// silence returns how long a peer may be silent before the connection is given up.
func silence(heartbeat time.Duration) time.Duration { return heartbeat * 11 / 4 }

// read handles frames until the connection ends, or until the sender has finished and sets a deadline.
func (l *link) read(over chan<- struct{}) {
	defer close(over)
	// A timer, not a deadline: in crypto/tls a reader may wait for a writer that waits for the socket.
	silent := time.AfterFunc(silence(l.heartbeat), func() {
		l.fail(l.silent())
		l.wire.Close()
	})
	defer silent.Stop()
	buffer := make([]byte, inboundMax)
	for {
		f, payload, err := readFrame(l.reader, buffer)
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			return
		}
		silent.Reset(silence(l.heartbeat))
		if err == nil && f.isActedOn() {
			err = l.act(f.kind, payload, false)
		} else if err != nil {
			err = l.lost(err)
		}
		if err != nil {
			l.fail(err)
			l.conn.SetWriteDeadline(time.Now()) // ends a sender that waits for the socket
			return
		}
		l.client.spool.wakeSender()
	}
}

// fail stores the first reason why the connection ends.
func (l *link) fail(err error) {
	l.mu.Lock()
	if l.fault == nil {
		l.fault = err
	}
	l.mu.Unlock()
}

func (l *link) silent() error {
	return fmt.Errorf("collector silent for %d ms", silence(l.heartbeat).Milliseconds())
}

// lost returns a readable reason why the connection ended.
func (l *link) lost(err error) error {
	var timeout net.Error
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		return l.silent()
	case errors.Is(err, io.EOF):
		return errors.New("collector closed the connection")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("collector hung up without good-bye")
	}
	return l.client.settings.files.lost(err)
}

var refuseCodes = []string{"REFUSE_UNKNOWN", "REFUSE_VERSION", "REFUSE_IDENTITY", "REFUSE_NAME", "REFUSE_PROTOCOL", "REFUSE_BUDGET", "REFUSE_SUPERSEDED", "REFUSE_STORAGE"}

func (l *link) act(kind byte, message []byte, isGreeting bool) error {
	unreadable := fmt.Errorf("collector's %s cannot be read", kindNames[kind])
	switch kind {
	case kindAck:
		a, err := readAck(message)
		if err != nil {
			return unreadable
		}
		if isGreeting {
			return errors.New("ACK before WELCOME")
		}
		return l.acked(a)
	case kindGoaway:
		g, err := readGoaway(message)
		if err != nil {
			return unreadable
		}
		l.goAway(g)
		return nil
	case kindRefuse:
		r, err := readRefuse(message)
		if err != nil {
			return unreadable
		}
		return refusedBy(r)
	case kindSnap:
		s, err := readSnap(message)
		if err != nil {
			return unreadable
		}
		return l.snap(s, isGreeting)
	case kindWelcome:
		return errors.New("second WELCOME")
	}
	return fmt.Errorf("collector sends %s", kindNames[kind])
}

func refusedBy(r refuseMessage) error {
	code := "?"
	if r.code < uint64(len(refuseCodes)) {
		code = refuseCodes[r.code]
	}
	if r.isPermanent {
		return refusal{text: fmt.Sprintf("collector refuses: %s: %s", code, r.reason), forGood: true}
	}
	return fmt.Errorf("collector refuses at present: %s: %s", code, r.reason)
}

// heldTime is how long a reason is kept after the collector last sent it.
const heldTime = 5 * time.Second

func (l *link) acked(a ackMessage) error {
	c := l.client
	l.mu.Lock()
	if a.creditBytes > l.credit {
		l.credit = a.creditBytes
	}
	goesOn := a.durableSeq > l.ackedSeq
	l.ackedSeq = a.durableSeq
	l.mu.Unlock()
	c.mu.Lock()
	over := ""
	if goesOn && c.held != "" && time.Since(c.heldAt) >= heldTime {
		over, c.held = c.held, ""
	}
	held := holdTexts[a.hold]
	if held != "" {
		c.held, c.heldAt = held, time.Now()
	}
	c.mu.Unlock()
	if over != "" {
		c.over(over)
	}
	if held != "" {
		c.fail(held)
	}
	c.disk.lock()
	defer c.disk.unlock()
	return c.spool.ack(a.durableSeq)
}

var holdTexts = map[uint64]string{
	1: "collector slows this stream down: more generations a second than agents.stream_generations_rate allows",
	2: "collector slows this certificate name down: more generations a second than agents.identity_generations_rate allows",
	3: "collector slows this certificate name down: more generations than its share of the archive's work (agents.generations_max)",
	4: "collector slows this certificate name down: its records take agents.identity_records_max of memory",
	5: "collector slows all agents down: their records take agents.records_max of memory",
	6: "collector stores nothing: its disk is full",
	7: "collector stores nothing: its log says why",
	8: "collector slows all agents down: its archive does not keep up with the disk",
}

func (l *link) goAway(g goawayMessage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away = time.Duration(g.waitMS) * time.Millisecond
	l.isLeaving = true
	l.fault = fmt.Errorf("collector goes away: %s", g.reason)
	l.conn.SetWriteDeadline(time.Now().Add(leavePatience))
}

func (l *link) snap(s snapMessage, isGreeting bool) error {
	if isGreeting {
		return errors.New("SNAP before WELCOME")
	}
	if s.id == 0 {
		return errors.New("SNAP without an id")
	}
	if err := l.client.spool.snap(time.Duration(s.lastNS), s.id); err != nil {
		l.mu.Lock()
		if len(l.refusals) < snapsMax { // more refusals are not sent; the collector's wait times out
			l.refusals = append(l.refusals, snapped{id: s.id, isBusy: errors.Is(err, errTooManySnaps)})
		}
		l.mu.Unlock()
	}
	return nil
}

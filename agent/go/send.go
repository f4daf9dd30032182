// SPDX-License-Identifier: Apache-2.0

package traceagent

import (
	"errors"
	"runtime"
	"time"
)

const (
	// After sending records the sender rests for a moment. Otherwise each batch of a busy program would cost
	// waking the sender, and waking the collector.
	restTime  = 40 * time.Millisecond
	restBytes = 1 << 20
)

// stream sends until everything is acknowledged (nil) or the connection ends.
func (l *link) stream() error {
	over := make(chan struct{})
	go l.read(over)
	err := l.send(over)
	last := time.Now()
	if err != nil {
		last = last.Add(byePatience) // to receive the collector's reason
	}
	l.conn.SetReadDeadline(last)
	<-over
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fault != nil && err != nil {
		err = l.fault
	}
	return err
}

func (l *link) send(over <-chan struct{}) error {
	c := l.client
	beat := time.NewTicker(l.heartbeat)
	defer beat.Stop()
	tick := time.NewTicker(trimTime)
	defer tick.Stop()
	var leave <-chan time.Time
	pace := pacer{bytes: c.settings.rate}
	for sent := uint64(0); !c.spool.isDone(); {
		credit, isLeaving := l.marks()
		if isLeaving && leave == nil {
			leave = time.After(leavePatience)
		}
		if err := l.answerSnaps(); err != nil {
			return l.lost(err)
		}
		n, wait, err := l.sendSome(credit-sent, isLeaving, &pace)
		if err != nil {
			return l.lost(err)
		}
		sent += n
		if n > 0 {
			l.rest(over)
			wait = 1 // continue, but let a due heartbeat be sent first
		}
		var due <-chan time.Time
		if wait > 0 {
			due = time.After(wait)
		}
		select {
		case <-c.spool.wake:
		case <-due:
		case <-beat.C:
			if err := l.say(kindHeartbeat, l.beat()); err != nil {
				return l.lost(err)
			}
		case <-tick.C:
			c.spool.trim(false)
			c.sayLost()
		case <-leave:
			return l.leaving()
		case <-over:
			if c.spool.isDone() {
				return nil
			}
			return l.leaving()
		case <-c.stop.Done():
			return errStopped
		}
	}
	return nil
}

func (l *link) marks() (credit uint64, isLeaving bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.credit, l.isLeaving
}

func (l *link) leaving() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fault != nil {
		return l.fault
	}
	return errors.New("collector closed the connection")
}

func (l *link) beat() pack {
	counters := l.client.spool.count()
	var p pack
	p.number(1, wallNow())
	p.number(2, monoNow())
	p.bytes(3, counters.pack(true))
	return p
}

// sendSome sends as much as credit and rate allow. wait: how long the rate cap delays the next record.
func (l *link) sendSome(room uint64, isLeaving bool, pace *pacer) (n uint64, wait time.Duration, err error) {
	spool := l.client.spool
	if isLeaving {
		return 0, 0, nil
	}
	if pace.bytes > 0 {
		need := l.client.nextNeed() // one frame at a time, so that the rate is exceeded by at most one frame
		if need == 0 || need > room {
			spool.setCapped(false)
			return 0, 0, nil
		}
		if wait = pace.wait(); wait > 0 {
			spool.setCapped(true)
			return 0, wait, nil
		}
		room = need
	}
	spool.setCapped(false)
	g := l.client.grant(room)
	if g.bytes == 0 {
		return 0, 0, nil
	}
	pace.charge(uint64(g.bytes))
	l.wire.gather()
	for _, part := range g.parts {
		if _, err = l.conn.Write(part); err != nil {
			return 0, 0, err
		}
	}
	if err = l.wire.release(); err != nil {
		return 0, 0, err
	}
	runtime.KeepAlive(spool) // the parts are in its pages
	l.client.wrote(g.seq)
	return uint64(g.bytes), 0, nil
}

// grant releases records for sending. With a spool on disk, the records are written before, and their numbers are noted.
func (c *client) grant(room uint64) granted {
	c.disk.lock()
	defer c.disk.unlock()
	c.disk.flush(flushGrant)
	g, _ := c.spool.grant(room)
	if g.bytes > 0 {
		c.disk.note()
	}
	return g
}

// nextNeed returns the size of the next record, 0: there is none.
func (c *client) nextNeed() uint64 {
	c.disk.lock()
	defer c.disk.unlock()
	c.disk.flush(flushGrant)
	_, need := c.spool.grant(0)
	return need
}

func (c *client) wrote(seq uint64) {
	c.disk.lock()
	defer c.disk.unlock()
	c.spool.wrote(seq)
}

// rest waits a moment for more records, unless there are many, a generation has ended or a caller waits.
func (l *link) rest(over <-chan struct{}) {
	timer := time.NewTimer(restTime)
	defer timer.Stop()
	l.client.spool.setResting(true)
	defer l.client.spool.setResting(false)
	for !l.client.isHurried() && !l.client.spool.hasMuch() {
		select {
		case <-l.client.spool.wake:
		case <-timer.C:
			return
		case <-over:
			return
		case <-l.client.stop.Done():
			return
		}
	}
}

// Results of a snap, as in proto/frame.proto.
const (
	snapShipped = 1 + iota
	snapNothing
	snapNotRecording
	snapBusy
)

func (l *link) answerSnaps() error {
	l.mu.Lock()
	refusals := l.refusals
	l.refusals = nil
	l.mu.Unlock()
	for _, no := range refusals {
		result := uint64(snapNotRecording)
		if no.isBusy {
			result = snapBusy
		}
		if err := l.say(kindSnapped, no.pack(result)); err != nil {
			return err
		}
	}
	for {
		done, isOne := l.client.spool.takeSnapped()
		if !isOne {
			return nil
		}
		result := uint64(snapShipped)
		if done.firstGen == 0 {
			result = snapNothing
		}
		if err := l.say(kindSnapped, done.pack(result)); err != nil {
			return err
		}
	}
}

func (s snapped) pack(result uint64) pack {
	var p pack
	p.number(1, s.id)
	p.number(2, result)
	p.number(3, s.firstGen)
	p.number(4, s.lastGen)
	p.number(5, s.generations)
	p.number(6, s.all.batches)
	p.number(7, s.all.bytes)
	p.number(8, s.lostGenerations)
	p.number(9, s.fromWall)
	p.number(10, s.toWall)
	return p
}

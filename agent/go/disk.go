// SPDX-License-Identifier: Apache-2.0

package traceagent

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

const (
	flushTime = 100 * time.Millisecond
	diskRetry = 10 * time.Second
	punchMin  = 1 << 20

	// A disk may be slower than the trace: so many bytes, then others have their turn. A piece counts as 8 KiB at least.
	flushGrant = grantBytes
	flushRound = 2 << 20
	flushAll   = math.MaxInt
	pieceMin   = 8 << 10
)

// disk keeps the spool's files like the spool. flush puts down all that the files lack; the sender does so before records
// get numbers, notes the numbers before they go out, and a goroutine flushes every 100 ms. So a number that went out is
// always known to the files, and records that were put less than 100 ms ago are known to no other process.
//
// A disk that is full, or fails, is no loss: the spool in memory has everything. Records that the files have stay there,
// since a caller may have been promised it; what they lack waits, unsent, and is tried again every 100 ms. When nothing
// that they have is still to be acknowledged the files go, the stream goes on without, and 10 s later new ones are written.
//
// Code that gives numbers to records or frees them holds the lock, so that no piece is on its way meanwhile. A nil disk is
// none.
type disk struct {
	spool    *spool
	log      func(level int, text string)
	flushNow chan struct{}
	begun    chan struct{} // closed once there are files, or may be none

	mu        sync.Mutex
	dir       directory
	state     dirState
	room      []byte
	isOn      bool
	isFull    bool      // the last piece could not be written
	isStale   bool      // the state is not what was written last
	isEnded   bool      // nothing more is written here
	due       time.Time // the next try
	droppedID uint64    // files up to there are gone
	punched   uint64    // bytes of the front run's frames

	bytes, faults atomic.Uint64 // as reported
}

func newDisk(s settings, spool *spool, log func(level int, text string)) *disk {
	return &disk{
		spool: spool, log: log, flushNow: make(chan struct{}, 1), begun: make(chan struct{}), room: make([]byte, 0, pieceBytes),
		dir: directory{root: s.spoolDir, bytesMax: s.spoolDirBytes / 2}, state: dirState{service: s.service, instance: s.instance},
	}
}

func (d *disk) lock() {
	if d != nil {
		d.mu.Lock()
	}
}

func (d *disk) unlock() {
	if d != nil {
		d.mu.Unlock()
	}
}

// run flushes until the client has ended.
func (d *disk) run(ended <-chan struct{}) {
	<-d.begun
	tick := time.NewTicker(flushTime)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
		case <-d.flushNow:
		}
		for isMore := true; isMore; {
			d.lock()
			isMore = d.flush(flushRound)
			d.unlock()
		}
	}
}

// hurry flushes without the wait for the next tick.
func (d *disk) hurry() {
	if d == nil {
		return
	}
	select {
	case d.flushNow <- struct{}{}:
	default:
	}
}

// --- the lock is held from here on ---

// begin makes files for a stream from now on; those of another one before it go.
func (d *disk) begin(stream [16]byte, started uint64) {
	if d == nil {
		return
	}
	if d.isOn {
		d.dir.remove()
	}
	d.spool.keepNot()
	d.isOn, d.isFull = false, false
	d.state.stream, d.state.started = stream, started
	d.due = time.Time{}
	d.flush(flushRound)
	select {
	case <-d.begun:
	default:
		close(d.begun)
	}
}

// flush puts down so many bytes of what the files lack, and answers whether there are more.
func (d *disk) flush(room int) (isMore bool) {
	now := time.Now()
	switch {
	case d == nil || d.isEnded || (!d.isOn && now.Before(d.due)):
		return false
	case d.isFull && !d.spool.hasKept():
		d.giveUp()
		return false
	case d.isFull && now.Before(d.due):
		return false
	}
	d.due = now.Add(flushTime)
	isMore, err := d.write(room)
	if err != nil {
		d.fail(err)
		return false
	}
	d.bytes.Store(d.dir.bytes)
	return isMore
}

// note: numbers were given, and have not gone out yet.
func (d *disk) note() {
	if d == nil || !d.isOn {
		return
	}
	if err := d.look(); err != nil {
		d.fail(err)
	}
}

// end: nothing more will be sent here. The rest stays, for another process.
func (d *disk) end() {
	if d == nil || d.isEnded {
		return
	}
	isDone := d.spool.isDone()
	if !isDone {
		d.flush(flushAll)
	}
	d.isEnded = true
	d.bytes.Store(d.dir.bytes)
	if d.isOn && isDone {
		d.dir.remove()
		d.bytes.Store(0)
	}
	d.dir.leave() // from here on it may be taken over
	d.isOn = false
}

func (d *disk) reportFault(what string, err error) {
	if d.faults.Add(1) == 1 {
		d.log(levelWarning, fmt.Sprintf("spool on disk %s: %s", what, err))
	}
}

// giveUp: without files no successor can take over. No more may be read out of them than was true so far.
func (d *disk) giveUp() {
	d.spool.keepNot()
	d.dir.remove()
	d.isOn, d.isFull = false, false
	d.due = time.Now().Add(diskRetry)
	d.bytes.Store(0)
	d.spool.wakeSender() // it sends without them
}

func (d *disk) fail(err error) {
	if !d.isFull {
		d.reportFault("is off", err)
	}
	d.giveUp()
}

func (d *disk) open() error {
	var salt [4]byte
	if _, err := rand.Read(salt[:]); err != nil {
		return errors.New("no random bytes")
	}
	d.state.salt = binary.LittleEndian.Uint32(salt[:])
	if err := d.dir.make(d.state.stream); err != nil {
		return err
	}
	d.spool.keep()
	d.droppedID = d.spool.account().frontID - 1
	d.punched = 0
	d.isOn, d.isStale, d.isFull = true, true, false
	return nil
}

// write: the first time, runs before their state. Until then the folder is worth nothing.
func (d *disk) write(room int) (isMore bool, err error) {
	if !d.isOn {
		if err := d.open(); err != nil {
			return false, err
		}
	}
	if d.isFull { // what was acknowledged meanwhile makes room
		if err := d.look(); err != nil {
			return false, err
		}
	}
	for {
		if room <= 0 && (d.dir.serial > 0 || d.spool.isGivenKept()) {
			return true, d.look()
		}
		p, isOne := d.spool.unsaved(d.state.salt, d.room)
		if !isOne {
			return false, d.look()
		}
		if err := d.dir.put(d.state.salt, &p); err != nil {
			return false, d.waitForRoom(&p, err)
		}
		d.isFull = false
		room -= max(len(p.frames), pieceMin)
		d.dir.drop(p.kept+1, p.run.covers)
	}
}

// waitForRoom: the piece that has no room waits, and so does all behind it. Files get their first state only if they can
// stand for the stream: what has a number must be there.
func (d *disk) waitForRoom(p *piece, err error) error {
	d.spool.unsavedAgain(p)
	if !d.spool.hasKept() || (d.dir.serial == 0 && !d.spool.isGivenKept()) {
		return err
	}
	if !d.isFull {
		d.reportFault("takes no more", err)
	}
	d.isFull = true
	return d.look()
}

// look writes the state if it has changed. Files that are not needed go after the state that says so.
func (d *disk) look() error {
	now := d.spool.account()
	if !d.isStale && now == d.state.accounting {
		return nil
	}
	d.state.accounting = now
	if err := d.dir.putState(&d.state); err != nil {
		return err
	}
	d.isStale = false
	if now.frontID > d.droppedID+1 {
		d.dir.drop(d.droppedID+1, now.frontID-1)
		d.droppedID, d.punched = now.frontID-1, 0
	}
	if now.frontBytes >= d.punched+punchMin {
		d.dir.punch(now.frontID, d.punched, now.frontBytes)
		d.punched = now.frontBytes
	}
	return nil
}

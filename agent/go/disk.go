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

	// Bytes written before other goroutines have their turn: a disk may be slower than the trace. A piece counts as at least 8 KiB.
	flushGrant = grantBytes
	flushRound = 2 << 20
	flushAll   = math.MaxInt
	pieceMin   = 8 << 10
)

// disk keeps the spool's files up to date. flush writes everything that the files lack. The sender flushes before records
// get numbers, and notes the numbers before they are sent; a goroutine flushes every 100 ms. So the files have every number
// that was sent, but may lack records of the last 100 ms.
//
// A full or failing disk loses nothing: the spool in memory has everything. Records in the files stay there, because a caller
// may have been told so (errOnlyKept). Other records wait, unsent, and are tried again every 100 ms. Once all records in the
// files are acknowledged, the files are removed, the stream continues without them, and 10 s later new files are written.
//
// Code that gives numbers to records or frees them holds the lock, so that no piece is being written meanwhile. A nil disk
// means: no spool on disk.
type disk struct {
	spool    *spool
	log      func(level int, text string)
	flushNow chan struct{}
	begun    chan struct{} // closed after the first attempt to create files

	mu        sync.Mutex
	dir       directory
	state     dirState
	room      []byte
	isOn      bool
	isFull    bool      // the last piece could not be written
	isStale   bool      // the state must be written
	isEnded   bool      // nothing more is written
	due       time.Time // next try
	droppedID uint64    // files up to this id are removed
	punched   uint64    // freed bytes of the front run's frames

	bytes, faults atomic.Uint64 // for the status
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

// hurry makes run flush at once.
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

// begin removes the files of a former stream, and creates files for this one.
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

// flush writes about room bytes that the files lack, and returns whether there are more.
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

// note writes the state after numbers were given, and before they are sent.
func (d *disk) note() {
	if d == nil || !d.isOn {
		return
	}
	if err := d.look(); err != nil {
		d.fail(err)
	}
}

// end is called when this process sends nothing more. Unacknowledged records stay for another process.
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
	d.dir.leave() // from here on another process may take it
	d.isOn = false
}

func (d *disk) reportFault(what string, err error) {
	if d.faults.Add(1) == 1 {
		d.log(levelWarning, fmt.Sprintf("spool on disk %s: %s", what, err))
	}
}

// giveUp removes the files, so that no successor takes over an old state. The stream continues in memory.
func (d *disk) giveUp() {
	d.spool.keepNot()
	d.dir.remove()
	d.isOn, d.isFull = false, false
	d.due = time.Now().Add(diskRetry)
	d.bytes.Store(0)
	d.spool.wakeSender() // to send without files
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

// write writes pieces and the state. The first time runs are written before the state: until then the folder is invalid.
func (d *disk) write(room int) (isMore bool, err error) {
	if !d.isOn {
		if err := d.open(); err != nil {
			return false, err
		}
	}
	if d.isFull { // removes files of acknowledged records
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

// waitForRoom keeps a piece that has no room, and all later ones, for the next try. Files get their first state only if they
// have every record with a number; else the error is returned.
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

// look writes the state if it has changed. Files that are no longer needed are removed after that.
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

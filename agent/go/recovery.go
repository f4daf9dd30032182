// SPDX-License-Identifier: Apache-2.0

package traceagent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"sync"
)

// recovery takes over streams that earlier processes left in the spool directory, one by one, oldest first, and sends them.
//
// A stream is taken if no process holds its lock and it belongs to the same service. It is sent with its own id,
// names, numbers and bytes, from the first record that the collector lacks; then its files are removed. If it was finished,
// its CLOSE is sent last, else the collector records an unclean end. The oldest streams that do not fit into half of the
// directory's limit are removed unsent. A stream that the collector refuses stays, for a process with another certificate. While a
// stream is sent, it needs as much memory as its former spool.
type recovery struct {
	settings settings
	lines    chan<- line
	stop     context.Context
	giveUp   context.CancelFunc
	ended    chan struct{}
	dir      directory
	state    dirState

	mu         sync.Mutex
	left, sent uint64 // streams; left is 1 until the folder was searched
}

func newRecovery(s settings, lines chan<- line) *recovery {
	r := &recovery{settings: s, lines: lines, ended: make(chan struct{}), left: 1}
	r.dir.root = s.spoolDir
	r.stop, r.giveUp = context.WithCancel(context.Background())
	return r
}

func (r *recovery) log(level int, text string) {
	select {
	case r.lines <- line{level, text}:
	default:
	}
}

func (r *recovery) reported() (left, sent uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.left, r.sent
}

// --- reading a stream's files ---

// load makes a spool from the files of a taken folder. errDamaged: the spool is incomplete. errNotNow: no spool.
func load(dir *directory, state *dirState) (*spool, error) {
	bytes, err := memoryWanted(dir, state)
	if err != nil {
		return nil, err
	}
	s := newSpool(bytes)
	s.inherit(&state.accounting)
	if err = loadRuns(dir, state, s); err == errNotNow {
		return nil, err
	}
	s.inherited()
	return s, err
}

// memoryWanted returns the memory for all frames, and a partly used page for each run.
func memoryWanted(dir *directory, state *dirState) (bytes uint64, err error) {
	for id := state.accounting.frontID; ; {
		image, file, err := dir.openRun(state.salt, id)
		switch err {
		case nil:
		case errNotNow:
			return 0, err
		default:
			return bytes, nil
		}
		if is, err := file.Stat(); err == nil {
			bytes += min(image.endBytes, uint64(is.Size())) + pageBytes
		}
		file.Close()
		id = image.covers + 1
	}
}

// loadRuns loads consecutive runs up to the first missing or damaged one.
func loadRuns(dir *directory, state *dirState, s *spool) error {
	a, room := &state.accounting, make([]byte, 2*pieceBytes)
	for id := a.frontID; ; {
		image, file, err := dir.openRun(state.salt, id)
		if err == errNoSuchRun {
			return nil
		}
		if err != nil {
			return err
		}
		isFront := id == a.frontID
		if !isFront || !a.isFrontDone {
			from := uint64(0)
			if isFront {
				from = a.frontBytes
			}
			s.inheritRun(&image)
			err = loadFrames(file, state.salt, s, room, from, image.endBytes)
		}
		file.Close()
		if err != nil {
			return err
		}
		id = image.covers + 1
	}
}

// loadFrames loads a run's frames between at and end.
func loadFrames(file *os.File, salt uint32, s *spool, room []byte, at, end uint64) error {
	for at < end {
		n, err := file.ReadAt(room[:min(end-at, uint64(len(room)))], int64(imageBytes+at))
		if err != nil && err != io.EOF {
			return errNotNow
		}
		used := 0
		for {
			f, payload, taken, err := keptFrame(salt, room[used:n])
			if err == nil && taken > 0 {
				err = s.inheritFrame(f, payload)
			}
			if err != nil {
				return err
			}
			if taken == 0 {
				break
			}
			used += taken
		}
		if used == 0 {
			return errDamaged
		}
		at += uint64(used)
	}
	return nil
}

// --- sending ---

// announce notes in the state that all records may have been sent. They get the same numbers in the next process that takes
// over.
func (r *recovery) announce(s *spool) error {
	r.state.accounting.givenSeq = s.ackedSeq + s.records
	return r.dir.putState(&r.state)
}

func (r *recovery) deliver() {
	spool, err := load(&r.dir, &r.state)
	if err == errNotNow {
		r.reportEnd("cannot be read now, and stays unsent", levelWarning)
		return
	}
	if err != nil {
		r.reportEnd("is damaged; sending what precedes the damage", levelWarning)
	}
	if !spool.isDone() && r.announce(spool) == nil {
		r.send(spool)
	}
	isOver := spool.isDone() || spool.isSuperseded // or its process continued without the files
	if !isOver {
		r.reportEnd("stays unsent", levelWarning)
		return
	}
	r.reportEnd("is sent", levelInfo)
	r.dir.remove()
	r.mu.Lock()
	r.sent++
	r.mu.Unlock()
}

func (r *recovery) send(spool *spool) {
	own := r.settings
	own.service, own.instance = r.state.service, r.state.instance
	client, err := newClient(own, spool, r.lines)
	if err != nil {
		return
	}
	client.stream, client.started = r.state.stream, r.state.started
	defer context.AfterFunc(r.stop, client.giveUp)()
	client.run()
}

func (r *recovery) reportEnd(how string, level int) {
	r.log(level, fmt.Sprintf("spool on disk: %s of %s %s", r.dir.name, r.state.instance, how))
}

// --- finding ---

type found struct {
	name           string
	started, bytes uint64
}

// isOurs takes a stream, and returns false if it has an owner or belongs to another service. A stream without owner and without
// a valid state is removed: its process died while it created it.
func (r *recovery) isOurs(name string) bool {
	state, err := r.dir.take(name)
	r.state = state
	if err == nil {
		return state.service == r.settings.service
	}
	switch {
	case errors.Is(err, errDamaged):
		r.dir.remove()
	case !errors.Is(err, errLocked):
		r.removeEmpty(filepath.Join(r.settings.spoolDir, name))
	}
	return false
}

func (r *recovery) removeEmpty(path string) {
	if info, err := os.Lstat(path); err == nil && info.IsDir() {
		os.Remove(path)
	}
}

func (r *recovery) find() (all []found) {
	names, err := streamNames(r.settings.spoolDir)
	if err != nil {
		r.log(levelWarning, "spool on disk: not all of it can be listed; what is not seen stays unsent")
	}
	for _, name := range names {
		if r.isOurs(name) {
			all = append(all, found{name, r.state.started, bytesOf(r.settings.spoolDir, name)})
		}
		r.dir.leave()
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].started < all[j].started })
	return all
}

// dropOldest returns the newest streams that fit into half of the directory's limit, and removes the others.
func (r *recovery) dropOldest(all []found) []found {
	first, bytes := len(all), uint64(0)
	for first > 0 && bytes+all[first-1].bytes <= r.settings.spoolDirBytes/2 {
		first--
		bytes += all[first].bytes
	}
	for _, old := range all[:first] {
		if r.isOurs(old.name) {
			r.log(levelWarning, fmt.Sprintf("spool on disk is full: %s goes unsent", old.name))
			r.dir.remove()
		}
		r.dir.leave()
	}
	return all[first:]
}

func (r *recovery) setLeft(left int) {
	r.mu.Lock()
	r.left = uint64(left)
	r.mu.Unlock()
}

// run waits until this program's own stream has its files, so that it does not take over that folder.
func (r *recovery) run(begun <-chan struct{}) {
	defer close(r.ended)
	<-begun
	all := r.dropOldest(r.find())
	for i, old := range all {
		r.setLeft(len(all) - i)
		if r.stop.Err() != nil {
			return
		}
		if r.isOurs(old.name) {
			r.deliver()
		}
		r.dir.leave()
	}
	r.setLeft(0)
}

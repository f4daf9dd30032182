// SPDX-License-Identifier: Apache-2.0

package traceagent

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// directory has the spool's files: a folder for each stream, with a file for each run, and a state. The C agent has the same
// format (agent/persist); each agent takes over streams of the other.
//
//	DIR/<stream32>/state      two places for a dirState, written in turn; locked while its owner lives
//	DIR/<stream32>/<id16>     a runImage with its checksum, then frames, each after its own head
//
// The files are for the same machine. Nothing is synced: they outlive the process, but not a power failure. Folders are
// 0700, files 0600, no link is followed. The system releases the lock when the owner ends.
type directory struct {
	root            string
	path            string // the stream's folder; "": none
	name            string
	state           *os.File // locked
	run             *os.File
	runID           uint64 // id of run
	runIDMax        uint64 // largest id of a file
	isRunFresh      bool   // run has no image yet
	serial          uint64
	bytes, bytesMax uint64 // of all files; limit
}

const (
	stateName  = "state"
	stateMagic = 0x316c6f6f70736174 // "taspool1"
	stateBytes = 448
	stateAt    = 4096 // offset of the second place
	textBytes  = 72
	imageBytes = 128 // before a run's frames
)

var (
	errLocked    = errors.New("another process has it")
	errDamaged   = errors.New("it is damaged")
	errNoSuchRun = errors.New("no such run")
	errNotNow    = errors.New("it cannot be read now") // for example no descriptors, a failing disk: try again later
)

// dirState describes a stream: its owner, and the accounting of its records.
type dirState struct {
	serial, started   uint64
	stream            [16]byte
	service, instance string
	accounting        accounting
	salt              uint32 // begins all other checksums in the folder
}

func (s *dirState) encode() []byte {
	p := make([]byte, 0, stateBytes)
	p = appendNumbers(p, stateMagic, s.serial, s.started)
	p = append(p, s.stream[:]...)
	p = appendText(p, s.service)
	p = appendText(p, s.instance)
	p = s.accounting.encode(p)
	p = binary.LittleEndian.AppendUint32(p, s.salt)
	return binary.LittleEndian.AppendUint32(p, crc32.Checksum(p, castagnoliTable))
}

func appendNumbers(p []byte, numbers ...uint64) []byte {
	for _, n := range numbers {
		p = binary.LittleEndian.AppendUint64(p, n)
	}
	return p
}

func appendText(p []byte, text string) []byte {
	var out [textBytes]byte
	copy(out[:textBytes-1], text)
	return append(p, out[:]...)
}

// fields decodes numbers and texts from the front; the caller makes sure that there are enough bytes.
type fields []byte

func (f *fields) take(n int) []byte {
	taken := (*f)[:n]
	*f = (*f)[n:]
	return taken
}

func (f *fields) number() uint64 { return binary.LittleEndian.Uint64(f.take(8)) }
func (f *fields) word() uint32   { return binary.LittleEndian.Uint32(f.take(4)) }
func (f *fields) count() count   { return count{f.number(), f.number()} }

func (f *fields) text() string {
	text := string(f.take(textBytes))
	if end := strings.IndexByte(text, 0); end >= 0 {
		text = text[:end]
	}
	return text
}

func readState(file *os.File, at int64) (s dirState, isIt bool, err error) {
	var bytes [stateBytes]byte
	if _, err := file.ReadAt(bytes[:], at); err == io.EOF {
		return s, false, nil
	} else if err != nil {
		return s, false, errNotNow
	}
	f := fields(bytes[:])
	isIt = f.number() == stateMagic
	s.serial, s.started = f.number(), f.number()
	copy(s.stream[:], f.take(len(s.stream)))
	s.service, s.instance = f.text(), f.text()
	s.accounting.decode(&f)
	s.salt = f.word()
	return s, isIt && f.word() == crc32.Checksum(bytes[:stateBytes-4], castagnoliTable), nil
}

// runImage is a run without its frames.
type runImage struct {
	id, covers          uint64 // runs after id up to covers were merged into it
	kind                runKind
	reason              lossReason
	isOpen, isAbandoned bool
	gen, lastGen        uint64
	endBytes            uint64 // length of the frames; bytes after it are ignored
	all, sealed         count
	firstWall, lastWall uint64
}

func flag(is bool) uint32 {
	if is {
		return 1
	}
	return 0
}

func (r *runImage) encode(salt uint32) []byte {
	p := make([]byte, 0, imageBytes)
	p = appendNumbers(p, r.id, r.covers)
	for _, word := range []uint32{uint32(r.kind) + 1, uint32(r.reason), flag(r.isOpen), flag(r.isAbandoned)} {
		p = binary.LittleEndian.AppendUint32(p, word)
	}
	p = appendNumbers(p, r.gen, r.lastGen, r.endBytes, r.all.batches, r.all.bytes, r.sealed.batches, r.sealed.bytes, r.firstWall, r.lastWall)
	p = p[:imageBytes-4]
	return binary.LittleEndian.AppendUint32(p, crc32.Update(salt, castagnoliTable, p))
}

func decodeImage(salt uint32, bytes []byte) (r runImage, isIt bool) {
	f := fields(bytes)
	r.id, r.covers = f.number(), f.number()
	kind := f.word()
	r.kind, r.reason, r.isOpen, r.isAbandoned = runKind(kind)-1, lossReason(f.word()), f.word() != 0, f.word() != 0
	r.gen, r.lastGen, r.endBytes = f.number(), f.number(), f.number()
	r.all, r.sealed = f.count(), f.count()
	r.firstWall, r.lastWall = f.number(), f.number()
	sum := binary.LittleEndian.Uint32(bytes[imageBytes-4:])
	isIt = sum == crc32.Update(salt, castagnoliTable, bytes[:imageBytes-4])
	return r, isIt && kind >= 1 && r.kind <= runClose && r.covers >= r.id && r.covers < math.MaxUint64
}

// --- folders ---

// faultOf formats an error as the C agent does. The path of an fs.PathError is left out, because name is there already.
func faultOf(doing, name string, err error) error {
	var number *fs.PathError
	if errors.As(err, &number) {
		err = number.Err
	}
	return fmt.Errorf("%s %.60s: %s", doing, name, sentence(err))
}

// openRoot creates the folder if it is missing. It must belong to us or to root, and no other user may write to it.
func openRoot(path string) (string, error) {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", faultOf("making", path, err)
	}
	full, err := filepath.Abs(path) // the program may change its working directory
	if err != nil {
		return "", faultOf("opening", path, err)
	}
	info, err := os.Stat(full)
	switch {
	case err != nil:
		return "", faultOf("opening", path, err)
	case !info.IsDir():
		return "", fmt.Errorf("opening %.60s: Not a directory", path)
	}
	return full, checkOwner(path, info)
}

func (d *directory) openIn(name string, flags int) (*os.File, error) {
	return os.OpenFile(filepath.Join(d.path, name), flags|filesOnly, 0o600)
}

func (d *directory) leave() {
	for _, file := range []**os.File{&d.run, &d.state} {
		if *file != nil {
			(*file).Close()
			*file = nil
		}
	}
	d.path, d.name, d.bytes = "", "", 0
}

// enter opens a folder, and opens and locks its state.
func (d *directory) enter(folder string, flags int) error {
	d.path = filepath.Join(d.root, folder)
	info, err := os.Lstat(d.path)
	if err == nil && !info.IsDir() {
		err = fs.ErrInvalid
	}
	if err != nil {
		return faultOf("opening", d.name, err)
	}
	if d.state, err = d.openIn(stateName, os.O_RDWR|flags); err != nil {
		return faultOf("opening the state of", d.name, err)
	}
	if err = lock(d.state); err != nil && err != errLocked {
		return faultOf("locking", d.name, err)
	}
	if err == nil && !d.isThere() {
		return errLocked
	}
	return err
}

// isThere returns whether the opened state is still the one in the folder: its owner may have removed it meanwhile, and
// created another one.
func (d *directory) isThere() bool {
	ours, err1 := d.state.Stat()
	there, err2 := os.Lstat(filepath.Join(d.path, stateName))
	return err1 == nil && err2 == nil && os.SameFile(ours, there)
}

// removeRest removes files of this stream that were given up and could not be removed.
func (d *directory) removeRest() {
	rest := directory{root: d.root, name: d.name}
	if rest.enter(d.name, 0) == nil {
		rest.remove()
	}
	rest.leave()
}

// make creates the stream's folder. It gets its name only when it is locked, so that no other process takes it.
func (d *directory) make(stream [16]byte) error {
	d.name = hex.EncodeToString(stream[:])
	d.serial = 0
	fresh := d.name
	if renamesOpenFolders {
		fresh = "." + d.name
	}
	d.removeRest()
	if err := os.Mkdir(filepath.Join(d.root, fresh), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return faultOf("making", fresh, err)
	}
	if err := d.enter(fresh, os.O_CREATE); err == errLocked {
		return fmt.Errorf("%s is locked", d.name)
	} else if err != nil {
		return err
	}
	reserve(d.state, stateAt+stateBytes) // so that it can be written when the disk is full
	if fresh == d.name {
		return nil
	}
	named := filepath.Join(d.root, d.name)
	if err := os.Rename(d.path, named); err != nil {
		os.Remove(filepath.Join(d.path, stateName))
		os.Remove(d.path)
		return faultOf("naming", fresh, err)
	}
	d.path = named
	return nil
}

// take opens and locks a folder of an earlier process. errLocked: it has an owner. errDamaged: no valid state.
func (d *directory) take(name string) (dirState, error) {
	d.name = name
	if err := d.enter(name, 0); err != nil {
		return dirState{}, err
	}
	one, isFirst, err1 := readState(d.state, 0)
	two, isSecond, err2 := readState(d.state, stateAt)
	switch {
	case err1 != nil || err2 != nil:
		return dirState{}, errNotNow
	case !isFirst && !isSecond:
		return dirState{}, errDamaged
	case isSecond && (!isFirst || two.serial >= one.serial):
		one = two
	}
	d.serial = one.serial
	return one, nil
}

// putState writes the next state over the older of the two.
func (d *directory) putState(s *dirState) error {
	d.serial++
	s.serial = d.serial
	if _, err := d.state.WriteAt(s.encode(), int64(d.serial%2*stateAt)); err != nil {
		return faultOf("writing", "spool", err)
	}
	return nil
}

// --- runs ---

func runName(id uint64) string { return fmt.Sprintf("%016x", id) }

func (d *directory) openForWriting(id uint64) error {
	if d.run != nil && d.runID == id {
		return nil
	}
	d.closeRun()
	file, err := d.openIn(runName(id), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return faultOf("opening", runName(id), err)
	}
	info, err := file.Stat()
	d.run, d.runID, d.isRunFresh = file, id, err == nil && info.Size() == 0
	d.runIDMax = max(d.runIDMax, id)
	return nil
}

func (d *directory) closeRun() {
	if d.run != nil {
		d.run.Close()
		d.run = nil
	}
}

// account updates bytes for the run's file, which took before bytes on disk. It measures the file, so it is right after an error too.
func (d *directory) account(before uint64) {
	now := uint64(0)
	if info, err := d.run.Stat(); err == nil {
		now = diskBytes(info)
	}
	d.bytes += now
	d.bytes -= min(before, d.bytes)
}

// put writes a piece: frames first, then the image that makes them valid. An image is within one page, so the death of the
// process cannot tear it. After an error the run is as before, and put may be called again with the same piece.
func (d *directory) put(salt uint32, p *piece) error {
	if err := d.openForWriting(p.run.id); err != nil {
		return err
	}
	before := uint64(0)
	if info, err := d.run.Stat(); err == nil {
		before = diskBytes(info)
	}
	err := d.writePiece(salt, p)
	if err == nil && (p.run.kind == runLoss || p.run.isAbandoned) {
		if err = d.run.Truncate(int64(imageBytes + p.run.endBytes)); err != nil {
			err = faultOf("shortening", d.name, err)
		}
	}
	d.account(before)
	if err != nil && d.isRunFresh {
		d.drop(p.run.id, p.run.id)
	}
	return err
}

func (d *directory) writePiece(salt uint32, p *piece) error {
	// An image alone needs no room, and the image of a LOSS frees some.
	if n := uint64(len(p.frames)); n > 0 && d.bytes+n > d.bytesMax {
		return fmt.Errorf("spool directory: its %d bytes are in use", d.bytesMax)
	}
	if len(p.frames) > 0 {
		if _, err := d.run.WriteAt(p.frames, int64(imageBytes+p.at)); err != nil {
			return faultOf("writing", "spool", err)
		}
	}
	if _, err := d.run.WriteAt(p.run.encode(salt), 0); err != nil {
		return faultOf("writing", "spool", err)
	}
	d.isRunFresh = false
	return nil
}

func (d *directory) drop(first, last uint64) {
	for id := first; id <= min(last, d.runIDMax); id++ {
		if d.run != nil && d.runID == id {
			d.closeRun()
		}
		path := filepath.Join(d.path, runName(id))
		info, err := os.Lstat(path)
		if err != nil || os.Remove(path) != nil {
			continue
		}
		d.bytes -= min(diskBytes(info), d.bytes)
	}
}

// punch frees the disk space of a run's frames between from and to. If the file system cannot, the space is freed with the run.
func (d *directory) punch(id, from, to uint64) {
	if d.run == nil || d.runID != id {
		return
	}
	info, err := d.run.Stat()
	if err == nil && punchHole(d.run, int64(imageBytes+from), int64(to-from)) {
		d.account(diskBytes(info))
	}
}

// openRun opens a run's file for reading, and returns its image. Errors: errNoSuchRun, errDamaged, errNotNow.
func (d *directory) openRun(salt uint32, id uint64) (runImage, *os.File, error) {
	file, err := d.openIn(runName(id), os.O_RDONLY)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return runImage{}, nil, errNoSuchRun
	case err != nil:
		return runImage{}, nil, errNotNow
	}
	var bytes [imageBytes]byte
	if _, err = file.ReadAt(bytes[:], 0); err == nil {
		if image, isIt := decodeImage(salt, bytes[:]); isIt && image.id == id {
			return image, file, nil
		}
	}
	file.Close()
	if err != nil && err != io.EOF {
		return runImage{}, nil, errNotNow
	}
	return runImage{}, nil, errDamaged
}

// --- lists ---

func isStreamName(name string) bool {
	return len(name) == 32 && strings.Trim(name, "0123456789abcdef") == ""
}

// streamNames returns the folders of streams. After an error there may be more.
func streamNames(root string) (names []string, err error) {
	entries, err := os.ReadDir(root)
	for _, entry := range entries {
		if isStreamName(entry.Name()) {
			names = append(names, entry.Name())
		}
	}
	return names, err
}

// bytesOf sums the readable files of a stream.
func bytesOf(root, name string) (sum uint64) {
	entries, _ := os.ReadDir(filepath.Join(root, name))
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil {
			sum += diskBytes(info)
		}
	}
	return sum
}

// remove removes the folder, and leaves it. The state is removed last: without it nothing would ever remove the other files. If
// a file cannot be removed, an empty state stays: take then returns errDamaged, and the next process tries again.
func (d *directory) remove() {
	defer d.leave()
	if d.state == nil {
		return
	}
	d.closeRun()
	entries, err := os.ReadDir(d.path)
	isWhole := err == nil
	for _, entry := range entries {
		if entry.Name() != stateName && os.Remove(filepath.Join(d.path, entry.Name())) != nil {
			isWhole = false
		}
	}
	state := filepath.Join(d.path, stateName)
	if isWhole {
		if !removesOpenFiles {
			d.state.Close()
		}
		os.Remove(state)
		os.Remove(d.path)
	} else if d.state.Truncate(0) != nil {
		os.Remove(state) // files that stay for ever are better than files that are sent twice
	}
}
